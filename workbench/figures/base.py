"""Base of all figures: a tidy frame, an interactive plot and a static one."""

from __future__ import annotations

import html
import math
import numbers
import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import plotly.graph_objects as go

from workbench import display_names
from workbench.figures import style
from workbench.figures.film import Move
from workbench.figures.snippet import Code
from workbench.figures.style import Theme
from workbench.knob_kinds import three_digits
from workbench.metrics.rows import RowFilter
from workbench.optional_dependencies import check_installed
from workbench.sets import PredictionSets, SetIndex

if TYPE_CHECKING:
    from matplotlib.figure import Figure as StaticFigure

    from workbench.figures.panel import Panel
    from workbench.figures.widget import PanelWidget

WITHOUT_WIDGETS = "WORKBENCH_WITHOUT_WIDGETS"  # set where a notebook is executed for a page that has no kernel
PAGE_HEIGHT = 360  # pixels of a picture of `to_html`
LONGEST_NAME = 32  # letters of a name beside an axis
HEADER = 0.68  # inches above a static picture, for its title and subtitle


Places = Mapping[str, Any]  # what `SetIndex.compact` gives: arrays with one entry for every place of a slider


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
    'n = 4 training rows of 3 classes'
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
            caption = figure.text(0.12 / width, 1 - 0.38 / height, self.subtitle, va="top", color=theme.muted)
            too_wide = caption.get_window_extent().width / ((width - 0.24) * figure.dpi)
            if too_wide > 1:  # on one line, however much it says; letters are whole pixels wide, so leave a little room
                caption.set_fontsize(0.95 * float(caption.get_fontsize()) / too_wide)
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

    def panel(self, *, height: int | None = None, night: bool = False) -> Panel | None:
        """The picture with its sliders; None if it has none. `night`: for a page in either theme."""
        return None

    def to_html(self, dark: bool = False) -> str:
        """The picture as a page with its sliders alive, if it has some; as `page()` otherwise."""
        panel = self.panel(height=PAGE_HEIGHT, night=True)
        return self.page(dark) if panel is None else panel.page(f"{self.title}: {self.subtitle}", dark=dark)

    @cached_property
    def widget(self) -> PanelWidget:
        """The picture with its sliders as a widget, whose traits can be observed.

        Raises:
            ModuleNotFoundError: `anywidget` is not installed; the message has the command that installs it.
            ValueError: The picture has no slider.
        """
        check_installed("anywidget")
        from workbench.figures.static import address
        from workbench.figures.widget import PanelWidget

        panel = self.panel(night=True)
        if panel is None:
            raise ValueError(f"{self.title!r} has no slider; wb.figures.interact makes one for any figure")
        return PanelWidget.of(panel, still=address(self.static()), text=self.text)

    @property
    def moves_here(self) -> bool:
        """Whether a notebook shows the picture as a widget: it has sliders, and `anywidget` is installed."""
        has_sliders = type(self).panel is not Figure.panel
        return has_sliders and find_spec("anywidget") is not None and not os.environ.get(WITHOUT_WIDGETS)

    def narrow(self) -> Figure:
        """The same picture for a narrow screen: what stands side by side in it stands below one another."""
        return self

    def moves(self, places: Places) -> list[Move]:
        """Return the changes of `plot()` along a slider, at every position of `SetIndex.compact`; none by default."""
        return []

    def subtitles(self, places: Places) -> list[str]:
        """The subtitle at every place of a slider; one, if it stays the same."""
        return [self.subtitle]

    @property
    def opens_rows(self) -> bool:
        """Whether parts of the picture stand for rows."""
        return type(self).rows_behind is not Figure.rows_behind

    def rows_behind(self, click: Click) -> RowFilter | None:
        """Filter of the rows behind a part of the picture (`.rows(sets)` gives their numbers); None if there are none."""
        return None

    def _plotly(self, theme: Theme) -> go.Figure:
        raise NotImplementedError(f"{type(self).__name__} must draw itself with Plotly")  # pragma: no cover

    def _matplotlib(self, theme: Theme) -> StaticFigure:
        raise NotImplementedError(f"{type(self).__name__} must draw itself with matplotlib")  # pragma: no cover

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {self.subtitle})"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """A widget where it has sliders, alive where Plotly is (JupyterLab), for a page what `_for_a_page` says, else words."""
        alive = self.plot()._repr_mimebundle_(include, exclude)
        # Not as image/png: JupyterLab would show that until the mouse comes, and then jump.
        bundle = {**alive, **({"text/html": self._for_a_page()} if alive else {}), "text/plain": self.text}
        if not self.moves_here:
            return bundle
        widget, about = self.widget._repr_mimebundle_() or ({}, {})
        shown = {**widget, **bundle}
        return (shown, about) if about else shown  # Colab has to be told which widgets these are

    def _for_a_page(self) -> str:
        """A still picture for where a notebook is only read: an exported page, a repository in a browser."""
        from workbench.figures.static import image

        return image(self.static())


def paper(width: float, height: float, *, arranged: bool = True) -> StaticFigure:
    """An empty static figure of that many inches, whose axes matplotlib arranges by default.

    pyplot, and the state it keeps, is left alone.
    """
    from workbench.figures.static import Sheet

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
        raise TypeError(f"expected a SetIndex, got {type(given).__name__}: SetIndex(table) makes one of a table")
    return given


def checked_frame(given: Any, columns: Collection[str], source: str) -> pd.DataFrame:
    """The frame, or an error that says what makes one: TypeError if it is none, ValueError if it lacks columns."""
    expected = f"expected a DataFrame with the columns {', '.join(sorted(columns))}"
    if not isinstance(given, pd.DataFrame):
        raise TypeError(f"{expected}, got {type(given).__name__}: {source}")
    if not set(columns) <= set(given.columns):
        raise ValueError(f"{expected}, got one of {list(given.columns)}: {source}")
    return given


def chosen_by(sets: PredictionSets) -> str:
    """Source of the sets: “Average-K, K = 5”, people, or their file."""
    return sets.source if sets.rule is None else display_names.of_thing(sets.rule.rule)


def code_of_sets(sets: PredictionSets, name: str = "sets", val: str = "val", test: str = "test") -> Code:
    """The lines that make the sets again, under a name, from the tables `val` (where the rule was fitted) and `test`."""
    if sets.rule is None:
        return Code(setup=[f"# {name}: {len(sets)} sets that no rule chose"])
    return Code(setup=[f"{name} = wb.{sets.rule.rule!r}.fit({val})({test})"])


def code_with_sets(call: str, sets: PredictionSets, *, setup: Iterable[str] = (), name: str = "sets") -> Code:
    """The code of a figure of sets, from the tables on; `setup` are lines between the sets and the call."""
    comments = []
    if sets.rule is not None:
        size = f"{sets.table.n} rows of {sets.table.n_classes} classes"
        comments = [f"# val: the table the rule is fitted on; test: the table shown, {size}"]
    return Code(call, setup).after(code_of_sets(sets, name)).after(Code(setup=comments))
