"""Non-conformity scores: how badly each class of a row would fit as its label. Small scores fit well.

A conformal rule is a score and a way to fit its threshold. Every score here works with every fit (`conformal.py`,
`per_group.py`, …): a fit sees nothing but the numbers. A class of probability 0 always has an infinite score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from workbench.sets.base import Block, dtype_threshold, take_rows
from workbench.sets.row_draws import row_draws
from workbench.tables.ordering import marked_in_rows

# Masses are summed as whole multiples of this, exactly: no bit depends on the order of the classes or on the block.
UNIT = 2.0**-36
MOST = 2.0**20  # quasibinary probabilities have no upper end; one above 1 fills a set by itself
PIECE = 2**16  # probabilities that are sorted at once
SLACK = 1e-5  # error of float32 probabilities, as a share of each, and of their sums
# Classes above the first cut are looked at, then those above the next, until a set is decided.
CUTS = (2.0**-6, 2.0**-9, 2.0**-12, 0.0)


class Score:
    """A score: `of_classes` for all classes of a block, and quicker ways to parts of it that subclasses may have."""

    largest: ClassVar[float] = math.inf  # that a class of positive probability can have

    def of_classes(self, block: Block) -> np.ndarray:
        """(rows, L) float64: the score of every class; infinite for a class of probability 0."""
        raise NotImplementedError

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """(labels,) the scores of some classes of a block; rows count from its first."""
        own: np.ndarray = self.of_classes(block)[rows, classes]
        return own

    def mask(self, block: Block, limit: Any) -> np.ndarray:
        """(rows, L) bool: score ≤ limit, which is one number, (L,) or (rows, 1)."""
        mask: np.ndarray = self.of_classes(block) <= limit
        return mask

    def as_threshold(self, limit: Any) -> Any:
        """The limit as `threshold` shows it: the score itself, or the probability that it means."""
        return limit

    def reordered(self, order: np.ndarray) -> Self:
        """The score for classes in another order; the same where it knows nothing of single classes."""
        return self

    @property
    def per_class(self) -> bool:
        """Whether the score has parameters per class."""
        return False

    @property
    def class_groups(self) -> tuple[np.ndarray, tuple[str, ...]] | None:
        """The group of each class, as a code, and the names of the groups, where the score reads them."""
        return None


@dataclass(frozen=True, eq=False)
class OwnScore(Score):
    """The score of a rule that defines `class_scores(probabilities)`."""

    rule: Any

    def of_classes(self, block: Block) -> np.ndarray:
        p = block.probabilities
        scores = np.asarray(self.rule.class_scores(p), dtype=np.float64)
        if scores.shape != p.shape or np.isnan(scores).any():
            wrong = "some are NaN" if scores.shape == p.shape else f"their shape is {scores.shape}"
            raise ValueError(
                f"{type(self.rule).__name__}.class_scores must give one number for each of the {p.shape} probabilities; "
                f"{wrong}"
            )
        return np.where(p > 0, scores, np.inf)


@dataclass(frozen=True, eq=False)
class Improbability(Score):
    r"""$s(x, y) = -w_y \, p_y(x)$: the less probable, the worse. Without weights, the score of LAC."""

    largest: ClassVar[float] = 0.0
    weights: np.ndarray | None = None  # (L,) of the classes

    def of_classes(self, block: Block) -> np.ndarray:
        weighted = self._weighted(block.probabilities).astype(np.float64)
        return np.where(weighted > 0, -weighted, np.inf)

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        own = block.probabilities[rows, classes]
        own = (own if self.weights is None else own * self.weights[classes].astype(own.dtype)).astype(np.float64)
        return np.where(own > 0, -own, np.inf)

    def mask(self, block: Block, limit: Any) -> np.ndarray:
        p = block.probabilities
        mask: np.ndarray = self._weighted(p) >= dtype_threshold(self.as_threshold(limit), p.dtype)
        return mask

    def _weighted(self, p: np.ndarray) -> np.ndarray:
        weighted: np.ndarray = p if self.weights is None else p * self.weights.astype(p.dtype)
        return weighted

    def as_threshold(self, limit: Any) -> Any:
        return np.maximum(-limit, 0.0) if np.ndim(limit) else max(-float(limit), 0.0)

    def reordered(self, order: np.ndarray) -> Self:
        return self if self.weights is None else replace(self, weights=self.weights[order])

    @property
    def per_class(self) -> bool:
        return self.weights is not None


IMPROBABILITY = Improbability()


@dataclass(frozen=True)
class Share:
    """The share U of a class that its score leaves out: drawn for each row from its own scores, or 1 for all rows."""

    randomized: bool
    seed: int

    def __call__(self, block: Block) -> np.ndarray:
        """(rows,) U of each row."""
        return row_draws(block.scores, self.seed) if self.randomized else np.ones(len(block.scores))


@dataclass(frozen=True)
class Mass(Score):
    r"""The mass of all more probable classes and a share of the class itself, plus a price of its rank.

    $$s(x, y) = \sum_{j : p_j > p_y} p_j + (1 - U) \sum_{j : p_j = p_y} p_j +
    \mathrm{penalty}\,(\mathrm{rank} - \mathrm{free\_rank})_+$$

    Equal probabilities share one score and the last of their ranks. Masses are those of float64 probabilities.
    """

    share: Share  # of each row
    penalty: float = 0.0
    free_rank: int = 0

    def of_classes(self, block: Block) -> np.ndarray:
        p = block.precise
        order = np.argsort(-p, axis=1, kind="stable")
        falling = np.take_along_axis(p, order, axis=1)
        before, through, ranks = _tied_masses(falling)
        scores = np.empty_like(p)
        found = self._score(before, through, ranks, self.share(block)[:, None])
        np.put_along_axis(scores, order, np.where(falling > 0, found, np.inf), axis=1)
        return scores

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        p = block.precise
        own = p[rows, classes]
        of_rows = p if np.array_equal(rows, np.arange(len(p))) else p[rows]
        through, n_through = _mass_of(of_rows, of_rows >= own[:, None])
        before, _ = _mass_of(of_rows, of_rows > own[:, None])
        scores = self._score(before, through, n_through, self.share(block)[rows])
        return np.where(own > 0, scores, np.inf)

    def mask(self, block: Block, limit: Any) -> np.ndarray:
        if np.ndim(limit) == 1:  # one limit per class
            return super().mask(block, limit + rounding(block))
        share, limit = self.share(block), np.broadcast_to(np.ravel(limit) + rounding(block), len(block.scores))
        if not block.nearly_precise:
            return block.precise > self._outsiders(block.precise, share, limit)[0][:, None]
        p = block.probabilities
        outsiders, open_rows = self._outsiders(p, share, limit, SLACK)
        mask: np.ndarray = p > outsiders.astype(p.dtype)[:, None]
        if len(open_rows):  # float32 may be wrong about them
            p = block.precise_rows(open_rows)
            mask[open_rows] = p > self._outsiders(p, share[open_rows], limit[open_rows])[0][:, None]
        return mask

    def _outsiders(
        self, p: np.ndarray, share: np.ndarray, limit: np.ndarray, slack: float = 0.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """(rows,) the largest probability outside the set of each row: 0, or -1 where even a class of probability 0 is in.

        Scores rise as probabilities fall, so a few large probabilities decide most sets. Beside it, the rows that an error of
        `slack` in the probabilities leaves open.
        """
        outsiders = np.where(np.isinf(limit), -1.0, 0.0)
        open_rows = np.flatnonzero(~np.isinf(limit))
        for cut in CUTS[:-1] if slack else CUTS:
            still = [np.zeros(0, np.int64)]
            for rows in in_pieces(open_rows, p.shape[1], cut):
                found, decided = self._first_outside(take_rows(p, rows), share[rows], limit[rows], cut, slack)
                outsiders[rows[decided]] = found[decided]
                still.append(rows[~decided])
            open_rows = np.concatenate(still)
        return outsiders, open_rows

    def _first_outside(
        self, p: np.ndarray, share: np.ndarray, limit: np.ndarray, cut: float, slack: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """(rows,) a probability above which all members of a set lie and nothing else, and whether the cut suffices to tell."""
        falling = falling_above(p, cut)
        before, through, ranks = _tied_masses(falling)
        scores = self._score(before, through, ranks, share[:, None])
        outside = (scores > limit[:, None]) & (falling > 0)
        found = np.asarray(outside.any(axis=1))
        total, n_above = units(falling).sum(1), np.count_nonzero(falling, axis=1)
        least = self._score(total, total, n_above + 1, share)  # that a class below the cut can have
        first = np.where(found, outside.argmax(axis=1), n_above)
        around = Boundary.at(first, falling, scores, cut)
        decided = found | (cut == 0) | (least > limit)
        if slack:
            decided &= around.is_clear(found, least, limit, slack)
        return around.outside, decided

    def _score(self, before: np.ndarray, through: np.ndarray, rank: np.ndarray, share: np.ndarray) -> np.ndarray:
        mass = before + (1 - share) * (through - before)
        scores: np.ndarray = mass * UNIT + self.penalty * np.maximum(rank - self.free_rank, 0)
        return scores


@dataclass(frozen=True, eq=False)
class Boundary:
    """The probabilities and scores of the classes around the edge of each set: two inside, two outside."""

    before_last: np.ndarray
    last: np.ndarray
    outside: np.ndarray
    after: np.ndarray
    score_inside: np.ndarray
    score_outside: np.ndarray

    @classmethod
    def at(cls, first: np.ndarray, falling: np.ndarray, scores: np.ndarray, cut: float) -> Self:
        """Around the first class outside each set; classes below the cut count as lying on it."""
        before_last, last, outside, after = (
            np.maximum(_values_at(falling, first + k, np.inf, cut), cut) for k in (-2, -1, 0, 1)
        )
        inside, beyond = _values_at(scores, first - 1, -np.inf, np.inf), _values_at(scores, first, -np.inf, np.inf)
        return cls(before_last, last, outside, after, inside, beyond)

    def is_clear(self, found: np.ndarray, least: np.ndarray, limit: np.ndarray, slack: float) -> np.ndarray:
        """(rows,) whether probabilities with this error give the same set: no score near the limit, no values nearly tied.

        Where no class above the cut is outside (not `found`), `least` is the least score of those below.
        """
        parted = [
            above >= below * (1 + slack)
            for above, below in ((self.before_last, self.last), (self.last, self.outside), (self.outside, self.after))
        ]
        nearest = np.where(found, self.score_outside, least)
        clear: np.ndarray = (self.score_inside < limit - slack) & (nearest > limit + slack)
        clear &= parted[0] & parted[1] & (parted[2] | ~found)
        return clear


def _values_at(values: np.ndarray, places: np.ndarray, before: float, after: float) -> np.ndarray:
    """(rows,) the value at a place of each row, or what stands before the first and after the last."""
    width = values.shape[1]
    found = values[np.arange(len(values)), np.minimum(np.maximum(places, 0), width - 1)]
    return np.where(places < 0, before, np.where(places >= width, after, found))


def _mass_of(p: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) the mass of some entries in units, and how many they are."""
    counts = marked_in_rows(mask)
    rows = np.repeat(np.arange(len(p)), counts)
    return np.bincount(rows, units(p[mask]), len(p)), counts


def tied_spans(falling: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(rows, L) the first and the last position of the values that equal each one, in rows that fall.

    >>> tied_spans(np.array([[5.0, 3.0, 3.0, 1.0]]))
    (array([[0, 1, 1, 3]]), array([[0, 2, 2, 3]]))
    """
    n, n_classes = falling.shape
    positions = np.broadcast_to(np.arange(n_classes), (n, n_classes))
    differs = np.diff(falling, axis=1) != 0
    edge = np.ones((n, 1), bool)
    first = np.maximum.accumulate(np.where(np.hstack([edge, differs]), positions, 0), axis=1)
    ends = np.where(np.hstack([differs, edge]), positions, n_classes)
    return first, np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]


def rounding(block: Block) -> float:
    """The rounding error that the mass of all classes may have: that of softmax (measured up to 10 000 classes), and units."""
    return 4 * float(np.finfo(np.float64).eps) + int(block.probabilities.shape[1]) * UNIT


def units(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities as whole multiples of `UNIT`, whose sums are exact."""
    return np.rint(np.minimum(probabilities.astype(np.float64), MOST) / UNIT)


def _tied_masses(falling: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of rows that fall: the mass before each value, the mass through all that equal it, and the rank of the last of those."""
    own = units(falling)
    mass = np.cumsum(own, axis=1)
    if not ((falling[:, 1:] == falling[:, :-1]) & (falling[:, 1:] > 0)).any():  # as a rule
        return mass - own, mass, np.arange(1, falling.shape[1] + 1)
    first, last = tied_spans(falling)
    before = np.take_along_axis(mass, first, 1) - np.take_along_axis(own, first, 1)
    return before, np.take_along_axis(mass, last, 1), last + 1


def in_pieces(rows: np.ndarray, n_classes: int, cut: float) -> list[np.ndarray]:
    """Rows in pieces that take little memory; few classes lie above the first cut, so all rows are one piece there."""
    step = len(rows) if cut >= CUTS[1] else max(1, PIECE // n_classes)
    return [rows[start : start + step] for start in range(0, len(rows), step)] if len(rows) else []


def falling_above(p: np.ndarray, cut: float) -> np.ndarray:
    """(rows, most above) the probabilities above a cut in falling order, then zeros.

    >>> falling_above(np.array([[0.1, 0.6, 0.3], [0.0, 1.0, 0.0]]), 0.2)
    array([[0.6, 0.3],
           [1. , 0. ]])
    """
    above = p > cut
    counts = marked_in_rows(above)
    falling = np.zeros((len(p), max(1, int(counts.max(initial=0)))), p.dtype)
    filled = np.arange(falling.shape[1]) < counts[:, None]
    falling[filled] = -p[above]  # both row by row
    falling.sort(axis=1)
    return np.abs(falling)


def falling_to(p: np.ndarray, n_largest: int) -> np.ndarray:
    """(rows, n_largest) the largest values of each row in falling order.

    >>> falling_to(np.array([[0.2, 0.5, 0.3]]), 2)
    array([[0.5, 0.3]])
    """
    falling = -p
    if n_largest < p.shape[1]:
        falling = np.partition(falling, n_largest - 1, axis=1)[:, :n_largest]
    falling.sort(axis=1)
    largest: np.ndarray = np.abs(falling)
    return largest


def class_ranks(p: np.ndarray) -> np.ndarray:
    """(rows, L) the rank of every class from 1; equal probabilities share the last of their ranks.

    >>> class_ranks(np.array([[0.2, 0.5, 0.2, 0.1]])).tolist()
    [[3, 1, 3, 4]]
    """
    order = np.argsort(-p, axis=1, kind="stable")
    ranks = np.empty(p.shape, np.int64)
    np.put_along_axis(ranks, order, tied_spans(np.take_along_axis(p, order, axis=1))[1] + 1, axis=1)
    return ranks


def label_ranks(p: np.ndarray, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """(labels,) the same of some classes only, by counting: nothing is sorted."""
    of_rows = p if np.array_equal(rows, np.arange(len(p))) else p[rows]
    return marked_in_rows(of_rows >= p[rows, classes][:, None])


def values_at(p: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """(rows,) the value of each row at a rank, from 1 for the largest; 0 beyond the last positive one.

    >>> values_at(np.array([[0.2, 0.5, 0.3], [0.0, 1.0, 0.0]]), np.array([2, 2])).tolist()
    [0.3, 0.0]
    """
    values, open_rows = np.zeros(len(p), p.dtype), np.arange(len(p))
    for cut in CUTS:
        still = [np.zeros(0, np.int64)]
        for rows in in_pieces(open_rows, p.shape[1], cut):
            falling, at = falling_above(take_rows(p, rows), cut), ranks[rows] - 1
            found = falling[np.arange(len(rows)), np.minimum(at, falling.shape[1] - 1)] * (at < falling.shape[1])
            values[rows] = found
            still.append(rows[found == 0])
        open_rows = np.concatenate(still)
    return values


class RankScore(Score):
    """A score that rises with the rank of a class and depends, beside it, on the row only: its sets are the first classes."""

    def of_ranks(self, facts: Any, ranks: np.ndarray) -> np.ndarray:
        """The scores of some ranks, given the facts of their rows."""
        raise NotImplementedError

    def row_facts(self, block: Block) -> Any:
        """(facts, rows) what the score knows of each row."""
        raise NotImplementedError

    def mask(self, block: Block, limit: Any) -> np.ndarray:
        if np.ndim(limit) == 1:  # one limit per class
            return super().mask(block, limit)
        p, limit = block.precise, np.broadcast_to(np.ravel(limit), len(block.scores))
        ranks = self._largest_rank(self.row_facts(block), limit, p.shape[1])
        mask: np.ndarray = p > values_at(p, ranks + 1)[:, None]
        mask[np.isinf(limit)] = True
        return mask

    def _largest_rank(self, facts: Any, limit: np.ndarray, n_classes: int) -> np.ndarray:
        """(rows,) the largest rank whose score is at most the limit, by bisection; 0 if there is none."""
        low, high = np.zeros(len(limit), np.int64), np.full(len(limit), n_classes)
        while (low < high).any():
            middle = (low + high + 1) // 2
            inside = self.of_ranks(facts, middle) <= limit
            low, high = np.where(inside, middle, low), np.where(inside, high, middle - 1)
        return low


@dataclass(frozen=True)
class SortedMass(RankScore):
    r"""SAPS: $(1 - U)\,p_{\max}$ for the first class, $p_{\max} + (\mathrm{rank} - 1 - U)\,w$ for the others."""

    share: Share
    weight: float

    def of_classes(self, block: Block) -> np.ndarray:
        p = block.precise
        return np.where(p > 0, self.of_ranks(self.row_facts(block)[..., None], class_ranks(p)), np.inf)

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        p = block.precise
        scores = self.of_ranks(self.row_facts(block)[:, rows], label_ranks(p, rows, classes))
        return np.where(p[rows, classes] > 0, scores, np.inf)

    def row_facts(self, block: Block) -> np.ndarray:
        return np.stack([block.precise.max(axis=1), self.share(block)])

    def of_ranks(self, facts: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        largest, share = facts
        scores: np.ndarray = np.where(ranks == 1, (1 - share) * largest, largest + (ranks - 1 - share) * self.weight)
        return scores


@dataclass(frozen=True)
class LostMargin(Score):
    r"""$s(x, y) = \max_{j \ne y} p_j(x) - p_y(x)$: how far a class lies behind the best of the others."""

    def of_classes(self, block: Block) -> np.ndarray:
        p = block.precise
        if p.shape[1] == 1:
            return np.where(p > 0, -p, np.inf)
        first, rows = p.argmax(axis=1), np.arange(len(p))
        scores = p[rows, first][:, None] - p
        others = p.copy()
        others[rows, first] = -1
        scores[rows, first] = others.max(axis=1) - p[rows, first]
        return np.where(p > 0, scores, np.inf)


@dataclass(frozen=True)
class Position(RankScore):
    r"""$s(x, y) = \mathrm{rank}_y(x) - U$: sets of one size, up to the random share."""

    share: Share

    def of_classes(self, block: Block) -> np.ndarray:
        p = block.precise
        return np.where(p > 0, self.of_ranks(self.row_facts(block)[:, None], class_ranks(p)), np.inf)

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        p = block.precise
        scores = self.of_ranks(self.row_facts(block)[rows], label_ranks(p, rows, classes))
        return np.where(p[rows, classes] > 0, scores, np.inf)

    def row_facts(self, block: Block) -> np.ndarray:
        return self.share(block)

    def of_ranks(self, facts: np.ndarray, ranks: np.ndarray) -> np.ndarray:
        scores: np.ndarray = ranks - facts
        return scores


@dataclass(frozen=True)
class SupportGap(Score):
    r"""$s(x, y) = \sum_{k : z_k > z_y} (z_k - z_y)$ of the scores z: its sets are supports of $\mathrm{sparsemax}(\beta z)$."""

    def of_classes(self, block: Block) -> np.ndarray:
        z = block.scores.astype(np.float64)
        order = np.argsort(-z, axis=1, kind="stable")
        scores = np.empty_like(z)
        np.put_along_axis(scores, order, gaps_of_falling(np.take_along_axis(z, order, axis=1)), axis=1)
        return np.where(block.probabilities > 0, scores, np.inf)

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        own = block.scores[rows, classes].astype(np.float64)
        label, above = np.nonzero(block.scores[rows] > own[:, None])
        values = block.scores[rows[label], above].astype(np.float64)
        falling = np.lexsort((-values, label))  # added in the order of a row that falls, to the same bits
        sums = np.bincount(label, values[falling], len(rows))
        gaps = np.maximum(sums - np.bincount(label, minlength=len(rows)) * own, 0)
        return np.where(block.probabilities[rows, classes] > 0, gaps, np.inf)

    def mask(self, block: Block, limit: Any) -> np.ndarray:
        if np.ndim(limit) == 1:  # one limit per class
            return super().mask(block, limit)
        z, limit = block.scores.astype(np.float64), np.broadcast_to(np.ravel(limit), len(block.scores))
        reach = z.max(axis=1) - limit * (1 + SLACK) - UNIT  # below, the gap to the first class is beyond the limit
        near = z >= reach[:, None]
        counts = marked_in_rows(near)
        falling = np.full((len(z), int(counts.max(initial=1))), np.inf)
        falling[np.arange(falling.shape[1]) < counts[:, None]] = -z[near]
        falling.sort(axis=1)
        with np.errstate(invalid="ignore"):  # beyond the classes that are near
            inside = gaps_of_falling(-falling) <= limit[:, None]
        last = np.maximum(np.count_nonzero(inside, axis=1) - 1, 0)
        smallest = np.where(inside[:, 0], -falling[np.arange(len(z)), last], np.inf)
        mask: np.ndarray = (z >= smallest[:, None]) & (block.probabilities > 0)
        mask[np.isinf(limit)] = True
        return mask


def gaps_of_falling(falling: np.ndarray) -> np.ndarray:
    """(rows, L) the sum of what larger values of a row lie above each one; equal values share one.

    >>> gaps_of_falling(np.array([[5.0, 3.0, 3.0, 1.0]]))
    array([[0., 2., 2., 8.]])
    """
    before = np.hstack([np.zeros((len(falling), 1)), np.cumsum(falling, axis=1)[:, :-1]])
    gaps: np.ndarray = np.maximum(before - np.arange(falling.shape[1]) * falling, 0)
    if (falling[:, 1:] == falling[:, :-1]).any():
        gaps = np.take_along_axis(gaps, tied_spans(falling)[0], axis=1)
    return gaps
