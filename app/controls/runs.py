"""Several runs on the same rows: which were chosen, what they are called, and the code that opens them.

In the address they stand by their short keys: titles are long, and two may be equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from session import reading
from session.address import came_back, drop
from workbench.figures import Code

NONE = ""


def one_run(label: str, titles: dict[str, str], name: str) -> str | None:
    """One of the runs, or none, in the address as `name`."""
    titles = {NONE: "no other run", **told_apart(titles)}
    if came_back() or st.session_state.get(name) not in titles:  # or the first visit, or another run was opened
        asked = st.query_params.get(name, NONE)
        if asked not in titles and name not in st.session_state:
            drop(name)
        st.session_state[name] = asked if asked in titles else NONE
    chosen = st.selectbox(label, list(titles), format_func=titles.__getitem__, key=name, width=480)
    if chosen != NONE:
        st.query_params[name] = chosen
    elif name in st.query_params:
        del st.query_params[name]
    return chosen or None


def chosen_runs(label: str, key: str, others: dict[str, str]) -> list[str]:
    """Any of the other runs on the rows of a run, in the address as `with`; all of them at first."""
    first = came_back() or "with of" not in st.session_state
    if first or "with" not in st.session_state or st.session_state["with of"] != key:  # or another run
        named = st.query_params.get("with", "").split(",")
        asked = [each for each in named if each in others]
        if first and asked != named != [""]:
            drop("with")
        none_asked = first and st.query_params.get("with") == ""
        st.session_state["with"] = asked if asked or none_asked else list(others)
        st.session_state["with of"] = key
    st.session_state["with"] = [each for each in st.session_state["with"] if each in others]
    chosen = st.multiselect(label, list(others), format_func=told_apart(others).__getitem__, key="with")
    st.query_params["with"] = ",".join(chosen)
    return chosen


def titles(keys: Sequence[str]) -> dict[str, str]:
    """Short key → title, told apart by the key where two are equal."""
    return told_apart({key: reading.run(key).title for key in keys})


def from_to(key: str, other: str) -> str:
    """`From A to B`: the direction of every comparison, from the run of the sidebar to the one it is compared with."""
    named = titles((key, other))
    return f"From {named[key]} to {named[other]}"


def told_apart(named: dict[str, str]) -> dict[str, str]:
    """The titles with the key behind those that several runs have: a list of choices cannot hold a text twice."""
    titles = list(named.values())
    return {key: title if titles.count(title) == 1 else f"{title} ({key})" for key, title in named.items()}


def code_opening(names: dict[str, str], *lines: str) -> Code:
    """The code that opens runs under names of their own (short key → name), and further lines."""
    runs = ", ".join(f"{name!r}: Store().open({key!r})" for key, name in names.items())
    return Code(setup=[f"runs = {{{runs}}}", *lines], imports=["from workbench.store import Store"])
