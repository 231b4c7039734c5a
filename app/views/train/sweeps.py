"""The sweeps panel: a new one, and runs of the store that differ in a knob: every metric against it on the validation rows,
and what the setting that is best there gives on the test rows."""

from __future__ import annotations

import streamlit as st

import views.train.new_run as new_run
import views.train.new_sweep as new_sweep
import workbench as wb
from controls.bar import bar
from session import cached_data, messages, training_requests
from session.address import bound, one_of
from views.train.plan_pictures import pictures_of
from views.train.sweep_picture import measured, swept
from workbench import display_names
from workbench.figures.base import counted
from workbench.figures.runs.comparisons import declared, in_words, is_share, names_of_metrics
from workbench.metric_spec import MetricSpec
from workbench.metrics.sweeps import StoredSweep, chosen_on_val, stored_sweeps
from workbench.store import StoredRun

CHOSEN_BY = "accuracy"  # at first
NEWEST = "the one that was started last"


@st.fragment
@messages.friendly
def body(key: str | None, dark: bool) -> None:
    """All of the panel: the form of a new sweep, and beside it its plan, and what it and those of the store say."""
    start_place = bar() if messages.has_torch() else None  # without it, those of the store can still be looked at
    with st.container(key="planning"):
        plan = None
        if start_place is not None:
            with st.container(key="form"):
                plan = planned(key)
        with st.container(key="planned"):
            if plan is not None and start_place is not None:
                with start_place:
                    new_sweep.start(plan)
            results(plan, dark)


@messages.friendly
def planned(key: str | None) -> new_sweep.Plan | None:
    """The sweep that the form describes; None where something in it is wrong, which the form says."""
    return new_sweep.form(key)


def results(plan: new_sweep.Plan | None, dark: bool) -> None:
    """The plan, how far it is, and what it and the sweeps of the store say."""
    found = {title(sweep): sweep for sweep in stored_sweeps(cached_data.runs())}
    progress = training_requests.long_worker().progress
    st.fragment(new_sweep.watch, run_every=new_run.POLL if progress.working else None)()
    if plan is not None:
        new_sweep.plan_picture(plan, dark)
    if (newest := new_sweep.so_far()) is not None:
        found = {NEWEST: newest} | found
        if st.session_state.get("sweep of") != progress.runs:  # its first run is trained
            st.session_state["sweep of"], st.session_state["sweep"] = progress.runs, NEWEST
    if not found:
        if plan is not None:
            pictures_of(plan.run, dark)
        st.caption("No three runs here differ in one knob alone: a sweep trains some that do.")
        return
    with st.container(key="settings-of-sweep"):
        sweep = found[st.selectbox("Sweep", list(found), **bound("sweep", one_of(found)))]
        K = target_K(sweep.runs[0])
        metric = ranking(sweep, K)
    swept("sweep", sweep, K, dark)
    if sweep is newest and progress.working:
        st.caption("The test rows judge the setting that is best on the validation rows when all runs are there.")
    else:
        on_test(sweep, K, metric)


def title(sweep: StoredSweep) -> str:
    """The varied knobs, and their runs."""
    about = sweep.runs[0].record
    varied = " and ".join(display_names.of_varied(name) for name in sweep.varied)
    data = about.data_name or "data of a session"
    of = f"{display_names.of_loss(about.loss_name)}: {data}, {display_names.of_model(str(about.model))}"
    return f"{varied} of {of}, {counted(len(sweep.runs), 'run')} ({sweep.runs[0].key[:4]})"


def target_K(run: StoredRun) -> float:
    """Classes in a set on average, from a slider."""
    values = cached_data.index(run.key[: cached_data.SHORT], "val").K_values.tolist()
    first = min(values, key=lambda value: abs(value - wb.AverageK().K))
    written = "{:g}".format
    readable = bound("sweep_K", one_of(map(written, values)))
    return st.select_slider("K: classes in a set on average", values, first, format_func=written, **readable)


def ranking(sweep: StoredSweep, K: float) -> str:
    """The metric that ranks settings, in the address as `best_by`: one of which more, or less, is better."""
    summary = measured(sweep, K)
    named = names_of_metrics(summary)[summary["split"] == "val"]
    names = [name for name in dict.fromkeys(named) if getattr(declared(name), "direction", "none") != "none"]
    first = names.index(CHOSEN_BY) if CHOSEN_BY in names else 0
    readable = bound("best_by", one_of(map(in_words, names)))
    return st.selectbox("Best by", names, first, format_func=in_words, **readable)


@messages.friendly
def on_test(sweep: StoredSweep, K: float, metric: str) -> None:
    """Numbers on the test rows of the setting that is best on the validation rows: only that one is judged there."""
    summary = measured(sweep, K)
    best = chosen_on_val(summary, sweep.varied, metric)
    setting = ", ".join(
        f"{display_names.of_varied(name)} = {display_names.of_value(best[name].iloc[0])}" for name in sweep.varied
    )
    st.markdown(f"**Best on the validation rows by {in_words(metric, within=True)}: {messages.plain(setting)}**")
    test = best[(best["split"] == "test") & best["mean"].notna()]
    rows = counted(sweep.runs[0].tables["test"].n, "test row")
    st.caption(
        f"What this setting gives on the {rows}, which chose nothing: the mean over {counted(int(test['seeds'].max()), 'seed')}"
    )
    with st.container(key="numbers-chosen"):
        for line in test.to_dict("records"):
            name = str(MetricSpec.parse(line["metric"], line["group"]))
            st.metric(in_words(name), f"{line['mean']:.1%}" if is_share(name) else f"{line['mean']:.2f}")
