"""The pad to draw symbols on: the network answers in the browser, and its drawings can be opened in every view."""

from __future__ import annotations

import hashlib
from typing import Any

import streamlit as st

from session import cached_data
from session.messages import friendly
from session.navigation import show_run
from session.serving import pad_addresses
from workbench.drawings import pad


@st.fragment
@friendly
def drawing_pad(key: str) -> None:
    """Draw the pad. Nothing is sent to Python until the drawings are opened in the other views."""
    weights, symbols = pad_addresses()
    answer = _element()(data={"weights": weights, "symbols": symbols, "opens": True}, key=key, on_opened_change=_listen)
    if answer.get("opened"):
        _open(answer["opened"])


def _open(drawings: str) -> None:
    """Import the drawings, a CSV table, like an uploaded file, and show the run."""
    name = hashlib.sha256(drawings.encode()).hexdigest()
    upload = cached_data.bring(name, "Drawings of this room.csv", drawings.encode())
    if isinstance(upload, cached_data.UploadedRun):
        cached_data.take_up(upload.key)
        show_run(upload.key)


def _listen() -> None:
    """Streamlit keeps what a component sends only where a callback is given."""


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    return st.components.v2.component("drawing_pad", js=pad.script(), css=pad.style(), isolate_styles=False)
