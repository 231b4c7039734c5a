"""A loss at several values of one knob, side by side: a film that can be printed."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench import display_names
from workbench.figures.base import counted, round_range
from workbench.figures.losses.evaluation import checked_loss, losses_in_code
from workbench.figures.losses.galleries import Gallery
from workbench.figures.losses.landscapes import level_sets
from workbench.figures.losses.ternary import CORNER_NAMES
from workbench.figures.snippet import Code
from workbench.knobs import format_value

if TYPE_CHECKING:
    from workbench.losses import Loss

FRAMES = 5  # triangles of a strip


def filmstrip(
    loss: Loss,
    knob: str,
    values: Iterable[float] | None = None,
    label: int = 2,
    steps: int = 51,
    *,
    rescale: bool = True,
    sampled: bool = False,
) -> Gallery:
    """Level sets of a loss while one knob moves and the others rest.

    Args:
        loss: The loss.
        knob: Name of the knob that moves, such as "epsilon".
        values: Its values, one for each triangle; without them about five around the present one.
        label: The class that is right, 0, 1 or 2.
        steps: Number of points along a side of a triangle.
        rescale: Rescale each triangle to run from 0 to 1; otherwise all have one colour scale.
        sampled: Draw the noise of a noised loss instead of taking its expectation.

    Returns:
        A figure whose frame has the value of the knob in the column of its name.

    >>> import workbench as wb
    >>> figure = wb.figures.filmstrip(wb.losses.NoisedTopK(K=1), "epsilon", (0.1, 1.0), steps=11)
    >>> figure.frame.groupby("epsilon").size().to_dict()
    {0.1: 66, 1.0: 66}
    """
    loss = checked_loss(loss, label)
    declared = type(loss).knobs()
    if knob not in declared or not declared[knob].numeric:
        numeric = [name for name, each in declared.items() if each.numeric]
        raise ValueError(f"knob = {knob!r}; {loss.title} has {', '.join(numeric) or 'no knob that can move'}")
    moved = _values(loss, knob) if values is None else [_plain(value) for value in values]
    if not moved:
        raise ValueError(f"values is empty; give at least one value of {knob}")
    films = [dataclasses.replace(loss, **{knob: value}) for value in moved]
    panels = [level_sets(each, label, steps, rescale, sampled=sampled) for each in films]
    if not rescale:
        ends = round_range(min(panel.value_range[0] for panel in panels), max(panel.value_range[1] for panel in panels))
        panels = [dataclasses.replace(panel, value_range=ends) for panel in panels]
    symbol, n = declared[knob].symbol or knob, len(panels[0].frame)
    words = [f"{symbol} = {format_value(value)}" for value in moved]
    imports, (name,) = losses_in_code([loss])
    options = f"{'' if rescale else ', rescale=False'}{', sampled=True' if sampled else ''}"
    drawn = loss if sampled else loss.exact()
    resting = {name: value for name, value in drawn.settings().items() if name != knob}
    rest = ", ".join(
        f"{type(drawn).knobs()[name].symbol or name} = {format_value(value)}" for name, value in resting.items()
    )
    scale = "each rescaled to run from 0 to 1" if rescale else "with one colour scale"
    return Gallery(
        frame=pd.concat(
            [panel.frame.assign(**{knob: value}) for panel, value in zip(panels, moved, strict=True)], ignore_index=True
        ),
        title=f"{loss.title} along {symbol}",
        subtitle=", ".join(
            filter(
                None, (f"n = {counted(n, 'score vector')} a triangle", rest, f"label {label}, {CORNER_NAMES[label]}")
            )
        ),
        text=(
            f"Level sets of {display_names.of_thing(loss)} on {counted(len(panels), 'triangle')} of n = {n} score vectors of "
            f"three classes, {scale}, label {label} at the {CORNER_NAMES[label]} corner: {'; '.join(words)}."
        ),
        code=Code(
            f"wb.figures.filmstrip(loss, {knob!r}, {moved}, label={label}, steps={steps}{options})",
            [f"loss = {name}"],
            imports,
        ),
        panels=tuple(dataclasses.replace(panel, title=caption) for panel, caption in zip(panels, words, strict=True)),
        captions=("",) * len(panels),
    )


def _values(loss: Loss, knob: str) -> list[Any]:
    """Values around the present one, as far apart as a tenth of the slider; of K, what three classes allow."""
    if knob == "K":
        return [1, 2]
    declared = type(loss).knobs()[knob]
    grid = declared.values()
    present = declared.nearest(grid, getattr(loss, knob))
    places = present + len(grid) // 10 * np.arange(-(FRAMES // 2), FRAMES // 2 + 1)
    values: list[Any] = grid[np.unique(places.clip(0, len(grid) - 1))].tolist()
    return values


def _plain(value: Any) -> Any:
    """A number of NumPy's as Python's own."""
    return value.item() if isinstance(value, np.generic) else value
