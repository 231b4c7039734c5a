"""Small data, and small runs on them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import safetensors.numpy
import torch

from workbench.datasets import Dataset
from workbench.training import Run, TrainedRun


def clouds(n: int = 400, n_classes: int = 6, seed: int = 0, spread: float = 1.0, n_columns: int = 5) -> Dataset:
    """Rows around one centre per class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    rows = 2 * rng.normal(size=(n_classes, n_columns))[labels] + spread * rng.normal(size=(n, n_columns))
    return Dataset.from_arrays(rows, labels, name="clouds", groups=[f"group {j // 2}" for j in range(n_classes)])


def stripes(n: int = 120) -> Dataset:
    """Small photographs whose class is the place of a bright stripe."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    images = rng.integers(0, 60, (n, 28, 28, 3), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[8 * label : 8 * label + 8] += 150
    return Dataset.from_arrays(images, labels, name="stripes")


def tags(n: int = 300, n_classes: int = 4) -> Dataset:
    """Rows with no label, one or several: class j is there when column j is positive."""
    rows = np.random.default_rng(0).normal(size=(n, n_classes))
    return Dataset.from_arrays(rows, rows > 0.3, name="tags")


CLOUDS = clouds()


def small(dataset: Dataset = CLOUDS, **fields) -> Run:
    return Run(dataset, **{"model": "linear", "epochs": 3, "batch_size": 64, "device": "cpu", **fields})


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Torch may use n threads, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(n)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def weights(trained: TrainedRun) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(trained.path / "weights.safetensors")


def assert_same_weights(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)
