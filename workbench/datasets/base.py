"""What a dataset is: three named splits, the names of its classes, and P(y|x) where it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.datasets.image_files import ImageFiles
from workbench.datasets.splitting import divided
from workbench.decimals import whole

Inputs = np.ndarray | ImageFiles

SMALLEST_CLASS = 4  # fewer rows cannot give one to val, one to test and two to training
SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one split: what a model sees, what is written down, and what else is known of each row.

    `inputs` are images, uint8 (n, H, W, 1) or (n, H, W, 3), which may stay in their files until they are indexed, or
    rows of features, float32 (n, d). `labels` are class indices, int64 (n,), or, where a row has several labels or none,
    bool (n, L). `posterior` is the true P(y|x), (n, L), of data drawn from a known law. `attributes` are facts of a row
    to group by: organ, author, place.
    """

    inputs: Inputs
    labels: np.ndarray
    posterior: np.ndarray | None = None
    attributes: Mapping[str, np.ndarray] | None = None

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.inputs)

    def rows(self, index: Any) -> Split:
        """The chosen rows, as a split: `index` is a slice, a mask or an array of row numbers."""
        inputs = self.inputs
        return Split(
            inputs.rows(index) if isinstance(inputs, ImageFiles) else inputs[index],
            self.labels[index],
            None if self.posterior is None else self.posterior[index],
            None if self.attributes is None else {name: values[index] for name, values in self.attributes.items()},
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """Three splits of rows with the names of their classes.

    `groups` names the group of each class (the genus of a species), `class_counts` counts its training rows. `key` is
    the sha256 of the content (or of the recipe that fixes the content, for data that a program draws), so that the same
    data has the same key wherever it is loaded. `spec` is enough to load the dataset again, `load_spec(spec)`; it is None
    for arrays that somebody brought.
    """

    name: str
    train: Split
    val: Split
    test: Split
    class_names: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    spec: dict[str, Any] | None = None
    key: str = ""
    class_counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(str(name) for name in self.class_names))
        if self.groups is not None:
            object.__setattr__(self, "groups", tuple(str(group) for group in self.groups))
            _check_groups(self.groups, self.n_classes, self.name)
        for split_name in SPLITS:
            self._check(split_name, getattr(self, split_name))
        many = self.train.labels.ndim == 2
        counts = self.train.labels.sum(axis=0) if many else np.bincount(self.train.labels, minlength=self.n_classes)
        missing = np.flatnonzero(counts == 0)
        if missing.size:
            raise ValueError(
                f"{self.name}: no training row for {_listed([self.class_names[j] for j in missing])}; "
                "a class that is never seen in training cannot be learnt: add rows or leave the class out"
            )
        object.__setattr__(self, "class_counts", counts.astype(np.int64))
        if not self.key:
            object.__setattr__(self, "key", _content_key(self))

    @property
    def n_classes(self) -> int:
        """L, the number of classes."""
        return len(self.class_names)

    @property
    def many_labels(self) -> bool:
        """True when a row may have several labels or none: labels are (n, L) bool."""
        return self.train.labels.ndim == 2

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of one input: (H, W, channels) of an image, (d,) of a row of features."""
        return self.train.inputs.shape[1:]

    def __repr__(self) -> str:
        shape = " × ".join(str(side) for side in self.input_shape)
        sizes = " / ".join(f"{split.n:,}".replace(",", " ") for split in (self.train, self.val, self.test))
        labels = ", many labels" if self.many_labels else ""
        return f"Dataset({self.name!r}: {sizes} rows of {shape}, {self.n_classes} classes{labels})"

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike | ImageFiles,
        y: ArrayLike,
        class_names: Sequence[str] | None = None,
        groups: Sequence[str] | None = None,
        seed: int = 0,
        drop_small: bool = False,
        attributes: Mapping[str, ArrayLike] | None = None,
        name: str = "arrays",
        spec: dict[str, Any] | None = None,
    ) -> Dataset:
        """Your own arrays, split 80/10/10 inside each class by the rule of Pl@ntNet-300K.

        Of the n_j rows of class j, ⌈0.1·n_j⌉ go to val, ⌈0.1·n_j⌉ to test and the rest to training, at random from
        `seed`. A class with fewer than 4 rows is refused, or left out when `drop_small` is set (the classes that stay
        are then numbered anew). Rows with many labels have no class to be split by: ⌈0.1·n⌉ of all rows each.

        X is (n, d) numbers, or uint8 images (n, H, W, 1) or (n, H, W, 3), or `ImageFiles`; y is (n,) class indices or
        (n, L) bool.

        >>> data = Dataset.from_arrays(np.eye(20), np.arange(20) % 2, class_names=["even", "odd"])
        >>> data
        Dataset('arrays': 16 / 2 / 2 rows of 20, 2 classes)
        >>> data.class_counts.tolist()
        [8, 8]

        Garcin, thesis, section 3.2.2 (construction of Pl@ntNet-300K).
        """
        inputs, labels, seed = _checked_inputs(X), _checked_labels(y), whole("seed", seed, least=0)
        if len(inputs) != len(labels):
            raise ValueError(f"X has {len(inputs)} rows and y has {len(labels)}; give one label per row")
        if len(inputs) == 0:
            raise ValueError("X has no rows; a dataset needs some")
        if attributes is not None and not isinstance(attributes, Mapping):
            raise ValueError(f"attributes = {attributes!r}; give {{name: one value per row}}")
        columns = {key: np.asarray(values) for key, values in (attributes or {}).items()}
        n_classes = labels.shape[1] if labels.ndim == 2 else max(int(labels.max()) + 1, len(class_names or ()))
        names = tuple(f"class {j}" for j in range(n_classes)) if class_names is None else tuple(class_names)
        _check_range(labels, len(names), "y")
        if groups is not None:
            _check_groups(groups, len(names), name)
        everything = Split(inputs, labels, attributes=columns or None)
        _check_attributes(everything, "attributes")
        if labels.ndim == 1:
            everything, names, groups = _without_small_classes(everything, names, groups, drop_small)
        train, val, test = (everything.rows(part) for part in divided(everything.labels, len(names), seed))
        return cls(name, train, val, test, names, None if groups is None else tuple(groups), spec)

    def transformed(self, *transforms: Callable[[Dataset], Dataset]) -> Dataset:
        """This dataset after each of the transforms in turn; name, key and spec of the result tell of them."""
        dataset = self
        for transform in transforms:
            if not callable(transform):
                raise ValueError(f"{transform!r} is no transform; give some such as LabelNoise(0.2), with the brackets")
            dataset = transform(dataset)
        return dataset

    def _check(self, split_name: str, split: Split) -> None:
        where = f"{self.name}, {split_name}"
        if split.n == 0:
            raise ValueError(f"{where}: the split is empty; every split needs at least one row")
        inputs, labels = split.inputs, split.labels
        images = inputs.ndim == 4 and inputs.dtype == np.uint8 and inputs.shape[-1] in (1, 3)
        if not images and not (inputs.ndim == 2 and inputs.dtype == np.float32):
            raise ValueError(
                f"{where}: inputs are {inputs.dtype} of shape {inputs.shape}; "
                "give uint8 images (n, H, W, 1 or 3) or float32 rows (n, d)"
            )
        if isinstance(inputs, np.ndarray) and not images and not np.isfinite(inputs).all():
            raise ValueError(f"{where}: inputs hold NaN or infinite numbers; fill or drop those rows first")
        if inputs.shape[1:] != self.input_shape:
            raise ValueError(f"{where}: inputs have shape {inputs.shape[1:]}, those of train {self.input_shape}")
        many = labels.dtype == np.bool_ and labels.shape == (split.n, self.n_classes)
        if not many and not (labels.dtype == np.int64 and labels.shape == (split.n,)):
            raise ValueError(
                f"{where}: labels are {labels.dtype} of shape {labels.shape}; "
                f"give ({split.n},) int64 or ({split.n}, {self.n_classes}) bool"
            )
        if labels.ndim != self.train.labels.ndim:
            raise ValueError(f"{where}: labels have {labels.ndim} axes, those of train {self.train.labels.ndim}")
        _check_range(labels, self.n_classes, where)
        if split.posterior is not None:
            _check_posterior(split.posterior, (split.n, self.n_classes), many, where)
        _check_attributes(split, where)


def recipe_key(recipe: Mapping[str, Any]) -> str:
    """The sha256 of what fixes the content of a drawn dataset: its name, its version, its knobs."""
    return hashlib.sha256(json.dumps(recipe, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _content_key(dataset: Dataset) -> str:
    digest = hashlib.sha256(json.dumps([dataset.class_names, dataset.groups]).encode())
    for split_name in SPLITS:
        split = getattr(dataset, split_name)
        for array in (split.inputs, split.labels):
            digest.update(f"{split_name} {array.dtype.str} {array.shape}".encode())
            images = isinstance(array, ImageFiles)
            digest.update(array.digest().encode() if images else np.ascontiguousarray(array).data)
        # Tables tell of these too. A dataset without them has the key it always had.
        if split.posterior is not None:
            digest.update(f"posterior {split.posterior.dtype.str}".encode() + split.posterior.tobytes())
        if split.attributes:
            columns = {name: values.tolist() for name, values in split.attributes.items()}
            digest.update(json.dumps(columns, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _checked_inputs(X: ArrayLike | ImageFiles) -> Inputs:
    if isinstance(X, ImageFiles):
        return X
    inputs = np.asarray(X)
    if inputs.ndim == 4 and inputs.shape[-1] in (1, 3):
        if inputs.dtype != np.uint8:
            raise ValueError(
                f"X holds images as {inputs.dtype}; give uint8, 0 to 255 (np.uint8(255 * X) for X in [0, 1])"
            )
        return inputs
    if inputs.ndim != 2:
        raise ValueError(
            f"X has shape {inputs.shape}; give rows of numbers (n, d) or images (n, H, W, 1 or 3); "
            "X[..., None] adds the channel of grey images"
        )
    if not (np.issubdtype(inputs.dtype, np.number) or inputs.dtype == np.bool_) or np.iscomplexobj(inputs):
        raise ValueError(f"X is {inputs.dtype}; give real numbers")
    with np.errstate(over="ignore"):
        numbers = inputs.astype(np.float32)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
        if np.isfinite(inputs[row]).all():
            raise ValueError(
                f"X holds numbers beyond ±3.4e38, first in row {row}; divide its columns by their deviation"
            )
        raise ValueError(f"X holds NaN or infinite numbers, first in row {row}; fill or drop those rows first")
    return numbers


def _checked_labels(y: ArrayLike) -> np.ndarray:
    labels = np.asarray(y)
    if labels.ndim == 2 and labels.dtype == np.bool_:
        return labels
    if labels.ndim != 1 or not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(
            f"y is {labels.dtype} of shape {labels.shape}; give (n,) class indices or (n, L) bool; "
            "np.unique(y, return_inverse=True) numbers classes that have names"
        )
    return labels.astype(np.int64)


def _check_range(labels: np.ndarray, n_classes: int, where: str) -> None:
    if labels.ndim == 2:
        if labels.shape[1] != n_classes:
            raise ValueError(f"{where}: labels have {labels.shape[1]} columns for {n_classes} classes")
        return
    low, high = int(labels.min()), int(labels.max())
    if low < 0 or high >= n_classes:
        raise ValueError(f"{where}: labels go from {low} to {high}; with {n_classes} classes give 0 to {n_classes - 1}")


def _check_posterior(posterior: np.ndarray, shape: tuple[int, int], many: bool, where: str) -> None:
    if posterior.shape != shape:
        raise ValueError(f"{where}: the posterior has shape {posterior.shape}; give {shape}, one probability per class")
    inside = np.all((posterior >= 0) & (posterior <= 1))  # False for NaN too
    if not inside or not (many or np.allclose(posterior.sum(axis=1), 1, atol=1e-5)):
        raise ValueError(f"{where}: the posterior must be probabilities" + ("" if many else ", each row summing to 1"))


def _check_groups(groups: Sequence[str], n_classes: int, where: str) -> None:
    if len(groups) != n_classes:
        raise ValueError(f"{where}: {len(groups)} groups for {n_classes} classes; give one group per class")


def _check_attributes(split: Split, where: str) -> None:
    for name, values in (split.attributes or {}).items():
        if values.shape != (split.n,):
            raise ValueError(
                f"{where}: attribute {name!r} has shape {values.shape}; give one value per row, ({split.n},)"
            )


def _without_small_classes(
    split: Split, names: tuple[str, ...], groups: Sequence[str] | None, drop_small: bool
) -> tuple[Split, tuple[str, ...], Sequence[str] | None]:
    """The rows, names and groups of the classes that have enough rows to be split."""
    counts = np.bincount(split.labels, minlength=len(names))
    enough = counts >= SMALLEST_CLASS
    if enough.all():
        return split, names, groups
    small = [f"{names[j]} ({counts[j]})" for j in np.flatnonzero(~enough)]
    if not drop_small:
        raise ValueError(
            f"fewer than {SMALLEST_CLASS} rows for {_listed(small)}: too few for three splits; "
            "add rows, or leave these classes out with drop_small=True"
        )
    if not enough.any():
        raise ValueError(f"no class has {SMALLEST_CLASS} rows or more: nothing is left after dropping the small ones")
    kept = split.rows(enough[split.labels])
    renumbered = np.cumsum(enough) - 1
    stay = np.flatnonzero(enough).tolist()
    return (
        Split(kept.inputs, renumbered[kept.labels], attributes=kept.attributes),
        tuple(names[j] for j in stay),
        None if groups is None else [groups[j] for j in stay],
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
