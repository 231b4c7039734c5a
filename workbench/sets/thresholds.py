"""Average-K thresholds, and the largest of all n·L probabilities of a table, exactly, part by part.

A threshold is an order statistic of the whole matrix (Garcin et al. 2023, Algorithm 1), which is counted
(`order_statistics.py`). The index of all thresholds needs the largest probabilities themselves. Sorting the matrix costs
400 reads of it; here a bound is guessed from a sample of rows, one pass keeps what lies above it, and only those are
sorted. The guess changes the time, never the answer: if too little survives, the pass is repeated with less faith.
"""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from workbench.exact_arithmetic import classes_of_rows
from workbench.sets.order_statistics import likely_bracket, order_statistics, sample
from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts

SPARE = 2**19  # probabilities held beside twice the number needed


def rounded_up(threshold: float, dtype: np.dtype) -> float:
    """The smallest number of that type ≥ threshold: `probabilities >= it` is what `probabilities >= threshold` means.

    >>> rounded_up(0.3, np.dtype("float32"))  # the float32 nearest to 0.3 lies above it, so it stays
    0.30000001192092896
    >>> rounded_up(0.7, np.dtype("float32"))  # the nearest to 0.7 lies below, so the next one is taken
    0.7000000476837158
    """
    nearest = dtype.type(threshold)
    if float(nearest) < threshold:
        nearest = np.nextafter(nearest, dtype.type(np.inf))
    return float(nearest)


def midpoint(above: float, below: float, dtype: np.dtype) -> float:
    """The threshold between two probabilities: their midpoint in float64, rounded up to the table's type.

    `above >= midpoint > below` when the two differ; equal ones both enter.
    """
    middle = below + (above - below) / 2
    if middle <= below < above:  # neighbours in float64: the midpoint rounded to the lower one
        return above
    return rounded_up(middle, dtype)


def smallest_positive(dtype: np.dtype) -> float:
    """The number next to 0 of a type: every probability but an exact 0 reaches it."""
    return float(np.finfo(dtype).smallest_subnormal)


@dataclass(frozen=True, eq=False)
class Largest:
    """Some of the largest probabilities of a table, falling, and where they stand; exact zeros are never among them.

    `floor`: every probability ≥ floor is here. (Of a value that is tied too often, only as many as were asked for.)
    """

    probabilities: np.ndarray  # (m',) falling, > 0
    positions: np.ndarray  # (m',) row · L + class; rising among equal probabilities
    n_classes: int
    floor: float

    @cached_property
    def rows(self) -> np.ndarray:
        """(m',) the row each stands in."""
        return self.positions // self.n_classes

    @property
    def classes(self) -> np.ndarray:
        """(m',) the class each belongs to."""
        classes: np.ndarray = self.positions - self.rows * self.n_classes
        return classes

    def count(self, threshold: float) -> int:
        """Number of probabilities ≥ threshold; the threshold must not lie below the floor."""
        rising = self.probabilities[::-1]
        return len(rising) - int(np.searchsorted(rising, rising.dtype.type(threshold), side="left"))

    def threshold(self, m: int) -> float | None:
        """The threshold that m of all probabilities reach, fewer than all there are; None if too few are here to tell."""
        held, dtype = self.probabilities, self.probabilities.dtype
        if m < len(held):
            return midpoint(float(held[m - 1]), float(held[m]), dtype)
        if self.floor > smallest_positive(dtype):
            return None
        if m == len(held):  # what follows is 0
            return midpoint(float(held[-1]), 0.0, dtype)
        return float(held[-1]) if len(held) else smallest_positive(dtype)


def largest_probabilities(table: LogitTable, m: int) -> tuple[Largest, np.ndarray | None]:
    """At least the m largest of all n·L probabilities (1 ≤ m ≤ n·L): exactly what sorting them all would give.

    Where fewer than m are above 0, those. The same pass sees the probability of every label, in the order of
    `table.positives()`; None without labels.
    """
    rows = sample(table)
    for slack in (1.1, 4.0, math.inf):
        found = _at_least(table, _bound(table, rows, m, slack), m)
        if found is not None:
            return found
    raise AssertionError("without a bound every probability survives")  # pragma: no cover


def threshold_at_mean_size(table: LogitTable, K: float) -> float:
    """The average-K threshold: midpoint of the m-th and (m+1)-th largest of all probabilities, m = K·n.

    Unlabelled rows will do (Garcin et al. 2023, Algorithm 1; Garcin, thesis, Eq. 2.27–2.30). K = L gives 0. Where fewer
    than m probabilities are above 0 it is the smallest of those, so that a class of probability 0 enters no set by a tie.
    """
    return cut_at_mean_size(table, K)[0]


def threshold_among(probabilities: np.ndarray, m: int) -> float:
    """`threshold_at_mean_size` of a table whose probabilities are all in memory: one partition finds it.

    >>> threshold_among(np.array([[0.5, 0.25, 0.25], [0.75, 0.25, 0.0]]), 2)
    0.375
    """
    if m >= probabilities.size:
        return 0.0
    parted = probabilities.flatten()
    parted.partition(parted.size - m)
    above = float(parted[-m])
    if above > 0:
        return midpoint(above, float(parted[:-m].max()), parted.dtype)
    positive = parted[parted > 0]
    return float(positive.min()) if len(positive) else smallest_positive(parted.dtype)


def cut_at_mean_size(table: LogitTable, K: float) -> tuple[float, int]:
    """The average-K threshold, and how many probabilities reach it: m, unless some are equal or too few are above 0."""
    m = checked_m(K, table)
    if m == table.n * table.n_classes:
        return 0.0, m
    found, n_positive = order_statistics(table, (m, m + 1), likely_bracket(table, m))
    if m in found:
        above, below = found[m], found[m + 1].value if m + 1 in found else 0.0
        threshold = midpoint(above.value, below, table.dtype)
        return threshold, m if above.value > below else above.at_least
    if not n_positive:
        return smallest_positive(table.dtype), 0
    found, _ = order_statistics(table, [n_positive])
    return found[n_positive].value, n_positive


def checked_m(K: float, table: LogitTable) -> int:
    """K·n, or an error when no such mean size exists; K ≥ L means all classes."""
    if not (isinstance(K, numbers.Real) and math.isfinite(K)):
        raise ValueError(f"K = {K!r}; give the number of classes in a set on average, up to {table.n_classes}")
    m = classes_of_rows(K, table.n)
    if m < 1:
        raise ValueError(f"K = {K:g} with {table.n} rows returns no class at all; give K ≥ {1 / table.n:.3g}")
    return min(m, table.n * table.n_classes)


def _bound(table: LogitTable, rows: np.ndarray, m: int, slack: float) -> float:
    """A value that probably more than m probabilities reach: the same share of a sample of rows, with slack.

    Without faith in a sample, what every probability above 0 reaches.
    """
    lowest = smallest_positive(table.dtype)
    expected = math.inf if math.isinf(slack) else math.ceil(m * slack * len(rows) / table.n)
    if len(rows) == table.n or expected >= rows.size:
        return lowest
    return max(float(np.partition(rows.ravel(), rows.size - int(expected))[rows.size - int(expected)]), lowest)


@dataclass(frozen=True)
class _Held:
    """Probabilities that reached a bound, where they stand, and the largest one that was dropped for lack of room."""

    values: np.ndarray
    positions: np.ndarray
    lost: float = -math.inf


def _at_least(table: LogitTable, bound: float, m: int) -> tuple[Largest, np.ndarray | None] | None:
    """All probabilities ≥ bound > 0, cut to the m largest (with ties, where they fit); and those of the labels.

    None when there are fewer than m, unless those are all that are above 0.
    """
    held, of_labels = [], []
    for found, labels in over_parts(table, reaching, bound, m):
        held.append(found)
        of_labels.append(labels)
        if sum(len(each.values) for each in held) > 2 * m + SPARE:
            held = [_cut(held, m)]
    kept = _cut(held, m)
    values, positions = _falling(kept)
    label_probabilities = None if table.labels is None else np.concatenate(of_labels)
    if len(values) < m:
        if bound > smallest_positive(table.dtype):
            return None
        return Largest(values, positions, table.n_classes, bound), label_probabilities
    smallest = values[m - 1]
    floor = smallest if kept.lost < smallest else np.nextafter(smallest, values.dtype.type(np.inf))
    return Largest(values, positions, table.n_classes, float(floor)), label_probabilities


def reaching(part: LogitTable, first_row: int, bound: float, m: int) -> tuple[_Held, np.ndarray]:
    """The probabilities of some rows that reach a bound, at most what the m largest of all may need; and of the labels."""
    rows_of, classes_of = (np.zeros(0, np.int64),) * 2 if part.labels is None else part.positives()
    of_labels = np.empty(len(rows_of), part.dtype)
    held: list[_Held] = []
    for rows in part.spans():
        probabilities = part.probabilities(rows)
        inside = slice(*np.searchsorted(rows_of, (rows.start, rows.stop)))
        of_labels[inside] = probabilities[rows_of[inside] - rows.start, classes_of[inside]]
        flat = probabilities.ravel()
        positions = np.flatnonzero(flat >= flat.dtype.type(bound))
        held.append(_Held(flat[positions], positions + (first_row + rows.start) * part.n_classes))
        if sum(len(each.values) for each in held) > 2 * m + SPARE:
            held = [_cut(held, m)]
            bound = float(held[0].values.min())
    return _cut(held, m), of_labels


def _cut(held: list[_Held], m: int) -> _Held:
    """The m largest: all that are as large as the m-th; of too many equal ones the first."""
    values = np.concatenate([each.values for each in held])
    positions = np.concatenate([each.positions for each in held])
    lost = max(each.lost for each in held)
    if len(values) <= m:
        return _Held(values, positions, lost)
    smallest = np.partition(values, len(values) - m)[len(values) - m]
    kept = np.flatnonzero(values >= smallest)
    if len(kept) > 2 * m + SPARE or lost >= smallest:  # also where some of the equal ones were dropped before
        larger = np.flatnonzero(values > smallest)
        equal = np.flatnonzero(values == smallest)
        first = np.argsort(positions[equal], kind="stable")[: m - len(larger)]
        kept, lost = np.concatenate([larger, equal[first]]), max(lost, float(smallest))
    return _Held(values[kept], positions[kept], lost)


def _falling(held: _Held) -> tuple[np.ndarray, np.ndarray]:
    """The largest first; equal ones in the order of their rows and classes."""
    order = np.argsort(held.values)[::-1]
    values, positions = held.values[order], held.positions[order]
    same = values[1:] == values[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    positions[tied] = positions[tied][np.lexsort((positions[tied], -values[tied]))]
    return values, positions
