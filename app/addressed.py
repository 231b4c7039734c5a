"""Choices among runs, kept in the address of the page by their short keys: titles are long, and two may be equal."""

from __future__ import annotations

import streamlit as st

from several import told_apart

NONE = ""


def in_address(key: str) -> None:
    """Write the run that a part of a page shows into the address.

    A part that runs alone begins with the address as the browser knew it, which may still be that of the run before; with
    whatever else it writes there, it would bring that run back.
    """
    st.query_params["run"] = key


def one_run(label: str, titles: dict[str, str], name: str) -> str | None:
    """One of the runs, or none, in the address as `name`."""
    titles = {NONE: "no other run", **told_apart(titles)}
    if st.session_state.get(name) not in titles:  # the first visit, or another run was opened
        asked = st.query_params.get(name)
        st.session_state[name] = asked if asked in titles else NONE
    chosen = st.selectbox(label, list(titles), format_func=titles.__getitem__, key=name, width=480)
    if chosen != NONE:
        st.query_params[name] = chosen
    elif name in st.query_params:
        del st.query_params[name]
    return chosen or None
