"""The set of the network against the Bayes set: which rows are ambiguous, and which are only not learnt?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Click, Figure, chosen_by, code_with_sets, counted, paper
from workbench.figures.sets.sizes import size_ticks
from workbench.figures.style import Theme
from workbench.metrics.against_bayes import (
    AMBIGUOUS,
    CLEAR,
    MEANING,
    NOT_LEARNT,
    OVERCONFIDENT,
    QUADRANTS,
    sizes_against_bayes,
)
from workbench.metrics.rows import RowFilter
from workbench.sets.prediction_sets import PredictionSets, checked_sets

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

LAST = 12  # classes of a set from which on sets share a line or a column
FEWEST = 4  # lines and columns
PIXELS, POINTS = 40, 26  # diameter of the bubble of the most rows, on a screen and on paper
NARROW = 0.6  # how large bubbles are on a narrow screen, for their size on a wide one
GHOST = 0.25  # opacity of rows that are not selected
CORNERS = {CLEAR: (0, 0), AMBIGUOUS: (1, 1), NOT_LEARNT: (0, 1), OVERCONFIDENT: (1, 0)}  # right and top of the picture


def against_bayes(sets: PredictionSets, rows: Any = None) -> AgainstBayes:
    """The size of each set against that of the Bayes set, which the same rule gives with the true posterior or the votes.

    Args:
        sets: Sets that a rule made, of a table with a `posterior` or `votes`.
        rows: a selection, as a mask or as row numbers; all other rows are drawn pale.

    A set is large if it has more classes than the Bayes sets have on average. Both small: the row is clear. Both large: it
    is truly ambiguous. Only that of the network large: it is not learnt yet. Only that of the network small: the network is
    overconfident. The frame has one line for each pair of sizes.

    >>> import workbench as wb
    >>> truth = [[1.0, 0.0], [0.5, 0.5], [0.5, 0.5]]
    >>> table = wb.LogitTable.from_probabilities([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]], posterior=truth)
    >>> against_bayes(wb.PointwiseError(0.8).fit(table)(table)).frame
       bayes_size  size       quadrant  count     share
    0           1     1     both small      1  0.333333
    1           2     1  network small      1  0.333333
    2           2     2     both large      1  0.333333
    """
    sizes = sizes_against_bayes(checked_sets(sets))
    chosen = np.full(len(sets), rows is None)
    if rows is not None:
        chosen[rows] = True
    names = np.array(list(QUADRANTS))[sizes.quadrants()]
    each = pd.DataFrame({"bayes_size": sizes.bayes, "size": sizes.network, "quadrant": names, "selected": chosen})
    frame = (
        each.assign(count=1).groupby(["bayes_size", "size", "quadrant"], as_index=False)[["count", "selected"]].sum()
    )
    frame.insert(4, "share", frame["count"] / len(sets))
    frame = frame.drop(columns="selected") if rows is None else frame
    shares = {name: float(np.mean(names[chosen] == name)) if chosen.any() else 0.0 for name in QUADRANTS}
    summary = ", ".join(f"{name} ({MEANING[name]}) {share:.1%}" for name, share in shares.items())
    truth = "true posterior" if sets.table.posterior is not None else "votes of people"
    selected = "" if rows is None else f"{counted(int(chosen.sum()))} selected of "
    n = f"{selected}{counted(len(sets), 'row')}"
    return AgainstBayes(
        frame=frame,
        title="Ambiguous, or not learnt?",
        subtitle=f"n = {n}, {chosen_by(sets)}; large: above the Bayes mean of {sizes.cut:.2f} classes",
        text=(
            f"Sizes of the sets by {chosen_by(sets)} against those of the Bayes sets by the {truth}, on n = {n}. Large is "
            f"more than {sizes.cut:.2f} classes, the mean of the Bayes sets. Share of the rows: {summary}."
        ),
        code=code_with_sets(
            f"wb.figures.against_bayes(sets{'' if rows is None else ', rows=rows'})",
            sets,
            setup=() if rows is None else ["# rows: the numbers of the selected rows"],
        ),
        cut=sizes.cut,
        shares=shares,
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AgainstBayes(Figure):
    """One bubble for each pair of sizes, in the colour of its quadrant."""

    cut: float
    shares: dict[str, float]  # of the selected rows, by quadrant
    short: bool = False  # corners say only what a quadrant means

    def narrow(self) -> Self:
        """The same with smaller bubbles and fewer words."""
        return replace(self, short=True)

    def end(self) -> int:
        """The size from which on sets share a line or a column."""
        largest = int(self.frame[["size", "bayes_size"]].to_numpy().max())
        return min(LAST, max(FEWEST, largest, int(np.ceil(self.cut)) + 1))

    def bubbles(self) -> pd.DataFrame:
        """One line for each bubble: larger sets are pooled with the last size."""
        columns = ["count", *(["selected"] if "selected" in self.frame else [])]
        pooled = self.frame.assign(
            size=self.frame["size"].clip(upper=self.end()), bayes_size=self.frame["bayes_size"].clip(upper=self.end())
        )
        return pooled.groupby(["bayes_size", "size", "quadrant"], as_index=False)[columns].sum()

    def colour(self, quadrant: str, theme: Theme) -> str:
        """The colour of a quadrant."""
        colours = {CLEAR: theme.muted, AMBIGUOUS: theme.bayes, NOT_LEARNT: theme.model_a, OVERCONFIDENT: theme.model_b}
        return colours[quadrant]

    def layers(self) -> list[tuple[str, pd.DataFrame, np.ndarray, bool]]:
        """Return (quadrant, bubbles, number of rows of each, pale) from back to front."""
        bubbles = self.bubbles()
        parts = [(name, part) for name, part in bubbles.groupby("quadrant", sort=False)]
        selection = "selected" in bubbles
        layers = [(str(name), part, part["count"].to_numpy(), selection) for name, part in parts]
        if selection:
            layers += [(str(name), part, part["selected"].to_numpy(), False) for name, part in parts]
        return layers

    def diameters(self, counts: np.ndarray) -> np.ndarray:
        """The diameter of each bubble, 1 for that of the most rows: rows are areas."""
        sizes: np.ndarray = np.sqrt(counts / self.bubbles()["count"].max())
        return sizes

    def corner(self, quadrant: str) -> str:
        """The words in the corner of a quadrant."""
        words = MEANING[quadrant] if self.short else f"{quadrant}: {MEANING[quadrant]}"
        return f"{words}, {self.shares[quadrant]:.0%}"

    def _larger(self) -> bool:
        return int(self.frame[["size", "bayes_size"]].to_numpy().max()) > self.end()

    def rows_behind(self, click: Click) -> RowFilter | None:
        """The rows of the quadrant."""
        return RowFilter(quadrant=str(click.trace)) if click.trace in QUADRANTS else None

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, end = go.Figure(), self.end()
        for name, part, counts, pale in self.layers():
            sizes = (NARROW if self.short else 1) * PIXELS * self.diameters(counts)
            edge = {"width": 1, "color": theme.paper}
            mark = {"color": self.colour(name, theme), "size": sizes, "opacity": 1, "line": edge}
            figure.add_scatter(
                x=part["bayes_size"], y=part["size"], mode="markers", name=name, marker=mark, customdata=counts,
                opacity=GHOST if pale else 1,
                hovertemplate="Bayes set %{x}, network %{y} classes<br>%{customdata} rows<extra>" + name + "</extra>",
            )  # fmt: skip
        ends, line = (-0.7, end + 0.7), {"color": theme.muted, "dash": "dot", "width": 1.5}
        figure.add_shape(type="line", x0=0, y0=0, x1=end, y1=end, line={"color": theme.grid, "width": 2}, layer="below")
        figure.add_vline(x=self._between(), line=line)
        figure.add_hline(y=self._between(), line=line)
        for name, (right, top) in CORNERS.items():
            figure.add_annotation(
                x=right, y=top, xref="paper", yref="paper", text=self.corner(name), showarrow=False,
                xanchor="right" if right else "left", yanchor="top" if top else "bottom",
                font={"color": self.colour(name, theme), "size": 13}, bgcolor=theme.paper,
            )  # fmt: skip
        ticks, names = size_ticks(end, self._larger())
        axis = {"range": ends, "tickvals": ticks, "ticktext": names}
        figure.update_xaxes(**axis, title="classes in the Bayes set")
        figure.update_yaxes(**axis, title="classes in the set of the network")
        return figure.update_layout(height=520, showlegend=False)

    def _between(self) -> float:
        """Boundary between small and large sets: halfway between two sizes."""
        return float(np.floor(self.cut) + 0.5)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure, end = paper(6.4, 5.6), self.end()
        axes = figure.subplots()
        axes.plot([0, end], [0, end], color=theme.grid, linewidth=1.6, zorder=0)
        for name, part, counts, pale in self.layers():
            areas = (POINTS * self.diameters(counts)) ** 2
            look: dict[str, Any] = {
                "color": self.colour(name, theme),
                "alpha": GHOST if pale else 1,
                "linewidth": 0,
                "zorder": 2,
            }
            axes.scatter(part["bayes_size"], part["size"], areas, **look)
        for draw in (axes.axvline, axes.axhline):
            draw(self._between(), color=theme.muted, linestyle=":", linewidth=1.2)
        for name, (right, top) in CORNERS.items():
            axes.text(
                0.99 if right else 0.01, 0.99 if top else 0.01, self.corner(name), transform=axes.transAxes, size="small",
                color=self.colour(name, theme), ha="right" if right else "left", va="top" if top else "bottom",
            )  # fmt: skip
        axes.set(xlim=(-0.7, end + 0.7), ylim=(-0.7, end + 0.7))
        axes.set(xlabel="classes in the Bayes set", ylabel="classes in the set of the network")
        ticks, names = size_ticks(end, self._larger())
        axes.set_xticks(ticks, names)
        axes.set_yticks(ticks, names)
        return figure
