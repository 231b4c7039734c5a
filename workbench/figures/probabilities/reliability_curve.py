"""Reliability without bins: accuracy as a rising function of confidence, with the density of confidences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.base import Figure, counted, paper
from workbench.figures.probabilities.reliability import BAND, COUNTS, DIAGRAM, LUCK
from workbench.figures.snippet import Code
from workbench.figures.style import Theme, translucent
from workbench.metrics import confidence_decomposition
from workbench.metrics import reliability_curve as curve_of
from workbench.tables import LogitTable, checked_table
from workbench.validation import whole_number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

ENDS = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)  # of the axis of densities


def reliability_curve(table: LogitTable, K: int = 1) -> ReliabilityCurve:
    """Reliability curve without bins: isotonic accuracy against confidence, its band, and the density of confidences.

    Args:
        table: The rows, with their scores and labels.
        K: Number of most probable classes of each row that are judged.

    The curve is the rising function nearest to "is it right?" (`wb.metrics.reliability_curve`). Below the diagonal the network
    is over-confident. At each confidence the band holds the curve with probability 90 % if the confidences are right.
    Of one class a row the caption names miscalibration and discrimination, the parts of the Brier score that the curve shows
    (`wb.metrics.confidence_decomposition`).

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.75, 0.25]] * 4, labels=[0, 0, 0, 1])
    >>> reliability_curve(table).frame.dropna()[["confidence", "accuracy"]].to_numpy().tolist()
    [[0.75, 0.75]]

    Paper: Dimitriadis, Gneiting & Jordan 2021.
    """
    K = whole_number("K", K)
    frame = curve_of(checked_table(table), K=K, band=BAND)
    n, inside = int(np.count_nonzero(table.known)), frame.dropna()
    outside = ~inside["accuracy"].between(inside["band_low"], inside["band_high"])
    share = float(np.average(outside, weights=inside["density"])) if len(inside) else 0.0
    judged = "likeliest class" if K == 1 else f"{K} likeliest classes"
    parts = confidence_decomposition(table) if K == 1 else {}
    shown = (
        "; " + ", ".join(f"{name} {parts[name]:.3f}" for name in ("miscalibration", "discrimination")) if parts else ""
    )
    return ReliabilityCurve(
        frame=frame,
        title="Is the confidence right?",
        subtitle=f"n = {counted(n, 'row')}, {judged}, no bins{shown}",
        text=(
            f"Reliability curve without bins of n = {n} rows, {judged}{shown}. About {share:.0%} of the confidences lie where "
            f"the curve is outside the band that holds {BAND:.0%} of perfectly calibrated models. Below: the density of the "
            "confidences."
        ),
        code=Code(
            f"wb.figures.reliability_curve(table, K={K})",
            [f"# table: {table.n} rows of {table.n_classes} classes, with labels"],
        ),
        most=next((end for end in ENDS if frame["density"].max() <= 0.95 * end), ENDS[-1]),
        K=K,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ReliabilityCurve(Figure):
    """The curve above, the density of confidences below."""

    most: float  # end of the axis of densities
    K: int  # most probable classes of a row that count

    def beside(self, other: ReliabilityCurve) -> ReliabilityCurve:
        """The same picture with the axes of both, so that before and after can be compared."""
        return self if self.most >= other.most else replace(self, most=other.most)

    def _plotly(self, theme: Theme) -> go.Figure:
        curve = self.frame.dropna()
        flat = {"type": "scatter", "mode": "lines", "line": {"width": 0}, "hoverinfo": "skip", "showlegend": False}
        traces: list[dict[str, Any]] = [
            {**flat, "x": curve["confidence"], "y": curve["band_low"], "name": "band_low"},
            {
                **flat,
                **{"x": curve["confidence"], "y": curve["band_high"], "name": LUCK, "showlegend": True},
                **{"fill": "tonexty", "fillcolor": translucent(theme.muted, 0.28)},
            },
            {
                **{"type": "scatter", "name": "exactly right", "hoverinfo": "skip", "mode": "lines"},
                **{"x": [0, 1], "y": [0, 1], "line": {"color": theme.bayes, "dash": "dash", "width": 1.5}},
            },
            {
                **{"type": "scatter", "name": "measured", "mode": "lines" if len(curve) > 1 else "markers"},
                **{"x": curve["confidence"], "y": curve["accuracy"], "line": {"color": theme.accent, "width": 3}},
                "customdata": curve[["band_low", "band_high"]],
                "hovertemplate": "confidence %{x:.1%}<br>accuracy %{y:.1%}<br>perfectly calibrated: %{customdata[0]:.1%} to "
                "%{customdata[1]:.1%}<extra></extra>",
            },
            {
                **{"type": "scatter", "name": "density", "mode": "lines", "showlegend": False},
                **{"x": self.frame["confidence"], "y": self.frame["density"], "xaxis": "x2", "yaxis": "y2"},
                **{"fill": "tozeroy", "fillcolor": translucent(theme.accent, 0.35)},
                "line": {"color": theme.accent, "width": 1.5},
                "hovertemplate": "density at %{x:.1%}: %{y:.2f}<extra></extra>",
            },
        ]
        percent = {"range": (0, 1), "tickformat": ".0%"}
        layout = {
            "xaxis": {**percent, "anchor": "y", "matches": "x2", "showticklabels": False},
            "yaxis": {**percent, "anchor": "x", "domain": DIAGRAM, "title": {"text": "accuracy"}},
            "xaxis2": {**percent, "anchor": "y2", "title": {"text": "confidence"}},
            "yaxis2": {
                **{"range": (0, self.most), "nticks": 3, "anchor": "x2", "domain": COUNTS},
                "title": {"text": "density"},
            },
        }
        return go.Figure(traces, {**layout, "height": 560})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        curve = self.frame.dropna()
        figure = paper(5.8, 6.2)
        diagram, density = figure.subplots(2, sharex=True, height_ratios=[3.4, 1])
        band = {"color": theme.muted, "alpha": 0.28, "linewidth": 0, "label": LUCK}
        diagram.fill_between(curve["confidence"], curve["band_low"], curve["band_high"], **band)
        diagram.plot([0, 1], [0, 1], linestyle="--", linewidth=1.2, color=theme.bayes, label="exactly right")
        marker = "" if len(curve) > 1 else "o"
        diagram.plot(
            curve["confidence"], curve["accuracy"], marker=marker, linewidth=2.4, color=theme.accent, label="measured"
        )
        diagram.legend(loc="upper left")
        diagram.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
        density.fill_between(
            self.frame["confidence"], self.frame["density"], color=theme.accent, alpha=0.35, linewidth=0
        )
        density.plot(self.frame["confidence"], self.frame["density"], color=theme.accent, linewidth=1.2)
        density.set(ylim=(0, self.most), xlabel="confidence", ylabel="density")
        density.yaxis.set_major_locator(MaxNLocator(2))
        for axis in (diagram.yaxis, density.xaxis):
            axis.set_major_formatter(PercentFormatter(1, decimals=0))
        return figure
