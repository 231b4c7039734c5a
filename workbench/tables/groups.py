"""Rows and classes by group: shot, genus, label, or anything a table knows about its rows."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np

from workbench.class_counts import FEW, MANY, SHOTS, shot_groups
from workbench.tables.checks import array_of
from workbench.tables.table import LogitTable

MOST_NUMBERS = 20  # different numbers that are groups of their own
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


@dataclass(frozen=True, eq=False)
class GroupedColumns:
    """The columns of a matrix group by group, to reduce a row over each group."""

    order: np.ndarray  # (L,) columns, those of a group side by side
    starts: np.ndarray  # (G,) where the groups begin

    @classmethod
    def of(cls, codes: np.ndarray) -> Self:
        """The columns of some groups, by their codes 0 … G − 1."""
        order = np.argsort(codes, kind="stable")
        return cls(order, np.searchsorted(codes[order], np.arange(codes.max() + 1)))

    @property
    def sizes(self) -> np.ndarray:
        """(G,) the number of columns of each group."""
        return np.diff(np.append(self.starts, len(self.order)))

    def reduced(self, reduce: np.ufunc, values: np.ndarray) -> np.ndarray:
        """(rows, G) a ufunc over the columns of each group.

        >>> GroupedColumns.of(np.array([0, 1, 0])).reduced(np.add, np.array([[1, 2, 3]])).tolist()
        [[4, 2]]
        """
        of_groups: np.ndarray = reduce.reduceat(values[:, self.order], self.starts, axis=1)
        return of_groups


def rows_by(table: LogitTable, by: Any, cuts: np.ndarray | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """The group of each row, as a code, and the names of the groups.

    `by` is the name of a row attribute ("organ"), "shots" (few, medium, many training rows of the label), "groups"
    (the genus or superclass of the label), "label", or any array with one entry per row. Rows without a label are a group
    of their own among the groups of labels. Many different numbers are binned by `cuts`, or else by their quartiles.

    >>> table = LogitTable(np.zeros((3, 2)), labels=[0, 1, 1], attributes={"organ": ["leaf", "fruit", "leaf"]})
    >>> rows_by(table, "organ")
    (array([1, 0, 1]), ('fruit', 'leaf'))
    """
    values = values_by(table, by)
    if values is not None:
        return _coded(values, quartiles(values) if cuts is None else cuts)
    codes, names = classes_by(table, by)
    if table.many_labels:
        raise ValueError(f"by = {by!r} needs one label per row, and this table has many; group by an attribute")
    labels = table.checked_labels()
    if table.labelled.all():
        return codes[labels], names
    return np.where(table.labelled, codes[labels], len(names)), (*names, WITHOUT_LABEL)


def values_by(table: LogitTable, by: Any) -> np.ndarray | None:
    """(n,) the values that group the rows; None where the label groups them."""
    if not isinstance(by, str):
        values = array_of(by)
        if values.shape != (table.n,):
            raise ValueError(f"by has shape {values.shape}; give one entry for each of the {table.n} rows")
        return values
    if by in (table.attributes or {}):
        return np.asarray((table.attributes or {})[by])
    if by in ("shots", "groups", "label"):
        return None
    known = [repr(name) for name in (*(table.attributes or {}), "shots", "groups", "label")]
    raise ValueError(f"by = {by!r} is unknown; this table can be grouped by {', '.join(known)}")


def classes_by(table: LogitTable, by: str, few: int = FEW, many: int = MANY) -> tuple[np.ndarray, tuple[str, ...]]:
    """The group of each class, as a code, and the names of the groups: by "shots", "groups" or "label"."""
    if by == "shots":
        words = shot_groups(known_class_counts(table), few, many)
        return np.select([words == shot for shot in SHOTS], range(len(SHOTS))), SHOTS
    if by == "groups":
        if table.groups is None:
            raise ValueError(
                "this table has no groups; give LogitTable(..., groups=) the genus or superclass of each class"
            )
        return _coded(np.array(table.groups))
    if by != "label":
        raise ValueError(f'by = {by!r} groups no classes; give "label", "groups" or "shots"')
    return np.arange(table.n_classes), table.named_classes()


def known_class_counts(table: LogitTable) -> np.ndarray:
    """The class counts, or an error for a table without."""
    if table.class_counts is None:
        raise ValueError("this table does not know its training rows per class; give LogitTable(..., class_counts=)")
    return table.class_counts


def quartiles(values: np.ndarray) -> np.ndarray | None:
    """Where many different numbers are cut into bins; None for all other values."""
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all() or len(np.unique(values)) <= MOST_NUMBERS:
        return None
    return np.unique(np.quantile(values, (0.25, 0.5, 0.75)))


def _coded(values: np.ndarray, cuts: np.ndarray | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """The group of each row and the names of the groups: the different values, or bins between cuts.

    >>> _coded(np.array([0.1, 0.6]), cuts=np.array([0.25, 0.5, 0.75]))
    (array([0, 2]), ('≤ 0.25', '0.25 to 0.5', '0.5 to 0.75', '> 0.75'))
    """
    if cuts is None:
        names, codes = np.unique(values, return_inverse=True)
        return codes, tuple(str(name) for name in names)
    bins = [f"≤ {cuts[0]:.4g}", *(f"{low:.4g} to {high:.4g}" for low, high in pairwise(cuts)), f"> {cuts[-1]:.4g}"]
    missing = np.isnan(values.astype(np.float64))
    codes = np.where(missing, len(bins), np.searchsorted(cuts, values, side="left"))
    return codes, (*bins, "nan") if missing.any() else tuple(bins)
