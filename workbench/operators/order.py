"""Order statistics of the last axis: the k-th largest score, the sum of the k largest, and their smoothing by noise.

Which class holds the k-th place is found on detached scores; the value is then gathered from the scores themselves. So
the (sub)gradient follows by itself, and all that is kept for it is the index of a class.
"""

from __future__ import annotations

import torch
from torch import Tensor


def kth_largest(scores: Tensor, k: int) -> Tensor:
    r"""The k-th largest score of each row, $\mathrm{top}_k(s)$. Its gradient is 1 at the class that holds it.

    Of tied classes the one with the lower index counts as larger. Paper: Garcin et al. 2022, Eq. 1.

    >>> scores = torch.tensor([2.4, 2.6, 2.3, 0.5], requires_grad=True)
    >>> value = kth_largest(scores, 2)
    >>> value.backward()
    >>> round(value.item(), 4), scores.grad.tolist()
    (2.4, [1.0, 0.0, 0.0, 0.0])
    """
    _check(scores, k, least=1)
    _, tied, place = _around_kth_place(scores.detach(), k)
    holder = (tied & (place == k)).byte().argmax(-1, keepdim=True)
    return scores.gather(-1, holder).squeeze(-1)


def top_sum(scores: Tensor, k: int) -> Tensor:
    r"""The sum of the k largest scores, $\mathrm{top}\Sigma_k(s)$. Its gradient is 1 at those k classes.

    Of tied classes the one with the lower index counts as larger; k = 0 gives 0. Paper: Garcin et al. 2022, Eq. 2.

    >>> scores = torch.tensor([2.0, 2.0, 2.0, 3.0], requires_grad=True)
    >>> top_sum(scores, 3).backward()
    >>> scores.grad.tolist()
    [1.0, 1.0, 0.0, 1.0]
    """
    _check(scores, k, least=0)
    if k == 0:
        return scores.new_zeros(scores.shape[:-1])
    above, tied, place = _around_kth_place(scores.detach(), k)
    return scores.where(above | (tied & (place <= k)), 0).sum(-1)


def noised_kth_largest(
    scores: Tensor,  # (..., L)
    k: int,
    epsilon: float,
    n_samples: int = 5,
    noise: Tensor | None = None,  # (..., n_samples, L)
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""The k-th largest score under Gaussian noise, averaged over a few draws: a smooth stand-in for `kth_largest`.

    $$\widehat{\mathrm{top}}_{k,\varepsilon,M}(s) = \frac1M \sum_{m=1}^{M} \mathrm{top}_k(s + \varepsilon Z_m),
      \qquad Z_m \sim \mathcal N(0, I_L)$$

    epsilon is the scale of the noise and M = n_samples the number of draws. The gradient is path-wise: each draw gives
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
    _check(scores, k, least=1)
    if not epsilon >= 0:
        raise ValueError(f"epsilon = {epsilon} is the scale of the noise; give a number ≥ 0")
    if epsilon == 0:
        return kth_largest(scores, k)
    if noise is None:
        noise = _fresh_noise(scores, n_samples, generator)
    elif noise.ndim != scores.ndim + 1 or noise.shape[-1] != scores.shape[-1] or noise.shape[:-2] != scores.shape[:-1]:
        expected = (*scores.shape[:-1], "n_samples", scores.shape[-1])
        raise ValueError(
            f"noise has shape {tuple(noise.shape)}; give ({', '.join(map(str, expected))}): draws, then classes"
        )
    with torch.no_grad():
        noised = torch.add(scores.unsqueeze(-2), noise.to(scores), alpha=epsilon)  # (..., n_samples, L)
        holders = noised.topk(k).indices[..., -1]  # (..., n_samples)
        drawn = noise.to(scores).gather(-1, holders.unsqueeze(-1)).squeeze(-1)  # the noise each holder had
    return (scores.gather(-1, holders) + epsilon * drawn).mean(-1)


def _around_kth_place(scores: Tensor, k: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which classes are above the k-th largest score, which are tied with it, and the place of each of the tied."""
    value = scores.topk(k).values[..., -1:]
    above, tied = scores > value, scores == value
    place = above.sum(-1, keepdim=True) + tied.cumsum(-1, dtype=torch.int32)
    return above, tied, place


def _fresh_noise(scores: Tensor, n_samples: int, generator: torch.Generator | None) -> Tensor:
    if generator is None:
        generator = torch.Generator(scores.device)
        generator.seed()
    shape = (*scores.shape[:-1], n_samples, scores.shape[-1])
    return torch.randn(shape, generator=generator, dtype=scores.dtype, device=scores.device)


def _check(scores: Tensor, k: int, least: int) -> None:
    if not isinstance(scores, Tensor) or not scores.is_floating_point() or scores.ndim == 0:
        raise ValueError("scores must be a floating-point tensor with the classes on its last axis")
    n_classes = scores.shape[-1]
    if isinstance(k, bool) or not isinstance(k, int) or not least <= k <= n_classes:
        raise ValueError(f"k = {k!r} with {n_classes} classes; give a whole number from {least} to {n_classes}")
