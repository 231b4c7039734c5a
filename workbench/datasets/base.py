"""Dataset and Split: three named splits, class names, and P(y|x) where it is known."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from workbench.datasets.image_files import ImageFiles
from workbench.datasets.inputs import Inputs, read_inputs
from workbench.datasets.labels import NO_LABEL, divided, joined_labels, n_rows, read_labels
from workbench.validation import whole_number

if TYPE_CHECKING:
    import pandas as pd

SMALLEST_CLASS = 4  # fewer rows cannot give one to val, one to test and two to training
SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """The rows of one split: what a model sees, what is written down, and what else is known of each row.

    `inputs` are images, uint8 (n, H, W, 1) or (n, H, W, 3), which may stay in their files until they are indexed, or
    rows of features, float32 (n, d). `labels` are class indices, int64 (n,), or, where a row has several labels or none,
    bool (n, L). `posterior` is the true P(y|x), (n, L), of data drawn from a known law. `attributes` are facts of a row
    to group by: organ, author, place. `texts` or `strokes` are what a person sees of a row that is not an image.
    """

    inputs: Inputs
    labels: np.ndarray
    posterior: np.ndarray | None = None
    attributes: Mapping[str, np.ndarray] | None = None
    texts: np.ndarray | None = None
    strokes: np.ndarray | None = None

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
            None if self.texts is None else self.texts[index],
            None if self.strokes is None else self.strokes[index],
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """Three splits of rows with the names of their classes.

    `class_counts` counts the training rows of each class.

    Args:
        name: Name of the dataset.
        train: Training rows, a `Split` of inputs and labels.
        val: Validation rows.
        test: Test rows.
        class_names: One name per class.
        groups: Group of each class, such as the genus of a species.
        spec: What `load_spec` needs to load the dataset again; None for arrays of the user.
        key: sha256 of the content, or of the recipe that fixes the content, for data that a program draws: the same data has
            the same key wherever it is loaded.
        columns: Names of the numbers in a row, if they came in a DataFrame; a trained network finds them in new rows.
        standardise: Whether networks see rows of numbers standardised; False for codes that an embedding looks up.
        unseen: Whether a class may have no training row: then only a network that knows the classes already can score them
            (`Run(epochs=0)`).
    """

    name: str
    train: Split
    val: Split
    test: Split
    class_names: tuple[str, ...]
    groups: tuple[str, ...] | None = None
    spec: dict[str, Any] | None = None
    key: str = ""
    columns: tuple[str, ...] | None = None
    standardise: bool = True
    unseen: bool = False
    class_counts: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "class_names", tuple(str(name) for name in self.class_names))
        if self.groups is not None:
            object.__setattr__(self, "groups", checked_groups(self.groups, self.class_names, self.name))
        for split_name in SPLITS:
            self._check(split_name, getattr(self, split_name))
        many = self.train.labels.ndim == 2
        counts = self.train.labels.sum(axis=0) if many else np.bincount(self.train.labels, minlength=self.n_classes)
        missing = np.flatnonzero(counts == 0)
        if missing.size and not self.unseen:
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
        X: Any,
        y: Any,
        class_names: Iterable[str] | None = None,
        groups: Sequence[str] | Mapping[str, str] | None = None,
        seed: int = 0,
        drop_small: bool = False,
        attributes: Mapping[str, ArrayLike] | pd.DataFrame | None = None,
        name: str = "arrays",
        spec: dict[str, Any] | None = None,
        split: ArrayLike | None = None,
        standardise: bool = True,
    ) -> Dataset:
        """Your own arrays, with your own split or split 80/10/10 inside each class by the rule of Pl@ntNet-300K.

        X is (n, d) numbers (an array, a DataFrame or a sparse matrix, which becomes dense), uint8 images (n, H, W, 1) or
        (n, H, W, 3), or `ImageFiles`. y holds, for each row, a class index (a whole number), a name (text), a list of
        either, or a row of a 0/1 matrix with a column for each class, dense or sparse; as an array, a list, a Series or a
        DataFrame. −1, None, NaN and "" mean no label: labels then become (n, L) bool, which losses of many labels read.
        Without `class_names`, text names the classes in its sorted order, and a DataFrame of 0 and 1 names them by its
        columns.

        `split` says "train", "val" or "test" for each row; or give tuples of three, `from_arrays((X_train, X_val, X_test),
        (y_train, y_val, y_test))`. Without either, ⌈0.1·n_j⌉ of the n_j rows of class j go to val, ⌈0.1·n_j⌉ to test and
        the rest to training, at random from `seed`. Rows with several labels have no class to be split by: ⌈0.1·n⌉ of all
        rows each.

        A class with fewer than 4 rows (with a split of your own: without a training row) is refused, or left out when
        `drop_small` is set; the classes that stay are then numbered anew. `groups` gives the group of each class, in their
        order or by their names, and `attributes` what else is known of the rows, by name, a value for each. `name` is what
        people read, and `spec` what loads the dataset again, for those who write a loader. `standardise=False` hands rows
        to networks as they are: an embedding reads codes with `inputs.long()`.

        >>> data = Dataset.from_arrays(np.eye(20), ["even", "odd"] * 10)
        >>> data
        Dataset('arrays': 16 / 2 / 2 rows of 20, 2 classes)
        >>> data.class_names, data.class_counts.tolist()
        (('even', 'odd'), [8, 8])
        >>> Dataset.from_arrays(np.eye(5), [0, 1, 0, 1, -1], split=["train", "train", "val", "test", "test"])
        Dataset('arrays': 2 / 1 / 2 rows of 5, 2 classes, many labels)

        Garcin, thesis, section 3.2.2 (construction of Pl@ntNet-300K).
        """
        table = X[0] if _three_parts(X) else X
        columns_of = tuple(map(str, table.columns)) if hasattr(table, "columns") and table.columns.is_unique else None
        if _three_parts(X) and isinstance(y, (tuple, list)):
            if split is not None:
                raise ValueError("X and y are given in three parts already; leave split out")
            X, y, split = _joined(X, y)
        inputs, seed = read_inputs(X), whole_number("seed", seed, least=0)
        labels, names = read_labels(y, class_names)
        if len(inputs) != len(labels):
            raise ValueError(f"X has {len(inputs)} rows and y has {len(labels)}; give one label per row")
        if len(inputs) == 0:
            raise ValueError("X has no rows; a dataset needs some")
        if not names:
            raise ValueError("y has no label in any row; a dataset needs classes")
        if attributes is not None and not hasattr(attributes, "items"):  # a DataFrame has some, too
            raise ValueError(f"attributes = {attributes!r}; give {{name: one value per row}}, or a DataFrame")
        columns = {} if attributes is None else {str(key): np.asarray(values) for key, values in attributes.items()}
        everything = Split(inputs, labels, attributes=columns or None)
        _check_attributes(everything, "attributes")
        parts = None if split is None else _parts(split, len(inputs))
        data = cls.from_rows(
            everything, names, groups, parts=parts, seed=seed, drop_small=drop_small, name=name, spec=spec
        )
        return replace(data, columns=columns_of, standardise=standardise, key=data.key if standardise else "")

    @classmethod
    def from_rows(
        cls,
        everything: Split,
        class_names: tuple[str, ...],
        groups: Sequence[str] | Mapping[str, str] | None = None,
        *,
        parts: np.ndarray | None = None,
        seed: int = 0,
        drop_small: bool = False,
        name: str,
        spec: dict[str, Any] | None,
    ) -> Dataset:
        """Rows that are read already, split as `from_arrays` says; `parts` is the split of each row, if it is given.

        Labels are (n, L) bool, or (n,) int64 with −1 where there is none.
        """
        names = class_names
        found = None if groups is None else checked_groups(groups, names, name)
        if everything.labels.ndim == 1:
            everything, parts, names, found = _without_small_classes(everything, parts, names, found, drop_small)
        labels = everything.labels
        if parts is not None:
            chosen = [np.flatnonzero(parts == split_name) for split_name in SPLITS]
        else:  # rows without a label are split as those of a class
            chosen = divided(np.where(labels == NO_LABEL, len(names), labels), len(names) + 1, seed)
        if labels.ndim == 1 and (labels == NO_LABEL).any():
            everything = replace(everything, labels=labels[:, None] == np.arange(len(names)))
        train, val, test = (everything.rows(rows) for rows in chosen)
        return cls(name, train, val, test, names, found, spec)

    def with_groups(self, groups: Sequence[str] | Mapping[str, str]) -> Dataset:
        """This dataset with these groups of classes, one for each class in their order, or by the names of the classes.

        Label noise stays within groups, and figures and reports can be by group. Key and spec tell of the groups.

        >>> data = Dataset.from_arrays(np.eye(20), ["fern", "moss"] * 10)
        >>> data.with_groups({"fern": "green", "moss": "green"}).groups
        ('green', 'green')
        """
        from workbench.datasets.transforms import Groups  # which is made of datasets

        found = checked_groups(groups, self.class_names, self.name)
        return self if found == self.groups else self.transformed(Groups(found))

    def transformed(self, *transforms: Callable[[Dataset], Dataset]) -> Dataset:
        """This dataset after each of the transforms in turn; name, key and spec of the result tell of them."""
        dataset = self
        for transform in transforms:
            if not callable(transform):
                raise ValueError(
                    f"{transform!r} is not a transform; give some such as LabelNoise(0.2), with the brackets"
                )
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
    as_given = [] if dataset.standardise else ["rows as given"]
    digest = hashlib.sha256(json.dumps([dataset.class_names, dataset.groups, *as_given]).encode())
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


def checked_groups(groups: Sequence[str] | Mapping[str, str], names: tuple[str, ...], where: str) -> tuple[str, ...]:
    """The group of each class, in the order of the classes."""
    if isinstance(groups, Mapping):
        if missing := [name for name in names if name not in groups]:
            raise ValueError(f"{where}: no group for {_listed(missing)}; give one for each class, {{class: group}}")
        groups = [groups[name] for name in names]
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ValueError(f"{where}: groups = {groups!r}; give one group per class")
    found = tuple(str(group) for group in groups)
    if len(found) != len(names):
        raise ValueError(f"{where}: {len(found)} groups for {len(names)} classes; give one group per class")
    return found


def _check_attributes(split: Split, where: str) -> None:
    for name, values in (split.attributes or {}).items():
        if values.shape != (split.n,):
            raise ValueError(
                f"{where}: attribute {name!r} has shape {values.shape}; give one value per row, ({split.n},)"
            )


def _three_parts(X: Any) -> bool:
    """Whether X is a tuple of the inputs of three splits, and not one of three rows."""
    return (
        isinstance(X, tuple)
        and len(X) == 3
        and all(len(getattr(part, "shape", None) or np.shape(part)) > 1 for part in X)
    )


def _joined(X: Sequence[Any], y: Sequence[Any]) -> tuple[np.ndarray, Any, np.ndarray]:
    """Three splits as one: all inputs, all labels, and the split of each row."""
    if len(y) != 3:
        raise ValueError(f"X has three parts and y has {len(y)}; give train, val and test of both")
    inputs = [np.asarray(read_inputs(part)) for part in X]
    if len({part.shape[1:] for part in inputs}) > 1:
        raise ValueError(
            f"the parts of X have shapes {', '.join(str(part.shape) for part in inputs)}; give rows of one shape"
        )
    if wrong := [f"{n} and {m}" for n, m in zip(map(len, inputs), map(n_rows, y), strict=True) if n != m]:
        raise ValueError(f"a part of X and of y have {wrong[0]} rows; give one label per row")
    return np.concatenate(inputs), joined_labels(y), np.repeat(SPLITS, [len(part) for part in inputs])


def _parts(split: ArrayLike, n: int) -> np.ndarray:
    """The split of each row, checked."""
    parts = np.asarray(split)
    if parts.shape != (n,):
        raise ValueError(
            f"split has shape {parts.shape} for {n} rows of X; give one of {', '.join(SPLITS)} for each row"
        )
    unknown = [repr(part) for part in dict.fromkeys(parts.tolist()) if part not in SPLITS]
    if unknown:
        raise ValueError(f"split holds {_listed(unknown)}; give one of {', '.join(SPLITS)} for each row")
    return parts


def _without_small_classes(
    everything: Split,
    parts: np.ndarray | None,
    names: tuple[str, ...],
    groups: tuple[str, ...] | None,
    drop_small: bool,
) -> tuple[Split, np.ndarray | None, tuple[str, ...], tuple[str, ...] | None]:
    """The rows, their splits, names and groups of the classes that have enough rows: to be split, or to learn from."""
    labels = everything.labels
    least = SMALLEST_CLASS if parts is None else 1
    counted = labels[labels != NO_LABEL] if parts is None else labels[(labels != NO_LABEL) & (parts == "train")]
    counts = np.bincount(counted, minlength=len(names))
    enough = counts >= least
    if enough.all():
        return everything, parts, names, groups
    small = [f"{names[j]} ({counts[j]})" for j in np.flatnonzero(~enough)]
    if not drop_small:
        few = f"fewer than {least} rows" if parts is None else "no training row"
        why = "too few for three splits" if parts is None else "a class that is never seen in training cannot be learnt"
        raise ValueError(
            f"{few} for {_listed(small)}: {why}; add rows, or leave these classes out with drop_small=True"
        )
    if not enough.any():
        raise ValueError(f"no class has {least} rows or more: nothing is left after dropping the small ones")
    stay = np.append(enough, True)  # the last one is for rows without a label
    kept = everything.rows(stay[labels])
    renumbered = np.append(np.cumsum(enough) - 1, NO_LABEL)
    return (
        replace(kept, labels=renumbered[kept.labels]),
        None if parts is None else parts[stay[labels]],
        tuple(name for name, enough_rows in zip(names, enough, strict=True) if enough_rows),
        None if groups is None else tuple(group for group, rows in zip(groups, enough, strict=True) if rows),
    )


def _listed(names: Sequence[str], most: int = 5) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
