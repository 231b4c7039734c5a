"""Metrics of conditional coverage: undercovered classes and sizes, the worst slab, the price of abstaining."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.metrics.base import Parts, PointParts, metric
from workbench.metrics.probability_metrics import TOP, top_classes, tops
from workbench.metrics.row_facts import remembered
from workbench.metrics.set_metrics import _by_size, _per_class, ratio
from workbench.sets import PredictionSets
from workbench.sets.prevalence import checked_importance
from workbench.tables import LogitTable, groups

SLABS, LEAST, CELLS = 100, 0.1, 20  # directions that are tried, the smallest share of the rows in a slab, ends of slabs
CURVE = 1000  # neighbours that are summed together in a resample of a curve, where there are more rows


def promised_coverage(sets: PredictionSets, confidence: float | None) -> float:
    """The confidence that was given, that of the rule, or the coverage reached."""
    promised = getattr(getattr(sets.rule, "rule", None), "confidence", None) if confidence is None else confidence
    return float(sets.hits.mean()) if promised is None else float(promised)


@metric(title="Classes below half the promise", direction="lower", inflated="up")
def classes_left_behind(sets: PredictionSets, confidence: float | None = None) -> Parts:
    """The share of classes that are in the sets of their own rows less than half as often as promised.

    Ding, Fermanian & Salmon 2025 (their share of classes below 50 %, relative to the promise).

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        confidence: The promise, where it is not that of the rule.
    """
    half = promised_coverage(sets, confidence) / 2
    return _per_class(sets, lambda shares: groups.mean_of_present(np.where(np.isnan(shares), np.nan, shares < half)))


@metric(title="Importance-weighted coverage", direction="higher")
def weighted_coverage(sets: PredictionSets, importance: Sequence[float] | None = None) -> Parts:
    r"""$\sum_y \omega_y c_y / \sum_y \omega_y$ of the coverage c of every class and its importance ω.

    The importance is that of the rule (`PAS`, `MacroCoverage`), unless it is given; NaN where there is none. Classes without
    rows do not count. With equal importance it is the macro-coverage (Ding, Fermanian & Salmon 2025, Sec. 2.3).

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        importance: One number above 0 for each class.
    """
    if importance is None:
        importance = getattr(getattr(sets.rule, "rule", None), "importance", None)
    if importance is None:
        return _per_class(sets, lambda shares: np.full(shares.shape[:-1], np.nan))
    weights = checked_importance(importance, sets.table.n_classes)

    def formula(shares: np.ndarray) -> np.ndarray:
        present = ~np.isnan(shares) * weights
        return ratio((np.nan_to_num(shares) * present).sum(-1), present.sum(-1))

    return _per_class(sets, formula)


@metric(title="Size-stratified violation (SSCV)", direction="lower", inflated="up")
def size_stratified_violation(
    sets: PredictionSets, confidence: float | None = None, edges: tuple[int, ...] = (0, 1, 2, 4, 11, 101)
) -> Parts:
    """The largest |coverage − promise| among sets of size 0, 1, 2–3, 4–10, 11–100 and more.

    Angelopoulos et al. 2021.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        confidence: The promise, where it is not that of the rule.
        edges: The first size of each group.
    """
    promised = promised_coverage(sets, confidence)
    return _by_size(
        sets, edges, lambda shares, _: np.max(np.where(np.isnan(shares), 0, np.abs(shares - promised)), axis=-1)
    )


@metric(title="Worst-slab coverage", direction="higher", inflated="down")
def worst_slab_coverage(sets: PredictionSets, seed: int = 0) -> Parts:
    """The coverage of the slab {x : a ≤ v·x ≤ b} of at least a tenth of the rows that is covered worst.

    One hundred random directions v in the features (in the scores, where a table has none). The slab is found on half of
    the rows and its coverage measured on the others (Cauchois, Gupta & Duchi 2021). There is no interval.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        seed: Of the directions and of the halves.
    """
    table = sets.table
    if table.n < 4:
        return PointParts.of(table.n, float(sets.hits.mean()))
    slabs: Slabs = remembered(table, ("slabs", seed), lambda: Slabs.of(table, seed))
    v, low, high = slabs.worst(sets.hits)
    values = np.concatenate([projection(features_of(table)[rows], v)[:, 0] for rows in table.spans()])
    inside = ~slabs.first & (values >= low) & (values <= high)
    return PointParts.of(table.n, float(sets.hits[inside].mean()) if inside.any() else np.nan)


@dataclass(frozen=True, eq=False)
class Slabs:
    """Half of the rows, projected on random directions and parted into twenty cells along each."""

    directions: np.ndarray  # (features, S)
    first: np.ndarray  # (n,) bool: the half that the slab is found on
    cells: np.ndarray  # (S, rows of that half) the cell of each row, counted on over the directions
    lows: np.ndarray  # (S, cells) the least value of a cell
    highs: np.ndarray  # (S, cells) and the largest
    ends: np.ndarray  # (cells + 1,) how many rows lie before a cell

    @classmethod
    def of(cls, table: LogitTable, seed: int) -> Self:
        """The slabs of a table, in the precision of its features."""
        rng, x = np.random.default_rng(seed), features_of(table)
        directions = rng.normal(size=(int(np.prod(x.shape[1:])), SLABS))
        first = rng.permutation(table.n) < table.n // 2
        projected = np.concatenate([projection(x[rows][first[rows]], directions) for rows in table.spans()]).T
        rising = np.sort(projected, axis=1)
        ends = np.unique(np.linspace(0, rising.shape[1], CELLS + 1).round().astype(int))
        lows = rising[:, ends[:-1]]
        cells = np.zeros(projected.shape, np.uint8)
        for low in lows.T[1:, :, None]:  # a tenth of the time of a search for each value
            cells += projected >= low
        along = (len(ends) - 1) * np.arange(SLABS)[:, None]
        return cls(directions, first, along + cells, lows, rising[:, ends[1:] - 1], ends)

    @cached_property
    def _counts(self) -> np.ndarray:
        """(S, cells) the number of rows in each cell."""
        return np.bincount(self.cells.ravel(), minlength=self.lows.size).reshape(self.lows.shape)

    def worst(self, hits: np.ndarray) -> tuple[np.ndarray, float, float]:
        """The direction (features, 1) and the ends of the slab of at least a tenth of the half that is covered worst."""
        counts = self._counts
        missed = np.bincount(self.cells[:, ~hits[self.first]].ravel(), minlength=counts.size).reshape(counts.shape)
        before, hit_before = (np.pad(np.cumsum(each, axis=1), ((0, 0), (1, 0))) for each in (counts, counts - missed))
        least = max(1, LEAST * self.cells.shape[1])
        low, high = np.nonzero(self.ends - self.ends[:, None] >= least)
        coverage = ratio(hit_before[:, high] - hit_before[:, low], before[:, high] - before[:, low])
        direction, slab = np.unravel_index(np.nanargmin(coverage), coverage.shape)
        ends = self.lows[direction, low[slab]], self.highs[direction, high[slab] - 1]
        return self.directions[:, [direction]], *ends


def features_of(table: LogitTable) -> np.ndarray:
    """(n, …) the features of the rows, or their scores where there are none."""
    return table.scores if table.features is None else table.features


def projection(x: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """(rows, directions) in float32, or float64 where that is the type of the features."""
    flat = x.reshape(len(x), -1)
    flat = flat.astype(np.float64 if flat.dtype.kind != "f" or flat.dtype == np.float64 else np.float32, copy=False)
    projected: np.ndarray = flat @ directions.astype(flat.dtype)
    return projected


@dataclass(frozen=True, eq=False)
class CurveParts(Parts):
    """The area under a curve of errors over rows in a fixed order: its value is exact.

    On resamples neighbours in the order are summed together, a thousand at most, and the error of that on all rows (below
    1e-5) is taken out.
    """

    exact: float = math.nan

    def value(self) -> Any:
        return self.exact

    def resampled(self, weights: np.ndarray, known: dict[Any, np.ndarray] | None = None) -> dict[str, np.ndarray]:
        return {"": super().resampled(weights, known)[""] + self._off}

    @cached_property
    def _off(self) -> float:
        return self.exact - float(self.formula(self.sums()))


def curve_area(sums: np.ndarray) -> np.ndarray:
    """The area from the numbers of rows and of errors (…, cells, 2) of neighbours: within a cell errors come evenly."""
    rows, wrong = sums[..., 0], sums[..., 1]
    middle = (rows + 1) / 2  # row of a cell, counted from 1
    risk = (np.cumsum(wrong, axis=-1) - wrong + middle * ratio(wrong, rows)) / (
        np.cumsum(rows, axis=-1) - rows + middle
    )
    area: np.ndarray = np.nansum(rows * risk, axis=-1) / rows.sum(axis=-1)
    return area


@metric(
    title="Area under the risk-coverage curve", direction="lower", subject="table", labels="one", reads=(tops(TOP),)
)
def risk_coverage_area(table: LogitTable) -> Parts:
    """The mean error of the most confident rows, over every share of the rows that one may answer (AURC).

    0 if every row is right. The error is that of the most probable class, the confidence its probability: how well one can
    abstain. Geifman, Uziel & El-Yaniv 2019.

    Args:
        table: The rows, with their scores and labels.
    """
    table.checked_labels()
    confidence, _, right = (values[:, 0] for values in top_classes(table, 1))
    place, order = np.empty(table.n, np.int64), np.argsort(-confidence, kind="stable")
    place[order] = np.arange(table.n)
    exact = float((np.cumsum(~right[order]) / np.arange(1, table.n + 1)).mean())
    n_cells = min(table.n, CURVE)
    columns = np.column_stack([np.ones(table.n), ~right])
    return CurveParts(table.n, columns, curve_area, place * n_cells // table.n, n_cells, exact=exact)
