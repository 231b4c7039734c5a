"""Many runs, one after the other, trained while somebody watches: what they will cost, how far they are, which failed.

    plan = Plan({"dataset": {"name": "letters", "knobs": {}}, "model": "mlp"}, {"learning_rate": [0.01, 0.1], "seed": [0, 1]})
    plan.cost()           # before: how many are stored already, and how long the others will take
    sweep = WatchedSweep(WarmWorker())
    sweep.start(plan)     # for the store
    sweep.progress        # at any time: the keys of those that are there, and what went wrong with others

They are trained by the process that trains single runs. Heads and small networks are trained together, as those are that
lie ahead of a live head. A run that fails is told of, and the others go on.
"""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Any

from workbench.catalogue import SETTINGS
from workbench.store import DEMO, StoredRun
from workbench.store.shelf import Shelf
from workbench.workers.heads import CANCELLED, FAILED, FINISHED, IDLE, TRAINING, Progress, WarmWorker

TOGETHER = 64  # runs that are trained together, at most: they lie on the shelf until their turn comes
OF_LOSS = "loss."  # what the name of a knob of the loss begins with
Described = Mapping[str, Any]


@dataclass(frozen=True)
class Cost:
    """What a sweep will take: how many runs are stored and how many wait, and the seconds for the epochs of those.

    They are as measured on the `timed` runs; None where no run here has the data and the network of one that waits.
    """

    stored: int
    waiting: int
    epochs: int
    seconds: float | None
    timed: tuple[StoredRun, ...]


@dataclass(frozen=True)
class Plan:
    """A run as its `run.json` describes it, and what is varied: as `wb.sweep` names it, `loss.epsilon` or `seed` → values.

    >>> base = {"dataset": {"name": "letters", "knobs": {}}, "loss": {"loss": "Focal", "knobs": {"gamma": 2.0}}}
    >>> plan = Plan(base, {"loss.gamma": [1.0, 3.0], "seed": [0]})
    >>> plan.settings
    [{'loss.gamma': 1.0, 'seed': 0}, {'loss.gamma': 3.0, 'seed': 0}]
    >>> plan.described[1]["loss"], plan.described[1]["seed"]
    ({'loss': 'Focal', 'knobs': {'gamma': 3.0}}, 0)
    """

    base: Described = field(default_factory=dict)
    over: Mapping[str, Sequence[Any]] = field(default_factory=dict)

    @cached_property
    def settings(self) -> list[dict[str, Any]]:
        """Every combination of what is varied."""
        return (
            [dict(zip(self.over, values, strict=True)) for values in product(*self.over.values())] if self.over else []
        )

    @cached_property
    def described(self) -> list[Described]:
        """The run in every setting."""
        return [self._described(setting) for setting in self.settings]

    def _described(self, setting: Mapping[str, Any]) -> Described:
        fields = {name: value for name, value in setting.items() if not name.startswith(OF_LOSS)}
        knobs = {name.removeprefix(OF_LOSS): value for name, value in setting.items() if name.startswith(OF_LOSS)}
        if not knobs:
            return {**self.base, **fields}
        loss = self.base["loss"]
        return {**self.base, **fields, "loss": {**loss, "knobs": {**loss["knobs"], **knobs}}}

    def cost(self, shelf: Shelf | None = None) -> Cost:
        """What training all of it will cost, judged by what an epoch of a run like each of them took."""
        shelf = Shelf() if shelf is None else shelf
        found, runs = shelf.all_found(self.described), shelf.runs()
        waiting = [each for each, run in zip(self.described, found, strict=True) if run is None]
        like = [(each, run) for each in waiting if (run := timed_like(each, runs)) is not None]
        seconds = sum(_epochs(each) * float(run.history["seconds"].mean()) for each, run in like)
        return Cost(
            stored=len(found) - len(waiting),
            waiting=len(waiting),
            epochs=sum(map(_epochs, waiting)),
            seconds=seconds if len(like) == len(waiting) else None,
            timed=tuple({run.key: run for _, run in like}.values()),
        )


def timed_like(described: Described, runs: Iterable[StoredRun]) -> StoredRun | None:
    """The run whose epochs tell most of how long those of another will take; None without one of its data and network.

    One of the same batches, images, machine and loss says more than another, in this order.
    """
    must = {"dataset": described["dataset"], "model": described["model"], "features": described.get("features")}
    alike = [run for run in runs if run.record.says(must) and "seconds" in run.history]

    def closeness(run: StoredRun) -> tuple[bool, ...]:
        told = run.record.to_json()
        same = [told.get(name) == described.get(name) for name in ("batch_size", "transforms")]
        return (*same, run.path.parent != DEMO, run.record.loss_name == described.get("loss", {}).get("loss"))

    return max(alike, key=closeness, default=None)


@dataclass(frozen=True)
class SweepProgress:
    """How far a sweep is: the keys of the runs that are there, and place and error of those that failed.

    `seconds` were taken by the `epochs` that it trained so far, of all `to_train`.
    """

    plan: Plan = Plan()
    state: str = IDLE
    keys: tuple[str, ...] = ()
    failed: Mapping[int, str] = field(default_factory=dict)
    at: int = 0  # the place of the run that is being trained
    together: int = 0  # epochs of the runs that are trained together with it
    to_train: int = 0
    epochs: int = 0
    seconds: float = 0.0

    @property
    def working(self) -> bool:
        """Whether there is more to come."""
        return self.state == TRAINING

    def share(self, of_run: Progress) -> float:
        """How much of the epochs is trained, those of the run that is being trained too."""
        if not self.to_train:
            return 1.0
        return min(1.0, (self.epochs + of_run.epochs_done + self.together * (of_run.ahead or 0.0)) / self.to_train)

    def seconds_left(self, of_run: Progress) -> float | None:
        """About how long it will take, once an epoch was timed; None while runs are trained together."""
        epochs = self.epochs + of_run.epochs_done
        if not epochs or of_run.working_ahead:
            return None
        seconds = self.seconds + sum(row["seconds"] for row in of_run.history)
        return seconds / epochs * (self.to_train - epochs)


class WatchedSweep:
    """A sweep that the process of a worker trains. It goes on when nobody watches."""

    def __init__(self, worker: WarmWorker) -> None:
        self.worker = worker
        self.progress = SweepProgress()
        self._cancelled = threading.Event()

    @property
    def of_run(self) -> Progress:
        """How far the run is that is being trained for the sweep; idle between two of them."""
        progress, sweep = self.worker.progress, self.progress
        ours = sweep.working and progress.described == sweep.plan.described[sweep.at]
        return progress if ours and (progress.working or progress.working_ahead) else Progress()

    def start(self, plan: Plan) -> threading.Thread:
        """Train the runs of a plan for the store, unless they are there: on a thread that ends with the last of them."""
        if self.progress.working:
            raise ValueError("a sweep is being trained: wait until it has ended, or cancel it")
        self._cancelled.clear()
        self.progress = SweepProgress(plan, TRAINING)
        thread = threading.Thread(target=self._train, daemon=True)
        thread.start()
        return thread

    def cancel(self) -> None:
        """Stop; what is trained stays in the store."""
        self._cancelled.set()
        self.worker.cancel()

    def _train(self) -> None:
        described, shelf = self.progress.plan.described, self.worker.shelf
        known = [run is not None for run in shelf.all_found(described)]
        self._tell(to_train=sum(_epochs(each) for each, stored in zip(described, known, strict=True) if not stored))
        for at, each in enumerate(described):
            if self._cancelled.is_set():
                break
            found = shelf.all_found(described[at:])
            lie_ahead = [other for other, run in zip(described[at + 1 :], found[1:], strict=True) if run is None]
            ahead = lie_ahead[:TOGETHER] if found[0] is None else []
            self._tell(at=at, together=sum(map(_epochs, ahead)))
            self.worker.ask(each, keep=True, ahead=ahead)
            self._take_up(self.worker.ended(), new=not known[at])
        self._tell(state=CANCELLED if self._cancelled.is_set() else FINISHED)

    def _take_up(self, ended: Progress, new: bool) -> None:
        """What became of the run that was trained last; one that somebody else replaced ends the sweep."""
        now = self.progress
        if ended.described != now.plan.described[now.at] or ended.state == CANCELLED:
            self._cancelled.set()
            return
        if ended.state == FAILED:
            self._tell(failed={**now.failed, now.at: ended.message})
        else:
            self._tell(keys=(*now.keys, str(ended.key)))
        if new:
            trained = ended.history if ended.state == FINISHED else ()
            spared = _epochs(ended.described) - len(
                trained
            )  # of one that failed, stopped early or went on from a checkpoint
            seconds = now.seconds + sum(row["seconds"] for row in trained)
            self._tell(epochs=now.epochs + len(trained), seconds=seconds, to_train=now.to_train - spared)

    def _tell(self, **facts: Any) -> None:
        self.progress = dataclasses.replace(self.progress, **facts)


def _epochs(described: Described) -> int:
    return int(described.get("epochs", SETTINGS["epochs"].default))
