"""Train: move α, ε or K and watch the head learn again; start a run of one's own; see what a sweep says."""

from __future__ import annotations

from typing import Any, NoReturn

import streamlit as st

from session import messages, training_requests
from session.address import bound, one_of
from session.navigation import go_to
from views.train import live_heads, new_run, sweeps
from workbench.catalogue import LOSSES
from workbench.knobs import shown

LIVE, NEW, SWEEPS = "Live", "A new run", "Sweeps"
PARTS = {
    LIVE: "The backbone of the chosen run stays as it is; only its head learns again, with the loss and the knobs below. "
    "That takes a second or two, and every picture follows.",
    NEW: "Train a network, or only a head on the features of the chosen run. It goes on when this page is closed, and the "
    "run is kept on this machine.",
    SWEEPS: "Runs that differ in one knob, and perhaps in a second, show what it does: train some, or look at those that are "
    "here. Tune on the validation rows; the test rows are for the report.",
}


def open_live_training(key: str, loss: str, **knobs: Any) -> NoReturn:
    """Go to the live panel, where a new head on the backbone of a run learns with this loss."""
    moved = {f"live_{loss}_{knob}": value for knob, value in LOSSES[loss].spec(**knobs)["knobs"].items()}
    written = {knob: shown(value) for knob, value in moved.items()}
    go_to("train", {"run": key, **written}, asked={"run": key, "train": LIVE, "live_loss": loss, **moved})


def page() -> None:
    """The view."""
    st.title("Train", anchor=False)
    part = st.segmented_control(
        "What to train", list(PARTS), default=LIVE, required=True, **bound("train", one_of(PARTS))
    )
    st.markdown(PARTS[part])
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
        training_requests.live_worker().start()  # it takes seconds to get warm, and so does the page
        live_heads.body(st.session_state["run"], dark)
