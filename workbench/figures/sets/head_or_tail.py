"""Head or tail: what a mean over rows and a mean over classes give up for each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, Move, Places, counted, paper
from workbench.figures.sets.curves import HERE, dot
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.sets import SetIndex
from workbench.sets.prevalence import AdjustedTable, class_weights
from workbench.tables import LogitTable, checked_table
from workbench.tables.groups import known_class_counts
from workbench.tables.links import check_same_link

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

PANELS = {"macro_coverage": "mean over classes", "coverage": "mean over rows"}
MACRO, ROWS = f"{HERE}, classes", f"{HERE}, rows"  # the dots where a slider stands, by their names


def head_or_tail(
    val: LogitTable, test: LogitTable, taus: Sequence[float] = (0.0, 0.5, 1.0), K_max: float = 20.0, step: float = 0.1
) -> HeadOrTail:
    r"""Coverage and macro-coverage of average-K sets against their mean size, from head to tail.

    A class is in the set if $p_y(x) / (L \pi_y)^\tau$ reaches one threshold. At τ = 0 (average-K) no sets of that mean size
    contain the label of more rows; at τ = 1 none has a larger mean over classes, if p is the posterior.

    Args:
        val: Rows on which the thresholds are fitted.
        test: Rows that are shown, with labels and class counts.
        taus: Powers of the class share, one line each.
        K_max: Largest mean size.
        step: Distance of the mean sizes.

    Returns:
        The figure; its frame has `tau`, `K`, `mean_size`, `coverage` and `macro_coverage`.

    Example:
        >>> import workbench as wb
        >>> table = wb.LogitTable.from_probabilities([[0.8, 0.2], [0.6, 0.4], [0.7, 0.3]], [0, 0, 1], class_counts=[90, 10])
        >>> frame = head_or_tail(table, table, taus=(0, 1), K_max=1).frame
        >>> frame[["tau", "coverage", "macro_coverage"]].round(2).to_numpy().tolist()
        [[0.0, 0.67, 0.5], [1.0, 0.33, 0.5]]

    Ding, Fermanian & Salmon 2025 (arXiv 2507.06867), Proposition 2.
    """
    checked_table(val)
    checked_table(test).checked_labels()
    known_class_counts(test)
    frame = pd.concat([_curve(val, test, float(tau), K_max, step) for tau in taus], ignore_index=True)
    at = frame[(frame["K"] - min(2.0, frame["K"].max())).abs() < step / 2]
    summary = "; ".join(
        f"τ = {row.tau:g}: {row.coverage:.1%} of rows, {row.macro_coverage:.1%} over classes" for row in at.itertuples()
    )
    arguments = f"taus={tuple(map(float, taus))!r}, K_max={K_max!r}, step={step!r}"
    return HeadOrTail(
        frame=frame,
        title="Head or tail: which mean the sets serve",
        subtitle=f"n = {counted(test.n, 'row')} of {counted(test.n_classes, 'class', 'classes')}",
        text=(
            f"Coverage and macro-coverage of average-K sets on n = {test.n} rows against their mean size, one line for each "
            f"power τ of the class share. At {at['K'].iloc[0]:g} classes: {summary}."
        ),
        code=Code(
            f"wb.figures.head_or_tail(val, test, {arguments})",
            [f"# val, test: {test.n} rows of {test.n_classes} classes, with labels and class counts"],
        ),
    )


def _curve(val: LogitTable, test: LogitTable, tau: float, K_max: float, step: float) -> pd.DataFrame:
    """One line: the thresholds are fitted on `val`."""
    check_same_link(val, test)
    fitting, judging = (_index(table, tau, K_max, step) for table in (val, test))
    curve = judging.curve(fitting.thresholds).assign(tau=tau, K=fitting.K_values)
    renamed = curve.rename(columns={"accuracy": "coverage", "macro_accuracy": "macro_coverage"})
    return renamed[["tau", "K", "mean_size", "coverage", "macro_coverage"]]


def _index(table: LogitTable, tau: float, K_max: float, step: float) -> SetIndex:
    weights = class_weights(table, tau)
    return SetIndex(table if weights is None else AdjustedTable.of(table, weights), K_max, step)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class HeadOrTail(Figure):
    """Two panels with the same axes, one line for each τ in both."""

    here: tuple[float, float, float] | None = None  # mean size, macro-coverage and coverage where a slider stands

    def standing_at(self, mean_size: float, macro_coverage: float, coverage: float) -> HeadOrTail:
        """The same picture with a dot in each panel where a slider stands, which `moves` moves."""
        return replace(self, here=(float(mean_size), float(macro_coverage), float(coverage)))

    def moves(self, places: Places) -> list[Move]:
        """Moves of the dots of `standing_at` along a slider."""
        if self.here is None:
            return []
        heights = {MACRO: places["macro_accuracy"], ROWS: places["accuracy"]}
        return [
            Move(name, values.tolist(), shape=shape)
            for shape, height in heights.items()
            for name, values in (("xanchor", places["mean_size"]), ("yanchor", height))
        ]

    def lines(self, theme: Theme) -> dict[float, dict[str, Any]]:
        """τ → its colour, from the head (dark) to the tail (accent)."""
        taus = self.frame["tau"].unique().tolist()
        dashes = ["solid", "dot", "dash"]
        colours = [theme.muted, theme.model_b, theme.accent] if len(taus) == 3 else theme.colours(taus)
        return {
            tau: {"color": colour, "width": 2.5, "dash": dashes[-1 - place % 3]}
            for place, (tau, colour) in enumerate(zip(taus, colours, strict=True))
        }

    def ranges(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Of mean size, from 0 if a slider may stand there, and of both means, from the lowest rounded down to a tenth."""
        lowest = float(np.floor(10 * self.frame[list(PANELS)].min().min()) / 10)
        smallest = 1.0 if self.here is None else 0.0
        return (smallest, max(2.0, float(self.frame["K"].max()))), (lowest, max(1.01, 1 + 0.04 * (1 - lowest)))

    def _plotly(self, theme: Theme) -> go.Figure:
        from plotly.subplots import make_subplots

        figure = make_subplots(1, 2, shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=list(PANELS.values()))
        for column, name in enumerate(PANELS, start=1):
            for tau, look in self.lines(theme).items():
                part = self.frame[self.frame["tau"] == tau]
                hover = f"%{{x:.2f}} classes on average<br>%{{y:.1%}}<extra>τ = {tau:g}</extra>"
                figure.add_scatter(
                    x=part["mean_size"], y=part[name], customdata=part[["K"]], name=f"τ = {tau:g}", line=look, mode="lines",
                    legendgroup=f"{tau:g}", showlegend=column == 1, hovertemplate=hover, row=1, col=column,
                )  # fmt: skip
        sizes, shares = self.ranges()
        margin = 0.02 * (sizes[1] - sizes[0])
        figure.update_xaxes(range=(sizes[0] - margin, sizes[1] + margin), title="classes in a set")
        figure.update_yaxes(range=shares, tickformat=".0%")
        figure.update_layout(height=420, yaxis_title="label in the set")
        if self.here is not None:
            size, macro, rows = self.here
            dots = (dot(theme, size, macro, MACRO), {**dot(theme, size, rows, ROWS), "xref": "x2", "yref": "y2"})
            figure.update_layout(shapes=dots)
        return figure

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import MaxNLocator, PercentFormatter

        figure = paper(8.4, 4.4)
        sizes, shares = self.ranges()
        styles = {"dot": ":", "dash": "--"}
        for axes, (name, title) in zip(figure.subplots(1, 2, sharey=True), PANELS.items(), strict=True):
            for tau, look in self.lines(theme).items():
                part = self.frame[self.frame["tau"] == tau]
                style = {"color": look["color"], "linestyle": styles.get(look["dash"], "-"), "linewidth": 2}
                axes.plot(part["mean_size"], part[name], label=f"τ = {tau:g}", **style)
            axes.set(xlim=sizes, ylim=shares, xlabel="classes in a set on average", title=title)
            axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.axes[0].set_ylabel("label in the set")
        figure.axes[0].legend(loc="lower right")
        return figure
