"""A loss evaluated at many score vectors, each on its own: the numbers behind every landscape."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.gradient_sparsity import scores_with_gradient
from workbench.knobs import format_value

if TYPE_CHECKING:
    from torch import Tensor

    from workbench.losses import Loss

HEADS = ("both", "predicting", "candidate")
Background = tuple[Any, Any]  # scores (m, L) or (m, 2, L), and labels (m,)


def loss_values(
    loss: Loss, scores: np.ndarray, label: int | np.ndarray, head: str = "both", background: Background | None = None
) -> np.ndarray:
    """The loss of each row of scores (n, L) on its own, all with the same label or each with its own: (n,).

    A batch-coupled loss sees one row a batch; with a `background`, the rows of it share the batch of every row, and the
    value is the loss of that batch. Of two heads `head` moves, and the other rests at 0 for every class.
    """
    import torch

    with torch.no_grad():
        return _evaluated(loss, torch.as_tensor(scores), label, head, background).numpy().astype(np.float64)


def loss_gradients(
    loss: Loss, scores: np.ndarray, label: int | np.ndarray, head: str = "both", background: Background | None = None
) -> np.ndarray:
    """The gradient of each of those losses with respect to its own scores: (n, L)."""
    import torch

    points = torch.tensor(scores, requires_grad=True)
    values = _evaluated(loss, points, label, head, background)
    if not values.requires_grad:  # piecewise constant, such as the top-K error
        return np.zeros_like(scores)
    (gradients,) = torch.autograd.grad(values.sum(), points)
    return gradients.numpy()


def scores_moved(gradients: np.ndarray) -> np.ndarray:
    """Number of nonzero entries per row of gradients (n, L): (n,), rounding left out."""
    import torch

    return scores_with_gradient(torch.from_numpy(gradients)).numpy()


def _evaluated(loss: Loss, points: Tensor, label: int | np.ndarray, head: str, background: Background | None) -> Tensor:
    import torch

    points = _on_heads(loss, points, head)
    labels = loss.readable(torch.tensor(np.broadcast_to(label, len(points))), points.shape[-1])
    if not loss.couples_batch:
        return loss(points, labels, generator=torch.Generator().manual_seed(0) if loss.random else None)
    others, their_labels = points[:0].detach(), labels[:0]
    if background is not None:
        others = torch.as_tensor(np.asarray(background[0])).to(points)
        if others.ndim == 2:
            others = _on_heads(loss, others, "both")
        their_labels = loss.readable(torch.as_tensor(np.asarray(background[1])), points.shape[-1])

    def of_batch(point: Tensor, its_label: Tensor) -> Tensor:
        return loss(torch.cat([point[None], others]), torch.cat([its_label[None], their_labels])).mean()

    return torch.func.vmap(of_batch)(points, labels)


def _on_heads(loss: Loss, scores: Tensor, head: str) -> Tensor:
    """(n, L), or (n, 2, L) with the scores on the heads that move."""
    import torch

    if loss.heads == 1:
        return scores
    resting = torch.zeros_like(scores)
    heads = {"both": [scores, scores], "predicting": [scores, resting], "candidate": [resting, scores]}
    return torch.stack(heads[head], dim=1)


def on_three_classes(loss_class: type[Loss], K: int = 2) -> Loss:
    """A loss of that class as the triangle can show it: sets of K ≤ 2 classes, everything else at its default."""
    return loss_class(**fitting_three_classes(loss_class.knobs(), K)).at(1)


def fitting_three_classes(knobs: Iterable[str], K: int = 2) -> dict[str, Any]:
    """Of the knobs with these names, those that three classes do not leave at their default, and where they stand."""
    if K not in (1, 2):
        raise ValueError(f"K = {K!r}; of three classes a set holds 1 or 2")
    fitting = {"K": K, "p_k": (1 / K,) * K}
    return {name: fitting[name] for name in knobs if name in fitting}


def knobs_in_words(loss: Loss, width: int | None = None) -> str:
    """The settings of a loss as a reader says them, `K = 2, ε = 0.2`: all, or the first that fit in so many letters."""
    knobs = type(loss).knobs()
    words = [f"{knobs[name].symbol or name} = {format_value(value)}" for name, value in loss.at(1).settings().items()]
    while width is not None and len(", ".join(words)) > width:
        words.pop()
    return ", ".join(words)


def losses_in_code(losses: Sequence[type[Loss] | Loss]) -> tuple[list[str], list[str]]:
    """The imports that losses of other people need, and each loss as it is written in code."""
    imports, names = [], []
    for loss in losses:
        home = (loss if isinstance(loss, type) else type(loss)).__module__
        name, ours = loss.__name__ if isinstance(loss, type) else repr(loss.at(1)), home.split(".")[0] == "workbench"
        names.append(f"wb.losses.{name}" if ours else name)
        if not ours:
            imports.append(f"from {home} import {name.split('(')[0]}")
    return imports, names


def listed(losses: Any) -> list[Any]:
    """The losses as a list, each at the end of its schedules; one alone is a list of one."""
    from workbench.losses import Loss

    given = losses if isinstance(losses, Iterable) else [losses]
    return [loss.at(1) if isinstance(loss, Loss) else loss for loss in given]


def checked_loss(
    loss: Any, label: int = 0, head: str = "both", background: Background | None = None, *, n_classes: int = 3
) -> Loss:
    """The loss at the end of its schedules; what cannot be evaluated on three classes (or so many) is refused in words."""
    from workbench.losses import Loss

    if not isinstance(loss, Loss):
        raise ValueError(f"a landscape is that of a loss such as wb.losses.CrossEntropy(), not {loss!r}")
    loss = loss.at(1)
    if (
        K := getattr(loss, "K", 1)
    ) >= n_classes:  # checked here, because the error of `exact()` would name another loss
        raise ValueError(
            f"{loss!r} on {n_classes} classes: K must be smaller than the number of classes; "
            f"give {type(loss).__name__} a K below {n_classes}, not {K:g}"
        )
    if isinstance(label, bool) or not isinstance(label, numbers.Integral) or label not in (0, 1, 2):
        raise ValueError(f"label = {label!r}; the triangle has three classes: give 0, 1 or 2")
    if head not in HEADS:
        raise ValueError(f"head = {head!r}; the head that moves is one of {', '.join(HEADS)}")
    if background is None:
        return loss
    if not loss.couples_batch:
        raise ValueError(f"{loss!r} judges each row on its own: a background would change nothing; leave it out")
    shapes = ["(m, 3)", "(m, 2, 3)"][: loss.heads]
    try:
        scores, labels = (np.asarray(part) for part in background)
        fits = (
            scores.shape in [(len(labels), 3), (len(labels), 2, 3)][: loss.heads] and np.isin(labels, (0, 1, 2)).all()
        )
        fits = fits and labels.ndim == 1 and labels.dtype.kind in "iu" and np.isfinite(scores).all()
    except (TypeError, ValueError):  # no pair, ragged rows, or words
        fits = False
    if not fits:
        raise ValueError(
            f"background = {background!r}; give a pair, scores of shape {' or '.join(shapes)} and as many labels 0, 1 or 2"
        )
    return loss


def checked_point(scores: Any) -> np.ndarray:
    """The scores of three classes, (3,)."""
    try:
        point = np.array(scores, float)
    except (TypeError, ValueError):
        point = np.empty(0)
    if point.shape != (3,) or not np.isfinite(point).all():
        raise ValueError(f"scores = {scores!r}; give three finite numbers, the scores of classes 0, 1 and 2")
    return point
