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

from workbench.decimals import classes_of_rows
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


@dataclass(frozen=True, eq=False)
class Largest:
    """Some of the largest probabilities of a table, falling, and where they stand.

    `floor`: every probability ≥ floor is here. (Of a value that is tied too often, only as many as were asked for.)
    """

    probabilities: np.ndarray  # (m',) falling
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
        return self.positions - self.rows * self.n_classes

    def count(self, threshold: float) -> int:
        """How many probabilities are ≥ threshold; the threshold must not lie below the floor."""
        rising = self.probabilities[::-1]
        return len(rising) - int(np.searchsorted(rising, rising.dtype.type(threshold), side="left"))


def largest_probabilities(
    table: LogitTable, m: int, watch: Callable[[slice, np.ndarray], None] | None = None
) -> Largest:
    """At least the m largest of all n·L probabilities (1 ≤ m ≤ n·L): exactly what sorting them all would give.

    `watch(rows, probabilities)` sees every block that passes by (again, if the pass is repeated).
    """
    for slack in (1.1, 4.0, math.inf):
        found = _at_least(table, _sampled_bound(table, m, slack), m, watch)
        if found is not None:
            return found
    raise AssertionError("without a bound every probability survives")  # pragma: no cover


def threshold_at_mean_size(table: LogitTable, K: float) -> float:
    """The average-K threshold: midpoint of the m-th and (m+1)-th largest of all probabilities, m = K·n.

    Unlabelled rows will do (Garcin et al. 2023, Algorithm 1; Garcin, thesis, Eq. 2.27–2.30). K = L gives 0.
    """
    m = checked_m(K, table)
    if m == table.n * table.n_classes:
        return 0.0
    if m < HELD:
        values = largest_probabilities(table, m + 1).probabilities
        return midpoint(float(values[m - 1]), float(values[m]), table.dtype)
    return midpoint(_counted_order_statistic(table, m), _counted_order_statistic(table, m + 1), table.dtype)


def checked_m(K: float, table: LogitTable) -> int:
    """K·n, or an error when no such mean size exists; K ≥ L means all classes."""
    if not (isinstance(K, numbers.Real) and math.isfinite(K)):
        raise ValueError(f"K = {K!r}; give the number of classes in a set on average, up to {table.n_classes}")
    m = classes_of_rows(K, table.n)
    if m < 1:
        raise ValueError(f"K = {K:g} with {table.n} rows returns no class at all; give K ≥ {1 / table.n:.3g}")
    return min(m, table.n * table.n_classes)


def _sampled_bound(table: LogitTable, m: int, slack: float) -> float:
    """A value that probably more than m probabilities reach: the same share of a sample of rows, with slack."""
    step = table.n * table.n_classes // SAMPLED
    if step < 2 or math.isinf(slack):
        return -math.inf
    sample = table.probabilities(slice(None, None, step))
    wanted = math.ceil(m * slack * len(sample) / table.n)
    if wanted >= sample.size:
        return -math.inf
    return float(np.partition(sample.ravel(), sample.size - wanted)[sample.size - wanted])


def _at_least(
    table: LogitTable, bound: float, m: int, watch: Callable[[slice, np.ndarray], None] | None
) -> Largest | None:
    """All probabilities ≥ bound, cut to the m largest (with ties, where they fit); None when there are fewer than m."""
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
    if len(values) < m:
        return None
    falling = np.argsort(values)[::-1]
    values, positions = values[falling], positions[falling]
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
