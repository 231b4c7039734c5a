"""Builds the runs that ship with the package: `make demo`, or `python -m workbench.training.demo_runs [--missing]`.

They are trained by `train` as any run, then rounded to half precision so that they are small: the weights first, and the
scores and features are those of the rounded weights. Photographs are not stored; they are drawn again from the seed. The
published network of symbols is not trained but taken as it is.
"""

from __future__ import annotations

import dataclasses
import shutil
import sys
import tempfile
from typing import Any

import numpy as np
import torch
from torch import Tensor

from workbench.datasets import load_dataset
from workbench.files.cache import MAPS, PLANES
from workbench.losses import (
    AverageKTwoHead,
    BinaryCrossEntropy,
    CrossEntropy,
    LogitAdjustment,
    NoisedTopK,
    Quasibinary,
    SoftmaxUniform,
)
from workbench.metrics.row_map import positions
from workbench.runs.recipes import RECIPES
from workbench.store import DEMO, Store
from workbench.store.planes import Plane
from workbench.tables import LogitTable
from workbench.training.features import stored_weights
from workbench.training.trainer import Run, TrainedRun, train, write_run
from workbench.training.weight_planes import weight_plane

SIZES = {"n_val": 1000, "n_test": 3000}  # half of the usual: the package must stay small
PLANE_STEPS, PLANE_ROWS, PLANE_SEED = 9, 500, 0  # what the app asks for at first
NAMES = {"n_val": 250, "n_test": 600}  # strings: about 370 and 910 rows, of 308 classes
SYMBOLS = {"n_train": 200, "n_val": 200, "n_test": 300, "classes": "all"}
QUICK = RECIPES["quick-photographs"]
TEXT: dict[str, Any] = {"model": "linear", "epochs": 3, "batch_size": 1024, "learning_rate": 1e-2}  # of 134 000 names
BARE = (BinaryCrossEntropy, SoftmaxUniform)  # of these only scores and labels: the quasibinary run knows the same rows


def demo_runs() -> list[Run]:
    """The runs that ship, in the order the app lists them."""
    garden, meadow = load_dataset("garden", **SIZES), load_dataset("meadow", **SIZES)
    names, symbols = load_dataset("names", **NAMES), load_dataset("symbols", **SYMBOLS)
    return [
        QUICK.run(garden, loss=CrossEntropy()),
        QUICK.run(garden, loss=NoisedTopK(K=3, epsilon=0.9)),
        QUICK.run(garden, loss=AverageKTwoHead(K=3, alpha=0.2)),
        QUICK.run(meadow, loss=Quasibinary()),
        QUICK.run(meadow, loss=BinaryCrossEntropy()),
        QUICK.run(meadow, loss=SoftmaxUniform()),
        Run(symbols, model="symbols-mlp", loss=CrossEntropy(), epochs=0),
        *(Run(names, loss=loss, **TEXT) for loss in (CrossEntropy(), NoisedTopK(K=5), LogitAdjustment())),
    ]


def write_rounded(trained: TrainedRun, store: Store) -> None:
    """Writes a trained run in half precision; its scores and features are those of the rounded weights."""
    from workbench.training.learner import Learner

    weights = stored_weights(trained.stored)
    rounded = {name: _rounded(value) for name, value in weights.items()}
    learner = Learner(trained.run, store)
    learner.load(rounded)
    tables = {name: _small(table) for name, table in learner.tables(torch.device("cpu")).items()}
    if len(trained.run.data.input_shape) < 3:  # features of rows of numbers are computed in no time
        tables = {name: dataclasses.replace(table, features=None) for name, table in tables.items()}
    if trained.run.epochs == 0:  # training rows of another program say nothing of what the network has seen
        tables = {name: dataclasses.replace(table, class_counts=None) for name, table in tables.items()}
    if isinstance(trained.run.loss, BARE):
        tables = {name: _bare(table) for name, table in tables.items()}
    history = trained.history.to_dict("records")
    with store.writing(trained.run.key, replace=True) as directory:
        write_run(directory, trained.run, rounded, history, tables, rounded="float16")


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
    plane.keep(plane.points(elsewhere), demo)


def write_map(run: Run, demo: Store) -> None:
    """Computes the map of the test rows of a demo run that takes a minute, and keeps it with the demo runs."""
    positions(demo.open(run.key), "t-SNE", demo)


def main() -> None:
    """Train every demo run anew and replace what is in `workbench/demo`; with `--missing`, those that are not there."""
    runs, demo, missing = demo_runs(), Store(DEMO), sys.argv[1:] == ["--missing"]
    if not missing:
        for cache in (PLANES, MAPS):
            shutil.rmtree(DEMO / cache.folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        for run in [run for run in runs if not (missing and demo.has(run.key))]:
            write_rounded(train(run, store=Store(folder), force=True), demo)
            write_plane(run, demo, Store(folder))
            write_map(run, demo)
    kept = {DEMO / PLANES.folder, DEMO / MAPS.folder, *(DEMO / run.key for run in runs)}
    for leftover in {path for path in DEMO.iterdir() if path.is_dir()} - kept:
        shutil.rmtree(leftover)
    for run in runs:
        n_bytes = sum(path.stat().st_size for path in (DEMO / run.key).rglob("*") if path.is_file())
        print(f"{n_bytes / 1e6:.2f} MB  {run.title}")


if __name__ == "__main__":
    main()
