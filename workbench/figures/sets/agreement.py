"""Sets against label sets: how well they agree at every threshold."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, Move, Places, counted, paper
from workbench.figures.run_styles import Look, looks_of_each
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics.base import ratio
from workbench.sets.base import dtype_threshold
from workbench.tables import LogitTable, checked_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MARKED = "marked"  # the line at the marked threshold, by its name
THRESHOLDS = np.arange(1, 101) / 100


def f1_against_threshold(
    tables: Mapping[str, LogitTable], at: float | None = None, looks: Mapping[str, Look] | None = None
) -> F1AgainstThreshold:
    r"""Micro-F1 of the sets of every threshold, one curve a table: how well sets agree with the labels of the rows.

    Args:
        tables: Tables by their names.

    $$F_1(\lambda) = \frac{2\,\mathrm{TP}(\lambda)}{\sum_i |S_\lambda(x_i)| + \sum_i |Y_i|}$$

    S is the set at the threshold λ, Y_i the labels of row i, and TP counts the labels that are in the set of their row; a row
    that shows none of the classes counts by its set. Softmax shares a total of 1 among all labels of a row, so its best
    threshold is low;
    sigmoids judge each class alone. `at` marks a threshold; `looks` are the colour and the mark of each curve
    (`workbench.figures.run_styles`), one after the other where they are not said.

    >>> import workbench as wb
    >>> table = wb.LogitTable([[2.0, -2.0], [-1.0, -2.0]], [[True, False], [False, False]], link="sigmoid")
    >>> f1_against_threshold({"mine": table}).best["mine"]
    (0.27, 1.0)
    """
    if not isinstance(tables, Mapping):
        raise TypeError(f"expected tables by their names, {{name: table}}, got {type(tables).__name__}")
    if not tables:
        raise ValueError("there is no table to draw; give {name: table} with at least one")
    frame = pd.concat(
        [
            pd.DataFrame({"table": name, "threshold": THRESHOLDS, "micro_f1": _f1(checked_table(table))})
            for name, table in tables.items()
        ],
        ignore_index=True,
    )
    highest = frame.loc[frame.groupby("table", sort=False)["micro_f1"].idxmax()]
    best = {name: (float(threshold), float(f1)) for name, threshold, f1 in highest.to_numpy().tolist()}
    n = int(np.count_nonzero(next(iter(tables.values())).known))
    tops = "; ".join(f"{name} {f1:.3g} at {threshold:g}" for name, (threshold, f1) in best.items())
    unmarked = F1AgainstThreshold(
        frame=frame,
        title="How well sets agree with the labels",
        subtitle=f"n = {counted(n, 'row')}; a mark is the highest F1 of a curve",
        text=f"Micro-F1 of sets against the threshold on n = {n} rows. Highest: {tops}.",
        code=Code(),
        best=best,
        at=None,
        looks=looks or {},
    )
    return unmarked.marked(at)


def _f1(table: LogitTable) -> np.ndarray:
    """Micro-F1 at each of the thresholds, of the rows whose truth is known."""
    table = table.known_rows()
    rows_of, classes_of = table.positives()
    sizes, right = np.zeros(len(THRESHOLDS)), np.zeros(len(THRESHOLDS))
    for rows in table.spans():
        probabilities = table.probabilities(rows)
        inside = slice(*np.searchsorted(rows_of, (rows.start, rows.stop)))
        sizes += _reached(probabilities.ravel())
        right += _reached(probabilities[rows_of[inside] - rows.start, classes_of[inside]])
    f1: np.ndarray = np.nan_to_num(ratio(2 * right, sizes + len(rows_of)))
    return f1


def _reached(probabilities: np.ndarray) -> np.ndarray:
    """Number of probabilities that reach each threshold."""
    below = np.searchsorted(dtype_threshold(THRESHOLDS, probabilities.dtype), probabilities, side="right")
    return len(probabilities) - np.cumsum(np.bincount(below, minlength=len(THRESHOLDS) + 1))[:-1]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class F1AgainstThreshold(Figure):
    """One curve a table with a dot where it is highest, and a line at the chosen threshold."""

    best: dict[str, tuple[float, float]]  # threshold and F1 of the highest point
    at: float | None
    looks: Mapping[str, Look]

    def marked(self, at: float | None) -> F1AgainstThreshold:
        """The same picture with another threshold marked: nothing is computed again."""
        call = f"wb.figures.f1_against_threshold(tables, at={at!r})"
        code = Code(call, ["# tables: {name: table}, with labels"])
        return replace(self, at=at, code=code)

    def curves(self) -> list[tuple[str, Look, pd.DataFrame]]:
        """(table, look, points) of each curve."""
        curves = {str(name): points for name, points in self.frame.groupby("table", sort=False)}
        return list(zip(curves, looks_of_each(curves, self.looks), curves.values(), strict=True))

    def moves(self, places: Places) -> list[Move]:
        """Moves of the line at the marked threshold along a slider."""
        if self.at is None:
            return []
        ends = np.minimum(places["thresholds"], 1).tolist()
        return [Move(end, ends, shape=MARKED) for end in ("x0", "x1")]

    def _plotly(self, theme: Theme) -> go.Figure:
        figure = go.Figure()
        for name, look, points in self.curves():
            written = html.escape(name)
            figure.add_scatter(
                x=points["threshold"], y=points["micro_f1"], name=written, mode="lines",
                line={"color": look.in_colour(theme), "width": 3},
                hovertemplate="threshold %{x:.2f}<br>F1 %{y:.3f}<extra>" + written + "</extra>",
            )  # fmt: skip
        for name, look, _ in self.curves():
            threshold, f1 = self.best[name]
            edge = {"color": theme.paper, "width": 2}
            dot = {"color": look.in_colour(theme), "symbol": look.plotly, "size": 12, "line": edge}
            figure.add_scatter(x=[threshold], y=[f1], mode="markers", marker=dot, hoverinfo="skip", showlegend=False)
        if self.at is not None:
            figure.add_vline(x=self.at, name=MARKED, line={"color": theme.threshold, "dash": "dash", "width": 2})
        figure.update_xaxes(range=(0, 1), title="threshold")
        figure.update_yaxes(range=(0, 1), title="micro-F1")
        legend = {"orientation": "v", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"}
        return figure.update_layout(height=480, showlegend=len(self.best) > 1, legend=legend)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(6.4, 4.4)
        axes = figure.subplots()
        for name, look, points in self.curves():
            colour = look.in_colour(theme)
            axes.plot(points["threshold"], points["micro_f1"], color=colour, linewidth=2.2, label=name)
            axes.plot(*self.best[name], look.matplotlib, color=colour, markersize=7)
        if self.at is not None:
            axes.axvline(self.at, color=theme.threshold, linestyle="--", linewidth=1.6)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="threshold", ylabel="micro-F1")
        axes.legend()
        return figure
