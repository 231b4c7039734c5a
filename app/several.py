"""Several runs on the same rows: which were chosen, what they are called, and the code that opens them."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

import reading


def chosen_runs(label: str, key: str, others: dict[str, str]) -> list[str]:
    """Any of the other runs on the rows of a run, in the address as `with`; all of them at first."""
    if "with" not in st.session_state or st.session_state.get("with of") != key:  # the first visit, or another run
        asked = [each for each in st.query_params.get("with", "").split(",") if each in others]
        none_asked = "with of" not in st.session_state and st.query_params.get("with") == ""
        st.session_state["with"] = asked if asked or none_asked else list(others)
        st.session_state["with of"] = key
    st.session_state["with"] = [each for each in st.session_state["with"] if each in others]
    chosen = st.multiselect(label, list(others), format_func=told_apart(others).__getitem__, key="with")
    st.query_params["with"] = ",".join(chosen)
    return chosen


def titles(keys: Sequence[str]) -> dict[str, str]:
    """Short key → title, told apart by the key where two are equal."""
    return told_apart({key: reading.run(key).title for key in keys})


def told_apart(named: dict[str, str]) -> dict[str, str]:
    """The titles with the key behind those that several runs have: a list of choices cannot hold a text twice."""
    titles = list(named.values())
    return {key: title if titles.count(title) == 1 else f"{title} ({key})" for key, title in named.items()}


def opening(names: dict[str, str]) -> str:
    """The code that opens runs under names of their own (short key → name)."""
    runs = ", ".join(f"{name!r}: Store().open({key!r})" for key, name in names.items())
    return f"import workbench as wb\nfrom workbench.store import Store\n\nruns = {{{runs}}}\n"
