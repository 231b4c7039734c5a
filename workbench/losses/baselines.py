"""The losses everything is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from workbench.losses.base import Loss


@dataclass(frozen=True)
class CrossEntropy(Loss):
    r"""Minus the log-probability that softmax gives to the label.

    $$\ell(s, y) = -\log \frac{e^{s_y}}{\sum_j e^{s_j}}$$

    s are the scores of one row and y its label. Minimising it estimates P(y|x), so thresholding its softmax is the
    plain way to average-K sets. With (n, L) labels each row's labels share the weight equally; a row without a label
    costs nothing.

    >>> import torch, workbench as wb
    >>> wb.losses.CrossEntropy()(torch.zeros(1, 4), torch.tensor([2])).item() == torch.log(torch.tensor(4.0)).item()
    True

    Paper: Garcin et al. 2023, Eq. 3.
    """

    title = "Cross-entropy"
    formula = r"-\log \mathrm{softmax}_y(s)"
    paper = "Garcin et al. 2023"
    equation = "Eq. 3"
    convex = True
    smooth = True
    calibrated = True
    also_many_labels = True

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        if labels.ndim == 1:
            return F.cross_entropy(scores, labels, reduction="none")
        log_probabilities = scores.log_softmax(-1)  # (n, L)
        weights = labels / labels.sum(-1, keepdim=True).clamp(min=1)  # each row sums to 1, or to 0
        return -log_probabilities.where(labels, 0.0).mul(weights).sum(-1)
