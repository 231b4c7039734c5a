"""The moat: K classes sit so far above the rest that a noised top-K loss neither pulls a label across nor pushes them down."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Figure, checked_positive, counted, paper
from workbench.figures.losses.evaluation import loss_gradients
from workbench.figures.losses.profiles import DASHES
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.tables.checks import array_of
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST_EPSILONS = 5
TOLD_AT = 2.0  # the gap whose numbers the text tells
# Column of the frame → what it is.
PANELS = {"pull": "pull on the label, upwards", "push": "push on the sitting classes, downwards"}
WITHOUT_NOISE = ("top-K hinge", "cross-entropy")


def moat(
    epsilons: Sequence[float] = (0.05, 0.2, 1.0, 3.0),
    K: int = 5,
    *,
    n_classes: int = 20,
    lead: float = 1.0,
    reach: float = 5.0,
    steps: int = 101,
) -> Moat:
    r"""Exact gradients on a label across the gap below the K best classes, and on those classes.

    Args:
        epsilons: The values of ε, one line each.
        K: How many classes sit at the top; they are equal, and the gap above the label.
        n_classes: How many classes there are; all but those and the label are equal, and `lead` below the label.
        reach: The widest gap; `steps`: number of gaps.

    $$-\frac{\partial \ell}{\partial s_y} = 1 - P(y \text{ holds place } K+1), \qquad
      \sum_{\text{sitting } j} \frac{\partial \ell}{\partial s_j} = P(\text{one of them holds place } K+1)$$

    The noised loss pushes the holder of place K + 1 only. With little noise that is never one of the K that sit beyond the
    gap, so they stay; and a label that has risen above the rest holds the place itself, so its pull and its push cancel.
    That, and not the number of classes with a gradient, is what little noise lacks: the top-K hinge moves two classes and
    reaches across, for of the classes other than the label it pushes the K-th, which sits. Whether a network then learns is
    another question, which docs/epsilon.md asks.

    >>> at_two = moat(epsilons=(0.2, 3.0)).frame.query("gap == 2").set_index("line")
    >>> at_two["pull"].round(3).to_dict()
    {'ε = 0.2': 0.002, 'ε = 3': 0.943, 'top-K hinge': 1.0, 'cross-entropy': 0.977}

    The noised loss is that of Garcin et al. 2022, Eq. 8.
    """
    from workbench.losses import CrossEntropy, ExactNoisedTopK, TopKHinge

    given = np.atleast_1d(array_of(epsilons).astype(float))
    if given.ndim != 1 or not 1 <= len(given) <= MOST_EPSILONS or not (np.isfinite(given) & (given > 0)).all():
        raise ValueError(f"epsilons = {epsilons!r}; give 1 to {MOST_EPSILONS} numbers above 0")
    n_classes, steps = whole_number("n_classes", n_classes, least=3), whole_number("steps", steps, least=2)
    if isinstance(K, bool) or not isinstance(K, numbers.Integral) or not 1 <= K <= n_classes - 2:
        raise ValueError(f"K = {K!r} with {n_classes} classes; give a whole number from 1 to {n_classes - 2}")
    K, lead, reach = int(K), checked_positive("lead", lead), checked_positive("reach", reach)
    gaps = np.linspace(0, reach, steps)
    scores = np.full((steps, n_classes), -lead)
    scores[:, 0], scores[:, 1 : K + 1] = 0.0, gaps[:, None]  # the label, then the classes that sit
    noised = {f"ε = {epsilon:g}": (epsilon, ExactNoisedTopK(K=K, epsilon=epsilon)) for epsilon in given.tolist()}
    without = dict(zip(WITHOUT_NOISE, ((np.nan, TopKHinge(K=K)), (np.nan, CrossEntropy())), strict=True))
    parts = []
    for line, (epsilon, loss) in {**noised, **without}.items():
        gradients = loss_gradients(loss, scores, 0)
        pull, push = -gradients[:, 0], gradients[:, 1 : K + 1].sum(axis=1)
        parts.append(pd.DataFrame({"line": line, "epsilon": epsilon, "gap": gaps, "pull": pull, "push": push}))
    frame = pd.concat(parts, ignore_index=True)
    nearest = gaps[np.abs(gaps - TOLD_AT).argmin()]
    summary = "; ".join(
        f"{row.line}: pull {row.pull:.2g}, push {row.push:.2g}" for row in frame[frame["gap"] == nearest].itertuples()
    )
    return Moat(
        frame=frame,
        title="Why small ε stalls: the gap below the K best classes",
        subtitle=f"n = {counted(steps, 'gap')}, K = {K} of {n_classes} classes sit, the label is {lead:g} above the rest",
        text=(
            f"Gradients at n = {steps} gaps from 0 to {reach:g} between {K} classes that sit at the top and the label at place "
            f"{K + 1} of {n_classes}, {lead:g} above the rest. At a gap of {nearest:g}, the pull on the label and the push on "
            f"all sitting classes together: {summary}."
        ),
        code=Code(
            f"wb.figures.moat(epsilons={tuple(given.tolist())!r}, K={K}, n_classes={n_classes}, lead={lead!r}, "
            f"reach={reach!r}, steps={steps})"
        ),
        K=K,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Moat(Figure):
    """Two panels over the same gaps: what the label feels, and what the sitting classes feel."""

    K: int
    columns: int = len(PANELS)

    def narrow(self) -> Moat:
        """The two panels below one another."""
        return replace(self, columns=1)

    def looks(self, theme: Theme) -> list[tuple[str, str, str]]:
        """(line, colour, dash): noise in colours, losses without it grey."""
        noised = [line for line in self.frame["line"].unique() if line not in WITHOUT_NOISE]
        looks = [(line, theme.categories[place], "solid") for place, line in enumerate(noised)]
        return looks + [(line, theme.muted, dash) for line, dash in zip(WITHOUT_NOISE, ("dash", "dot"), strict=True)]

    @property
    def x_title(self) -> str:
        return f"gap between place {self.K} and place {self.K + 1}"

    def _plotly(self, theme: Theme) -> go.Figure:
        lines = len(PANELS) // self.columns
        figure = make_subplots(lines, self.columns, horizontal_spacing=0.18, vertical_spacing=0.22)
        for line, colour, dash in self.looks(theme):
            part = self.frame[self.frame["line"] == line]
            for place, column in enumerate(PANELS):
                figure.add_scatter(
                    x=part["gap"], y=part[column], mode="lines", name=line, legendgroup=line, showlegend=place == 0,
                    line={"color": colour, "dash": dash, "width": 3},
                    hovertemplate=f"gap %{{x:.3g}}<br>{column} %{{y:.3f}}<extra>{line}</extra>",
                    row=place // self.columns + 1, col=place % self.columns + 1,
                )  # fmt: skip
        figure.update_xaxes(range=(0, self.frame["gap"].max()), title=self.x_title)
        figure.update_yaxes(range=(-0.03, 1.05))
        for place, name in enumerate(PANELS.values()):
            figure.update_yaxes(title=name, row=place // self.columns + 1, col=place % self.columns + 1)
        below = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.2, "yanchor": "top"}
        return figure.update_layout(height=140 + 320 * lines, legend=below)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(7.6, 3.8)
        for axes, (column, name) in zip(figure.subplots(1, 2, sharey=True), PANELS.items(), strict=True):
            for line, colour, dash in self.looks(theme):
                part = self.frame[self.frame["line"] == line]
                axes.plot(part["gap"], part[column], color=colour, linestyle=DASHES[dash], linewidth=2.2, label=line)
            axes.set(xlim=(0, self.frame["gap"].max()), ylim=(-0.03, 1.05), xlabel=self.x_title)
            axes.set_title(name, fontsize=10.5, loc="left")
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside lower left", ncols=6)
        return figure
