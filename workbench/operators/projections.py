"""Euclidean projections on the simplex and on the top-K simplex: sparse answers in place of softmax and sigmoids."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.operators import applying
from workbench.operators.applying import applied, is_mapped
from workbench.operators.order import at_least_float32, check_order, in_plain_memory


def sparsemax(scores: Tensor) -> Tensor:
    r"""The probability vector closest to the scores: most entries are exactly 0.

    Args:
        scores: (…, L), any number of leading dimensions.

    $$\mathrm{sparsemax}(s) = \arg\min_{p \in \Delta} \|s - p\|^2, \qquad p_j = \max(0, s_j - \tau(s))$$

    >>> sparsemax(torch.tensor([1.0, 0.8, -1.0]))
    tensor([0.6000, 0.4000, 0.0000])

    Paper: Garcin, thesis, Eq. 6.6–6.8; the Jacobian is Eq. 6.22.
    """
    return project_top_k_simplex(scores, 1)


def project_top_k_simplex(scores: Tensor, K: int | float | Tensor) -> Tensor:
    r"""The vector with entries in [0, 1] that sum to K which is closest to the scores: sparse-top.

    Args:
        scores: (…, L), any number of leading dimensions.
        K: What the entries sum to; one number, or one for each row.

    $$\text{sparse-top}_j(K, s) = \max(0, \min(1, s_j - \lambda_K(s)))$$

    The threshold $\lambda_K$ is the real number that makes the sum K; K may be one number or one per row, from 0 to the
    number of classes that are not ruled out by −inf. With m the indicator of the entries strictly between 0 and 1, the
    Jacobian is $\mathrm{Diag}(m) - m m^\top / \|m\|_1$. Half precision is computed in float32. Cost: one sort of each row.

    >>> project_top_k_simplex(torch.tensor([3.0, 0.75, 0.5, -1.0]), 2)
    tensor([1.0000, 0.6250, 0.3750, 0.0000])

    Paper: Garcin, thesis, Eq. 6.13–6.15 and 6.21.
    """
    check_order(scores, 0, least=0)
    working = at_least_float32(scores)
    budget = _budget(working, K)
    # Telling autograd takes time, which a loss with a gradient of its own need not spend.
    # Inside `torch.func.grad` `requires_grad` is False although a gradient is needed.
    needs_gradient = scores.requires_grad or is_mapped(scores)
    of_one = bool(K == 1) if not isinstance(K, Tensor) else applying.is_here(K) and bool((K == 1).all())
    projection = (
        applied(_Projection, working, budget, of_one) if needs_gradient else _projection(working, budget, of_one)
    )
    return projection.to(scores.dtype)


def _projection(scores: Tensor, budget: Tensor, of_one: bool) -> Tensor:
    """The projection of each row; `of_one` where every budget is known to be 1."""
    n_classes = scores.shape[-1]
    rising = _sorted(scores)
    kth = rising.gather(-1, (n_classes - budget.ceil().long()).clamp(max=n_classes - 1))
    if applying.is_here(kth) and rising.numel():
        if bool(((kth == -math.inf) & (budget > 0)).any()):
            raise ValueError(
                f"K goes up to {float(budget.max()):g} and some row has fewer classes than its K that are not ruled out by "
                "−inf; lower K, or allow more classes"
            )
        # Classes more than 1 below the K-th largest stay at 0: solve for the others alone.
        n_zeros = int(torch.searchsorted(rising.contiguous(), kth - 1).amin())
        rising = rising[..., min(n_zeros, n_classes - 1) :]
    else:  # without a check, a row that allows too few classes is NaN
        kth = kth.where((kth > -math.inf) | (budget == 0), math.nan)
    kth = kth.clamp(min=torch.finfo(kth.dtype).min)  # a row without any class, and K = 0
    threshold = _threshold_of_one if of_one else _threshold
    return (scores - kth).sub_(threshold(rising - kth, budget)).clamp(0, 1)


class _Projection(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, budget: Tensor, of_one: bool) -> Tensor:
        return _projection(scores, budget, of_one)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, bool], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        (projection,) = ctx.saved_tensors
        middle = (projection > 0) & (projection < 1)
        slope = slope.where(middle, 0)
        shared = slope.sum(-1, keepdim=True) / middle.sum(-1, keepdim=True).clamp(min=1)
        return (slope - shared).where(middle, 0), None, None


def _threshold_of_one(above: Tensor, budget: Tensor) -> Tensor:
    """The same as `_threshold` for a budget of 1, sparsemax: no class gets full before another begins to add."""
    falling = above.flip(-1)
    total = falling.cumsum(-1)
    n = torch.arange(1, above.shape[-1] + 1, dtype=above.dtype, device=above.device)
    support = (n * falling > total - budget).sum(-1, keepdim=True).clamp(min=1)  # 0 only for scores that are NaN
    return (total.gather(-1, support - 1) - budget) / support


def _threshold(above: Tensor, budget: Tensor) -> Tensor:
    """The λ with Σ_j max(0, min(1, above_j − λ)) = budget, where `above` is measured from the K-th largest score.

    Measured from there λ is between −1, where the K largest are all full, and 0, where fewer than K add; and numbers are
    small, so sums are exact however large the scores. As λ falls from 0 to −1, one thing happens to each class: if it
    is above the K-th it gets full, at above_j − 1; if not it begins to add, at above_j. In between the sum grows in a
    straight line, by as much as classes are adding. So sort these events and see at which one the budget is reached, at
    the latest at −1.
    """
    above = F.pad(above, (1, 0), value=-1.0).clamp(max=1)  # a class that begins to add at −1 marks the end
    gets_full = above > 0
    events, order = (above - gets_full.to(above.dtype)).sort(-1, descending=True)
    change = torch.where(gets_full, -1, 1).gather(-1, order)
    adding = gets_full.sum(-1, keepdim=True) + change.cumsum(-1) - change  # how many classes add just before an event
    gaps = -events.diff(dim=-1, prepend=torch.zeros_like(budget))
    total = above.clamp(min=0).sum(-1, keepdim=True) + (gaps * adding).cumsum(-1)
    rounding = 4 * torch.finfo(above.dtype).eps * budget.clamp(min=1)
    reached = (total < budget - rounding).sum(-1, keepdim=True).clamp(max=events.shape[-1] - 1)
    event = events.gather(-1, reached)
    # Before that event these classes add, up to λ = event. Sum them afresh: the total went through many events.
    full = above - 1 > event
    adds = (above > event) & ~full
    n_adds = adds.sum(-1, keepdim=True)
    of_adding = budget - full.sum(-1, keepdim=True)
    threshold = (above.where(adds, 0).sum(-1, keepdim=True) - of_adding) / n_adds
    return threshold.where(n_adds > 0, event)


def _sorted(scores: Tensor) -> Tensor:
    """The scores of each row, rising. NumPy's sort is vectorised: 20 times quicker than torch's on a CPU."""
    if in_plain_memory(scores):
        return torch.from_numpy(np.sort(scores.numpy(), axis=-1))
    return scores.sort(-1).values


def _budget(scores: Tensor, K: int | float | Tensor) -> Tensor:
    # A number is filled in where it is needed: made here and sent there, it would make a GPU wait.
    budget = K.to(scores) if isinstance(K, Tensor) else torch.full((), K, dtype=scores.dtype, device=scores.device)
    if budget.ndim and budget.shape != scores.shape[:-1]:
        raise ValueError(
            f"K has shape {tuple(budget.shape)}; give one number, or one per row: {tuple(scores.shape[:-1])}"
        )
    n_classes = scores.shape[-1]
    if (not isinstance(K, Tensor) or applying.is_here(K)) and budget.numel():
        low, high = (K, K) if not isinstance(K, Tensor) else (float(end) for end in torch.aminmax(K))
        if not (low >= 0 and high <= n_classes):
            raise ValueError(
                f"K goes from {low:g} to {high:g}; give numbers from 0 to {n_classes}, that of the classes"
            )
    return budget.expand(scores.shape[:-1]).unsqueeze(-1)
