"""Several rows of one object, such as five photographs of one plant: p-values of every class, aggregated with their exact law."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import Block, min_size_knob
from workbench.sets.conformal import Calibration, ConformalRule, FittedConformalRule, label_scores
from workbench.sets.marginal import ScoredRule, score_knob
from workbench.sets.per_class import FittedPerClass
from workbench.sets.scores import Score
from workbench.tables import LogitTable
from workbench.tables.ordering import some
from workbench.warning_capture import warn

TOLERANCE = 1e-9  # of p-values, which are computed in floating point
PIECE = 2**22  # scores and ranks that are held at once


@dataclass(frozen=True)
class Aggregate:
    """A statistic of the ranks of m new scores among n calibration scores, and its cumulative distribution.

    The rank of a score is the number of calibration scores that are at least as large, so that 1 + rank over n + 1 is its
    p-value. Scores without ties make every multiset of m ranks from 0 to n equally likely.
    """

    statistic: Callable[[np.ndarray], np.ndarray]  # (objects, m, L) ranks → (objects, L)
    distribution: Callable[[int, int], np.ndarray]  # n, m → the probability of at most each value


@lru_cache(maxsize=4096)
def sum_distribution(n: int, m: int) -> np.ndarray:
    """(n·m + 1,) P(sum of the ranks ≤ t): coefficients of the Gaussian binomial $\\binom{n + m}{m}_q$, summed.

    >>> sum_distribution(2, 2).tolist()  # of the sums 0, 1, 1 + 1 or 0 + 2, 1 + 2, 2 + 2 over 6 multisets
    [0.16666666666666666, 0.3333333333333333, 0.6666666666666666, 0.8333333333333334, 1.0]
    """
    counts = np.zeros(n * m + 1)
    counts[0] = 1
    for i in range(1, m + 1):  # times (1 − q^(n+i)) / (1 − q^i)
        counts[n + i :] -= counts[: len(counts) - n - i].copy()
        for start in range(i):
            counts[start::i] = np.cumsum(counts[start::i])
    return np.cumsum(counts) / math.comb(n + m, m)


@lru_cache(maxsize=4096)
def order_distribution(n: int, m: int, r: int) -> np.ndarray:
    """(n + 1,) P(r-th smallest rank ≤ t): at least r of the m ranks are among t + 1 of the n + 1 values.

    >>> order_distribution(2, 2, 1).tolist()  # the smallest: 3, 2 and 1 of 6 multisets
    [0.5, 0.8333333333333334, 1.0]
    """

    def multisets(k: int, size: int) -> int:
        """The number of multisets of some size from k values."""
        return math.comb(k + size - 1, size) if k else int(size == 0)

    ways = [
        sum(multisets(t + 1, inside) * multisets(n - t, m - inside) for inside in range(r, m + 1)) for t in range(n + 1)
    ]
    return np.array([way / math.comb(n + m, m) for way in ways])


def middle(m: int) -> int:
    """Rank of the lower median of m sorted values, from 1."""
    return (m + 1) // 2


AGGREGATES = {
    "mean": Aggregate(lambda ranks: ranks.sum(axis=1), sum_distribution),
    "median": Aggregate(
        lambda ranks: np.sort(ranks, axis=1)[:, middle(ranks.shape[1]) - 1],
        lambda n, m: order_distribution(n, m, middle(m)),
    ),
    "min": Aggregate(lambda ranks: ranks.min(axis=1), lambda n, m: order_distribution(n, m, 1)),
}


def objects_of(table: LogitTable, by: Any) -> np.ndarray:
    """(n,) the object of each row as a code.

    Raises:
        ValueError: the table has no such ids, or an id joins rows of two labels.
    """
    attributes = table.attributes or {}
    if callable(by):
        ids = np.asarray(by(table))
    elif by in attributes:
        ids = np.asarray(attributes[by])
    elif by == "ids":
        ids = table.row_ids
    else:
        known = ", ".join(["ids", *attributes])
        raise ValueError(
            f"by = {by!r} names no objects; this table has {known}: name one, or give a function of a table"
        )
    if ids.shape != (table.n,):
        raise ValueError(f"objects by {by!r} have shape {ids.shape}; give one id for each of the {table.n} rows")
    names, codes = np.unique(ids, return_inverse=True)
    check_one_label(table, names, codes)
    return codes


def check_one_label(table: LogitTable, names: np.ndarray, codes: np.ndarray) -> None:
    """An error if an id joins rows of two labels."""
    if table.labels is None:
        return
    labelled = np.flatnonzero(table.labelled)
    labels = np.asarray(table.labels)[labelled]
    first = np.full(len(names), -1)
    first[codes[labelled][::-1]] = np.arange(len(labelled))[::-1]
    own = labels[first[codes[labelled]]]
    wrong = np.flatnonzero(own != labels if labels.ndim == 1 else (own != labels).any(axis=1))
    if not len(wrong):
        return
    row, class_names = labelled[wrong[0]], table.named_classes()
    both = [
        some([class_names[j] for j in np.flatnonzero(one)] if labels.ndim == 2 else [class_names[int(one)]])
        for one in (own[wrong[0]], labels[wrong[0]])
    ]
    raise ValueError(
        f"{str(names[codes[row]])!r} joins rows of two labels ({both[0]}; {both[1]}): an id is of one object; "
        "correct the ids or the labels"
    )


@dataclass(frozen=True, eq=False, repr=False)
class FittedAggregate(FittedPerClass):
    """Calibration scores of every class; an object has a p-value of every class from all of its rows."""

    def calibration_rows(self) -> dict[str, int]:
        return {}  # the coverage of several rows together has another distribution

    def warn(self, rule: ConformalRule) -> None:
        _, impossible = self.calibration.without_limit(rule.confidence)
        if len(impossible):  # how many rows a class needs depends on the objects
            warn(self.impossible(rule, impossible), stacklevel=4)

    def row_values(self, table: LogitTable) -> np.ndarray:
        """(n, L) bool: the set of the object of each row."""
        inside, m = np.empty((table.n, table.n_classes), bool), 0
        for rows, statistics, distributions in self._of_objects(table):
            enough = [values > (1 - self.rule.confidence) * (1 + TOLERANCE) for values in distributions]
            if rows.shape[1] != m:
                m = rows.shape[1]
                self._warn_of_few(self._of_classes(np.array([each[0] for each in enough])), m)
            inside[rows] = self._looked_up(enough, statistics)[:, None]
        return inside

    def p_values(self, table: LogitTable) -> np.ndarray:
        """(n, L) the p-value of every class for the object of each row."""
        fitted, p_values = self.for_table(table), np.empty((table.n, table.n_classes))
        for rows, statistics, distributions in fitted._of_objects(table):
            p_values[rows] = fitted._looked_up(distributions, statistics)[:, None]
        return p_values

    def _of_objects(self, table: LogitTable) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray]]]:
        """Some objects of m rows at a time: their rows (objects, m), the statistics of their ranks (objects, L), and the
        distribution of these for each number of calibration scores."""
        codes = objects_of(table, self.rule.by)  # type: ignore[attr-defined]
        aggregate = AGGREGATES[self.rule.aggregate]  # type: ignore[attr-defined]
        rows, sizes = np.argsort(codes, kind="stable"), np.bincount(codes)
        ends = np.cumsum(sizes)
        for m in np.unique(sizes).tolist():
            of_objects = rows[(ends[sizes == m] - m)[:, None] + np.arange(m)]
            distributions = [aggregate.distribution(n, m) for n in np.unique(self.calibration.counts).tolist()]
            step = max(1, PIECE // (m * table.n_classes))
            for start in range(0, len(of_objects), step):
                these = of_objects[start : start + step]
                ranks = self._ranks(table.rows(these.ravel())).reshape(*these.shape, -1)
                yield these, aggregate.statistic(ranks), distributions

    def _ranks(self, table: LogitTable) -> np.ndarray:
        """(n, L) the number of calibration scores of each class that are at least as large as the score of a row."""
        scores = np.concatenate([self.score.of_classes(Block(table, rows)) for rows in table.spans()])
        ranks = np.empty(scores.shape, np.int32)
        for j, of_class in enumerate(scores.T):
            own = self.calibration.of_group(j)
            ranks[:, j] = len(own) - own.searchsorted(of_class)
        return ranks

    def _of_classes(self, values: np.ndarray) -> np.ndarray:
        """(L,) what is given for each number of calibration scores, for each class."""
        _, places = np.unique(self.calibration.counts, return_inverse=True)
        of_classes: np.ndarray = values[places]
        return of_classes

    def _looked_up(self, values: list[np.ndarray], statistics: np.ndarray) -> np.ndarray:
        """(objects, L) the values at the statistics, given for each number of calibration scores."""
        starts = np.cumsum([0, *map(len, values[:-1])])
        looked_up: np.ndarray = np.concatenate(values).take(statistics + self._of_classes(starts))
        return looked_up

    def _warn_of_few(self, always: np.ndarray, m: int) -> None:
        always = np.flatnonzero(always)
        if len(always):
            names = some([self.calibration.names[j] for j in always])
            rows = f"{m} row{'s' * (m > 1)}"
            warn(
                f"{len(always)} of {self.n_classes} classes ({names}) have too few rows to fit on for confidence "
                f"{self.rule.confidence:g}: they are in the set of every object of {rows}",
                stacklevel=4,
            )

    def to_make_sets(self) -> FittedConformalRule:
        return replace(self, calibration=None)


@dataclass(frozen=True)
class Aggregated(ScoredRule):
    r"""One set for all rows of an object: the p-values of a class in its rows, aggregated with their exact distribution.

    $$\Gamma(x_1, \dots, x_m) = \{j : F_{n_j, m}\big(T(r_1(j), \dots, r_m(j))\big) > 1 - \mathrm{confidence}\}, \qquad
    r_i(j) = \#\{\text{calibration scores of } j \ge s(x_i, j)\}$$

    T is the sum (`aggregate="mean"`), the lower median or the smallest of the ranks, and F its distribution: all multisets of m
    ranks from 0 to n_j are equally likely. Rows are joined by an attribute of the table (`by`), by its "ids", or by a function
    of a table. Every row of an object has the set of the object. With one row an object it is `ClassConditionalLAC`. It counts
    on rows that are drawn independently from their class, those of one object too.

    >>> p = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.2, 0.8]] * 5
    >>> val = LogitTable.from_probabilities(p, labels=[0, 0, 1, 1] * 5, attributes={"plant": list(range(20))})
    >>> new = LogitTable.from_probabilities([[0.55, 0.45]] * 3, attributes={"plant": ["a", "b", "b"]})
    >>> Aggregated(0.9, by="plant").fit(val).p_values(new).round(3).tolist()
    [[0.091, 0.091], [0.015, 0.015], [0.015, 0.015]]

    Fermanian, Hebiri & Salmon 2025 (arXiv 2507.07150).
    """

    title = "Sets of objects with several rows"
    formulation = "average error"
    guarantee = "class coverage"
    promise = "the label of an object is in the set with probability `confidence`, for each class"
    cost = "that of its score, and a search per class"
    fitted_kind = FittedAggregate

    by: str = knob(
        "object", kind="suggestion", choices=("object", "ids"), meaning="attribute that names the object of a row"
    )
    aggregate: str = knob("mean", choices=tuple(AGGREGATES), meaning="statistic of the p-values of an object")
    score: str = score_knob()
    min_size: int = min_size_knob()

    def missing(self, table: LogitTable) -> list[str]:
        has = callable(self.by) or self.by == "ids" or self.by in (table.attributes or {})
        return [*super().missing(table), *([] if has else [f"attributes[{self.by!r}]"])]

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        objects_of(table, self.by)  # an error if an id joins rows of two labels
        _, classes, scores = label_scores(score, table)
        return Calibration.grouped(scores, classes, table.named_classes())

    def mask(self, fitted: Any, block: Block) -> np.ndarray:
        mask: np.ndarray = block.row_values.copy()
        return mask
