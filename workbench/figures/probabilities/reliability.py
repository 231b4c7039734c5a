"""Reliability: does a confidence of 80 % mean that 80 % are right?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

from workbench.figures.base import Click, Figure, counted, paper, round_limit
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics import expected_calibration_error, reliability_bins, top_k_calibration_error
from workbench.metrics.rows import RowFilter
from workbench.tables import LogitTable, checked_table
from workbench.validation import whole_number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as StaticFigure

BAND = 0.9
LUCK = f"{100 * BAND:.0f} % of perfectly calibrated models fall here"
MEASURED, ROWS, BEFORE = "measured", "rows", "before"  # the traces of dots, of counts, and of the dots before
DIAGRAM, COUNTS = (0.31, 1.0), (0.0, 0.22)  # from where to where each panel reaches, upwards


def reliability(table: LogitTable, bins: int = 15, K: int = 1) -> Reliability:
    """Reliability diagram: accuracy against confidence in bins, with counts and the band that luck alone explains.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
        K: Number of most probable classes of each row that are judged.

    Confidence is the probability of the most probable class (of each of the K most probable, for K > 1). Points below
    the diagonal are over-confident. The band of a bin holds its accuracy with probability 90 % if the confidences are
    right; points outside it are filled.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.75, 0.25]] * 4, labels=[0, 0, 0, 1])
    >>> reliability(table, bins=2).frame[["low", "high", "count", "confidence", "accuracy"]].to_numpy().tolist()
    [[0.0, 0.5, 0.0, nan, nan], [0.5, 1.0, 4.0, 0.75, 0.75]]

    Paper: Liao et al., Figure 3 (K = 4, 10 bins).
    """
    bins, K = whole_number("bins", bins), whole_number("K", K)
    frame = reliability_bins(checked_table(table), bins=bins, K=K, band=BAND)
    judged, named, error = _judged(table, bins, K)
    n, filled = int(np.count_nonzero(table.known)), frame[frame["count"] > 0]
    mean = {
        name: float((filled[name] * filled["count"]).sum() / filled["count"].sum())
        for name in ("confidence", "accuracy")
    }
    outside = int((~filled["accuracy"].between(filled["band_low"], filled["band_high"])).sum())
    return Reliability(
        frame=frame,
        title="Is the confidence right?",
        subtitle=f"n = {counted(n, 'row')}, {judged}, {counted(bins, 'bin')}; {named} {error:.1%}",
        text=(
            f"Reliability diagram of n = {n} rows, {judged}, in {bins} bins ({len(filled)} of them with rows). "
            f"Mean confidence {mean['confidence']:.1%}, accuracy {mean['accuracy']:.1%}, {named} "
            f"{error:.1%}. {counted(outside, 'bin')} outside the band that holds {BAND:.0%} of perfectly calibrated models."
        ),
        code=Code(
            f"wb.figures.reliability(table, bins={bins}, K={K})",
            [f"# table: {table.n} rows of {table.n_classes} classes, with labels"],
        ),
        most=round_limit(float(filled["count"].max() / filled["count"].sum())),
        K=K,
    )


def _judged(table: LogitTable, bins: int, K: int) -> tuple[str, str, float]:
    """Whose probabilities are judged, and the calibration error of these by its name."""
    if K > 1:
        return (
            f"{K} likeliest classes",
            f"top-{K} calibration error",
            top_k_calibration_error(table, K, bins),
        )
    whose = "likeliest class" if table.n_classes > 1 else f"the probability of {table.named_classes()[0]}"
    return whose, "expected calibration error", expected_calibration_error(table, bins)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Reliability(Figure):
    """The diagram above, how many rows each bin holds below."""

    most: float  # end of the axis of rows
    K: int  # most probable classes of a row that count
    before: Reliability | None = None  # the same rows before they were recalibrated, drawn faintly

    def beside(self, other: Reliability) -> Reliability:
        """The same picture with the axes of both, so that before and after can be compared."""
        return self if self.most >= other.most else replace(self, most=other.most)

    def over(self, before: Reliability) -> Reliability:
        """The same picture with what was measured before as a faint line below it, on the axes of both."""
        return replace(self.beside(before), before=before)

    def points(self) -> pd.DataFrame:
        """The bins that have rows, with the middle of each, its width, its share of rows, and whether luck explains it."""
        filled = self.frame[self.frame["count"] > 0]
        return filled.assign(
            middle=(filled["low"] + filled["high"]) / 2,
            width=filled["high"] - filled["low"],
            share=filled["count"] / filled["count"].sum(),
            lucky=filled["accuracy"].between(filled["band_low"], filled["band_high"]),
        )

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a bin; only of the most probable class a bin is a set of rows."""
        if click.trace not in (MEASURED, ROWS) or self.K > 1:
            return None
        low, high = self.points()[["low", "high"]].iloc[click.point].tolist()
        return RowFilter(sure=(low, high))

    @property
    def opens_rows(self) -> bool:
        """Whether a bin is a set of rows."""
        return self.K == 1

    def _plotly(self, theme: Theme) -> go.Figure:
        points = self.points()
        bars_below = {"xaxis": "x2", "yaxis": "y2", "width": 0.92 * points["width"]}
        traces: list[dict[str, Any]] = [
            {
                **{"type": "bar", "name": LUCK, "hoverinfo": "skip"},
                **{"x": points["middle"], "width": points["width"]},
                **{"y": points["band_high"] - points["band_low"], "base": points["band_low"]},
                "marker": {"color": theme.muted, "opacity": 0.28, "line": {"width": 0}},
            },
            {
                **{"type": "scatter", "name": "exactly right", "hoverinfo": "skip", "mode": "lines"},
                **{"x": [0, 1], "y": [0, 1], "line": {"color": theme.bayes, "dash": "dash", "width": 1.5}},
            },
            {
                **{"type": "scatter", "name": MEASURED, "mode": "lines+markers", "cliponaxis": False},
                **{"x": points["confidence"], "y": points["accuracy"], "line": {"color": theme.accent, "width": 2}},
                "marker": {
                    "size": 10,
                    "color": [theme.paper if lucky else theme.accent for lucky in points["lucky"]],
                    "line": {"color": theme.accent, "width": 2.5},
                },
                "customdata": points[["count", "band_low", "band_high"]],
                "hovertemplate": "confidence %{x:.1%}<br>accuracy %{y:.1%}<br>perfectly calibrated: %{customdata[1]:.1%} to "
                "%{customdata[2]:.1%}<br>%{customdata[0]} rows<extra></extra>",
            },
            {
                **{"type": "bar", "name": ROWS, "showlegend": False, "marker": {"color": theme.accent}},
                **{"x": points["middle"], "y": points["share"], **bars_below, "customdata": points["count"]},
                "hovertemplate": "%{y:.1%} of rows (%{customdata})<extra></extra>",
            },
        ]
        if self.before is not None:
            earlier = self.before.points()
            faint = {"color": theme.muted, "dash": "dot", "width": 2}
            dots = {"type": "scatter", "name": BEFORE, "mode": "lines+markers", "zorder": -1, "hoverinfo": "skip"}
            place = {"x": earlier["confidence"], "y": earlier["accuracy"]}
            traces.append({**dots, **place, "line": faint, "marker": {"size": 6, "color": theme.muted}})
        percent = {"range": (0, 1), "tickformat": ".0%"}
        few = {"range": (0, self.most), "tickformat": ".0%", "nticks": 3}
        layout = {
            "xaxis": {**percent, "anchor": "y", "matches": "x2", "showticklabels": False},
            "yaxis": {**percent, "anchor": "x", "domain": DIAGRAM, "title": {"text": "accuracy"}},
            "xaxis2": {**percent, "anchor": "y2", "title": {"text": "confidence"}},
            "yaxis2": {**few, "anchor": "x2", "domain": COUNTS, "title": {"text": "rows"}},
        }
        return go.Figure(traces, {**layout, "height": 560, "barmode": "overlay"})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        import seaborn
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        points = self.points()
        figure = paper(5.8, 6.2)
        diagram, counts = figure.subplots(2, sharex=True, height_ratios=[3.4, 1])
        height = points["band_high"] - points["band_low"]
        band = {"color": theme.muted, "alpha": 0.28, "linewidth": 0, "label": LUCK}
        diagram.bar(points["middle"], height, points["width"], bottom=points["band_low"], **band)
        diagram.plot([0, 1], [0, 1], linestyle="--", linewidth=1.2, color=theme.bayes, label="exactly right")
        seaborn.lineplot(
            points, x="confidence", y="accuracy", color=theme.accent, errorbar=None, label="measured", ax=diagram
        )
        if self.before is not None:
            earlier = self.before.points()
            diagram.plot(earlier["confidence"], earlier["accuracy"], ".:", color=theme.muted, label=BEFORE)
        fill = [theme.paper if lucky else theme.accent for lucky in points["lucky"]]
        diagram.scatter(
            points["confidence"], points["accuracy"], 44, color=fill, edgecolor=theme.accent, linewidth=1.8, zorder=3
        )
        diagram.legend(loc="upper left")
        diagram.set(xlim=(0, 1), ylim=(0, 1), ylabel="accuracy")
        counts.bar(points["middle"], points["share"], 0.92 * points["width"], color=theme.accent)
        counts.set(ylim=(0, self.most), xlabel="confidence", ylabel="rows")
        counts.yaxis.set_major_locator(MaxNLocator(2))
        for axis in (diagram.yaxis, counts.yaxis, counts.xaxis):
            axis.set_major_formatter(PercentFormatter(1, decimals=0))
        return figure
