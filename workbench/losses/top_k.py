"""Hinges for top-K sets: the label should beat the K-th largest of the other scores by a margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.knobs import knob
from workbench.losses.base import Loss

if TYPE_CHECKING:
    from torch import Tensor


def set_size(default: int = 5) -> int:
    """The knob K of every top-K loss."""
    return knob(default, low=1, high=20, minimum=1, maximum=math.inf, symbol="K", meaning="number of classes in a set")


def score_of_label(scores: Tensor, labels: Tensor) -> Tensor:
    """s_y: the score each row gives to its own label."""
    return scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def without_label(scores: Tensor, labels: Tensor) -> Tensor:
    """s∖y: the scores with that of the label at −∞, where it counts for nothing."""
    return scores.scatter(-1, labels.unsqueeze(-1), -math.inf)


def kth_above_label(scores: Tensor, labels: Tensor, ranked: Tensor, k: int) -> Tensor:
    """The score of the class that is k-th in `ranked` minus that of the label; `ranked` are the scores, or without label.

    Both scores are gathered at once, so that only one gradient of the size of the scores is made.
    """
    import torch

    from workbench.operators.order import kth_place

    value, holder = kth_place(ranked, k)
    contender, own = scores.gather(-1, torch.stack([holder, labels], -1)).unbind(-1)
    return contender.where(value > -math.inf, value) - own  # fewer than k classes, or scores of NaN: no class is k-th


@dataclass(frozen=True)
class TopKHinge(Loss):
    r"""One plus the K-th largest score of the other classes minus the score of the label, and never below zero.

    $$\ell(s, y) = \big(1 + \mathrm{top}_K(s_{\setminus y}) - s_y\big)_+$$

    s are the scores of one row and y its label. Zero when the label is in the top-K set with a margin of 1. K = 1 is the
    multi-class hinge of Crammer and Singer, the only convex case. It is not top-K calibrated: when no class is likely
    enough, equal scores are optimal.

    >>> import torch
    >>> TopKHinge(K=2)(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([3]))
    tensor([2.9000])

    Paper: Garcin et al. 2022, Eq. 4 (after Lapin et al. 2015).
    """

    title = "Top-K hinge"
    formula = r"\big(1 + \mathrm{top}_K(s_{\setminus y}) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Eq. 4"
    smooth = False
    calibrated = False
    K: int = set_size()

    @property
    def convex(self) -> bool:
        return self.K == 1

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        return (1 + kth_above_label(scores, labels, without_label(scores.detach(), labels), self.K)).relu()


@dataclass(frozen=True)
class ConvexTopKHinge(Loss):
    r"""The mean of the K largest scores, with a margin for the wrong ones, minus the score of the label.

    $$\ell(s, y) = \Big(\frac1K \sum_{k \le K} \mathrm{top}_k(\mathbf 1 - \delta_y + s) - s_y\Big)_+$$

    s are the scores of one row, y its label, δ_y the vector with a one at y. A mean of the largest is convex where the
    K-th largest is not, so this is a convex upper bound of `TopKHinge`; it is not top-K calibrated either.

    >>> import torch
    >>> ConvexTopKHinge(K=2)(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([3]))
    tensor([3.])

    Paper: Garcin et al. 2022, Table 1 (after Lapin et al. 2015).
    """

    title = "Convex top-K hinge"
    formula = r"\big(\tfrac1K \mathrm{top}\Sigma_K(\mathbf 1 - \delta_y + s) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Table 1"
    convex = True
    smooth = False
    calibrated = False
    K: int = set_size()

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        import torch

        from workbench.operators.order import top_classes

        own = labels.unsqueeze(-1)
        raised = (scores.detach() + 1).scatter(-1, own, scores.detach().gather(-1, own))  # 1 − δ_y + s
        largest = top_classes(raised, self.K)
        gathered = scores.gather(-1, torch.cat([largest, own], -1))  # at once: one gradient of the size of the scores
        total = gathered[:, :-1].sum(-1) + (largest != own).sum(-1)
        return (total / self.K - gathered[:, -1]).relu()


@dataclass(frozen=True)
class CalibratedTopKHinge(Loss):
    r"""One plus the (K+1)-th largest score minus the score of the label, and never below zero.

    $$\ell(s, y) = \big(1 + \mathrm{top}_{K+1}(s) - s_y\big)_+$$

    s are the scores of one row and y its label. Zero when the label beats the best class left out of the top-K set by a
    margin of 1. Keeping y among the candidates for the (K+1)-th place is what makes it top-K calibrated, unlike
    `TopKHinge`, and what may keep a network from learning: a label at that place is pulled and pushed alike, and the K
    classes above it are never pushed down (`wb.figures.moat`). `NoisedTopK` smooths it.

    >>> import torch
    >>> CalibratedTopKHinge(K=2)(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([0]))
    tensor([0.9000])

    Paper: Garcin et al. 2022, Eq. 5 (after Yang and Koyejo 2020).
    """

    title = "Calibrated top-K hinge"
    formula = r"\big(1 + \mathrm{top}_{K+1}(s) - s_y\big)_+"
    paper = "Garcin et al. 2022"
    equation = "Eq. 5"
    convex = False
    smooth = False
    calibrated = True
    K: int = set_size()

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        return (1 + kth_above_label(scores, labels, scores.detach(), self.K + 1)).relu()


@dataclass(frozen=True)
class SmoothTopKHinge(Loss):
    r"""A top-K hinge whose two maxima over sets of K classes are smoothed by log-sums.

    $$\ell(s, y) = \tau \ln \sum_{|A| = K} \exp\Big(\frac{\mathbb 1\{y \notin A\}}{\tau} + \sum_{j \in A} \frac{s_j}{K\tau}\Big)
      - \tau \ln \sum_{|A| = K,\, A \ni y} \exp\Big(\sum_{j \in A} \frac{s_j}{K\tau}\Big)$$

    A runs over the sets of K classes, y is the label and τ (temperature) the strength of the smoothing. With
    $x_j = e^{s_j / K\tau}$ and $e_k$ the sum over all sets of k classes of the products of their x, this is

    $$\ell(s, y) = \tau \ln \Big(1 + e^{1/\tau} \frac{e_K(x_{\setminus y})}{x_y\, e_{K-1}(x_{\setminus y})}\Big),$$

    which is how it is computed: about log L steps, no subset is ever listed. Every class gets some gradient. As τ → 0 it
    tends to $(1 + (\mathrm{top}_K(s_{\setminus y}) - s_y)/K)_+$: a margin of 1 after the scores are divided by K. To see it
    with the same margin as the other hinges (Figure 1 of the paper does, most likely) give it K times the scores. It is
    convex for K = 1, and top-K calibrated for every τ > 0, although its limit is not.

    >>> import torch
    >>> loss = SmoothTopKHinge(K=2, temperature=0.01)  # nearly (1 + (2.4 − 0.5)/2)₊ = 1.95
    >>> loss(torch.tensor([[2.4, 2.6, 2.3, 0.5]]), torch.tensor([3]))
    tensor([1.9501])

    Paper: Garcin et al. 2022, Table 1 (after Berrada et al. 2018). The second sum printed there runs over all sets, which
    would cap the loss at 1; it must run over the sets that contain y. The authors' code has a wrong gradient at K = 1 and
    jumps to a hard hinge when classes are far apart; this one does neither.
    """

    title = "Smooth top-K hinge"
    formula = (
        r"\tau \ln\Big(1 + e^{1/\tau} \tfrac{e_K(x_{\setminus y})}{x_y e_{K-1}(x_{\setminus y})}\Big),"
        r"\ x = e^{s/K\tau}"
    )
    paper = "Garcin et al. 2022"
    equation = "Table 1"
    compiles = False
    smooth = True
    calibrated = True
    K: int = set_size()
    temperature: float = knob(
        0.1, low=0.01, high=10.0, scale="log", symbol="τ", meaning="temperature that smooths the maxima"
    )

    @property
    def convex(self) -> bool:
        return self.K == 1

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        import torch.nn.functional as F

        from workbench.operators.counting import log_symmetric_ratio

        divisor = self.K * self.temperature
        log_ratio = log_symmetric_ratio(without_label(scores / divisor, labels), self.K)
        log_ratio = log_ratio - score_of_label(scores, labels) / divisor
        return self.temperature * F.softplus(1 / self.temperature + log_ratio)
