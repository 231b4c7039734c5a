"""*Save this page*: the pictures of a page as one HTML file that needs no server and no network."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from session import cached_data
from workbench.figures import Figure
from workbench.figures.report_page import Part, report_page

PICTURES, OF = "pictures of the page", "page of the pictures"  # of a session
Picture = tuple[str | None, Callable[[], Figure]]  # the run it is about, if any, and how it is made


def add(name: str, key: str | None, make: Callable[[], Figure]) -> None:
    """Note a picture that the page shows, by its name; it is made when the page is saved."""
    st.session_state.setdefault(PICTURES, {})[name] = (key, make)


def offer(title: str, dark: bool) -> None:
    """A button that writes one HTML file with all pictures of the page alive, their numbers and their code."""
    shown = (title, st.session_state.get("run"))
    if st.session_state.get(OF) != shown:  # another page, or another run
        st.session_state[OF], st.session_state[PICTURES] = shown, {}
    pictures: dict[str, Picture] = st.session_state.setdefault(PICTURES, {})
    st.download_button(
        "Save this page",
        lambda: saved(title, pictures, dark),
        f"{title.lower()}.html",
        "text/html",
        icon=":material/save:",
        on_click="ignore",
        width="stretch",
        help="One file with every picture of this page, its numbers and its code; it needs no server and no network.",
    )


def saved(title: str, pictures: dict[str, Picture], dark: bool) -> str:
    """The file."""
    return report_page(title, [_part(*picture) for picture in pictures.values()], dark)


def _part(key: str | None, make: Callable[[], Figure]) -> Part:
    figure = make()
    code: Any = figure.code if key is None else cached_data.code(key, figure)
    return Part(figure, str(code))
