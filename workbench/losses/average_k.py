"""Losses for sets of average size K: they treat a single written-down label as one of several that could be right."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.exact_arithmetic import classes_of_rows
from workbench.knobs import knob
from workbench.losses.base import Loss
from workbench.losses.top_k import score_of_label

if TYPE_CHECKING:
    from torch import Tensor, nn

    from workbench.losses.states import LabelEstimates


def mean_size(default: float = 5.0, minimum: float = 0.0) -> float:
    """The knob K of losses that mean an average. Below 1 is legal where nothing forces the label into the set."""
    return knob(
        default,
        low=1,
        high=21,  # steps of 0.2 on a slider of 101 values
        minimum=minimum,
        maximum=math.inf,
        symbol="K",
        meaning="number of classes in a set on average",
    )


def promise_weight(default: float = 0.01) -> float:
    """The knob β of losses that promise K classes on average."""
    return knob(
        default, low=1e-4, high=10, minimum=0, scale="log", symbol="β", meaning="weight of the promise on the mean size"
    )


@dataclass(frozen=True)
class AssumeNegative(Loss):
    r"""One sigmoid per class: the label is present, every other class is absent and shares the weight of one.

    $$\ell(z, y) = -\log \sigma(z_y) - \frac{1}{L-1} \sum_{j \ne y} \log(1 - \sigma(z_j))$$

    z are the scores of one row, y its label and σ the logistic function. It takes the single label at its word: no
    other class can be right. It is what losses that allow for ambiguity are compared with.

    >>> import torch, workbench as wb
    >>> round(wb.losses.AssumeNegative()(torch.zeros(1, 5), torch.tensor([0])).item(), 4)  # 2 log 2
    1.3863

    Paper: Garcin et al. 2023, Eq. 5 (there after Cole et al. 2021, who call it weighted AN and divide by L).
    """

    title = "Assume negative"
    formula = r"-\log \sigma(z_y) - \tfrac{1}{L-1} \sum_{j \ne y} \log(1 - \sigma(z_j))"
    paper = "Garcin et al. 2023"
    equation = "Eq. 5"
    convex = True
    smooth = True
    calibrated = True

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch.nn.functional as F

        log_absent = F.logsigmoid(-scores).scatter(-1, labels[:, None], 0.0).sum(-1)
        return -F.logsigmoid(score_of_label(scores, labels)) - log_absent / (scores.shape[-1] - 1)


@dataclass(frozen=True)
class ExpectedPositive(Loss):
    r"""The label is present, the other classes are unknown, and K classes are present on average.

    $$\ell(Z^B, Y^B) = -\frac{1}{|B|} \sum_{i \in B} \log \sigma(z_{i, y_i}) + \beta (\hat K(Z^B) - K)^2, \qquad
    \hat K(Z^B) = \frac{1}{|B|} \sum_{i \in B} \sum_j \sigma(z_{ij})$$

    K̂ is the number of classes the sigmoids of the batch B announce per row. Without the second term all scores would
    grow for ever; with it they may still spread thin over all classes. K is a mean, so it may be below 1.

    >>> import torch, workbench as wb
    >>> scores, labels = torch.zeros(2, 4), torch.tensor([0, 3])  # every sigmoid is ½: two classes a row
    >>> wb.losses.ExpectedPositive(K=3, beta=1)(scores, labels) - wb.losses.ExpectedPositive(K=2, beta=1)(scores, labels)
    tensor([1., 1.])

    Paper: Garcin et al. 2023, Eq. 6–8 (there after Cole et al. 2021, who divide the square by L²).
    """

    title = "Expected positive regularisation"
    formula = r"-\log \sigma(z_y) + \beta (\hat K(Z^B) - K)^2"
    paper = "Garcin et al. 2023"
    equation = "Eq. 6–8"
    convex = False
    smooth = True
    calibrated = False
    couples_batch = True

    K: float = mean_size()
    beta: float = promise_weight()

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch.nn.functional as F

        return (
            -F.logsigmoid(score_of_label(scores, labels)) + self.beta * (scores.sigmoid().sum(-1).mean() - self.K) ** 2
        )


@dataclass(frozen=True)
class ROLE(Loss):
    r"""Regularised online label estimation: the classifier and a table of label estimates teach each other.

    $$\ell = \tfrac12 [\ell'(Z \mid \hat\Theta) + \ell'(\hat\Theta \mid Z)], \qquad
    \ell'(Z \mid \Theta) = \mathrm{BCE}(\sigma(Z), \sigma(\Theta)) - \log \sigma(z_y) + \beta (\hat K(Z) - K)^2$$

    Z are the scores of a batch and Θ̂ the estimates of its rows: one number for each training row and class, learnt with
    the classifier. Each side is fitted to the other as it stands (no gradient flows into the target), to the label,
    and to K classes a row on average. BCE is summed over the classes.

    The estimates are the state: `state(n_rows, n_classes)`, looked up by `rows=`. They take 4·n_rows·L bytes (1 GB for
    the 243 916 training rows and 1 081 classes of Pl@ntNet-300K), as much again for their gradient and twice that for
    the moments of Adam. Without a state, and outside training, where a row has no estimates, each row has those a new
    row starts with.

    >>> import torch, workbench as wb
    >>> loss = wb.losses.ROLE(K=2.0)
    >>> state = loss.state(n_rows=100, n_classes=4)
    >>> loss(torch.zeros(2, 4), torch.tensor([0, 3]), state=state, rows=torch.tensor([17, 62])).shape
    torch.Size([2])

    Paper: Garcin et al. 2023, Sec. 4.6, which refers to Cole et al. 2021 for the formula (they divide it by L).
    """

    title = "Regularised online label estimation"
    formula = r"\tfrac12 [\ell'(Z \mid \hat\Theta) + \ell'(\hat\Theta \mid Z)]"
    paper = "Garcin et al. 2023"
    equation = "Sec. 4.6"
    convex = False
    smooth = False  # the value is, but with its targets held fixed it is not the gradient of the value that is followed
    calibrated = False
    couples_batch = True

    K: float = mean_size()
    beta: float = promise_weight()
    estimate_rate: float = knob(
        10.0, low=0.1, high=100, scale="log", unit="×", meaning="learning rate of the estimates over that of the model"
    )

    def state(self, n_rows: int, n_classes: int) -> LabelEstimates:
        from workbench.losses.states import LabelEstimates

        return LabelEstimates(n_rows, n_classes, learning_rate_factor=self.estimate_rate)

    def values(
        self, scores: Tensor, labels: Tensor, *, state: nn.Module | None = None, rows: Tensor | None = None, **_: Any
    ) -> Tensor:
        import torch

        from workbench.losses.states import LabelEstimates

        if state is None or not state.training:
            estimates = torch.zeros_like(scores).scatter(-1, labels[:, None], LabelEstimates.AT_LABEL)
        elif rows is None:
            raise ValueError(
                "ROLE: a state was given without rows; pass rows=, the indices of the rows in the training set"
            )
        else:
            estimates = state(rows, labels).to(scores.dtype)
            state.learning_rate_factor = self.estimate_rate  # type: ignore[assignment]  # it may follow a schedule
        present, estimated = scores.sigmoid(), estimates.sigmoid()
        of_scores = self._fitted_to(estimated.detach(), scores, present, labels)
        return (of_scores + self._fitted_to(present.detach(), estimates, estimated, labels)) / 2

    def _fitted_to(self, target: Tensor, student: Tensor, present: Tensor, labels: Tensor) -> Tensor:
        """ℓ'(student | teacher): `target` are the teacher's sigmoids, without gradient, `present` those of the student."""
        import torch
        import torch.nn.functional as F

        finite = student.nan_to_num(nan=math.nan, posinf=math.inf, neginf=0.0)  # masked classes have no target
        cross_entropy: Tensor = F.softplus(student, threshold=40).sum(-1) - torch.linalg.vecdot(target, finite)
        positive = -F.logsigmoid(score_of_label(student, labels))
        return cross_entropy + positive + self.beta * (present.sum(-1).mean() - self.K) ** 2


@dataclass(frozen=True)
class AverageKTwoHead(Loss):
    r"""Two heads: one proposes candidate classes by cross-entropy, the other learns them as if they were labels too.

    $$\ell = \ell_{CE}(Z', Y) - \frac{1}{|B|} \sum_{i \in B} \Big[ \log \sigma(z_{i, y_i})
    + \frac{\alpha}{K-1} \sum_{j \in S_c(x_i)} \log \sigma(z_{ij})
    + \frac{\alpha}{L-K} \sum_{j \notin S(x_i)} \log(1 - \sigma(z_{ij})) \Big]$$

    Z' are the scores of the candidate head (`scores[:, 1]`), Z those of the predicting head (`scores[:, 0]`). The
    candidates S_c of all rows are the (K−1)·|B| largest softmax probabilities of Z' over the whole batch once the labels
    are taken out, and S(x) is S_c(x) with the label: sets have K classes on average, more where the image is ambiguous.
    Cross-entropy lowers the score of every class but the label; here a plausible twin of the label rises with it.

    K may be any real number ≥ 1; (K−1)·|B| is rounded half up in exact arithmetic, and where that changes it the weights
    divide by the number of candidates there are, so that they weigh α together in every batch. K = 1 has no candidates:
    what is left is cross-entropy on the candidate head and the positive and negative terms on the other.

    >>> import torch, workbench as wb
    >>> scores = torch.tensor([[[0.0, 0, 0, 0], [3, 2, 0, 0]], [[0, 0, 0, 0], [0, 0, 5, 0]]])  # (n, 2, L)
    >>> wb.losses.AverageKTwoHead(K=1.5).candidates(scores, torch.tensor([0, 2])).int()  # one candidate for the two rows
    tensor([[0, 1, 0, 0],
            [0, 0, 0, 0]], dtype=torch.int32)

    Paper: Garcin et al. 2023, Eq. 10–15.
    """

    title = "Average-K two-head"
    formula = (
        r"\ell_{CE}(Z', Y) - \log \sigma(z_y) - \tfrac{\alpha}{K-1} \sum_{j \in S_c} \log \sigma(z_j)"
        r" - \tfrac{\alpha}{L-K} \sum_{j \notin S} \log(1 - \sigma(z_j))"
    )
    paper = "Garcin et al. 2023"
    equation = "Eq. 10–15"
    compiles = False
    heads = 2
    couples_batch = True

    K: float = mean_size(minimum=1)
    alpha: float = knob(
        1.0,
        low=0.1,
        high=100,
        minimum=0,
        scale="log",
        symbol="w",
        meaning="weight of the candidates against the labels",
    )

    @property
    def convex(self) -> bool:
        """Without candidates, yes; with them the loss jumps where the candidates change."""
        return self.K == 1

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        return self.K == 1

    @property
    def calibrated(self) -> bool:
        """At K = 1 each head ranks the classes by probability; above, no guarantee is known."""
        return self.K == 1

    def values(self, scores: Tensor, labels: Tensor, **_: Any) -> Tensor:
        import torch.nn.functional as F

        predictions, proposals = scores.unbind(1)
        n, n_classes = predictions.shape
        n_candidates = self.n_candidates(n)
        n_negatives = n * (n_classes - 1) - n_candidates
        log_proposals = proposals.log_softmax(-1)
        chosen, allowed = self._candidates(log_proposals.detach(), labels)

        # A class that is no negative gets −∞ among them, where log(1 − σ(z)) = log σ(−z) is 0.
        candidates = predictions.flatten().gather(-1, chosen)
        negatives = predictions.flatten().scatter(-1, chosen, candidates.masked_fill(allowed, -math.inf))
        negatives = negatives.view_as(predictions).scatter(-1, labels[:, None], -math.inf)
        log_candidates = F.logsigmoid(candidates).where(allowed, 0.0)
        of_candidates = predictions.new_zeros(n).scatter_add(-1, chosen // n_classes, log_candidates)
        # n times the weights of the batch loss, so that the mean over rows is that loss.
        return (
            -score_of_label(log_proposals, labels)
            - F.logsigmoid(score_of_label(predictions, labels))
            - self.alpha * n / max(n_candidates, 1) * of_candidates
            - self.alpha * n / max(n_negatives, 1) * F.logsigmoid(-negatives).sum(-1)
        )

    def candidates(self, scores: Tensor, labels: Tensor) -> Tensor:
        """(n, L) bool: the classes that stand beside the label, (K−1)·n of them over the whole batch."""
        import torch

        scores = self._checked_scores(scores)
        labels = self._checked_labels(scores, labels)
        chosen, allowed = self._candidates(scores[:, 1].detach().log_softmax(-1), labels)
        everywhere = torch.zeros(scores[:, 1].numel(), dtype=torch.bool, device=scores.device)
        return everywhere.scatter(-1, chosen, allowed).view_as(scores[:, 1])

    def n_candidates(self, n: int) -> int:
        """(K−1)·n, rounded half up; K is the decimal it prints as, so 1.1 means eleven tenths."""
        return classes_of_rows(self.K, n) - n

    def _candidates(self, log_proposals: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        """Positions of the candidates in the flattened batch, and whether each is not masked by a score of −inf.

        Softmax was taken over all classes before the labels leave (Eq. 11), so a sure row offers few candidates.
        """
        from workbench.operators.order import largest

        without_labels = log_proposals.scatter(-1, labels[:, None], -math.inf).flatten()
        chosen = largest(without_labels, self.n_candidates(len(labels)))
        return chosen, without_labels.gather(-1, chosen) > -math.inf
