"""Compare: any runs on the same rows, side by side; and the papers' tables, ours beside theirs."""

from __future__ import annotations

import streamlit as st

from session import messages
from session.address import bound, one_of
from views.compare import papers, runs

RUNS, PAPERS = "Runs", "Papers' tables"
PARTS = {
    RUNS: "Runs that were measured on the same test rows can be compared row by row, so a difference is known far better "
    "than the two values. The run of the sidebar is the first; every difference is from it.",
    PAPERS: "What the papers print, at once; and beside it what was reproduced on this machine, at their scale or at a "
    "reduced one.",
}


def page() -> None:
    """The view."""
    st.title("Compare", anchor=False)
    part = st.segmented_control(
        "What to compare", list(PARTS), default=RUNS, required=True, **bound("compare", one_of(PARTS))
    )
    dark = st.context.theme.type == "dark"
    if part == RUNS and st.session_state["run"] is None:
        messages.no_runs()
        return
    st.markdown(PARTS[part])
    if part == RUNS:
        runs.body(st.session_state["run"], dark)
    else:
        papers.body(dark)
