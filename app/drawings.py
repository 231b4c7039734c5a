"""A figure of a run, drawn below its title, with what one may take away from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

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
    height: int = moving.HEIGHT,
    other: str | None = None,
) -> None:
    """Draw the figure that `make` gives; if it fails, the others stay. `other` is the second run it is about, if any."""

    def figure() -> Figure:
        made = make()
        return replace(made, code=reading.code(key, made, other))

    with st.container(key=f"figure-{name}"):
        made = figure()
        plotted = moving.untitled(made.plot(dark))
        live.drawing(
            plotted, title=made.title, subtitle=made.subtitle, text=made.text, height=height, key=f"drawing {name}"
        )
        handout(name, None, figure, dark)
