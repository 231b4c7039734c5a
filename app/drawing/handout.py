"""The downloads of a picture: its code, its description, its data, its own page."""

from __future__ import annotations

import io
from collections.abc import Callable

import streamlit as st

from session import cached_data, save_page
from session.messages import plain
from workbench.figures import Figure


def handout(name: str, key: str | None, make: Callable[[], Figure], dark: bool) -> None:
    """A quiet button below a picture; the figure is made when it is pressed. `key` is the run it is about, if any."""
    save_page.add(name, key, make)
    shown = st.popover(
        "Code and download", icon=":material/code:", type="tertiary", key=f"handout {name}", on_change="rerun"
    )
    if not shown.open:
        return
    with shown:
        figure = make()
        st.code(figure.code if key is None else cached_data.code(key, figure), language="python", wrap_lines=True)
        st.caption(plain(figure.text))
        with st.container(horizontal=True):
            _download("Data (CSV)", f"{name}.csv", "text/csv", lambda: figure.frame.to_csv(index=False))
            _download("Picture (HTML)", f"{name}.html", "text/html", lambda: figure.page(dark))
            _download("PNG", f"{name}.png", "image/png", lambda: _still(figure, "png", dark))
            _download("SVG", f"{name}.svg", "image/svg+xml", lambda: _still(figure, "svg", dark))


def _still(figure: Figure, kind: str, dark: bool) -> bytes:
    """The picture for paper."""
    content = io.BytesIO()
    figure.static(dark).savefig(content, format=kind, dpi=200)
    return content.getvalue()


def _download(label: str, file_name: str, mime: str, content: Callable[[], str | bytes]) -> None:
    st.download_button(label, content, file_name, mime, key=f"download {file_name}", on_click="ignore")
