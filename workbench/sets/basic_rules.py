"""Rules about the size of sets: exactly K classes, K on average, or whatever reaches a threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import Block, FittedRule, Rule, min_size_knob
from workbench.sets.conformal import FittedLimit, mask_at_limit
from workbench.sets.prevalence import AdjustedTable, class_weights, tau_knob
from workbench.sets.scores import IMPROBABILITY, Improbability
from workbench.sets.thresholds import checked_m, cut_at_mean_size
from workbench.tables import LogitTable, checked_table
from workbench.tables.ordering import most_probable
from workbench.warning_capture import warn

# Where exact zeros (and ones) come from, and what to do about them.
SATURATED = (
    "the scores are so large that probabilities round to 0 or 1; divide them by a temperature (TemperatureScaling), or keep "
    "the table in float64"
)
ABOUT_ZEROS = {
    "identity": "the zeros are the table's own; choose a smaller K, or give the scores that the probabilities were made from",
    "sparsemax": "the sparsemax link gives exact zeros; choose a smaller K, or read the scores by table.with_link('softmax')",
}


@dataclass(frozen=True)
class TopK(Rule):
    r"""The K most probable classes of every row, however clear or ambiguous it is.

    $$\Gamma(x) = \{\text{the } K \text{ largest } p_j(x)\}$$

    Each set has exactly K classes. Of equally probable ones that of the higher score enters (sparsemax gives most classes
    probability 0, and their scores still differ), of equal scores the first.

    >>> table = LogitTable.from_probabilities([[0.6, 0.3, 0.1]], labels=[2])
    >>> TopK(2).fit(table)(table).members(0)[0].tolist()
    [0, 1]

    Paper: Garcin, thesis, Eq. 2.12–2.13 (point-wise size).
    """

    title = "Top-K"
    promise = "every set has K classes"
    formulation = "point-wise size"
    guarantee = "size"
    needs_fit = False

    K: int = knob(5, low=1, high=20, maximum=math.inf, symbol="K", meaning="number of classes in every set")
    min_size: int = min_size_knob()

    def _fit(self, table: LogitTable) -> FittedRule:
        warn_if_everything(self.K, table)
        return FittedRule(self, None, table.n_classes, table.class_names)

    def mask(self, fitted: FittedRule, block: Block) -> np.ndarray:
        return most_probable(block.probabilities, block.scores, self.K)


@dataclass(frozen=True)
class AverageK(Rule):
    r"""Every class above one threshold, chosen so that sets hold K classes on average.

    $$\Gamma(x) = \{j : p_j(x) \ge \lambda\}, \qquad
    \lambda = \tfrac12\left(P_{[Kn]} + P_{[Kn+1]}\right)$$

    P are all n·L probabilities of the fitting rows in falling order. Clear rows get small sets and ambiguous rows large
    ones. Fitting needs no labels. Equal probabilities enter together, so with ties sets may be larger on average. A class of
    probability 0 enters no set: where fewer than K·n probabilities are above 0, λ is the smallest of those and sets are
    smaller on average. Either way, a mean size that misses K by more than one class in a hundred rows gives a warning. At K = L
    every set holds every class. With `tau` probabilities are divided by the class share to that power first: at 1 it is the
    macro twin, the sets of mean size K that cover the classes best on average, common and rare alike. K below 1 is for data
    with less than one label a row: some sets are empty then.

    >>> table = LogitTable.from_probabilities([[0.8, 0.1, 0.1], [0.4, 0.35, 0.25]])
    >>> sets = AverageK(1.5).fit(table)(table)
    >>> sets.sizes.tolist()
    [1, 2]

    Paper: Garcin et al. 2023, Algorithm 1; Garcin, thesis, Eq. 2.24–2.31 (average size).
    """

    title = "Average-K"
    promise = "sets have K classes on average"
    formulation = "average size"
    guarantee = "size"

    K: float = knob(
        5.0, low=1, high=20, minimum=0, maximum=math.inf, symbol="K", meaning="number of classes in a set on average"
    )
    tau: float = tau_knob(0.0)
    min_size: int = min_size_knob()

    def missing(self, table: LogitTable) -> list[str]:
        return ["class_counts"] if self.tau and table.class_counts is None else []

    def _fit(self, table: LogitTable) -> FittedLimit:
        warn_if_everything(self.K, table)
        weights = class_weights(table, self.tau)
        counted = table if weights is None else AdjustedTable.of(table, weights)
        threshold, n_reaching = cut_at_mean_size(counted, self.K)
        warn_of_ties(self.K, table, threshold, n_reaching)
        score = IMPROBABILITY if weights is None else Improbability(weights)
        return FittedLimit(self, threshold, table.n_classes, table.class_names, score, -threshold)

    mask = mask_at_limit

    def __repr__(self) -> str:
        tau = f"tau={self.tau!r}, " if self.tau else ""
        return f"AverageK(K={self.K!r}, {tau}min_size={self.min_size!r})"


@dataclass(frozen=True)
class Threshold(Rule):
    r"""Every class whose probability reaches a given threshold.

    $$\Gamma(x) = \{j : p_j(x) \ge \lambda\}$$

    Paper: Garcin, thesis, Eq. 2.23.
    """

    title = "Threshold"
    formulation = "average size"
    needs_fit = False

    threshold: float = knob(
        0.1, low=0, high=1, maximum=math.inf, symbol="λ", meaning="smallest probability that enters a set"
    )
    min_size: int = min_size_knob()

    def _fit(self, table: LogitTable) -> FittedRule:
        return FittedRule(self, self.threshold, table.n_classes, table.class_names)


def warn_if_everything(K: float, table: LogitTable) -> None:
    """K ≥ L is legal and useless."""
    if (n_classes := checked_table(table).n_classes) <= K:
        warn(f"K = {K:g} with {n_classes} classes: every set holds every class", stacklevel=4)


def warn_of_ties(K: float, table: LogitTable, threshold: float, n_reaching: int) -> None:
    """Says when equal probabilities, or too few above 0, let the mean size miss K by a class in a hundred rows or more."""
    m, mean_size = checked_m(K, table), n_reaching / table.n
    if 100 * abs(n_reaching - m) <= table.n:
        return
    if n_reaching < m:
        why = (
            f"only {mean_size:.4g} classes a row have a probability above 0, and a class of probability 0 enters no set; "
            f"{ABOUT_ZEROS.get(table.link, SATURATED)}"
        )
    else:
        why = f"probabilities that equal the threshold {threshold:.4g} enter together"
        if threshold == 1 and table.link not in ABOUT_ZEROS:
            why += f"; {SATURATED}"
    warn(f"sets hold {mean_size:.4g} classes on average, not K = {K:g}: {why}", stacklevel=4)
