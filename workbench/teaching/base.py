"""What a lesson is made of: a question that is answered before the truth is shown, and a picture that moves.

Everything that is told is computed when a lesson is asked for, so words and numbers cannot drift apart. Texts are Markdown
of the simplest kind: *stressed*, **strong** and `code`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import plotly.graph_objects as go

from workbench.figures.style import Theme, plotly_template

HEIGHT = 360  # pixels of a picture
Path = tuple[str | int, ...]  # where a value stands in a figure: ("data", 0, "y")


@dataclass(frozen=True)
class Slider:
    """What can be moved: its name, its values, what is written at each, and where it starts."""

    label: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    start: int = 0


def slider(label: str, values: Sequence[float], written: str = "{:g}", start: float | None = None) -> Slider:
    """A slider over these values, each written in one way, that starts at the value nearest to `start`."""
    values = tuple(float(value) for value in values)
    nearest = 0 if start is None else min(range(len(values)), key=lambda place: abs(values[place] - start))
    return Slider(label, values, tuple(written.format(value) for value in values), nearest)


class Drawn(Sequence[go.Figure]):
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
    def changes(self) -> list[dict[str, Any]]:
        """What differs between the places: where it stands in the figure, and its value at every place."""
        drawn = [json.loads(figure.to_json()) for figure in self.figures]
        leaves = [dict(_leaves({"data": each["data"], "layout": each["layout"]})) for each in drawn]
        names = dict.fromkeys(path for each in leaves for path in each)
        found = {path: [each.get(path) for each in leaves] for path in names}
        return [
            {"path": list(path), "values": values}
            for path, values in found.items()
            if any(value != values[0] for value in values)
        ]


def _leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    """Every value of a figure with its place. Arrays are one value, also those that plotly.py packs."""
    if isinstance(value, dict) and "bdata" not in value:
        return [leaf for name, inner in value.items() for leaf in _leaves(inner, (*path, name))]
    if isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        return [leaf for place, inner in enumerate(value) for leaf in _leaves(inner, (*path, place))]
    return [(path, value)]


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
class Told:
    """What a lesson tells: paragraphs that define its words, a question to answer first, and the answer, explained."""

    words: tuple[str, ...]
    question: Question
    answer: tuple[str, ...]


@dataclass(frozen=True)
class Lesson:
    """Two minutes that stand alone: what there is to see, in one sentence; what is told; where to read on.

    `tell(theme)` computes everything: pictures have the colours of a theme. `needs_torch` says whether it evaluates losses.
    """

    name: str
    title: str
    sight: str
    notebook: str
    tell: Callable[[Theme], Told]
    needs_torch: bool = False


def axes(theme: Theme, x: str, y: str, *, traces: Sequence[Any] = (), **layout: Any) -> go.Figure:
    """A figure in the style of the house, with its axes named."""
    usual = {"template": _template(theme), "height": HEIGHT, "margin": {"l": 64, "r": 20, "t": 40, "b": 52}}
    titles = {"xaxis": {"title": {"text": x}}, "yaxis": {"title": {"text": y}}}
    return go.Figure(list(traces), {**usual, **titles}).update_layout(**layout)


@cache
def _template(theme: Theme) -> go.layout.Template:
    """The template of a theme: a slider has a hundred figures, and making one takes longer than the rest of a figure."""
    return plotly_template(theme)


def percent(share: float, digits: int = 1) -> str:
    """A share as people write it.

    >>> percent(0.9027), percent(0.5, 0)
    ('90.3 %', '50 %')
    """
    return f"{100 * share:.{digits}f} %"
