"""Gains and losses of each class from one network to another."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import (
    Click,
    Figure,
    beside_an_axis,
    chosen_by,
    code_of_sets,
    code_with_sets,
    counted,
    paper,
    points,
    round_limit,
)
from workbench.figures.style import Theme
from workbench.metrics.rows import ONLY_OTHER, ONLY_THIS, RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

CHANGE = "change of accuracy, in percentage points"


def most_improved(before: PredictionSets, after: PredictionSets, most: int = 10) -> MostImproved:
    """The classes whose accuracy rises and falls most from the sets `before` to the sets `after`, on the same rows.

    The frame has all classes that have rows, the most improved first: accuracy `before` and `after`, their `difference`,
    and how many rows of the class were `gained` and `lost`. Of it the first and the last `most` that differ are drawn.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1]], labels=[0, 1])
    >>> small, large = (wb.Threshold(each).fit(table)(table) for each in (0.5, 0.05))
    >>> most_improved(small, large).frame[["name", "before", "after", "gained", "lost"]].to_numpy().tolist()
    [['class 1', 0.0, 1.0, 1, 0], ['class 0', 1.0, 1.0, 0, 0]]
    """
    table = checked_sets(after).table
    if checked_sets(before).table.scores.shape != table.scores.shape or not np.array_equal(
        before.table.checked_labels(), table.checked_labels()
    ):
        raise ValueError(
            "the two have different rows, classes or labels; compare sets of the same rows in the same order"
        )
    rows, classes = table.positives()
    had, has = (_holds(sets, rows, classes) for sets in (before, after))
    n, gained, lost, then, now = (
        np.bincount(classes, weights, table.n_classes).astype(int)
        for weights in (np.ones(len(rows)), has & ~had, had & ~has, had, has)
    )
    present = np.flatnonzero(n)
    n = n[present]
    columns = {"class": present, "name": np.array(table.named_classes(), dtype=object)[present], "n": n}
    if table.groups is not None:
        columns["group"] = np.array(table.groups)[present]
    if table.class_counts is not None:
        columns["count"] = table.class_counts[present]
    columns |= {"before": then[present] / n, "after": now[present] / n}
    columns |= {"difference": (now - then)[present] / n, "gained": gained[present], "lost": lost[present]}
    frame = pd.DataFrame(columns).sort_values("difference", ascending=False, kind="stable", ignore_index=True)
    better, worse = int((frame["difference"] > 0).sum()), int((frame["difference"] < 0).sum())
    best, last = frame.iloc[0], frame.iloc[-1]
    same_rule = chosen_by(before) == chosen_by(after)
    by = f"sets by {chosen_by(after)}" if same_rule else f"sets by {chosen_by(before)}, then by {chosen_by(after)}"
    comment = "# other_val, other_test: the tables of the other network, of the same rows"
    return MostImproved(
        frame=frame,
        title="Which classes gain, which lose",
        subtitle=f"n = {counted(len(after), 'row')}; {better} classes better, {worse} worse, "
        f"{len(frame) - better - worse} the same; {by}",
        text=(
            f"Accuracy of {len(frame)} classes on n = {len(after)} rows, {by}: {better} better than before, {worse} worse. "
            f"The most improved is {best['name']}, {best['before']:.0%} to {best['after']:.0%}; the least "
            f"{last['name']}, {last['before']:.0%} to {last['after']:.0%}."
        ),
        code=code_with_sets(
            f"wb.figures.most_improved(before, after, most={most})",
            after,
            setup=(comment, *code_of_sets(before, "before", "other_val", "other_test").setup),
            name="after",
        ),
        most=most,
    )


def _holds(sets: PredictionSets, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Whether each (row, class) pair is in the sets; rows rise."""
    found = np.empty(len(rows), bool)
    for block, _, mask in sets.blocks():
        inside = slice(*np.searchsorted(rows, (block.start, block.stop)))
        found[inside] = mask[rows[inside] - block.start, classes[inside]]
    return found


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class MostImproved(Figure):
    """Bars to the right for what was gained, to the left for what was lost."""

    most: int

    def ends(self) -> pd.DataFrame:
        """The classes that are drawn, with their `place` from the top."""
        differs = self.frame[self.frame["difference"] != 0]
        better, worse = differs[differs["difference"] > 0], differs[differs["difference"] < 0]
        drawn = pd.concat([better.head(self.most), worse.tail(self.most)])
        return drawn.assign(place=np.arange(len(drawn)))

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of a class that only one of the two gets: rows of the sets `before`, with `after` as the other ones."""
        bar = self.ends().iloc[click.point]
        return RowFilter(label=int(bar["class"]), disagreement=ONLY_OTHER if bar["difference"] > 0 else ONLY_THIS)

    def _limit(self, drawn: pd.DataFrame) -> float:
        return 100 * round_limit(float(drawn["difference"].abs().max()) if len(drawn) else 0.0)

    def _plotly(self, theme: Theme) -> go.Figure:
        drawn = self.ends()
        template = "<b>{name}</b><br>{before:.1%} before, {after:.1%} after, {change}<br>{gained} of {n} rows gained, {lost} lost"
        escaped = drawn.assign(name=drawn["name"].map(html.escape), change=drawn["difference"].map(points))
        bars = go.Bar(
            x=100 * drawn["difference"],
            y=drawn["place"],
            orientation="h",
            marker_color=[theme.hit if difference > 0 else theme.miss for difference in drawn["difference"]],
            customdata=[template.format_map(record) for record in escaped.to_dict("records")],
            hovertemplate="%{customdata}<extra></extra>",
        )
        figure, limit = go.Figure(bars), self._limit(drawn)
        figure.add_vline(x=0, line={"color": theme.muted, "width": 1})
        if not len(drawn):
            figure.add_annotation(x=0, y=9.5, text="no class differs", showarrow=False, font_color=theme.muted)
        figure.update_xaxes(range=(-1.06 * limit, 1.06 * limit), tickformat="+~g", title=CHANGE)
        names = drawn["name"].map(beside_an_axis).map(html.escape)
        ticks = {"tickvals": drawn["place"], "ticktext": names, "automargin": True, "showgrid": False}
        figure.update_yaxes(range=(max(2 * self.most, 1) - 0.4, -0.6), **ticks)
        return figure.update_layout(height=140 + 28 * 2 * self.most, showlegend=False)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        drawn = self.ends()
        figure = paper(7.2, 1.6 + 0.24 * 2 * self.most)
        axes, limit = figure.subplots(), self._limit(drawn)
        colours = [theme.hit if difference > 0 else theme.miss for difference in drawn["difference"]]
        axes.barh(drawn["place"], 100 * drawn["difference"], 0.8, color=colours)
        axes.axvline(0, color=theme.muted, linewidth=0.8)
        axes.set_yticks(drawn["place"], drawn["name"].map(beside_an_axis))
        axes.set(xlim=(-limit, limit), ylim=(max(len(drawn), 1) - 0.4, -0.6), xlabel=CHANGE)
        axes.xaxis.set_major_formatter("{x:+g}")
        axes.grid(visible=False, axis="y")
        return figure
