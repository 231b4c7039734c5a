"""Any numbers with their intervals: along a knob, or name by name."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Figure, checked_frame, counted, paper
from workbench.figures.snippet import Code
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

    Args:
        frame: Columns `series`, `x`, `value`, `low`, `high`; with a column `panel`, one panel above the other.
        x: Title of the horizontal axis.
        y: Title of the vertical axis.
        title: Title of the picture.
        logarithmic: Whether x is drawn on a logarithmic scale.

    >>> points = pd.DataFrame({"series": "noised", "x": [0.1, 1.0], "value": [60, 90], "low": [58, 89], "high": [62, 91]})
    >>> with_intervals(points, "ε", "top-5 accuracy, %").text
    'top-5 accuracy, % against ε, n = 2 values: noised 60 (58 to 62) at 0.1, 90 (89 to 91) at 1.'
    """
    checked_frame(frame, COLUMNS, "any frame with these columns will do")
    panelled = "panel" in frame
    points = pd.DataFrame(frame[[*COLUMNS, *["panel"] * panelled]]).reset_index(drop=True)
    numeric = pd.api.types.is_numeric_dtype(points["x"])
    if logarithmic and not (numeric and (points["x"] > 0).all()):
        raise ValueError("logarithmic=True, but x has names or numbers that are not above 0; leave it out")
    summary = [
        f"{': '.join(map(str, names))} "
        + ", ".join(f"{_with_interval(row)} at {_place(row.x)}" for row in part.itertuples())
        for names, part in points.groupby([*["panel"] * panelled, "series"], sort=False)
    ]
    against = f"{y} against {x}" if x else y
    arguments = f"x={x!r}, y={y!r}, title={title!r}, logarithmic={logarithmic!r}"
    return WithIntervals(
        frame=points,
        title=title or against,
        subtitle=f"n = {counted(len(points), 'value')} of {counted(points['series'].nunique(), 'series', 'series')}; "
        "bars are 95 % intervals",
        text=f"{against}, n = {counted(len(points), 'value')}: {'; '.join(summary)}.",
        code=Code(
            f"wb.figures.with_intervals(points, {arguments})", ("# points: a frame of series, x, value, low and high",)
        ),
        names=(x, y),
        numeric=numeric,
        logarithmic=logarithmic,
    )


def _with_interval(row: Any) -> str:
    return f"{row.value:.3g}" + ("" if np.isnan(row.low) else f" ({row.low:.3g} to {row.high:.3g})")


def _place(x: Any) -> str:
    return x if isinstance(x, str) else f"{x:g}"


def _with_room(values: np.ndarray) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.06 * (high - low) or 0.05 * abs(high) or 0.05
    return low - room, high + room


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WithIntervals(Figure):
    """One line or one column of dots for each series, in each panel."""

    names: tuple[str, str]
    numeric: bool
    logarithmic: bool

    def panels(self) -> list[tuple[str, pd.DataFrame]]:
        """Name and points of each panel; one without a name, where the frame has none."""
        if "panel" not in self.frame:
            return [("", self.frame)]
        return [(str(name), part) for name, part in self.frame.groupby("panel", sort=False)]

    def series(self, points: pd.DataFrame) -> list[tuple[int, str, pd.DataFrame]]:
        """Place, name and points of each series of a panel, in the order they came in; numbers along x are sorted."""
        parts = {str(name): part for name, part in points.groupby("series", sort=False)}
        return [
            (place, name, parts[name].sort_values("x") if self.numeric else parts[name])
            for place, name in enumerate(self.legend())
            if name in parts
        ]

    def legend(self) -> list[str]:
        """Names of all series."""
        return [str(name) for name in dict.fromkeys(self.frame["series"])]

    def places(self) -> list[str]:
        """The names along x."""
        return [str(name) for name in dict.fromkeys(self.frame["x"])]

    def across(self, part: pd.DataFrame, place: int) -> np.ndarray:
        """Positions of the points of a series: their numbers, or beside the other series at a name."""
        if self.numeric:
            return part["x"].to_numpy(float)
        names = self.places()
        return np.array([names.index(str(x)) for x in part["x"]]) + APART * (place - (len(self.legend()) - 1) / 2)

    def limits(self) -> tuple[float, float]:
        """The ends of x: all points and a little room; of the logarithm of x where that is drawn."""
        if not self.numeric:
            return _with_room(np.array([-0.5, len(self.places()) - 0.5]))
        across = self.frame["x"].to_numpy(float)
        return _with_room(np.log10(across) if self.logarithmic else across)

    def _plotly(self, theme: Theme) -> go.Figure:
        panels = self.panels()
        figure = make_subplots(
            rows=len(panels), shared_xaxes=True, vertical_spacing=0.09, subplot_titles=[html.escape(name) for name, _ in panels]
        )  # fmt: skip
        for row, (_, points) in enumerate(panels, 1):
            for place, name, part in self.series(points):
                colour = theme.categories[place % len(theme.categories)]
                reach = {"array": part["high"] - part["value"], "arrayminus": part["value"] - part["low"]}
                figure.add_scatter(
                    x=self.across(part, place), y=part["value"], name=html.escape(name), row=row, col=1,
                    legendgroup=name, showlegend=row == 1, mode="lines+markers" if self.numeric else "markers",
                    line={"color": colour, "width": 2.5},
                    marker={"size": 10, "color": colour, "symbol": MARKERS[place % len(MARKERS)]},
                    error_y={**reach, "color": colour, "thickness": 1.5, "width": 0}, customdata=part["x"],
                    hovertemplate=f"<b>{html.escape(name)}</b><br>%{{customdata}}: %{{y:.4g}}<extra></extra>",
                )  # fmt: skip
            upward = _with_room(points[["value", "low", "high"]].to_numpy(float))
            figure.update_yaxes(title=self.names[1], range=upward, row=row, col=1)
        figure.update_xaxes(type="log" if self.logarithmic else "linear", range=self.limits())
        figure.update_xaxes(title=self.names[0], row=len(panels), col=1)
        if not self.numeric:
            names = [html.escape(name) for name in self.places()]
            figure.update_xaxes(tickvals=list(range(len(names))), ticktext=names, showgrid=False)
        legend = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.28 / len(panels), "yanchor": "top"}
        height = 440 + 260 * (len(panels) - 1)
        return figure.update_layout(height=height, showlegend=len(self.legend()) > 1, legend=legend)

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        panels = self.panels()
        figure = paper(7.2, 4.4 + 2.4 * (len(panels) - 1))
        rows = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        for axes, (title, points) in zip(rows, panels, strict=True):
            for place, name, part in self.series(points):
                x, value = self.across(part, place), part["value"].to_numpy(float)
                reach = np.abs(part[["low", "high"]].to_numpy(float) - value[:, None]).T
                axes.errorbar(
                    x, value, reach, label=name, color=theme.categories[place % len(theme.categories)],
                    marker=STATIC_MARKERS[place % len(STATIC_MARKERS)], linestyle="-" if self.numeric else "none", linewidth=1.6,
                )  # fmt: skip
            axes.set(ylabel=self.names[1])
            axes.set_title(title, loc="left", fontsize="medium")
        last = rows[-1]
        last.set(xlabel=self.names[0])
        if self.logarithmic:
            ticks = np.unique(self.frame["x"])
            last.set_xscale("log")
            last.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            last.minorticks_off()
        if not self.numeric:
            names = self.places()
            crowded = sum(map(len, names)) > 60
            last.set_xticks(
                range(len(names)), names, rotation=30 if crowded else 0, ha="right" if crowded else "center"
            )
        if len(self.legend()) > 1:
            shown = dict(zip(*rows[0].get_legend_handles_labels()[::-1], strict=True))
            figure.legend(
                shown.values(), shown.keys(), loc="outside lower center", ncols=min(len(shown), 3), frameon=False
            )
        return figure
