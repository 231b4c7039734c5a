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
from session import cached_data
from session.films import if_ready
from session.serving import AHEAD
from workbench.figures import Figure
from workbench.figures.base import Click
from workbench.figures.losses.ternary import LevelSets, marked
from workbench.figures.style import theme
from workbench.trusted_imports import allowed_modules

OF_MANY = ("line_profile", "gradient_sparsity", "probe")  # figures that take a list of losses
TRIANGLE = 760  # pixels of a triangle with its names and colour bar, where the window is high enough


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
    request = json.loads(recipe)
    kinds = [wb.losses.class_named(each["loss"], allowed=allowed_modules()) for each in request["losses"]]
    losses = [kind(**_tuples(each["knobs"])) for kind, each in zip(kinds, request["losses"], strict=True)]
    things: list[Any] = [losses] if request["figure"] in OF_MANY else losses
    if request["run"] is not None:
        things.append(cached_data.run(request["run"]).tables["test"])
    made: Figure = getattr(wb.figures, request["figure"])(*things, **_tuples(request["options"]))
    return made


class Along(NamedTuple):
    """The slider of a knob, its text at each position, and the recipe of the picture there."""

    widget: str
    texts: tuple[str, ...]
    recipes: tuple[str, ...]


def draw_recipe(
    name: str,
    recipe: str,
    dark: bool,
    *,
    clickable: bool = False,
    along: Along | None = None,
    point: Sequence[float] | None = None,
) -> Click | None:
    """Draw the figure of a recipe with its code and downloads. Returns what was clicked just now, or None.

    Pictures `along` a slider are made in the background; once all are there, the picture follows in the browser. A `point`
    of a triangle is drawn above it, so that those pictures stay the same when it moves.
    """
    film = None if along is None else if_ready(_begun(along, dark, along.recipes.index(recipe)))
    parts = _sent(recipe, dark) if film is None else film
    if point is not None:
        parts = live.with_overlay(parts, marked(_with_point(figure(recipe), point), theme(dark))[-1:])
    with st.container(key=f"figure-{name}"):
        clicked = live.prepared_drawing(parts, clickable=clickable, key=f"picture {name}")
        handout(name, None, lambda: _with_point(figure(recipe), point), dark)
    return clicked


def _with_point(figure: Any, point: Sequence[float] | None) -> Any:
    return figure if point is None else figure.with_point(point)


def prepare(recipes: Callable[[], Sequence[str]], dark: bool) -> None:
    """Draw in the background the pictures that are likely to be needed next."""
    AHEAD.submit(lambda: [_sent(recipe, dark) for recipe in recipes()])


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
    height = TRIANGLE if isinstance(figure, LevelSets) else drawn.layout.height
    return drawn.update_layout(margin={"t": top_margin(drawn)}, height=height)


@st.cache_resource(show_spinner=False, max_entries=200)
def _sent(recipe: str, dark: bool) -> dict[str, Any]:
    """The figure as the browser needs it."""
    made = figure(recipe)
    drawn, narrow = (_untitled(each, dark) for each in (made, made.narrow()))
    words = {"title": made.title, "subtitle": made.subtitle, "text": made.text}
    return live.prepared(drawn, **words, height=drawn.layout.height, narrow=None if made.narrow() is made else narrow)


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no tuples."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
