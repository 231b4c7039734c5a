"""A sweep of one's own: what is varied, what that costs, and how far it is.

The run that is varied is the one that *A new run* describes, with the same controls. Its settings are trained by the same
process, for the whole server, and go on when the page is closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

import views.train.new_run as new_run
from session import messages, training_requests
from session.address import bound, some_of
from views.train.live_heads import moved, stage
from workbench import words
from workbench.catalogue import LOSSES, SETTINGS
from workbench.figures.base import counted
from workbench.knobs import Knob, shown
from workbench.metrics.sweeps import StoredSweep
from workbench.store import DEMO, StoredRun
from workbench.store.shelf import Shelf
from workbench.workers.heads import CANCELLED, FAILED, IDLE, Progress
from workbench.workers.sweeps import OF_LOSS, Cost, Plan, SweepProgress

VARIED = ("learning_rate", "weight_decay", "batch_size", "epochs")  # settings of a run that have a scale
MOST = 2  # that are varied at a time, besides the seed: a picture has one axis, and lines
# Of a session: the run whose epoch is timed, and how far the page has drawn the sweep.
TIMED, SEEN = "timed run", "seen of the sweep"
GRID, BESIDE = 9, 2  # values of a knob between its ends, and how many of them on each side of where it stands are tried


@messages.friendly
def form(key: str | None) -> None:
    """What to train and what to vary, what it costs, and the button that starts it."""
    described = new_run.described(key, settings=[name for name in training_requests.SETTINGS if name != "seed"])
    if described is None:
        return
    plan = Plan(described, chosen_over(described))
    busy = training_requests.busy()
    tell_cost(plan.cost(), plan, busy)
    with st.container(horizontal=True):
        start = st.button(
            f"Train {counted(len(plan.settings), 'run')}", icon=":material/play_arrow:", type="primary", disabled=busy,
            help="one run or one sweep at a time: wait, or cancel it" if busy else None,
        )  # fmt: skip
        with st.popover("Show the code", icon=":material/code:", type="tertiary"):
            st.code(training_requests.sweep_code(described, plan.over), language="python")
    if start:
        training_requests.long_sweep().start(plan)
        st.rerun()


def chosen_over(described: Mapping[str, Any]) -> dict[str, list[Any]]:
    """What is varied, as `wb.sweep` names it, with its values; the seeds last."""
    loss = described["loss"]["loss"]
    knobs = {f"{OF_LOSS}{name}": knob for name, knob in moved(LOSSES[loss]).items() if knob.numeric}
    knobs |= {name: SETTINGS[name] for name in VARIED}
    named = {words.of_varied(name): name for name in knobs}
    first = [words.of_varied(name) for name in knobs if name.startswith(OF_LOSS)][-1:] or [words.of_knob(VARIED[0])]
    with st.container(key="more-settings-varied"):
        chosen = st.multiselect(
            "What to vary", list(named), first, max_selections=MOST, **bound(f"vary_{loss}", some_of(named))
        )
        over = {named[label]: values(label, named[label], knobs[named[label]], described) for label in chosen}
        seeds = values("seed", "seed", SETTINGS["seed"], described, first="0")
    if not over:
        raise ValueError(f"nothing is varied; choose one or two of {', '.join(named)}")
    replaced = ", ".join(f"{words.of_varied(name)} = {words.of_value(stands_at(name, described))}" for name in over)
    st.caption(messages.plain(f"In each run these values take the place of {replaced} above."))
    return {**over, "seed": seeds}


def stands_at(name: str, described: Mapping[str, Any]) -> Any:
    """Where the run that is varied has what is varied."""
    in_loss = name.startswith(OF_LOSS)
    return described["loss"]["knobs"][name.removeprefix(OF_LOSS)] if in_loss else described.get(name)


def values(label: str, name: str, knob: Knob, described: Mapping[str, Any], first: str = "") -> list[Any]:
    """The values to try, written one after the other; at first those around where the knob stands."""
    owner = described["loss"]["loss"] if name.startswith(OF_LOSS) else "run"

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
        f"Values of {label}", first or around(knob, stands_at(name, described)),
        help=f"with commas in between; each is {knob.accepts()}",
        **bound(f"values_{owner}_{name.removeprefix(OF_LOSS)}", readable),
    )  # fmt: skip
    return read(text)


def around(knob: Knob, stands: Any) -> str:
    """Some values around one, in few digits: `0.07, 0.2, 1`. Around the default, where a knob follows a schedule."""
    grid = knob.values(GRID)
    at = knob.nearest(grid, stands if isinstance(stands, (int, float)) else knob.default)
    near = grid[max(0, at - BESIDE) : at + BESIDE + 1].tolist()
    return ", ".join(f"{value:.1g}" if knob.kind == "real" else shown(value) for value in near)


def tell_cost(cost: Cost, plan: Plan, busy: bool) -> None:
    """How many runs, how many are here already, how long the others will take, and where that is known from."""
    factors = " × ".join(
        counted(len(tried), "seed") if name == "seed" else f"{counted(len(tried), 'value')} of {words.of_varied(name)}"
        for name, tried in plan.over.items()
    )
    st.markdown(
        messages.plain(
            f"{counted(len(plan.settings), 'run')}: {factors}. {cost.stored} in the store already, {cost.waiting} to train."
        )
    )
    if not cost.waiting:
        return
    if cost.seconds is not None:
        st.markdown(messages.plain(f"About {duration(cost.seconds)}, {measured_on(cost)}."))
        return
    st.markdown("How long that takes is not known: no run here has these data and this network.")
    if st.button("Time one epoch", icon=":material/timer:", disabled=busy):
        st.session_state[TIMED] = {**plan.described[0], "epochs": 1}
        training_requests.long_worker().ask(st.session_state[TIMED])
        st.rerun()


def measured_on(cost: Cost) -> str:
    """Where an estimate comes from."""
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


def duration(seconds: float) -> str:
    """`0.4 s`, `40 s`, `12 min` or `3.5 h`."""
    if seconds < 100:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


@messages.friendly
def watch() -> None:
    """How far the sweep is that was asked for last, and what failed of it; when a run has come, the page is drawn anew."""
    sweep = training_requests.long_sweep()
    progress, of_run = sweep.progress, sweep.of_run
    now = progress.state, len(progress.keys), training_requests.busy()
    seen, st.session_state[SEEN] = st.session_state.get(SEEN, now), now
    if seen != now:
        st.rerun()
    timing()
    if progress.state == IDLE:
        return
    plan, n_runs = progress.plan, len(progress.plan.settings)
    if progress.working:
        left = progress.seconds_left(of_run)
        said = how_far(progress, of_run)
        st.progress(
            progress.share(of_run),
            messages.plain(said + ("" if left is None else f". About {duration(left)} left in all")),
        )
        st.button("Cancel", icon=":material/stop:", on_click=sweep.cancel, key="cancel sweep")
    elif progress.state == CANCELLED:
        st.info(
            f"Cancelled: {len(progress.keys)} of {n_runs} runs are in the store. Asked for again, the sweep goes on from there.",
            icon=":material/stop_circle:",
        )
    else:
        st.badge(f"{len(progress.keys)} of {n_runs} runs trained and kept", icon=":material/check:", color="green")
    for at, why in progress.failed.items():
        st.error(messages.plain(f"{in_words(plan, at)}: {messages.without_places(why)}"), icon=":material/error:")


def timing() -> None:
    """How far the epoch is that is being timed."""
    of_run = training_requests.long_worker().progress
    if of_run.described == st.session_state.get(TIMED):
        if of_run.working:
            st.progress(of_run.share, f"Timing one epoch: {stage(of_run)}")
        elif of_run.state == FAILED:
            st.error(messages.plain(messages.without_places(of_run.message)), icon=":material/error:")


def how_far(progress: SweepProgress, of_run: Progress) -> str:
    """What is being trained: a run, or those that are trained together after it."""
    if of_run.key is not None and of_run.working_ahead:
        return f"Runs that can be trained together are: {of_run.ahead:.0%} of their steps"
    said = f"Run {progress.at + 1} of {len(progress.plan.settings)}, {in_words(progress.plan, progress.at)}"
    return f"{said}: {stage(of_run)}" if of_run.working else said


def in_words(plan: Plan, at: int) -> str:
    """A setting of a sweep: `ε = 0.5, seed = 1`."""
    return ", ".join(f"{words.of_varied(name)} = {words.of_value(value)}" for name, value in plan.settings[at].items())


def so_far() -> StoredSweep | None:
    """The runs of the sweep that was asked for last, as far as they are there."""
    progress = training_requests.long_sweep().progress
    if not progress.keys:
        return None
    knob, *beside = [name for name in progress.plan.over if name != "seed"]
    return StoredSweep(knob, next(iter(beside), None), tuple(map(Shelf().open, progress.keys)))
