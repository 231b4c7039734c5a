"""Training a run once: `train`."""

from __future__ import annotations

import json
import platform
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import safetensors.torch
import torch
from torch import Tensor

import workbench
from workbench.runs import FORMAT, MONITORS, Run, TrainedRun
from workbench.store import Store
from workbench.tables import LogitTable
from workbench.weight_planes import weight_plane

__all__ = ["MONITORS", "Cancelled", "Run", "TrainedRun", "train", "weight_plane", "write_run"]


class Cancelled(Exception):
    """Raised by `on_epoch` to stop training: nothing is kept but the last checkpoint, if there is one."""


def train(
    run: Run,
    *,
    store: Store | None = None,
    progress: bool = True,
    again: bool = False,
    on_epoch: Callable[[dict[str, float]], None] | None = None,
) -> TrainedRun:
    """Train a run, or read it from the store if it was trained before (`again` trains it anew).

    A run that was interrupted goes on from its last checkpoint. The demo runs that ship with the package count as
    trained; their weights are rounded to half precision. `on_epoch` gets the row of the history of each epoch that is
    trained, as soon as it ends, and may raise `Cancelled`, which stops the run and comes out of `train`.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> trained = train(Run("digits", model="linear", epochs=3, device="cpu"), store=store, progress=False)
    >>> sorted(trained.tables), len(trained.history)
    (['test', 'val'], 3)
    """
    store = Store() if store is None else store
    if store.has(run.key) and not again:
        return TrainedRun(run, store.open(run.key))
    _check_labels(run)
    from workbench import fitting, learning  # Lightning takes seconds to import, and a stored run does without

    checkpoint = store.unfinished(run.key)
    with store.explained():  # better to fail now than after the first epoch
        checkpoint.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=checkpoint.parent).close()
    learner = learning.Learner(run, store, on_epoch)
    device = fitting.fit(learner, progress=progress)
    with store.writing(run.key, replace=again) as directory:
        write_run(directory, run, learner.weights(), learner.history, learner.tables(device))
    checkpoint.unlink(missing_ok=True)
    return TrainedRun(run, store.open(run.key))


def write_run(
    directory: Path,
    run: Run,
    weights: Mapping[str, Tensor],
    history: Sequence[Mapping[Any, float]],
    tables: Mapping[str, LogitTable],
    **facts: Any,
) -> None:
    """Fills a run directory."""
    info = {
        "format": FORMAT,
        "title": run.title,
        **run.described(),
        "repeatable": isinstance(run.model, str) and run.data.spec is not None,
        "input_shape": run.data.input_shape,
        "n_classes": run.data.n_classes,
        "kept_epoch": run.best_epoch(history),
        "versions": {
            "workbench": workbench.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **facts,
    }
    (directory / "run.json").write_text(json.dumps(info, indent=1, ensure_ascii=False), encoding="utf-8")
    (directory / "weights.safetensors").write_bytes(safetensors.torch.save(dict(weights)))
    pd.DataFrame(history).to_csv(directory / "history.csv", index=False)
    for name, table in tables.items():  # a table's folder comes before those inside it
        table.save(directory / name)


def _check_labels(run: Run) -> None:
    if run.data.many_labels and run.loss.labels == "one" and not run.loss.also_many_labels:
        raise ValueError(
            f"{run.data.name} has rows with several labels or none, and {type(run.loss).__name__} reads one label per row; "
            "use a loss of many labels (`workbench losses` says which)"
        )
