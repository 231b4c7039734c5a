"""How many of many independent events happen: the product of L small polynomials, truncated, and its derivatives.

Two smoothings of top-K stand on this one product: the exact Gaussian one, where p_j is the chance that class j is above
a level, and the log-sum one over subsets, where p_j is the weight of class j in a subset.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


class CountPolynomial:
    r"""The first coefficients of $\prod_j (q_j + p_j z)$, one polynomial per column.

    With $q_j = 1 - p_j$ coefficient c is the probability that exactly c of the events happen. Factors are multiplied in
    pairs, then pairs of pairs: about log L vectorised steps, and every term is positive, so nothing cancels.

    >>> p = torch.tensor([[0.5], [0.5], [0.1]])
    >>> CountPolynomial(p, 1 - p, degree=2).coefficients.squeeze()
    tensor([0.2250, 0.4750, 0.2750])
    """

    def __init__(self, present: Tensor, absent: Tensor, degree: int) -> None:  # (L, columns) each
        self.degree = degree
        self._levels = [torch.stack([absent, present])]  # (terms, factors, columns)
        while self._levels[-1].shape[1] > 1:
            self._levels.append(_multiplied_in_pairs(self._levels[-1], degree))

    @property
    def coefficients(self) -> Tensor:  # (degree + 1, columns)
        root = self._levels[-1].squeeze(1)
        missing = self.degree + 1 - len(root)
        return root if missing == 0 else torch.cat([root, root.new_zeros(missing, root.shape[1])])

    def derivative(self, weights: Tensor) -> Tensor:
        r"""$\partial / \partial p_j$ of the weighted sum of the coefficients; weights are (degree + 1, columns).

        The derivative of coefficient c is the probability that c − 1 of the *other* events happen.
        """
        slope = weights[: len(self._levels[-1])].unsqueeze(1)
        for factors in reversed(self._levels[:-1]):
            slope = _slope_of_factors(factors, slope)
        return slope[1]  # (L, columns)


def _multiplied_in_pairs(factors: Tensor, degree: int) -> Tensor:
    terms, count, columns = factors.shape
    half = count // 2
    left, right = factors[:, :half], factors[:, half : 2 * half]
    product = factors.new_zeros(min(2 * terms - 1, degree + 1), count - half, columns)
    for power in range(terms):
        reach = min(terms, len(product) - power)
        product[power : power + reach, :half].addcmul_(left[power], right[:reach])
    if count % 2:
        product[:terms, half] = factors[:, -1]
    return product


def _slope_of_factors(factors: Tensor, slope: Tensor) -> Tensor:
    terms, count, _ = factors.shape
    half = count // 2
    left, right = factors[:, :half], factors[:, half : 2 * half]
    slopes = torch.zeros_like(factors)
    for power in range(terms):
        reach = min(terms, len(slope) - power)
        shifted = slope[power : power + reach, :half]
        slopes[power, :half] = (shifted * right[:reach]).sum(0)
        slopes[:reach, half : 2 * half].addcmul_(left[power], shifted)
    if count % 2:
        slopes[:, -1] = slope[:terms, half]
    return slopes


class RowFunction(torch.autograd.Function):
    """A number per row whose gradient comes with it: `evaluate(scores)` returns values (...,) and gradients (..., L)."""

    @staticmethod
    def forward(scores: Tensor, evaluate: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        return evaluate(scores)

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(output[1])

    @staticmethod
    def backward(ctx, slope: Tensor, _: Tensor) -> tuple[Tensor, None]:  # type: ignore[override]
        (gradient,) = ctx.saved_tensors
        return slope.unsqueeze(-1) * gradient, None

    @staticmethod
    def vmap(info, in_dims, scores: Tensor, evaluate):  # type: ignore[no-untyped-def]
        return RowFunction.apply(scores.movedim(in_dims[0], 0), evaluate), (0, 0)
