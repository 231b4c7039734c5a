"""Parts of a lesson: a question to answer first, and a figure with a slider.

Everything that is told is computed when a lesson is asked for, so words and numbers cannot drift apart. Texts are Markdown
of the simplest kind: *stressed*, **strong** and `code`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import plotly.graph_objects as go

from workbench.figures.film import Move, moves_along
from workbench.figures.panel import Panel
from workbench.figures.style import Theme, plotly_template
from workbench.teaching.tokens import TokenGame

HEIGHT = 360  # pixels of a picture


@dataclass(frozen=True)
class Slider:
    """A slider: name, values, labels and initial position."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    start: int = 0


def slider(label: str, values: Sequence[float], written: str = "{:g}", start: float | None = None) -> Slider:
    """A slider over these values, each written in one way, that starts at the value nearest to `start`."""
    values = tuple(float(value) for value in values)
    nearest = 0 if start is None else min(range(len(values)), key=lambda place: abs(values[place] - start))
    return Slider(label, values, tuple(written.format(value).replace("%", " %") for value in values), nearest)


class LazyFigures(Sequence[go.Figure]):
    """The figures of a slider, each drawn when it is asked for: many a question is asked without its picture."""

    def __init__(self, draw: Callable[[float], go.Figure], values: Sequence[float]) -> None:
        self.draw, self.values = draw, values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: Any) -> Any:
        return self.draw(self.values[place])


@dataclass(frozen=True, eq=False)
class Picture:
    """A Plotly figure for every place of a slider (one, without a slider), and what there is to read at each.

    `captions` are told once the question is answered, and so are the traces whose names are in `secret`. `text` says what
    is drawn to a person who cannot see it.
    """

    figures: Sequence[go.Figure]
    text: str
    slider: Slider | None = None
    captions: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()

    @cached_property
    def moves(self) -> list[Move]:
        """What changes between positions."""
        return moves_along(self.figures)


@dataclass(frozen=True)
class Choice:
    """An answer to click, and why it is right or wrong."""

    text: str
    why: str
    right: bool = False


@dataclass(frozen=True)
class Target:
    """An answer to move to: right from `low` to `high`, and why a guess below or above is wrong."""

    low: float
    high: float
    below: str
    above: str
    within: str = "Right."

    def holds(self, value: float) -> bool:
        """Whether that value is right; a slider writes its values with a few digits."""
        return self.low - 1e-9 <= value <= self.high + 1e-9


@dataclass(frozen=True, eq=False)
class Question:
    """A question that is answered by a click (`choices`) or by moving the slider of its picture (`target`)."""

    text: str
    choices: tuple[Choice, ...] = ()
    target: Target | None = None
    picture: Picture | None = None


@dataclass(frozen=True, eq=False)
class Story:
    """Text of a lesson: definitions, a question to answer first, the explained answer, and what to play with afterwards."""

    words: tuple[str, ...]
    question: Question
    answer: tuple[str, ...]
    panels: tuple[Panel | TokenGame, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """Two minutes that stand alone: what there is to see, in one sentence; what is told; where to read on.

    `tell(theme)` computes everything: pictures have the colours of a theme. `needs_torch` says whether it evaluates losses,
    `drawing_pad` whether the pad to draw symbols on stands below it.
    """

    name: str
    title: str
    sight: str
    notebook: str
    tell: Callable[[Theme], Story]
    needs_torch: bool = False
    drawing_pad: bool = False


def axes(theme: Theme, x: str, y: str, *, traces: Sequence[Any] = (), **layout: Any) -> go.Figure:
    """A figure in the style of the house, with its axes named."""
    usual = {"template": plotly_template(theme), "height": HEIGHT, "margin": {"l": 64, "r": 20, "t": 40, "b": 52}}
    titles = {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
    return go.Figure(list(traces), {**usual, **titles}).update_layout(**layout)


def signed(value: float) -> str:
    """A number with its sign.

    >>> signed(0.784), signed(-0.29), signed(-0.0)
    ('+0.78', '−0.29', '0.00')
    """
    written = f"{value:+.2f}".replace("-", "−")
    return written if float(f"{value:.2f}") else written[1:]


def percent(share: float, digits: int = 1) -> str:
    """A share as people write it.

    >>> percent(0.9027), percent(0.5, 0)
    ('90.3 %', '50 %')
    """
    return f"{100 * share:.{digits}f} %"
