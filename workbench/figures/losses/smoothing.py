"""Effect of noise on top-K: how many classes have a gradient, and theory against measurement."""

from __future__ import annotations

import dataclasses
import numbers
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench import display_names
from workbench.figures.base import Figure, counted, paper
from workbench.figures.losses.evaluation import checked_loss, listed, loss_gradients, losses_in_code, scores_moved
from workbench.figures.losses.profiles import MOST_LINES, Lines, few_ticks, logarithmic
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.gradient_sparsity import ROUNDING
from workbench.row_sampling import evenly_spaced_rows
from workbench.tables import LogitTable
from workbench.tables.checks import array_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

    from workbench.losses import Loss

EXAMPLE = (2.4, 2.6, 2.3, 0.5)  # the score vector of Garcin et al. 2022, Section 3.2
MOST_ROWS = 200  # of a table: enough for a mean


def gradient_sparsity(
    losses: Loss | Sequence[Loss],
    scores: Any = EXAMPLE,
    labels: Any = None,
    epsilons: Sequence[float] | None = None,
) -> Lines:
    """Number of classes with a gradient as the noise ε of a loss grows: mean over rows with any.

    Args:
        losses: One loss or several.
        epsilons: The values of ε along the axis; 0.001 to 10 without them.

    `scores` is one score vector, an array (n, L), or a `LogitTable`, of which at most 200 rows are taken, spread evenly.
    `labels` are those of the rows of an array (without them, each row's lowest score); a table has its own. Each loss is
    drawn as it trains, its noise with a fixed seed; one without ε is a level line. With n_samples draws at most
    n_samples + 1 classes move, however large ε: that is why the gradient stays sparse. Exact smoothing has no such cap. How
    many classes move does not decide whether a network learns; which ones do, does (`moat`). A
    gradient below a billionth of the row's largest is rounding and does not count. In the frame `rows` is the share of
    rows with a gradient; the others beat their margin.

    >>> import workbench as wb
    >>> figure = gradient_sparsity(wb.losses.NoisedTopK(K=1, n_samples=3), epsilons=(0.001, 10))
    >>> figure.frame["classes"].tolist()
    [2.0, 3.0]

    Paper: Garcin et al. 2022, Figure 2, which is of the rows of a first epoch of training on CIFAR-100, with three draws;
    here it is of the scores that are given.
    """
    chosen = listed(losses)
    grid = np.geomspace(1e-3, 10, 17).round(6) if epsilons is None else np.asarray(epsilons, float)
    if not 1 <= len(chosen) <= MOST_LINES:
        raise ValueError(f"there are {len(chosen)} losses; a picture holds 1 to {MOST_LINES}")
    rows, of_rows, named = _rows(scores, labels)
    for loss in chosen:
        checked_loss(loss, n_classes=rows.shape[1])
    if not any("epsilon" in loss.knobs() for loss in chosen):
        raise ValueError(f"none of {', '.join(map(repr, chosen))} has an ε; give at least one noised loss")
    if grid.ndim != 1 or len(grid) < 2 or not (np.isfinite(grid) & (grid > 0)).all() or (np.diff(grid) <= 0).any():
        raise ValueError(f"epsilons = {epsilons!r}; give at least two rising numbers above 0")
    frames = []
    for loss in chosen:
        moved = np.array([scores_moved(loss_gradients(at, rows, of_rows)) for at in _at(loss, grid)])
        learning = (moved > 0).mean(axis=1)  # (ε,)
        classes = np.where(learning > 0, moved.mean(axis=1) / np.maximum(learning, 1e-12), np.nan)
        part = {"epsilon": grid, **{"classes": classes, "rows": learning}}
        frames.append(
            pd.DataFrame({"loss": _named(loss), **{k: np.broadcast_to(v, len(grid)) for k, v in part.items()}})
        )
    frame = pd.concat(frames, ignore_index=True)
    imports, names = losses_in_code(chosen)
    ends = "; ".join(
        f"{part['loss'].iloc[0]} from {_number(part['classes'].iloc[0])} to {_number(part['classes'].iloc[-1])}"
        for part in frames
    )
    n, n_classes = rows.shape
    return Lines(
        frame=frame,
        title="How many classes get a gradient",
        subtitle=f"n = {counted(n, 'row')} of {n_classes} classes; mean over the rows with a gradient",
        text=(
            f"Number of non-zero gradient coordinates of {n_classes}, a mean over those of n = {n} rows with a gradient, "
            f"while ε runs from {grid[0]:g} to {grid[-1]:g}: {ends}."
        ),
        code=Code(
            "wb.figures.gradient_sparsity(losses, scores, labels, epsilons)",
            [f"losses = [{', '.join(names)}]", named, f"epsilons = {grid.tolist()}"],
            imports,
        ),
        x="epsilon",
        x_title="ε, scale of the noise",
        y="classes",
        y_title="classes with a gradient",
        logarithmic=True,
        value_range=(0.9, 1.3 * n_classes),
    )


def _named(loss: Loss) -> str:
    """The loss as the legend has it: its ε is on the axis."""
    return re.sub(r", ε = [^,]+", "", display_names.of_thing(loss))


def _number(value: float) -> str:
    return "none" if np.isnan(value) else f"{value:.3g}"


def _at(loss: Loss, grid: np.ndarray) -> list[Any]:
    """The loss at every ε, or once if it has none."""
    return [dataclasses.replace(loss, epsilon=float(e)) for e in grid] if "epsilon" in loss.knobs() else [loss]  # type: ignore[call-arg]


def _rows(scores: Any, labels: Any) -> tuple[np.ndarray, np.ndarray, str]:
    """Scores (n, L) and labels (n,), and the line of code that gives them."""
    if isinstance(scores, LogitTable):
        if scores.many_labels:
            raise ValueError("the table has many labels a row; a top-K loss reads one")
        if labels is not None:
            raise ValueError("a table has labels of its own, which are taken; give it alone, or its scores with labels")
        code = f"scores, labels = table, None  # a table of {scores.n} rows of {scores.n_classes} classes"
        scores = scores.labelled_rows()
        chosen = evenly_spaced_rows(scores.n, MOST_ROWS)
        return np.array(scores.scores[chosen], np.float64), scores.checked_labels()[chosen], code
    rows = np.atleast_2d(array_of(scores).astype(float))
    of_rows = rows.argmin(axis=1) if labels is None else np.atleast_1d(array_of(labels))
    if rows.ndim != 2 or of_rows.shape != (len(rows),) or not np.isfinite(rows).all():
        raise ValueError(f"scores of shape {rows.shape} with labels of shape {of_rows.shape}; give (n, L) and (n,)")
    code = f"scores, labels = {rows.tolist()}, {of_rows.tolist()}"
    if rows.size > 100:
        code = f"# scores: an array of shape {rows.shape}; labels: its labels"
    return rows, of_rows, code


def smoothing_bounds(
    scores: Sequence[float] = EXAMPLE, K: int = 2, epsilons: Sequence[float] | None = None
) -> SmoothingBounds:
    r"""Proved bounds on top-K under Gaussian noise beside values measured at a score vector.

    Args:
        scores: The score vector whose K-th largest is smoothed.
        K: Which place, counted from 1.
        epsilons: The values of ε along the axis; 0.01 to 10 without them.

    $$|\mathrm{top}_{K,\varepsilon} - \mathrm{top}_K| \le \varepsilon K \sqrt{2 \log L}, \quad
      \|\nabla^2 \mathrm{top}_{K,\varepsilon}\| \le \tfrac{4 \sqrt{KL}}{\varepsilon}, \quad
      \|\nabla \mathrm{top}\Sigma_{K,\varepsilon}\| \le \sqrt K, \quad
      \|\nabla^2 \mathrm{top}\Sigma_{K,\varepsilon}\| \le \tfrac{\sqrt{KL}}{\varepsilon}$$

    L is the number of classes. The expectation is computed without sampling, its second derivatives by differences of
    exact gradients. The bounds hold for every score vector, so one of them may be far below. A measurement that rounding
    puts above its bound, by a billionth of it at most, is reported as the bound.

    >>> frame = smoothing_bounds(epsilons=(0.1, 1.0)).frame
    >>> bool((frame["measured"] <= frame["bound"]).all())
    True

    Paper: Garcin et al. 2022, Propositions 3.3 and 3.5.
    """
    s, grid = (
        array_of(scores).astype(float),
        np.geomspace(0.01, 10, 31).round(6) if epsilons is None else np.array(epsilons),
    )
    if s.ndim != 1 or len(s) < 2 or not np.isfinite(s).all():
        raise ValueError(f"scores of shape {s.shape}; give one score vector of at least two classes")
    L = len(s)
    if isinstance(K, bool) or not isinstance(K, numbers.Integral) or not 1 <= K < L:
        raise ValueError(f"K = {K!r} with {L} classes; give a whole number from 1 to {L - 1}")
    if grid.ndim != 1 or len(grid) < 2 or not (np.isfinite(grid) & (grid > 0)).all() or (np.diff(grid) <= 0).any():
        raise ValueError(f"epsilons = {epsilons!r}; give at least two rising numbers above 0")
    hard = np.sort(s)[-K]
    rows = []
    for epsilon in grid.tolist():
        kth, of_kth = _smoothed(s, K, epsilon, sums=False)
        _, of_sum = _smoothed(s, K, epsilon, sums=True)
        slope, curvature = _slope_and_curvature(of_sum, s, epsilon)
        found = {
            "|top-K smoothed − top-K|": (abs(kth - hard), epsilon * K * np.sqrt(2 * np.log(L))),
            "curvature of top-K": (_slope_and_curvature(of_kth, s, epsilon)[1], 4 * np.sqrt(K * L) / epsilon),
            "slope of the top-K sum": (slope, np.sqrt(K)),
            "curvature of the top-K sum": (curvature, np.sqrt(K * L) / epsilon),
        }
        rows += [(name, epsilon, measured, bound) for name, (measured, bound) in found.items()]
    frame = pd.DataFrame(rows, columns=["quantity", "epsilon", "measured", "bound"])
    only_rounding = (frame["measured"] > frame["bound"]) & (frame["measured"] <= (1 + ROUNDING) * frame["bound"])
    frame["measured"] = frame["measured"].mask(only_rounding, frame["bound"])
    closest = (frame["measured"] / frame["bound"]).groupby(frame["quantity"], sort=False).max()
    first = ", ".join([*(f"{score:g}" for score in s[:6]), *["…"] * (L > 6)])
    summary = ", ".join(f"{name} {share:.2g}" for name, share in closest.items())
    return SmoothingBounds(
        frame=frame,
        title="Smoothed top-K: bounds and measurements",
        subtitle=f"n = {counted(len(grid), 'value')} of ε, K = {K}, L = {L}, measured at s = ({first})",
        text=(
            f"Four quantities of the smoothed top-{K} of {L} scores at n = {len(grid)} values of ε from {grid[0]:g} to "
            f"{grid[-1]:g}, each below its bound. The largest measured shares of a bound: {summary}."
        ),
        code=Code(
            f"wb.figures.smoothing_bounds(scores, K={K}, epsilons=epsilons)",
            [f"scores, epsilons = {tuple(s.tolist())}, {grid.tolist()}"],
        ),
    )


def _smoothed(s: np.ndarray, K: int, epsilon: float, *, sums: bool) -> tuple[float, Any]:
    """The value at s of the smoothed top-K (or of the sum of the K largest), and the function that gives gradients."""
    import torch

    from workbench.operators import exact_noised_kth_largest

    def value(points: Any) -> Any:
        ranks = range(1, K + 1) if sums else (K,)
        return sum(exact_noised_kth_largest(points, rank, epsilon) for rank in ranks)

    def gradient(points: np.ndarray) -> np.ndarray:
        tensor = torch.tensor(points, requires_grad=True)
        return torch.autograd.grad(value(tensor).sum(), tensor)[0].numpy()

    return float(value(torch.tensor(s))), gradient


def _slope_and_curvature(gradient: Any, s: np.ndarray, epsilon: float) -> tuple[float, float]:
    """‖∇f(s)‖ and the spectral norm of ∇²f(s), the latter by central differences of the gradient."""
    step = 1e-3 * epsilon
    around = gradient(np.concatenate([s + step * np.eye(len(s)), s - step * np.eye(len(s)), s[None]]))
    hessian = (around[: len(s)] - around[len(s) : -1]) / (2 * step)
    return float(np.linalg.norm(around[-1])), float(np.linalg.norm(hessian, 2))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SmoothingBounds(Figure):
    """One panel for each quantity: the measurement as a line, its bound dashed above it."""

    columns: int = 2

    def narrow(self) -> SmoothingBounds:
        """The panels below one another."""
        return replace(self, columns=1)

    def panels(self) -> list[tuple[str, pd.DataFrame, tuple[float, float]]]:
        """(quantity, its part of the frame, decades of its axis): at most four below the lowest bound."""
        parts = self.frame.groupby("quantity", sort=False)
        found = []
        for name, part in parts:
            low, high = np.log10(part["bound"].min()), np.log10(part["bound"].max())
            lowest = np.log10(part["measured"].clip(lower=10 ** (low - 4)).min())
            found.append((str(name), part, (float(np.floor(lowest)), float(np.ceil(high + 0.1)))))
        return found

    def _plotly(self, theme: Theme) -> go.Figure:
        names = [f"<b>{name}</b>" for name, *_ in self.panels()]
        lines = len(names) // self.columns
        spacing = {"vertical_spacing": 0.4 / lines, "horizontal_spacing": 0.12}
        figure = make_subplots(lines, self.columns, subplot_titles=names, **spacing)
        ends = np.log10([self.frame["epsilon"].min(), self.frame["epsilon"].max()]).tolist()
        for place, (_, part, decades) in enumerate(self.panels()):
            where = {"row": place // self.columns + 1, "col": place % self.columns + 1}
            last = place // self.columns == lines - 1
            for column, colour, dash in (("bound", theme.miss, "dash"), ("measured", theme.accent, "solid")):
                figure.add_scatter(
                    x=part["epsilon"],
                    y=part[column].where(part[column] > 0),
                    mode="lines",
                    name=column,
                    showlegend=place == 0,
                    line={"color": colour, "dash": dash, "width": 3},
                    hovertemplate="ε %{x:.3g}<br>%{y:.3g}<extra>" + column + "</extra>",
                    **where,
                )
            figure.update_xaxes(type="log", dtick=1, range=ends, title="ε" if last else None, **where)
            ticks = (
                {"tickvals": few_ticks((10 ** decades[0], 10 ** decades[1]))} if np.diff(decades) < 3 else {"dtick": 2}
            )
            figure.update_yaxes(type="log", range=decades, exponentformat="power", tickfont_size=12, **ticks, **where)
        return figure.update_layout(height=160 + 200 * lines, margin={"t": 122}, legend={"y": 1.1})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn

        figure = paper(7.4, 6.2)
        for axes, (name, part, decades) in zip(figure.subplots(2, 2).flat, self.panels(), strict=True):
            for column, colour, dash in (("bound", theme.miss, "--"), ("measured", theme.accent, "-")):
                shown = part[part[column] > 0]
                looks = {"color": colour, "linestyle": dash, "linewidth": 2.2, "label": column, "errorbar": None}
                seaborn.lineplot(shown, x="epsilon", y=column, ax=axes, **looks)
            axes.set(ylim=(10 ** decades[0], 10 ** decades[1]), xlabel="ε", ylabel="")
            logarithmic(axes)
            axes.set_title(name, fontsize=10.5)
            axes.legend(loc="lower right") if axes is figure.axes[0] else axes.get_legend().remove()
        return figure
