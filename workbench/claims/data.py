"""The data on which claims are tried: what ships, what the garden draws, and real features and votes from a folder."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from workbench.claims.claim import Bench
from workbench.datasets import Dataset, load_dataset
from workbench.datasets.plants.garden import Garden
from workbench.losses import CrossEntropy
from workbench.store import DEMO, Store
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun
from workbench.training.demo_runs import SIZES
from workbench.training.features import cache_features

CIFAR_FEATURES, CIFAR_LOGITS = "cifar100_resnet32_features.npz", "cifar100_resnets_logits.npz"
CIFAR10_MODELS, CIFAR10_VOTES = "cifar10_models_logp.npz", "cifar10h_counts.npz"
MANY_LABELS = {name: f"ml_{name}.npz" for name in ("yeast", "scene", "emotions")}
CIFAR_IMAGES = "cifar100_images_small.npz"
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


@dataclass(frozen=True)
class Memorised:
    """Data and the network that memorises them: a run at the usual rate, and the rates that each loss chooses from.

    A rate is chosen with the first `tuned_on` seeds.
    """

    name: str
    run: Run
    rates: tuple[float, ...]
    seeds: int = 5
    tuned_on: int = 1


def memorised(bench: Bench, name: str) -> Memorised:
    """One of the data sets of claims that memorise; every run keeps the epochs that are best on val in top-5 and average-5."""
    if name == LETTERS:
        return letters_memorised()
    return _of_images(name, cifar_images(bench.file(CIFAR_IMAGES)) if name == CIFAR_100 else small_garden())


def data_to_try(bench: Bench) -> tuple[str, ...]:
    """Letters, and images: CIFAR-100 where its file is given, the garden where not; or those of them that the bench names.

    Raises:
        ValueError: If the bench names a data set that is not among them.
    """
    known = (LETTERS, CIFAR_100 if bench.has(CIFAR_IMAGES) else GARDEN)
    if unknown := [name for name in bench.only if name not in known]:
        raise ValueError(
            f"there is no data set {unknown[0]!r} here; there are {', '.join(known)} (CIFAR-100 with --data)"
        )
    return tuple(name for name in known if name in (bench.only or known))


LETTERS, CIFAR_100, GARDEN = "letters", "CIFAR-100", "garden"
WATCHED = ("top_k_accuracy@K=5", "average_k_accuracy@K=5")
IMAGES_PER_CLASS = (30, 25, 25)  # of CIFAR-100 to train, to choose and to judge


def letters_memorised() -> Memorised:
    run = Run(few_letters(), model="mlp", epochs=100, batch_size=64, learning_rate=3e-3, monitor=WATCHED)
    return Memorised(LETTERS, run, (1e-3, 3e-3, 1e-2))


def _of_images(name: str, data: Dataset) -> Memorised:
    run = Run(
        data,
        model="vgg5",
        epochs=28,
        batch_size=64,
        optimizer="sgd",
        learning_rate=0.1,
        schedule="steps",
        milestones=(20 / 28,),  # by then the training rows are fitted
        channels_last=True,
        monitor=WATCHED,
    )
    return Memorised(name, run, (0.03, 0.1, 0.3))


@lru_cache(maxsize=4)
def few_letters(n_train: int = 1000) -> Dataset:
    """Some letters to train, 2 013 to choose and 6 013 to judge; five neighbours of the alphabet are a group, U to Z six."""
    data, rng = load_dataset("letters"), np.random.default_rng(0)
    order = rng.permutation(data.train.n)
    judged, learnt = order[1000:5000], np.delete(order, slice(1000, 5000))[:n_train]
    parts = [data.train.rows(np.sort(learnt)), data.val, data.test, data.train.rows(np.sort(judged))]
    groups = [f"letters {min(place // 5, 4) + 1}" for place in range(data.n_classes)]
    return Dataset.from_arrays(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
        class_names=list(data.class_names),
        groups=groups,
        split=np.repeat(["train", "val", "test", "test"], [part.n for part in parts]),
    )


@lru_cache(maxsize=1)
def cifar_images(path: Path) -> Dataset:
    """Images of CIFAR-100 halved to 16 pixels, 30 of each class to train, 25 to choose and 25 to judge."""
    with np.load(path, allow_pickle=False) as held:
        images, labels = {}, {}
        for part in ("train", "test"):
            images[part], labels[part] = held[f"X_{part}"], held[f"y_{part}"].astype(np.int64)
        names, groups = held["classes"].tolist(), held["superclasses"][held["superclass"]].tolist()
    train, val, test = IMAGES_PER_CLASS
    rows = {"train": _of_each_class(labels["train"], 0, train), "val": _of_each_class(labels["test"], 0, val)}
    rows["test"] = _of_each_class(labels["test"], val, val + test)
    source = {"train": "train", "val": "test", "test": "test"}
    return Dataset.from_arrays(
        halved(np.concatenate([images[source[split]][of] for split, of in rows.items()])),
        np.concatenate([labels[source[split]][of] for split, of in rows.items()]),
        class_names=names,
        groups=groups,
        split=np.repeat(list(rows), [len(of) for of in rows.values()]),
    )


def _of_each_class(labels: np.ndarray, first: int, last: int) -> np.ndarray:
    """Places of the rows first to last of every class."""
    return np.concatenate([np.flatnonzero(labels == label)[first:last] for label in np.unique(labels)])


@lru_cache(maxsize=1)
def small_garden() -> Dataset:
    """Photographs of the garden halved to 24 pixels: 1 500 to train, 1 000 to choose and 3 000 to judge; groups are genera."""
    garden = load_dataset("garden", n_train=1500, n_val=1000, n_test=3000)
    parts = {split: getattr(garden, split) for split in ("train", "val", "test")}
    return Dataset.from_arrays(
        halved(np.concatenate([part.inputs for part in parts.values()])),
        np.concatenate([part.labels for part in parts.values()]),
        class_names=list(garden.class_names),
        groups=list(garden.groups or ()),
        split=np.repeat(list(parts), [part.n for part in parts.values()]),
    )


def halved(images: np.ndarray) -> np.ndarray:
    """Images (n, H, W, C) of half the height and width: means of 2 × 2 pixels.

    >>> halved(np.array([[[[0], [4]], [[8], [12]]]], dtype=np.uint8)).tolist()
    [[[[6]]]]
    """
    n, height, width, channels = images.shape
    blocks = images.reshape(n, height // 2, 2, width // 2, 2, channels)
    means: np.ndarray = np.round(blocks.mean((2, 4))).astype(np.uint8)
    return means


def meadow_rows(bench: Bench) -> Dataset:
    """Photographs of 0 to 3 plants as features of the garden's network, which favours none of the losses of many labels."""
    meadow = load_dataset("meadow", **SIZES)
    return cache_features(meadow, TrainedRun.open(_backbone(), bench.store), store=bench.store, progress=bench.progress)


def many_labels(path: Path) -> Dataset:
    """Rows with many labels from a file with X and Y, standardised, 60 % to train and 20 % each to choose and to judge."""
    with np.load(path, allow_pickle=False) as held:
        X, Y = held["X"].astype(np.float32), held["Y"].astype(bool)
    order = np.random.default_rng(0).permutation(len(X))
    split = np.empty(len(X), dtype="<U5")
    for name, rows in zip(("train", "val", "test"), np.split(order, [6 * len(X) // 10, 8 * len(X) // 10]), strict=True):
        split[rows] = name
    train = X[split == "train"]
    return Dataset.from_arrays((X - train.mean(0)) / np.maximum(train.std(0), 1e-6), Y, split=split)


@lru_cache(maxsize=4)
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
    of_garden = (run for run in Store(DEMO).runs() if run.record.data_name == "garden")
    return next(run.key for run in of_garden if run.record.loss == CrossEntropy().spec())


@lru_cache(maxsize=1)
def _garden() -> Dataset:
    return load_dataset("garden", **SIZES)


def garden_prior() -> np.ndarray:
    """(species,) how common each species of the garden is."""
    prior: np.ndarray = Garden(n_val=SIZES["n_val"], n_test=SIZES["n_test"]).flora.prior
    return prior


def demo_tables() -> dict[str, LogitTable]:
    """Validation and test rows of the demo's network of the garden that was trained with cross-entropy."""
    return dict(Store(DEMO).open(_backbone()).tables)
