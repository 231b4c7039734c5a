"""How many of many independent events happen: the product of L small polynomials, truncated, and its derivatives.

Two smoothings of top-K stand on this one product: the exact Gaussian one, where p_j is the chance that class j is above
a level, and the log-sum one over subsets, where p_j is the weight of class j in a subset.
"""

from __future__ import annotations

import math
from functools import partial

import torch
from torch import Tensor

from workbench.operators.order import kth_value, largest
from workbench.operators.rowwise import rowwise

CELLS = 2**16  # weights worked on at once: what stays in the cache of a processor


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
    classes. The 4 k largest weights are multiplied out; the others enter by their power sums $p_i = \sum_j x_j^i$ and
    Newton's identities $i\, e_i = \sum_l (-1)^{l-1} e_{i-l}\, p_l$. The terms alternate, but next to what the largest
    weights give they are small, so nothing is lost. A weight of 0 counts for nothing.

    >>> log_symmetric_ratio(torch.zeros(10), 3).exp()  # (10 choose 3) / (10 choose 2)
    tensor(2.6667)
    """
    return rowwise(log_weights, partial(_log_symmetric_ratio, k))


def _log_symmetric_ratio(k: int, log_weights: Tensor, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    top = largest(log_weights, min(4 * k, log_weights.shape[-1]))  # (n, m)
    log_top = log_weights.gather(-1, top)
    kth = kth_value(log_top, k).unsqueeze(-1)
    possible = kth != -math.inf  # otherwise fewer than k weights are above 0, and e_k = 0
    kth = kth.where(possible, 0)
    x = (log_weights - kth).exp_().scatter_(-1, top, 0)  # (n, L): 0 at the top
    # Dividing every weight by e^c divides the ratio by e^c. This c makes about k of the events x / (1 + x) happen.
    below_kth = x.sum(-1, dtype=torch.float64) + (log_top - kth).clamp(max=0).exp().sum(-1) - k
    shift = (below_kth.clamp(min=1) / k).log()
    x.mul_((-shift).exp().unsqueeze(-1))  # at most 1/3, because 3 k of the top are not below it
    rest = _elementary(_power_sums(x, k))
    log_odds = (log_top - kth).T - shift  # (m, n), in float64 as all that is small
    present = log_odds.sigmoid()
    counts = CountPolynomial(present, (-log_odds).sigmoid(), degree=k)
    e = product(counts.coefficients, rest)  # (k + 1, n), up to a common factor
    values = (kth.squeeze(-1) + shift + e[k].log() - e[k - 1].log()).where(possible.squeeze(-1), -math.inf)
    if not with_gradient:
        return values.to(x.dtype), None

    # The derivative for a log-weight is P(its class is in | k are) − P(its class is in | k − 1 are). That of e_i is
    # x e_{i-1} − x² e_{i-2} + …
    slopes = alternating(e[:k].flip(0) / e[k] - _shifted(e[: k - 1].flip(0)) / e[k - 1])
    gradient = polynomial_(slopes.where(possible.T, 0).to(x.dtype), x)
    weights = rest.flip(0) / e[k] - _shifted(rest[:k].flip(0)) / e[k - 1]
    of_top = (present * counts.derivative(weights)).T.where(possible, 0)
    return values.to(x.dtype), gradient.scatter_(-1, top, of_top.to(x.dtype))


def counts_by_odds(odds: Tensor, weights: Tensor, k: int) -> Tensor:
    """(k + 1, n): how likely so many of independent events are, over the chance that none of them happens.

    Events with these odds (…, kinds) in float64, of each kind as many as its weight; n is the product of the other axes.
    """
    sums, powers = [], weights
    for _ in range(k):
        powers = powers * odds
        sums.append(powers.sum(-1).flatten())
    return _elementary(torch.stack(sums)) * (sums[0] / 2).exp()


def _power_sums(x: Tensor, k: int) -> Tensor:
    """(k, n): the sums of the first k powers of each row, in float64."""
    sums, ones = x.new_empty(k, len(x)), x.new_ones(x.shape[-1])
    for rows in _blocks(x):
        power = x[rows].clone()
        for i in range(k):
            torch.mv(power, ones, out=sums[i, rows])  # several times quicker than a sum
            power.mul_(x[rows])
    return sums.double()


def polynomial_(slopes: Tensor, x: Tensor) -> Tensor:
    """a_1 x + … + a_k x^k with the coefficients (k, n) of each row of x (n, L), by Horner's rule and in place of x."""
    blocks = _blocks(x)
    buffer = torch.empty_like(x[blocks[0]]) if blocks else x
    for rows in blocks:
        values = buffer[: len(x[rows])].zero_()
        for slope in reversed(slopes[:, rows]):
            values.add_(slope.unsqueeze(-1)).mul_(x[rows])
        x[rows] = values
    return x


def _blocks(x: Tensor) -> list[slice]:
    """Rows that are worked on together: on a CPU as many as stay in its cache."""
    n, n_classes = x.shape
    at_once = max(1, CELLS // max(1, n_classes)) if x.device.type == "cpu" else max(1, n)
    return [slice(start, start + at_once) for start in range(0, n, at_once)]


def _elementary(sums: Tensor) -> Tensor:
    """(k + 1, n): the elementary symmetric polynomials of weights with these power sums (k, n), by Newton's identities.

    All are divided by e^{p_1 / 2}, which keeps the first of them and the largest in range.
    """
    signed, e = alternating(sums), [(-sums[0] / 2).exp()]
    for i in range(1, len(sums) + 1):
        e.append((torch.stack(e[::-1]) * signed[:i]).sum(0) / i)
    return torch.stack(e)


def alternating(terms: Tensor) -> Tensor:
    """The terms with every second sign turned."""
    signs = torch.ones_like(terms[:, :1])
    signs[1::2] = -1
    return terms * signs


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of two polynomials (terms, n), truncated to as many terms."""
    product = torch.zeros_like(right)
    for power, coefficient in enumerate(left):
        product[power:].addcmul_(coefficient, right[: len(right) - power])
    return product


def _shifted(terms: Tensor) -> Tensor:
    """One more term at the end, which is 0."""
    return torch.cat([terms, terms.new_zeros(1, terms.shape[1])])
