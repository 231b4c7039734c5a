"""Losses whose gradient is a sparse projection minus the labels: classes far below the label are left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.losses.base import Loss

if TYPE_CHECKING:
    from torch import Tensor


def projection_loss(scores: Tensor, q: Tensor, p: Tensor) -> Tensor:
    r"""$\langle p - q, s - \tfrac12(p + q) \rangle$ with q the labels as a vector and p the projection of the scores s.

    It is ½‖s − q‖² − ½‖s − p‖²: how much further the labels are than the closest point. So it is convex and never
    negative, and its gradient is p − q (p is a minimiser, so its own change does not count). p and q have the same sum,
    so a constant can be taken off the scores, which keeps large ones exact.
    """
    import torch

    from workbench.operators.rowwise import with_gradient

    gradient = p - q
    with torch.no_grad():
        lowest = -torch.finfo(scores.dtype).max  # a class masked by −inf counts 0 times this
        below = (scores - scores.amax(-1, keepdim=True)).clamp(min=lowest)
        # Where labels are mapped and scores are not, what is made of both has a new shape: in place only from there on.
        values = below.sub(q, alpha=0.5).sub_(p, alpha=0.5).mul_(gradient).sum(-1)
    return with_gradient(scores, values, gradient)


@dataclass(frozen=True)
class Sparsemax(Loss):
    r"""Fenchel-Young loss of sparsemax, the counterpart of cross-entropy for softmax.

    $$\ell(s, y) = -s_y + \frac12 \sum_{j \in S(s)} (s_j^2 - \tau(s)^2) + \frac12, \qquad
      \nabla \ell = \mathrm{sparsemax}(s) - \delta_y$$

    s are the scores of one row, y its label, τ the threshold of sparsemax and S the classes above it. Zero as soon as
    the label leads by 1. Minimising it estimates P(y|x), and small probabilities come out as exact zeros. With (n, L)
    labels each row's labels share the weight equally; a row without a label costs nothing.

    >>> import torch
    >>> Sparsemax()(torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), torch.tensor([0, 0]))
    tensor([0.0000, 0.3333])

    Paper: Garcin, thesis, Eq. 6.11 and 6.12 (after Martins and Astudillo 2016).
    """

    title = "Sparsemax"
    formula = r"-s_y + \tfrac12 \sum_{j \in S(s)} (s_j^2 - \tau(s)^2) + \tfrac12"
    paper = "Garcin, thesis"
    equation = "Eq. 6.12"
    compiles = False
    convex = True
    smooth = True
    calibrated = True
    proper = True
    also_many_labels = True
    link = "sparsemax"

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        import torch

        from workbench.operators import project_top_k_simplex, sparsemax

        if labels.ndim == 1:
            target = torch.zeros_like(scores).scatter(-1, labels.unsqueeze(-1), 1.0)
            return projection_loss(scores, target, sparsemax(scores.detach()))
        present = labels.to(scores.dtype)
        n_labels = present.sum(-1)
        target = present / n_labels.clamp(min=1).unsqueeze(-1)
        # A row without a label has nothing to share: project it on 0 as well.
        return projection_loss(scores, target, project_top_k_simplex(scores.detach(), n_labels.clamp(max=1)))


@dataclass(frozen=True)
class SparseTop(Loss):
    r"""The sparsemax loss for many labels: the scores are projected on the vectors that sum to the number of labels.

    $$\ell(s, Y) = -\sum_{k \in Y} s_k + \sum_{k \in H} \big(s_k - \tfrac12\big)
      + \frac12 \sum_{k \in M} (s_k^2 - \lambda^2) + \frac{|Y|}2, \qquad
      \nabla \ell = \text{sparse-top}(|Y|, s) - \sum_{k \in Y} \delta_k$$

    Y are the labels of one row; of the projection of its scores s, H are the entries at 1, M those between 0 and 1, and λ
    is the threshold. Zero exactly when the projection is the labels, that is when every label leads every other class
    by 1. Binary cross-entropy pushes every class for ever; this one leaves alone what is settled. A row without a label
    costs nothing.

    At test time the number of labels is most often not known, so probabilities are those of one label, by sparsemax; where
    it is known, `table.with_n_labels(n)` projects as training does.

    >>> import torch
    >>> labels = torch.tensor([[True, True, False]])
    >>> SparseTop()(torch.tensor([[3.0, 1.0, 0.0]]), labels), SparseTop()(torch.tensor([[3.0, 1.0, 1.0]]), labels)
    (tensor([0.]), tensor([0.2500]))

    Paper: Garcin, thesis, Eq. 6.24 and 6.25.
    """

    title = "Sparse-top"
    formula = r"-\sum_Y s_k + \sum_H (s_k - \tfrac12) + \tfrac12 \sum_M (s_k^2 - \lambda^2) + \tfrac{|Y|}2"
    paper = "Garcin, thesis"
    equation = "Eq. 6.25"
    compiles = False
    convex = True
    smooth = True
    calibrated = True
    proper = True
    labels = "many"
    link = "sparsemax"

    def values(self, scores: Tensor, labels: Tensor, **_: object) -> Tensor:
        from workbench.operators import project_top_k_simplex

        target = labels.byte().to(scores.dtype)  # by way of bytes: several times quicker
        return projection_loss(scores, target, project_top_k_simplex(scores.detach(), target.sum(-1)))
