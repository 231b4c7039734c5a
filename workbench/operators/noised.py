"""The k-th largest score under Gaussian noise, by sampling.

Who holds the k-th place of each draw is found without a gradient; the value is then gathered from the scores. So the
path-wise gradient follows by itself, and all that is kept for it is one class per draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from numbers import Integral
from statistics import NormalDist

import numpy as np
import torch
from torch import Tensor

from workbench.operators.order import (
    BLOCK,
    check_noise_scale,
    check_order,
    in_plain_memory,
    kth_largest,
    kth_place,
    largest,
)

NUMBERS_AT_ONCE = 2**21  # of noise, that are drawn together even where there are fewer scores
ENOUGH_CONTENDERS = 300  # classes whose noise costs as much as the arrivals of a row
MOST_EXPECTED = 50  # arrivals above the usual level of a row, from which on the other ways cost less


def noised_kth_largest(
    scores: Tensor,  # (..., L)
    k: int,
    epsilon: float,
    n_samples: int = 5,
    noise: Tensor | None = None,  # (..., n_samples, L)
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""The k-th largest score under Gaussian noise, averaged over a few draws: a smooth stand-in for `kth_largest`.

    Args:
        scores: (…, L), any number of leading dimensions.
        k: Which place, counted from 1.
        epsilon: ε, the scale of the noise.
        n_samples: M, the number of draws.

    $$\widehat{\mathrm{top}}_{k,\varepsilon,M}(s) = \frac1M \sum_{m=1}^{M} \mathrm{top}_k(s + \varepsilon Z_m),
      \qquad Z_m \sim \mathcal N(0, I_L)$$

    The gradient is path-wise: each draw gives
    1/M to the class that holds its k-th place, so classes whose score is near the k-th largest share it. Give `noise`
    to fix the draws (their number is then read off it), or a `generator`; with neither, fresh noise is drawn and the
    global random state is left alone. epsilon = 0 is `kth_largest`.

    >>> scores = torch.tensor([2.4, 2.6, 2.3, 0.5], requires_grad=True)
    >>> noise = torch.tensor([[0.2, -0.1, 0.1, 0.3], [0.1, 0.1, -0.1, 0.1], [-0.1, -0.1, 0.1, -0.1]])
    >>> value = noised_kth_largest(scores, 2, epsilon=1.0, noise=noise)
    >>> value.backward()
    >>> round(value.item(), 2), [round(weight, 2) for weight in scores.grad.tolist()]
    (2.47, [0.33, 0.33, 0.33, 0.0])

    Paper: Garcin et al. 2022, Eq. 11 and 12.
    """
    check_order(scores, k, least=1)
    if epsilon == 0:
        return kth_largest(scores, k)
    holders, drawn = noised_holders(scores, k, epsilon, n_samples, noise, generator)
    return (scores.gather(-1, holders) + epsilon * drawn).mean(-1)


@torch.no_grad()
def noised_holders(
    scores: Tensor, k: int, epsilon: float, n_samples: int, noise: Tensor | None, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """The class that holds the k-th place of each draw and the noise it had, (..., n_samples) each."""
    check_noise_scale(epsilon)
    if noise is None:
        if not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples = {n_samples}; give a whole number of draws, at least 1")
        return _drawn_holders(scores.detach(), k, epsilon, n_samples, generator)
    holders, drawn, _ = _holders(scores.detach(), _checked_noise(scores, noise), k, epsilon)
    return holders, drawn


def _holders(scores: Tensor, noise: Tensor, k: int, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """The class that holds the k-th place of each draw, the noise it had and its noised score: (..., n_samples) each."""
    noised = torch.add(scores.unsqueeze(-2), noise, alpha=epsilon)  # (..., n_samples, L)
    value, holder = kth_place(noised, k)
    drawn = noise.gather(-1, holder.unsqueeze(-1)).squeeze(-1)
    return holder, drawn.where(~value.isnan(), math.nan), value  # no class holds a place among scores of NaN


def _drawn_holders(
    scores: Tensor, k: int, epsilon: float, n_samples: int, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """The holders and their noise for fresh noise, drawn only where it can matter.

    The m best classes of a row are contenders and get noise. The k-th largest of them is a bar that the k-th place cannot
    fall below. Of all the noise of the rest only the largest is drawn at first: a row is settled if that would not lift
    the best of the rest over the bar. In the few rows that are not settled the rest gets its noise too, below that
    largest one. So the law is that of noise on every class.
    """
    if generator is None:
        generator = torch.Generator(scores.device)
        generator.seed()
    normal = partial(torch.randn, generator=generator, dtype=scores.dtype, device=scores.device)
    n_classes = scores.shape[-1]
    if not in_plain_memory(scores):
        return _holders_of_noise_on_all(scores, k, epsilon, n_samples, normal)
    m = _number_of_contenders(scores, k, epsilon, n_samples)
    if m > ENOUGH_CONTENDERS and (found := _holders_by_arrival(scores, k, epsilon, n_samples, generator)):
        return found
    if m > 0.7 * n_classes:
        return _holders_of_noise_on_all(scores, k, epsilon, n_samples, normal)

    contenders = largest(scores, m)
    contending = scores.gather(-1, contenders)  # (..., m)
    noise = normal((*scores.shape[:-1], n_samples, m))
    places, drawn, bar = _holders(contending, noise, k, epsilon)
    holders = contenders.gather(-1, places)
    n_of_rest = n_samples * (n_classes - m)
    largest_of_rest = _largest_of_normals(n_of_rest, bar[..., 0], generator)
    unsettled = contending.amin(-1) + epsilon * largest_of_rest > bar.amin(-1)
    if unsettled.any():
        of_rest = _normals_below(largest_of_rest[unsettled], n_of_rest, generator)
        all_noise = torch.cat([of_rest.unflatten(-1, (n_samples, -1)), noise[unsettled]], -1)
        rest = torch.ones_like(scores[unsettled], dtype=torch.bool).scatter_(-1, contenders[unsettled], False)
        classes = torch.cat([rest.nonzero()[:, -1].view(len(rest), -1), contenders[unsettled]], -1)
        places, drawn[unsettled], _ = _holders(scores[unsettled].gather(-1, classes), all_noise, k, epsilon)
        holders[unsettled] = classes.gather(-1, places)
    return holders, drawn


def _holders_of_noise_on_all(
    scores: Tensor, k: int, epsilon: float, n_samples: int, normal: Callable[..., Tensor]
) -> tuple[Tensor, Tensor]:
    """The holders and their noise for fresh noise on every class, drawn for some rows at a time.

    As many rows as make about one number for each score, so that however many draws there are, nothing is made that is
    much larger than the scores. Sixteen or a multiple of it: torch draws normals by sixteen, so the bits stay the same.
    """
    n_classes = scores.shape[-1]
    rows = scores.reshape(-1, n_classes)
    at_once = max(rows.numel(), NUMBERS_AT_ONCE) // (n_samples * n_classes)
    parts = [
        _holders(some, normal((len(some), n_samples, n_classes)), k, epsilon)[:2]
        for some in rows.split(max(16, at_once // 16 * 16))
    ]
    holders, drawn = (torch.cat(part).view(*scores.shape[:-1], n_samples) for part in zip(*parts, strict=True))
    return holders, drawn


def _holders_by_arrival(
    scores: Tensor, k: int, epsilon: float, n_samples: int, generator: torch.Generator
) -> tuple[Tensor, Tensor] | None:
    r"""The holders and their noise where noise reaches all classes; None where a score stands out, so that this costs more.

    While a level v falls, the noised score of class j comes up at the rate $r(x) / \varepsilon$ with $r = \varphi / \Phi$
    and $x = (v - s_j) / \varepsilon$. The logarithm of r is concave, so each of its tangents is a bound:
    $r(x) \le r(x_0)\, e^{-g (x - x_0)}$ with $g = x_0 + r(x_0)$. What comes up at the rate of the bound is drawn in falling
    order: the levels of a Gumbel process, each with a class from $\mathrm{softmax}(g s / \varepsilon)$, and kept with the
    probability rate over bound. The first that is kept of a class is its noised score, so the k-th class to come up holds
    the k-th place. The law is that of noise on every class, whatever $x_0$ is: only the cost depends on it.
    """
    rows = scores.reshape(-1, scores.shape[-1])
    some = rows[:, ::BLOCK].contiguous()
    mean = some.mean(-1, keepdim=True)
    spread = ((some - mean).square().mean(-1, keepdim=True) + epsilon**2).sqrt()
    quantile = NormalDist().inv_cdf(1 - k / rows.shape[-1])
    usual = mean + spread * quantile  # about where the k-th place is
    if not ((some > usual - 4 * epsilon).sum(-1) >= k).all():  # too few classes may ever come up there
        return None
    x0 = quantile * epsilon / float(spread.mean())
    r0 = math.exp(-(x0**2) / 2) / math.erfc(-x0 / math.sqrt(2)) / math.sqrt(math.pi / 2)
    g = x0 + r0
    weights = torch.sub(rows, usual).mul_(g / epsilon).exp_().cumsum(-1, dtype=torch.float64)
    expected = weights[:, -1] * (r0 * math.exp(g * x0) / g)  # arrivals above the usual level, by the bound
    if not (float(expected.mean()) < MOST_EXPECTED and float(expected.amax()) < 100 * MOST_EXPECTED):
        return None
    n = int(expected.mean() + 1.5 * expected.mean().sqrt()) + 2
    numbers = np.random.Generator(np.random.SFC64(int(torch.randint(2**63 - 1, (), generator=generator))))

    first = (usual[:, 0] + expected.log() * (epsilon / g)).numpy()
    flat, dtype = rows.numpy().ravel(), rows.numpy().dtype
    held, noise = np.empty(len(rows) * n_samples, np.int64), np.empty(len(rows) * n_samples, dtype)
    line = np.arange(len(held))  # one for each draw of a row; those that are not settled yet
    passed, levels, cells = (
        np.zeros((1, len(line))),
        np.empty((0, len(line)), dtype),
        np.empty((0, len(line)), np.int64),
    )
    while len(line):
        row = line // n_samples
        passed = passed[-1] + torch.from_numpy(numbers.standard_exponential((n, len(line)))).cumsum(0).numpy()
        level = (first[row] - epsilon / g * np.log(passed)).astype(dtype)
        cell = _cells(weights.numpy(), row, numbers.random((n, len(line))))
        x = (level - flat.take(cell)) / epsilon
        tail = torch.erfc(torch.from_numpy(x * -math.sqrt(0.5))).numpy() * math.sqrt(math.pi / 2)
        kept = numbers.random((n, len(line))) * r0 * tail < np.exp(g * (x - x0) - x * x / 2)
        levels, cells = np.concatenate([levels, level]), np.concatenate([cells, np.where(kept, cell, -1)])
        new = cells >= 0
        for distance in range(1, len(cells)):
            new[distance:] &= cells[distance:] != cells[:-distance]
        count = new.cumsum(0)
        place = (count == k).argmax(0), np.arange(len(line))
        held[line], noise[line] = cells[place], (levels[place] - flat.take(cells[place])) / epsilon
        n, few = 2 * n, count[-1] < k
        line, passed, levels, cells = line[few], passed[:, few], levels[:, few], cells[:, few]
    shape = *scores.shape[:-1], n_samples
    return torch.from_numpy(held % rows.shape[-1]).view(shape), torch.from_numpy(noise).view(shape)


def _cells(weights: np.ndarray, row: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Positions among all scores: of the class of each row up to which this share of its weights lies, by bisection."""
    n_classes = weights.shape[-1]
    below, cells = share * weights[row, -1], np.tile(row * n_classes, (len(share), 1))
    while n_classes > 1:
        half = n_classes // 2
        cells += half * (weights.take(cells + (half - 1)) <= below)
        n_classes -= half
    return cells


def _number_of_contenders(scores: Tensor, k: int, epsilon: float, n_samples: int) -> int:
    """How many of the best classes are likely to settle a row, judged from a few rows. Only the cost depends on it."""
    n_classes = scores.shape[-1]
    some = scores.numpy().reshape(-1, n_classes)[:4]
    parted_at_kth = some.copy()
    parted_at_kth.partition(n_classes - k)
    reach = epsilon * math.sqrt(2 * math.log(n_samples * n_classes))  # n normals seldom go beyond √(2 log n)
    within_reach = (some > parted_at_kth[:, n_classes - k, None] - reach).sum() / max(1, len(some))
    others = min(6 * within_reach**0.5, n_classes / 6)  # that other rows may have; of few classes most are drawn anyway
    return int(within_reach + others) + k + 4


def _largest_of_normals(n: int, like: Tensor, generator: torch.Generator) -> Tensor:
    """The largest of n standard normals, as many times: P(max ≤ z) = Φ(z)^n = e^{−E}, with E exponential."""
    E = torch.empty_like(like).exponential_(generator=generator)
    largest: Tensor = torch.special.ndtri(E.div_(-n).expm1_().neg_()).neg_()
    return largest


def _normals_below(largest: Tensor, n: int, generator: torch.Generator) -> Tensor:
    """(rows, n): standard normals of which one, at a random place, is the given largest and the others are below it."""
    ceiling = largest.unsqueeze(-1)
    values = ceiling.new_empty(len(largest), n).normal_(generator=generator)
    while (above := values > ceiling).any():
        values[above] = values[above].normal_(generator=generator)
    place = torch.randint(n, (len(largest), 1), generator=generator, device=values.device)
    return values.scatter_(-1, place, ceiling)


def _checked_noise(scores: Tensor, noise: Tensor) -> Tensor:
    *rows, n_classes = scores.shape
    if (
        noise.ndim != scores.ndim + 1
        or [*noise.shape[:-2]] != rows
        or noise.shape[-1] != n_classes
        or noise.shape[-2] == 0
    ):
        expected = ", ".join(map(str, [*rows, "n_samples", n_classes]))
        raise ValueError(
            f"noise has shape {tuple(noise.shape)}; give ({expected}): one standard normal per draw and class"
        )
    return noise.to(scores)
