"""Precomputed results of "Head or tail" on real data, because training takes a minute.

`make demo`, or `python -m workbench.teaching.shipped_tail`, measures them anew.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from workbench.metrics.along_slider import at_places
from workbench.sets import AverageK, PredictionSets
from workbench.tables import LogitTable
from workbench.warning_capture import captured_warnings

FILE = Path(__file__).with_name("tail.npz")
TAUS, SIZES = tuple(round(0.1 * step, 1) for step in range(11)), (2, 3, 5)
NAMES = {"n_val": 10_000, "n_test": 30_000, "dimensions": 1024}  # many test rows, for the rare languages
TRAINING: dict[str, Any] = {"model": "linear", "epochs": 10, "batch_size": 1024}
LEARNING_RATES = (0.001, 0.003, 0.01)  # that of the lowest loss on validation rows is taken
PLACES = ("mean_size", "accuracy", "class_hits", "class_rows")  # what is kept of every position


def average_k_sets(val: LogitTable, test: LogitTable) -> list[PredictionSets]:
    """The average-K sets of every mean size and every τ, which moves fastest."""
    with captured_warnings():  # some sets are empty, on purpose
        return [AverageK(K, tau=tau).fit(val)(test) for K, tau in product(SIZES, TAUS)]


def shipped_tail() -> tuple[list[str], np.ndarray, dict[str, Any]]:
    """Names, training rows and results at every position for the languages of `names`."""
    with np.load(FILE, allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    places = {name: arrays[name] for name in PLACES}
    return arrays["languages"].tolist(), arrays["class_counts"], {"n": int(places["class_rows"].sum()), **places}


def measured() -> dict[str, np.ndarray]:
    """Train a linear model of hashed n-grams on `names` and evaluate its sets."""
    import workbench as wb

    data = wb.load_dataset("names", **NAMES)
    trained = [wb.train(wb.Run(data, learning_rate=rate, **TRAINING), progress=False) for rate in LEARNING_RATES]
    best = min(trained, key=lambda each: float(each.history["val_loss"].iloc[-1]))
    test = best.tables["test"]
    found = at_places(average_k_sets(best.tables["val"], test))
    languages = {"languages": np.array(test.named_classes()), "class_counts": np.asarray(test.class_counts)}
    return {**languages, **{name: found[name] for name in PLACES}}


if __name__ == "__main__":
    np.savez_compressed(FILE, **measured())  # type: ignore[arg-type]  # numpy's stub takes allow_pickle among the arrays
