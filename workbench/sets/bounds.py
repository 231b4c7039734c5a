"""Sets of rows whose probabilities are known in part: exact above what was left out, bounds below it.

The threshold of a rule is an order statistic. Unlisted probabilities are between 0 and their ceiling, so the threshold lies
between the statistic with zeros and the one with ceilings; sizes and coverage follow.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.exact_arithmetic import classes_of_rows, exact
from workbench.sets.base import Rule, checked_rule
from workbench.sets.basic_rules import AverageK, Threshold, TopK
from workbench.sets.conformal import LAC
from workbench.sets.thresholds import midpoint
from workbench.tables.partial import PartialTable

FLOAT64 = np.dtype(np.float64)
ROUNDING = 1e-9  # of a quotient that is a whole number


class Bounds(NamedTuple):
    """A number that is known to lie between two others; `str` says so in words.

    >>> str(Bounds(0.9, 0.9)), str(Bounds(0.88, 0.91)), str(Bounds(2.5, float("inf")))
    ('0.9', '0.88 to 0.91', 'at least 2.5')
    """

    low: float
    high: float

    @property
    def exact(self) -> bool:
        """Whether there is only one value that it can have."""
        return self.low == self.high

    def __str__(self) -> str:
        if math.isnan(self.low):
            return "unknown"
        if self.exact:
            return f"{self.low:.4g}"
        return f"at least {self.low:.4g}" if math.isinf(self.high) else f"{self.low:.4g} to {self.high:.4g}"


class UnknownThreshold(ValueError):
    """The rows list too few classes for this rule: its threshold may be anything down to 0."""


def threshold_bounds(rule: Rule, table: PartialTable) -> Bounds:
    """The threshold of a rule fitted on rows whose probabilities are known in part.

    Args:
        rule: `Threshold`, `AverageK` or `LAC`.
        table: The rows to fit on; `LAC` needs labels.

    Raises:
        UnknownThreshold: too few classes are listed to bound it away from 0.
        ValueError: another rule is given.

    Example:
        >>> rows = PartialTable.from_rows([{0: 0.75, 1: 0.2}, {1: 0.5, 2: 0.25}], n_classes=4)
        >>> threshold_bounds(AverageK(1), rows)
        Bounds(low=0.375, high=0.375)
    """
    match checked_rule(rule):
        case Threshold(threshold=threshold):
            return Bounds(threshold, threshold)
        case AverageK(tau=0) as average:
            return _average_k(average, table)
        case LAC() as conformal:
            return _lac(conformal, table)
    raise ValueError(
        f"{rule!r} needs the probabilities of all classes; with those of some give TopK, AverageK, Threshold or LAC"
    )


def _average_k(rule: AverageK, table: PartialTable) -> Bounds:
    m = classes_of_rows(rule.K, table.n)
    if table.n_classes is not None and m >= table.n * table.n_classes:
        return Bounds(0.0, 0.0)
    values, weights = table.probabilities, np.ones(len(table.probabilities))
    if m > np.count_nonzero(values):
        raise UnknownThreshold(
            f"{rule.short()}: the threshold is unknown. The rows list {np.count_nonzero(values) / table.n:.3g} classes on "
            f"average, which is the largest K; give more classes of each row"
        )
    low = _midpoint_at(m, values, weights)
    return Bounds(low, max(low, _midpoint_at(m, *_largest_possible(table, low))))


def _largest_possible(table: PartialTable, low: float) -> tuple[np.ndarray, np.ndarray]:
    """The listed probabilities and the largest that the unlisted can be, with how often each stands.

    k unlisted classes of a row that sum to at most `rest` have a k-th largest of at most rest / k.
    """
    possible = np.flatnonzero(table.ceilings >= low)
    values, weights = [table.probabilities], [np.ones(len(table.probabilities))]
    if not table.sums_to_one:
        values.append(table.ceilings[possible])
        weights.append(np.minimum(table.n_unlisted[possible], 1e18))
    else:
        times = _room_for(table, low)[possible].astype(np.int64)
        row = np.repeat(possible, times)
        k = 1 + np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
        values.append(np.minimum(table.ceilings[row], table.rest[row] / k))
        weights.append(np.ones(len(k)))
    return np.concatenate(values), np.concatenate(weights)


def _midpoint_at(m: int, values: np.ndarray, weights: np.ndarray) -> float:
    falling = np.argsort(-values, kind="stable")
    reached = np.cumsum(weights[falling])
    above, below = (
        float(values[falling[at]]) if at < len(values) else 0.0 for at in np.searchsorted(reached, (m, m + 1))
    )
    return midpoint(above, below, FLOAT64)


def _lac(rule: LAC, table: PartialTable) -> Bounds:
    if not table.labelled.any():
        raise ValueError(f"{rule.short()} is fitted on labels, and no row has one")
    known = table.label_probabilities[table.labelled]
    k = math.ceil((len(known) + 1) * exact(rule.confidence))
    if k > len(known):
        raise UnknownThreshold(
            f"{rule.short()}: {len(known)} labelled rows cannot promise it; every class would be in every set. Give at least "
            f"{math.ceil(exact(rule.confidence) / (1 - exact(rule.confidence)))} rows, or a smaller confidence"
        )
    ceilings = table.ceilings[table.labelled]
    low, high = (-np.sort(-np.where(np.isnan(known), unlisted, known))[k - 1] for unlisted in (0.0, ceilings))
    if low <= 0:
        share = float(np.mean(~np.isnan(known)))
        raise UnknownThreshold(
            f"{rule.short()}: the threshold is unknown. {share:.1%} of the labels are among the listed classes; give more "
            "classes of each row, or a smaller confidence"
        )
    return Bounds(float(low), float(high))


def _room_for(table: PartialTable, threshold: float) -> np.ndarray:
    """(n,) how many unlisted classes can reach a threshold at most."""
    fit = np.floor(table.rest / threshold + ROUNDING) if threshold > 0 else np.full(table.n, np.inf)
    return np.where(table.ceilings >= threshold, np.minimum(table.n_unlisted, fit), 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class SetBounds:
    """Sets of rows whose probabilities are known in part.

    Args:
        table: The rows.
        rule: The rule.
        threshold: Where its threshold lies; None for top-K sets, which need none.
    """

    table: PartialTable
    rule: Rule
    threshold: Bounds | None

    @cached_property
    def sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) the smallest and the largest size that each set can have."""
        if self.threshold is None:
            K = float(self._top_k)
            return np.full(self.table.n, K), np.full(self.table.n, K)
        low, high = (self._listed_at(at) for at in (self.threshold.high, self.threshold.low))
        return low, high + _room_for(self.table, self.threshold.low)

    @cached_property
    def hits(self) -> tuple[np.ndarray, np.ndarray]:
        """(n,) bool: which sets contain the label for certain, and which may. False for rows without a label."""
        p, table = self.table.label_probabilities, self.table
        unlisted = np.isnan(p) & table.labelled
        if self.threshold is None:
            certain = self._rank_of_label <= self._top_k
            return certain, certain | (unlisted & (table.n_listed < self._top_k))
        certain, possible = p >= self.threshold.high, p >= self.threshold.low
        if self.threshold.high <= 0:
            return table.labelled, table.labelled
        return certain, possible | (unlisted & (table.ceilings >= self.threshold.low))

    @property
    def exact(self) -> np.ndarray:
        """(n,) bool: rows whose set is known."""
        known: np.ndarray = np.equal(*self.sizes) & np.equal(*self.hits)
        return known & (self.table.n_listed >= self._top_k) if self.threshold is None else known

    @property
    def mean_size(self) -> Bounds:
        """The mean size of the sets."""
        return Bounds(*(float(sizes.mean()) for sizes in self.sizes))

    @property
    def coverage(self) -> Bounds:
        """The share of labelled rows whose set contains the label."""
        at = self.table.labelled
        return Bounds(*(float(hits[at].mean()) if at.any() else math.nan for hits in self.hits))

    @property
    def macro_coverage(self) -> Bounds:
        """The mean over classes of their coverage."""
        at = self.table.labelled
        if self.table.labels is None or not at.any():
            return Bounds(math.nan, math.nan)
        of_classes = [pd.Series(hits[at]).groupby(self.table.labels[at]).mean() for hits in self.hits]
        return Bounds(*(float(each.mean()) for each in of_classes))

    def members(self, i: int) -> np.ndarray:
        """The classes that are in the set of row i for certain, by falling probability."""
        row = slice(*self.table.offsets[[i, i + 1]])
        if self.threshold is None:
            return self.table.classes[row][: self._top_k]
        return self.table.classes[row][self.table.probabilities[row] >= self.threshold.high]

    def to_frame(self) -> pd.DataFrame:
        """One line per row: id, label, certain and possible size, certain and possible hit, the certain classes."""
        names, table = np.array(self.table.named_classes(), dtype=object), self.table
        columns: dict[str, Any] = {"id": np.arange(table.n) if table.ids is None else table.ids}
        if table.labels is not None:
            columns["label"] = [names[label] if label >= 0 else None for label in table.labels]
            columns |= {"hit_low": self.hits[0], "hit_high": self.hits[1]}
        members = [names[self.members(i)].tolist() for i in range(table.n)]
        return pd.DataFrame(
            columns | {"size_low": self.sizes[0], "size_high": self.sizes[1], "exact": self.exact, "classes": members}
        )

    def summary(self) -> pd.DataFrame:
        """Threshold, mean size and coverage: low, high, and the words for them."""
        numbers = {"mean_size": self.mean_size, "coverage": self.coverage, "macro_coverage": self.macro_coverage}
        if self.threshold is not None:
            numbers = {"threshold": self.threshold, **numbers}
        lines = [(name, each.low, each.high, "exact" if each.exact else str(each)) for name, each in numbers.items()]
        return pd.DataFrame(lines, columns=["metric", "low", "high", "known"])

    def _listed_at(self, threshold: float) -> np.ndarray:
        if threshold <= 0:
            return np.asarray(self.table.n_listed + self.table.n_unlisted)
        reached = self.table.row_of[self.table.probabilities >= threshold]
        return np.bincount(reached, minlength=self.table.n).astype(float)

    @property
    def _top_k(self) -> int:
        return int(getattr(self.rule, "K", 0))

    @cached_property
    def _rank_of_label(self) -> np.ndarray:
        """(n,) the rank of the label among the listed classes, from 1; infinite where it is not listed."""
        ranks = np.full(self.table.n, np.inf)
        if self.table.labels is not None:
            at = np.flatnonzero(self.table.classes == self.table.labels[self.table.row_of])
            ranks[self.table.row_of[at]] = at - self.table.offsets[self.table.row_of[at]] + 1
        return ranks

    def __repr__(self) -> str:
        exact_rows = int(self.exact.sum())
        return (
            f"SetBounds({self.table.n} rows, {exact_rows} exact; mean size {self.mean_size}, coverage {self.coverage})"
        )


def bounded_sets(rule: Rule, val: PartialTable, test: PartialTable) -> SetBounds:
    """Fit a rule on rows whose probabilities are known in part, and bound its sets on other such rows.

    Args:
        rule: `TopK`, `AverageK`, `Threshold` or `LAC`, with `min_size=0`.
        val: The rows to fit on.
        test: The rows to judge on.

    Raises:
        UnknownThreshold: too few classes are listed.

    Example:
        >>> rows = PartialTable.from_rows([{0: 0.7, 1: 0.2}, {1: 0.6, 2: 0.3}], [0, 3], n_classes=4)
        >>> bounded_sets(Threshold(0.25), rows, rows)
        SetBounds(2 rows, 2 exact; mean size 1.5, coverage 0.5)
        >>> bounded_sets(Threshold(0.1), rows, rows)
        SetBounds(2 rows, 0 exact; mean size 2 to 3, coverage 0.5 to 1)
    """
    if getattr(rule, "min_size", 0):
        raise ValueError(f"min_size = {rule.min_size}; bounds are for min_size=0")  # type: ignore[attr-defined]
    if isinstance(rule, TopK):
        return SetBounds(test, rule, None)
    return SetBounds(test, rule, threshold_bounds(rule, val))
