"""Rules about the mass of a set: the most probable classes, up to a probability that is believed or learned.

`PointwiseError` believes the probabilities; `APS` and `RAPS` are conformal and learn from labels how much mass it takes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import FittedRule, Rule, min_size_knob
from workbench.sets.conformal import ConformalRule
from workbench.tables import LogitTable
from workbench.tables.ordering import most_probable

# Masses are summed as whole multiples of this, exactly: no bit depends on the order of the classes or on the block.
UNIT = 2.0**-36
FIRST = 64  # classes of a row looked at before all of them are
FITTING, PREDICTING = 0, 1  # the draws of a row for fitting and for predicting are independent


@dataclass(frozen=True)
class MassRule(ConformalRule):
    """What `APS` and `RAPS` share: the score of a class is the mass of all classes that are at least as probable.

    `class_scores` are those without a random share; sets need only the masses of the first classes of a row.
    """

    formulation = "point-wise error"

    def class_scores(self, probabilities: np.ndarray) -> np.ndarray:
        rows, classes = np.indices(probabilities.shape).reshape(2, -1)
        mass, own, rank = self._masses(probabilities, rows, classes)
        return self.score(mass, own, rank, np.zeros(len(own))).reshape(probabilities.shape)

    def score(self, mass: np.ndarray, own: np.ndarray, rank: np.ndarray, draw: np.ndarray) -> np.ndarray:
        """The score of a class with probability `own` and that rank; `mass` is of it and all more probable ones."""
        score: np.ndarray = mass - draw * own
        return score

    def draws(self, rows: slice, purpose: int) -> np.ndarray:
        """One uniform number per row, by the seed and the place of the row in the table; zeros without randomness."""
        if not self.randomized:  # type: ignore[attr-defined]
            return np.zeros(rows.stop - rows.start)
        bits = np.random.PCG64([self.seed, purpose]).advance(rows.start)  # type: ignore[attr-defined]
        draws: np.ndarray = np.random.Generator(bits).random(rows.stop - rows.start)
        return draws

    def scores_of(self, probabilities: np.ndarray, rows: np.ndarray, classes: np.ndarray, span: slice) -> np.ndarray:
        mass, own, rank = self._masses(probabilities, rows, classes)
        scores = self.score(mass, own, rank, self.draws(span, FITTING)[rows])
        return np.where(own > 0, scores, np.inf)

    def _masses(
        self, probabilities: np.ndarray, rows: np.ndarray, classes: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The mass of some classes and all that are at least as probable, their own probability, and their rank."""
        own = probabilities[rows, classes]
        label, member = np.nonzero(probabilities[rows] >= own[:, None])
        mass = np.bincount(label, _units(probabilities[rows[label], member]), len(rows)) * UNIT
        return mass, own, np.bincount(label, minlength=len(rows))

    def mask(self, fitted: FittedRule, probabilities: np.ndarray, scores: np.ndarray, rows: slice) -> np.ndarray:
        n_classes = probabilities.shape[1]
        falling = -np.sort(-probabilities, axis=1)
        draws = self.draws(rows, PREDICTING)
        reached = fitted.threshold + _rounding(probabilities)
        n_inside = self._n_inside(falling[:, :FIRST], draws, reached)
        larger = np.flatnonzero((n_inside == FIRST) & (n_classes > FIRST))  # few rows, as a rule
        n_inside[larger] = self._n_inside(falling[larger], draws[larger], reached)
        # Equal probabilities share the score of the last of them, so the set is what lies above the first outsider.
        outsider = falling[np.arange(len(falling)), np.minimum(n_inside, n_classes - 1)]
        outsider[n_inside == n_classes] = -1 if fitted.threshold == math.inf else 0
        mask: np.ndarray = probabilities > outsider[:, None]
        return mask

    def _n_inside(self, falling: np.ndarray, draws: np.ndarray, threshold: float) -> np.ndarray:
        mass = np.cumsum(_units(falling), axis=1) * UNIT
        scores = self.score(mass, falling, np.arange(1, falling.shape[1] + 1), draws[:, None])
        inside: np.ndarray = np.count_nonzero(scores <= threshold, axis=1)
        return inside

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The smallest sets that hold the promised mass of every row."""
        return PointwiseError(self.confidence, min_size=self.min_size).fit(posterior)  # type: ignore[attr-defined]


def _randomized_knob() -> Any:
    return knob(True, meaning="subtraction of a random share of the last class, for exact coverage")


def _seed_knob() -> Any:
    return knob(0, low=0, high=9, maximum=math.inf, meaning="seed of the random shares")


@dataclass(frozen=True)
class APS(MassRule):
    r"""The most probable classes, up to a mass that is chosen so that they hold the label as promised.

    $$s(x, j) = \sum_{k :\, p_k(x) \ge p_j(x)} p_k(x) - U p_j(x), \qquad \Gamma(x) = \{j : s(x, j) \le q\}$$

    q is the ⌈(n+1)·confidence⌉-th smallest score of the n fitting labels; U is uniform on [0, 1], one draw per row that
    depends on `seed` and the place of the row only, so moving a slider does not redraw it; without `randomized` U = 0
    and sets are larger. Coverage adapts to each row better than that of `LAC`, at the price of larger sets.

    >>> table = LogitTable.from_probabilities([[0.5, 0.3, 0.2]] * 3, labels=[0, 1, 1])
    >>> fitted = APS(confidence=0.5, randomized=False).fit(table)
    >>> round(fitted.threshold, 3), fitted(table).sizes.tolist()
    (0.8, [2, 2, 2])

    Romano, Sesia & Candès 2020; an estimator of the point-wise error formulation of the thesis, Table 2.1.
    """

    title = "Adaptive sets (APS)"

    randomized: bool = _randomized_knob()
    seed: int = _seed_knob()
    min_size: int = min_size_knob()


@dataclass(frozen=True)
class RAPS(MassRule):
    r"""`APS` with a price on every class after the first few, so that sets stay small.

    $$s(x, j) = \sum_{k :\, p_k(x) \ge p_j(x)} p_k(x) - U p_j(x) +
    \mathrm{penalty} \cdot \max(\mathrm{rank}_j - \mathrm{free\_rank}, 0)$$

    Ranks count from 1, equal probabilities share the last of theirs.

    Angelopoulos et al. 2021; Garcin, thesis, Table 2.1 (point-wise error).
    """

    title = "Regularised adaptive sets (RAPS)"

    penalty: float = knob(0.01, low=0, high=1, maximum=math.inf, meaning="price of a class beyond the free ones")
    free_rank: int = knob(5, low=0, high=20, maximum=math.inf, meaning="number of classes without a price")
    randomized: bool = _randomized_knob()
    seed: int = _seed_knob()
    min_size: int = min_size_knob()

    def score(self, mass: np.ndarray, own: np.ndarray, rank: np.ndarray, draw: np.ndarray) -> np.ndarray:
        score: np.ndarray = super().score(mass, own, rank, draw) + self.penalty * np.maximum(rank - self.free_rank, 0)
        return score


@dataclass(frozen=True)
class PointwiseError(Rule):
    r"""The smallest set of every row that holds the wanted probability.

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
    needs_fit = False

    confidence: float = knob(
        0.9, low=0.5, high=0.99, minimum=1e-6, maximum=1, symbol="1 − ε", meaning="probability that a set must hold"
    )
    min_size: int = min_size_knob()

    def mask(self, fitted: FittedRule, probabilities: np.ndarray, scores: np.ndarray, rows: slice) -> np.ndarray:
        falling = -np.sort(-probabilities, axis=1)
        mass = np.cumsum(_units(falling), axis=1)
        sizes = np.count_nonzero(mass < (self.confidence - _rounding(probabilities)) / UNIT, axis=1) + 1
        beyond = np.flatnonzero(sizes > probabilities.shape[1])  # all classes hold less: those that hold anything
        sizes[beyond] = np.count_nonzero(probabilities[beyond], axis=1)
        return most_probable(probabilities, scores, sizes)


def _rounding(probabilities: np.ndarray) -> float:
    """By how much the mass of all classes may miss 1: softmax (measured up to 10 000 classes), and the units."""
    return 4 * float(np.finfo(probabilities.dtype).eps) + int(probabilities.shape[1]) * UNIT


def _units(probabilities: np.ndarray) -> np.ndarray:
    return np.rint(probabilities.astype(np.float64) / UNIT)
