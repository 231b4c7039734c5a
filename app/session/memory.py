"""What stays in memory for as long as the server runs."""

from __future__ import annotations

import gc

import streamlit as st


@st.cache_resource(show_spinner=False)
def loaded(what: str) -> None:
    """Says, once for each `what`, that everything loaded so far stays.

    Streamlit collects garbage after every run of a page, and the collector looks at all that was ever loaded: with torch
    that takes longer than drawing a landscape does. What is frozen it leaves alone.
    """
    gc.collect()
    gc.freeze()
