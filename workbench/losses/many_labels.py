"""Losses for images with no label, one label or many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.baselines import mean_where

if TYPE_CHECKING:
    from torch import Tensor, nn

    from workbench.losses.states import Normaliser


@dataclass(frozen=True)
class BinaryCrossEntropy(Loss):
    r"""One sigmoid per class, each on its own.

    $$\ell(z, y) = -\sum_k [y_k \log \sigma(z_k) + (1 - y_k) \log(1 - \sigma(z_k))]$$

    z are the scores of one row and y_k says whether class k is a label of it. Any number of labels is allowed, but no
    class knows of the others, and with many classes almost all the loss comes from absent ones.

    >>> import torch, workbench as wb
    >>> labels = torch.tensor([[True, True, False], [False, False, False]])
    >>> wb.losses.BinaryCrossEntropy()(torch.zeros(2, 3), labels)  # 3 log 2
    tensor([2.0794, 2.0794])

    Paper: Liao et al., Eq. 2.
    """

    title = "Binary cross-entropy"
    formula = r"-\sum_k [y_k \log \sigma(z_k) + (1 - y_k) \log(1 - \sigma(z_k))]"
    paper = "Liao et al."
    equation = "Eq. 2"
    convex = True
    smooth = True
    calibrated = True
    proper = True
    labels = "many"
    link = "sigmoid"

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch
        import torch.nn.functional as F

        return -F.logsigmoid(torch.where(labels, scores, -scores)).sum(-1)


@dataclass(frozen=True)
class Quasibinary(Loss):
    r"""Exponentials over one constant that all classes and all images share.

    $$\ell = \sum_k [\max(\log q_k, 0) - y_k \log q_k], \qquad \log q_k = z_k - \log C, \qquad
    C = \frac{1}{N} \sum_{i \in B} \sum_k e^{z_{ik}}$$

    N is the number of labels in the batch B, so that the q of a batch sum to its number of labels; they need not sum to
    1 in a row. The first term keeps q below 1, where it is a probability. An image without a label gives no positive
    term but weighs in C: its scores sink. For a single row with a single label this is cross-entropy. The gradient
    flows through C, else rows without labels would teach nothing. A batch with no label at all takes N = 1.

    At test time there are no labels to count, so C is remembered as a moving average over training batches, into which
    each new one enters with weight `averaging_rate`: `state(...).log_C`, the `link_constant` of a table. In eval mode a
    state lends its C; without a state, or before the first batch, C is that of the batch.

    >>> import torch, workbench as wb
    >>> loss = wb.losses.Quasibinary()
    >>> state = loss.state(n_rows=100, n_classes=4)
    >>> labels = torch.tensor([[True, True, False, False], [False, False, False, False]])
    >>> loss(torch.zeros(2, 4), labels, state=state)  # C = 8 / 2, so every q is ¼
    tensor([2.7726, 0.0000])
    >>> state.log_C.exp()
    tensor(4.)

    Paper: Liao et al., Eq. 4 and 10–13 (the loss is minus Eq. 11; Eq. 13 as printed grows without bound, its text means
    a moving average; α = 0.1 of Sec. III-B is the momentum 0.9 of Sec. V).
    """

    title = "Quasibinary"
    formula = r"\sum_k [\max(\log q_k, 0) - y_k \log q_k], \; q_k = e^{z_k} / C"
    paper = "Liao et al."
    equation = "Eq. 4, 10–13"
    convex = True  # the mean of a batch is: at most N of its q are above 1, so log C never weighs less than 0
    smooth = False
    calibrated = True
    proper = True  # C makes the q of a batch sum to its labels, under which minus the log-likelihood is least at q = P
    labels = "many"
    link = "quasibinary"
    couples_batch = True

    averaging_rate: float = knob(
        0.1, low=1e-3, high=1, scale="log", symbol="ρ", meaning="weight of a new batch in the average of the constant"
    )

    def state(self, n_rows: int, n_classes: int) -> Normaliser:
        from workbench.losses.states import Normaliser

        return Normaliser()

    def link_constant(self, state: nn.Module | None) -> float | None:
        from workbench.losses.states import Normaliser

        return float(state.log_C) if isinstance(state, Normaliser) else None

    def values(self, scores: Tensor, labels: Tensor, *, state: nn.Module | None = None, **_: Any) -> Tensor:
        n_labels = labels.sum(dtype=scores.dtype).clamp(min=1)
        log_C = scores.flatten().logsumexp(-1) - n_labels.log()
        if state is not None:
            log_C = state(log_C, self.averaging_rate)
        log_q = scores - log_C
        return (log_q.clamp(min=0) - log_q.where(labels, 0.0)).sum(-1)


def weight_without_label() -> float:
    """The knob of losses that treat a row without a label in its own way."""
    weight: float = knob(
        1.0, low=0.01, high=100, minimum=0, scale="log", symbol="w₀", meaning="weight of a row without a label"
    )
    return weight


@dataclass(frozen=True)
class SoftmaxUniform(Loss):
    r"""Cross-entropy where there is a label; where there is none, softmax should be uniform.

    $$\ell(z, y) = \begin{cases} \ell_{CE}(z, y) & \text{with a label} \\
    \lambda \, \mathrm{KL}(\text{uniform} \,\|\, \mathrm{softmax}(z)) & \text{without} \end{cases}$$

    The labels of a row share the weight equally. Softmax cannot say "none of these"; uniform is the closest it has, so
    the confidence on an image without a label stays above 1/L.

    >>> import torch, workbench as wb
    >>> wb.losses.SoftmaxUniform()(torch.zeros(1, 3), torch.tensor([[False, False, False]]))
    tensor([0.])

    Paper: Liao et al., Sec. V-B (there after Lee et al. 2018).
    """

    title = "Softmax, uniform without a label"
    formula = r"\ell_{CE}(z, y) \text{ or } \lambda \, \mathrm{KL}(u \,\|\, \mathrm{softmax}(z))"
    paper = "Liao et al."
    equation = "Sec. V-B"
    convex = True
    smooth = True
    calibrated = True
    proper = True
    labels = "many"

    no_label_weight: float = weight_without_label()

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch

        labelled = labels.any(-1)
        is_class = scores > -math.inf  # uniform over the classes that are not masked out
        cross_entropy = -mean_where(torch.where(labelled[:, None], labels, is_class), scores.log_softmax(-1))
        divergence = cross_entropy - is_class.sum(-1, dtype=scores.dtype).log()
        return torch.where(labelled, cross_entropy, self.no_label_weight * divergence)


@dataclass(frozen=True)
class SoftmaxMaxConfidence(Loss):
    r"""Cross-entropy where there is a label; where there is none, the largest log-probability should be small.

    $$\ell(z, y) = \begin{cases} \ell_{CE}(z, y) & \text{with a label} \\
    \lambda \max_k \log \mathrm{softmax}_k(z) & \text{without} \end{cases}$$

    The labels of a row share the weight equally. Only the class in front is pushed down, so the loss of an image without
    a label is negative, −log L when softmax is uniform.

    >>> import torch, workbench as wb
    >>> wb.losses.SoftmaxMaxConfidence()(torch.zeros(1, 3), torch.tensor([[False, False, False]]))  # −log 3
    tensor([-1.0986])

    Paper: Liao et al., Sec. V-B (there after Hein et al. 2019).
    """

    title = "Softmax, low confidence without a label"
    formula = r"\ell_{CE}(z, y) \text{ or } \lambda \max_k \log \mathrm{softmax}_k(z)"
    paper = "Liao et al."
    equation = "Sec. V-B"
    convex = False
    smooth = False
    calibrated = True
    proper = True
    labels = "many"

    no_label_weight: float = weight_without_label()

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch

        log_probabilities = scores.log_softmax(-1)
        without = self.no_label_weight * log_probabilities.amax(-1)
        return torch.where(labels.any(-1), -mean_where(labels, log_probabilities), without)
