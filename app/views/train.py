"""Train: move α, ε or K and watch the head learn again; start a run of one's own; see what a sweep says."""

from __future__ import annotations

import streamlit as st

import messages
import new_runs
import retraining
import sweeping
from addressed import bound, one_of

LIVE, NEW, SWEEPS = "Live", "A new run", "Sweeps"
PARTS = {
    LIVE: "The backbone of the chosen run stays as it is; only its head learns again, with the loss and the knobs below. "
    "That takes a second or two, and every picture follows.",
    NEW: "Train a network, or only a head on the features of the chosen run. It goes on when this page is closed, and the "
    "run is kept on this machine.",
    SWEEPS: "Runs that differ in one knob, and perhaps in a second, show what it does. Tune on the validation rows; the test "
    "rows are for the report.",
}


def page() -> None:
    """The view."""
    st.title("Train", anchor=False)
    part = st.segmented_control(
        "What to train", list(PARTS), default=LIVE, required=True, **bound("train", one_of(PARTS))
    )
    st.markdown(PARTS[part])
    dark = st.context.theme.type == "dark"
    if part == NEW:
        new_runs.body(st.session_state["run"], dark)
    elif part == SWEEPS:
        sweeping.body(dark)
    elif st.session_state["run"] is None:
        messages.no_runs()
    else:
        retraining.body(st.session_state["run"], dark)
