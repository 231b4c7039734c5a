"""Coverage against size where only some probabilities of each row are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme, translucent
from workbench.sets import AverageK
from workbench.sets.bounds import UnknownThreshold, bounded_sets
from workbench.tables.partial import PartialTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

STEPS = 40  # mean sizes at which the bounds are computed
EXACT, BETWEEN = "exact", "between these bounds"


def coverage_bounds(val: PartialTable, test: PartialTable, K_max: float | None = None) -> CoverageBounds:
    """Coverage of average-K sets against K, where rows list only some classes: exact as far as it is known, then bounds.

    Args:
        val: The rows that thresholds are fitted on.
        test: The rows that are judged, with labels.
        K_max: The largest K; by default the largest whose threshold is known at all.

    Raises:
        ValueError: no test row has a label, or no threshold is known.

    Example:
        >>> import workbench as wb
        >>> rows = wb.PartialTable.from_rows([{0: 0.7, 1: 0.2}, {1: 0.6, 2: 0.3}], [0, 3], n_classes=4)
        >>> coverage_bounds(rows, rows).frame.query("K == 1")[["coverage_low", "coverage_high"]].to_numpy().tolist()
        [[0.5, 0.5]]
    """
    for given in (val, test):
        if not isinstance(given, PartialTable):
            raise TypeError(f"expected a PartialTable, got {type(given).__name__}: wb.import_partial(path) reads one")
    if not test.labelled.any():
        raise ValueError("the test rows have no labels; coverage needs some")
    most = float(np.count_nonzero(val.probabilities)) / val.n
    most = min(most, np.inf if val.n_classes is None else val.n_classes - 1)
    last = most if K_max is None else min(K_max, most)
    lines = []
    for K in np.unique(np.append(np.linspace(min(1.0, last), last, STEPS), min(1.0, last))):
        try:
            sets = bounded_sets(AverageK(float(K)), val, test)
        except UnknownThreshold:
            continue
        lines.append((float(K), *sets.threshold, *sets.mean_size, *sets.coverage))  # type: ignore[misc]
    if not lines:
        raise UnknownThreshold(f"no threshold is known: the rows list {most:.3g} classes on average; give more of each")
    columns = ["K", "threshold_low", "threshold_high", "size_low", "size_high", "coverage_low", "coverage_high"]
    frame = pd.DataFrame(lines, columns=columns)
    frame["exact"] = frame["coverage_low"] == frame["coverage_high"]
    known = frame.loc[frame["exact"].cummin(), "K"].max()
    end = frame.iloc[-1]
    exactness = f"exact up to K = {known:.3g}" if known == known else "bounds at every K"
    return CoverageBounds(
        frame=frame,
        title="Coverage that is known",
        subtitle=f"n = {counted(int(test.labelled.sum()), 'labelled row')}; {exactness}",
        text=(
            f"Coverage of sets of mean size K on n = {int(test.labelled.sum())} labelled rows that list some of their classes, "
            f"{exactness}; at K = {end.K:.3g} it lies between {end.coverage_low:.1%} and {end.coverage_high:.1%}. Beyond "
            f"K = {most:.3g} the threshold is unknown."
        ),
        code=Code(
            f"wb.figures.coverage_bounds(partial_val, partial_test{'' if K_max is None else f', K_max={K_max!r}'})",
            ["# partial_val, partial_test: tables of wb.import_partial(path), or halves of one: .split()"],
        ),
        known=float(known),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CoverageBounds(Figure):
    """A band between the lowest and the highest coverage, which is a line as far as they agree."""

    known: float  # the largest K up to which all is exact; NaN for none

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of K and of coverage."""
        first, last = float(self.frame["K"].min()), float(self.frame["K"].max())
        low = max(0.0, float(np.floor(self.frame["coverage_low"].min() * 20) / 20) - 0.05)
        return (first, last if last > first else first + 1), (low, 1.02)

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, frame = go.Figure(), self.frame
        edge = {"color": theme.accent, "width": 1, "dash": "dot"}
        hover = "K = %{x:.2f}: %{y:.1%}<extra></extra>"
        figure.add_scatter(
            x=frame["K"], y=frame["coverage_high"], mode="lines", line=edge, showlegend=False, hovertemplate=hover
        )
        figure.add_scatter(
            x=frame["K"], y=frame["coverage_low"], mode="lines", line=edge, fill="tonexty", name=BETWEEN,
            fillcolor=translucent(theme.accent, 0.25), hovertemplate=hover,
        )  # fmt: skip
        part = frame[frame["K"] <= self.known]
        figure.add_scatter(
            x=part["K"], y=part["coverage_low"], mode="lines", name=EXACT, line={"color": theme.accent, "width": 3},
            hovertemplate=hover,
        )  # fmt: skip
        across, upward = self.ranges()
        figure.update_xaxes(range=across, title="K, classes in a set on average")
        figure.update_yaxes(range=upward, tickformat=".0%", title="sets that contain the label")
        legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.28, "yanchor": "top"}
        return figure.update_layout(height=420, legend=legend)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter

        figure, frame = paper(7.2, 4.4), self.frame
        axes = figure.subplots()
        bounds = frame["K"], frame["coverage_low"], frame["coverage_high"]
        axes.fill_between(*bounds, color=theme.accent, alpha=0.25, linewidth=0, label=BETWEEN)
        for edge in ("coverage_low", "coverage_high"):
            axes.plot(frame["K"], frame[edge], ":", color=theme.accent, linewidth=1)
        part = frame[frame["K"] <= self.known]
        axes.plot(part["K"], part["coverage_low"], color=theme.accent, linewidth=2.4, label=EXACT)
        across, upward = self.ranges()
        axes.set(
            xlim=across, ylim=upward, xlabel="K, classes in a set on average", ylabel="sets that contain the label"
        )
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.legend(loc="lower right", frameon=False)
        return figure
