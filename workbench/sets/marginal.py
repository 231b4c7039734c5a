"""Conformal rules of other scores with one limit for all rows, and the knob by which every fit takes any score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from workbench.knobs import from_text, knob
from workbench.sets.adaptive import APS, RAPS, randomized_knob, seed_knob
from workbench.sets.base import min_size_knob
from workbench.sets.conformal import LAC, ConformalRule
from workbench.sets.prevalence import PAS
from workbench.sets.scores import LostMargin, Position, Score, Share, SortedMass, SupportGap
from workbench.tables import LogitTable


@dataclass(frozen=True)
class SAPS(ConformalRule):
    r"""Adaptive sets that trust the largest probability and, of the others, only their order.

    $$s(x, j) = (1 - U)\, p_{\max}(x) \text{ at rank } 1, \qquad
    p_{\max}(x) + (\mathrm{rank}_j - 1 - U) \cdot \mathrm{weight} \text{ after}$$

    U is drawn as in `APS`; without `randomized` U = 1.

    Huang et al. 2024 (their u is 1 − U here).
    """

    title = "Sorted adaptive sets (SAPS)"
    formulation = "point-wise error"
    cost = "a few passes in float64"
    elsewhere = ("TorchCP",)

    weight: float = knob(
        0.2, low=0.01, high=1, minimum=0, maximum=math.inf, meaning="price of one rank after the first"
    )
    randomized: bool = randomized_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return SortedMass(Share(self.randomized, self.seed), self.weight)


@dataclass(frozen=True)
class Margin(ConformalRule):
    r"""Every class that lies not too far behind the best of the others.

    $$s(x, j) = \max_{k \ne j} p_k(x) - p_j(x)$$

    Löfström et al. 2015.
    """

    title = "Margin sets"
    formulation = "average error"
    elsewhere = ("TorchCP", "crepes")

    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return LostMargin()


@dataclass(frozen=True)
class Rank(ConformalRule):
    r"""The K most probable classes, with K chosen so that they hold the label as promised.

    $$s(x, j) = \mathrm{rank}_j(x) - U$$

    With `randomized` a share of the rows gets one class less, so that the coverage is exact.

    Angelopoulos et al. 2021 (their top-k baseline).
    """

    title = "Conformal top-K"
    formulation = "point-wise size"
    cost = "a few passes in float64"
    elsewhere = ("TorchCP", "MAPIE")

    randomized: bool = randomized_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return Position(Share(self.randomized, self.seed))


@dataclass(frozen=True)
class Sparse(ConformalRule):
    r"""The support of sparsemax at the temperature that keeps the promise.

    $$s(x, j) = \sum_{k :\, z_k > z_j} (z_k(x) - z_j(x)), \qquad
    \Gamma(x) = \mathrm{supp}\,\mathrm{sparsemax}(z / q)$$

    z are the scores. Sets are never empty.

    Campos et al. 2025.
    """

    title = "Sparse sets"
    formulation = "average error"
    cost = "a few passes in float64"
    elsewhere = ("TorchCP",)

    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return SupportGap()


# The rules whose score every fit can take, by name.
SCORED: tuple[type[ConformalRule], ...] = (LAC, PAS, APS, RAPS, SAPS, Margin, Rank, Sparse)


def score_knob(default: str = "LAC") -> Any:
    """The knob that takes the score of another conformal rule: `"RAPS"`, `"RAPS(penalty=0.1)"`, or a custom rule."""
    return knob(
        default,
        kind="suggestion",
        choices=tuple(rule.__name__ for rule in SCORED),
        meaning="conformal rule whose score is used",
    )


@dataclass(frozen=True)
class ScoredRule(ConformalRule):
    """A conformal rule that fits its limits in its own way to the score of another; it declares `score = score_knob()`."""

    reorders = True
    cost = "that of its score"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self._scored(), ConformalRule):
            raise ValueError(
                f"{type(self).__name__}: score = {self._score_argument!r}; give one of {names()}, or a ConformalRule"
            )

    def scorer(self, table: LogitTable) -> Score:
        return self._scored().scorer(table)

    def missing(self, table: LogitTable) -> list[str]:
        return list(dict.fromkeys([*super().missing(table), *self._scored().missing(table)]))

    @property
    def _score_argument(self) -> Any:
        return vars(self)["score"]

    def _scored(self) -> ConformalRule:
        return scored(self._score_argument)


def scored(score: Any) -> ConformalRule:
    """The rule that a score names."""
    named: ConformalRule = from_text(score, SCORED, "score") if isinstance(score, str) else score
    return named


def names() -> str:
    """The scores that have a name."""
    return ", ".join(rule.__name__ for rule in SCORED)
