"""Conversion of labels for datasets: as for tables, and also from sparse matrices and from separate splits.

`divided` says which rows are held out, by their labels.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from workbench.tables.checks import NO_LABEL, array_of, checked_labels, checked_names, labels_from
from workbench.warning_capture import warn

__all__ = ["NO_LABEL", "divided", "joined_labels", "n_rows", "read_labels"]


def read_labels(y: Any, class_names: Iterable[str] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as (n,) int64, −1 where a row has none, or as (n, L) bool marks; and the names of the classes.

    >>> read_labels(["moss", "fern", ""])
    (array([ 1,  0, -1]), ('fern', 'moss'))
    >>> read_labels([2, 0, 1])[1]
    ('class 0', 'class 1', 'class 2')
    """
    y = _dense(y)
    if not (hasattr(y, "__len__") and hasattr(y, "__iter__")) or isinstance(y, (str, Mapping)):
        raise ValueError(f"y = {y!r:.60}; give the labels of all rows, an array or a list")
    names = None if class_names is None else checked_names("class_names", class_names)
    if names is None and getattr(y, "ndim", 1) == 1:
        _refuse_ids(y)
    try:
        labels, names, reading = labels_from(y, names)
        if not reading and labels_from(y, names, numbers_name=True).reading:  # a file would have to say which they are
            reading = "labels are positions from 0, not names of classes"
    except TypeError as error:  # such as dates
        raise ValueError(f"y cannot be read as labels ({error}); give class indices, or names as text") from None
    if reading:
        warn(f"{reading}; give text labels to name classes, or other class_names", stacklevel=3)
    if names is None:
        n_classes = labels.shape[1] if labels.ndim == 2 else int(labels.max(initial=NO_LABEL)) + 1
        names = tuple(f"class {j}" for j in range(n_classes))
    return checked_labels(labels, len(labels), len(names)), names


def joined_labels(parts: Sequence[Any]) -> Any:
    """The labels of several splits as those of one."""
    if all(hasattr(part, "columns") for part in parts):
        import pandas as pd  # it is loaded already: these are its frames

        if any(list(part.columns) != list(parts[0].columns) for part in parts):
            raise ValueError("the parts of y have other columns or another order of them; give the same for all")
        return pd.concat(parts)
    arrays = [_dense(part) for part in parts]
    if all(isinstance(array, np.ndarray) for array in arrays) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    return [row for array in arrays for row in array]


def n_rows(y: Any) -> int:
    """Number of labelled rows; a sparse matrix has no length."""
    return y.shape[0] if hasattr(y, "shape") else len(y)


def _dense(y: Any) -> Any:
    return y.toarray() if hasattr(y, "toarray") else array_of(y) if hasattr(y, "detach") else y


def _refuse_ids(y: Iterable[Any]) -> None:
    """Refuses numbers that are too large to be class indices, before a class is made for every number below them.

    Every class has a label somewhere, so that there are never more classes than labels.
    """
    labels = [label for row in y for label in (row if isinstance(row, (list, tuple, set, frozenset)) else (row,))]
    largest = max(
        (float(label) for label in labels if isinstance(label, numbers.Real) and label == label), default=-1.0
    )
    if largest >= len(labels):
        raise ValueError(
            f"y holds {largest:.0f} among {len(labels)} labels; class indices count from 0, without gaps. If these are names, "
            "give them as text, np.asarray(y).astype(str), or number them, np.unique(y, return_inverse=True)[1]"
        )


def divided(labels: np.ndarray, n_classes: int, seed: int, held_out: int = 2) -> list[np.ndarray]:
    """Row numbers of training, then of each of the `held_out` other splits, at random from the seed.

    The rule of Pl@ntNet-300K: ⌈0.1·n_j⌉ of the n_j rows of class j go to each split but training.
    Rows with many labels have no class to be divided by: ⌈0.1·n⌉ of all rows go to each held-out split.

    >>> [part.tolist() for part in divided(np.zeros(10, dtype=int), n_classes=1, seed=0)]
    [[0, 1, 2, 3, 5, 7, 8, 9], [4], [6]]

    Garcin, thesis, section 3.2.2.
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    if labels.ndim == 2:
        by_class, counts = shuffled, np.array([len(labels)])
    else:
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        counts = np.bincount(labels, minlength=n_classes)
    first = np.cumsum(counts) - counts
    place = np.arange(len(labels)) - np.repeat(first, counts)  # 0, 1, … inside each class
    tenth = place // np.repeat(-(-counts // 10), counts)  # which tenth of its class a row is in
    which = np.where(tenth < held_out, tenth + 1, 0)
    return [np.sort(by_class[which == part]) for part in range(1 + held_out)]
