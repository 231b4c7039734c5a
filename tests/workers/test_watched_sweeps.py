"""Sweeps that somebody watches: what they cost is said before, a setting that fails stops no other, and cancelling stops all."""

from __future__ import annotations

import json

import numpy as np
import pytest

from workbench.store import Store
from workbench.store.shelf import Shelf
from workbench.tables import LogitTable
from workbench.workers.heads import CANCELLED, FAILED, FINISHED, Progress, WarmWorker
from workbench.workers.sweeps import Plan, SweepProgress, WatchedSweep

BASE = {
    "dataset": {"name": "digits", "knobs": {"seed": 0}},
    "model": "linear",
    "loss": {"loss": "NoisedTopK", "knobs": {"K": 5, "epsilon": 0.2, "n_samples": 5}},
    "epochs": 4,
    "batch_size": 128,
}
PLAN = Plan(BASE, {"loss.K": [2, 15, 3], "seed": [0, 1]})


@pytest.fixture
def shelf(tmp_path):
    return Shelf(Store(tmp_path))


def write(shelf, key, described, seconds):
    with shelf.store.writing(key) as directory:
        (directory / "run.json").write_text(json.dumps({"title": key, **described}), encoding="utf-8")
        lines = [f"{epoch},{each}" for epoch, each in enumerate(seconds)]
        (directory / "history.csv").write_text("\n".join(["epoch,seconds", *lines]), encoding="utf-8")
        LogitTable(-np.eye(3, dtype=np.float32)).save(directory / "test")


def test_the_cost_of_a_sweep_is_judged_by_the_run_that_is_most_like_its_own(shelf):
    assert PLAN.cost(shelf).seconds is None
    assert (PLAN.cost(shelf).stored, PLAN.cost(shelf).waiting, PLAN.cost(shelf).epochs) == (0, 6, 24)
    write(shelf, "other batches", {**BASE, "batch_size": 8}, [9.0])
    write(shelf, "other loss", {**BASE, "loss": {"loss": "Focal", "knobs": {}}}, [7.0])
    write(shelf, "other network", {**BASE, "model": "mlp"}, [5.0])
    assert (PLAN.cost(shelf).seconds, [run.key for run in PLAN.cost(shelf).timed]) == (24 * 7.0, ["other loss"])
    write(shelf, "one of them", PLAN.described[0], [1.0, 3.0])
    cost = PLAN.cost(shelf)
    assert (cost.stored, cost.waiting, cost.seconds) == (1, 5, 5 * 4 * 2.0)


class Canned(WarmWorker):
    """Answers as a process would, without one: K = 15 is too many, and at the other K an epoch takes two seconds."""

    last = None  # the number of requests after which somebody cancels
    asked = 0

    def ask(self, described, *, keep=False, ahead=()):
        self.asked += 1
        failed, state = described["loss"]["knobs"]["K"] == 15, CANCELLED if self.asked == self.last else FINISHED
        history = tuple({"epoch": epoch, "seconds": 2.0} for epoch in range(described["epochs"]))
        self.progress = Progress(described, state, described["epochs"], history, f"run {self.asked}")
        if failed:
            self.progress = Progress(described, FAILED, message="K = 15 with 10 classes; K must be smaller")
        return self.progress


def trained(shelf, **facts):
    """The progress of the sweep when it has ended."""
    worker = Canned(shelf)
    vars(worker).update(facts)
    sweep = WatchedSweep(worker)
    sweep.start(PLAN).join()
    return sweep.progress


def test_a_setting_that_fails_is_told_of_and_the_others_go_on(shelf):
    progress = trained(shelf)
    assert (progress.state, len(progress.keys), list(progress.failed)) == (FINISHED, 4, [2, 3])
    assert PLAN.settings[2] == {"loss.K": 15, "seed": 0}
    assert "K must be smaller" in progress.failed[2]
    assert (progress.epochs, progress.to_train, progress.seconds) == (16, 16, 32.0)
    assert progress.share(Progress()) == 1


def test_a_sweep_that_is_cancelled_keeps_what_is_trained_and_asks_for_nothing_more(shelf):
    progress = trained(shelf, last=2)
    assert (progress.state, progress.keys, progress.working) == (CANCELLED, ("run 1",), False)


def test_progress_counts_epochs_of_all_runs_and_judges_the_time_by_those_that_were_trained():
    rows = ({"epoch": 0, "seconds": 1.0}, {"epoch": 1, "seconds": 1.0})
    progress = SweepProgress(PLAN, "training", ("run 1",), at=1, to_train=24, epochs=4, seconds=8.0)
    of_run = Progress(epochs=4, history=rows, state="training")
    assert progress.share(of_run) == (4 + 2) / 24
    assert progress.seconds_left(of_run) == (8.0 + 2.0) / 6 * 18
    together = Progress(epochs=4, history=rows * 2, state=FINISHED, ahead=0.5)
    assert progress.seconds_left(together) is None
