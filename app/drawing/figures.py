"""A figure of a run, drawn below its title, with what one may take away from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import streamlit as st

import live
from drawing import moving
from drawing.handout import handout
from session import messages, reading
from workbench.figures import Figure

Look = tuple[str | None, bool, int]  # title, by night, height
_sent: WeakKeyDictionary[Figure, dict[Look, dict[str, Any]]] = WeakKeyDictionary()


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
    with st.container(key=f"figure-{name}"):
        made = make()
        clicked = live.prepared_drawing(sent(made, dark, title, height), key=f"drawing {name}", clickable=clickable)
        code = reading.code(key, made, other, table)
        handout(name, None, lambda: replace(made, title=title or made.title, code=code), dark)
    return clicked


def sent(figure: Figure, dark: bool, title: str | None = None, height: int = moving.HEIGHT) -> dict[str, Any]:
    """What the browser needs to draw the figure. It is written once for as long as somebody keeps the figure."""
    written = _sent.setdefault(figure, {})
    look = title, dark, height
    if look not in written:
        words = {"title": title or figure.title, "subtitle": figure.subtitle, "text": figure.text}
        written[look] = live.prepared(moving.untitled(figure.plot(dark)), **words, height=height)
    return written[look]
