"""PartialTable: probabilities of some classes of each row. The others are unknown, and lie within bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.tables.checks import NO_LABEL, SUM_TOLERANCE, checked_names, labels_from, listed
from workbench.tables.objects import split_rows
from workbench.tables.table import LogitTable

MOST_CLASSES = 10**6  # where classes are numbers and a file does not say how many there are


@dataclass(frozen=True, eq=False, repr=False)
class PartialTable:
    """Probabilities of the best classes of each row, or of those above a cut, as services and databases give them.

    The listed classes of row i are `classes[offsets[i]:offsets[i + 1]]`, by falling probability. A class that is not listed
    is at most as probable as the last one that is, lies below `cut` where there is one, and shares what is left of 1 with
    the others. So sets above these `ceilings` are exact; below, their size and coverage are bounds (`workbench.sets.bounds`).

    Args:
        offsets: (n + 1,) where the classes of each row begin.
        classes: Class indices of all rows, one row after the other.
        probabilities: The probabilities of `classes`.
        n_classes: Number of classes; None if it is not known how many there are beside those seen.
        labels: (n,) class indices, -1 where the label is unknown.
        class_names: Names of the classes seen.
        ids: (n,) what each row is called.
        attributes: {name: (n,)} of rows.
        cut: Classes below this probability were left out.
        sums_to_one: Whether the probabilities of all classes of a row sum to 1 (softmax, not sigmoids).
        note: Where the table comes from, in words.

    Example:
        >>> table = PartialTable.from_rows([{"oak": 0.6, "elm": 0.3}, {"fir": 0.9}], n_classes=10)
        >>> table
        PartialTable(2 rows, 1 to 2 of 10 classes)
        >>> table.ceilings.round(3).tolist()
        [0.101, 0.101]
    """

    offsets: np.ndarray
    classes: np.ndarray
    probabilities: np.ndarray
    n_classes: int | None = None
    labels: np.ndarray | None = None
    class_names: tuple[str, ...] | None = None
    ids: np.ndarray | None = None
    attributes: dict[str, np.ndarray] | None = None
    cut: float | None = None
    sums_to_one: bool = True
    note: str = ""

    def __post_init__(self) -> None:
        _check_probabilities(self.probabilities)
        if self.cut is not None and not 0 < self.cut <= 1:
            raise ValueError(f"cut = {self.cut}; give the probability below which classes were left out, in (0, 1]")
        seen = len(self.class_names or ()) or int(self.classes.max(initial=-1)) + 1
        if self.n_classes is not None and seen > self.n_classes:
            raise ValueError(
                f"n_classes = {self.n_classes}, and the rows name {seen} classes; give at least as many as there are"
            )
        pairs = np.stack([self.row_of, self.classes])
        if len(np.unique(pairs, axis=1).T) < len(self.classes):
            raise ValueError("a row lists the same class twice; give each class of a row once")

    @classmethod
    def from_rows(
        cls,
        rows: Sequence[Mapping[Any, float]],
        labels: Sequence[Any] | None = None,
        *,
        class_names: Sequence[str] | None = None,
        n_classes: int | None = None,
        cut: float | None = None,
        **fields: Any,
    ) -> Self:
        """A table from {class: probability} of each row; classes are names, or indices.

        Args:
            rows: One mapping a row.
            labels: A name or an index a row; None where it is unknown.
            class_names: All classes, where they are known; else the names seen, sorted.
            n_classes: How many classes there are.
            cut: Classes below this probability were left out.
            fields: Further fields of the table.
        """
        named = any(isinstance(name, str) for row in rows for name in row)
        if named and class_names is None:
            class_names = sorted({str(name) for row in rows for name in row} | _words(labels))
        elif class_names is not None and n_classes is None:
            n_classes = len(class_names)
        names = None if class_names is None else checked_names("class_names", class_names)
        indices = _indices([list(row) for row in rows], names, named)
        values = [np.array([float(p) for p in row.values()], np.float64) for row in rows]
        order = [np.argsort(-each, kind="stable") for each in values]
        read = None if labels is None else labels_from(list(labels), names, None, numbers_name=True).values
        return cls(
            offsets=np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64),
            classes=_joined([each[by] for each, by in zip(indices, order, strict=True)], np.int64),
            probabilities=_joined([each[by] for each, by in zip(values, order, strict=True)], np.float64),
            n_classes=n_classes, labels=read, class_names=names, cut=cut,
            **{"sums_to_one": all(each.sum() <= 1 + SUM_TOLERANCE for each in values), **fields},
        )  # fmt: skip

    @classmethod
    def of_table(cls, table: LogitTable, m: int | None = None, cut: float | None = None) -> Self:
        """The best m classes of each row of a whole table, or those that reach a cut: what storing only these would leave.

        Raises:
            ValueError: neither or both are given, or the table has many labels a row.
        """
        if (m is None) == (cut is None) or table.many_labels:
            raise ValueError("give m or cut, not both, and a table with at most one label a row")
        p = table.probabilities().astype(np.float64)
        kept = p >= cut if cut is not None else np.zeros(p.shape, bool)
        if m is not None:
            np.put_along_axis(kept, np.argsort(-p, axis=1, kind="stable")[:, :m], True, axis=1)
        rows = [dict(zip(np.flatnonzero(mask).tolist(), p[i, mask], strict=True)) for i, mask in enumerate(kept)]
        labels = None if table.labels is None else table.labels.tolist()
        sums = table.link in ("softmax", "sparsemax") or bool((np.abs(p.sum(1) - 1) <= SUM_TOLERANCE).all())
        return cls.from_rows(
            rows, labels, class_names=table.class_names, n_classes=table.n_classes, cut=cut, sums_to_one=sums,
            ids=table.ids, attributes=table.attributes,
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.offsets) - 1

    @cached_property
    def row_of(self) -> np.ndarray:
        """(offsets[-1],) the row of each listed class."""
        return np.repeat(np.arange(self.n), self.n_listed)

    @cached_property
    def n_listed(self) -> np.ndarray:
        """(n,) how many classes each row lists."""
        return np.diff(self.offsets)

    @cached_property
    def n_unlisted(self) -> np.ndarray:
        """(n,) how many classes are not listed; infinite where the number of classes is not known."""
        return (np.inf if self.n_classes is None else float(self.n_classes)) - self.n_listed

    @cached_property
    def rest(self) -> np.ndarray:
        """(n,) the largest sum that the classes not listed can have, rounding of the listed ones included."""
        if not self.sums_to_one:
            return np.full(self.n, np.inf)
        sums = np.bincount(self.row_of, self.probabilities, minlength=self.n)
        return np.maximum(0.0, 1 - sums) + SUM_TOLERANCE

    @cached_property
    def ceilings(self) -> np.ndarray:
        """(n,) the largest probability that a class not listed can have; 0 where every class is listed."""
        smallest = np.ones(self.n)
        np.minimum.at(smallest, self.row_of, self.probabilities)
        below_cut = np.inf if self.cut is None else np.nextafter(self.cut, 0)
        ceilings = np.minimum(np.minimum(smallest, self.rest), below_cut)
        return np.where(self.n_unlisted > 0, ceilings, 0.0)

    @cached_property
    def label_probabilities(self) -> np.ndarray:
        """(n,) the probability of the label; NaN where the label is not listed, or unknown."""
        found = np.full(self.n, np.nan)
        if self.labels is not None:
            of_label = self.classes == self.labels[self.row_of]
            found[self.row_of[of_label]] = self.probabilities[of_label]
        return found

    @property
    def labelled(self) -> np.ndarray:
        """(n,) bool: which rows have a known label."""
        return np.zeros(self.n, bool) if self.labels is None else self.labels != NO_LABEL

    def named_classes(self) -> tuple[str, ...]:
        """The names of the classes seen, or "class 0", "class 1", …"""
        seen = max(int(self.classes.max(initial=-1)) + 1, self.n_classes or 0)
        return self.class_names or tuple(f"class {index}" for index in range(seen))

    def rows(self, index: Any) -> Self:
        """The table of some rows: a slice, indices or a mask."""
        chosen = np.arange(self.n)[index]
        at = _joined([np.arange(*self.offsets[[row, row + 1]]) for row in chosen], np.int64)
        ids = np.arange(self.n) if self.ids is None else self.ids
        return dataclasses.replace(
            self,
            offsets=np.concatenate([[0], np.cumsum(self.n_listed[chosen])]),
            classes=self.classes[at],
            probabilities=self.probabilities[at],
            labels=None if self.labels is None else self.labels[chosen],
            ids=ids[chosen],
            attributes=None if self.attributes is None else {k: v[chosen] for k, v in self.attributes.items()},
        )

    def split(self, fraction: float = 0.5, seed: int = 0) -> tuple[Self, Self]:
        """Two tables of different rows, drawn at random, the first with that fraction of them, as those of `LogitTable`."""
        first, second = split_rows(self, fraction, seed)
        return self.rows(first), self.rows(second)

    def in_words(self) -> str:
        """The numbers of rows and of listed classes, as text."""
        low, high = (int(self.n_listed.min()), int(self.n_listed.max())) if self.n else (0, 0)
        shown = f"{low}" if low == high else f"{low} to {high}"
        of = "an unknown number of" if self.n_classes is None else self.n_classes
        cut = "" if self.cut is None else f", cut below {self.cut:g}"
        return f"{self.n} rows, {shown} of {of} classes{cut}"

    def __repr__(self) -> str:
        return f"PartialTable({self.in_words()})"


def _check_probabilities(values: np.ndarray) -> None:
    if not len(values):
        raise ValueError("no row lists a class; give at least one probability")
    if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1 + SUM_TOLERANCE:
        raise ValueError(
            f"the listed scores go from {values.min():g} to {values.max():g}; give probabilities in [0, 1]: of logits of the "
            "best classes alone, the probabilities are not known (percent: divide by 100)"
        )


def _words(labels: Sequence[Any] | None) -> set[str]:
    return {label for label in labels or () if isinstance(label, str) and label.strip()}


def _indices(rows: list[list[Any]], names: tuple[str, ...] | None, named: bool) -> list[np.ndarray]:
    """The classes of each row as indices."""
    if not named or names is None:
        most = None if names is None else len(names)
        try:
            flat = [int(each) for row in rows for each in row]
        except (OverflowError, TypeError):
            raise ValueError("a row lists a class that is neither a name nor a whole number") from None
        if flat and (min(flat) < 0 or max(flat) >= (most or MOST_CLASSES)):
            raise ValueError(
                f"classes go from {min(flat)} to {max(flat)}; give indices from 0, below {most or MOST_CLASSES}"
            )
        return [np.array([int(each) for each in row], np.int64) for row in rows]
    place = {name: j for j, name in enumerate(names)}
    if unknown := sorted({str(each) for row in rows for each in row} - place.keys()):
        raise ValueError(f"rows list {listed(unknown)}, not among the classes ({listed(names)})")
    return [np.array([place[str(each)] for each in row], np.int64) for row in rows]


def _joined(parts: list[np.ndarray], dtype: type) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts]).astype(dtype)
