"""The k-th largest score under Gaussian noise, without sampling."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from workbench.operators import applying, chebyshev
from workbench.operators.counting import CountPolynomial, alternating, counts_by_odds, polynomial_, product
from workbench.operators.order import check_noise_scale, check_order, kth_largest, kth_value, largest
from workbench.operators.rowwise import rowwise

# Rows × nodes × classes worked on at once: enough that few small steps are taken, on a GPU that it is kept busy.
CELLS, CELLS_ELSEWHERE = 2**20, 2**22

FAR = 8.0  # P(Z > 8) = 6e-16
UNLIKELY = 0.68  # P(Z > 0.68) = 1/4
BINS = 4  # per ε, for the scores of many classes
FIRST, N_BINS = -16, 33 * BINS  # from −16 ε to 17 ε: what lies beyond is FAR from all levels of a bracket


class Precision(NamedTuple):
    """Accuracy of the numerical integral."""

    nodes: int  # of the Gauss–Legendre rule
    points: int  # of the Chebyshev rule that stands for the unlikely classes
    tail: float  # probability that may be lost beyond either end of the bracket
    reach: float  # a class more than this many ε below the bracket never matters


PRECISIONS = {torch.float32: Precision(32, 14, 1e-7, 4.5), torch.float64: Precision(64, 32, 1e-13, 6.5)}


def exact_noised_kth_largest(scores: Tensor, k: int, epsilon: float) -> Tensor:
    r"""The expected k-th largest score under Gaussian noise: what `noised_kth_largest` estimates, without its noise.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Which place, counted from 1.
        epsilon: ε, the scale of the noise.

    $$\mathrm{top}_{k,\varepsilon}(s) = \mathbb E\big[\mathrm{top}_k(s + \varepsilon Z)\big]
      = t_0 + \int_{t_0}^{t_1} P\big(N(t) \ge k\big)\,dt, \qquad N(t) = \#\{j : s_j + \varepsilon Z_j > t\}$$

    N(t) counts independent events of probability $\Phi((s_j - t)/\varepsilon)$; $t_0$ and $t_1$ bracket where
    $P(N(t) \ge k)$ falls from 1 to 0. The derivative for $s_j$ is the probability that class j holds the k-th place, so
    the gradient of a row is positive and sums to 1. Nothing is random. The error is below 1e-9 ε in float64 and about
    1e-5 ε in float32, besides the rounding of the result itself where the scores are large. epsilon = 0 is `kth_largest`.

    >>> scores = torch.tensor([2.4, 2.6, 2.3, 0.5], requires_grad=True)
    >>> value = exact_noised_kth_largest(scores, 2, epsilon=1.0)
    >>> value.backward()
    >>> round(value.item(), 4), [round(weight, 4) for weight in scores.grad.tolist()]
    (2.4558, [0.3245, 0.3159, 0.3172, 0.0424])

    Paper: the expectation is Garcin et al. 2022, Definition 3.4; they sample it.
    """
    check_order(scores, k, least=1)
    check_noise_scale(epsilon)
    if epsilon == 0:
        return kth_largest(scores, k)
    return rowwise(scores, partial(_smoothed, k, epsilon))


def _smoothed(k: int, epsilon: float, scores: Tensor, with_gradient: bool) -> tuple[Tensor, Tensor | None]:
    """The expectation of each row and its gradient."""
    precision = PRECISIONS[scores.dtype]
    kth = kth_value(scores, k)  # (n,)
    possible = kth != -math.inf  # otherwise fewer than k classes are allowed, and the k-th largest score is −inf
    # Measured from the k-th largest, numbers are small, so differences of scores are exact however large the scores.
    scores = (scores - kth.unsqueeze(-1)).where(possible.unsqueeze(-1), 0)
    low, high = _bracket(scores, k, epsilon, precision.tail)  # (n,) each
    m = n_likely = scores.shape[-1]
    if len(scores) and applying.is_here(scores):  # of how many classes matter, only one who can look takes advantage
        m, n_likely = (
            max(at_least, int((scores > (low - reach * epsilon).unsqueeze(-1)).sum(-1).amax()))
            for at_least, reach in ((k, precision.reach), (4 * k, UNLIKELY))
        )
    classes = largest(scores, n_likely if n_likely < m / 2 else m)
    kept = scores.gather(-1, classes)  # multiplied out, one by one
    points = weights = torch.zeros(len(scores), 0, dtype=torch.float64, device=scores.device)
    others = None
    if n_likely < m / 2:  # above a level with probability ¼ at most, and that is a smooth function of the score
        middle, half = (precision.reach + UNLIKELY) / 2, (precision.reach - UNLIKELY) / 2
        others = scores.scatter(-1, classes, -math.inf).sub_(low.unsqueeze(-1)).div_(epsilon).add_(middle).div_(half)
        weights = chebyshev.weights(others, precision.points)
        points = low.unsqueeze(-1) + epsilon * (half * chebyshev.points(precision.points, low.device) - middle)

    values, of_kept, of_points = torch.empty_like(low), torch.empty_like(kept), torch.empty_like(points)
    cells = CELLS if scores.device.type == "cpu" else CELLS_ELSEWHERE
    step = max(1, cells // (precision.nodes * (kept.shape[-1] + points.shape[-1])))
    for start in range(0, len(scores), step):
        rows = slice(start, start + step)
        values[rows], of_kept[rows], of_points[rows] = _integral(
            kept[rows], points[rows], weights[rows], low[rows], high[rows], k, epsilon, with_gradient
        )
    gradient = None
    if with_gradient:
        gradient = (
            torch.zeros_like(scores) if others is None else chebyshev.interpolated(of_points, others).clamp_(min=0)
        )
        gradient = gradient.scatter_(-1, classes, of_kept).where(possible.unsqueeze(-1), 0)
    return (kth + values).where(possible, -math.inf), gradient


def _integral(
    likely: Tensor,  # (n, classes)
    points: Tensor,  # (n, points)
    weights: Tensor,  # (n, points)
    low: Tensor,  # (n,)
    high: Tensor,  # (n,)
    k: int,
    epsilon: float,
    with_gradient: bool,
) -> tuple[Tensor, Tensor | float, Tensor | float]:
    """∫ P(N(t) ≥ k) dt over the bracket, on top of its low end, and the probability that a class is the k-th.

    The likely classes are multiplied out. The others enter by the power sums of their odds, to which a point contributes as
    many classes as its weight; they get the probability of a class that has the score of the point.
    """
    n = len(likely)
    nodes, widths = _gauss_legendre(PRECISIONS[likely.dtype].nodes, likely.dtype, likely.device)
    half = (high - low).unsqueeze(-1) / 2  # (n, 1)
    t = low.unsqueeze(-1) + half * (1 + nodes)  # (n, nodes)
    dt = half * widths

    below = ((t - likely.T.unsqueeze(-1)) / epsilon).flatten(
        1
    )  # (classes, n · nodes): how far a class is below a level
    counts = CountPolynomial(_normal_tail(below.clone()), _normal_tail(-below), degree=k)
    points_below = (
        t.unsqueeze(-1) - points.unsqueeze(1)
    ) / epsilon  # (n, nodes, points), in float64 like all that is small
    p = _normal_tail(points_below.clone())
    odds = p / (1 - p)
    weights = weights.unsqueeze(1)
    none = (weights * torch.log1p(-p)).sum(-1).exp().flatten()  # P(none of the others is above)
    of_others = counts_by_odds(odds, weights, k) * none  # (k + 1, n · nodes): P(c of the others are above)
    of_count = product(counts.coefficients.double(), of_others)  # P(N(t) = c)
    at_least_k = 1 - of_count[:k].sum(0).view(n, -1)
    values = low + (at_least_k * dt).sum(-1).to(low.dtype)
    if not with_gradient:
        return values, 0.0, 0.0

    # density of «class j is the k-th largest, at t»: that of its level times P(k − 1 of the other classes are above t)
    held = _density_(below, epsilon).mul_(counts.derivative(of_others.flip(0).to(below.dtype)))
    of_likely = torch.einsum("lnt,nt->nl", held.view(-1, *t.shape), dt)
    slopes = alternating(of_count[:k].flip(0))  # of P(N(t) = c) without a class, a series in its odds
    series = polynomial_(slopes, odds.flatten(0, 1)).view_as(p)
    held = series.clamp_(min=0).mul_(_density_(points_below, epsilon)).div_(p)
    return values, of_likely, torch.einsum("ntq,nt->nq", held, dt.double())


def _density_(below: Tensor, epsilon: float) -> Tensor:
    """The density of the noise so many ε away, in place."""
    return below.square_().div_(-2).clamp_(min=-FAR * FAR / 2).exp_().div_(epsilon * math.sqrt(2 * math.pi))


def _bracket(scores: Tensor, k: int, epsilon: float, tail: float) -> tuple[Tensor, Tensor]:
    r"""Levels below and above which P(N(t) ≥ k) is 1 and 0 up to `tail`, by bisection. The k-th largest score is 0.

    N(t) is a sum of independent events with mean μ and variance v, so by Bennett's inequality it is x above or below its
    mean with probability at most $\exp(x - (v + x) \log(1 + x/v))$.
    """
    if scores.shape[-1] > 2 * N_BINS:
        places, counts = _histogram(scores, epsilon)
    else:
        places, counts = scores.unsqueeze(-2), scores.new_ones(())
    ends = (len(scores), 2)  # one column per end
    low, high = scores.new_full(ends, -8 * epsilon), scores.new_full(ends, 9 * epsilon)
    is_low_end = torch.arange(2, device=scores.device) == 0
    for _ in range(8):
        middle = (low + high) / 2
        p = _normal_tail((middle.unsqueeze(-1) - places).div_(epsilon))
        mean = (counts * p).sum(-1)
        variance = (mean - (counts * p.square_()).sum(-1)).clamp(min=1e-30)
        excess = torch.where(is_low_end, mean - (k - 1), k - mean).clamp(min=0)  # N must miss its mean by so much
        settled = excess - (variance + excess) * torch.log1p(excess / variance) < math.log(tail)
        upwards = settled == is_low_end  # both ends move towards the fall while all beyond them is settled
        low, high = middle.where(upwards, low), high.where(upwards, middle)
    return low[:, 0], high[:, 1]


def _histogram(scores: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
    """The scores in bins of width ε / BINS: the lower and the upper edges (2, bins), and the counts (n, 1, bins).

    A class at the lower edge of its bin is above a level no more likely than it is, at the upper edge no less.
    """
    bins = ((scores / epsilon - FIRST) * BINS).nan_to_num_(0).clamp_(0, N_BINS - 1).long()
    counts = scores.new_zeros(len(scores), N_BINS).scatter_add_(-1, bins, torch.ones_like(scores))
    lower = epsilon * (FIRST + torch.arange(N_BINS, dtype=scores.dtype, device=scores.device) / BINS)
    return torch.stack([lower, lower + epsilon / BINS]), counts.unsqueeze(1)


def _normal_tail(z: Tensor) -> Tensor:
    """P(Z > z), in place. Beyond FAR it no longer shrinks: numbers that underflow make a processor crawl."""
    return z.clamp_(-FAR, FAR).mul_(math.sqrt(0.5)).erfc_().mul_(0.5)


@lru_cache
def _gauss_legendre(n: int, dtype: torch.dtype, device: torch.device) -> tuple[Tensor, Tensor]:
    with torch.inference_mode(False):  # the cached tensors must also serve training
        nodes, weights = (torch.from_numpy(each).to(device, dtype) for each in np.polynomial.legendre.leggauss(n))
        return nodes, weights
