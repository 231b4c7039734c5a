"""The cost of a sweep is estimated before it is started, from the stored run that is most like each of its runs."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from workbench.datasets import DatasetSpec
from workbench.losses import Focal, NoisedTopK
from workbench.runs import Run
from workbench.runs.grid import every_setting, runs_in
from workbench.store import Store
from workbench.store.lru_store import LRUStore
from workbench.tables import LogitTable
from workbench.workers.estimates import training_cost

BASE = Run(DatasetSpec("digits"), model="linear", loss=NoisedTopK(K=5, epsilon=0.2), epochs=4)
RUNS = runs_in(BASE, every_setting({"loss.K": [2, 15, 3], "seed": [0, 1]}))


@pytest.fixture
def lru_store(tmp_path):
    return LRUStore(Store(tmp_path))


def write(lru_store, key, run, seconds):
    with lru_store.store.writing(key) as directory:
        (directory / "run.json").write_text(
            json.dumps({"format": 1, "run": run.description(), "facts": {"title": key}}), encoding="utf-8"
        )
        lines = [f"{epoch},{each}" for epoch, each in enumerate(seconds)]
        (directory / "history.csv").write_text("\n".join(["epoch,seconds", *lines]), encoding="utf-8")
        LogitTable(-np.eye(3, dtype=np.float32)).save(directory / "test")


def test_the_cost_of_a_sweep_is_judged_by_the_run_that_is_most_like_its_own(lru_store):
    cost = training_cost(RUNS, lru_store)
    assert (cost.stored, cost.waiting, cost.epochs, cost.seconds) == (0, 6, 24, None)
    write(lru_store, "other batches", dataclasses.replace(BASE, batch_size=8), [9.0])
    write(lru_store, "other loss", dataclasses.replace(BASE, loss=Focal()), [7.0])
    write(lru_store, "other network", dataclasses.replace(BASE, model="mlp"), [5.0])
    cost = training_cost(RUNS, lru_store)
    assert (cost.seconds, [run.key for run in cost.timed]) == (24 * 7.0, ["other loss"])
    write(lru_store, "one of them", RUNS[0], [1.0, 3.0])
    cost = training_cost(RUNS, lru_store)
    assert (cost.stored, cost.waiting, cost.seconds) == (1, 5, 5 * 4 * 2.0)


def test_a_grid_of_a_run_whose_data_are_not_loaded_loads_nothing(monkeypatch):
    monkeypatch.setattr(DatasetSpec, "load", lambda self: pytest.fail("loaded"))
    assert [(run.loss.K, run.seed) for run in RUNS] == [(2, 0), (2, 1), (15, 0), (15, 1), (3, 0), (3, 1)]
    (other,) = runs_in(BASE, [{"data.seed": 3}])
    assert other.description()["dataset"] == {"name": "digits", "knobs": {"seed": 3}}
