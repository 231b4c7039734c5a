"""Paths of gradient descent on the triangle of three scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import checked_positive, counted
from workbench.figures.losses.evaluation import Background, checked_loss, loss_gradients, loss_values
from workbench.figures.losses.landscapes import TOTAL, level_sets, simplex_grid
from workbench.figures.losses.ternary import CORNERS, LevelSets
from workbench.figures.snippet import Code
from workbench.figures.style import LIGHT, Theme
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

    from workbench.losses import Loss

GRID = 7  # points a side, of which those inside are starts


def descent_paths(
    loss: Loss,
    start: Sequence[float] | None = None,
    label: int = 2,
    n_steps: int = 30,
    learning_rate: float = 0.1,
    *,
    steps: int = 101,
    rescale: bool = True,
    head: str = "both",
    background: Background | None = None,
    sampled: bool = False,
    gradients: bool = False,
    regions: int | None = None,
    value_range: tuple[float, float] | None = None,
) -> DescentPaths:
    r"""Paths of projected gradient descent over the level sets of a loss.

    $$s_{t+1} = \Pi_{2 \Delta_3}\bigl(s_t - \eta\, \nabla_s \ell(s_t, y)\bigr)$$

    Args:
        loss: The loss ℓ.
        start: Scores ≥ 0 with sum 2 from which one path begins; None begins paths on a grid of points.
        label: The class y, counted from 0.
        n_steps: Number of steps t.
        learning_rate: Step size η.
        steps: Number of points on a side of the triangle.
        rescale: Rescale the colours to run from 0 to 1.
        head: Head that moves, of a loss with two; as in `level_sets`.
        background: Rows that join the batch of a batch-coupled loss; as in `level_sets`.
        sampled: Draw the noise of a noised loss instead of taking its expectation.
        gradients: Draw arrows downhill.
        regions: Outline where the same K classes are predicted.
        value_range: Ends of the colours without `rescale`.

    Returns:
        Level sets with paths. The frame begins with the grid of the level sets; each further row is a step of a path.

    >>> import workbench as wb
    >>> figure = wb.figures.descent_paths(wb.losses.CrossEntropy(), (1.0, 1.0, 0.0), n_steps=100, learning_rate=0.5)
    >>> figure.frame.iloc[-1][["s0", "s1", "s2"]].tolist()
    [0.0, 0.0, 2.0]
    """
    n_steps = whole_number("n_steps", n_steps, least=0)
    learning_rate = checked_positive("learning_rate", learning_rate)
    options: dict[str, Any] = {"head": head, "background": background, "sampled": sampled, "regions": regions}
    options |= {"gradients": gradients, "value_range": value_range}
    levels = level_sets(loss, label, steps, rescale, **options)
    loss = checked_loss(loss, label, head, background)
    drawn = loss if sampled else loss.exact()
    begins = _inside() if start is None else levels.checked_on_triangle(start)[None]
    walked = _walk(drawn, begins, label, n_steps, learning_rate, head, background)  # (steps + 1, paths, 3)
    values = loss_values(drawn, walked.reshape(-1, 3), label, head, background)
    numbers = np.indices(walked.shape[:2]).reshape(2, -1)
    paths = pd.DataFrame(walked.reshape(-1, 3), columns=["s0", "s1", "s2"])
    paths = paths.assign(value=values, path=numbers[1], step=numbers[0]).sort_values(["path", "step"], kind="stable")
    fell, won = values[-len(begins) :] - values[: len(begins)], walked[-1].argmax(axis=1) == label
    given = {"start": None if start is None else tuple(begins[0].tolist())} | {"n_steps": n_steps}
    options_text = "".join(f", {name}={value!r}" for name, value in (given | {"learning_rate": learning_rate}).items())
    call = levels.code.call.replace("level_sets(loss", f"descent_paths(loss{options_text}", 1)
    n_paths = counted(len(begins), "path")
    parts = {field.name: getattr(levels, field.name) for field in fields(levels)}
    parts |= {
        "frame": pd.concat([levels.frame, paths], ignore_index=True),
        "subtitle": f"{levels.subtitle}; {n_paths} of {counted(n_steps, 'step')}, η = {learning_rate:g}",
        "text": f"{levels.text} {n_paths} of gradient descent with η = {learning_rate:g}: after {counted(n_steps, 'step')} the "
        f"loss has changed by {fell.mean():.3g} on average, and the label has the largest score in {won.sum()} of {len(won)}.",
        "code": Code(call, levels.code.setup, levels.code.imports),
    }
    return DescentPaths(**parts)


def _inside() -> np.ndarray:
    """Starts on a grid, none of them on the border."""
    grid = simplex_grid(GRID, TOTAL)
    return grid[(grid > 0).all(axis=1)]


def _walk(
    loss: Loss, begins: np.ndarray, label: int, n_steps: int, rate: float, head: str, background: Background | None
) -> np.ndarray:
    """The scores after each step, (steps + 1, paths, 3)."""
    walked = [begins]
    for _ in range(n_steps):
        walked.append(_projected(walked[-1] - rate * loss_gradients(loss, walked[-1], label, head, background)))
    return np.stack(walked)


def _projected(scores: np.ndarray) -> np.ndarray:
    """The nearest points of the triangle: sparsemax is the projection onto the simplex."""
    import torch

    from workbench.operators import sparsemax

    projected: np.ndarray = TOTAL * sparsemax(torch.from_numpy(scores / TOTAL)).numpy()
    return projected


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class DescentPaths(LevelSets):
    """Level sets, and above them the paths with a ring where each begins and a dot where it ends."""

    def paths(self) -> list[np.ndarray]:
        """Each path in the plane of the picture, (steps + 1, 2)."""
        walked = self.frame.dropna(subset=["path"])
        return [part[["s0", "s1", "s2"]].to_numpy() / TOTAL @ CORNERS for _, part in walked.groupby("path")]

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = super()._plotly(theme)
        gap = np.full((1, 2), np.nan)
        x, y = np.concatenate([np.vstack([path, gap]) for path in self.paths()]).T
        for colour, width in ((LIGHT.paper, 4.5), (LIGHT.ink, 2)):
            figure.add_scatter(x=x, y=y, mode="lines", line={"color": colour, "width": width}, hoverinfo="skip")
        begins, ends = (np.stack([path[at] for path in self.paths()]) for at in (0, -1))
        rim = {"color": LIGHT.ink, "width": 1.6}
        for places, fill in ((begins, LIGHT.paper), (ends, LIGHT.ink)):
            marker = {"color": fill, "size": 9, "line": rim | ({} if fill == LIGHT.paper else {"color": LIGHT.paper})}
            figure.add_scatter(x=places[:, 0], y=places[:, 1], mode="markers", marker=marker, hoverinfo="skip")
        return figure

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = super()._matplotlib(theme)
        axes = figure.axes[0]
        for path in self.paths():
            axes.plot(*path.T, color=LIGHT.paper, linewidth=3, zorder=3)
            axes.plot(*path.T, color=LIGHT.ink, linewidth=1.2, zorder=3)
            for place, fill in ((path[0], LIGHT.paper), (path[-1], LIGHT.ink)):
                axes.plot(*place, "o", color=fill, markeredgecolor=LIGHT.ink, markersize=4.5, zorder=3)
        return figure
