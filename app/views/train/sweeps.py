"""The sweeps panel: runs of the store that differ in a knob, every metric against it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import streamlit as st

import live
import workbench as wb
from drawing.figures import untitled
from drawing.handout import handout
from session import messages, reading
from session.address import bound, one_of
from workbench.figures import Code, Figure
from workbench.figures.base import counted
from workbench.figures.of_runs.learning import ACROSS
from workbench.metrics.sweeps import StoredSweep, stored_sweeps
from workbench.store import StoredRun
from workbench.store.shelf import Shelf

PANELS_HIGH = 260  # pixels of a line of panels
SPLITS = ("test", "val")


@st.fragment
@messages.friendly
def body(dark: bool) -> None:
    """All of the panel."""
    sweeps = {title(sweep): sweep for sweep in stored_sweeps(reading.runs())}
    if not sweeps:
        st.info(
            "No three runs here differ in one knob alone. Keep some live heads, or sweep in a terminal:",
            icon=":material/ssid_chart:",
        )
        st.code(
            "workbench sweep --dataset letters --model mlp --loss NoisedTopK --over loss.epsilon 0.1 0.5 1 --over seed 0 1 2",
            language=None,
        )
        return
    with st.container(key="settings"):
        sweep = sweeps[st.selectbox("Sweep", list(sweeps), **bound("sweep", one_of(sweeps)))]
        K = target_K(sweep.runs[0])
        split = st.segmented_control("Rows", SPLITS, default="test", required=True, **bound("rows", one_of(SPLITS)))
    swept("sweep", sweep, K, split, dark)


def title(sweep: StoredSweep) -> str:
    """What was varied, of which runs."""
    about = sweep.runs[0].record
    knobs = " and ".join(
        name.removeprefix("loss.").replace("data.", "the data's ").replace("_", " ") for name in sweep.varied
    )
    data = about.data_name or "data of a session"
    return f"{knobs}, {about.loss_name}: {data}, {about.model}, {counted(len(sweep.runs), 'run')} ({sweep.runs[0].key[:4]})"


def target_K(run: StoredRun) -> float:
    """Classes in a set on average, from a slider."""
    values = reading.index(run.key[: reading.SHORT], "val").K_values.tolist()
    first = min(values, key=lambda value: abs(value - wb.AverageK().K))
    written = "{:g}".format
    readable = bound("sweep_K", one_of(map(written, values)))
    return st.select_slider("K: classes in a set on average", values, first, format_func=written, **readable)


@messages.friendly
def swept(name: str, sweep: StoredSweep, K: float, split: str, dark: bool) -> None:
    """Every metric of a sweep against its knob."""
    made, parts = prepared(tuple(run.key for run in sweep.runs), sweep.knob, K, split, dark)
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(parts, key=f"drawing {name}")
        handout(name, None, lambda: made, dark)


@st.cache_resource(show_spinner="Judging every run of the sweep…", max_entries=64)
def prepared(keys: tuple[str, ...], knob: str, K: float, split: str, dark: bool) -> tuple[Figure, dict[str, Any]]:
    """The picture of the sweep that these runs are, with average-K sets, and what the browser needs to draw it."""
    shelf = Shelf()
    sweep = next(each for each in stored_sweeps(shelf.open(key) for key in keys) if each.knob == knob)
    made = wb.figures.against_knob(sweep.summary(wb.AverageK(K)), knob, split=split)
    made = dataclasses.replace(made, code=code(keys, knob, K, made))
    drawn = untitled(made.plot(dark)).update_layout(margin={"t": 72})
    height = 80 + PANELS_HIGH * math.ceil(len(made.panels()) / ACROSS)
    return made, live.prepared(drawn, title=made.title, subtitle=made.subtitle, text=made.text, height=height)


def code(keys: Sequence[str], knob: str, K: float, figure: Figure) -> Code:
    """The code of a figure of a sweep, from opening its runs on; live heads lie on the shelf."""
    lines = [
        f"keys = {[key[: reading.SHORT] for key in keys]}",
        "sweeps = stored_sweeps(Shelf().open(key) for key in keys)",
        f"sweep = next(each for each in sweeps if each.knob == {knob!r})",
        f"summary = sweep.summary(wb.AverageK({K!r}))",
    ]
    imports = ["from workbench.store.shelf import Shelf", "from workbench.metrics.sweeps import stored_sweeps"]
    return figure.code.after(Code(setup=lines, imports=imports))
