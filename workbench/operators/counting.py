"""How many of many independent events happen: the product of L small polynomials, truncated, and its derivatives.

Two smoothings of top-K stand on this one product: the exact Gaussian one, where p_j is the chance that class j is above
a level, and the log-sum one over subsets, where p_j is the weight of class j in a subset.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from workbench.operators.order import kth_value
from workbench.operators.rowwise import rowwise


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
    products = factors.new_zeros(min(2 * terms - 1, degree + 1), count - half, columns)
    pairs = products[:, :half]
    for power, coefficient in enumerate(left):
        shifted = pairs[power : power + terms]
        shifted.addcmul_(coefficient, right[: len(shifted)])
    if count % 2:
        products[:terms, half] = factors[:, -1]
    return _without_underflow(products)


def _slope_of_factors(factors: Tensor, slope: Tensor) -> Tensor:
    terms, count, _ = factors.shape
    half = count // 2
    left, right = factors[:, :half], factors[:, half : 2 * half]
    slopes = torch.zeros_like(factors)
    of_left, of_right, pairs = slopes[:, :half], slopes[:, half : 2 * half], slope[:, :half]
    for power, coefficient in enumerate(left):
        shifted = pairs[power : power + terms]
        torch.sum(shifted * right[: len(shifted)], 0, out=of_left[power])
        of_right[: len(shifted)].addcmul_(coefficient, shifted)
    if count % 2:
        slopes[:, -1] = slope[:terms, half]
    return _without_underflow(slopes)


def _without_underflow(probabilities: Tensor) -> Tensor:
    """Set to 0 what no probability would miss: a processor crawls through numbers that are about to underflow."""
    return probabilities.hardshrink(torch.finfo(probabilities.dtype).tiny ** 0.45)


def log_symmetric_ratio(log_weights: Tensor, k: int) -> Tensor:
    r"""The logarithm of $e_k(x) / e_{k-1}(x)$, where x are the weights whose logarithms are given on the last axis.

    $e_k(x) = \sum_{|A| = k} \prod_{j \in A} x_j$ is the k-th elementary symmetric polynomial: a sum over all subsets of k
    classes. Dividing every weight by $e^c$ divides the ratio by $e^c$, so c is free. It is chosen such that among
    independent events of probability $x_j / (x_j + e^c)$ about k happen; then the two polynomials are, up to a common
    factor, the probabilities of k and of k − 1 events, and neither over- nor underflows. A weight of 0 counts for nothing.

    >>> log_symmetric_ratio(torch.zeros(10), 3).exp()  # (10 choose 3) / (10 choose 2)
    tensor(2.6667)
    """
    return rowwise(log_weights, partial(_log_symmetric_ratio, k))


def _log_symmetric_ratio(k: int, log_weights: Tensor, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    kth = kth_value(log_weights, k)  # (n,)
    possible = kth != -math.inf  # otherwise fewer than k weights are above 0, and e_k = 0
    log_weights = log_weights.where(possible.unsqueeze(-1), 0)
    log_L = math.log(log_weights.shape[-1])
    low, high = kth.where(possible, 0) - log_L, kth.where(possible, 0) + log_L
    # c may be off by 1/√k: then the mean number of events is off by about √k, one standard deviation of that number.
    for _ in range(math.ceil(math.log2(max(1.0, log_L * math.sqrt(k))))):
        middle = (low + high) / 2
        too_many = (log_weights - middle.unsqueeze(-1)).sigmoid_().sum(-1) > k - 0.5
        low, high = middle.where(too_many, low), high.where(too_many, middle)

    c = (low + high) / 2
    log_odds = (log_weights - c.unsqueeze(-1)).T.contiguous()  # (L, n)
    present = log_odds.sigmoid()
    counts = CountPolynomial(present, log_odds.neg_().sigmoid_(), degree=k)
    p_less, p_k = counts.coefficients[k - 1 :]
    values = (c + p_k.log() - p_less.log()).where(possible, -math.inf)
    if not with_gradient:
        return values, None

    # The derivative for a log-weight is P(its class is in | k are) − P(its class is in | k − 1 are).
    weights = torch.zeros_like(counts.coefficients)
    weights[k - 1], weights[k] = -1 / p_less, 1 / p_k
    return values, (present * counts.derivative(weights)).T.where(possible.unsqueeze(-1), 0)
