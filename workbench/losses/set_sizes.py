"""Losses of the predicted set itself: its size and whether it contains the label, both made smooth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.exact_arithmetic import conformal_rank
from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.top_k import score_of_label

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-8  # keeps a logarithm finite where every set is as it should be, as in the authors' code


@dataclass(frozen=True)
class ConformalTraining(Loss):
    r"""Conformal prediction inside a batch: half of it fits the threshold, the size of the sets of the rest is the loss.

    $$\ell = \log \frac{1}{|B_2|} \sum_{i \in B_2} \Big[ 1 - C_{i y_i} + \lambda \Big(\sum_k C_{ik} - \kappa\Big)_+ \Big],
    \qquad C_{ik} = \sigma\Big(\frac{\log p_{ik} - \hat q}{T}\Big)$$

    p is the softmax of the scores and C_ik how much class k is in the set of row i: a step at the threshold q̂, smoothed
    by T (temperature). q̂ is the conformal threshold of the first half B_1 of the batch, the k-th largest log-probability
    of its labels with k = ⌈(|B_1| + 1)·confidence⌉, or the least if the half is too small for the promise. A class in a
    set costs λ (size_weight) beyond the first κ (free_size); a set without its label costs 1.

    The quantile is differentiated: it is the row of rank k of the relaxed sort `wb.operators.soft_sort` with temperature
    `sort_temperature`, applied to the log-probabilities of the labels. So labels near the threshold are pushed up; with a
    sharp sort only the one that holds it is, and training is slow.
    Train with batches of a hundred rows or more. After training fit `wb.LAC` on rows of its own: the promise comes from
    there, not from here. A batch of one row fits and predicts on that row.

    >>> import torch, workbench as wb
    >>> loss = wb.losses.ConformalTraining(temperature=0.01, sort_temperature=0.001)
    >>> scores = torch.tensor([[9.0, 0, 0], [0, 9.0, 0], [2.0, 2.0, 0], [0, 0, 9.0]])
    >>> round(loss(scores, torch.tensor([0, 1, 0, 2]), reduction="mean").exp().item(), 2)  # the third row misses its label
    0.75

    Paper: Stutz et al. 2022, Sec. 3, with log-probabilities as scores. The authors sort by a smooth sorting network.
    """

    title = "Conformal training"
    formula = (
        r"\log \tfrac1{|B_2|} \sum_{B_2} \big[1 - C_y + \lambda (\textstyle\sum_k C_k - \kappa)_+\big],"
        r"\ C = \sigma\big(\tfrac{\log p - \hat q}{T}\big)"
    )
    paper = "Stutz et al. 2022"
    equation = "Sec. 3"
    compiles = False
    convex = False
    smooth = False
    calibrated = False
    couples_batch = True

    confidence: float = knob(
        0.99, low=0.5, high=0.99, minimum=0.0, maximum=1.0, symbol="1 − α", meaning="coverage that the sets promise"
    )
    temperature: float = knob(1.0, low=0.01, high=10.0, scale="log", symbol="T", meaning="width of the edge of a set")
    size_weight: float = knob(
        0.5, low=0.01, high=10.0, minimum=0.0, scale="log", symbol="w", meaning="cost of a class in a set"
    )
    free_size: float = knob(
        1.0, low=0.0, high=5.0, maximum=math.inf, symbol="κ", meaning="number of classes that cost nothing"
    )
    sort_temperature: float = knob(
        1.0, low=0.001, high=10.0, scale="log", meaning="temperature of the relaxed sort of the quantile"
    )

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        n = len(labels)
        if n == 0:
            return scores.sum(-1)
        log_p = scores.log_softmax(-1)
        n_fit = max(1, n // 2)
        threshold = self.threshold(score_of_label(log_p[:n_fit], labels[:n_fit]))
        inside = ((log_p[n // 2 :] - threshold) / self.temperature).sigmoid()  # (n₂, L)
        size = (inside.sum(-1) - self.free_size).relu()
        missed = 1 - score_of_label(inside, labels[n // 2 :])
        return (missed + self.size_weight * size).mean().add(TINY).log().expand(n)

    def threshold(self, log_p: Tensor) -> Tensor:
        """q̂ of the log-probabilities (m,) of the labels: the k-th largest by the relaxed sort, differentiable."""
        from workbench.operators import soft_sort

        k = min(conformal_rank(len(log_p), self.confidence), len(log_p))
        return soft_sort(log_p, k, temperature=self.sort_temperature)[-1] @ log_p


@dataclass(frozen=True)
class CardinalityAware(Loss):
    r"""Cross-entropy ranks the classes; a second term learns how many of them the set of a row should have.

    $$\ell(s, y) = -\log \mathrm{softmax}_y(s) + \sum_{k \le m} c_k \frac{e^{r_k}}{\sum_{l \le m} e^{r_l}},$$
    $$r_k = \sum_{j \le k} s_{(j)}, \qquad
      c_k = \frac{\mathbb 1\{y \notin \mathrm{top}_k(s)\} + \lambda \log k}{1 + \lambda \log m}$$

    s_(1) ≥ s_(2) ≥ … are the sorted scores of one row and y its label. A set of k classes costs 1 if it misses the label
    and λ log k (size_cost) for its size; m (max_size) bounds k. r_k scores the cardinality k, so the one that is
    chosen, k(x) = argmax r_k, is the number of scores above 0: cross-entropy leaves the level of the scores free, and the
    second term sets it. The learnt sets are `wb.Threshold(0.5)(table.with_link("sigmoid"))`, or `cardinality(scores)`
    classes from the top; the other rules work on its probabilities as ever.

    >>> import torch, workbench as wb
    >>> loss = wb.losses.CardinalityAware(size_cost=0.1, max_size=3)
    >>> scores = torch.tensor([[4.0, 3.0, -2.0, -3.0], [4.0, -1.0, -2.0, -3.0]])
    >>> loss.cardinality(scores)
    tensor([2, 1])
    >>> loss(scores, torch.tensor([1, 1]))  # the second set misses its label
    tensor([1.4176, 5.6653])

    Paper: Cortes et al. 2024, Sec. 3 (the cost-sensitive comp-sum loss of the mean absolute error: the expected cost of a
    size). There the cardinality has a scoring function of its own; here it is made of the scores of the classes, so that
    a network needs no second head.
    """

    title = "Cardinality-aware"
    formula = r"-\log \mathrm{softmax}_y(s) + \sum_k c_k \, \mathrm{softmax}_k(r),\ r_k = \mathrm{top}\Sigma_k(s)"
    paper = "Cortes et al. 2024"
    equation = "Sec. 3"
    convex = False
    smooth = False
    calibrated = False

    size_cost: float = knob(
        0.05, low=0.005, high=1.0, minimum=0.0, maximum=math.inf, scale="log", symbol="w", meaning="cost of log k"
    )
    max_size: int = knob(
        10, low=1, high=20, minimum=1, maximum=math.inf, symbol="m", meaning="largest number of classes in a set"
    )

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch
        import torch.nn.functional as F

        r = self._cardinality_scores(scores)  # (n, m)
        k = torch.arange(1, r.shape[-1] + 1, device=scores.device)
        rank = 1 + (scores.detach() > score_of_label(scores.detach(), labels).unsqueeze(-1)).sum(-1, keepdim=True)
        cost = ((rank > k) + self.size_cost * k.log()) / (1 + self.size_cost * math.log(len(k)))
        return F.cross_entropy(scores, labels, reduction="none") + (cost * r.softmax(-1)).sum(-1)

    def cardinality(self, scores: Tensor) -> Tensor:
        """k(x) of each row: (n,), from 1 to `max_size`."""
        return self._cardinality_scores(self._checked_scores(scores)).argmax(-1) + 1

    def _cardinality_scores(self, scores: Tensor) -> Tensor:
        """r_1, …, r_m of each row: the sums of its largest scores."""
        from workbench.operators.order import top_classes

        largest = scores.gather(-1, top_classes(scores.detach(), min(self.max_size, scores.shape[-1])))
        return largest.sort(dim=-1, descending=True).values.cumsum(-1)
