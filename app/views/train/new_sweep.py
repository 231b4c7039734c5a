"""A new sweep: what is varied, what that costs, and how far it is.

The run that is varied is the one that *A new run* describes, with the same controls. Its settings are trained by the same
process, for the whole server, and go on when the page is closed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

import views.train.new_run as new_run
import workbench as wb
from session import messages, training_requests
from session.address import bound, some_of
from views.train.live_heads import moved, stage
from views.train.plan_pictures import draw
from workbench import display_names
from workbench.figures import Code
from workbench.figures.base import counted
from workbench.figures.runs.sweep_plan import CELL, duration
from workbench.knobs import Knob, format_value
from workbench.metrics.sweeps import StoredSweep
from workbench.runs.grid import every_setting, runs_in
from workbench.store import DEMO, StoredRun
from workbench.store.lru_store import LRUStore
from workbench.workers.client import CANCELLED, FAILED, Progress
from workbench.workers.estimates import Cost, planned_sweep, training_cost

VARIED = ("learning_rate", "weight_decay", "batch_size", "epochs")  # settings of a run that have a scale
OF_LOSS = "loss."  # before the name of a knob of the loss
MOST = 2  # that are varied at a time, besides the seed: a picture has one axis, and lines
PLAN = 90  # pixels of a plan besides its lines
# Of a session: the run whose epoch is timed, and how far the page has drawn the sweep.
TIMED, SEEN = "timed run", "seen of the sweep"
GRID, BESIDE = 9, 2  # values of a knob between its ends, and how many of them on each side of where it stands are tried


@dataclass(frozen=True)
class Grid:
    """A grid of settings: `over` as `wb.sweep` takes it, and its settings in the order of their runs."""

    over: Mapping[str, Sequence[Any]]
    settings: list[dict[str, Any]]


@dataclass(frozen=True)
class Plan:
    """What the form describes: the run that is varied, the grid, and its runs."""

    run: wb.Run
    grid: Grid
    runs: Sequence[wb.Run]


def form(key: str | None) -> Plan | None:
    """The knobs to vary and the cost of the sweep, and below them the run; None as long as there is no path to the data."""
    first = st.container()
    run = new_run.chosen_run(key, settings=[name for name in training_requests.SETTINGS if name != "seed"])
    if run is None:
        return None
    with first:
        over = chosen_over(run)
        grid = Grid(over, every_setting(over))
        runs = runs_in(run, grid.settings)
        show_cost(training_cost(runs), over, runs, training_requests.long_worker().progress.working)
    return Plan(run, grid, runs)


def start(plan: Plan) -> None:
    """The button that starts the sweep, and its code."""
    worker = training_requests.long_worker()
    pressed = new_run.start_button(f"Train {counted(len(plan.runs), 'run')}", worker.progress.working)
    new_run.show_code(training_requests.sweep_code(plan.run, plan.grid.over))
    if pressed:
        worker.train(plan.runs, keep=True, note=plan.grid)
        st.rerun()


@messages.friendly
def plan_picture(plan: Plan, dark: bool) -> None:
    """The runs of the sweep, one cell each: which are trained, and how long the others will take."""
    progress = training_requests.long_worker().progress
    failed = progress.errors if progress.runs == tuple(plan.runs) else ()
    made = wb.figures.sweep_plan(planned_sweep(plan.runs, plan.grid.settings, failed))
    lines = [
        *training_requests.run_code(plan.run).setup,
        f"settings = every_setting({dict(plan.grid.over)!r})",
        "plan = planned_sweep(runs_in(run, settings), settings)",
    ]
    imports = [
        *training_requests.run_code(plan.run).imports,
        "from workbench.runs.grid import every_setting, runs_in",
        "from workbench.workers.estimates import planned_sweep",
    ]
    draw(
        "plan",
        dataclasses.replace(made, code=made.code.after(Code(setup=lines, imports=imports))),
        dark,
        height=PLAN + CELL * len(made.lines),
    )


def chosen_over(run: wb.Run) -> dict[str, list[Any]]:
    """Names, as `wb.sweep` takes them, and values to vary; the seeds last."""
    loss = type(run.loss).__name__
    knobs = {f"{OF_LOSS}{name}": knob for name, knob in moved(type(run.loss)).items() if knob.numeric}
    knobs |= {name: wb.Run.knobs()[name] for name in VARIED}
    named = {display_names.of_varied(name): name for name in knobs}
    first = [display_names.of_varied(name) for name in knobs if name.startswith(OF_LOSS)][-1:] or [
        display_names.of_knob(VARIED[0])
    ]
    with st.container(key="more-settings-varied"):
        chosen = st.multiselect(
            "What to vary", list(named), first, max_selections=MOST, **bound(f"vary_{loss}", some_of(named))
        )
        over = {named[label]: values(label, named[label], knobs[named[label]], run) for label in chosen}
        seeds = values("seed", "seed", wb.Run.knobs()["seed"], run, first="0")
    if not over:
        raise ValueError(f"nothing is varied; choose one or two of {', '.join(named)}")
    replaced = ", ".join(
        f"{display_names.of_varied(name)} = {display_names.of_value(value_of(name, run))}" for name in over
    )
    st.caption(messages.plain(f"In each run these values take the place of {replaced} below."))
    return {**over, "seed": seeds}


def value_of(name: str, run: wb.Run) -> Any:
    """The value that a run has of a knob that is varied."""
    return getattr(run.loss, name.removeprefix(OF_LOSS)) if name.startswith(OF_LOSS) else getattr(run, name)


def values(label: str, name: str, knob: Knob, run: wb.Run, first: str = "") -> list[Any]:
    """The values to try, separated by commas; at first those around the value of the run."""
    owner = type(run.loss).__name__ if name.startswith(OF_LOSS) else "run"

    def read(text: str) -> list[Any]:
        found = list(dict.fromkeys(knob.parsed(label, each) for each in text.split(",") if each.strip()))
        if not found:
            raise ValueError(f"{label} has no value to try; give some with commas in between, each {knob.accepts()}")
        return found

    def readable(asked: list[str]) -> bool:
        try:
            return len(asked) == 1 and bool(read(asked[0]))
        except ValueError:
            return False

    text = st.text_input(
        f"Values of {label}", first or around(knob, value_of(name, run)),
        help=f"with commas in between; each is {knob.accepts()}",
        **bound(f"values_{owner}_{name.removeprefix(OF_LOSS)}", readable),
    )  # fmt: skip
    return read(text)


def around(knob: Knob, stands: Any) -> str:
    """Some values around one, in few digits: `0.07, 0.2, 1`. Around the default, where a knob follows a schedule."""
    grid = knob.values(GRID)
    at = knob.nearest(grid, stands if isinstance(stands, (int, float)) else knob.default)
    near = grid[max(0, at - BESIDE) : at + BESIDE + 1].tolist()
    return ", ".join(f"{value:.1g}" if knob.kind == "real" else format_value(value) for value in near)


def show_cost(cost: Cost, over: Mapping[str, Sequence[Any]], runs: Sequence[wb.Run], busy: bool) -> None:
    """Number of runs, how many are stored, and the time of the others with its source."""
    factors = " × ".join(
        counted(len(tried), "seed")
        if name == "seed"
        else f"{counted(len(tried), 'value')} of {display_names.of_varied(name)}"
        for name, tried in over.items()
    )
    st.markdown(
        messages.plain(
            f"{counted(len(runs), 'run')}: {factors}. {cost.stored} in the store already, {cost.waiting} to train."
        )
    )
    if not cost.waiting:
        return
    if cost.seconds is not None:
        st.markdown(messages.plain(f"About {duration(cost.seconds)}, {measured_on(cost)}."))
        return
    st.markdown("How long that takes is not known: no run here has these data and this network.")
    if st.button("Time one epoch", icon=":material/timer:", disabled=busy):
        st.session_state[TIMED] = dataclasses.replace(runs[0], epochs=1)
        training_requests.long_worker().train([st.session_state[TIMED]])
        st.rerun()


def measured_on(cost: Cost) -> str:
    """Source of an estimate."""
    first, n_others = cost.timed[0], len(cost.timed) - 1
    others = f" and {counted(n_others, 'other run')}" if n_others else ""
    an_epoch = (cost.seconds or 0.0) / cost.epochs
    elsewhere = ", on the machine where the demo runs were made" if any(map(is_demo, cost.timed)) else ""
    return (
        f"for {counted(cost.epochs, 'epoch')} of {duration(an_epoch)} each, as measured on {first.name}{others}{elsewhere}; "
        "reading the data comes on top, and runs that can be trained together take less"
    )


def is_demo(run: StoredRun) -> bool:
    """Whether a run came with the workbench, and was trained on another machine."""
    return run.path.parent == DEMO


@messages.friendly
def watch() -> None:
    """Progress of the sweep that was started last, and its errors; when a run is trained, the page is drawn again."""
    worker = training_requests.long_worker()
    progress = worker.progress
    now = progress.state, len(progress.keys)
    seen, st.session_state[SEEN] = st.session_state.get(SEEN, now), now
    if seen != now:
        st.rerun()
    timing(progress)
    if len(progress.runs) < 2:
        return
    n_runs, ended = len(progress.runs), len(progress.keys) + len(progress.errors)
    if progress.working:
        of_stage = (
            f": {progress.stage}, {progress.done:.0%}" if progress.stage else f", {progress.done:.0%} of the epochs"
        )
        left = "" if progress.seconds_left is None else f". About {duration(progress.seconds_left)} left in all"
        st.progress(min(progress.done, 1.0), messages.plain(f"{ended} of {n_runs} runs trained{of_stage}{left}"))
        st.button("Cancel", icon=":material/stop:", on_click=worker.cancel, key="cancel sweep")
    elif progress.state == CANCELLED:
        st.info(
            f"Cancelled: {len(progress.keys)} of {n_runs} runs are in the store. Started again, the sweep goes on from there.",
            icon=":material/stop_circle:",
        )
    elif progress.state == FAILED:
        st.error(messages.plain(messages.without_places(progress.message)), icon=":material/error:")
    else:
        st.badge(f"{len(progress.keys)} of {n_runs} runs trained and kept", icon=":material/check:", color="green")
    for at, error in progress.errors.items():
        setting = in_words(progress.note.settings[at])
        st.error(messages.plain(f"{setting}: {messages.without_places(error)}"), icon=":material/error:")


def timing(progress: Progress) -> None:
    """Progress of the epoch that is timed."""
    if progress.runs == (st.session_state.get(TIMED),):
        if progress.working:
            st.progress(min(progress.done, 1.0), f"Timing one epoch: {stage(progress)}")
        elif progress.state == FAILED:
            st.error(messages.plain(messages.without_places(progress.message)), icon=":material/error:")


def in_words(setting: Mapping[str, Any]) -> str:
    """A setting of a sweep: `ε = 0.5, seed = 1`."""
    return ", ".join(
        f"{display_names.of_varied(name)} = {display_names.of_value(value)}" for name, value in setting.items()
    )


def so_far() -> StoredSweep | None:
    """The runs of the sweep that was started last, as far as they are trained."""
    progress = training_requests.long_worker().progress
    if len(progress.runs) < 2 or not progress.keys:
        return None
    knob, *beside = [name for name in progress.note.over if name != "seed"]
    return StoredSweep(knob, next(iter(beside), None), tuple(map(LRUStore().open, progress.keys.values())))
