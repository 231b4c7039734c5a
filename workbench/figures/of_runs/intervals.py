"""Any numbers with their intervals: along a knob, or name by name."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, checked_frame, counted, paper
from workbench.figures.code import Code
from workbench.figures.style import Theme

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

COLUMNS = ("series", "x", "value", "low", "high")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "cross")  # beside the colours, for eyes that need them
STATIC_MARKERS = ("o", "s", "D", "^", "X", "P")
APART = 0.16  # between the series of one name, where names stand side by side


def with_intervals(
    frame: pd.DataFrame, x: str = "", y: str = "value", *, title: str = "", logarithmic: bool = False
) -> WithIntervals:
    """Values of several series with their intervals: lines where x is a number, dots side by side where it is a name.

    - `frame`: columns `series`, `x`, `value`, `low`, `high`.
    - `x`, `y`: what the axes are called.
    - `title`: what the picture is called.
    - `logarithmic`: whether x is drawn on a logarithmic scale.

    >>> points = pd.DataFrame({"series": "noised", "x": [0.1, 1.0], "value": [60, 90], "low": [58, 89], "high": [62, 91]})
    >>> with_intervals(points, "ε", "top-5 accuracy, %").text
    'top-5 accuracy, % against ε, n = 2 values: noised 60 (58 to 62) at 0.1, 90 (89 to 91) at 1.'
    """
    checked_frame(frame, COLUMNS, "any frame with these columns will do")
    points = pd.DataFrame(frame[list(COLUMNS)]).reset_index(drop=True)
    numeric = pd.api.types.is_numeric_dtype(points["x"])
    if logarithmic and not (numeric and (points["x"] > 0).all()):
        raise ValueError("logarithmic=True, but x has names or numbers that are not above 0; leave it out")
    told = [
        f"{name} " + ", ".join(f"{_told(row)} at {_place(row.x)}" for row in part.itertuples())
        for name, part in points.groupby("series", sort=False)
    ]
    against = f"{y} against {x}" if x else y
    arguments = f"x={x!r}, y={y!r}, title={title!r}, logarithmic={logarithmic!r}"
    return WithIntervals(
        frame=points,
        title=title or against,
        subtitle=f"n = {counted(len(points), 'value')} of {counted(points['series'].nunique(), 'series', 'series')}; "
        "bars are 95 % intervals",
        text=f"{against}, n = {counted(len(points), 'value')}: {'; '.join(told)}.",
        code=Code(
            f"wb.figures.with_intervals(points, {arguments})", ("# points: a frame of series, x, value, low and high",)
        ),
        names=(x, y),
        numeric=numeric,
        logarithmic=logarithmic,
    )


def _told(row: Any) -> str:
    return f"{row.value:.3g}" + ("" if np.isnan(row.low) else f" ({row.low:.3g} to {row.high:.3g})")


def _place(x: Any) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def _with_room(values: np.ndarray) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WithIntervals(Figure):
    """One line or one column of dots for each series."""

    names: tuple[str, str]
    numeric: bool
    logarithmic: bool

    def series(self) -> list[tuple[str, pd.DataFrame]]:
        """Name and points of each series, in the order they came in; numbers along x are sorted."""
        parts = [(str(name), part) for name, part in self.frame.groupby("series", sort=False)]
        return [(name, part.sort_values("x") if self.numeric else part) for name, part in parts]

    def places(self) -> list[str]:
        """The names along x."""
        return [str(name) for name in dict.fromkeys(self.frame["x"])]

    def across(self, part: pd.DataFrame, place: int, n: int) -> np.ndarray:
        """Where the points of a series stand: at their numbers, or beside those of the other series at a name."""
        if self.numeric:
            return part["x"].to_numpy(float)
        names = self.places()
        return np.array([names.index(str(x)) for x in part["x"]]) + APART * (place - (n - 1) / 2)

    def limits(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The ends of both axes: all points and intervals, and a little room; of the logarithm of x where that is drawn."""
        if self.numeric:
            across = self.frame["x"].to_numpy(float)
            across = np.log10(across) if self.logarithmic else across
        else:
            across = np.array([-0.5, len(self.places()) - 0.5])
        return _with_room(across), _with_room(self.frame[["value", "low", "high"]].to_numpy(float))

    def _plotly(self, theme: Theme) -> go.Figure:
        figure, series = go.Figure(), self.series()
        for place, (name, part) in enumerate(series):
            colour = theme.categories[place % len(theme.categories)]
            reach = {"array": part["high"] - part["value"], "arrayminus": part["value"] - part["low"]}
            figure.add_scatter(
                x=self.across(part, place, len(series)), y=part["value"], name=html.escape(name),
                mode="lines+markers" if self.numeric else "markers", line={"color": colour, "width": 2.5},
                marker={"size": 10, "color": colour, "symbol": MARKERS[place % len(MARKERS)]},
                error_y={**reach, "color": colour, "thickness": 1.5, "width": 0},
                customdata=part["x"], hovertemplate=f"<b>{html.escape(name)}</b><br>%{{customdata}}: %{{y:.4g}}<extra></extra>",
            )  # fmt: skip
        across, upward = self.limits()
        figure.update_xaxes(title=self.names[0], type="log" if self.logarithmic else "linear", range=across)
        if not self.numeric:
            names = [html.escape(name) for name in self.places()]
            figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, showgrid=False)
        figure.update_yaxes(title=self.names[1], range=upward)
        legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.28, "yanchor": "top"}
        return figure.update_layout(height=440, showlegend=len(series) > 1, legend=legend)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        series, figure = self.series(), paper(7.2, 4.4)
        axes = figure.subplots()
        for place, (name, part) in enumerate(series):
            x, value = self.across(part, place, len(series)), part["value"].to_numpy(float)
            reach = np.abs(part[["low", "high"]].to_numpy(float) - value[:, None]).T
            axes.errorbar(
                x, value, reach, label=name, color=theme.categories[place % len(theme.categories)],
                marker=STATIC_MARKERS[place % len(STATIC_MARKERS)], linestyle="-" if self.numeric else "none", linewidth=1.6,
            )  # fmt: skip
        axes.set(xlabel=self.names[0], ylabel=self.names[1])
        if self.logarithmic:
            ticks = np.unique(self.frame["x"])
            axes.set_xscale("log")
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.minorticks_off()
        if not self.numeric:
            names = self.places()
            crowded = sum(map(len, names)) > 60
            axes.set_xticks(
                range(len(names)), names, rotation=30 if crowded else 0, ha="right" if crowded else "center"
            )
        if len(series) > 1:
            figure.legend(loc="outside lower center", ncols=min(len(series), 3), frameon=False)
        return figure
