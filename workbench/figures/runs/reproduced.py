"""Ours beside theirs: the numbers of a paper's table and what was reproduced of them."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, beside_an_axis, checked_frame, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

COLUMNS = ("row", "column", "part", "printed", "printed_low", "printed_high", "ours", "low", "high", "seeds")
SOURCE = "wb.claims.TABLES[name].reproduce(...).frame is one"
APART = 0.17  # how far theirs lies above a line and ours below it
LONGEST = 44  # letters of a cell beside the axis


def reproduced(frame: pd.DataFrame, title: str = "Ours beside theirs", subtitle: str = "") -> Reproduced:
    """The numbers of a paper's table and ours, each with its interval, in the units of the paper.

    `frame` is that of a reproduction, `wb.claims.TABLES[name].reproduce(...).frame`; `title` and `subtitle` stand above
    the picture. A line is a cell, a panel one of the numbers that a cell has. Theirs are hollow diamonds, where they are
    printed, ours filled dots.

    >>> import workbench as wb
    >>> figure = reproduced(wb.claims.TABLES["000 Table 5.4"].reproduce().frame)
    >>> figure.text
    'Ours beside theirs: 3 numbers of n = 1 seed a cell. The largest difference is 0: AVG-K, α, 5 printed, ours 5.'
    """
    checked_frame(frame, COLUMNS, SOURCE)
    known = frame[frame["ours"].notna()]
    rows, columns = (
        int(known.groupby("part")[name].nunique().max()) if len(known) else 0 for name in ("row", "column")
    )
    names = [_called(line["row"], line["column"], rows, columns) for line in frame.to_dict("records")]
    drawn = frame.assign(cell=names)[["cell", *COLUMNS]].loc[known.index].reset_index(drop=True)
    if drawn.empty:
        raise ValueError("no number of this table was reproduced; its printed ones are in the frame")
    seeds = sorted({int(n) for n in drawn["seeds"]})
    of = f"n = {counted(seeds[0], 'seed')}" if len(seeds) == 1 else f"n = {seeds[0]} to {seeds[-1]} seeds"
    return Reproduced(
        frame=drawn,
        title=title,
        subtitle=f"{of} a cell; lines are 95 % intervals" + (f"; {subtitle}" if subtitle else ""),
        text=f"{title}: {counted(len(drawn), 'number')} of {of} a cell. {_largest_difference(drawn)}"
        + (f" {subtitle[:1].upper()}{subtitle[1:]}." if subtitle else ""),
        code=Code("wb.figures.reproduced(frame)", ["# frame: that of wb.claims.TABLES[name].reproduce(...)"]),
    )


def _largest_difference(drawn: pd.DataFrame) -> str:
    both = drawn[drawn["printed"].notna()]
    if both.empty:
        return "The paper prints none of them."
    far = both.to_dict("records")[int((both["ours"] - both["printed"]).abs().to_numpy().argmax())]
    what = ", ".join(str(word) for word in (far["row"], far["column"], far["part"]) if word)
    difference = abs(far["ours"] - far["printed"])
    return f"The largest difference is {difference:.3g}: {what}, {far['printed']:g} printed, ours {far['ours']:.4g}."


def _called(row: str, column: str, rows: int, columns: int) -> str:
    """A cell by what tells it from others: its row, its column, or both."""
    if columns == 1:
        return row
    return column if rows == 1 else f"{row}, {column}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Reproduced(Figure):
    """A line for each cell; a panel for each of its numbers, side by side."""

    def cells(self) -> list[str]:
        """The cells from top to bottom."""
        return list(dict.fromkeys(self.frame["cell"]))

    def panels(self) -> dict[str, pd.DataFrame]:
        """Part → its dots, with a `place` from the top."""
        places = {cell: place for place, cell in enumerate(self.cells())}
        placed = self.frame.assign(place=self.frame["cell"].map(places))
        return {part: placed[placed["part"] == part] for part in dict.fromkeys(self.frame["part"])}

    def limits(self, dots: pd.DataFrame) -> tuple[float, float]:
        """The ends of the axis of a panel: all numbers and intervals, and a little room."""
        ends = ["printed", "printed_low", "printed_high", "ours", "low", "high"]
        values = dots[ends].to_numpy(float)
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
        return low - room, high + room

    def looks(self, theme: Theme) -> tuple[tuple[str, str, str, str, str, float], ...]:
        """Of theirs and of ours: name, column of the value, of the ends, colour, and the way off the line."""
        return (
            ("printed", "printed", "printed_low", "printed_high", theme.model_b, -APART),
            ("ours", "ours", "low", "high", theme.model_a, APART),
        )

    def _plotly(self, theme: Theme) -> go.Figure:
        from plotly.subplots import make_subplots

        panels, cells = self.panels(), self.cells()
        titles = [html.escape(_titled(part, panels)) for part in panels]
        figure = make_subplots(cols=len(panels), shared_yaxes=True, horizontal_spacing=0.04, subplot_titles=titles)
        for place, dots in enumerate(panels.values(), start=1):
            for name, value, low, high, colour, off in self.looks(theme):
                theirs = name == "printed"
                marker: dict[str, Any] = {"symbol": "diamond-open" if theirs else "circle", "color": colour, "size": 9}
                figure.add_scatter(
                    **{"x": dots[value], "y": dots["place"] + off, "mode": "markers", "name": name, "marker": marker},
                    **{"legendgroup": name, "showlegend": place == 1},
                    error_x={
                        **{"array": dots[high] - dots[value], "arrayminus": dots[value] - dots[low]},
                        **{"color": colour, "thickness": 1.5, "width": 0},
                    },
                    customdata=[html.escape(cell) for cell in dots["cell"]],
                    hovertemplate=f"<b>%{{customdata}}</b><br>{name} %{{x:.5g}}<extra></extra>",
                    **{"row": 1, "col": place},
                )
            figure.update_xaxes(range=self.limits(dots), row=1, col=place)
        ticks = {"tickvals": list(range(len(cells))), "ticktext": [html.escape(_short(cell)) for cell in cells]}
        figure.update_yaxes(range=(len(cells) - 0.5, -0.5), automargin=True, **ticks)
        below = {
            "x": 1,
            "xanchor": "right",
            "yref": "container",
            "y": 0,
            "yanchor": "bottom",
        }  # panels have titles above
        return figure.update_layout(height=180 + 26 * len(cells), showlegend=True, legend=below)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        panels, cells = self.panels(), self.cells()
        figure = paper(4.2 + 2.2 * len(panels), 1.8 + 0.26 * len(cells))
        several = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, (part, dots) in zip(several, panels.items(), strict=True):
            for name, value, low, high, colour, off in self.looks(theme):
                theirs = name == "printed"
                axes.hlines(dots["place"] + off, dots[low], dots[high], color=colour, linewidth=1.4)
                axes.plot(
                    *(dots[value], dots["place"] + off, "D" if theirs else "o"),
                    **{"color": colour, "markerfacecolor": theme.paper if theirs else colour, "markersize": 5.5},
                    **{"linestyle": "none", "label": name},
                )
            axes.set(xlim=self.limits(dots), title=_titled(part, panels))
        several[0].set_yticks(range(len(cells)), [_short(cell) for cell in cells])
        several[0].set_ylim(len(cells) - 0.5, -0.5)
        handles, names = several[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower right", ncols=2)
        return figure


def _titled(part: str, panels: dict[str, pd.DataFrame]) -> str:
    """Return the title of a panel; the first number of a cell has no name and counts all classes."""
    return part if part or len(panels) == 1 else "all"


def _short(cell: str) -> str:
    return beside_an_axis(cell, LONGEST)
