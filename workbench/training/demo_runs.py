"""Builds the runs that ship with the package: `make demo`, or `python -m workbench.training.demo_runs`.

They are trained by `train` as any run, then rounded to half precision so that they are small: the weights first, and the
scores and features are those of the rounded weights. Photographs are not stored; they are drawn again from the seed.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile

import numpy as np
import torch
from torch import Tensor

from workbench.datasets import load_dataset
from workbench.losses import (
    AverageKTwoHead,
    BinaryCrossEntropy,
    CrossEntropy,
    NoisedTopK,
    Quasibinary,
    SoftmaxUniform,
)
from workbench.store import DEMO, Store
from workbench.store.cache import PLANES
from workbench.tables import LogitTable
from workbench.training.features import stored_weights
from workbench.training.recipes import RECIPES
from workbench.training.trainer import Run, TrainedRun, train, write_run
from workbench.training.weight_planes import weight_plane
from workbench.workers.planes import Plane

SIZES = {"n_val": 1000, "n_test": 3000}  # half of the usual: the package must stay small
PLANE_STEPS, PLANE_ROWS, PLANE_SEED = 9, 500, 0  # what the app asks for at first
QUICK = RECIPES["quick-photographs"]
BARE = (BinaryCrossEntropy, SoftmaxUniform)  # of these only scores and labels: the quasibinary run knows the same rows


def demo_runs() -> list[Run]:
    """The runs that ship, in the order the app lists them."""
    garden, meadow = load_dataset("garden", **SIZES), load_dataset("meadow", **SIZES)
    return [
        QUICK.run(garden, loss=CrossEntropy()),
        QUICK.run(garden, loss=NoisedTopK(K=3, epsilon=0.9)),
        QUICK.run(garden, loss=AverageKTwoHead(K=3, alpha=0.2)),
        QUICK.run(meadow, loss=Quasibinary()),
        QUICK.run(meadow, loss=BinaryCrossEntropy()),
        QUICK.run(meadow, loss=SoftmaxUniform()),
    ]


def write_rounded(trained: TrainedRun, store: Store) -> None:
    """Writes a trained run in half precision; its scores and features are those of the rounded weights."""
    from workbench.training.learner import Learner

    weights = stored_weights(trained.stored)
    rounded = {name: _rounded(value) for name, value in weights.items()}
    learner = Learner(trained.run, store)
    learner.load(rounded)
    tables = {name: _small(table) for name, table in learner.tables(torch.device("cpu")).items()}
    if isinstance(trained.run.loss, BARE):
        tables = {name: _bare(table) for name, table in tables.items()}
    history = trained.history.to_dict("records")
    with store.writing(trained.run.key, replace=True) as directory:
        former = [trained.run.former_key]  # so that links to runs of an earlier version still open
        write_run(directory, trained.run, rounded, history, tables, rounded="float16", formerly=former)


def _rounded(value: Tensor) -> Tensor:
    return value.half() if value.is_floating_point() else value


def _small(table: LogitTable) -> LogitTable:
    """The table in half precision; a posterior in single, where its rows still sum to 1."""

    def rounded(values: np.ndarray | None, dtype: type) -> np.ndarray | None:
        return None if values is None else values.astype(dtype)

    return dataclasses.replace(
        table,
        scores=table.scores.astype(np.float16),
        features=rounded(table.features, np.float16),
        posterior=rounded(table.posterior, np.float32),
    )


def _bare(table: LogitTable) -> LogitTable:
    return dataclasses.replace(table, features=None, posterior=None, attributes=None, class_counts=None)


def write_plane(run: Run, demo: Store, elsewhere: Store) -> None:
    """Computes the plane of a demo run that the app shows first, and keeps it with the demo runs."""
    trained = TrainedRun(run, demo.open(run.key))
    weight_plane(trained, steps=PLANE_STEPS, rows=PLANE_ROWS, seed=PLANE_SEED, store=elsewhere)
    plane = Plane.through(trained.stored, rows=PLANE_ROWS, seed=PLANE_SEED)
    plane.keep(plane.known(elsewhere), demo)


def main() -> None:
    """Train every demo run anew and replace what is in `workbench/demo`."""
    runs, demo = demo_runs(), Store(DEMO)
    shutil.rmtree(DEMO / PLANES.folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for run in runs:
            write_rounded(train(run, store=Store(folder), again=True), demo)
            write_plane(run, demo, Store(folder))
    kept = {DEMO / PLANES.folder, *(DEMO / run.key for run in runs)}
    for leftover in {path for path in DEMO.iterdir() if path.is_dir()} - kept:
        shutil.rmtree(leftover)
    for run in runs:
        n_bytes = sum(path.stat().st_size for path in (DEMO / run.key).rglob("*") if path.is_file())
        print(f"{n_bytes / 1e6:.2f} MB  {run.title}")


if __name__ == "__main__":
    main()
