"""Compare: any runs on the same rows, side by side; and the papers' tables, ours beside theirs."""

from __future__ import annotations

import streamlit as st

from controls.bar import WORDS_OF_SETS, introduce
from session import messages
from session.address import bound, one_of
from views.compare import papers, runs

RUNS, PAPERS = "Runs", "Papers' tables"
PARTS = (RUNS, PAPERS)
ABOUT = (
    "*Runs* that were measured on the same test rows are compared row by row, so a difference is known far better than the two "
    "values; every difference is from the run in the bar. *Papers' tables*: the printed numbers, and what was reproduced on "
    "this machine beside them."
)


def page() -> None:
    """The view."""
    introduce("Compare", ABOUT, *WORDS_OF_SETS, "expected calibration error")
    with st.container(key="parts"):
        part = st.segmented_control(
            "What to compare", PARTS, default=RUNS, required=True, label_visibility="collapsed",
            **bound("compare", one_of(PARTS)),
        )  # fmt: skip
    dark = st.context.theme.type == "dark"
    if part == PAPERS:
        papers.body(dark)
    elif st.session_state["run"] is None:
        messages.no_runs()
    else:
        runs.body(st.session_state["run"], dark)
