"""Any figures along sliders: drawn once at every position, then moved in the browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd
import plotly.graph_objects as go

from workbench.figures.base import Figure
from workbench.figures.film import Film
from workbench.figures.panel import Panel, grid_sliders
from workbench.knobs import format_value
from workbench.progress import slow

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

MOST_POSITIONS = 500  # each is drawn before the first is shown
Pictures = Figure | Sequence[Figure] | Mapping[str, Figure]


def interact(make: Callable[..., Pictures], /, **values: Iterable[Any]) -> Interactive:
    """Figures that follow sliders in a notebook, on a page and in a handout.

    As `ipywidgets.interact`, but every position is computed once and the slider moves the picture in the browser; Python
    hears where it stands when it rests. The first axis changes slowest.

    Args:
        make: A function of the values of the sliders. It returns a figure, or several that are linked (a list, or a dict by
            name). The same figures come at every position.
        values: Name of a slider and its values.

    Returns:
        The figures. `.position` is where the sliders stand, `.figure` the (first) figure there; `.move(name=value)` moves
        them, and `.to_html()` is a page that needs neither a kernel nor a network.

    Raises:
        ValueError: There is no slider, or there are too many positions.

    Example:
        >>> import workbench as wb
        >>> moving = wb.figures.interact(lambda epsilon: wb.figures.moat((epsilon,), steps=11), epsilon=(0.1, 1, 3))
        >>> moving.position, moving.figure.title
        ({'epsilon': 0.1}, 'Why small ε stalls: the gap below the K best classes')
    """
    axes = {name: tuple(each) for name, each in values.items()}
    positions = [dict(zip(axes, each, strict=True)) for each in product(*axes.values())]
    if not axes or not positions:
        raise ValueError("give at least one slider with values, as in interact(make, epsilon=(0.1, 1, 3))")
    if len(positions) > MOST_POSITIONS:
        raise ValueError(f"{len(positions)} positions; give sliders with at most {MOST_POSITIONS} in all")
    made = [_named(make(**each)) for each in slow("pictures", "positions", positions)]
    first = next(iter(made[0].values()))
    return Interactive(
        frame=pd.concat(
            [
                next(iter(figures.values())).frame.assign(**{name: format_value(value) for name, value in each.items()})
                for each, figures in zip(positions, made, strict=True)
            ],
            ignore_index=True,
        ),
        title=first.title,
        subtitle=first.subtitle,
        text=first.text,
        code=first.code,
        axes=axes,
        made=tuple(made),
    )


def _named(pictures: Pictures) -> dict[str, Figure]:
    """The figures of one position by name."""
    match pictures:
        case Figure():
            named = {"picture": pictures}
        case Mapping():
            named = dict(pictures)
        case list() | tuple():
            named = {f"picture {at}": each for at, each in enumerate(pictures, 1)}
        case _:
            named = {}
    if not named or not all(isinstance(each, Figure) for each in named.values()):
        raise TypeError(f"make returned {pictures!r}; return a figure of wb.figures, a list or a dict of them")
    return named


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Interactive(Figure):
    """Figures at every position of their sliders; alone, the first of them where the sliders stand."""

    axes: dict[str, tuple[Any, ...]]
    made: tuple[dict[str, Figure], ...]  # of every position

    @property
    def place(self) -> int:
        """The number of the position of the sliders."""
        return int(self.widget.place) if "widget" in vars(self) else 0

    @property
    def position(self) -> dict[str, Any]:
        """Where the sliders stand: name → value."""
        return dict(zip(self.axes, list(product(*self.axes.values()))[self.place], strict=True))

    @property
    def figure(self) -> Figure:
        """The first figure where the sliders stand."""
        return next(iter(self.figures.values()))

    @property
    def figures(self) -> dict[str, Figure]:
        """All figures where the sliders stand."""
        return self.made[self.place]

    def move(self, **position: Any) -> None:
        """Move sliders to these values; the others stay.

        Raises:
            ValueError: There is no such slider, or it does not have this value.
        """
        wanted = self.position | position
        for name, value in wanted.items():
            if value not in self.axes.get(name, ()):
                there = {name: list(values) for name, values in self.axes.items()}
                raise ValueError(f"no position {name} = {value!r}; the sliders have {there}")
        self.widget.place = list(product(*self.axes.values())).index(tuple(wanted[name] for name in self.axes))

    def panel(self, *, height: int | None = None, night: bool = False) -> Panel:
        """The sliders and the linked figures."""
        films = [
            Film.of([figures[name] for figures in self.made], night=night, name=name, height=height)
            for name in self.made[0]
        ]
        words = {name: [format_value(value) for value in values] for name, values in self.axes.items()}
        return Panel(about=(), pictures=tuple(films), sliders=grid_sliders(words))

    def plot(self, dark: bool = False) -> go.Figure:
        """The interactive picture where the sliders stand."""
        return self.figure.plot(dark)

    def static(self, dark: bool = False) -> StaticFigure:
        """The same for paper."""
        return self.figure.static(dark)
