"""Several runs on the same rows: which were chosen, what they are called, and the code that opens them.

In the address they stand by their short keys: titles are long, and two may be equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from session import cached_data
from session.address import came_back, drop
from session.sliced_runs import whole
from workbench.figures import Code
from workbench.figures.run_styles import Look
from workbench.figures.run_styles import looks as looks_of
from workbench.files.checksums import SHORT

NONE = ""
AT_FIRST = 6  # runs that are compared by default


def one_run(label: str, titles: dict[str, str], name: str) -> str | None:
    """One of the runs, or none, in the address as `name`."""
    titles = {NONE: "none", **titles}
    if came_back() or st.session_state.get(name) not in titles:  # or the first visit, or another run was opened
        requested = st.query_params.get(name, NONE)
        if requested not in titles and name not in st.session_state:
            drop(name)
        st.session_state[name] = requested if requested in titles else NONE
    chosen = st.selectbox(label, list(titles), format_func=titles.__getitem__, key=name, width=400)
    if chosen != NONE:
        st.query_params[name] = chosen
    elif name in st.query_params:
        del st.query_params[name]
    return chosen if chosen != NONE and _opened(chosen) else None


def _opened(key: str) -> bool:
    """Whether a chosen run can be read completely; if not, show an error."""
    opens = cached_data.opens(key)
    if not opens:
        st.warning(f"Run {key} is left out: it is damaged or was changed.", icon=":material/report:")
    return opens


def chosen_runs(label: str, key: str, others: dict[str, str]) -> list[str]:
    """Any of the other runs on the rows of a run, in the address as `with`; at first all of them, or the first few.

    One that turns out to be damaged when it is opened is named and left out.
    """
    first = came_back() or "with of" not in st.session_state
    if first or "with" not in st.session_state or st.session_state["with of"] != key:  # or another run
        named = st.query_params.get("with", "").split(",")
        requested = [each for each in named if each in others]
        if first and requested != named != [""]:
            drop("with")
        none_asked = first and st.query_params.get("with") == ""
        st.session_state["with"] = requested if requested or none_asked else list(others)[:AT_FIRST]
        st.session_state["with of"] = key
    st.session_state["with"] = [each for each in st.session_state["with"] if each in others]
    chosen = st.multiselect(label, list(others), format_func=others.__getitem__, key="with", width=560)
    st.query_params["with"] = ",".join(chosen)
    return [each for each in chosen if _opened(each)]


def titles(keys: Sequence[str]) -> dict[str, str]:
    """Short key → name, of runs on the same rows."""
    named = cached_data.on_the_same_rows(keys[0])
    return {key: named[whole(key)] for key in keys}


def looks(key: str) -> dict[str, Look]:
    """Name → colour and mark of the runs on the same rows."""
    names = cached_data.on_the_same_rows(key)
    return {names[short]: look for short, look in looks_by_key(key).items()}


def looks_by_key(key: str) -> dict[str, Look]:
    """Short key → colour and mark of the runs on the same rows: the oldest keeps its own, whatever comes later."""
    names = cached_data.on_the_same_rows(key)
    oldest = sorted((run for run in cached_data.runs() if run.short in names), key=lambda run: (run.finished, run.key))
    return {of[:SHORT]: look for of, look in looks_of(run.key for run in oldest).items()}


def from_to(key: str, other: str) -> str:
    """`From A to B`: the direction of every comparison, from the run of the sidebar to the one it is compared with."""
    named = titles((key, other))
    return f"From {named[key]} to {named[other]}"


def code_opening(names: dict[str, str], *lines: str) -> Code:
    """The code that opens runs under names of their own (short key → name), and further lines."""
    runs = ", ".join(f"{name!r}: Store().open({key!r})" for key, name in names.items())
    return Code(setup=[f"runs = {{{runs}}}", *lines], imports=["from workbench.store import Store"])
