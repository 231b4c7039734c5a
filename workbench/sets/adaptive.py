"""Rules about the mass of a set: the most probable classes, up to a probability that is believed or learned.

`PointwiseError` believes the probabilities; `APS` and `RAPS` are conformal and learn from labels how much mass it takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import Block, FittedRule, Rule, min_size_knob
from workbench.sets.conformal import ConformalRule
from workbench.sets.scores import CUTS, UNIT, Mass, Score, Share, falling_above, in_pieces, rounding, units
from workbench.tables import LogitTable
from workbench.tables.ordering import most_probable


def randomized_knob() -> Any:
    """The knob of scores that subtract a random share."""
    return knob(
        True, meaning="random share of the last class, for exact coverage; without, the class is always included"
    )


def seed_knob() -> Any:
    """The knob of scores that draw."""
    return knob(0, low=0, high=9, maximum=math.inf, meaning="seed of the random shares")


@dataclass(frozen=True)
class APS(ConformalRule):
    r"""The most probable classes, up to a mass that is chosen so that they hold the label as promised.

    $$s(x, j) = \sum_{k :\, p_k(x) \ge p_j(x)} p_k(x) - U p_j(x), \qquad \Gamma(x) = \{j : s(x, j) \le q\}$$

    q is the ⌈(n+1)·confidence⌉-th smallest score of the n fitting labels. U is uniform on [0, 1): one draw per row, from
    `seed` and the scores of the row, so a row has the same set alone, in any batch and in any order. Without `randomized`
    U = 1: the class at which the mass crosses q is always included, and no set is empty. Equal probabilities enter
    together. Coverage adapts to each row better than that of `LAC`, at the price of larger sets.

    >>> table = LogitTable.from_probabilities([[0.5, 0.3, 0.2]] * 3, labels=[0, 1, 1])
    >>> fitted = APS(confidence=0.5, randomized=False).fit(table)
    >>> fitted.threshold, fitted(table).sizes.tolist()
    (0.5, [2, 2, 2])

    Romano, Sesia & Candès 2020; an estimator of the point-wise error formulation of the thesis, Table 2.1.
    """

    title = "Adaptive sets (APS)"
    elsewhere = ("TorchCP", "MAPIE")
    formulation = "point-wise error"
    cost = "a few passes"

    randomized: bool = randomized_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return Mass(Share(self.randomized, self.seed))

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The smallest sets that hold the promised mass of every row."""
        return PointwiseError(self.confidence, min_size=self.min_size).fit(posterior)


@dataclass(frozen=True)
class RAPS(ConformalRule):
    r"""`APS` with a price on every class after the first few, so that sets stay small.

    $$s(x, j) = \sum_{k :\, p_k(x) \ge p_j(x)} p_k(x) - U p_j(x) +
    \mathrm{penalty} \cdot \max(\mathrm{rank}_j - \mathrm{free\_rank}, 0)$$

    Ranks count from 1, equal probabilities share the last of theirs.

    Angelopoulos et al. 2021; Garcin, thesis, Table 2.1 (point-wise error).
    """

    title = "Regularised adaptive sets (RAPS)"
    elsewhere = ("TorchCP", "MAPIE")
    formulation = "point-wise error"
    cost = "a few passes"

    penalty: float = knob(0.01, low=0, high=1, maximum=math.inf, meaning="price of a class beyond the free ones")
    free_rank: int = knob(5, low=0, high=20, maximum=math.inf, meaning="number of classes without a price")
    randomized: bool = randomized_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return Mass(Share(self.randomized, self.seed), self.penalty, self.free_rank)

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The smallest sets that hold the promised mass of every row."""
        return PointwiseError(self.confidence, min_size=self.min_size).fit(posterior)


@dataclass(frozen=True)
class PointwiseError(Rule):
    r"""The smallest set of every row whose probabilities reach the confidence.

    $$\Gamma(x) = \text{smallest } A \text{ with } \sum_{j \in A} p_j(x) \ge \mathrm{confidence}$$

    It believes the probabilities: nothing is fitted and nothing is promised unless they are right. With the true
    posterior it is the Bayes classifier of the point-wise error formulation.

    >>> table = LogitTable.from_probabilities([[0.5, 0.3, 0.2], [0.95, 0.03, 0.02]])
    >>> PointwiseError(confidence=0.8).fit(table)(table).sizes.tolist()
    [2, 1]

    Paper: Garcin, thesis, Table 2.1.
    """

    title = "Point-wise error"
    formulation = "point-wise error"
    cost = "a few passes in float64"
    needs_fit = False

    confidence: float = knob(
        0.9, low=0.5, high=0.99, minimum=1e-6, maximum=1, symbol="1 − δ", meaning="probability that a set must hold"
    )
    min_size: int = min_size_knob()

    def mask(self, fitted: FittedRule, block: Block) -> np.ndarray:
        p, target = block.precise, (self.confidence - rounding(block)) / UNIT
        sizes = np.count_nonzero(p, axis=1)  # all that hold anything, if that is too little
        last, open_rows = np.zeros(len(p)), np.arange(len(p))
        for cut in (CUTS[0], *CUTS[2:]):  # the one between decides few of these rows
            still = [np.zeros(0, np.int64)]
            for rows in in_pieces(open_rows, p.shape[1], cut):
                falling = falling_above(p[rows], cut)
                enough = np.cumsum(units(falling), axis=1) >= target
                decided, first = enough[:, -1], enough.argmax(axis=1)
                sizes[rows[decided]] = first[decided] + 1
                last[rows[decided]] = falling[decided, first[decided]]
                still.append(rows[~decided])
            open_rows = np.concatenate(still)
        mask: np.ndarray = (p >= last[:, None]) & (p > 0)
        tied = np.flatnonzero(np.count_nonzero(mask, axis=1) > sizes)
        if len(tied):
            mask[tied] = most_probable(p[tied], block.scores[tied], sizes[tied])
        return mask
