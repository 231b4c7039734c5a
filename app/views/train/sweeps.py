"""The sweeps panel: runs of the store that differ in a knob, every metric against it on the validation rows, and what the
setting that is best there gives on the test rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
import streamlit as st

import live
import workbench as wb
from drawing.figures import sent
from drawing.handout import handout
from session import messages, reading
from session.address import bound, one_of
from workbench import words
from workbench.catalogue import LOSSES
from workbench.figures import Code, Figure
from workbench.figures.base import counted
from workbench.figures.of_runs.comparisons import declared, in_words, is_share
from workbench.figures.of_runs.learning import ACROSS
from workbench.metrics.base import in_full
from workbench.metrics.sweeps import StoredSweep, chosen_on_val, stored_sweeps
from workbench.store import StoredRun
from workbench.store.shelf import Shelf

PANELS_HIGH = 260  # pixels of a line of panels
CHOSEN_BY = "accuracy"  # at first


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
        metric = ranking(sweep, K)
    swept("sweep", sweep, K, dark)
    on_test(sweep, K, metric)


def title(sweep: StoredSweep) -> str:
    """What was varied, of which runs."""
    about = sweep.runs[0].record
    varied = " and ".join(in_symbols(sweep, name) for name in sweep.varied)
    data = about.data_name or "data of a session"
    of = f"{words.of_loss(about.loss_name)}: {data}, {words.of_model(str(about.model))}"
    return f"{varied} of {of}, {counted(len(sweep.runs), 'run')} ({sweep.runs[0].key[:4]})"


def in_symbols(sweep: StoredSweep, varied: str) -> str:
    """What was varied as a person writes it: `ε`, `learning rate`, `the data's rho`."""
    of, _, name = varied.rpartition(".")
    loss = LOSSES.get(sweep.runs[0].record.loss_name)
    knob = loss.knobs.get(name) if of == "loss" and loss is not None else None
    return f"the data's {words.of_knob(name)}" if of == "data" else words.of_knob(name, knob)


def target_K(run: StoredRun) -> float:
    """Classes in a set on average, from a slider."""
    values = reading.index(run.key[: reading.SHORT], "val").K_values.tolist()
    first = min(values, key=lambda value: abs(value - wb.AverageK().K))
    written = "{:g}".format
    readable = bound("sweep_K", one_of(map(written, values)))
    return st.select_slider("K: classes in a set on average", values, first, format_func=written, **readable)


def ranking(sweep: StoredSweep, K: float) -> str:
    """What the best setting is best by, in the address as `best_by`: a metric of which more, or less, is better."""
    summary = measured(tuple(run.key for run in sweep.runs), sweep.knob, K)
    named = summary["metric"].combine(summary["group"], in_full)[summary["split"] == "val"]
    names = [name for name in dict.fromkeys(named) if getattr(declared(name), "direction", "none") != "none"]
    first = names.index(CHOSEN_BY) if CHOSEN_BY in names else 0
    readable = bound("best_by", one_of(map(in_words, names)))
    return st.selectbox("Best by", names, first, format_func=in_words, **readable)


@messages.friendly
def on_test(sweep: StoredSweep, K: float, metric: str) -> None:
    """What the setting that is best on the validation rows gives on the test rows: only that one is judged there."""
    summary = measured(tuple(run.key for run in sweep.runs), sweep.knob, K)
    best = chosen_on_val(summary, sweep.varied, metric)
    setting = ", ".join(f"{in_symbols(sweep, name)} = {words.of_value(best[name].iloc[0])}" for name in sweep.varied)
    st.markdown(f"**Best on the validation rows by {in_words(metric, within=True)}: {messages.plain(setting)}**")
    test = best[(best["split"] == "test") & best["mean"].notna()]
    rows = counted(sweep.runs[0].tables["test"].n, "test row")
    st.caption(
        f"What this setting gives on the {rows}, which chose nothing: the mean over {counted(int(test['seeds'].max()), 'seed')}"
    )
    with st.container(key="numbers-chosen"):
        for line in test.to_dict("records"):
            name = in_full(line["metric"], line["group"])
            st.metric(in_words(name), f"{line['mean']:.1%}" if is_share(name) else f"{line['mean']:.2f}")


@messages.friendly
def swept(name: str, sweep: StoredSweep, K: float, dark: bool) -> None:
    """Every metric of a sweep against its knob, on the validation rows: a setting is chosen on these."""
    made, parts = prepared(tuple(run.key for run in sweep.runs), sweep.knob, K, dark)
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(parts, key=f"drawing {name}")
        handout(name, None, lambda: made, dark)


@st.cache_data(show_spinner="Judging every run of the sweep…", max_entries=64)
def measured(keys: tuple[str, ...], knob: str, K: float) -> pd.DataFrame:
    """The summary of the sweep that these runs are, with average-K sets."""
    shelf = Shelf()
    sweep = next(each for each in stored_sweeps(shelf.open(key) for key in keys) if each.knob == knob)
    return sweep.summary(wb.AverageK(K))


@st.cache_resource(show_spinner="Drawing the sweep…", max_entries=64)
def prepared(keys: tuple[str, ...], knob: str, K: float, dark: bool) -> tuple[Figure, dict[str, Any]]:
    """The picture of the sweep that these runs are, with average-K sets, and what the browser needs to draw it."""
    made = wb.figures.against_knob(measured(keys, knob, K), knob, split="val")
    made = dataclasses.replace(made, code=code(keys, knob, K, made))
    return made, sent(made, dark, height=80 + PANELS_HIGH * math.ceil(len(made.panels()) / ACROSS))


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
