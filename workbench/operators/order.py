"""Order statistics of the last axis: the k-th largest score and the sum of the k largest.

Which classes hold which place is found on detached scores, the value is then read from the scores themselves: the
(sub)gradient follows by itself.
"""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np
import torch
from torch import Tensor

from workbench.operators import applying

BLOCK = 16  # values whose maximum stands for them


def kth_largest(scores: Tensor, k: int) -> Tensor:
    r"""The k-th largest score of each row, $\mathrm{top}_k(s)$. Its gradient is 1 at the class that holds it.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Which place, counted from 1.

    Of tied classes the one with the lower index counts as larger. Paper: Garcin et al. 2022, Eq. 1.

    >>> scores = torch.tensor([2.4, 2.6, 2.3, 0.5], requires_grad=True)
    >>> value = kth_largest(scores, 2)
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.tolist()
    (2.4, [1.0, 0.0, 0.0, 0.0])
    """
    check_order(scores, k, least=1)
    value, holder = kth_place(scores.detach(), k)
    return scores.gather(-1, holder.unsqueeze(-1)).squeeze(-1).where(~value.isnan(), math.nan)


def top_sum(scores: Tensor, k: int) -> Tensor:
    r"""The sum of the k largest scores, $\mathrm{top}\Sigma_k(s)$. Its gradient is 1 at those k classes.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: How many are summed.

    Of tied classes the one with the lower index counts as larger; k = 0 gives 0. Paper: Garcin et al. 2022, Eq. 2.

    >>> scores = torch.tensor([2.0, 2.0, 2.0, 3.0], requires_grad=True)
    >>> top_sum(scores, 3).backward()
    >>> scores.grad.tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    check_order(scores, k, least=0)
    return scores.gather(-1, top_classes(scores.detach(), k)).sum(-1)


def kth_place(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k-th largest score of each row and the class that holds it, without a gradient."""
    value = kth_value(scores, k)
    if in_plain_memory(scores):  # NumPy compares with one number per row, and finds lonely Trues, several times quicker
        holders = _places_in_rows(scores.numpy() == value.unsqueeze(-1).numpy(), 1)
        if holders is not None:
            return value, holders.squeeze(-1)
    tied = scores == value.unsqueeze(-1)
    above = (scores > value.unsqueeze(-1)).sum(-1, keepdim=True)
    return value, (tied & (above + tied.cumsum(-1, dtype=torch.int32) == k)).byte().argmax(-1)


def top_classes(scores: Tensor, k: int) -> Tensor:
    """The classes of the k largest scores of each row, without a gradient; of tied classes those of lower index."""
    if not k:
        return torch.empty((*scores.shape[:-1], 0), dtype=torch.long, device=scores.device)
    if in_plain_memory(scores):
        best = _places_in_rows(scores.numpy() >= kth_value(scores, k).unsqueeze(-1).numpy(), k)
        if best is not None:
            return best
    return scores.argsort(dim=-1, descending=True, stable=True)[..., :k]


def _places_in_rows(mask: np.ndarray, k: int) -> Tensor | None:
    """(..., k): where each row of the mask is True; None if a row has more or fewer than k: scores are tied or NaN."""
    found, (*rows, n_classes) = np.flatnonzero(mask), mask.shape
    if len(found) * n_classes != k * mask.size:
        return None
    places = found.reshape(-1, k) - n_classes * np.arange(len(found) // k)[:, None]
    if ((places < 0) | (places >= n_classes)).any():
        return None
    return torch.from_numpy(places).view(*rows, k)


def kth_value(values: Tensor, k: int) -> Tensor:
    """The k-th largest of the last axis, without a gradient; NaN where one of them is NaN, which sorts as the largest.

    Of many values only a few are looked at: the k blocks with the largest maxima hold the k largest values. Among those
    NumPy's partition is quicker than `topk` and `kthvalue` on a CPU.
    """
    if values.shape[-1] >= (32 if in_plain_memory(values) else 4) * BLOCK * k:
        values = _best_blocks(values, k)
    if in_plain_memory(values):
        position = values.shape[-1] - k
        parted = values.numpy().copy()
        parted.partition(position)  # a method: the function of that name takes longer to get there
        return torch.from_numpy(parted)[..., position:].amin(-1)
    return values.topk(k).values.amin(-1)


def _best_blocks(values: Tensor, k: int) -> Tensor:
    """(..., 16 k + a few): values of each row, the k largest among them."""
    n_blocks = values.shape[-1] // BLOCK
    blocks = values[..., : BLOCK * n_blocks].unflatten(-1, (BLOCK, n_blocks))
    best = blocks.amax(-2, keepdim=True).topk(k, sorted=False).indices  # (..., 1, k)
    best = best.expand(*values.shape[:-1], BLOCK, k)
    return torch.cat([blocks.gather(-1, best).flatten(-2), values[..., BLOCK * n_blocks :]], -1)


def largest(scores: Tensor, m: int) -> Tensor:
    """The classes of the m largest scores of each row, in no order and without a gradient."""
    return top_classes(scores, m) if in_plain_memory(scores) else scores.topk(m, sorted=False).indices


def in_plain_memory(values: Tensor) -> bool:
    """Whether NumPy can read the tensor: its values are here, and not in half precision."""
    return values.dtype in (torch.float32, torch.float64) and applying.is_here(values)


def at_least_float32(values: Tensor) -> Tensor:
    """Half precision as float32, anything else as it is."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def check_noise_scale(epsilon: float) -> None:
    """Refuse what no noise can have as its scale."""
    if not 0 <= epsilon < math.inf:
        raise ValueError(f"epsilon = {epsilon} is the scale of the noise; give a number ≥ 0")


def check_order(scores: Tensor, k: int, least: int) -> None:
    """Refuse scores that are not floating-point and a k that is not a place among the classes."""
    if not isinstance(scores, Tensor) or not scores.is_floating_point() or scores.ndim == 0:
        kind = scores.dtype if isinstance(scores, Tensor) else type(scores).__name__
        raise ValueError(f"scores are {kind}; give a floating-point tensor with the classes on its last axis")
    n_classes = scores.shape[-1]
    if isinstance(k, bool) or not isinstance(k, Integral) or not least <= k <= n_classes:
        raise ValueError(f"k = {k!r} with {n_classes} classes; give a whole number from {least} to {n_classes}")
