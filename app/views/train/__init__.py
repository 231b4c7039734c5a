"""Train: move α, ε or K and watch the head learn again; start a new run; see what a sweep says."""

from __future__ import annotations

import streamlit as st

from controls.bar import introduce
from session import messages, training_requests
from session.address import bound, one_of
from views.train import live_heads, new_run, sweeps

LIVE, NEW, SWEEPS = "Live", "A new run", "Sweeps"
PARTS = {
    LIVE: "Only the last layer is retrained (1–2 s), with the loss and the knobs in the bar; the network below is fixed. Every "
    "picture follows.",
    NEW: "Train a network, or only a head on the features of the chosen run. It goes on when this page is closed, and the "
    "run is kept on this machine.",
    SWEEPS: "Runs that differ in one knob, and perhaps in a second, show what it does: train some, or look at those that are "
    "here. Tune on the validation rows; the test rows are for the report.",
}


def page() -> None:
    """The view."""
    introduce("Train", "\n\n".join(f"*{name}*: {text}" for name, text in PARTS.items()))
    with st.container(key="parts"):
        part = st.segmented_control(
            "What to train", list(PARTS), default=LIVE, required=True, label_visibility="collapsed",
            **bound("train", one_of(PARTS)),
        )  # fmt: skip
    dark = st.context.theme.type == "dark"
    if part != SWEEPS and messages.torch_is_missing():
        return
    if part == NEW:
        new_run.body(st.session_state["run"], dark)
    elif part == SWEEPS:
        sweeps.body(st.session_state["run"], dark)
    elif st.session_state["run"] is None:
        messages.no_runs()
    else:
        training_requests.live_queue().start()  # it takes seconds to get warm, and so does the page
        live_heads.body(st.session_state["run"], dark)
