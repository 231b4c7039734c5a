"""What a person takes away from a picture: the code that makes it, what it says in words, its data, a page of its own."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

import reading
from workbench.figures import Figure


def handout(name: str, key: str, make: Callable[[], Figure], dark: bool) -> None:
    """A quiet button below a picture; the figure is made when it is pressed."""
    shown = st.popover(
        "Show the code", icon=":material/code:", type="tertiary", key=f"handout {name}", on_change="rerun"
    )
    if not shown.open:
        return
    with shown:
        figure = make()
        st.code(f"{reading.code(key)}\n{figure.code}", language="python", wrap_lines=True)
        st.caption(figure.text)
        with st.container(horizontal=True):
            data = {"label": "Data (CSV)", "file_name": f"{name}.csv", "mime": "text/csv"}
            st.download_button(**data, data=figure.frame.to_csv(index=False), on_click="ignore", key=f"csv {name}")
            page = {"label": "Picture (HTML)", "file_name": f"{name}.html", "mime": "text/html"}
            st.download_button(**page, data=lambda: figure.page(dark), on_click="ignore", key=f"html {name}")
