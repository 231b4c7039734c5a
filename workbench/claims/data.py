"""The data on which claims are tried: what ships, what the garden draws, and real features and votes from a folder."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workbench.claims.claim import Bench
from workbench.datasets import Dataset, load_dataset
from workbench.losses import CrossEntropy
from workbench.store import DEMO, Store
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun
from workbench.training.demo_runs import SIZES
from workbench.training.features import cache_features

CIFAR_FEATURES, CIFAR_LOGITS = "cifar100_resnet32_features.npz", "cifar100_resnets_logits.npz"
CIFAR10_MODELS, CIFAR10_VOTES = "cifar10_models_logp.npz", "cifar10h_counts.npz"
CIFAR = (CIFAR_FEATURES, CIFAR_LOGITS)  # the features, and the names of their classes
PER_CLASS = (50, 20, 30)  # rows of each class of CIFAR-100 to train, to choose and to judge


def garden_heads(**fields: Any) -> Run:
    """A linear head on the features of the garden that the demo's cross-entropy network gives: a long tail of 60 species."""
    settings = {"epochs": 30, "batch_size": 256, "learning_rate": 3e-3} | fields
    return Run(_garden(), model="cnn", features=_backbone(), **settings)


def garden_network(**fields: Any) -> Run:
    """The small network of the demo on fewer photographs of the garden, trained whole."""
    garden = load_dataset("garden", n_train=3000, **SIZES)
    return Run(garden, model="cnn", **{"epochs": 10, "batch_size": 32} | fields)


def letters(model: str, **fields: Any) -> Run:
    """Letters of 26 kinds, 16 numbers a row, 20 000 rows."""
    return Run("letters", model=model, **{"epochs": 30, "batch_size": 256, "learning_rate": 3e-3} | fields)


def cifar_heads(bench: Bench, **fields: Any) -> Run:
    """A linear head on features of CIFAR-100 that a published ResNet-32 computed, which never saw these rows."""
    settings = {"epochs": 30, "batch_size": 256, "learning_rate": 1e-3} | fields
    data = cifar_features(bench.file(CIFAR_FEATURES), bench.file(CIFAR_LOGITS))
    return Run(data, model="linear", **settings)


@lru_cache(maxsize=1)
def cifar_features(features: Path, logits: Path) -> Dataset:
    """10 000 rows of 256 numbers and 100 classes in 20 groups, divided class by class."""
    with np.load(features, allow_pickle=False) as held:
        X, y = held["feat"].astype(np.float32), held["y"].astype(np.int64)
    with np.load(logits, allow_pickle=False) as held:
        names, groups = held["classes"], held["superclasses"][held["superclass"]]
    rng, split = np.random.default_rng(0), np.empty(len(y), dtype="<U5")
    train, val, _ = PER_CLASS
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        split[rows[:train]], split[rows[train : train + val]], split[rows[train + val :]] = "train", "val", "test"
    return Dataset.from_arrays(X, y, class_names=names.tolist(), groups=groups.tolist(), split=split)


def meadow_rows(bench: Bench) -> Dataset:
    """Photographs of 0 to 3 plants as features of the garden's network, which favours none of the losses of many labels."""
    meadow = load_dataset("meadow", **SIZES)
    return cache_features(meadow, TrainedRun.open(_backbone(), bench.store), store=bench.store, progress=bench.progress)


@lru_cache(maxsize=3)
def prototypes(n_classes: int) -> Dataset:
    """Clouds around random points of a sphere in 64 dimensions: as hard as one likes, with as many classes as one likes."""
    rng, per_class, width = np.random.default_rng(0), 40, 64
    centres = rng.standard_normal((n_classes, width))
    centres *= np.sqrt(width) / np.linalg.norm(centres, axis=1, keepdims=True)
    y = np.repeat(np.arange(n_classes), per_class)
    X = centres[y] + 1.5 * rng.standard_normal((len(y), width))
    split = np.tile(np.repeat(["train", "val", "test"], (20, 10, 10)), n_classes)
    return Dataset.from_arrays(X.astype(np.float32), y, split=split)


def _backbone() -> str:
    """The key of the demo's network of the garden that was trained with cross-entropy."""
    return next(run.key for run in Store(DEMO).runs() if run.record.loss == CrossEntropy().spec())


@lru_cache(maxsize=1)
def _garden() -> Dataset:
    return load_dataset("garden", **SIZES)


def demo_tables() -> dict[str, LogitTable]:
    """Validation and test rows of the demo's network of the garden that was trained with cross-entropy."""
    return dict(Store(DEMO).open(_backbone()).tables)
