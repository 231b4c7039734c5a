"""Loss landscapes: what a loss asks of three scores, seen on a triangle before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench import display_names
from workbench.figures.base import checked_positive, checked_range, counted, round_up
from workbench.figures.losses.evaluation import (
    Background,
    checked_loss,
    knobs_in_words,
    listed,
    loss_gradients,
    loss_values,
    losses_in_code,
    on_three_classes,
    scores_moved,
)
from workbench.figures.losses.galleries import Gallery
from workbench.figures.losses.ternary import CORNER_NAMES, LevelSets
from workbench.figures.snippet import Code
from workbench.validation import whole_number

if TYPE_CHECKING:
    from workbench.losses import Loss

CAPTION_WIDTH = 24  # letters below a triangle of the gallery
TOTAL = 2.0  # scores lie in 2·Δ₃, so that a margin of 1 has room (Garcin et al. 2022, Figure 1)
HEADS_IN_WORDS = {
    "both": "both heads move together",
    "predicting": "the predicting head moves, the other rests at 0",
    "candidate": "the candidate head moves, the other rests at 0",
}


def level_sets(
    loss: Loss,
    label: int = 2,
    steps: int = 101,
    rescale: bool = True,
    *,
    total: float = TOTAL,
    head: str = "both",
    background: Background | None = None,
    sampled: bool = False,
    gradients: bool = False,
    regions: int | None = None,
    value_range: tuple[float, float] | None = None,
) -> LevelSets:
    r"""Level sets of a loss over the scores of three classes.

    Args:
        loss: The loss ℓ.

    $$s \mapsto \ell(s, y), \qquad s \in 2 \cdot \Delta_3$$

    `label` is y, counted from 0; `steps` are the points on a side of the triangle, and `total` the sum of the scores.

    - With `rescale` the values run from 0 to 1, as in the paper; without it they are the loss itself, and `value_range`
      fixes the ends of the colours, so that two settings can be compared.
    - A noised loss is drawn with its expectation; `sampled=True` draws the noise it trains with (with a fixed seed), and
      shows what that does to the picture.
    - Of a loss with two heads `head` says which one moves. By default both do, so that the candidates are those the
      scores speak for; a head that rests is 0 for every class, and ties between candidates go to the first class.
    - Each point is a batch of its own. `background` (scores, labels) is a few rows that join every batch of a
      batch-coupled loss; the value is then the loss of the whole batch.
    - With `gradients` the frame also has `g0`, `g1`, `g2`, and arrows show where one step downhill leads.
    - `regions=K` outlines where the same K classes would be predicted.

    >>> import workbench as wb
    >>> figure = wb.figures.level_sets(wb.losses.CrossEntropy())
    >>> figure.frame.shape, figure.frame.columns.tolist()
    ((5151, 4), ['s0', 's1', 's2', 'value'])

    The losses of the paper's Figure 1 have a margin of 1. `SmoothTopKHinge` has a margin of K, so its panels f and g are
    drawn with `total=2 * K`; panel j, with a margin of 5, has the geometry of a margin of 1 on `total=2 / 5` with ε / 5.

    Paper: Garcin et al. 2022, Figures 1, 4, 5 and 6.
    """
    loss = checked_loss(loss, label, head, background)
    steps, total = whole_number("steps", steps, least=2), checked_positive("total", total)
    regions, ends = _checked_regions(regions), _checked_ends(value_range, rescale)
    drawn = loss if sampled else loss.exact()
    scores = simplex_grid(steps, total)
    values = loss_values(drawn, scores, label, head, background)
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
        frame[["g0", "g1", "g2"]] = slopes = loss_gradients(drawn, scores, label, head, background)
        pulled = scores_moved(slopes)
        flat = (
            f" The gradient is zero at {np.count_nonzero(pulled == 0)} of the points and moves {pulled.mean():.2f} scores "
            "on average."
        )
    options = {
        "total": total if total != TOTAL else None,
        "head": head if loss.heads == 2 else None,
        "background": None if background is None else tuple(np.asarray(part).tolist() for part in background),
        "sampled": True if sampled else None,
        "gradients": True if gradients else None,
        "regions": regions,
        "value_range": ends,
    }
    options_text = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    imports, (name,) = losses_in_code([loss])
    call = f"wb.figures.level_sets(loss, label={label}, steps={steps}, rescale={rescale}{options_text})"
    how = _in_words(loss, drawn, head, background)
    return LevelSets(
        frame=frame,
        title=loss.title,
        subtitle=", ".join(
            part for part in (f"n = {counted(len(scores), 'score vector')}", knobs_in_words(drawn), *how) if part
        ),
        text=(
            f"Level sets of {display_names.of_thing(loss)} on a triangle of n = {len(scores)} score vectors of three classes; "
            f"the label is class {label}, the {CORNER_NAMES[label]} corner. The loss is lowest, {lowest:.3g}, at s = {best} and "
            f"highest, {highest:.3g}, at s = {worst}.{' Colours are rescaled to run from 0 to 1.' if rescale else ''}"
            f"{''.join(f' Drawn so: {part}.' for part in how)}{flat}"
        ),
        code=Code(call, [f"loss = {name}"], imports),
        label=label,
        steps=steps,
        value_range=ends or ((0.0, 1.0) if rescale else (lowest, highest)),
        units="loss, rescaled" if rescale else "loss",
        regions=regions,
    )


def loss_difference(
    first: Loss,
    second: Loss,
    label: int = 2,
    steps: int = 101,
    *,
    rescale: bool = False,
    total: float = TOTAL,
    head: str = "both",
    background: Background | None = None,
    sampled: bool = False,
    regions: int | None = None,
) -> LevelSets:
    r"""The difference A − B of two losses over the scores of three classes, with a line where they are equal.

    $$s \mapsto \ell_A(s, y) - \ell_B(s, y), \qquad s \in 2 \cdot \Delta_3$$

    Args:
        first: The loss A; where it is larger the triangle is blue.
        second: The loss B; where it is larger the triangle is orange.
        label: The class y, counted from 0.
        steps: Number of points on a side of the triangle.
        rescale: Rescale each loss to run from 0 to 1 before the difference is taken.
        total: Sum of the scores.
        head: Head that moves, of a loss with two; as in `level_sets`.
        background: Rows that join the batch of a batch-coupled loss; as in `level_sets`.
        sampled: Draw the noise of a noised loss instead of taking its expectation.
        regions: Outline where the same K classes are predicted.

    Returns:
        A figure whose frame has the two losses in the columns `first` and `second`, and their difference in `value`.

    >>> import workbench as wb
    >>> figure = wb.figures.loss_difference(wb.losses.TopKHinge(K=1), wb.losses.CrossEntropy(), steps=3)
    >>> figure.frame.columns.tolist()
    ['s0', 's1', 's2', 'value', 'first', 'second']
    """
    chosen = [
        checked_loss(loss, label, head, background if getattr(loss, "couples_batch", False) else None)
        for loss in (first, second)
    ]
    levels = [
        level_sets(
            loss,
            label,
            steps,
            rescale,
            total=total,
            head=head,
            background=background if loss.couples_batch else None,
            sampled=sampled,
            regions=regions,
        )
        for loss in chosen
    ]
    a, b = (panel.frame["value"].to_numpy() for panel in levels)
    difference = a - b
    reach = round_up(float(np.abs(difference).max()))
    names = [display_names.of_thing(loss) for loss in chosen]
    options = {
        "total": total if total != TOTAL else None,
        "head": head if any(loss.heads == 2 for loss in chosen) else None,
        "background": None if background is None else tuple(np.asarray(part).tolist() for part in background),
        "sampled": True if sampled else None,
        "regions": levels[0].regions,
    }
    given = "".join(f", {name}={value!r}" for name, value in options.items() if value is not None)
    imports, (in_code, other_in_code) = losses_in_code(chosen)
    n = len(difference)
    return LevelSets(
        frame=levels[0].frame[["s0", "s1", "s2"]].assign(value=difference, first=a, second=b),
        title=f"{chosen[0].title} − {chosen[1].title}",
        subtitle=f"n = {counted(n, 'score vector')}; blue: {names[0]} is larger; orange: {names[1]}; line: equal",
        text=(
            f"The difference of {names[0]} and {names[1]}{', each rescaled to run from 0 to 1,' if rescale else ''} on a "
            f"triangle of n = {n} score vectors of three classes; the label is class {label}, the {CORNER_NAMES[label]} corner. "
            f"The first is larger at {np.mean(difference > 0):.0%} of the points and smaller at {np.mean(difference < 0):.0%}; "
            f"the difference runs from {difference.min():.3g} to {difference.max():.3g}."
        ),
        code=Code(
            f"wb.figures.loss_difference(first, second, label={label}, steps={levels[0].steps}, rescale={rescale}{given})",
            [f"first = {in_code}", f"second = {other_in_code}"],
            imports,
        ),
        label=label,
        steps=levels[0].steps,
        value_range=(-reach, reach),
        units="difference, rescaled losses" if rescale else "difference of the losses",
        regions=levels[0].regions,
        diverging=True,
    )


def gallery(
    losses: type[Loss] | Loss | Iterable[type[Loss] | Loss] | None = None,
    label: int = 2,
    K: int = 2,
    steps: int = 51,
    *,
    sampled: bool = False,
) -> Gallery:
    """Level sets of many losses on one sheet: all of the catalogue, unless `losses` says which.

    Args:
        label: The class that is right, 0, 1 or 2.
        steps: Number of points along a side of a triangle.

    A class of losses is shown with sets of `K` ≤ 2 classes and its other knobs at their defaults; a loss is shown as it
    is. Each triangle is rescaled to run from 0 to 1. With `sampled` noise is drawn, as in `level_sets`. A loss of yours
    joins by `losses=(*wb.losses.LOSSES, Mine)`.

    >>> import workbench as wb
    >>> figure = wb.figures.gallery([wb.losses.CrossEntropy, wb.losses.CalibratedTopKHinge(K=1)], steps=11)
    >>> figure.frame.groupby("loss", sort=False).size().to_dict()
    {'CrossEntropy()': 66, 'CalibratedTopKHinge(K=1)': 66}

    Paper: in the manner of Garcin et al. 2022, Figure 1 (K = 2) and Figure 6 (K = 1), whose losses and knobs are other
    ones: `level_sets` says how each of their panels is drawn.
    """
    from workbench.losses import LOSSES

    chosen = listed(LOSSES if losses is None else losses)
    if not chosen:
        raise ValueError("losses is empty; give at least one loss, such as wb.losses.CrossEntropy")
    drawn = [on_three_classes(loss, K) if isinstance(loss, type) else loss for loss in chosen]
    panels = tuple(level_sets(loss, label, steps, sampled=sampled) for loss in drawn)
    n = len(panels[0].frame)
    imports, names = losses_in_code(chosen)
    which = "" if losses is None else f"losses=[{', '.join(names)}], "
    how = ", sampled=True" if sampled else ""
    return Gallery(
        frame=pd.concat([panel.frame.assign(loss=repr(loss)) for panel, loss in zip(panels, drawn, strict=True)])
        .reset_index(drop=True)
        .loc[:, ["loss", "s0", "s1", "s2", "value"]],
        title="What each loss asks for",
        subtitle=f"n = {counted(n, 'score vector')} a triangle, label {label} at the {CORNER_NAMES[label]}; pale is low",
        text=(
            f"Level sets of {counted(len(panels), 'loss', 'losses')} on triangles of n = {n} score vectors of three classes, "
            f"label {label} at the {CORNER_NAMES[label]} corner, each rescaled to run from 0 to 1: "
            f"{'; '.join(map(display_names.of_thing, drawn))}."
        ),
        code=Code(f"wb.figures.gallery({which}label={label}, K={K}, steps={steps}{how})", imports=imports),
        panels=panels,
        captions=tuple(knobs_in_words(loss if sampled else loss.exact(), CAPTION_WIDTH) for loss in drawn),
    )


def simplex_grid(steps: int, total: float = TOTAL) -> np.ndarray:
    """Score vectors s ≥ 0 with s₀ + s₁ + s₂ = total on a triangular grid with `steps` points a side: (n, 3).

    >>> simplex_grid(2).tolist()
    [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    """
    up, right = np.nonzero(np.add.outer(np.arange(steps), np.arange(steps)) < steps)
    return total * np.stack([steps - 1 - up - right, right, up], axis=1) / (steps - 1)


def _in_words(loss: Loss, drawn: Loss, head: str, background: Background | None) -> list[str]:
    """Return notes on how the loss was evaluated."""
    words = ["smoothed exactly"] if drawn is not loss else ["noise drawn once"] if loss.random else []
    words += [HEADS_IN_WORDS[head]] if loss.heads == 2 else []
    return words + ([f"beside {counted(len(background[1]), 'fixed row')}"] if background is not None else [])


def _checked_regions(given: Any) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or given not in (1, 2):
        raise ValueError(f"regions = {given!r}; of three classes a predicted set holds 1 or 2, or None for no outline")
    return int(given)


def _checked_ends(value_range: Any, rescale: bool) -> tuple[float, float] | None:
    if value_range is not None and rescale:
        raise ValueError(f"value_range = {value_range!r} with rescaled values; it needs rescale=False")
    return None if value_range is None else checked_range(value_range)
