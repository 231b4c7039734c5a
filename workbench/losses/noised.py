"""The calibrated top-K hinge, smoothed by noise on the scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.margins import UnevenMargins, cosine_scale, largest_margin
from workbench.losses.top_k import kth_above_label, score_of_label, set_size
from workbench.schedules import anneal

if TYPE_CHECKING:
    import torch
    from torch import Tensor


# The default of ε, chosen in docs/epsilon.md: with little noise from the start a network may stay at the constant answer.
ANNEALED: float = anneal(3.0, 0.2)


def noise_scale(default: float = ANNEALED) -> float:
    """The knob ε of every noised loss."""
    return knob(
        default,
        low=0.001,
        high=100.0,
        minimum=0.0,
        scale="log",
        symbol="ε",
        meaning="scale of the noise that smooths top-K",
    )


def number_of_draws(default: int = 5) -> int:
    """The knob of losses that sample their noise."""
    return knob(
        default,
        low=1,
        high=100,
        minimum=1,
        maximum=float("inf"),
        scale="log",
        symbol="M",
        meaning="number of noise draws",
    )


def largest_calibrated_epsilon(K: int) -> float:
    r"""The ε from which the noised loss is no longer top-K calibrated, $1 / \mathbb E[\max(Z_1, …, Z_{K+1})]$.

    From there on K + 1 tied scores far above the rest cost nothing, whichever of them is the label.

    >>> [round(largest_calibrated_epsilon(K), 2) for K in (1, 2, 3, 5)]
    [1.77, 1.18, 0.97, 0.79]
    """
    normal, n = NormalDist(), K + 1
    steps = 4000  # E[max] = ∫ Φ^{-1}(u^{1/n}) du, by the midpoint rule
    expected_max = sum(normal.inv_cdf(((i + 0.5) / steps) ** (1 / n)) for i in range(steps)) / steps
    return 1 / expected_max


def noised_deficit(
    scores: Tensor,
    labels: Tensor,
    loss: NoisedTopK | NoisedTopKImbalanced,
    noise: Tensor | None,
    generator: torch.Generator | None,
) -> Tensor:
    """Distance of the label below the noised (K+1)-th largest score.

    The same as `noised_kth_largest` minus the score of the label, but all scores are gathered at once, so that only one
    gradient of the size of the scores is made.
    """
    import torch

    from workbench.operators.noised import noised_holders

    if loss.epsilon == 0:
        return kth_above_label(scores, labels, scores.detach(), loss.K + 1)
    holders, drawn = noised_holders(scores, loss.K + 1, loss.epsilon, loss.n_samples, noise, generator)
    gathered = scores.gather(-1, torch.cat([holders, labels.unsqueeze(-1)], -1))  # (n, M + 1)
    weights = _mean_minus_last(holders.shape[-1], scores.dtype, scores.device)
    return torch.addmv(drawn.mean(-1), gathered, weights, beta=loss.epsilon)


@lru_cache(maxsize=16)
def _mean_minus_last(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """(n + 1,): weights that take the mean of n numbers and subtract one more."""
    import torch

    with torch.inference_mode(False):  # the cached tensors must also serve training
        return torch.tensor([1 / n] * n + [-1.0], dtype=dtype, device=device)


@dataclass(frozen=True)
class NoisedTopK(Loss):
    r"""The calibrated top-K hinge with its (K+1)-th largest score averaged over a few noise draws.

    $$\ell(s, y) = \big(1 + \widehat{\mathrm{top}}_{K+1,\varepsilon,M}(s) - s_y\big)_+, \qquad
      \widehat{\mathrm{top}}_{k,\varepsilon,M}(s) = \frac1M \sum_{m=1}^{M} \mathrm{top}_k(s + \varepsilon Z_m)$$

    s are the scores of one row, y its label, Z_m standard normal vectors, ε (epsilon) the scale of the noise and M
    (n_samples) the number of draws. The gradient pushes down the classes that hold place K + 1 in some draw, at most M of
    them: near that place, if ε is small. ε = 0 is `CalibratedTopKHinge`.

    Where K common classes sit more than a few ε above the rest, no draw reaches them: they are never pushed down, and a
    label that rises through the gap holds place K + 1 itself, so that its pull and its push cancel (`wb.figures.moat`). On a
    long tail a network then stays at the constant answer, however many draws there are. Much noise first and little at the
    end crosses the gap, so that is the default: `epsilon=wb.schedules.anneal(3, 0.2)` (docs/epsilon.md compares). Outside
    training a schedule is read at its end: values, facts and pictures are those of ε = 0.2, the paper's.

    `noise` is (n, M, L); without it (and without `generator`) fresh noise is drawn and the global random state is left
    alone.

    >>> import torch
    >>> loss, draws = NoisedTopK(K=1, epsilon=1.0), torch.Generator().manual_seed(0)
    >>> loss(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([0]), generator=draws).shape
    torch.Size([1])

    Paper: Garcin et al. 2022, Eq. 10. Equal to `BalNoisedTopK` of the authors' pytopk for the same noise.
    """

    title = "Noised top-K"
    formula = r"\big(1 + \widehat{\mathrm{top}}_{K+1,\varepsilon,M}(s) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Eq. 10"
    compiles = False
    convex = False
    smooth = False
    random = True
    K: int = set_size()
    epsilon: float = noise_scale()
    n_samples: int = number_of_draws()

    @property
    def calibrated(self) -> bool:
        return self.epsilon < largest_calibrated_epsilon(self.K)

    def values(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        noise: Tensor | None = None,
        generator: torch.Generator | None = None,
        **_: object,
    ) -> Tensor:
        return (1 + noised_deficit(scores, labels, self, noise, generator)).relu()

    def exact(self) -> ExactNoisedTopK:
        return ExactNoisedTopK(K=self.K, epsilon=self.epsilon)


@dataclass(frozen=True)
class ExactNoisedTopK(Loss):
    r"""The noised top-K loss with the expectation itself in place of a few draws.

    $$\ell(s, y) = \big(1 + \mathbb E[\mathrm{top}_{K+1}(s + \varepsilon Z)] - s_y\big)_+, \qquad Z \sim \mathcal N(0, I_L)$$

    s are the scores of one row, y its label and ε (epsilon) the scale of the noise. The gradient of the expectation is,
    for each class, the probability that it holds the (K+1)-th place. Nothing is random: level sets are free of noise and
    training repeats itself, at the price of some dozens of cross-entropies. The top-K operator is smooth; the hinge
    around it keeps its kink. ε = 0 is `CalibratedTopKHinge`. Calibrated as long as ε is below 1 / E[max of K + 1
    normals]: 1.77 for K = 1, 0.79 for K = 5.

    >>> import torch
    >>> ExactNoisedTopK(K=1, epsilon=1.0)(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([0]))
    tensor([1.0558])

    Paper: Garcin et al. 2022, Eq. 8, which they call a theoretical tool and sample.
    """

    title = "Exact noised top-K"
    formula = r"\big(1 + \mathrm{top}_{K+1,\varepsilon}(s) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Eq. 8"
    compiles = False
    convex = False
    smooth = False
    K: int = set_size()
    epsilon: float = noise_scale()

    @property
    def calibrated(self) -> bool:
        return self.epsilon < largest_calibrated_epsilon(self.K)

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        from workbench.operators import exact_noised_kth_largest

        deficit = exact_noised_kth_largest(scores, self.K + 1, self.epsilon) - score_of_label(scores, labels)
        return (1 + deficit).relu()


@dataclass(frozen=True, repr=False)
class NoisedTopKImbalanced(UnevenMargins):
    r"""The noised top-K loss with a margin per class, larger for rarer classes.

    - `class_counts`: n_y of each class; a run fills them in from its training rows.

    $$\ell(s, y) = \sigma \big(m_y + \widehat{\mathrm{top}}_{K+1,\varepsilon,M}(s) - s_y\big)_+, \qquad
      m_y = \frac{C}{n_y^{1/4}}$$

    s are cosines, σ is `scale`, n_y the number of training images of class y, and C makes the largest margin
    `max_margin`; the rest is as in `NoisedTopK`. Noise and margins live on the cosines, so ε (epsilon) is smaller here.

    >>> import torch
    >>> loss = NoisedTopKImbalanced(K=1, epsilon=0.0, max_margin=0.4, scale=10.0).for_classes([16, 1, 1])
    >>> loss(torch.zeros(2, 3), torch.tensor([0, 1]))
    tensor([2., 4.])

    Paper: Garcin et al. 2022, Eq. 13. Equal to `ImbalNoisedTopK` of the authors' pytopk for the same noise, but for a
    class without training images, which is refused here and gives NaN there.
    """

    title = "Noised top-K, imbalanced"
    formula = r"\sigma \big(m_y + \widehat{\mathrm{top}}_{K+1,\varepsilon,M}(s) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Eq. 13"
    compiles = False
    convex = False
    smooth = False
    random = True
    K: int = set_size()
    epsilon: float = noise_scale(0.01)
    n_samples: int = number_of_draws()
    max_margin: float = largest_margin()
    scale: float = cosine_scale(50.0)
    class_counts: tuple[int, ...] | None = None

    @property
    def calibrated(self) -> bool:
        return self.even and self.epsilon < self.max_margin * largest_calibrated_epsilon(self.K)

    def values(
        self,
        scores: Tensor,
        labels: Tensor,
        *,
        noise: Tensor | None = None,
        generator: torch.Generator | None = None,
        **_: object,
    ) -> Tensor:
        deficit = noised_deficit(scores, labels, self, noise, generator)
        return self.scale * (self.margins(scores)[labels] + deficit).relu()

    def exact(self) -> ExactNoisedTopKImbalanced:
        known = {name: value for name, value in vars(self).items() if name != "n_samples"}
        return ExactNoisedTopKImbalanced(**known)


@dataclass(frozen=True, repr=False)
class ExactNoisedTopKImbalanced(UnevenMargins):
    r"""The imbalanced noised loss with the expectation itself in place of a few draws: what its level sets show.

    $$\ell(s, y) = \sigma \big(m_y + \mathbb E[\mathrm{top}_{K+1}(s + \varepsilon Z)] - s_y\big)_+$$

    Symbols as in `NoisedTopKImbalanced`, of which it is `exact()`.

    >>> import torch
    >>> NoisedTopKImbalanced(K=1, epsilon=1.0, max_margin=1.0, scale=1.0).exact()(
    ...     torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([0]))
    tensor([1.0558])

    Paper: Garcin et al. 2022, Eq. 13 with the expectation of Eq. 8.
    """

    title = "Noised top-K, imbalanced"
    formula = r"\sigma \big(m_y + \mathrm{top}_{K+1,\varepsilon}(s) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Eq. 13"
    compiles = False
    convex = False
    smooth = False
    K: int = set_size()
    epsilon: float = noise_scale(0.01)
    max_margin: float = largest_margin()
    scale: float = cosine_scale(50.0)
    class_counts: tuple[int, ...] | None = None

    @property
    def calibrated(self) -> bool:
        return self.even and self.epsilon < self.max_margin * largest_calibrated_epsilon(self.K)

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        from workbench.operators import exact_noised_kth_largest

        contender = exact_noised_kth_largest(scores, self.K + 1, self.epsilon)
        return self.scale * (self.margins(scores)[labels] + contender - score_of_label(scores, labels)).relu()
