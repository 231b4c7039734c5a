"""The m-th largest of all n·L probabilities of a table, exactly, by counting.

Bits of a float ≥ 0, read as a whole number (its pattern), rise with the float. A sample of rows gives a bracket of patterns
in which the order statistic probably lies; one pass over the table counts how many probabilities lie above the bracket and how
many at each pattern inside. Where too many lie inside, neighbouring patterns are counted together and a second pass looks at
those that matter. The sample changes the time, never the answer: what lies outside the bracket is looked for there.

Counts of parts of a table are added, so parts may be counted by anybody; no probability travels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts

SAMPLED = 2**20  # probabilities looked at to guess
BINS = 2**20  # patterns, or groups of them, that a pass distinguishes
EXACT = 2**17  # up to so many probabilities of a part are counted pattern by pattern, however wide the bracket is
SPREADS = 4  # standard deviations of a sample that its bracket reaches to either side

Bracket = tuple[int, int]  # patterns from the first up to, and without, the second


def pattern_type(dtype: np.dtype) -> Any:
    """The whole numbers that have as many bits as these floats."""
    return np.uint32 if dtype == np.float32 else np.uint64


def whole_range(dtype: np.dtype) -> Bracket:
    """The patterns of all numbers above 0."""
    return 1, int(np.array(np.inf, dtype).view(pattern_type(dtype)))


@dataclass
class Counts:
    """How many probabilities lie above a bracket, and how many at each pattern inside it, 2**shift patterns a group."""

    above: int = 0
    shift: int = 0
    groups: list[np.ndarray] = field(default_factory=list)  # which group of patterns, and beside it
    counts: list[np.ndarray] = field(default_factory=list)  # how many probabilities are in it
    held: int = 0

    def add(self, other: Counts) -> None:
        """Adds the counts of another part."""
        self.above += other.above
        shift = max(self.shift, other.shift)
        self._regroup(shift)
        self.groups += [groups >> (shift - other.shift) for groups in other.groups]
        self.counts += other.counts
        self.held += other.held
        if self.held > 2 * BINS:
            self.merge()

    def merge(self) -> None:
        """Joins what was added: each group stands once, in rising order."""
        groups = np.concatenate([np.zeros(0, np.int64), *self.groups])
        counts = np.concatenate([np.zeros(0, np.int64), *self.counts])
        found, place = np.unique(groups, return_inverse=True)
        # Sums of whole numbers far below 2**53 are exact in float64.
        totals = np.bincount(place, counts, len(found)).astype(np.int64)
        self.groups, self.counts, self.held = [found], [totals], len(found)
        if len(found) > BINS:
            self._regroup(self.shift + 1)
            self.merge()

    def _regroup(self, shift: int) -> None:
        self.groups = [groups >> (shift - self.shift) for groups in self.groups]
        self.shift = shift


def counted(part: LogitTable, first_row: int, brackets: list[Bracket]) -> list[Counts]:
    """The probabilities of some rows, counted in each bracket."""
    kind = pattern_type(part.dtype)
    bound = np.array(min(low for low, _ in brackets), kind).view(part.dtype)
    reaching = []
    for rows in part.spans():
        flat = part.probabilities(rows).ravel()
        reaching.append(flat[flat >= bound])
    patterns = np.concatenate(reaching).view(kind)
    return [_in_bracket(patterns, *bracket) for bracket in brackets]


def _in_bracket(patterns: np.ndarray, low: int, high: int) -> Counts:
    kind = patterns.dtype.type
    inside = (patterns[(patterns >= kind(low)) & (patterns < kind(high))] - kind(low)).astype(np.int64)
    shift = 0 if len(inside) <= EXACT else max(0, (high - low - 1).bit_length() - (BINS - 1).bit_length())
    groups, counts = np.unique(inside >> shift, return_counts=True)
    return Counts(int(np.count_nonzero(patterns >= kind(high))), shift, [groups], [counts], len(groups))


@dataclass(frozen=True)
class OrderStatistic:
    """A probability of a certain rank among all of them, and how many are as large or larger."""

    value: float
    at_least: int


def order_statistics(
    table: LogitTable, ranks: Iterable[int], start: Bracket | None = None
) -> tuple[dict[int, OrderStatistic], int | None]:
    """The probabilities of some ranks, 1 for the largest, and how many are above 0, if some rank lies beyond them.

    Ranks beyond those above 0 are left out.
    """
    everything = whole_range(table.dtype)
    sought = dict.fromkeys(ranks, everything if start is None else start)
    found: dict[int, OrderStatistic] = {}
    n_positive: int | None = None
    while sought:
        brackets = list(dict.fromkeys(sought.values()))
        totals = [Counts() for _ in brackets]
        for part in over_parts(table, counted, brackets):
            for total, counts in zip(totals, part, strict=True):
                total.add(counts)
        for total in totals:
            total.merge()
        by_bracket = dict(zip(brackets, totals, strict=True))
        for rank, (low, high) in list(sought.items()):
            counts = by_bracket[low, high]
            at_least = counts.above + np.cumsum(counts.counts[0][::-1])
            if rank <= counts.above:
                sought[rank] = high, everything[1]
            elif len(at_least) and rank <= at_least[-1]:
                place = int(np.searchsorted(at_least, rank))
                group = int(counts.groups[0][-1 - place])
                sought[rank] = low + (group << counts.shift), min(high, low + (group + 1 << counts.shift))
                if counts.shift == 0:
                    pattern = np.array(sought.pop(rank)[0], pattern_type(table.dtype))
                    found[rank] = OrderStatistic(float(pattern.view(table.dtype)), int(at_least[place]))
            elif low > everything[0]:
                sought[rank] = everything[0], low
            else:
                n_positive = int(at_least[-1]) if len(at_least) else counts.above
                del sought[rank]
    return found, n_positive


def sample(table: LogitTable) -> np.ndarray:
    """The probabilities of some rows at equal distances: about 2**20 numbers, or the whole of a small table."""
    step = max(1, table.n * table.n_classes // SAMPLED)
    return np.concatenate(list(over_parts(table, sampled, step)))


def sampled(part: LogitTable, first_row: int, step: int) -> np.ndarray:
    """The rows of a part among those at equal distances of the whole table."""
    return part.probabilities(slice(-first_row % step, None, step))


def likely_bracket(table: LogitTable, m: int) -> Bracket:
    """Patterns among which the m-th and the (m+1)-th largest probability probably are, from a sample of rows."""
    rows = sample(table)
    flat, everything = rows.ravel(), whole_range(table.dtype)
    expected = m * len(rows) / table.n
    spread = 0.0
    if len(rows) < table.n:
        guess = np.partition(flat, flat.size - _rank(expected, flat.size))[flat.size - _rank(expected, flat.size)]
        of_rows = np.count_nonzero(rows >= guess, axis=1)
        spread = SPREADS * math.sqrt(len(rows) * max(float(of_rows.var()), float(of_rows.mean()))) + SPREADS
    upper, lower = math.floor(expected - spread), math.ceil(expected + spread) + 1
    rising = np.partition(flat, [flat.size - _rank(rank, flat.size) for rank in (upper, lower)])
    ends = [rising[flat.size - _rank(rank, flat.size)] for rank in (lower, upper)]
    low, high = (int(np.array(max(end, 0) + 0.0, table.dtype).view(pattern_type(table.dtype))) for end in ends)
    low = max(low, everything[0]) if lower <= flat.size else everything[0]
    high = high + 1 if upper >= 1 else everything[1]
    return low, max(high, low + 1)


def _rank(rank: float, size: int) -> int:
    """A rank that a sample has."""
    return min(max(math.ceil(rank), 1), size)
