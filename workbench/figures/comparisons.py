"""Runs side by side: how they differ on the same rows, and where they stand on two metrics."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, counted, paper
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

CODE = "import workbench as wb\n\n# comparison: the frame that wb.comparison.compare gives\n"


def on_two_metrics(comparison: pd.DataFrame, x: str = "accuracy", y: str = "macro_accuracy") -> OnTwoMetrics:
    """Runs as dots on any two metrics of `wb.comparison.compare`, each with its intervals.

    A metric of groups is named with its group: `shot_accuracy few`.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]], labels=[0, 1])
    >>> comparison = wb.comparison.compare({"one": table, "two": table}, wb.Threshold(0.5))
    >>> on_two_metrics(comparison, "accuracy", "mean_size").frame[["table", "x", "y"]].to_numpy().tolist()
    [['one', 0.5, 1.0], ['two', 0.5, 1.0]]

    Paper: Garcin, thesis, Figures 3.5 to 3.8.
    """
    named = comparison.assign(named=names_of_metrics(comparison))
    known = list(dict.fromkeys(named["named"]))
    for metric in (x, y):
        if metric not in known:
            raise ValueError(f"{metric!r} is not in this comparison; it has {', '.join(known)}")
    columns = ["table", "value", "low", "high"]
    across, upward = (named.loc[named["named"] == metric, columns].set_index("table") for metric in (x, y))
    frame = pd.DataFrame({"table": across.index})
    for axis, values in (("x", across), ("y", upward.loc[across.index])):
        frame[axis] = values["value"].to_numpy()
        frame[f"{axis}_low"], frame[f"{axis}_high"] = values["low"].to_numpy(), values["high"].to_numpy()
    n = int(comparison["n"].max())
    placed = "; ".join(
        f"{name} at {across:.3g} and {up:.3g}" for name, across, up in frame[["table", "x", "y"]].to_numpy()
    )
    return OnTwoMetrics(
        frame=frame,
        title=f"{in_words(y)} against {in_words(x)}",
        subtitle=f"n = {counted(n, 'row')}, {counted(len(frame), 'run')}; lines are 95 % intervals",
        text=f"{in_words(y)} against {in_words(x)} of {counted(len(frame), 'run')} on n = {n} rows: {placed}.",
        code=f"{CODE}figure = wb.figures.on_two_metrics(comparison, {x!r}, {y!r})\nfigure.plot()\n",
        names=(in_words(x), in_words(y)),
    )


def names_of_metrics(comparison: pd.DataFrame) -> pd.Series:
    """The metric of every line, with its group where it has one: `accuracy`, `shot_accuracy few`."""
    return (comparison["metric"] + " " + comparison["group"].astype(str)).str.strip()


def in_words(metric: str) -> str:
    """`macro_accuracy` as a person writes it."""
    return metric.replace("_", " ").capitalize()


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OnTwoMetrics(Figure):
    """One dot a run, with a line for each of its two intervals."""

    names: tuple[str, str]

    def limits(self, axis: str) -> tuple[float, float]:
        """The ends of an axis: all dots and intervals, and a little room."""
        values = self.frame[[axis, f"{axis}_low", f"{axis}_high"]].to_numpy(float)
        low, high = (float(end(values[np.isfinite(values)])) for end in (np.min, np.max))
        room = 0.08 * (high - low) or 0.05 * abs(high) or 0.05
        return low - room, high + room

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = go.Figure()
        colours = [theme.categories[place % len(theme.categories)] for place in range(len(self.frame))]
        for colour, run in zip(colours, self.frame.to_dict("records"), strict=True):
            name = html.escape(str(run["table"]))
            reach = {
                axis: {"array": [run[f"{axis}_high"] - run[axis]], "arrayminus": [run[axis] - run[f"{axis}_low"]]}
                for axis in ("x", "y")
            }
            look = {"color": colour, "thickness": 1.5, "width": 0}
            figure.add_scatter(
                x=[run["x"]],
                y=[run["y"]],
                error_x={**reach["x"], **look},
                error_y={**reach["y"], **look},
                mode="markers",
                name=name,
                marker={"color": colour, "size": 14, "line": {"color": theme.paper, "width": 2}},
                hovertemplate=f"<b>{name}</b><br>%{{x:.4g}}, %{{y:.4g}}<extra></extra>",
            )
        figure.update_xaxes(range=self.limits("x"), title=self.names[0])
        figure.update_yaxes(range=self.limits("y"), title=self.names[1])
        legend = {"orientation": "v", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"}
        return figure.update_layout(height=460, showlegend=True, legend=legend)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(6.4, 5.0)
        axes = figure.subplots()
        for place, run in enumerate(self.frame.to_dict("records")):
            colour = theme.categories[place % len(theme.categories)]
            axes.plot([run["x_low"], run["x_high"]], [run["y"]] * 2, color=colour, linewidth=1.2)
            axes.plot([run["x"]] * 2, [run["y_low"], run["y_high"]], color=colour, linewidth=1.2)
            axes.plot(run["x"], run["y"], "o", color=colour, markersize=9, label=str(run["table"]))
        axes.set(xlim=self.limits("x"), ylim=self.limits("y"), xlabel=self.names[0], ylabel=self.names[1])
        axes.legend()
        return figure
