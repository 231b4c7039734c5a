"""Sums of a smooth function over many numbers of [−1, 1] from a few of its values, by Chebyshev interpolation."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import torch
from torch import Tensor

CELLS = 2**15  # numbers worked on at once: what stays in the cache of a processor


def points(n: int, device: torch.device) -> Tensor:
    """(n,) float64: where a function is looked at."""
    return _rule(n, device)[0]


def weights(x: Tensor, n: int) -> Tensor:
    r"""(rows, n) float64: $\sum_j f(x_j) = \sum_q w_q f(y_q)$ for a polynomial f of degree below n and the n points y.

    A number below −1 is not counted; none is above 1.
    """
    sums = x.new_empty(n, len(x), dtype=torch.float64)
    ones = x.new_ones(x.shape[-1], dtype=torch.float64)
    for rows in _blocks(x):
        own = x[rows].double()  # where thousands of numbers are tied, so are their rounding errors
        inside = own >= -1
        now, before = own.where(inside, 0), inside.double()  # T_1 and T_0, 0 for what is not counted
        twice = 2 * now
        torch.mv(before, ones, out=sums[0, rows])
        for i in range(1, n):
            torch.mv(now, ones, out=sums[i, rows])
            now, before = before.neg_().addcmul_(twice, now), now
    return sums.T @ _rule(n, x.device)[1]


def interpolated(values: Tensor, x: Tensor) -> Tensor:
    """(rows, L): the function that has these values (rows, n) at the points, at each x; 0 below −1."""
    coefficients = (values @ _rule(values.shape[-1], x.device)[1].T).to(x.dtype).T.unsqueeze(-1)
    result = torch.empty_like(x)
    for rows in _blocks(x):
        own = x[rows].clamp(min=-1)
        now, before = torch.zeros_like(own), torch.zeros_like(own)
        for a in reversed(coefficients[1:, rows]):  # Clenshaw's recurrence
            now, before = before.neg_().addcmul_(own, now, value=2).add_(a), now
        result[rows] = before.neg_().addcmul_(own, now).add_(coefficients[0, rows]).where(x[rows] >= -1, 0)
    return result


def _blocks(x: Tensor) -> Iterator[slice]:
    at_once = max(1, CELLS // max(1, x.shape[-1]))
    return (slice(start, start + at_once) for start in range(0, len(x), at_once))


@lru_cache
def _rule(n: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """The points, and the matrix (n, n) that turns values at them into coefficients of Chebyshev polynomials."""
    with torch.inference_mode(False):  # the cached tensors must also serve training
        angles = torch.pi * (torch.arange(n, dtype=torch.float64, device=device) + 0.5) / n
        matrix = (torch.arange(n, dtype=torch.float64, device=device)[:, None] * angles).cos() * (2 / n)
        matrix[0] /= 2
        return angles.cos(), matrix
