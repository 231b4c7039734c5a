"""How a comparator that sorts is relaxed: the probability that it swaps its two values, by how far they lie apart."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

TINY = 1e-10  # keeps ART finite where two values tie, as in the authors' difftopk


class Distribution(NamedTuple):
    """A distribution symmetric about 0: 1 − F(x) and F(x), the smaller one to full precision, and its density."""

    both: Callable[[Tensor], tuple[Tensor, Tensor]]
    density: Callable[[Tensor], Tensor]


def _logistic(x: Tensor) -> tuple[Tensor, Tensor]:
    return torch.sigmoid(-x), torch.sigmoid(x)


def _cauchy(x: Tensor) -> tuple[Tensor, Tensor]:
    angle = x.atan()
    return torch.add(_HALF, angle, alpha=-1 / math.pi), torch.add(_HALF, angle, alpha=1 / math.pi)


def _by_tail(tail: Callable[[Tensor], Tensor]) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """1 − F(x) and F(x) from the smaller of the two, a function of |x|."""

    def both(x: Tensor) -> tuple[Tensor, Tensor]:
        left = x < 0
        small = tail(torch.where(left, -x, x))  # |x| with a slope at 0, where two values tie
        large = 1 - small
        return torch.where(left, large, small), torch.where(left, small, large)

    return both


def _optimal_tail(size: Tensor) -> Tensor:
    far = size.clamp(min=0.25)
    return 0.0625 / far + (far - size)  # the second term is 0 from ¼ on


_HALF = torch.tensor(0.5)

RELAXATIONS: dict[str, Distribution] = {
    "logistic": Distribution(_logistic, lambda x: torch.sigmoid(x) * torch.sigmoid(-x)),
    "art": Distribution(_logistic, lambda x: torch.sigmoid(x) * torch.sigmoid(-x)),
    "reciprocal": Distribution(
        _by_tail(lambda size: 0.5 / (1 + 2 * size)), lambda x: (1 + 2 * x.abs()).square().reciprocal()
    ),
    "cauchy": Distribution(_cauchy, lambda x: (1 + x.square()).reciprocal() / math.pi),
    "optimal": Distribution(_by_tail(_optimal_tail), lambda x: 0.0625 / x.abs().clamp(min=0.25).square()),
}


@dataclass(frozen=True)
class Comparator:
    r"""Swaps two values b and a with probability $F(\beta (b - a))$, where the larger one should come first.

    β is the `steepness` and F the `relaxation`:

    - `logistic`: $F(x) = 1 / (1 + e^{-x})$. Its tails are so thin that a sort by it is not monotonic: raising a score can
      lower its rank.
    - `art`, the activation replacement trick: the logistic function of $\beta d / |d|^\lambda$ with d = b − a, steep where
      two values nearly tie and flat where they are far apart. `art_lambda` is λ: 0 is `logistic`, near 1 only the sign of
      d is left.
    - `reciprocal`: $F(x) = \tfrac12 + x / (1 + 2|x|)$; `cauchy`: $F(x) = \tfrac12 + \arctan(x) / \pi$. Their densities
      fall like 1/x², which keeps a sort monotonic.
    - `optimal`: $F(x) = \tfrac12 + x$ up to |x| = ¼ and $1 - 1 / (16 x)$ beyond. Of all that are monotonic and no steeper,
      the one whose relaxed minimum is nearest to the minimum: off by 1 / (16 β) at most.

    >>> _, swap = Comparator("optimal").mixing(torch.tensor([-1.0, 0.0, 0.25, 1.0]))
    >>> swap
    tensor([0.0625, 0.5000, 0.7500, 0.9375])

    Petersen et al. 2021 (ART) and 2022 ("Monotonic differentiable sorting networks"). The reciprocal of the difftopk
    package at steepness 4β is ours at β, which is as printed.
    """

    relaxation: str = "cauchy"
    steepness: float = 1.0
    art_lambda: float = 0.25

    def __post_init__(self) -> None:
        if self.relaxation not in RELAXATIONS:
            raise ValueError(f"there is no relaxation {self.relaxation!r}; give one of {', '.join(RELAXATIONS)}")
        if self.relaxation == "art" and not 0 <= self.art_lambda <= 1:
            raise ValueError(f"art_lambda = {self.art_lambda}; give a number from 0 (logistic) to 1 (the sign alone)")

    def mixing(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """1 − F(x) and F(x), where x = β (b − a): how likely the two stay, and change places."""
        return RELAXATIONS[self.relaxation].both(self._argument(x))

    def density(self, x: Tensor) -> Tensor:
        """How fast F grows with x."""
        density = RELAXATIONS[self.relaxation].density(self._argument(x))
        if self.relaxation != "art":
            return density
        size = x.abs() / self.steepness
        return density * (size + TINY).pow(-self.art_lambda) * (1 - self.art_lambda * size / (size + TINY))

    def _argument(self, x: Tensor) -> Tensor:
        return x * (x.abs() / self.steepness + TINY).pow(-self.art_lambda) if self.relaxation == "art" else x
