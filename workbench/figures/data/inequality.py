"""Inequality of the class frequencies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from numpy.typing import ArrayLike

from workbench.class_counts import checked_counts, gini, lorenz_curve
from workbench.figures.base import Figure, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

RAREST = 0.8  # the share of classes whose images Pl@ntNet-300K is known for: they hold 11 %


def lorenz(class_counts: ArrayLike, unit: str = "training row") -> Lorenz:
    """Lorenz curve of a training set: the share of images that the rarest classes hold.

    `class_counts` are the training rows of each class, or other things that `unit` names.
    A balanced set follows the diagonal; the rarest 80 % of the
    species of Pl@ntNet-300K hold 11 % of the images.

    >>> lorenz([1, 1, 2]).frame["share_of_images"].tolist()
    [0.0, 0.25, 0.5, 1.0]

    Paper: Garcin, thesis, Section 3.
    """
    counts = np.sort(checked_counts(class_counts))
    share_of_classes, share_of_images = lorenz_curve(counts)
    held = float(np.interp(RAREST, share_of_classes, share_of_images))
    n, n_classes = int(counts.sum()), counts.size
    return Lorenz(
        frame=pd.DataFrame(
            {
                "share_of_classes": share_of_classes,
                "share_of_images": share_of_images,
                "count": np.concatenate([[0], counts]),
            }
        ),
        title="How unequal the classes are",
        subtitle=f"n = {counted(n, unit)} of {counted(n_classes, 'class', 'classes')}",
        text=(
            f"Lorenz curve of n = {counted(n, unit)} of {n_classes} classes. The rarest {RAREST:.0%} of the classes hold "
            f"{held:.1%} of them; the rarest class has {counts[0]}, the most frequent {counts[-1]}. "
            f"Gini coefficient {gini(counts):.2f} (0: all classes equal)."
        ),
        code=Code(
            f"wb.figures.lorenz(class_counts{_given(unit)})", [f"class_counts = {np.asarray(class_counts).tolist()}"]
        ),
        held=held,
        unit=unit,
    )


def _given(unit: str) -> str:
    return "" if unit == "training row" else f", unit={unit!r}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Lorenz(Figure):
    """The curve, the diagonal of equal classes, and what the rarest 80 % hold."""

    held: float  # share of images of the rarest 80 % of classes
    unit: str = "training row"

    @property
    def _note(self) -> str:
        return f"the rarest {RAREST:.0%} of classes\nhold {self.held:.0%} of the {self.unit.split()[-1]}s"

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = go.Figure()
        diagonal = {"color": theme.muted, "dash": "dash", "width": 1.5}
        figure.add_scatter(x=[0, 1], y=[0, 1], mode="lines", line=diagonal, hoverinfo="skip")
        figure.add_scatter(
            x=self.frame["share_of_classes"],
            y=self.frame["share_of_images"],
            customdata=self.frame["count"],
            mode="lines",
            fill="tozeroy",
            line={"color": theme.accent, "width": 3},
            hovertemplate="rarest %{x:.1%} of classes<br>%{y:.1%} of them<br>up to %{customdata} a class<extra></extra>",
        )
        mark = {"color": theme.threshold, "size": 11, "line": {"color": theme.paper, "width": 2}}
        figure.add_scatter(x=[RAREST], y=[self.held], mode="markers", marker=mark, hoverinfo="skip")
        figure.add_annotation(
            x=RAREST,
            y=self.held,
            text=self._note.replace("\n", "<br>"),
            ax=-90,
            ay=-50,
            align="right",
            arrowcolor=theme.muted,
            bgcolor=theme.paper,  # where there is little room it lies on the diagonal
        )
        figure.add_annotation(
            x=0.5, y=0.5, xshift=-10, yshift=6, xanchor="right", yanchor="bottom",  # above the line, however steep it is
            text="all classes equal", showarrow=False, font_color=theme.muted,
        )  # fmt: skip
        figure.update_xaxes(range=(0, 1), tickformat=".0%", title="share of classes, rarest first", constrain="domain")
        figure.update_yaxes(range=(0, 1), tickformat=".0%", title=f"share of {self.unit}s")
        return figure.update_layout(showlegend=False, height=460)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn
        from matplotlib.ticker import PercentFormatter

        figure = paper(5.6, 4.8)
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], linestyle="--", color=theme.muted, linewidth=1.2)
        axes.fill_between(self.frame["share_of_classes"], self.frame["share_of_images"], color=theme.accent, alpha=0.25)
        seaborn.lineplot(
            self.frame,
            x="share_of_classes",
            y="share_of_images",
            color=theme.accent,
            linewidth=2.5,
            ax=axes,
            errorbar=None,
        )
        axes.plot(RAREST, self.held, "o", color=theme.threshold, markeredgecolor=theme.paper, markersize=9)
        axes.annotate(
            self._note,
            (RAREST, self.held),
            xytext=(-30, 36),
            textcoords="offset points",
            ha="right",
            arrowprops={"arrowstyle": "-", "color": theme.muted},
        )
        axes.text(0.48, 0.52, "all classes equal", color=theme.muted, ha="right", va="bottom")
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="share of classes, rarest first", ylabel=f"share of {self.unit}s")
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        return figure
