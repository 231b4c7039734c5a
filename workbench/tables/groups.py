"""Rows and classes by group: shot, genus, label, or anything a table knows about its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.counts import FEW, MANY, SHOTS, shot_groups
from workbench.tables.checks import array_of
from workbench.tables.table import LogitTable

WITHOUT_LABEL = "without a label"  # the group of the rows that no label puts into another


def means(values: np.ndarray, codes: np.ndarray, n_groups: int) -> np.ndarray:
    """The mean of the values in each group; NaN for a group without any.

    >>> means(np.array([True, False, True]), np.array([0, 0, 2]), 3).tolist()
    [0.5, nan, 1.0]
    """
    counts = np.bincount(codes, minlength=n_groups)
    sums = np.bincount(codes, weights=values, minlength=n_groups)
    of_groups: np.ndarray = np.divide(sums, counts, out=np.full(n_groups, np.nan), where=counts > 0)
    return of_groups


def mean_of_present(values: np.ndarray) -> np.ndarray | float:
    """The mean over the last axis without NaN; NaN where nothing is left, and no warning about it."""
    present = ~np.isnan(values)
    counts = present.sum(-1)
    mean = np.full(counts.shape, np.nan)
    np.divide(np.where(present, values, 0).sum(-1), counts, out=mean, where=counts > 0)
    return mean if mean.ndim else float(mean)


def rows_by(table: LogitTable, by: Any) -> tuple[np.ndarray, tuple[str, ...]]:
    """The group of each row, as a code, and the names of the groups.

    `by` is the name of a row attribute ("organ"), "shots" (few, medium, many training images of the label), "groups"
    (the genus or superclass of the label), "label", or any array with one entry per row. Rows without a label are a group
    of their own among the groups of labels.

    >>> table = LogitTable(np.zeros((3, 2)), labels=[0, 1, 1], attributes={"organ": ["leaf", "fruit", "leaf"]})
    >>> rows_by(table, "organ")
    (array([1, 0, 1]), ('fruit', 'leaf'))
    """
    if not isinstance(by, str):
        values = array_of(by)
        if values.shape != (table.n,):
            raise ValueError(f"by has shape {values.shape}; give one entry for each of the {table.n} rows")
    elif by in (table.attributes or {}):
        values = (table.attributes or {})[by]
    elif by in ("shots", "groups", "label"):
        codes, names = classes_by(table, by)
        if table.many_labels:
            raise ValueError(f"by = {by!r} needs one label per row, and this table has many; group by an attribute")
        labels = table.checked_labels()
        if table.labelled.all():
            return codes[labels], names
        return np.where(table.labelled, codes[labels], len(names)), (*names, WITHOUT_LABEL)
    else:
        known = [repr(name) for name in (*(table.attributes or {}), "shots", "groups", "label")]
        raise ValueError(f"by = {by!r} is unknown; this table can be grouped by {', '.join(known)}")
    return _coded(values)


def classes_by(table: LogitTable, by: str, few: int = FEW, many: int = MANY) -> tuple[np.ndarray, tuple[str, ...]]:
    """The group of each class, as a code, and the names of the groups: by "shots", "groups" or "label"."""
    if by == "shots":
        words = shot_groups(training_images(table), few, many)
        return np.select([words == shot for shot in SHOTS], range(len(SHOTS))), SHOTS
    if by == "groups":
        if table.groups is None:
            raise ValueError(
                "this table has no groups; give LogitTable(..., groups=) the genus or superclass of each class"
            )
        return _coded(np.array(table.groups))
    return np.arange(table.n_classes), table.named_classes()


def training_images(table: LogitTable) -> np.ndarray:
    """The class counts, or an error for a table without."""
    if table.class_counts is None:
        raise ValueError("this table does not know its training images per class; give LogitTable(..., class_counts=)")
    return table.class_counts


def _coded(values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    names, codes = np.unique(values, return_inverse=True)
    return codes, tuple(str(name) for name in names)
