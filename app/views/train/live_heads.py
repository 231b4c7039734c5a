"""The live panel: move a knob of a loss, the head of the chosen run learns again, and the pictures follow.

What is on the screen is the last head that finished, with its own knobs written above it; it is dimmed while a newer one
learns. Polling happens only then.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import streamlit as st

import live
import workbench as wb
from controls import knobs
from drawing.figures import HEIGHT, sent
from drawing.handout import handout
from session import messages, reading, training_requests
from session.address import bound, one_of
from session.navigation import open_elsewhere
from views.train.sweep_picture import swept
from workbench import words
from workbench.catalogue import LOSSES, DeclaredLoss
from workbench.figures import Code, Figure
from workbench.figures.base import counted, points
from workbench.figures.of_runs.comparisons import in_words, is_share, names_of_metrics
from workbench.knobs import Knob
from workbench.metrics.sweeps import stored_sweeps
from workbench.store import StoredRun
from workbench.store.shelf import Shelf
from workbench.workers.heads import FAILED, FINISHED, Progress, head_of

SPLITS = {"val": "validation row", "test": "test row"}
POLL = 0.25  # seconds between two looks at a head that learns
POLL_AHEAD = 1.0  # and at those that will be wanted next
FIRST = "AverageKTwoHead"
STEPS = 21  # values of a slider: all of them are trained when one is asked for
FIXED = ("n_samples",)  # knobs that trade time for precision and are left at their default
METRICS = ("accuracy", "macro_accuracy", "shot_accuracy", "mean_size")
TALL = 460
# Name of a picture → what draws it, of a run and its average-K sets of the validation rows: a knob is chosen on these.
MAKERS: dict[str, Callable[[StoredRun, Any], Figure]] = {
    "live-sizes": lambda run, sets: wb.figures.set_sizes(sets),
    "live-shots": lambda run, sets: wb.figures.accuracy_against_count(sets),
    "live-curve": lambda run, sets: wb.figures.accuracy_against_size(wb.SetIndex(sets.table)),
    "live-learning": lambda run, sets: wb.figures.learning_curves(run.history, K=run.record.K),
}
DIMMED = "<style>.st-key-result { opacity: 0.45; }</style>"


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All of the panel. `key` is the run whose backbone is used."""
    base = reading.run(key)
    try:
        head_of(base, {})
    except ValueError as error:
        st.info(messages.plain(messages.without_places(str(error))), icon=":material/model_training:")
        return
    names = trainable(base.tables["val"])
    titles = {name: LOSSES[name].title for name in names}
    with st.container(key="settings"):
        name = st.selectbox(
            "Loss", list(titles), names.index(FIRST) if FIRST in names else 0, format_func=titles.__getitem__,
            **bound("live_loss", one_of(titles.values())),
        )  # fmt: skip
        n_classes = base.tables["val"].n_classes
        loss = LOSSES[name].spec(**knobs_of(name, n_classes, steps=STEPS))
    described = head_of(base, loss)
    ask_once(described, along(base, loss, n_classes))
    progress = progress_of(described)
    if progress.state == FINISHED:
        st.session_state["live shown"] = key, progress.key
    of, shown = st.session_state.get("live shown", (None, None))
    run = Shelf().open(shown) if of == key and Shelf().has(shown) else base
    every = POLL if progress.working else POLL_AHEAD if progress.working_ahead else None
    st.fragment(status, run_every=every)(described, progress)
    with st.container(key="result"):
        result(run, base, dark)


def trainable(table: wb.LogitTable) -> list[str]:
    """The losses that read the labels of this table and have a knob to move."""
    return [
        name
        for name, loss in LOSSES.items()
        if loss.trains and (not table.many_labels or loss.labels == "many" or loss.also_many_labels) and moved(loss)
    ]


def moved(loss: DeclaredLoss) -> dict[str, Knob]:
    """The knobs of a loss that a person moves."""
    return {name: knob for name, knob in loss.knobs.items() if name not in FIXED}


def knobs_of(
    name: str,
    n_classes: float = math.inf,
    prefix: str = "live",
    start: Mapping[str, Any] = MappingProxyType({}),
    steps: int = 101,
) -> dict[str, Any]:
    """Every knob of a loss as a widget that stands at `start` at first, or at its default; K stays below the number of
    classes. A slider has `steps` values.
    """
    chosen = {}
    for knob_name, knob in within(moved(LOSSES[name]), n_classes).items():
        if knob.low is not None and knob.low == knob.high:
            chosen[knob_name] = knob.low
            continue
        value = knob.snapped(knob.default) if knob.numeric else knob.default
        value = knob.checked(knob_name, start.get(knob_name, value))
        chosen[knob_name] = knobs.widget(knob_name, knob, value, key=f"{prefix}_{name}_{knob_name}", steps=steps)
    return chosen


def within(declared: Mapping[str, Knob], n_classes: float) -> dict[str, Knob]:
    """The knobs with a K that stays below the number of classes; of two classes a set of one is all there is to ask for."""
    K = declared.get("K")
    if K is None or K.low is None or K.high is None or K.high < n_classes:
        return dict(declared)
    return {**declared, "K": dataclasses.replace(K, high=max(K.low, n_classes - 1))}


def along(base: StoredRun, loss: Mapping[str, Any], n_classes: int) -> list[dict[str, Any]]:
    """The heads of every value of the slider that was moved last, or of the last slider if none was."""
    name, chosen = loss["loss"], loss["knobs"]
    sliders = {each: knob for each, knob in within(moved(LOSSES[name]), n_classes).items() if knob.numeric}
    if not sliders:
        return []
    before = st.session_state.get("live knobs", {}).get(name, chosen)
    changed = [each for each in sliders if before.get(each) != chosen[each]]
    axes = st.session_state.setdefault("live axes", {})
    if changed or name not in axes:
        axes[name] = changed[0] if changed else list(sliders)[-1]
    st.session_state.setdefault("live knobs", {})[name] = chosen
    axis = axes[name]
    values = sliders[axis].values(STEPS).tolist()
    return [head_of(base, LOSSES[name].spec(**chosen | {axis: value})) for value in values]


def ask_once(described: dict[str, Any], ahead: list[dict[str, Any]]) -> None:
    """Ask for the head that the knobs describe, when they describe another one than before, and for those beside it."""
    if st.session_state.get("live asked") != described:
        st.session_state["live asked"] = described
        training_requests.live_worker().ask(described, ahead=ahead)


def progress_of(described: dict[str, Any]) -> Progress:
    """How far a head is; idle, if another page has asked for another one since."""
    progress = training_requests.live_worker().progress
    return progress if progress.described == described else Progress(described)


@messages.friendly
def status(described: dict[str, Any], drawn: Progress) -> None:
    """One line: what is being trained and how long it takes.

    When what was being trained as the page was `drawn` no longer is, the page is drawn anew: whoever moves the slider next
    does not wait until all its values are judged.
    """
    progress = progress_of(described)
    if (drawn.working and not progress.working) or (drawn.working_ahead and not progress.working_ahead):
        st.rerun()
    asked_for = messages.plain(words.of_spec(described["loss"]))
    if progress.working:
        st.html(DIMMED)
        st.progress(progress.share, f"Training {asked_for}: {stage(progress)}")
    elif progress.state == FAILED:
        st.error(messages.plain(messages.without_places(progress.message)), icon=":material/error:")
    elif progress.state == FINISHED:
        seconds = sum(row["seconds"] for row in progress.history)
        trained = f"Trained {asked_for}: {counted(progress.epochs, 'epoch')} in {seconds:.1f} s"
        if progress.working_ahead:
            trained += f". The other values of this slider are trained together: {progress.ahead:.0%}"
        st.progress(1.0, trained)
    else:
        st.progress(0.0, f"Another page asked for another head before {asked_for} was trained.")
        if st.button("Train it now", icon=":material/replay:"):
            del st.session_state["live asked"]
            st.rerun()


def stage(progress: Progress) -> str:
    """What a head that learns waits for."""
    if progress.epochs_done:
        return f"epoch {progress.epochs_done} of {progress.epochs}{time_left(progress)}"
    if progress.prepared:
        return f"the features of the data are computed once, {progress.prepared:.0%}"
    return "preparing; the first time, the process is started and the data are drawn"


def time_left(progress: Progress) -> str:
    """`, about 3 s left`, once that is known."""
    left = progress.seconds_left
    if left is None:
        return ""
    return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


def result(run: StoredRun, base: StoredRun, dark: bool) -> None:
    """What the last finished head gives on the validation rows, beside the run whose backbone it has.

    Whoever moves a knob until a number is good has chosen by that number; so the test rows judge only the head that is kept.
    """
    K = run.record.K
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**Shown: {messages.plain(run.name)}**", width="content")
        keep(run, base)
    numbers(run, base, K, "val")
    if is_kept(run, base):
        numbers(run, base, K, "test")
    else:
        st.caption("The pictures, too, are of the validation rows. The test rows judge the head you keep.")
    val = run.tables["val"]
    with st.container(key="figures"):
        picture("live-sizes", run.key, K, dark)
        if val.class_counts is not None and not val.many_labels:
            picture("live-shots", run.key, K, dark)
        picture("live-curve", run.key, K, dark)
    tried(run, K, dark)
    if len(run.history):
        picture("live-learning", run.key, K, dark)


def tried(run: StoredRun, K: float, dark: bool) -> None:
    """What the values that were tried so far say about a knob, as soon as there are three."""
    about = run.record
    if about.features is None:
        return
    shared = {"features": about.features, "model": about.model, "dataset_key": about.dataset_key}
    others = [each for each in Shelf().runs() if each.record.says(shared)]
    around = [sweep for sweep in stored_sweeps(others) if run in sweep.runs]
    if around:
        swept("live-tried", around[0], K, dark)


@st.cache_data(show_spinner="Judging the sets…", max_entries=64)
def judged(key: str, K: float, split: str) -> dict[str, float]:
    """Metric, with its group → value, of average-K sets of the rows of a split."""
    tables = Shelf().open(key).tables
    metrics = [metric for metric in wb.metrics.METRICS if metric.name in METRICS]
    found = wb.report(tables[split], rules=[wb.AverageK(K)], metrics=metrics, val=tables["val"])
    values = dict(zip(names_of_metrics(found), found["value"], strict=True))
    return {name: value for name, value in values.items() if not math.isnan(value)}


@messages.friendly
def numbers(run: StoredRun, base: StoredRun, K: float, split: str) -> None:
    """The headline numbers, and how far they are from those of the run whose backbone it is."""
    here, there = (judged(each.key, K, split) for each in (run, base))
    st.caption(
        f"Sets of {K:g} {'class' if K == 1 else 'classes'} on average on the {counted(run.tables[split].n, SPLITS[split])}; "
        f"below each number, its difference from {messages.plain(base.name)}"
    )
    with st.container(key=f"numbers-{split}"):
        for name, value in here.items():
            share, apart = is_share(name), value - there[name]
            difference = points(apart) if share else f"{round(apart, 2) + 0.0:+.2f}"  # which is never −0
            shot = name.removeprefix("shot_accuracy ")
            st.metric(
                in_words(name) if shot == name else f"{in_words(shot)}, by class",
                f"{value:.1%}" if share else f"{value:.2f}",
                difference if run.key != base.key else None,
                delta_color="off",
                delta_arrow="off",
            )


def is_kept(run: StoredRun, base: StoredRun) -> bool:
    """Whether the head was moved from the shelf to the store."""
    return run.key != base.key and Shelf().store.has(run.key)


def keep(run: StoredRun, base: StoredRun) -> None:
    """A button that moves the run from the shelf to the store."""
    if run.key == base.key:
        return
    if is_kept(run, base):
        st.badge("Kept", icon=":material/check:", color="green")
        open_elsewhere(run.key)
    elif st.button("Keep this run", icon=":material/bookmark:"):
        Shelf().keep(run.key)
        st.rerun()


@messages.friendly
def picture(name: str, key: str, K: float, dark: bool) -> None:
    """A picture of a run with the code that trains the run and draws it; if it fails, the others stay."""
    made, parts = prepared(name, key, K, dark)
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(parts, key=f"drawing {name}")
        handout(name, None, lambda: made, dark)


@st.cache_resource(show_spinner=False, max_entries=256)
def prepared(name: str, key: str, K: float, dark: bool) -> tuple[Figure, dict[str, Any]]:
    """A picture of a run, of the shelf or of the store, and what the browser needs to draw it."""
    run = Shelf().open(key)
    val = run.tables["val"]
    made = MAKERS[name](run, wb.AverageK(K).fit(val).sets(val))
    made = dataclasses.replace(made, code=with_training(run.record.to_json(), made))
    return made, sent(made, dark, height=TALL if name == "live-learning" else HEIGHT)


def with_training(described: Mapping[str, Any], figure: Figure) -> Code:
    """The code of a figure of the validation rows, from the training of its run on."""
    given = {
        "table": "table = val",
        "test": "test = val  # a knob is chosen on these rows",
        "history": "history = trained.history",
    }
    lines = [line for name, line in given.items() if name in figure.code.needs]
    return figure.code.after(Code(setup=[*lines, ""]).after(training_requests.code(described)))
