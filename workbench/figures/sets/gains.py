"""Gains and losses: coverage of each class under one rule against another, by training rows."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Click, Figure, Move, Places, chosen_by, code_of_sets, counted, paper
from workbench.figures.runs.improvement import most_improved
from workbench.figures.sets.classes import rows_of_class
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.metrics.rows import RowFilter
from workbench.sets import PredictionSets
from workbench.sets.prediction_sets import checked_sets
from workbench.tables.groups import known_class_counts
from workbench.tables.row_kinds import training_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

GAIN, PAY = "gain", "pay"
HOVER = (
    "<b>%{{customdata[0]}}</b><br>%{{y:+.1%}} of its rows<br>%{{customdata[1]}} {training}, "
    "%{{customdata[2]}} rows<extra></extra>"
)


def gains_by_count(before: PredictionSets, after: PredictionSets) -> GainsByCount:
    """The change of each class's coverage from the sets `before` to the sets `after`, against its training rows.

    Sets of one mean size cannot serve all classes: what some gain, others pay. The larger a dot, the more rows of the class.

    Args:
        before: Sets of some rows, such as those of average-K.
        after: Sets of the same rows by another rule.

    Returns:
        The figure; its frame is that of `most_improved`.

    Example:
        >>> import workbench as wb
        >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]], labels=[0, 1], class_counts=[500, 3])
        >>> small, large = (wb.Threshold(each).fit(table)(table) for each in (0.5, 0.05))
        >>> gains_by_count(small, large).frame[["count", "difference"]].to_numpy().tolist()
        [[3.0, 1.0], [500.0, 0.0]]
    """
    known_class_counts(checked_sets(after).table)
    training = training_rows(after.table)
    frame = most_improved(before, after).frame
    gain, pay = (frame["difference"] > 0), (frame["difference"] < 0)
    summary = ", ".join(
        f"{int(who.sum())} classes {verb}"
        + (f" (median {frame['count'][who].median():g} {training})" if who.any() else "")
        for who, verb in ((gain, GAIN), (pay, PAY))
    )
    setup = code_of_sets(before, "before").after(Code(setup=["# val, test: the tables of the rules"]))
    return GainsByCount(
        frame=frame,
        title="Who gains, who pays",
        subtitle=f"n = {counted(len(after), 'row')}; {summary}",
        text=(
            f"Change of coverage by class on n = {len(after)} rows from {chosen_by(before)} to {chosen_by(after)}: {summary}; "
            f"{frame['difference'].mean() * 100:+.1f} points on average over {len(frame)} classes."
        ),
        code=Code("wb.figures.gains_by_count(before, sets)").after(code_of_sets(after)).after(setup),
        training=training,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GainsByCount(Figure):
    """One dot a class above or below zero."""

    training: str  # what class counts count, such as "training images"

    def ordered(self) -> pd.DataFrame:
        """The classes by their number, with where each is drawn."""
        return self.frame.sort_values("class", ignore_index=True).assign(x=lambda frame: frame["count"].clip(lower=1))

    def colours(self, theme: Theme, difference: np.ndarray) -> list[str]:
        """Green above zero, terracotta below."""
        return [theme.hit if each > 0 else theme.miss if each < 0 else theme.muted for each in difference.tolist()]

    def decades(self) -> tuple[float, float]:
        """The ends of the axis of counts, as powers of ten."""
        return -0.15, float(np.ceil(np.log10(self.ordered()["x"].max()) + 0.05))

    def _plotly(self, theme: Theme) -> go.Figure:
        part = self.ordered()
        hover_rows = part[["name", "count", "n", "class"]].assign(name=part["name"].map(html.escape))
        # The colour follows the height, so that it moves with it.
        scale = [
            (0, theme.miss),
            (0.499, theme.miss),
            (0.4995, theme.muted),
            (0.5005, theme.muted),
            (0.501, theme.hit),
            (1, theme.hit),
        ]
        marks = {
            "color": part["difference"], "colorscale": scale, "cmin": -1, "cmax": 1, "opacity": 0.8,
            "size": sizes_of(part["n"].to_numpy()), "line": {"color": theme.paper, "width": 1},
        }  # fmt: skip
        figure = go.Figure()
        figure.add_scatter(
            x=part["x"], y=part["difference"], mode="markers", name="classes", marker=marks,
            hovertemplate=HOVER.format(training=self.training), customdata=hover_rows.to_numpy().tolist(),
        )  # fmt: skip
        zero = {
            "type": "line",
            "x0": 0,
            "x1": 1,
            "xref": "x domain",
            "y0": 0,
            "y1": 0,
            "line": {"color": theme.ink, "width": 1},
        }
        figure.update_xaxes(type="log", range=self.decades(), dtick=1, title=f"{self.training} of a class")
        figure.update_yaxes(range=(-1.05, 1.05), tickformat="+.0%", title="pays     change of coverage     gains")
        return figure.update_layout(height=420, showlegend=False, shapes=[zero])

    def moves(self, places: Places) -> list[Move]:
        """Moves of the dots along a slider; `hits_before` (places, L) are the hits of the sets they are compared with."""
        changes = self._changes(places)
        return [Move("y", changes, "classes"), Move("marker.color", changes, "classes")]

    def subtitles(self, places: Places) -> list[str]:
        """How many classes gain and how many pay, at every place."""
        changes = self._changes(places)
        at_positions = zip((changes > 0).sum(axis=1), (changes < 0).sum(axis=1), changes.mean(axis=1), strict=True)
        return [
            f"n = {counted(int(places['n']), 'row')}; {gain} classes gain, {pay} pay, {100 * mean:+.1f} points on average"
            for gain, pay, mean in at_positions
        ]

    def _changes(self, places: Places) -> np.ndarray:
        """(places, classes) the change of coverage of the classes that are drawn."""
        classes = self.ordered()["class"].to_numpy()
        difference = places["class_hits"][:, classes].astype(float) - places["hits_before"][:, classes]
        changes: np.ndarray = difference / places["class_rows"][classes]
        return changes

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a class."""
        return rows_of_class(click)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        from matplotlib.ticker import PercentFormatter, StrMethodFormatter

        figure = paper(7.2, 4.6)
        axes = figure.subplots()
        part = self.ordered()
        areas = sizes_of(part["n"].to_numpy()) ** 2 / 2
        colours = self.colours(theme, part["difference"].to_numpy())
        axes.scatter(part["x"], part["difference"], c=colours, s=areas, edgecolor=theme.paper, alpha=0.8)
        axes.axhline(0, color=theme.ink, linewidth=1)
        low, high = self.decades()
        axes.set(
            xscale="log", xlim=(10**low, 10**high), ylim=(-1.05, 1.05), xlabel=f"{self.training} of a class",
            ylabel="change of coverage",
        )  # fmt: skip
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        return figure


def sizes_of(n: np.ndarray) -> np.ndarray:
    """Pixels across of the dot of a class, from its number of rows: its area grows with them."""
    sizes: np.ndarray = np.clip(3 + 2.2 * np.sqrt(n), 5, 26)
    return sizes
