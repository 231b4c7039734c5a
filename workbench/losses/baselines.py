"""The losses everything is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.margins import UnevenMargins, cosine_scale, largest_margin
from workbench.losses.top_k import score_of_label, set_size
from workbench.operators import kth_largest


@dataclass(frozen=True)
class TopKError(Loss):
    r"""1 when the label is not among the K largest scores, 0 when it is: what every top-K loss stands in for.

    $$\ell(s, y) = \mathbb 1\{\mathrm{top}_K(s) > s_y\}$$

    s are the scores of one row and y its label. Its gradient is 0 wherever it exists, so nothing can be trained with it.
    Scores tied with the K-th largest all count as hits; that is why it is not calibrated: equal scores cost nothing.

    >>> import torch
    >>> TopKError(K=2)(torch.tensor([[2.4, 2.6, 2.3, 0.5]]).expand(4, 4), torch.arange(4))
    tensor([0., 0., 1., 1.])

    Paper: Garcin et al. 2022, Eq. 3.
    """

    title = "Top-K error"
    formula = r"\mathbb 1\{\mathrm{top}_K(s) > s_y\}"
    paper = "Garcin et al. 2022"
    equation = "Eq. 3"
    convex = False
    smooth = False
    calibrated = False
    trains = False
    K: int = set_size()

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        deficit = kth_largest(scores, self.K) - score_of_label(scores, labels)
        return deficit.sign().relu().where(~deficit.isnan(), math.nan)


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
    proper = True
    also_many_labels = True

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        if labels.ndim == 1:
            return F.cross_entropy(scores, labels, reduction="none")
        log_probabilities = scores.log_softmax(-1)  # (n, L)
        weights = labels / labels.sum(-1, keepdim=True, dtype=scores.dtype).clamp(min=1)  # each row sums to 1, or to 0
        return -log_probabilities.where(labels, 0.0).mul(weights).sum(-1)


@dataclass(frozen=True)
class Focal(Loss):
    r"""Cross-entropy, damped for rows that are classified well already.

    $$\ell(s, y) = -(1 - p_y)^\gamma \log p_y, \qquad p = \mathrm{softmax}(s)$$

    p_y is the probability of the label; the larger γ (gamma), the more the loss looks at hard rows. γ = 0 is
    cross-entropy. Minimising it ranks classes rightly but does not estimate P(y|x): its softmax is less sure than that.

    >>> import torch
    >>> Focal(gamma=2.0)(torch.zeros(1, 2), torch.tensor([0]))  # ¼ log 2
    tensor([0.1733])

    Paper: Garcin et al. 2022, Table 1 (after Lin et al. 2017). The formula printed there is garbled; this is Lin's.
    """

    title = "Focal"
    formula = r"-(1 - p_y)^\gamma \log p_y"
    paper = "Garcin et al. 2022"
    equation = "Table 1"
    smooth = True
    calibrated = True
    gamma: float = knob(2.0, low=0.0, high=5.0, symbol="γ", meaning="exponent that damps rows classified well")

    @property
    def convex(self) -> bool:
        return self.gamma == 0

    @property
    def proper(self) -> bool:
        """Only cross-entropy is: the damping makes it pay to be less sure than one is."""
        return self.gamma == 0

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        # log(1 − p_y) straight from the other scores: 1 − p_y itself would round to 0 for a row that is sure.
        # Not −inf, because all others may be masked by that, and then 1 − p_y is 0.
        others = scores.scatter(-1, labels.unsqueeze(-1), torch.finfo(scores.dtype).min)
        log_rest = others.logsumexp(-1) - scores.logsumexp(-1)
        return (self.gamma * log_rest).exp() * F.cross_entropy(scores, labels, reduction="none")


@dataclass(frozen=True, repr=False)
class LDAM(UnevenMargins):
    r"""Cross-entropy after a margin is taken off the score of the label, larger for rarer classes.

    - `class_counts`: n_y of each class; a run fills them in from its training rows.

    $$\ell(s, y) = -\log \frac{e^{\sigma (s_y - m_y)}}{e^{\sigma (s_y - m_y)} + \sum_{j \ne y} e^{\sigma s_j}},
      \qquad m_y = \frac{C}{n_y^{1/4}}$$

    s are cosines, σ is `scale`, n_y the number of training images of class y, and C makes the largest margin
    `max_margin`. A rare class must win by more, so that it still wins on photographs never seen. Uneven margins pull the
    scores towards rare classes: it is not top-K calibrated, on purpose.

    >>> import torch
    >>> loss = LDAM(max_margin=0.5, scale=1.0).for_classes([16, 1])
    >>> loss.margins(torch.zeros(1, 2))
    tensor([0.2500, 0.5000])

    Paper: Garcin et al. 2022, Table 1 (after Cao et al. 2019).
    """

    title = "LDAM"
    formula = r"-\log \mathrm{softmax}_y\big(\sigma (s - m_y \delta_y)\big)"
    paper = "Garcin et al. 2022"
    equation = "Table 1"
    convex = True
    smooth = True
    max_margin: float = largest_margin()
    scale: float = cosine_scale(30.0)
    class_counts: tuple[int, ...] | None = None

    @property
    def proper(self) -> bool:
        """Without margins it is cross-entropy; a margin makes it pay to be surer than one is."""
        return self.max_margin == 0

    @property
    def calibrated(self) -> bool:
        return self.even

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        lowered = score_of_label(scores, labels) - self.margins(scores)[labels]
        shifted = scores.scatter(-1, labels.unsqueeze(-1), lowered.unsqueeze(-1))
        return F.cross_entropy(self.scale * shifted, labels, reduction="none")
