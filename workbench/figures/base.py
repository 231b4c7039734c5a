"""What every figure is: a tidy frame first, then two ways to draw it."""

from __future__ import annotations

import html
import math
import numbers
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from workbench import words
from workbench.figures import style
from workbench.figures.code import Code
from workbench.figures.style import Theme
from workbench.knob_kinds import three_digits
from workbench.metrics.rows import RowFilter
from workbench.sets import PredictionSets, SetIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

LONGEST_NAME = 32  # letters of a name beside an axis
HEADER = 0.68  # inches above a static picture, for its title and subtitle


Places = Mapping[str, Any]  # what `SetIndex.compact` gives: arrays with one entry for every place of a slider


@dataclass(frozen=True, eq=False)
class Move:
    """A property of a Plotly figure that follows a slider, and its value at every place of it.

    It is that of the trace of this name or number, of the shape of this name, or of the layout. Values are a list, of arrays
    if each is many numbers, or an array whose lines they are; a single one holds at every place: it is set once, when the
    picture begins to follow.
    """

    property: str
    values: np.ndarray | list[Any]
    trace: str | int | None = None
    shape: str | None = None

    def set_once(self) -> bool:
        """Whether one value holds at every place."""
        return len(self.values) == 1

    def at(self, place: int) -> Any:
        """The value at a place."""
        return self.values[0 if self.set_once() else place]

    def found_in(self, figure: go.Figure) -> tuple[int | None, str]:
        """The number of the trace, if it is of one, and the property as Plotly writes it: `shapes[0].x0`."""
        if isinstance(self.trace, int):
            return self.trace, self.property
        if self.trace is not None:
            return [trace.name for trace in figure.data].index(self.trace), self.property
        if self.shape is not None:
            return None, f"shapes[{[shape.name for shape in figure.layout.shapes].index(self.shape)}].{self.property}"
        return None, self.property


def moved(figure: go.Figure, moves: Iterable[Move], place: int) -> go.Figure:
    """A copy of a Plotly figure after its moves to a place, as a browser makes them."""
    figure = go.Figure(figure)
    for move in moves:
        trace, path = move.found_in(figure)
        (figure.layout if trace is None else figure.data[trace])[path] = move.at(place)
    return figure


def moves_along(figures: Sequence[go.Figure]) -> list[Move]:
    """The moves that make the first of some figures each of them: place 0 is the first, place 1 the second.

    They are pictures of one kind, with the same traces. So any picture can follow a slider whose places are few enough to
    draw it at each of them.
    """
    traces = [[trace.to_plotly_json() for trace in figure.data] for figure in figures]
    kinds = [[trace["type"] for trace in each] for each in traces]
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError(f"pictures that follow one another have the same traces, not {kinds}")
    of_traces = [
        Move(path, values, number)
        for number in range(len(kinds[0]))
        for path, values in _changing([each[number] for each in traces])
    ]
    layouts = [figure.layout.to_plotly_json() for figure in figures]
    return of_traces + [Move(path, values) for path, values in _changing(layouts)]


def _changing(parts: Sequence[Mapping[str, Any]], path: str = "") -> Iterator[tuple[str, list[Any]]]:
    """The properties in which some parts of figures differ, with the value in each of them."""
    for name in dict.fromkeys(name for part in parts for name in part):
        values: list[Any] = [part.get(name) for part in parts]
        if all(isinstance(value, Mapping) for value in values):
            yield from _changing(values, f"{path}{name}.")
            continue
        if all(isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iuf" for value in values):
            if not all(np.array_equal(value, values[0], equal_nan=True) for value in values):
                yield f"{path}{name}", values
            continue
        plain = [_in_json(value) if isinstance(value, np.ndarray) else value for value in values]
        if any(value != plain[0] for value in plain):
            yield f"{path}{name}", plain


def _in_json(values: np.ndarray) -> list[Any]:
    """An array as JSON can hold it, which knows no NaN."""
    missing = values.dtype.kind == "f" and np.isnan(values).any()
    return (np.where(np.isnan(values), None, values) if missing else values).tolist()  # type: ignore[no-any-return,call-overload]


def plotly_frames(figure: go.Figure, moves: Iterable[Move], names: Sequence[str]) -> list[go.Frame]:
    """The moves as frames that a slider of Plotly's own can show; one name for each place."""
    found = [(move, *move.found_in(figure)) for move in moves]
    frames = []
    for place, name in enumerate(names):
        data: dict[int, Any] = {}
        layout = go.Layout()
        for move, trace, path in found:
            part = layout if trace is None else data.setdefault(trace, type(figure.data[trace])())
            part[path] = move.at(place)
        frames.append(go.Frame(name=name, data=list(data.values()), traces=list(data), layout=layout))
    return frames


class Click(NamedTuple):
    """A part of a Plotly picture that a person chose: the name of its trace, its point (line and column, of a heat map).

    `data` is the custom data of the point.
    """

    trace: str | None
    point: Any
    data: Any = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Figure:
    """A picture whose numbers come first.

    `frame` holds every number the picture shows, one observation a row. `plot()` draws it with Plotly, `static()` with
    matplotlib and seaborn, both on paper or by night (`dark=True`). `text` says in words what a person who cannot see
    the picture should know; `code` makes the picture again; `title` names it and `subtitle` says how many rows stand behind it.

    >>> import workbench as wb
    >>> figure = wb.figures.lorenz([1, 1, 2])
    >>> figure.subtitle
    'n = 4 training images of 3 classes'
    """

    frame: pd.DataFrame
    title: str
    subtitle: str
    text: str
    code: Code

    def plot(self, dark: bool = False) -> go.Figure:
        """The interactive picture (Plotly)."""
        theme = style.theme(dark)
        figure = self._plotly(theme)
        subtitle = (
            f'<span style="font-size: 14px; color: {theme.muted}">{html.escape(self.subtitle, quote=False)}</span>'
        )
        title = {"text": f"<b>{html.escape(self.title, quote=False)}</b><br>{subtitle}"}
        return figure.update_layout(template=style.plotly_template(theme), title=title)

    def static(self, dark: bool = False) -> StaticFigure:
        """The same picture for paper, or for a machine without a browser (matplotlib)."""
        import matplotlib

        theme = style.theme(dark)
        settings: Any = style.matplotlib_rc(theme)
        with matplotlib.rc_context(settings):
            figure = self._matplotlib(theme)
            figure.set_label(self.text)
            width, height = figure.get_size_inches()
            if figure.get_layout_engine() is not None:  # a sheet that places its parts itself has none
                figure.set_layout_engine("constrained", rect=(0, 0, 1, 1 - HEADER / height))
            figure.text(0.12 / width, 1 - 0.12 / height, self.title, va="top", weight="bold", size=13)
            told = figure.text(0.12 / width, 1 - 0.38 / height, self.subtitle, va="top", color=theme.muted)
            too_wide = told.get_window_extent().width / ((width - 0.24) * figure.dpi)
            if too_wide > 1:  # on one line, however much it says; letters are whole pixels wide, so leave a little room
                told.set_fontsize(0.95 * float(told.get_fontsize()) / too_wide)
            figure.draw_without_rendering()  # ticks are made on the first drawing: make them in this style
        return figure

    def page(self, dark: bool = False) -> str:
        """An HTML page of its own that holds the interactive picture and needs no network."""
        options = {"full_html": False, "include_plotlyjs": True, "config": style.PLOTLY_CONFIG, "auto_play": False}
        picture = self.plot(dark).to_html(**options)
        title, text, paper = html.escape(self.title, quote=False), html.escape(self.text), style.theme(dark).paper
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n'
            f'<body style="margin: 0; background: {paper}"><main role="img" aria-label="{text}">{picture}</main></body></html>\n'
        )

    def narrow(self) -> Figure:
        """The same picture for a narrow screen: what stands side by side in it stands below one another."""
        return self

    def moves(self, places: Places) -> list[Move]:
        """What changes in `plot()` along a slider, at every place of `SetIndex.compact`; nothing in most pictures."""
        return []

    def subtitles(self, places: Places) -> list[str]:
        """The subtitle at every place of a slider; one, if it stays the same."""
        return [self.subtitle]

    @property
    def opens_rows(self) -> bool:
        """Whether parts of the picture stand for rows."""
        return type(self).rows_behind is not Figure.rows_behind

    def rows_behind(self, click: Click) -> RowFilter | None:
        """Which rows stand behind a part of the picture: `.rows(sets)` of it gives their numbers; None if none do."""
        return None

    def _plotly(self, theme: Theme) -> go.Figure:
        raise NotImplementedError(f"{type(self).__name__} must draw itself with Plotly")  # pragma: no cover

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        raise NotImplementedError(f"{type(self).__name__} must draw itself with matplotlib")  # pragma: no cover

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {self.subtitle})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        """Alive where Plotly is (JupyterLab), for a page what `_for_a_page` says, else words."""
        alive = self.plot()._repr_mimebundle_(include, exclude)
        # Not as image/png: JupyterLab would show that until the mouse comes, and then jump.
        return {**alive, **({"text/html": self._for_a_page()} if alive else {}), "text/plain": self.text}

    def _for_a_page(self) -> str:
        """A still picture for where a notebook is only read: an exported page, a repository in a browser."""
        from workbench.figures.sheets import image

        return image(self.static())


def paper(width: float, height: float, *, arranged: bool = True) -> StaticFigure:
    """An empty static figure of that many inches, whose axes matplotlib arranges unless told not to.

    pyplot, and the state it keeps, is left alone.
    """
    from workbench.figures.sheets import Sheet

    return Sheet(figsize=(width, height), layout="constrained" if arranged else None)


def counted(number: int, noun: str = "", plural: str = "") -> str:
    """A count with its noun: `1 row`, `31 112 rows`.

    >>> counted(1, "row"), counted(2, "class", "classes")
    ('1 row', '2 classes')
    """
    digits = f"{number:,}".replace(",", "\N{NO-BREAK SPACE}")
    words = noun if number == 1 else plural or f"{noun}s"
    return f"{digits} {words}" if noun else digits


def points(difference: float, digits: int = 1) -> str:
    """A difference of two shares, in percentage points: of 40 % and 50 % it is 10 points, not 10 %.

    >>> points(0.5 - 0.4), points(-0.0004)
    ('+10.0 points', '0.0 points')
    """
    written = f"{100 * difference:+.{digits}f}"
    return f"{written if float(written) else written[1:]} points"


def beside_an_axis(name: str, longest: int = LONGEST_NAME) -> str:
    """A name as it fits beside an axis: of a long one its beginning and its end, by which names differ.

    >>> beside_an_axis("Auribella matutina"), beside_an_axis("a very long name that goes on and on and ends with 7")
    ('Auribella matutina', 'a very long name…and ends with 7')
    """
    half = longest // 2
    return name if len(name) <= longest else f"{name[:half]}…{name[1 - half :]}"


def round_limit(value: float) -> float:
    """The end of an axis of shares that holds the value: one of few, so that the axis seldom moves with a slider.

    >>> round_limit(0.07), round_limit(0.31), round_limit(0.8)
    (0.1, 0.4, 1.0)
    """
    return next((limit for limit in (0.1, 0.2, 0.4, 0.6) if value <= 0.95 * limit), 1.0)


def round_count(value: float) -> float:
    """The end of an axis of counts that holds the value, likewise.

    >>> round_count(7), round_count(130)
    (8.0, 150.0)
    """
    power = 10 ** max(0, len(str(int(value))) - 1)
    return next(float(limit * power) for limit in (1, 1.5, 2, 3, 4, 6, 8, 10, 12) if value <= 0.95 * limit * power)


def round_up(value: float) -> float:
    """The next of …, 0.5, 1, 1.5, 2, 3, 5, 10, …: the end of an axis or of colours, likewise.

    >>> round_up(0.25), round_up(1.0), round_up(7.2)
    (0.3, 1.0, 10.0)
    """
    if not value > 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    limits = (three_digits(digit * power) for digit in (1, 1.5, 2, 3, 5, 10))
    return next(limit for limit in limits if value <= limit * (1 + 1e-9))


def round_range(low: float, high: float) -> tuple[float, float]:
    """Round ends around both numbers and 0.

    >>> round_range(0.1, 1.4), round_range(-4.0, 1.0)
    ((0.0, 1.5), (-5.0, 1.0))
    """
    return (0.0 if low >= 0 else -round_up(-low)), round_up(high)


def checked_range(given: Any) -> tuple[float, float]:
    """The ends of an axis or of colours as plain numbers, or an error that says what was given."""
    try:
        low, high = (float(end) for end in given)
    except (TypeError, ValueError):
        low, high = math.nan, math.nan
    if not -math.inf < low < high < math.inf:
        raise ValueError(f"value_range = {given!r}; give two numbers, a low end below the high end")
    return low, high


def checked_positive(name: str, given: Any) -> float:
    """The number above 0 that was given, or an error that says what was."""
    if isinstance(given, bool) or not isinstance(given, numbers.Real) or not 0 < float(given) < math.inf:
        raise ValueError(f"{name} = {given!r}; give a number above 0")
    return float(given)


def checked_index(given: Any) -> SetIndex:
    """The index, or an error for anything else that says how it becomes one."""
    if not isinstance(given, SetIndex):
        raise ValueError(f"a SetIndex is wanted here, not {type(given).__name__}: SetIndex(table) makes one of a table")
    return given


def checked_frame(given: Any, columns: Collection[str], source: str) -> pd.DataFrame:
    """The frame, or an error for one without these columns, or for anything else, that says what makes it."""
    if not isinstance(given, pd.DataFrame) or not set(columns) <= set(given.columns):
        named = ", ".join(sorted(columns))
        found = f"one of {list(given.columns)}" if isinstance(given, pd.DataFrame) else type(given).__name__
        raise ValueError(f"a frame with the columns {named} is wanted here, not {found}: {source}")
    return given


def chosen_by(sets: PredictionSets) -> str:
    """Who chose the sets: “Average-K, K = 5”, or people."""
    return "people" if sets.rule is None else words.of_thing(sets.rule.rule)


def code_of_sets(sets: PredictionSets, name: str = "sets", val: str = "val", test: str = "test") -> Code:
    """The lines that make the sets again, under a name, from the tables `val` (where the rule was fitted) and `test`."""
    if sets.rule is None:
        return Code(setup=[f"# {name}: {len(sets)} sets that no rule chose"])
    return Code(setup=[f"{name} = wb.{sets.rule.rule!r}.fit({val})({test})"])


def code_with_sets(call: str, sets: PredictionSets, *, setup: Iterable[str] = (), name: str = "sets") -> Code:
    """The code of a figure of sets, from the tables on; `setup` are lines between the sets and the call."""
    told = []
    if sets.rule is not None:
        size = f"{sets.table.n} rows of {sets.table.n_classes} classes"
        told = [f"# val: the table the rule is fitted on; test: the table shown, {size}"]
    return Code(call, setup).after(code_of_sets(sets, name)).after(Code(setup=told))
