"""A figure of a run, drawn below its title, with what one may take away from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

import live
import messages
import moving
import reading
from handout import handout
from workbench.figures import Figure


@messages.friendly
def drawn(
    name: str,
    key: str,
    make: Callable[[], Figure],
    dark: bool,
    *,
    title: str | None = None,
    height: int = moving.HEIGHT,
    other: str | None = None,
    table: str = "table = test",
    clickable: bool = False,
) -> dict[str, Any] | None:
    """Draw the figure that `make` gives; if it fails, the others stay. Returns what was clicked just now, or None.

    `title` stands in for the figure's own. `other` is the second run it is about, if any; `table` the line of code that
    makes the table it shows.
    """

    def figure() -> Figure:
        made = make()
        return replace(made, title=title or made.title, code=reading.code(key, made, other, table))

    with st.container(key=f"figure-{name}"):
        made = figure()
        plotted = moving.untitled(made.plot(dark))
        words = {"title": made.title, "subtitle": made.subtitle, "text": made.text}
        clicked = live.drawing(plotted, **words, height=height, clickable=clickable, key=f"drawing {name}")
        handout(name, None, figure, dark)
    return clicked
