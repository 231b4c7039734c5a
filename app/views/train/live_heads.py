"""The live panel: move a knob of a loss, the head of the chosen run is trained again, and the pictures follow.

The page shows the last head that finished, with its own knobs written above it; it is dimmed while a newer one is trained.
Polling happens only then.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import streamlit as st

import live
import workbench as wb
from controls import knobs
from controls.bar import bar, tools
from controls.headline import SHOTS
from drawing.figures import HEIGHT, browser_content, untitled
from drawing.handout import handout
from session import cached_data, messages, training_requests
from session.address import bound, one_of
from session.films import if_ready
from session.navigation import go_to, open_elsewhere
from session.serving import AHEAD
from views.train.sweep_picture import swept
from workbench import display_names
from workbench.figures import Code, Figure
from workbench.figures.base import counted, points
from workbench.figures.runs.comparisons import in_words, is_share, names_of_metrics
from workbench.knobs import Knob, format_value
from workbench.losses import CrossEntropy, Loss, by_name, class_named
from workbench.metric_spec import MetricSpec
from workbench.metrics.sweeps import stored_sweeps
from workbench.store import StoredRun
from workbench.store.lru_store import LRUStore
from workbench.workers.client import FAILED, FINISHED, QUEUED, Progress, head_of

SPLITS = {"val": "validation row", "test": "test row"}
POLL = 0.25  # seconds between two looks at a head that learns
POLL_AHEAD = 1.0  # and at those that will be wanted next
FIRST = "AverageKTwoHead"
WHY = "Why small ε stalls"  # a part of Landscapes
STEPS = 21  # values of a slider: all of them are trained when one is requested
FIXED = ("n_samples",)  # knobs that trade time for precision and are left at their default
METRICS = ("accuracy", "macro_accuracy", "shot_accuracy", "mean_size")
NAMES = {"accuracy": "Correct", "macro_accuracy": "Mean over classes", "mean_size": "Mean size"}  # as in every bar
TALL = 460
# Name of a picture → what draws it, of a run and its average-K sets of the validation rows: a knob is chosen on these.
MAKERS: dict[str, Callable[[StoredRun, Any], Figure]] = {
    "live-sizes": lambda run, sets: wb.figures.set_sizes(sets),
    "live-shots": lambda run, sets: wb.figures.accuracy_against_count(sets),
    "live-curve": lambda run, sets: wb.figures.accuracy_against_size(wb.SetIndex(sets.table)),
    "live-learning": lambda run, sets: wb.figures.learning_curves(run.history, K=run.record.K),
}
FOLLOW = ("live-sizes", "live-shots", "live-curve")  # pictures that follow a slider while it is dragged
DIMMED = "<style>.st-key-result { opacity: 0.45; }</style>"


@dataclass(frozen=True)
class Axis:
    """A slider whose every value is trained: its widget, the text of each value, and the key of each head."""

    widget: str
    texts: tuple[str, ...]
    keys: tuple[str, ...]


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All of the panel. `key` is the run whose backbone is used."""
    base = cached_data.run(key)
    try:
        head = head_of(base, CrossEntropy())
    except ValueError as error:
        st.info(messages.plain(messages.without_places(str(error))), icon=":material/model_training:")
        return
    names = trainable(base.tables["val"])
    titles = {name: class_named(name).title for name in names}
    with bar():
        name = st.selectbox(
            "Loss", list(titles), names.index(FIRST) if FIRST in names else 0, format_func=titles.__getitem__,
            **bound("live_loss", one_of(titles.values())),
        )  # fmt: skip
        n_classes = base.tables["val"].n_classes
        head = dataclasses.replace(head, loss=class_named(name)(**knobs_of(name, n_classes, steps=STEPS)))
    axis, heads = along(head, n_classes)
    progress = request_head(head, list(heads.values()))
    if progress.state == FINISHED:
        st.session_state["live shown"] = key, progress.key
    of, last = st.session_state.get("live shown", (None, None))
    run = LRUStore().open(last) if of == key and LRUStore().has(last) else base
    every = POLL if progress.working else POLL_AHEAD if progress.working_ahead else None
    with tools():
        with st.container(key="status"):
            st.fragment(status, run_every=every)(head, list(heads.values()), progress)
            st.caption(f"Shown: {messages.plain(run.name)}")
        numbers(run, base, run.record.K, "val")
        keep(run, base)
    settled = progress.state == FINISHED and not progress.working_ahead
    with st.container(key="result"):
        result(run, base, dark, trained_axis(f"live_{name}_{axis}", heads) if settled else None)


def trainable(table: wb.LogitTable) -> list[str]:
    """The losses that read the labels of this table and have a knob to move."""
    return [
        name
        for name, loss in by_name().items()
        if loss.trains and (not table.many_labels or loss.labels == "many" or loss.also_many_labels) and moved(loss)
    ]


def moved(loss: type[Loss]) -> dict[str, Knob]:
    """The knobs of a loss that a person moves."""
    return {name: knob for name, knob in loss.knobs().items() if name not in FIXED}


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
    for knob_name, knob in within(moved(class_named(name)), n_classes).items():
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


def along(head: wb.Run, n_classes: int) -> tuple[str, dict[str, wb.Run]]:
    """The slider that was moved last, or the last one, and the head of each of its values by its text."""
    name, chosen = type(head.loss).__name__, head.loss.settings()
    sliders = {each: knob for each, knob in within(moved(class_named(name)), n_classes).items() if knob.numeric}
    if not sliders:
        return "", {}
    before = st.session_state.get("live knobs", {}).get(name, chosen)
    changed = [each for each in sliders if before.get(each) != chosen[each]]
    axes = st.session_state.setdefault("live axes", {})
    if changed or name not in axes:
        axes[name] = changed[0] if changed else list(sliders)[-1]
    st.session_state.setdefault("live knobs", {})[name] = chosen
    axis = axes[name]
    values = sliders[axis].values(STEPS).tolist()
    losses = {format_value(value): dataclasses.replace(head.loss, **{axis: value}) for value in values}
    return axis, {text: dataclasses.replace(head, loss=loss) for text, loss in losses.items()}


def trained_axis(widget: str, heads: Mapping[str, wb.Run]) -> Axis | None:
    """The axis of these heads; None if one of them is not trained, such as one that diverged."""
    known = st.session_state.setdefault("live trained", {})
    runs = tuple(heads.values())
    if runs not in known and all(stored := LRUStore().find_all(runs)):
        known[runs] = Axis(widget, tuple(heads), tuple(run.key for run in stored if run is not None))
    return known.get(runs)


def request_head(head: wb.Run, ahead: list[wb.Run]) -> Progress:
    """The progress of a head; a new head is requested from the worker together with those of the same slider."""
    visitor = training_requests.live_visitor()
    progress = visitor.progress
    return progress if progress.runs == (head,) else visitor.train(head, ahead)


@messages.friendly
def status(head: wb.Run, ahead: list[wb.Run], before: Progress) -> None:
    """One line: what is being trained and how long it takes.

    The page is drawn again when the training that was under way `before` has ended, so that the next move of the slider
    finds all pictures prepared.
    """
    visitor = training_requests.live_visitor()
    progress = visitor.progress
    if (before.working and not progress.working) or (before.working_ahead and not progress.working_ahead):
        st.rerun()
    loss = messages.plain(display_names.of_thing(head.loss))
    if progress.working:
        st.html(DIMMED)
        st.progress(min(progress.done, 1.0), f"Training {loss}: {stage(progress)}")
        st.button("Cancel", icon=":material/stop:", on_click=visitor.cancel, key="cancel live")
    elif progress.state == FAILED:
        st.error(messages.plain(messages.without_places(progress.message)), icon=":material/error:")
    elif progress.state == FINISHED:
        seconds = sum(row["seconds"] for row in progress.history)
        trained = f"Trained {loss}: {counted(len(progress.history), 'epoch')} in {seconds:.1f} s"
        if progress.working_ahead:
            trained += f". The other values of this slider are trained together: {progress.ahead:.0%}"
        st.progress(1.0, trained)
    else:
        st.progress(0.0, f"Cancelled before {loss} was trained.")
        if st.button("Train it now", icon=":material/replay:"):
            visitor.train(head, ahead)
            st.rerun()


def stage(progress: Progress) -> str:
    """How far a training is: `epoch 3 of 10, about 8 s left`, or `photographs: 40%` while its data are prepared."""
    if progress.state == QUEUED:
        return f"other visitors come first, place {progress.place} in the queue"
    if progress.stage:
        return f"{progress.stage}: {progress.done:.0%}"
    if progress.epochs_done:
        return f"epoch {progress.epochs_done} of {progress.runs[0].epochs}{time_left(progress)}"
    return "starting the training process"


def time_left(progress: Progress) -> str:
    """`, about 3 s left`, once that is known."""
    left = progress.seconds_left
    if left is None:
        return ""
    return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


def result(run: StoredRun, base: StoredRun, dark: bool, axis: Axis | None = None) -> None:
    """Pictures of the last finished head on the validation rows.

    A knob that is moved until a number is good is chosen by that number; so the test rows judge only the head that is kept.
    """
    K = run.record.K
    if is_kept(run, base):
        st.caption("On the test rows:")
        numbers(run, base, K, "test")
    flag_collapse(run)
    val = run.tables["val"]
    with st.container(key="figures"):
        picture("live-sizes", run.key, K, dark, axis)
        if val.class_counts is not None and not val.many_labels:
            picture("live-shots", run.key, K, dark, axis)
        picture("live-curve", run.key, K, dark, axis)
    metric_along_knob(run, K, dark)
    if len(run.history):
        picture("live-learning", run.key, K, dark)
    st.caption("All numbers here are on validation rows. Keep the run to see test results.")


def metric_along_knob(run: StoredRun, K: float, dark: bool) -> None:
    """Every metric against the knob, over the values that are trained, as soon as there are three."""
    about = run.record.run
    if about.get("features") is None:
        return
    shared = {name: about[name] for name in ("features", "model", "dataset_key")}
    others = [each for each in LRUStore().runs() if each.record.matches(shared)]
    around = [sweep for sweep in stored_sweeps(others) if run in sweep.runs]
    if around:
        swept("live-tried", around[0], K, dark, mark=run.record.settings[around[0].knob])


def flag_collapse(run: StoredRun) -> None:
    """A warning if the training of a run ended in a constant answer, with a link to the explanation."""
    if not run.record.warned:
        return
    st.warning(messages.plain(run.record.warned), icon=":material/warning:")
    if "epsilon" in run.record.loss_knobs and st.button(WHY, icon=":material/help:", key=f"why {run.key}"):
        go_to("landscapes", {"part": WHY}, widgets={"part": WHY})


@st.cache_data(show_spinner="Judging the sets…", max_entries=64)
def judged(key: str, K: float, split: str) -> dict[str, float]:
    """Metric, with its group → value, of average-K sets of the rows of a split."""
    tables = LRUStore().open(key).tables
    metrics = [metric for metric in wb.metrics.METRICS if metric.name in METRICS]
    found = wb.report(tables[split], rules=[wb.AverageK(K)], metrics=metrics, val=tables["val"])
    values = dict(zip(names_of_metrics(found), found["value"], strict=True))
    return {name: value for name, value in values.items() if not math.isnan(value)}


@messages.friendly
def numbers(run: StoredRun, base: StoredRun, K: float, split: str) -> None:
    """The headline numbers, and how far they are from those of the run whose backbone it is."""
    here, there = (judged(each.key, K, split) for each in (run, base))
    about = (
        f"Sets of {K:g} {'class' if K == 1 else 'classes'} on average on the {counted(run.tables[split].n, SPLITS[split])}; "
        f"below each number, its difference from {messages.plain(base.name)}"
    )
    with st.container(key=f"numbers-{split}"):
        for place, (name, value) in enumerate(here.items()):
            share, apart, spec = is_share(name), value - there.get(name, math.nan), MetricSpec.parse(name)
            called = SHOTS[spec.group][0] if spec.metric == "shot_accuracy" else NAMES.get(name, in_words(name))
            difference = points(apart) if share else f"{round(apart, 2) + 0.0:+.2f}"  # which is never −0
            st.metric(
                called,
                f"{value:.1%}" if share else f"{value:.2f}",
                difference if run.key != base.key and name in there else None,
                delta_color="off",
                delta_arrow="off",
                help=None if place else about,
            )


def is_kept(run: StoredRun, base: StoredRun) -> bool:
    """Whether the head was moved from the LRU store to the store."""
    return run.key != base.key and LRUStore().store.has(run.key)


def keep(run: StoredRun, base: StoredRun) -> None:
    """A button that moves the run from the LRU store to the store."""
    if run.key == base.key:
        return
    if is_kept(run, base):
        st.badge("Kept", icon=":material/check:", color="green")
        open_elsewhere(run.key)
    elif st.button("Keep this run", icon=":material/bookmark:"):
        LRUStore().keep(run.key)
        st.rerun()


@messages.friendly
def picture(name: str, key: str, K: float, dark: bool, axis: Axis | None = None) -> None:
    """A picture of a run with the code that trains the run and draws it; if it fails, the others stay.

    On an `axis` that is trained it follows the slider in the browser, once the pictures of all values are made.
    """
    made, parts = prepared(name, key, K, dark)
    if axis is not None and key in axis.keys and name in FOLLOW:
        parts = if_ready(started_film(name, axis, dark)) or parts
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(parts, key=f"drawing {name}")
        handout(name, None, lambda: made, dark)


@st.cache_resource(show_spinner=False, max_entries=256)
def prepared(name: str, key: str, K: float, dark: bool) -> tuple[Figure, dict[str, Any]]:
    """A picture of a run, of the LRU store or of the store, and what the browser needs to draw it."""
    run = LRUStore().open(key)
    made = figure_of(name, run, K)
    made = dataclasses.replace(made, code=with_training(wb.Run.from_json(run.record.run), made))
    return made, browser_content(made, dark, height=TALL if name == "live-learning" else HEIGHT)


def figure_of(name: str, run: StoredRun, K: float) -> Figure:
    """A picture of the average-K sets of the validation rows of a run."""
    val = run.tables["val"]
    return MAKERS[name](run, wb.AverageK(K).fit(val).sets(val))


@st.cache_resource(show_spinner=False, max_entries=32)
def started_film(name: str, axis: Axis, dark: bool) -> Future[dict[str, Any]]:
    """The pictures of every value of a slider, made in the background."""
    return AHEAD.submit(film, name, axis, dark)


def film(name: str, axis: Axis, dark: bool) -> dict[str, Any]:
    """The pictures of every value of a slider, as the browser needs them to follow it."""
    runs = [LRUStore().open(key) for key in axis.keys]
    made: Sequence[Figure] = [figure_of(name, run, run.record.K) for run in runs]
    return live.prepared_film(
        [untitled(each.plot(dark)) for each in made],
        follows=live.Followed(axis.widget, axis.texts),
        title=made[0].title,
        subtitles=[each.subtitle for each in made],
        texts=[each.text for each in made],
        height=HEIGHT,
    )


def with_training(run: wb.Run, figure: Figure) -> Code:
    """The code of a figure of the validation rows, from the training of its run on."""
    given = {
        "table": "table = val",
        "test": "test = val  # a knob is chosen on these rows",
        "history": "history = trained.history",
    }
    lines = [line for name, line in given.items() if name in figure.code.needs]
    return figure.code.after(Code(setup=[*lines, ""]).after(training_requests.code(run)))
