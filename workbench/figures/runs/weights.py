"""The landscape around trained weights, as `training.weight_plane` computed it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from workbench.figures.base import Figure, checked_frame, counted, paper
from workbench.figures.snippet import Code
from workbench.figures.style import SEQUENTIAL, Theme, sequential_scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

BANDS = len(SEQUENTIAL)
COLUMNS = ("a", "b", "loss", "accuracy", "K", "n")


def weight_plane(plane: pd.DataFrame) -> WeightPlane:
    """Loss and average-K accuracy on a plane through trained weights, which stand in the middle.

    `plane` is what `training.weight_plane(run)` returned. Colours of the loss are logarithmic where it is positive: it
    grows fast, and what matters is how wide the valley is. Points where the network overflows are left blank.

    >>> import itertools
    >>> points = [(a, b, 1 + a * a + b * b, 0.9, 0.1, 2.0, 50) for a, b in itertools.product((-1, 0, 1), repeat=2)]
    >>> weight_plane(pd.DataFrame(points, columns=["a", "b", "loss", "accuracy", "threshold", "K", "n"])).subtitle
    'n = 50 test rows, 9 points, sets of 2 classes on average'
    """
    checked_frame(plane, COLUMNS, "training.weight_plane(run) makes one")
    if plane.empty:
        raise ValueError("the plane has no points; give the frame of training.weight_plane(run)")
    sides = plane["a"].nunique(), plane["b"].nunique()
    if sides[0] * sides[1] != len(plane) or plane.duplicated(["a", "b"]).any():
        raise ValueError(f"{len(plane)} points are not a lattice of {sides[0]} × {sides[1]}; give all rows of a plane")
    middle = plane.iloc[int((plane["a"] ** 2 + plane["b"] ** 2).argmin())]
    best = plane.iloc[int(plane["accuracy"].argmax())]
    K, n = float(middle["K"]), int(middle["n"])
    return WeightPlane(
        frame=plane.reset_index(drop=True),
        title="Around the trained weights",
        subtitle=f"n = {counted(n, 'test row')}, {counted(len(plane), 'point')}, sets of {K:g} classes on average",
        text=(
            f"Loss and average-{K:g} accuracy of n = {n} test rows at {len(plane)} points of a plane through trained weights. In "
            f"the middle the loss is {middle['loss']:.3g} and the accuracy {middle['accuracy']:.1%}; the loss reaches "
            f"{plane['loss'].max():.3g}, the highest accuracy is {best['accuracy']:.1%} at ({best['a']:g}, {best['b']:g})."
        ),
        code=Code(
            "wb.figures.weight_plane(plane)", ["# plane: the frame of workbench.training.trainer.weight_plane(run)"]
        ),
    )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WeightPlane(Figure):
    """Two maps of the same plane: the loss on the left, the accuracy on the right."""

    columns: int = 2

    def narrow(self) -> WeightPlane:
        """The two maps below one another."""
        return replace(self, columns=1)

    def maps(self) -> list[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray, list[str]]]:
        """(name, a, b, heights (b, a), borders of the bands, their names) of each map."""
        found = []
        for column, name in (("loss", "loss"), ("accuracy", "average-K accuracy")):
            wide = self.frame.pivot_table(index="b", columns="a", values=column, dropna=False)
            heights = wide.to_numpy()
            logarithmic = column == "loss" and np.nanmin(heights) > 0
            heights = np.log10(heights) if logarithmic else heights
            low, high = np.nanmin(heights), np.nanmax(heights)
            borders = np.linspace(low, high if high > low else low + 1, BANDS + 1)
            values = 10**borders if logarithmic else borders
            named = [f"{value:.0%}" if column == "accuracy" else f"{value:.2g}" for value in values]
            found.append((name, wide.columns.to_numpy(), wide.index.to_numpy(), heights, borders, named))
        return found

    def ends(self) -> tuple[float, float]:
        """The ends of both axes."""
        return float(self.frame["a"].min()), float(self.frame["a"].max())

    def _plotly(self, theme: Theme) -> go.Figure:
        maps = self.maps()
        lines = len(maps) // self.columns
        titles = [f"<b>{name}</b>" for name, *_ in maps]
        spacing = {"horizontal_spacing": 0.2, "vertical_spacing": 0.2}
        figure = make_subplots(lines, self.columns, subplot_titles=titles, **spacing)
        for place, (name, a, b, heights, borders, named) in enumerate(maps):
            where = {"row": place // self.columns + 1, "col": place % self.columns + 1}
            right, top = (0.4 if where["col"] < self.columns else 1.0), (1.0 if where["row"] == 1 else 0.4)
            bar = {"x": right, "y": top, "yanchor": "top", "len": 0.7 / lines, "thickness": 12}
            bar |= {"outlinewidth": 0, "xpad": 8, "ypad": 0}
            ticks = {"tickvals": borders[::2], "ticktext": named[::2]}
            column = {"loss": "loss", "average-K accuracy": "accuracy"}[name]
            figure.add_contour(
                x=a,
                y=b,
                z=heights,
                customdata=self.frame.pivot_table(index="b", columns="a", values=column, dropna=False).to_numpy(),
                contours={"start": borders[0], "end": borders[-1], "size": borders[1] - borders[0]},
                colorscale=sequential_scale(theme),
                line={"width": 0},
                zmin=borders[0],
                zmax=borders[-1],
                colorbar={**bar, **ticks},
                hovertemplate="a %{x:.2f}, b %{y:.2f}<br>%{customdata:.3f}<extra>" + name + "</extra>",
                **where,
            )
            dot = {"symbol": "x", "size": 12, "color": theme.threshold, "line": {"color": theme.paper, "width": 1.5}}
            figure.add_scatter(
                x=[0], y=[0], mode="markers", marker=dot, showlegend=False, **where,
                hovertemplate="the trained weights<extra></extra>",
            )  # fmt: skip
        # A step is as long in both directions, so the plane is drawn square, close to its colour bar.
        figure.update_xaxes(range=self.ends(), title="a, first direction", constrain="domain", constraintoward="right")
        ends = (float(self.frame["b"].min()), float(self.frame["b"].max()))
        upright = {"range": ends, "constrain": "domain", "constraintoward": "top"}
        for axis in ("", "2"):
            figure.update_layout({f"yaxis{axis}": {"scaleanchor": f"x{axis}", **upright}})
        figure.update_yaxes(title="b, second direction", col=1)
        return figure.update_layout(height=120 + 340 * lines, margin={"t": 112})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(8.6, 4.4)
        for axes, (name, a, b, heights, borders, named) in zip(figure.subplots(1, 2), self.maps(), strict=True):
            shown: Any = np.ma.masked_invalid(heights).clip(borders[0], borders[-1])
            filled = axes.contourf(a, b, shown, borders, colors=theme.sequential)
            axes.plot(0, 0, "X", color=theme.threshold, markeredgecolor=theme.paper, markersize=9)
            axes.set(xlabel="a, first direction", ylabel="b, second direction", aspect="equal")
            axes.set_title(name, fontsize=10.5)
            bar = figure.colorbar(filled, ax=axes, shrink=0.8, ticks=borders[::2])
            bar.set_ticklabels(named[::2])
            bar.outline.set_visible(False)
        return figure
