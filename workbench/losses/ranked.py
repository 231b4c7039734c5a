"""The top-k loss for any mixture of k: the probability that the label is ranked high enough, by a relaxed sort."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.knobs import knob
from workbench.losses.base import Loss, reduced

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from workbench.operators.comparators import Comparator

# Names that `workbench.operators` gives the relaxed sorts and the swaps of its networks; the operators themselves load torch.
SORTS = ("neural_sort", "soft_sort", "sinkhorn_sort", "odd_even_transposition", "odd_even_merge", "bitonic", "splitter")
RELAXATIONS = ("logistic", "art", "reciprocal", "cauchy", "optimal")
MASKED = 1e4  # a class masked by −inf stands this far below the label, in units of 1 / steepness


@dataclass(frozen=True)
class DifferentiableTopK(Loss):
    r"""Minus the log-probability that the label is among the top k, where k itself is drawn from a distribution.

    $$\ell(s, y) = -\log \sum_k P_K(k) \sum_{r \le k} P_{r, y}(s)$$

    P_{r,y} is the probability that label y holds rank r, row r of the relaxed permutation of a differentiable sorting
    operator. P_K(k) is how much a top-k prediction is worth: (.5, 0, 0, 0, .5) wants the label first half of the time
    and among five the other half. Rank r weighs Σ_{k ≥ r} P_K(k).

    - `p_k`: P_K(1), P_K(2), … for all rows, or one such tuple per class (that of the label counts). A tensor (n, k)
      given in the call, `loss(scores, labels, p_k=…)`, has one distribution per row.
    - `operator`: the relaxed sort. Its temperature is 1 / `steepness`. Networks swap by the distribution function
      `relaxation` (`workbench/operators/comparators.py` has the formulas), of which `art` has the exponent `art_lambda`;
      `sinkhorn_sort` alternates `n_iterations` times between rows and columns. It squashes the scores to (0, 1) first and
      wants a steepness of 10 to 30: with less, all ranks are nearly equal; with more, top-1 falls and nothing is gained
      (`docs/sinkhorn.md`).
    - `m`: only the label and the m − 1 best other classes are ranked: faster, and better. They enter in rising order of
      score, the label last, so the loss does not depend on the order of the classes.
    - `top1`: relaxed sorts are least reliable at rank 1. `softmax` puts the softmax of the m kept classes in place of the
      top-1 term inside the logarithm (the authors' default); `cross_entropy` takes it out of the logarithm and adds
      P_K(1) times cross-entropy over all classes, Eq. 4; `sort` is the formula above, Eq. 2.

    >>> import torch, workbench as wb
    >>> loss = wb.losses.DifferentiableTopK(p_k=(0.5, 0.5), operator="bitonic", steepness=10.0, top1="sort")
    >>> scores = torch.tensor([[3.0, 2.0, 1.0, 0.0]])
    >>> [round(loss(scores, torch.tensor([y])).item(), 2) for y in range(4)]
    [0.04, 0.66, 3.42, 3.98]

    Paper: Petersen et al. 2022, Eq. 1, 2 and 4, Sec. 3.3. Differs from the authors' difftopk in that the probability is
    not mixed with 1e-7, and that cross-entropy in Eq. 4 is over all classes, as printed, not over the m kept ones.
    """

    title = "Differentiable top-k"
    formula = r"-\log \sum_k P_K(k) \sum_{r \le k} P_{r,y}(s)"
    paper = "Petersen et al. 2022"
    equation = "Eq. 2, 4"
    compiles = False
    convex = False
    smooth = False
    calibrated = False

    p_k: tuple[Any, ...] = knob(
        (0.5, 0.0, 0.0, 0.0, 0.5), symbol="P_K", meaning="worth of a top-1, a top-2, … prediction"
    )
    operator: str = knob(
        "splitter",
        choices=SORTS,
        meaning="relaxed sort that ranks the classes",
    )
    m: int = knob(16, low=8, high=64, minimum=2, maximum=math.inf, symbol="m", meaning="number of classes ranked")
    steepness: float = knob(2.0, low=0.01, high=100, scale="log", meaning="inverse temperature of the sort")
    top1: str = knob("softmax", choices=("softmax", "sort", "cross_entropy"), meaning="way the top-1 term is computed")
    relaxation: str = knob("cauchy", choices=RELAXATIONS, meaning="distribution by which a network swaps")
    art_lambda: float = knob(
        0.25, low=0, high=0.9, maximum=1, symbol="exponent", meaning="exponent of the relaxation art"
    )
    n_iterations: int = knob(
        50, low=5, high=200, minimum=1, maximum=math.inf, meaning="number of iterations of sinkhorn_sort"
    )

    @property
    def proper(self) -> bool:
        """Only where nothing but cross-entropy is left of it (of at most m classes, where softmax is of the kept ones)."""
        return largest_k(self.p_k) == 1 and self.top1 != "sort"

    def __post_init__(self) -> None:
        p_k = self.p_k
        if isinstance(p_k, (Sequence, np.ndarray)) and len(p_k) and isinstance(p_k[0], (Sequence, np.ndarray)):
            p_k = tuple(self.knobs()["p_k"].checked("p_k", one_class, owner=type(self).__name__) for one_class in p_k)
            if len({len(one_class) for one_class in p_k}) > 1:
                raise ValueError(
                    "DifferentiableTopK: p_k has rows of different lengths; give each class as many numbers"
                )
            object.__setattr__(self, "p_k", p_k[0])  # the other knobs are checked as ever
            super().__post_init__()
            object.__setattr__(self, "p_k", p_k)
        else:
            super().__post_init__()
        if (k := largest_k(self.p_k)) > min(self.at(0).m, self.at(1).m):
            raise ValueError(
                f"DifferentiableTopK: p_k reaches rank {k} and m = {self.m} classes are ranked; raise m or shorten p_k"
            )

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        p_k: Tensor | None = None,
        noise: Tensor | None = None,
        generator: torch.Generator | None = None,
        state: nn.Module | None = None,
        rows: Tensor | None = None,
        reduction: str = "none",
    ) -> Tensor:
        """As every loss; `p_k` (n, k) is P_K for each row, in place of the knob."""
        loss = self.at(1)
        scores = loss._checked_scores(scores)
        return reduced(loss.values(scores, loss._checked_labels(scores, labels), p_k=p_k), reduction)

    def values(self, scores: Tensor, labels: Tensor, *, p_k: Tensor | None = None, **_: Any) -> Tensor:
        import torch
        import torch.nn.functional as F

        from workbench.operators.relaxed_sorts import log_worth_of_last

        of_softmax, of_ranks = self._weights(scores, labels, p_k)
        kept = self._counted_scores(scores, labels)
        log_worth = log_worth_of_last(kept, of_ranks, self.operator, self._comparator(), self.n_iterations)  # (n,)
        if self.top1 == "softmax":
            log_worth = torch.logaddexp(log_worth, of_softmax.log().squeeze(-1) + kept.log_softmax(-1)[:, -1])
        if self.top1 != "cross_entropy":
            return -log_worth
        top1 = of_softmax.squeeze(-1)
        return top1 * F.cross_entropy(scores, labels, reduction="none") - (1 - top1) * log_worth

    def _comparator(self) -> Comparator:
        from workbench.operators.comparators import Comparator

        return Comparator(self.relaxation, self.steepness, self.art_lambda)

    def _weights(self, scores: Tensor, labels: Tensor, p_k: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the weight of the top-1 term outside the ranking (1 or n, 1) and of each rank (1 or n, k)."""
        if p_k is not None:
            return weights(self._checked_p_k(p_k, scores), self.top1)
        of_softmax, of_ranks = _weights_of_knob(self.p_k, self.top1, scores.dtype, scores.device)
        k, n_classes = of_ranks.shape[-1], scores.shape[-1]
        if k >= n_classes:
            raise ValueError(
                f"DifferentiableTopK: p_k reaches k = {k} with {n_classes} classes; k must be smaller than the number of"
                " classes"
            )
        if not isinstance(self.p_k[0], tuple):
            return of_softmax, of_ranks
        if len(self.p_k) != n_classes:
            raise ValueError(
                f"DifferentiableTopK: p_k has {len(self.p_k)} rows, one per class, and scores {n_classes} classes"
            )
        return of_softmax[labels], of_ranks[labels]

    def _checked_p_k(self, p_k: Tensor, scores: Tensor) -> Tensor:
        import torch
        from torch import Tensor

        from workbench.operators.applying import is_here

        n, m = len(scores), min(self.m, scores.shape[-1] - 1)
        if not isinstance(p_k, Tensor) or p_k.ndim != 2 or len(p_k) != n or not 1 <= p_k.shape[1] <= m:
            kind = f"has shape {tuple(p_k.shape)}" if isinstance(p_k, Tensor) else f"is {type(p_k).__name__}"
            raise ValueError(f"DifferentiableTopK: p_k {kind}; give a tensor ({n}, k): P_K of each row, up to k = {m}")
        if is_here(p_k) and not ((p_k >= 0).all() and torch.allclose(p_k.sum(-1), p_k.new_ones(n), atol=1e-5)):
            raise ValueError("DifferentiableTopK: a row of p_k is not a distribution; give numbers ≥ 0 that sum to 1")
        return p_k.to(scores)

    def _counted_scores(self, scores: Tensor, labels: Tensor) -> Tensor:
        """(n, m): the best m − 1 other classes from worst to best, then the label."""
        import torch

        from workbench.operators.order import largest

        m = min(self.m, scores.shape[-1])
        best = largest(scores.detach(), m)
        finite = scores.detach().gather(-1, best).clamp(min=torch.finfo(scores.dtype).min)
        rising = finite.masked_fill(best == labels[:, None], -math.inf).argsort(-1)
        others = best.gather(-1, rising[:, 1:])  # without the label or, where that is not among the best, the worst
        kept = scores.gather(-1, torch.cat([others, labels[:, None]], dim=-1))
        return torch.where(kept == -math.inf, kept[:, -1:].detach() - MASKED / self.steepness, kept)


def largest_k(p_k: tuple[Any, ...]) -> int:
    """The last k with P_K(k) > 0, for any class."""
    return int(np.flatnonzero(np.atleast_2d(np.array(p_k)).any(axis=0))[-1]) + 1


@lru_cache(maxsize=64)
def _weights_of_knob(
    p_k: tuple[Any, ...], top1: str, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """The weights of the knob, (1, ·) or one row per class: kept, because a dozen small steps cost as much as a layer."""
    import torch

    k = largest_k(p_k)
    with torch.inference_mode(False):  # the cached tensors must also serve training
        return weights(torch.tensor(p_k, dtype=dtype, device=device)[..., :k].reshape(-1, k), top1)


def weights(p_k: Tensor, top1: str) -> tuple[Tensor, Tensor]:
    """Return the weight of the top-1 term outside the ranking (n, 1) and of each rank (n, k)."""
    import torch

    if top1 == "sort":
        return torch.zeros_like(p_k[:, :1]), rank_weights(p_k)
    of_softmax, beyond_top1 = p_k[:, :1], torch.cat([torch.zeros_like(p_k[:, :1]), p_k[:, 1:]], dim=-1)
    of_ranks = rank_weights(beyond_top1)
    if top1 == "cross_entropy":  # P_K(1) = 1 leaves 0 · log 0, whatever the ranks: keep the logarithm finite
        of_ranks = torch.where(beyond_top1.any(-1, keepdim=True), of_ranks, 1.0)
    return of_softmax, of_ranks


def rank_weights(p_k: Tensor) -> Tensor:
    """Return the weight of each rank: rank r counts for every k ≥ r.

    >>> import torch
    >>> rank_weights(torch.tensor([0.5, 0.5]))
    tensor([1.0000, 0.5000])

    Paper: Petersen et al. 2022, Fig. 1.
    """
    return p_k.flip(-1).cumsum(-1).flip(-1)
