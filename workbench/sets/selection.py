"""The largest of all n·L probabilities of a table, exactly, block by block.

Average-K thresholds are order statistics of the whole matrix (Garcin et al. 2023, Algorithm 1). Sorting it costs 400
reads of the matrix; here a bound is guessed from a sample of rows, one pass keeps what lies above it, and only those
are sorted. The guess changes the time, never the answer: if too little survives, the pass is repeated with less faith.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.counts import classes_of_rows
from workbench.tables import LogitTable

SAMPLED = 2**20  # probabilities looked at to guess a bound
HELD = 2**22  # more values than this are not kept but counted


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
    positions: np.ndarray  # (m',) row · L + class
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
        """How many probabilities are ≥ threshold; the threshold must not lie below the floor."""
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


def largest_probabilities(
    table: LogitTable, m: int, watch: Callable[[slice, np.ndarray], None] | None = None
) -> Largest:
    """At least the m largest of all n·L probabilities (1 ≤ m ≤ n·L): exactly what sorting them all would give.

    Where fewer than m are above 0, those. `watch(rows, probabilities)` sees every block that passes by (again, if the
    pass is repeated).
    """
    for slack in (1.1, 4.0, math.inf):
        found = _at_least(table, _sampled_bound(table, m, slack), m, watch)
        if found is not None:
            return found
    raise AssertionError("without a bound every probability survives")  # pragma: no cover


def threshold_at_mean_size(table: LogitTable, K: float) -> float:
    """The average-K threshold: midpoint of the m-th and (m+1)-th largest of all probabilities, m = K·n.

    Unlabelled rows will do (Garcin et al. 2023, Algorithm 1; Garcin, thesis, Eq. 2.27–2.30). K = L gives 0. Where fewer
    than m probabilities are above 0 it is the smallest of those, so that a class of probability 0 enters no set by a tie.
    """
    return cut_at_mean_size(table, K)[0]


def cut_at_mean_size(table: LogitTable, K: float) -> tuple[float, int]:
    """The average-K threshold, and how many probabilities reach it: m, unless some are equal or too few are above 0."""
    m = checked_m(K, table)
    if m == table.n * table.n_classes:
        return 0.0, m
    if m < HELD:
        largest = largest_probabilities(table, m + 1)
        threshold = largest.threshold(m)
        assert threshold is not None
        if threshold >= largest.floor:
            return threshold, largest.count(threshold)
        return threshold, _reaching(table, threshold)
    above = _counted_order_statistic(table, m)
    if above == 0:
        lowest = min(float(block[block > 0].min(initial=np.inf)) for block in table.blocks())
        threshold = lowest if math.isfinite(lowest) else smallest_positive(table.dtype)
        return threshold, _reaching(table, threshold)
    below = _counted_order_statistic(table, m + 1)
    threshold = midpoint(above, below, table.dtype)
    return threshold, m if above > below else _reaching(table, threshold)


def _reaching(table: LogitTable, threshold: float) -> int:
    return sum(int(np.count_nonzero(block >= threshold)) for block in table.blocks())


def checked_m(K: float, table: LogitTable) -> int:
    """K·n, or an error when no such mean size exists; K ≥ L means all classes."""
    if not (isinstance(K, numbers.Real) and math.isfinite(K)):
        raise ValueError(f"K = {K!r}; give the number of classes in a set on average, up to {table.n_classes}")
    m = classes_of_rows(K, table.n)
    if m < 1:
        raise ValueError(f"K = {K:g} with {table.n} rows returns no class at all; give K ≥ {1 / table.n:.3g}")
    return min(m, table.n * table.n_classes)


def _sampled_bound(table: LogitTable, m: int, slack: float) -> float:
    """A value that probably more than m probabilities reach: the same share of a sample of rows, with slack.

    Without faith in a sample, what every probability above 0 reaches.
    """
    step = table.n * table.n_classes // SAMPLED
    lowest = smallest_positive(table.dtype)
    if step < 2 or math.isinf(slack):
        return lowest
    sample = table.probabilities(slice(None, None, step))
    wanted = math.ceil(m * slack * len(sample) / table.n)
    if wanted >= sample.size:
        return lowest
    return max(float(np.partition(sample.ravel(), sample.size - wanted)[sample.size - wanted]), lowest)


def _at_least(
    table: LogitTable, bound: float, m: int, watch: Callable[[slice, np.ndarray], None] | None
) -> Largest | None:
    """All probabilities ≥ bound > 0, cut to the m largest (with ties, where they fit).

    None when there are fewer than m, unless those are all that are above 0.
    """
    room = 2 * m + 2**19
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    held, lost = 0, -math.inf  # `lost`: the largest value that was dropped after it had reached the bound
    for rows in table.spans():
        probabilities = table.probabilities(rows)
        if watch is not None:
            watch(rows, probabilities)
        flat = probabilities.ravel()
        positions = np.flatnonzero(flat >= flat.dtype.type(bound))
        parts.append((flat[positions], positions + rows.start * table.n_classes))
        held += len(positions)
        if held > room:
            values, positions, dropped = _cut(*_joined(parts), m)
            parts, held = [(values, positions)], len(values)
            bound, lost = float(values.min()), max(lost, dropped)
    values, positions = _joined(parts)
    all_positive = bound == smallest_positive(table.dtype)
    if len(values) < m and not all_positive:
        return None
    if len(values) > 2 * m:  # to part them is quicker than to sort them all
        reach = np.flatnonzero(values >= np.partition(values, len(values) - m)[len(values) - m])
        values, positions = values[reach], positions[reach]
    falling = np.argsort(values)[::-1]
    values, positions = values[falling], positions[falling]
    if len(values) < m:
        return Largest(values, positions, table.n_classes, bound)
    smallest = float(values[m - 1])
    if lost < smallest:  # nothing as large as the m-th was dropped, so its ties are all here
        end = len(values) - int(np.searchsorted(values[::-1], values[m - 1], side="left"))
        return Largest(values[:end], positions[:end], table.n_classes, smallest)
    above = float(np.nextafter(values[m - 1], values.dtype.type(np.inf)))
    return Largest(values[:m], positions[:m], table.n_classes, above)


def _joined(parts: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    values, positions = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(positions)


def _cut(values: np.ndarray, positions: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The m largest, and the largest value that did not make it."""
    order = np.argpartition(values, len(values) - m)
    kept, dropped = order[len(values) - m :], order[: len(values) - m]
    return values[kept], positions[kept], float(values[dropped].max())


def _counted_order_statistic(table: LogitTable, m: int) -> float:
    """The m-th largest probability by counting, 16 bits of its pattern a pass: for m too large to hold the values.

    Patterns of non-negative floats rise with the floats they stand for.
    """
    pattern: Any = np.uint32 if table.dtype == np.float32 else np.uint64
    prefix, above = 0, 0  # the leading bits found so far, and how many probabilities lie above all that share them
    for shift in range(table.dtype.itemsize * 8 - 16, -1, -16):
        counts = np.zeros(2**16, np.int64)
        for rows in table.spans():
            bits = (table.probabilities(rows).ravel() + 0).view(pattern) >> pattern(shift)  # + 0 turns -0 into 0
            digits = bits[bits >> pattern(16) == prefix] & pattern(0xFFFF)
            counts += np.bincount(digits.astype(np.int64), minlength=2**16)
        at_least = above + np.cumsum(counts[::-1])[::-1]
        digit = int(np.flatnonzero(at_least >= m)[-1])
        above = int(at_least[digit] - counts[digit])
        prefix = prefix << 16 | digit
    return float(np.array(prefix, pattern).view(table.dtype))
