"""The losses everything is compared with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.margins import ClassCounted, UnevenMargins, cosine_scale, largest_margin, rarest_over_count
from workbench.losses.top_k import score_of_label, set_size

if TYPE_CHECKING:
    from torch import Tensor


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
        from workbench.operators import kth_largest

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
        import torch.nn.functional as F

        if labels.ndim == 1:
            return F.cross_entropy(scores, labels, reduction="none")
        return -mean_where(labels, scores.log_softmax(-1))


def mean_where(counted: Tensor, values: Tensor) -> Tensor:
    """The mean of the counted values of each row, 0 where none is: (n,)."""
    return values.where(counted, 0.0).sum(-1) / counted.sum(-1, dtype=values.dtype).clamp(min=1)


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
        import torch
        import torch.nn.functional as F

        cross_entropy = F.cross_entropy(scores, labels, reduction="none")
        rest = -torch.expm1(-cross_entropy)  # 1 − p_y, to the last digit where p_y is nearly 1
        return rest.clamp(min=torch.finfo(scores.dtype).tiny) ** self.gamma * cross_entropy  # 0 ** γ has no slope


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
        import torch.nn.functional as F

        lowered = score_of_label(scores, labels) - self.margins(scores)[labels]
        shifted = scores.scatter(-1, labels.unsqueeze(-1), lowered.unsqueeze(-1))
        return F.cross_entropy(self.scale * shifted, labels, reduction="none")


@dataclass(frozen=True, repr=False)
class LogitAdjustment(ClassCounted):
    r"""Cross-entropy of scores to which the logarithm of the class shares is added: the training twin of `wb.PAS`.

    - `class_counts`: n_y of each class; a run fills them in from its training rows.

    $$\ell(s, y) = -\log \mathrm{softmax}_y(s + \tau \log \pi), \qquad \pi_y = \frac{n_y}{\sum_j n_j}$$

    s are the scores of one row, y its label, π the shares of the classes in the training rows and τ (tau) how much of
    them is taken out of the scores. The adjusted scores learn P(y|x), so softmax of the scores themselves is proportional
    to $P(y|x) / \pi_y^\tau$: at τ = 1 it ranks classes as if all were equally common, which is best for the mean over
    classes. One threshold on it gives the sets that `wb.PAS` and `wb.AverageK(tau=…)` make from cross-entropy afterwards.
    τ = 0 is cross-entropy.

    >>> import torch
    >>> loss = LogitAdjustment(tau=1.0).for_classes([3, 1])
    >>> loss(torch.zeros(2, 2), torch.tensor([0, 1])).exp()  # 1 / π
    tensor([1.3333, 4.0000])

    Paper: Menon et al. 2021, Eq. 10.
    """

    title = "Logit adjustment"
    formula = r"-\log \mathrm{softmax}_y(s + \tau \log \pi)"
    paper = "Menon et al. 2021"
    equation = "Eq. 10"
    convex = True
    smooth = True
    tau: float = knob(
        1.0, low=0.0, high=2.0, symbol="τ", meaning="exponent of the class shares taken out of the scores"
    )
    class_counts: tuple[int, ...] | None = None

    @property
    def proper(self) -> bool:
        """Only for even classes: elsewhere the scores estimate P(y|x) / π^τ."""
        return self.tau == 0 or self.even

    @property
    def calibrated(self) -> bool:
        return self.tau == 0 or self.even

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        import torch.nn.functional as F

        counts = self._count_of_classes(scores)
        if counts is not None:
            scores = scores - self.tau * rarest_over_count(counts, scores.dtype, scores.device).log()
        return F.cross_entropy(scores, labels, reduction="none")
