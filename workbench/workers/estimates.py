"""Estimates of the time that runs will take, from the epochs of stored runs that are most like them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench.runs.run import Run
from workbench.store import DEMO, StoredRun
from workbench.store.lru_store import LRUStore


@dataclass(frozen=True)
class Cost:
    """Cost of training runs.

    Args:
        stored: Number of runs that are stored already.
        waiting: Number of runs to train.
        epochs: Number of epochs to train.
        seconds: Estimate for these epochs; None if some run has data or a network that no stored run has.
        timed: Stored runs whose epochs the estimate is from.
    """

    stored: int
    waiting: int
    epochs: int
    seconds: float | None
    timed: tuple[StoredRun, ...]


def training_cost(runs: Sequence[Run], lru_store: LRUStore | None = None) -> Cost:
    """The cost of training runs, from the time of an epoch of a stored run like each of them."""
    lru_store = LRUStore() if lru_store is None else lru_store
    found, known = lru_store.find_all(runs), lru_store.runs()
    waiting = [run for run, stored in zip(runs, found, strict=True) if stored is None]
    like = [(run, stored) for run in waiting if (stored := most_like(run, known)) is not None]
    return Cost(
        stored=len(found) - len(waiting),
        waiting=len(waiting),
        epochs=sum(run.epochs for run in waiting),
        seconds=_seconds(like) if len(like) == len(waiting) else None,
        timed=tuple({stored.key: stored for _, stored in like}.values()),
    )


def planned_sweep(
    runs: Sequence[Run],
    settings: Sequence[Mapping[str, Any]],
    failed: Iterable[int] = (),
    lru_store: LRUStore | None = None,
) -> pd.DataFrame:
    """The plan of a sweep as `wb.figures.sweep_plan` takes it: the runs in these settings, those at the places `failed` with
    an error.
    """
    lru_store = LRUStore() if lru_store is None else lru_store
    known, failed, lines = lru_store.runs(), set(failed), []
    for place, (stored, run, setting) in enumerate(zip(lru_store.find_all(runs), runs, settings, strict=True)):
        like = most_like(run, known) if stored is None else None
        history = None if stored is None else stored.history
        accuracy = history["val_accuracy"].iloc[-1] if history is not None and "val_accuracy" in history else None
        state = "trained" if stored is not None else "failed" if place in failed else "to train"
        lines.append(
            {
                **setting,
                "state": state,
                "seconds": None if like is None else _seconds([(run, like)]),
                "accuracy": accuracy,
            }
        )
    return pd.DataFrame(lines)


def _seconds(like: Iterable[tuple[Run, StoredRun]]) -> float:
    return sum(run.epochs * float(stored.history["seconds"].mean()) for run, stored in like)


def most_like(run: Run, stored: Iterable[StoredRun]) -> StoredRun | None:
    """The stored run whose epochs tell most about those of a run; None without one of its data and network.

    Of several, one of the same batches, images, machine and loss is preferred, in this order.
    """
    described = run.description()
    must = {name: described[name] for name in ("dataset", "model", "features")}
    alike = [each for each in stored if each.record.matches(must) and "seconds" in each.history]

    def closeness(each: StoredRun) -> tuple[bool, ...]:
        same = [each.record.run.get(name) == described[name] for name in ("batch_size", "transforms")]
        return (*same, each.path.parent != DEMO, each.record.loss_name == type(run.loss).__name__)

    return max(alike, key=closeness, default=None)
