"""Ternary plots of three scores: filled contours, the label's corner, hover text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure, paper
from workbench.figures.losses.evaluation import checked_point
from workbench.figures.snippet import Code
from workbench.figures.style import LIGHT, SEQUENTIAL, Theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as StaticFigure

BANDS = len(SEQUENTIAL)
ARROWS = 10  # along a side
HOVERED = 50  # grid points along a side that answer the pointer: more would only slow the page down
STRAIGHT = (
    1e-4  # of a side: a point of an outline that is no further from the line between its neighbours is not needed
)
SHORTEST_ARROW = 0.03  # of the longest: a shorter one would be all head
HEIGHT = math.sqrt(3) / 2  # of the triangle with side 1
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, HEIGHT]])  # where all of the score is on class 0, 1, 2
CORNER_NAMES = ("bottom left", "bottom right", "top")
X_RANGE, Y_RANGE = (-0.12, 1.12), (-0.1, 0.97)
SYMBOLS = {"circle": "o", "star": "*", "diamond": "D"}  # Plotly's name → matplotlib's
SIZES = {"circle": 13, "star": 26, "diamond": 17}  # pixels: much of a star is its rim
Trace = dict[str, Any]  # a scatter trace of Plotly, which checks it once, when the figure is made


class Mark(NamedTuple):
    """A point of the triangle worth a name."""

    place: tuple[float, float, float]  # the share of each corner
    symbol: str
    colour: str  # which colour of the theme
    name: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LevelSets(Figure):
    """Level sets on the triangle: class 0 bottom left, class 1 bottom right, class 2 on top, whatever the label is."""

    steps: int
    value_range: tuple[float, float]  # the ends of the colours
    units: str  # what the colours measure: "loss" or "loss, rescaled"
    label: int | None = None  # the class whose corner is marked
    regions: int | None = None  # K: outline where the same K classes are the largest
    corners: tuple[str, str, str] = ("class 0", "class 1", "class 2")
    symbol: str = "s"  # of what lies on the triangle: the first three columns of the frame
    marks: tuple[Mark, ...] = ()
    diverging: bool = False  # colours of a difference, with a line at zero

    def colours(self, theme: Theme) -> tuple[str, ...]:
        """The colours of the bands, from low to high."""
        return theme.diverging if self.diverging else theme.sequential

    def grid(self) -> pd.DataFrame:
        """The rows of the frame that are points of the grid: the first, if others follow."""
        return self.frame.head(self.steps * (self.steps + 1) // 2)

    def lattice(self, column: str = "value") -> tuple[np.ndarray, np.ndarray, np.ma.MaskedArray]:
        """The frame as a square grid x, y, value (steps, steps) whose upper half is masked, as contour finders read."""
        up, right = np.indices((self.steps, self.steps))
        values = np.ma.masked_all((self.steps, self.steps))
        values[up + right < self.steps] = self.grid()[column].to_numpy()
        return (right + up / 2) / (self.steps - 1), HEIGHT * up / (self.steps - 1), values

    def with_point(self, scores: Sequence[float]) -> LevelSets:
        """The same picture with a mark at these scores, such as the point of a `probe`."""
        point = self.checked_on_triangle(scores)
        a, b, c = (point / point.sum()).tolist()
        mark = Mark((a, b, c), "diamond", "ink", "the probe")
        text = f"{self.text} A mark stands at {self.symbol} = ({', '.join(f'{score:.2f}' for score in point)})."
        code = Code(f"{self.code.call}.with_point({tuple(point.tolist())})", self.code.setup, self.code.imports)
        return replace(self, marks=(*self.marks, mark), text=text, code=code)

    def checked_on_triangle(self, scores: Sequence[float]) -> np.ndarray:
        """The scores, (3,), if they are a point of this triangle; an error says which are."""
        point, total = checked_point(scores), float(self.frame.iloc[0, :3].sum())
        if point.min() < 0 or not math.isclose(point.sum(), total, abs_tol=1e-6):
            raise ValueError(f"scores = {scores!r}; a point of this triangle has scores ≥ 0 that sum to {total:g}")
        return point

    def hovered(self) -> pd.DataFrame:
        """The rows of the frame that answer the pointer: a click says which of them."""
        stride = max(1, (self.steps - 1) // HOVERED)
        up, right = np.nonzero(np.add.outer(np.arange(self.steps), np.arange(self.steps)) < self.steps)
        return self.grid().iloc[np.flatnonzero((up % stride == 0) & (right % stride == 0))]

    def _plotly(self, theme: Theme) -> go.Figure:
        traces = [*bands(self, theme), border(theme), *outlined(self), *lines(self), *arrows(self), hover_points(self)]
        traces += [*marked(self, theme), colour_bar(self, theme, x=0.5, xanchor="center", len=0.8)]
        names: list[dict[str, Any]] = []
        for corner, (x, y) in enumerate(CORNERS):
            name, colour = _corner(self, corner, theme)
            shift = 22 if corner == 2 else -22
            names.append({"x": x, "y": y, "text": name, "showarrow": False, "yshift": shift, "font": {"color": colour}})
        for (x, y), name in regions(self.regions):
            chip = {"bgcolor": LIGHT.paper, "opacity": 0.85, "borderpad": 2, "font": {"color": LIGHT.ink, "size": 13}}
            names.append({"x": x, "y": y, "text": name, "showarrow": False, **chip})
        still = {"visible": False, "fixedrange": True, "constrain": "domain"}
        layout = {
            "annotations": names,
            "xaxis": {"range": X_RANGE, **still},
            "yaxis": {"range": Y_RANGE, "scaleanchor": "x", **still},
            "margin": {"l": 12, "r": 12, "t": 76, "b": 80},
        }
        return go.Figure(traces, {**layout, "showlegend": False, "hovermode": "closest", "height": 600})

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        figure = paper(5.6, 5.2)
        axes = figure.subplots()
        filled = draw_on(axes, self, theme)
        bar = figure.colorbar(
            filled, ax=axes, shrink=0.75, aspect=24, ticks=ticks(self), format="%.2g", label=self.units
        )
        bar.outline.set_visible(False)
        return figure


def outlines(figure: LevelSets) -> list[tuple[int, np.ndarray]]:
    """(band, its outline) for each band that has an area, found by contourpy, matplotlib's own contour finder.

    A row of NaN lifts the pen between the parts of an outline; holes run the other way round, so they stay empty.
    """
    from contourpy import FillType, contour_generator

    finder = contour_generator(*figure.lattice(), corner_mask=True, fill_type=FillType.ChunkCombinedOffset)
    borders = _borders(figure)
    borders[0], borders[-1] = -np.inf, np.inf  # values beyond the ends keep the last colour
    found = []
    for band, (low, high) in enumerate(pairwise(borders)):
        filled: Any = finder.filled(low, high)
        points, offsets = filled[0][0], filled[1][0]
        if points is not None:
            found.append((band, fewer(np.insert(points, offsets[1:-1].astype(int), np.nan, axis=0))))
    return found


def fewer(points: np.ndarray) -> np.ndarray:
    """A line, (points, 2), without redundant points: the finder gives one at every side of the grid.

    >>> fewer(np.array([[0.0, 0.0], [0.1, 0.0], [0.2, 0.0], [0.2, 0.1]])).tolist()
    [[0.0, 0.0], [0.2, 0.0], [0.2, 0.1]]
    """
    while True:
        before, here, after = points[:-2], points[1:-1], points[2:]
        (across, up), (x, y) = (after - before).T, (here - before).T
        needed = np.ones(len(points), bool)  # and so is what stands beside a row of NaN
        needed[1:-1] = ~(np.abs(across * y - up * x) <= STRAIGHT * np.hypot(across, up))
        needed[::2] = True  # never two neighbours at once, so that a bend is not lost step by step
        if needed.all():
            return points
        points = points[needed]


def contour(figure: LevelSets, column: str, level: float) -> np.ndarray:
    """The line where a column of the frame has this value, (points, 2); a row of NaN lifts the pen. Empty where none has."""
    from contourpy import LineType, contour_generator

    finder = contour_generator(*figure.lattice(column), corner_mask=True, line_type=LineType.ChunkCombinedNan)
    found: Any = finder.lines(level)
    points = found[0][0]
    return np.empty((0, 2)) if points is None else points


def marked_lines(figure: LevelSets) -> list[tuple[np.ndarray, str]]:
    """(line, colour) around what the frame calls `free`, and where a difference is zero."""
    around = [(contour(figure, "free", 0.5), LIGHT.threshold)] if "free" in figure.frame else []
    zero = [(contour(figure, "value", 0.0), LIGHT.ink)] if figure.diverging else []
    return around + zero


def lines(figure: LevelSets) -> list[Trace]:
    """Those lines, each with a pale rim."""
    traces: list[Trace] = []
    for line, colour in marked_lines(figure):
        x, y = (line if len(line) else np.full((1, 2), np.nan)).astype(np.float32).T
        looks = [{"color": LIGHT.paper, "width": 5}, {"color": colour, "width": 2.4}]
        traces += [{"x": x, "y": y, "mode": "lines", "line": look, "hoverinfo": "skip"} for look in looks]
    return traces


def bands(figure: LevelSets, theme: Theme) -> list[Trace]:
    """The bands of colour, one filled shape each; one without an area is an empty shape."""
    shapes = []
    found = dict(outlines(figure))
    for band, colour in enumerate(figure.colours(theme)):
        x, y = found.get(band, np.full((1, 2), np.nan)).astype(np.float32).T
        line = {"color": colour, "width": 0.8}  # hides the seam between neighbours
        filled = {"fill": "toself", "fillcolor": colour, "line": line}
        shapes.append({"x": x, "y": y, "mode": "lines", **filled, "hoverinfo": "skip"})
    return shapes


def border(theme: Theme) -> Trace:
    """The sides of the triangle."""
    x, y = CORNERS[[0, 1, 2, 0]].T
    return {"x": x, "y": y, "mode": "lines", "line": {"color": theme.muted, "width": 1.2}, "hoverinfo": "skip"}


def all_marks(figure: LevelSets) -> list[Mark]:
    """The label's corner, if there is a label, and the marks of the figure."""
    corner = np.eye(3)[[figure.label]].tolist() if figure.label is not None else []
    return [*(Mark((a, b, c), "circle", "threshold", "the label") for a, b, c in corner), *figure.marks]


def marked(figure: LevelSets, theme: Theme) -> list[Trace]:
    """The marks, each with its name under the pointer."""
    drawn = []
    for place, symbol, colour, name in all_marks(figure):
        marker = {"color": getattr(theme, colour), "size": SIZES[symbol], "symbol": symbol}
        marker["line"] = {"color": theme.paper, "width": 2}
        x, y = np.array([place]) @ CORNERS[:, 0], np.array([place]) @ CORNERS[:, 1]
        point = {"x": x, "y": y, "mode": "markers", "marker": marker, "name": name, "cliponaxis": False}
        drawn.append({**point, "hovertemplate": f"{name}<extra></extra>"})
    return drawn


def regions(K: int | None) -> list[tuple[np.ndarray, str]]:
    """Middle of each region where the same K classes are the largest, and its set.

    >>> [name for _, name in regions(2)]
    ['{1, 2}', '{0, 2}', '{0, 1}']
    """
    middle = CORNERS.mean(axis=0)
    if K == 1:
        return [((2 * CORNERS[best] + middle) / 3, f"{{{best}}}") for best in range(3)]
    if K == 2:
        others = [[best for best in range(3) if best != last] for last in range(3)]
        return [((CORNERS[a] + CORNERS[b] + middle) / 3, f"{{{a}, {b}}}") for a, b in others]
    return []


def rays(K: int | None) -> list[np.ndarray]:
    """The lines between those regions: from the middle, to the middle of each side (K = 1) or to each corner (K = 2)."""
    middle = CORNERS.mean(axis=0)
    ends = {None: [], 1: (CORNERS + np.roll(CORNERS, 1, axis=0)) / 2, 2: CORNERS}[K]
    return [np.stack([middle, end]) for end in ends]


def outlined(figure: LevelSets) -> list[Trace]:
    """The lines between the regions, dark with a pale rim like the arrows."""
    if figure.regions is None:
        return []
    x, y = np.concatenate([np.vstack([ray, [[np.nan, np.nan]]]) for ray in rays(figure.regions)]).T
    looks: list[dict[str, Any]] = [
        {"color": LIGHT.paper, "width": 4},
        {"color": LIGHT.ink, "width": 1.8, "dash": "dash"},
    ]
    return [{"x": x, "y": y, "mode": "lines", "line": line, "hoverinfo": "skip"} for line in looks]


def downhill(figure: LevelSets) -> tuple[np.ndarray, np.ndarray]:
    """Start and length of the arrows: (arrows, 2) each; none for a figure without gradients.

    An arrow is minus the gradient within the plane of the triangle (adding the same number to every score is not a move
    on it); the longest is a little shorter than the way to the next arrow.
    """
    if "g0" not in figure.frame:
        return np.empty((0, 2)), np.empty((0, 2))
    stride = max(1, (figure.steps - 1) // ARROWS)
    up, right = np.nonzero(np.add.outer(np.arange(figure.steps), np.arange(figure.steps)) < figure.steps)
    left = figure.steps - 1 - up - right
    inside = (np.stack([up, right, left]) > 0).all(axis=0)
    chosen = np.flatnonzero(inside & (up % stride == 0) & (right % stride == 0))
    gradients = figure.grid()[["g0", "g1", "g2"]].to_numpy()[chosen]
    steps = -(gradients - gradients.mean(axis=1, keepdims=True)) @ CORNERS
    lengths = np.linalg.norm(steps, axis=1)
    longest = max(lengths.max(initial=0), 1e-12)
    moving = lengths > SHORTEST_ARROW * longest
    begins = np.stack([left, right, up], axis=1)[chosen] / (figure.steps - 1) @ CORNERS
    return begins[moving], 0.9 / ARROWS * steps[moving] / longest


def arrows(figure: LevelSets) -> list[Trace]:
    """The arrows, dark with a pale rim: the bands below them are the same by day and by night.

    Where nothing points downhill the traces stay, without a place: pictures that follow a knob have the same traces.
    """
    if "g0" not in figure.frame:
        return []
    begins, steps = (each if len(each) else np.full((1, 2), np.nan) for each in downhill(figure))
    x, y = np.stack([begins, begins + steps, np.full_like(begins, np.nan)], axis=1).reshape(-1, 2).T
    heads = np.tile([0, 9, 0], len(begins))
    traces: list[Trace] = []
    for colour, width, rim in ((LIGHT.paper, 4.5, 3), (LIGHT.ink, 1.6, 0)):
        head = {"symbol": "arrow", "angleref": "previous", "size": heads + rim * (heads > 0), "color": colour}
        line = {"color": colour, "width": width}
        traces.append({"x": x, "y": y, "mode": "lines+markers", "line": line, "marker": head, "hoverinfo": "skip"})
    return traces


def hover_points(figure: LevelSets) -> Trace:
    """The exact numbers under the pointer, at grid points close enough to each other that one is always near."""
    rows = figure.hovered()
    x, y, values = figure.lattice()
    scores = rows.iloc[:, :3].to_numpy()
    return {
        "x": x[~values.mask][rows.index].astype(np.float32),
        "y": y[~values.mask][rows.index].astype(np.float32),
        "text": [f"{figure.symbol} = ({a:.2f}, {b:.2f}, {c:.2f})" for a, b, c in scores.tolist()],
        "customdata": rows["value"].to_numpy().astype(np.float32),  # alone, since a knob moves nothing else
        "hovertemplate": f"%{{text}}<br>{figure.units} %{{customdata:.3f}}<extra></extra>",
        "mode": "lines",  # of no width: thousands of invisible markers would slow the page down
        "line": {"width": 0},
        "opacity": 0,
    }


def draw_on(axes: Axes, figure: LevelSets, theme: Theme, named: bool = True) -> Any:
    """Draws the level sets on matplotlib axes, their corners named or not; returns the bands, for a colour bar."""
    x, y, values = figure.lattice()
    borders = _borders(figure)
    filled = axes.contourf(
        x, y, values.clip(borders[0], borders[-1]), borders, colors=figure.colours(theme), corner_mask=True
    )
    axes.plot(*CORNERS[[0, 1, 2, 0]].T, color=theme.muted, linewidth=1)
    begins, steps = downhill(figure)
    if len(begins):
        looks: dict[str, Any] = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.006, "linewidth": 0.8}
        axes.quiver(*begins.T, *steps.T, color=LIGHT.ink, edgecolor=LIGHT.paper, zorder=3, **looks)
    for ray in rays(figure.regions):
        axes.plot(*ray.T, color=LIGHT.paper, linewidth=2.6)
        axes.plot(*ray.T, color=LIGHT.ink, linewidth=1.2, linestyle="--")
    for line, colour in marked_lines(figure):
        axes.plot(*line.T, color=LIGHT.paper, linewidth=3.4)
        axes.plot(*line.T, color=colour, linewidth=1.8)
    for (across, up), name in regions(figure.regions):
        chip = {"facecolor": LIGHT.paper, "edgecolor": "none", "alpha": 0.85, "pad": 1.5}
        axes.text(across, up, name, color=LIGHT.ink, ha="center", va="center", size=9, bbox=chip)
    for place, symbol, colour, _ in all_marks(figure):
        size = (0.7 if named else 0.45) * SIZES[symbol]
        looks = {"color": getattr(theme, colour), "markeredgecolor": theme.paper, "markersize": size, "zorder": 4}
        axes.plot(*(np.array(place) @ CORNERS), SYMBOLS[symbol], **looks)
    for corner, (across, up) in enumerate(CORNERS if named else ()):
        name, colour = _corner(figure, corner, theme)
        weight = "bold" if corner == figure.label else "normal"
        shift = 0.055 if corner == 2 else -0.055
        plain = name.removeprefix("<b>").removesuffix("</b>")
        axes.text(across, up + shift, plain, color=colour, weight=weight, ha="center", va="center")
    axes.set(xlim=X_RANGE, ylim=Y_RANGE, aspect="equal")
    axes.axis("off")
    return filled


def _borders(figure: LevelSets) -> np.ndarray:
    """The values between the bands; a loss that is constant fills the lowest band."""
    low, high = figure.value_range
    return np.linspace(low, high if high > low else low + 1, BANDS + 1)


def ticks(figure: LevelSets) -> np.ndarray:
    """The values that the colour bar names."""
    return _borders(figure)[1::2] if figure.diverging else _borders(figure)[::2]  # zero is between two colours


def _corner(figure: LevelSets, corner: int, theme: Theme) -> tuple[str, str]:
    """Return the label of a corner and its colour."""
    if corner == figure.label:
        return f"<b>label, {figure.corners[corner]}</b>", theme.threshold
    return figure.corners[corner], theme.muted


def colour_bar(figure: LevelSets, theme: Theme, **place: Any) -> Trace:
    """A trace without a point that carries the colour bar, lying below the axes; `place` says where and how long."""
    ends = np.linspace(0, 1, BANDS + 1).repeat(2)[1:-1]
    steps = [[end, colour] for end, colour in zip(ends, np.repeat(figure.colours(theme), 2), strict=True)]
    low, *_, high = _borders(figure)
    named = ticks(figure)
    bar = {
        "orientation": "h",
        "title": {"text": figure.units, "side": "top", "font": {"size": 14}},
        "tickvals": named,
        "ticktext": [f"{value:.2g}" for value in named],
        "thickness": 14,
        "outlinewidth": 0,
        "y": 0,
        "yanchor": "top",
        **place,
    }
    marker = {"color": [low], "colorscale": steps, "cmin": low, "cmax": high, "showscale": True, "colorbar": bar}
    return {"x": [None], "y": [None], "mode": "markers", "marker": marker, "hoverinfo": "skip"}
