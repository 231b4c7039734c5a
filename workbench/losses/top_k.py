"""Losses for top-K sets: hinges on the K-th largest score."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.operators import kth_largest


def set_size(default: int = 5) -> int:
    """The knob K of every top-K loss."""
    return knob(
        default, low=1, high=20, minimum=1, maximum=float("inf"), symbol="K", meaning="number of classes in a set"
    )


def score_of_label(scores: Tensor, labels: Tensor) -> Tensor:
    """s_y: the score each row gives to its own label."""
    return scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1)


@dataclass(frozen=True)
class CalibratedTopKHinge(Loss):
    r"""One plus the (K+1)-th largest score minus the score of the label, and never below zero.

    $$\ell(s, y) = \big(1 + \mathrm{top}_{K+1}(s) - s_y\big)_+$$

    s are the scores of one row and y its label. Zero when the label beats the best class left out of the top-K set by a
    margin of 1. Keeping y among the candidates for the (K+1)-th place is what makes it top-K calibrated, unlike
    `TopKHinge`; its gradient has two non-zero entries, so deep networks hardly learn from it (smooth it: `NoisedTopK`).

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
        return (1 + kth_largest(scores, self.K + 1) - score_of_label(scores, labels)).relu()
