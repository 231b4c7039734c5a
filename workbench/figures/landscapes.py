"""Loss landscapes: what a loss asks of three scores, seen on a triangle before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from workbench.figures.base import counted, shown
from workbench.figures.galleries import Gallery
from workbench.figures.triangles import CORNER_NAMES, LevelSets

if TYPE_CHECKING:
    from torch import Tensor

    from workbench.losses import Loss

HEADS = ("predicting", "candidate")
CAPTION_WIDTH = 30  # letters below a triangle of the gallery
TOTAL = 2.0  # scores lie in 2·Δ₃, so that a margin of 1 has room (Garcin et al. 2022, Figure 1)


def level_sets(
    loss: Loss,
    label: int = 2,
    steps: int = 101,
    rescale: bool = True,
    *,
    head: str = "predicting",
    gradients: bool = False,
    value_range: tuple[float, float] | None = None,
) -> LevelSets:
    r"""Level sets of a loss over the scores of three classes.

    $$s \mapsto \ell(s, y), \qquad s \in 2 \cdot \Delta_3$$

    `label` is y, counted from 0; `steps` are the points on a side of the triangle. With `rescale` the values run from
    0 to 1, as in the paper; without it they are the loss itself, and `value_range` fixes the ends of the colours, so
    that two settings can be compared. Of a loss with two heads, `head` says which one moves (the other rests at 0).
    A random loss is drawn with a fixed seed, artefacts and all; its exact sister has none to show. With `gradients` the
    frame also has `g0`, `g1`, `g2`, the gradient of the loss, and arrows show where one step downhill leads.

    >>> import workbench as wb
    >>> figure = wb.figures.level_sets(wb.losses.CrossEntropy())
    >>> figure.frame.shape, figure.frame.columns.tolist()
    ((5151, 4), ['s0', 's1', 's2', 'value'])

    Paper: Garcin et al. 2022, Figures 1, 4, 5 and 6.
    """
    _check(loss, label, steps, head)
    if value_range is not None and (rescale or not value_range[0] < value_range[1]):
        raise ValueError(f"value_range = {value_range!r} needs rescale=False and a low end below the high end")
    scores = simplex_grid(steps)
    values = loss_values(loss, scores, label, head)
    if not np.all(np.isfinite(values)):
        where = scores[~np.isfinite(values)][0].tolist()
        raise ValueError(f"{loss!r} is not finite at s = {where} with label {label}: it has no level sets there")
    lowest, highest = float(values.min()), float(values.max())
    best, worst = (tuple(scores[row].round(2).tolist()) for row in (values.argmin(), values.argmax()))
    if rescale:
        values = (values - lowest) / (highest - lowest or 1.0)

    frame = pd.DataFrame(scores, columns=["s0", "s1", "s2"]).assign(value=values)
    flat = ""
    if gradients:
        frame[["g0", "g1", "g2"]] = slopes = loss_gradients(loss, scores, label, head)
        n_flat, moved = int((slopes == 0).all(axis=1).sum()), np.count_nonzero(slopes, axis=1).mean()
        flat = f" The gradient is zero at {n_flat} of the points and moves {moved:.2f} scores on average."
    options = f", head={head!r}" if loss.heads == 2 else ""
    options += ", gradients=True" if gradients else ""
    options += f", value_range={value_range!r}" if value_range else ""
    imports, (name,) = losses_in_code([loss])
    call = f"wb.figures.level_sets(loss, label={label}, steps={steps}, rescale={rescale}{options})"
    return LevelSets(
        frame=frame,
        title=loss.title,
        subtitle=", ".join(
            part for part in (f"n = {counted(len(scores), 'score vector')}", knobs_in_words(loss)) if part
        ),
        text=(
            f"Level sets of {loss!r} on a triangle of n = {len(scores)} score vectors of three classes; the label is "
            f"class {label}, the {CORNER_NAMES[label]} corner. The loss is lowest, {lowest:.3g}, at s = {best} and "
            f"highest, {highest:.3g}, at s = {worst}.{' Colours are rescaled to run from 0 to 1.' if rescale else ''}{flat}"
        ),
        code=f"{imports}loss = {name}\nfigure = {call}\nfigure.plot()\n",
        label=label,
        steps=steps,
        value_range=value_range or ((0.0, 1.0) if rescale else (lowest, highest)),
        units="loss, rescaled" if rescale else "loss",
    )


def gallery(losses: Iterable[type[Loss] | Loss] | None = None, label: int = 2, K: int = 2, steps: int = 51) -> Gallery:
    """Level sets of many losses on one sheet: all of the catalogue, unless `losses` says which.

    A class of losses is shown with sets of `K` ≤ 2 classes and its other knobs at their defaults; a loss is shown as it
    is. Each triangle is rescaled to run from 0 to 1. A loss of yours joins by `losses=(*wb.losses.LOSSES, Mine)`.

    >>> import workbench as wb
    >>> figure = wb.figures.gallery([wb.losses.CrossEntropy, wb.losses.CalibratedTopKHinge(K=1)], steps=11)
    >>> figure.frame.groupby("loss", sort=False).size().to_dict()
    {'CrossEntropy()': 66, 'CalibratedTopKHinge(K=1)': 66}

    Paper: Garcin et al. 2022, Figure 1 (K = 2) and Figure 6 (K = 1).
    """
    from workbench.losses import LOSSES

    chosen = list(LOSSES if losses is None else losses)
    if not chosen:
        raise ValueError("losses is empty; give at least one loss, such as wb.losses.CrossEntropy")
    drawn = [on_three_classes(loss, K) if isinstance(loss, type) else loss for loss in chosen]
    panels = tuple(level_sets(loss, label, steps) for loss in drawn)
    n = len(panels[0].frame)
    imports, names = losses_in_code(chosen)
    which = "" if losses is None else f"losses=[{', '.join(names)}], "
    return Gallery(
        frame=pd.concat([panel.frame.assign(loss=repr(loss)) for panel, loss in zip(panels, drawn, strict=True)])
        .reset_index(drop=True)
        .loc[:, ["loss", "s0", "s1", "s2", "value"]],
        title="What each loss asks for",
        subtitle=f"n = {counted(n, 'score vector')} a triangle, label {label} at the {CORNER_NAMES[label]}; pale is low",
        text=(
            f"Level sets of {counted(len(panels), 'loss', 'losses')} on triangles of n = {n} score vectors of three classes, "
            f"label {label} at the {CORNER_NAMES[label]} corner, each rescaled to run from 0 to 1: "
            f"{', '.join(repr(loss) for loss in drawn)}."
        ),
        code=f"{imports}figure = wb.figures.gallery({which}label={label}, K={K}, steps={steps})\nfigure.plot()\n",
        panels=panels,
        captions=tuple(knobs_in_words(loss, CAPTION_WIDTH) for loss in drawn),
    )


def simplex_grid(steps: int) -> np.ndarray:
    """Score vectors s ≥ 0 with s₀ + s₁ + s₂ = 2 on a triangular grid with `steps` points a side: (n, 3).

    >>> simplex_grid(2).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    up, right = np.nonzero(np.add.outer(np.arange(steps), np.arange(steps)) < steps)
    return TOTAL * np.stack([steps - 1 - up - right, right, up], axis=1) / (steps - 1)


def loss_values(loss: Loss, scores: np.ndarray, label: int, head: str = "predicting") -> np.ndarray:
    """The loss of each row of scores (n, L) on its own, all with the same label: (n,).

    A batch-coupled loss sees one row a batch. Of two heads, one moves and the other rests at 0 for every class.
    """
    import torch

    with torch.no_grad():
        return _evaluated(loss, torch.as_tensor(scores), label, head).numpy().astype(np.float64)


def loss_gradients(loss: Loss, scores: np.ndarray, label: int, head: str = "predicting") -> np.ndarray:
    """The gradient of each of those losses with respect to its own scores: (n, L)."""
    import torch

    points = torch.tensor(scores, requires_grad=True)
    values = _evaluated(loss, points, label, head)
    if not values.requires_grad:  # piecewise constant, such as the top-K error
        return np.zeros_like(scores)
    (gradients,) = torch.autograd.grad(values.sum(), points)
    return gradients.numpy()


def _evaluated(loss: Loss, points: Tensor, label: int, head: str) -> Tensor:
    import torch

    if loss.heads == 2:
        resting = torch.zeros_like(points)
        points = torch.stack([points, resting] if head == "predicting" else [resting, points], dim=1)
    labels = torch.full((len(points),), label)
    if loss.labels == "many":
        labels = torch.nn.functional.one_hot(labels, points.shape[-1]).bool()
    if loss.couples_batch:
        return torch.func.vmap(lambda point, its_label: loss(point[None], its_label[None])[0])(points, labels)
    return loss(points, labels, generator=torch.Generator().manual_seed(0) if loss.random else None)


def on_three_classes(loss_class: type[Loss], K: int = 2) -> Loss:
    """A loss of that class as the triangle can show it: sets of K ≤ 2 classes, everything else at its default."""
    if K not in (1, 2):
        raise ValueError(f"K = {K!r}; of three classes a set holds 1 or 2")
    fitting = {"K": K, "p_k": (1 / K,) * K}
    return loss_class(**{name: fitting[name] for name in loss_class.knobs() if name in fitting})


def knobs_in_words(loss: Loss, width: int | None = None) -> str:
    """The settings of a loss as a reader says them, `K = 2, ε = 0.2`: all, or the first that fit in so many letters."""
    knobs = type(loss).knobs()
    words = [f"{knobs[name].symbol or name} = {shown(value)}" for name, value in loss.settings().items()]
    while width is not None and len(", ".join(words)) > width:
        words.pop()
    return ", ".join(words)


def losses_in_code(losses: Sequence[type[Loss] | Loss]) -> tuple[str, list[str]]:
    """The imports that losses need, and each of them as it is written in code."""
    imports, names = ["import workbench as wb"], []
    for loss in losses:
        home = (loss if isinstance(loss, type) else type(loss)).__module__
        name, ours = loss.__name__ if isinstance(loss, type) else repr(loss), home.split(".")[0] == "workbench"
        names.append(f"wb.losses.{name}" if ours else name)
        if not ours:
            imports.append(f"from {home} import {name.split('(')[0]}")
    return "\n".join(dict.fromkeys(imports)) + "\n\n", names


def _check(loss: Loss, label: int, steps: int, head: str) -> None:
    from workbench.losses import Loss

    if not isinstance(loss, Loss):
        raise ValueError(f"level_sets draws a loss such as wb.losses.CrossEntropy(), not {loss!r}")
    if label not in (0, 1, 2):
        raise ValueError(f"label = {label!r}; the triangle has three classes: give 0, 1 or 2")
    if steps != int(steps) or steps < 2:
        raise ValueError(f"steps = {steps!r}; give a whole number of points a side, at least 2 (101 draws well)")
    if head not in HEADS:
        raise ValueError(f"head = {head!r}; the head that moves is one of {', '.join(HEADS)}")
