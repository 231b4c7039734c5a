"""A figure of a run, drawn below its title, with what one may take away from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import plotly.graph_objects as go
import streamlit as st

import live
from drawing.handout import handout
from session import cached_data, messages
from workbench.figures import Code, Figure
from workbench.figures.base import Click, Places
from workbench.figures.film import Film

HEIGHT, PANEL = 320, 80  # pixels of a figure, and of each further panel in it
Look = tuple[str | None, bool, int]  # title, by night, height
_sent: WeakKeyDictionary[Figure, dict[Look, dict[str, Any]]] = WeakKeyDictionary()


@contextmanager
def pictures() -> Iterator[None]:
    """A grid of pictures. The last one, if it is alone on its line, has the line for itself once all are there."""
    with st.container(key="pictures"):
        yield
        st.html('<i class="wb-end"></i>')


@messages.friendly
def draw(
    name: str,
    key: str,
    make: Callable[[], Figure],
    dark: bool,
    *,
    title: str | None = None,
    height: int = HEIGHT,
    other: str | None = None,
    table: Code = cached_data.TEST_TABLE,
    clickable: bool | None = None,
) -> Click | None:
    """Draw the figure that `make` gives; if it fails, the others stay. Returns what was clicked just now, or None.

    `title` stands in for the figure's own. `other` is the second run it is about, if any; `table` the code that makes
    the table it shows. Parts of it can be clicked if they stand for rows, unless `clickable` says otherwise.
    """
    with st.container(key=f"figure-{name}"):
        made = make()
        opens = made.opens_rows if clickable is None else clickable
        clicked = live.prepared_drawing(
            browser_content(made, dark, title, height), key=f"drawing {name}", clickable=opens
        )
        code = cached_data.code(key, made, other, table)
        handout(name, None, lambda: replace(made, title=title or made.title, code=code), dark)
    return clicked


def browser_content(figure: Figure, dark: bool, title: str | None = None, height: int = HEIGHT) -> dict[str, Any]:
    """The figure as the browser needs it, written once for as long as the figure is kept."""
    written = _sent.setdefault(figure, {})
    look = title, dark, height
    if look not in written:
        words = {"title": title or figure.title, "subtitle": figure.subtitle, "text": figure.text}
        narrow = None if figure.narrow() is figure else untitled(figure.narrow().plot(dark), keep_height=True)
        written[look] = live.prepared(untitled(figure.plot(dark)), **words, height=height, narrow=narrow)
    return written[look]


def following(
    figure: Figure,
    places: Places,
    dark: bool,
    *,
    title: str | None = None,
    height: int = HEIGHT,
    **others: Places | None,
) -> Film:
    """A figure that follows the sliders; `others` are further positions it depends on.

    Ranges change in few, large steps, so that a picture stands still under a moving slider. Of a picture whose subtitle
    moves, that says what there is to see.
    """
    subtitles = figure.subtitles(places, **others)
    return Film(
        untitled(figure.plot(dark)),
        figure.moves(places, **others),
        title=title or figure.title,
        subtitles=subtitles,
        text=figure.text if len(subtitles) == 1 else "",
        height=height,
        clickable=figure.opens_rows,
    )


def at_each_place(figures: Sequence[Figure], dark: bool, *, height: int = HEIGHT) -> Film:
    """One of several figures of a kind at each position of a slider."""
    first, subtitles = figures[0], [figure.subtitle for figure in figures]
    return Film.of_plots(
        [untitled(figure.plot(dark)) for figure in figures],
        title=first.title,
        subtitles=subtitles[:1] if len({*subtitles}) == 1 else subtitles,
        text=first.text if len({figure.text for figure in figures}) == 1 else "",
        height=height,
    )


def untitled(drawn: go.Figure, *, keep_height: bool = False) -> go.Figure:
    """A Plotly figure without its title, which the page writes, as it does the legend: so both can move and wrap."""
    height = drawn.layout.height if keep_height else None
    return drawn.update_layout(
        title=None, height=height, margin={"l": left_margin(drawn), "r": 20, "t": top_margin(drawn), "b": 52}
    )


def top_margin(drawn: go.Figure) -> int:
    """Pixels above the axes of a figure whose title the page writes: more, if panels have titles of their own."""
    above = [
        note for note in drawn.layout.annotations if note.yanchor == "bottom" and note.y is not None and note.y >= 1
    ]
    return 36 if above else 12


def left_margin(drawn: go.Figure) -> int:
    """Pixels left of the axes: few, if nothing is written there."""
    return 8 if drawn.layout.yaxis.visible is False else 64
