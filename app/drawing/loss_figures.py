"""Figures of losses, made once for each recipe and kept.

A recipe is a text: the name of a figure, its losses and its options as JSON. Streamlit would take two losses of different
classes and equal knobs for the same thing; texts it compares rightly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

import plotly.graph_objects as go
import streamlit as st

import live
import workbench as wb
from drawing.figures import top_margin
from drawing.handout import handout
from session import reading
from session.serving import AHEAD, loaded
from workbench.figures import Figure
from workbench.figures.base import Click

OF_MANY = ("line_profile", "gradient_sparsity")  # figures that take a list of losses


class Setting(NamedTuple):
    """A loss by its name and knobs: what the address of a page can hold."""

    loss: str
    knobs: dict[str, Any]


def recipe(figure: str, *settings: Setting, run: str | None = None, **options: Any) -> str:
    """The text that stands for a figure. With a `run`, its test table follows the losses."""
    losses = [setting._asdict() for setting in settings]
    return json.dumps({"figure": figure, "losses": losses, "run": run, "options": options}, sort_keys=True)


@st.cache_resource(show_spinner=False, max_entries=1000)
def figure(recipe: str) -> Figure:
    """The figure of a recipe."""
    asked = json.loads(recipe)
    losses = [wb.losses.class_named(each["loss"])(**_tuples(each["knobs"])) for each in asked["losses"]]
    things: list[Any] = [losses] if asked["figure"] in OF_MANY else losses
    if asked["run"] is not None:
        things.append(reading.run(asked["run"]).tables["test"])
    made = getattr(wb.figures, asked["figure"])(*things, **_tuples(asked["options"]))
    loaded(asked["figure"])
    return made


class Along(NamedTuple):
    """The slider of a knob, what it says at each of its places, and the recipe of the picture that is wanted there."""

    widget: str
    texts: tuple[str, ...]
    recipes: tuple[str, ...]


def shown(name: str, recipe: str, dark: bool, *, clickable: bool = False, along: Along | None = None) -> Click | None:
    """Draw the figure of a recipe with what one may take away from it. Returns what was clicked just now, or None.

    What changes `along` a slider is made while nobody waits; once it is there, the picture follows in the browser.
    """
    film = None if along is None else _film_if_made(along, dark, along.recipes.index(recipe))
    parts = _sent(recipe, dark) if film is None else film
    with st.container(key=f"figure-{name}"):
        clicked = live.prepared_drawing(parts, clickable=clickable, key=f"picture {name}")
        handout(name, None, lambda: figure(recipe), dark)
    return clicked


def prepare(recipes: Callable[[], Sequence[str]], dark: bool) -> None:
    """Make pictures that are likely to be asked for next, while nobody waits for them."""
    AHEAD.submit(lambda: [_sent(recipe, dark) for recipe in recipes()])


def _film_if_made(along: Along, dark: bool, at: int) -> dict[str, Any] | None:
    """What the browser needs to follow the slider, once it is there; None where one of the pictures cannot be made."""
    film = _begun(along, dark, at)
    return film.result() if film.done() and film.exception() is None else None


@st.cache_resource(show_spinner=False, max_entries=8)
def _begun(along: Along, dark: bool, _at: int) -> Future[dict[str, Any]]:
    return AHEAD.submit(_film, along, dark, _at)


def _film(along: Along, dark: bool, at: int) -> dict[str, Any]:
    for place in sorted(range(len(along.recipes)), key=lambda place: abs(place - at)):
        figure(along.recipes[place])  # those beside the slider first: until all are there, Python is asked for them
    made = [figure(recipe) for recipe in along.recipes]
    drawn = [_untitled(each, dark) for each in made]
    return live.prepared_film(
        drawn,
        follows=live.Followed(along.widget, along.texts),
        title=made[0].title,
        subtitles=[each.subtitle for each in made],
        texts=[each.text for each in made],
        height=drawn[0].layout.height,
    )


def _untitled(figure: Figure, dark: bool) -> go.Figure:
    """A Plotly figure without its title, which the page writes."""
    drawn = figure.plot(dark).update_layout(title=None)
    return drawn.update_layout(margin={"t": top_margin(drawn)})


@st.cache_resource(show_spinner=False, max_entries=200)
def _sent(recipe: str, dark: bool) -> dict[str, Any]:
    """What the browser needs to draw the figure."""
    made = figure(recipe)
    drawn, narrow = (_untitled(each, dark) for each in (made, made.narrow()))
    words = {"title": made.title, "subtitle": made.subtitle, "text": made.text}
    return live.prepared(drawn, **words, height=drawn.layout.height, narrow=None if made.narrow() is made else narrow)


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
