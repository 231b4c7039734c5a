"""The training pictures of a class that a network finds most similar to a row.

They let a person check a suggested class by eye, as the Pl@ntNet application does (Garcin, thesis, Fig. 1.6). Similar
means near in the features of the network. A worker computes the features of all training pictures once for each run; they lie
in the store beside those that heads are trained on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pandas as pd

from workbench.files.cache import FEATURES, FEATURES_OF_RUNS
from workbench.store import Store, StoredRun
from workbench.store.lru_store import LRUStore
from workbench.workers.client import FAILED, Worker

FILE = "features.json"  # in the store: the key under which the features of a run's data lie


def most_similar(
    features: np.ndarray, training: np.ndarray, labels: np.ndarray, classes: Iterable[int], most: int = 5
) -> pd.DataFrame:
    r"""The training rows of some classes that are nearest to a row: `class`, `rank` from 1, `row`, `distance`.

    $$\lVert \varphi(x) - \varphi(x_i) \rVert_2, \qquad y_i = j$$

    `features` (d,) are those of the row, `training` (m, d) and `labels` (m,), or (m, L) bool, those of the training rows,
    which may lie on disk: only the rows of the classes are read.

    >>> most_similar(np.array([0.0]), np.array([[3.0], [1.0], [2.0], [0.0]]), np.array([0, 0, 0, 1]), [0], most=2)
       class  rank  row  distance
    0      0     1    1       1.0
    1      0     2    2       2.0
    """
    if training.ndim != 2 or features.shape != training.shape[1:]:
        raise ValueError(
            f"a row has features of shape {features.shape} and the training rows {training.shape}; "
            "give (d,) and (m, d) of the same network"
        )
    found = []
    for member in classes:
        rows = np.flatnonzero(labels[:, member] if labels.ndim == 2 else labels == member)
        distances = np.linalg.norm(training[rows].astype(np.float64) - features.astype(np.float64), axis=1)
        nearest = np.argsort(distances, kind="stable")[:most]
        about = {"class": member, "rank": np.arange(1, len(nearest) + 1)}
        found.append(pd.DataFrame({**about, "row": rows[nearest], "distance": distances[nearest]}))
    if not found:
        return pd.DataFrame({"class": [], "rank": [], "row": [], "distance": []})
    return pd.concat(found, ignore_index=True)


def can_be_seen(run: StoredRun) -> bool:
    """Whether the training pictures of a run can be looked at through its network: it has one, and data to repeat."""
    return run.has_weights and run.record.repeatable


def training_features(run: StoredRun, store: Store | None = None) -> np.ndarray | None:
    """(m, d) the features of the training rows of a run, memory-mapped; None until they are computed."""
    store = store or Store()
    noted = FEATURES_OF_RUNS.files(store, run.key, [FILE])
    if noted is None:
        return None
    key = json.loads(noted[FILE].read_text(encoding="utf-8"))["key"]
    kept = FEATURES.arrays(store, key, ["train"])
    return None if kept is None else kept["train"]


def compute_training_features(run: StoredRun, store: Store | None = None) -> None:
    """Compute the features of the training rows of a run in a worker process, unless they are there already."""
    store = store or Store()
    if training_features(run, store) is not None:
        return
    worker = Worker(LRUStore(store), once=True)
    worker.compute_features(run.key)
    ended = worker.wait()
    if ended.state == FAILED:
        raise OSError(f"the features of the training rows of {run.title} could not be computed: {ended.message}")
