"""SetIndex: everything a slider needs, for every K and every threshold, without touching the n×L matrix again."""

from __future__ import annotations

import contextlib
import math
import numbers
import os
from collections.abc import Iterable
from fractions import Fraction
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.class_counts import SHOTS
from workbench.exact_arithmetic import exact
from workbench.files.atomic import whole_file
from workbench.sets.label_ranks import last_labels, ranks_from
from workbench.sets.thresholds import (
    Largest,
    checked_m,
    largest_probabilities,
    rounded_up,
    threshold_at_mean_size,
)
from workbench.tables import LogitTable, checked_table, groups
from workbench.tables.checks import read_only
from workbench.tables.formats.opening import contents_at
from workbench.tables.map_reduce import over_parts
from workbench.tables.ordering import marked_in_rows

FORMAT = 2  # 2: equal probabilities are ranked by their scores
FILE = "set_index.npz"
LARGEST_SIZE = 50  # sizes from here on share the last column of a compact histogram


class SetIndex:
    r"""The largest probabilities of a table in falling order, and the probability of each label.

    - `table`: whose probabilities are indexed.
    - `K_max`: the largest mean size that is answered without another pass.
    - `step`: the distance between the values of K of its curve, which starts at 1; below where rows have fewer labels.

    With them the number of classes above a threshold,

    $$\hat G(t) = \frac1n \sum_{i=1}^n \sum_{j=1}^L \mathbb 1[p_j(x_i) \ge t],$$

    its inverse, the size of each set and who is hit are look-ups of about a millisecond: the same bits as sorting all
    n·L probabilities. The index holds everything down to the threshold of `K_max`; below that each new threshold costs
    one counted pass over the table, remembered, never an approximation.

    Questions take `K=` (the threshold is that of this table) or `threshold=` (a threshold fitted elsewhere, as on val).

    >>> table = LogitTable.from_probabilities([[0.8, 0.1, 0.1], [0.4, 0.35, 0.25]], labels=[0, 2])
    >>> index = SetIndex(table)
    >>> index.threshold(K=1.5), index.mean_size(0.3)
    (0.3, 1.5)
    >>> index.sizes(threshold=0.3).tolist(), index.hits(threshold=0.3).tolist()
    ([1, 2], [True, False])

    Paper: Garcin, thesis, Eq. 2.24–2.31; Garcin et al. 2023, Algorithm 1.
    """

    def __init__(self, table: LogitTable, K_max: float = 20.0, step: float = 0.1) -> None:
        K_values = _grid(K_max, step, checked_table(table))
        n_held = min(checked_m(K_values[-1], table) + 1, table.n * table.n_classes)
        largest, label_probabilities = largest_probabilities(table, n_held)
        ranks = None if label_probabilities is None else ranks_from(table, largest, label_probabilities)
        self._set_up(table, K_values, largest, label_probabilities, ranks)

    def _set_up(
        self,
        table: LogitTable,
        K_values: np.ndarray,
        largest: Largest,
        label_probabilities: np.ndarray | None,
        label_ranks: np.ndarray | None,
    ) -> None:
        self.table = table
        self.K_values = K_values
        self._largest = largest
        self._label_probabilities = label_probabilities  # of every (row, class) in table.positives()
        self._label_ranks = label_ranks
        self._counted_sizes = lru_cache(maxsize=32)(self._count_sizes)
        self._rows_by = lru_cache(maxsize=32)(lambda by: groups.rows_by(table, by))
        self._selected_threshold = lru_cache(maxsize=32)(lambda K: threshold_at_mean_size(table, K))
        self.thresholds = np.array([self.threshold(K) for K in K_values])

    @classmethod
    def open(cls, directory: str | os.PathLike[str], K_max: float = 20.0, step: float = 0.1) -> SetIndex:
        """The index of the table saved in a directory: read from beside it, or built (again, if the table changed).

        It is written there for the next time where the directory can be written to.
        """
        directory = Path(directory)
        table = LogitTable.load(directory)
        K_values = _grid(K_max, step, table)
        found = _read(directory / FILE, table, K_values)
        if found is not None:
            index = cls.__new__(cls)
            index._set_up(table, K_values, *found)
            return index
        index = cls(table, K_max, step)
        with contextlib.suppress(OSError):  # the index is at hand, and the next one can be built again
            index._write(directory / FILE)
        return index

    def threshold(self, K: float) -> float:
        """The threshold at which sets of this table hold K classes on average: the inverse of G (Eq. 2.27–2.30)."""
        m = checked_m(K, self.table)
        if m == self.table.n * self.table.n_classes:
            return 0.0
        held = self._largest.threshold(m)
        return self._selected_threshold(K) if held is None else held

    def mean_size(self, threshold: float) -> float:
        """G: how many classes reach the threshold, on average over rows (Eq. 2.24–2.29)."""
        threshold = rounded_up(_checked_threshold(threshold), self.table.dtype)
        if threshold >= self._largest.floor:
            return self._largest.count(threshold) / self.table.n
        return float(self._counted_sizes(threshold).sum() / self.table.n)

    def sizes(self, *, K: float | None = None, threshold: float | None = None) -> np.ndarray:
        """(n,) the size of each set."""
        threshold = self._threshold_of(K, threshold)
        if threshold < self._largest.floor:
            return self._counted_sizes(threshold)
        n = self.table.n
        count = self._largest.count(threshold)
        whole = count // n  # the first whole·n entries are counted already
        sizes: np.ndarray = self._sizes_after[whole] + np.bincount(self._largest.rows[whole * n : count], minlength=n)
        return sizes

    @cached_property
    def _sizes_after(self) -> np.ndarray:
        """(·, n): the sizes of the sets after n, 2n, 3n, … of the largest probabilities, so that few are left to count."""
        n, rows = self.table.n, self._largest.rows
        counts = [np.bincount(rows[start : start + n], minlength=n) for start in range(0, len(rows) - n + 1, n)]
        return np.cumsum([np.zeros(n, np.int64), *counts], axis=0)

    def hits(self, *, K: float | None = None, threshold: float | None = None) -> np.ndarray:
        """(n,) bool: every label of the row is in its set; False for a row without a label (`table.labelled`)."""
        found = self._membership(self._threshold_of(K, threshold))
        if not self.table.many_labels and len(found) == self.table.n:
            return found
        hits = self.table.labelled.copy()
        hits[self.table.positives()[0][~found]] = False
        return hits

    def size_histogram(self, by: Any = None, *, K: float | None = None, threshold: float | None = None) -> Any:
        """Number of sets of size 0, 1, 2, …; with `by`, {group: such counts} of equal length.

        `by` is "shots", "groups", "label", the name of a row attribute, or an array with one entry per row.
        """
        sizes = self.sizes(K=K, threshold=threshold)
        if by is None:
            return np.bincount(sizes)
        codes, names = self._rows_by(by) if isinstance(by, str) else groups.rows_by(self.table, by)
        return dict(zip(names, _histogram(sizes, codes, len(names), int(sizes.max()) + 1), strict=True))

    def class_accuracy(self, *, K: float | None = None, threshold: float | None = None) -> np.ndarray:
        """(L,) the share of the rows with that label whose set contains it; NaN for a class without rows."""
        found = self._membership(self._threshold_of(K, threshold))
        return groups.means(found, self.table.positives()[1], self.table.n_classes)

    @property
    def label_ranks(self) -> np.ndarray:
        """(n,) the rank of the label of each row from 1 (of the last one of many; 0 for none): top-K for every K."""
        self.table.checked_labels()
        assert self._label_ranks is not None
        return self._label_ranks

    def efficiency(self) -> pd.DataFrame:
        """Top-K and average-K accuracy for every K at once: `K`, `average_k`, `top_k` (NaN where K is not whole).

        The accuracy that K classes a row buy, each row alike or each as much as it needs; both of this table's rows that
        have a label.
        """
        self.table.checked_labels()
        assert self._label_probabilities is not None
        rising = np.sort(last_labels(self.table, self._label_probabilities)[1])
        missed = np.searchsorted(rising, self.thresholds.astype(rising.dtype), side="left")
        n = np.count_nonzero(self.label_ranks) or np.nan  # rows with a label
        in_top = np.cumsum(np.bincount(self.label_ranks, minlength=self.table.n_classes + 1)[1:]) / n
        whole = self.K_values == np.round(self.K_values)
        top_k = np.where(whole, in_top[np.round(self.K_values).astype(int) - 1], np.nan)
        return pd.DataFrame({"K": self.K_values, "average_k": 1 - missed / n, "top_k": top_k})

    def curve(self, thresholds: Iterable[float] | None = None) -> pd.DataFrame:
        """Accuracy against mean size, one line per threshold (of this table's `K_values` unless given).

        Columns: `K` (only with the table's own thresholds), `threshold`, `mean_size`, and with labels `accuracy`,
        `macro_accuracy`, and with class counts the accuracy of `few`, `medium` and `many`.
        """
        own = thresholds is None
        values = np.array(self.thresholds if thresholds is None else _checked_thresholds(thresholds), dtype=float)
        columns: dict[str, Any] = {"K": self.K_values} if own else {}
        columns |= {"threshold": values, "mean_size": [self.mean_size(value) for value in values]}
        if self.table.labels is not None:
            per_class = np.array([self.class_accuracy(threshold=value) for value in values])
            n = np.count_nonzero(self.table.labelled) or np.nan
            columns["accuracy"] = [np.count_nonzero(self.hits(threshold=value)) / n for value in values]
            columns["macro_accuracy"] = groups.mean_of_present(per_class)
            if self.table.class_counts is not None:
                codes, names = groups.classes_by(self.table, "shots")
                for code, name in enumerate(names):
                    columns[name] = groups.mean_of_present(per_class[:, codes == code])
        return pd.DataFrame(columns)

    def compact(self, thresholds: Iterable[float] | None = None, by: Any = None) -> dict[str, Any]:
        """All a browser needs to follow a slider over T thresholds without asking again.

        Fit the thresholds on val, draw test: `test_index.compact(val_index.thresholds)`. Keys (T thresholds, L classes,
        S = 51 size columns, the last one for all sizes ≥ 50):

        - `thresholds` (T,) float64 and `K` (T,) or None: `K_values`, when the thresholds are this table's own;
        - `mean_size` (T,) float64; `size_histogram` (T, S) int32, rows sum to `n`; `n`: number of rows;
        - with labels: `accuracy`, `macro_accuracy` (T,) float64; `class_hits` (T, L) and `class_rows` (L,) int32 (the
          accuracy of class c at threshold t is `class_hits[t, c] / class_rows[c]`, undefined without rows);
        - with labels and class counts: `shot_accuracy` {"few" | "medium" | "many": (T,) float64, NaN for an empty group};
        - `histogram_by` {group: (T, S) int32} by `by` (anything `size_histogram` takes); without `by`, by shot group
          where the table has one label per row and class counts, else {}; `mean_size_by` {group: (T,) float64}, NaN for
          a group without rows.
        """
        curve = self.curve(thresholds)
        values = curve["threshold"].to_numpy()
        table = self.table
        if by is None and table.labels is not None and not table.many_labels and table.class_counts is not None:
            by = "shots"
        codes, names = (np.zeros(table.n, np.int64), ()) if by is None else groups.rows_by(table, by)
        n_groups, n_columns = max(len(names), 1), LARGEST_SIZE + 1
        histograms = np.empty((len(values), n_groups, n_columns), np.int32)
        mean_sizes = np.empty((len(values), n_groups))
        for place, value in enumerate(values):
            sizes = self.sizes(threshold=value)
            histograms[place] = _histogram(np.minimum(sizes, LARGEST_SIZE), codes, n_groups, n_columns)
            mean_sizes[place] = groups.means(sizes, codes, n_groups)
        compact: dict[str, Any] = {
            "n": table.n,
            "K": curve["K"].to_numpy() if "K" in curve else None,
            "thresholds": values,
            "mean_size": curve["mean_size"].to_numpy(),
            "size_histogram": histograms.sum(1, dtype=np.int32),
            "histogram_by": {name: histograms[:, code] for code, name in enumerate(names)},
            "mean_size_by": {name: mean_sizes[:, code] for code, name in enumerate(names)},
        }
        if table.labels is not None:
            classes = table.positives()[1]
            found = [np.bincount(classes[self._membership(value)], minlength=table.n_classes) for value in values]
            compact |= {
                "accuracy": curve["accuracy"].to_numpy(),
                "macro_accuracy": curve["macro_accuracy"].to_numpy(),
                "class_hits": np.array(found, dtype=np.int32),
                "class_rows": np.bincount(classes, minlength=table.n_classes).astype(np.int32),
            }
            if table.class_counts is not None:
                compact["shot_accuracy"] = {shot: curve[shot].to_numpy() for shot in SHOTS}
        return compact

    def _threshold_of(self, K: float | None, threshold: float | None) -> float:
        if (K is None) == (threshold is None):
            raise ValueError("give either K= or threshold=")
        return self.threshold(K) if K is not None else rounded_up(_checked_threshold(threshold), self.table.dtype)

    def _membership(self, threshold: float) -> np.ndarray:
        """Of every (row, class) in `table.positives()`: is it in the set?"""
        self.table.checked_labels()
        assert self._label_probabilities is not None
        return self._label_probabilities >= rounded_up(threshold, self.table.dtype)

    def _count_sizes(self, threshold: float) -> np.ndarray:
        if threshold <= 0:  # every class: nothing needs to be read
            return read_only(np.full(self.table.n, self.table.n_classes))
        sizes = list(over_parts(self.table, sizes_of, threshold))
        return read_only(np.concatenate(sizes))  # cached and shared

    def _write(self, path: Path) -> None:
        arrays: dict[str, Any] = {
            "format": np.array(FORMAT),
            "key": np.array(self.table.key),
            "K_values": self.K_values,
            "probabilities": self._largest.probabilities,
            "positions": self._largest.positions,
            "floor": np.array(self._largest.floor),
        }
        if self._label_probabilities is not None and self._label_ranks is not None:
            arrays |= {"label_probabilities": self._label_probabilities, "label_ranks": self._label_ranks}
        with whole_file(path, sum(array.nbytes for array in arrays.values())) as aside, aside.open("wb") as file:
            np.savez(file, **arrays)

    def __repr__(self) -> str:
        return f"SetIndex({self.table!r}, K from {self.K_values[0]:g} to {self.K_values[-1]:g})"


def sizes_of(part: LogitTable, first_row: int, threshold: float) -> np.ndarray:
    """Number of classes of each row of a part that reach a threshold."""
    return np.concatenate([marked_in_rows(part.probabilities(rows) >= threshold) for rows in part.spans()])


def _checked_thresholds(given: Any) -> list[float]:
    thresholds = [_checked_threshold(value) for value in (given if isinstance(given, Iterable) else [given])]
    if not thresholds:
        raise ValueError("there are no thresholds; give at least one, or None for those of K_values")
    return thresholds


def _checked_threshold(threshold: Any) -> float:
    if not isinstance(threshold, numbers.Real) or math.isnan(threshold):
        raise ValueError(f"threshold = {threshold!r}; give the smallest probability that enters a set, a number")
    return float(threshold)


def _grid(K_max: float, step: float, table: LogitTable) -> np.ndarray:
    """1, 1 + step, … up to K_max or the number of classes: each the float that prints as the decimal.

    It begins below 1 where the rows have less than one label on average, for there sets of one class are too large.
    """
    if not step > 0:
        raise ValueError(f"step = {step} must be > 0")
    if not K_max >= 1:
        raise ValueError(f"K_max = {K_max} must be ≥ 1")
    n_above = int((exact(min(K_max, table.n_classes)) - 1) / exact(step))
    n_below = 0
    if table.labels is not None and len(table.positives()[0]) < table.n:
        n_below = int((1 - Fraction(1, 2 * table.n)) / exact(step))  # as far as sets hold a class together
    return np.array([float(1 + exact(step) * position) for position in range(-n_below, n_above + 1)])


def _histogram(sizes: np.ndarray, codes: np.ndarray, n_groups: int, n_columns: int) -> np.ndarray:
    """(groups, columns): how many rows of each group have each size."""
    return np.bincount(codes * n_columns + sizes, minlength=n_groups * n_columns).reshape(n_groups, n_columns)


def _read(path: Path, table: LogitTable, K_values: np.ndarray) -> tuple[Any, ...] | None:
    """The index that `_write` wrote, if it is of this very table and these values of K; a damaged file is not used."""
    try:
        found = {name: array.read() for name, array in contents_at(path).arrays.items()}
        same = int(found["format"]) == FORMAT and str(found["key"]) == table.key
        if not same or not np.array_equal(found["K_values"], K_values):
            return None
        largest = Largest(found["probabilities"], found["positions"], table.n_classes, float(found["floor"]))
        return largest, found.get("label_probabilities"), found.get("label_ranks")
    except Exception:  # a damaged archive has many errors; the index is built again
        return None
