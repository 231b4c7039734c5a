"""Films: a Plotly figure at every position of a slider, and how a browser reads what changes between them.

A `Move` is one property of a figure with its value at every position. Figures that follow a slider by themselves return
their moves (`Figure.moves`); of any other figures of one kind `moves_along` finds them. `browser/film.js` plays them: in
the app, in lessons, on the static site and in a notebook.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go

if TYPE_CHECKING:
    from workbench.figures.base import Figure, Places
    from workbench.tables import LogitTable

WORTHWHILE = 0.7  # of the bytes of a matrix: with fewer, its changes are sent
HEIGHT = 340  # pixels of a picture without a height of its own
SCORES = 3_000_000  # of tables that are looked at once for every position


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
    # One pass: a sequence may draw each figure when it is asked for it.
    parts = [([trace.to_plotly_json() for trace in each.data], each.layout.to_plotly_json()) for each in figures]
    traces, layouts = [traces for traces, _ in parts], [layout for _, layout in parts]
    kinds = [[trace["type"] for trace in each] for each in traces]
    if any(kind != kinds[0] for kind in kinds):
        raise ValueError(f"pictures that follow one another have the same traces, not {kinds}")
    of_traces = [
        Move(path, values, number)
        for number in range(len(kinds[0]))
        for path, values in _changing([each[number] for each in traces])
    ]
    return of_traces + [Move(path, values) for path, values in _changing(layouts)]


def _changing(parts: Sequence[Mapping[str, Any]], path: str = "") -> Iterator[tuple[str, list[Any] | np.ndarray]]:
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
        if all(
            isinstance(value, np.ndarray) and value.ndim == 2 and value.shape == values[0].shape for value in values
        ):
            if not all(np.array_equal(value, values[0], equal_nan=True) for value in values):
                yield f"{path}{name}", np.stack(values)
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


@dataclass(frozen=True, eq=False)
class Film:
    """A picture with all positions of its slider.

    Args:
        figure: The Plotly figure at any position.
        moves: Its changes along the slider.
        title: The title of the picture.
        subtitles: One, or one for every position.
        text: What it shows, for a person who cannot see it.
        name: Its name among the pictures of a page.
        clickable: Whether parts of it can be chosen.
        seeks: In the app: the slider that a click on it moves.
        height: Pixels, if others than those of the figure.
        night: The same figure in the dark theme, for a page that may be either.
        night_moves: Its changes along the slider that are others than by day, such as colours.
    """

    figure: go.Figure
    moves: Sequence[Move] = ()
    title: str = ""
    subtitles: Sequence[str] = ("",)
    text: str = ""
    name: str = ""
    clickable: bool = False
    seeks: str | None = None
    height: int | None = None
    night: go.Figure | None = None
    night_moves: Sequence[Move] = ()

    @classmethod
    def along(cls, figure: Figure, places: Places | None, **more: Any) -> Film:
        """A figure that follows positions by its own moves; without positions it stands still."""
        moves, subtitles = (
            ((), [figure.subtitle]) if places is None else (figure.moves(places), figure.subtitles(places))
        )
        words = {"title": figure.title, "subtitles": subtitles, "text": figure.text, "clickable": figure.opens_rows}
        return cls(untitled(figure.plot()), moves, **{**words, **more})

    @classmethod
    def of(cls, figures: Sequence[Figure], *, night: bool = False, **more: Any) -> Film:
        """One figure of the same kind for every position; `night`: for a page that may be in either theme."""
        plots = [untitled(figure.plot()) for figure in figures]
        words = {"title": figures[0].title, "text": figures[0].text}
        if night:
            dark = [untitled(figure.plot(dark=True)) for figure in figures]
            more |= {"night": dark[0], "night_moves": others(moves_along(dark), moves_along(plots))}
        return cls.of_plots(plots, **{**words, "subtitles": [figure.subtitle for figure in figures], **more})

    @classmethod
    def of_plots(cls, plots: Sequence[go.Figure], **more: Any) -> Film:
        """One Plotly figure with the same traces for every position."""
        return cls(plots[0], moves_along(plots), **more)

    def spec(self) -> dict[str, Any]:
        """The film as `film.js` reads it."""
        start, *night = (self._begun(each) for each in (self.figure, self.night) if each is not None)
        words = {"name": self.name, "title": self.title, "subtitles": list(self.subtitles), "text": self.text}
        return {
            **words,
            "figure": json.loads(start.to_json()),
            "moves": [as_json(move, start) for move in self.moves if not move.set_once()],
            "night": [as_json(move, start) for move in moves_along([start, *night])] if night else [],
            "nightMoves": [as_json(move, start) for move in self.night_moves],
            "clickable": self.clickable or self.seeks is not None,
            "seeks": self.seeks,
        }

    def _begun(self, figure: go.Figure) -> go.Figure:
        """A figure after the moves that are made once."""
        begun = moved(figure, [move for move in self.moves if move.set_once()], 0)
        return begun.update_layout(height=self.height or figure.layout.height or HEIGHT)


def affordable(*tables: LogitTable, looks: float = 1) -> bool:
    """Film or redraw: whether tables are small enough to be looked at for every position of a slider, so often each."""
    return looks * sum(table.n * table.n_classes for table in tables) <= SCORES


def others(moves: Iterable[Move], than: Iterable[Move]) -> list[Move]:
    """The moves whose values are not those of another list."""
    known = {(move.trace, move.property): encoded(move.values) for move in than}
    return [move for move in moves if encoded(move.values) != known.get((move.trace, move.property))]


def untitled(figure: go.Figure) -> go.Figure:
    """A figure of the library without its title, which the page writes."""
    return figure.update_layout(title=None, margin={"t": 36, "b": 56})


def as_json(move: Move, figure: go.Figure) -> dict[str, Any]:
    """A move as the browser reads it, which goes by numbers."""
    trace, path = move.found_in(figure)
    return {"trace": trace, "property": path, "values": encoded(move.values)}


def encoded(values: np.ndarray | list[Any]) -> dict[str, Any]:
    """A matrix in few characters, as plotly.py writes them, and arrays of any length likewise, with the end of each; another
    list as its distinct values and where each stands.

    Of a matrix whose lines differ little from place to place, only the first line and the changes are written.
    """
    if isinstance(values, list) and all(isinstance(value, np.ndarray) for value in values):
        joined = np.concatenate(values)
        ends = np.cumsum([len(value) for value in values]).tolist()
        return {**_written(joined.astype(_narrow(joined))), "ends": ends}
    if isinstance(values, list):
        written = [json.dumps(value) for value in values]
        place = {text: position for position, text in enumerate(dict.fromkeys(written))}
        return {"distinct": [json.loads(text) for text in place], "at": [place[text] for text in written]}
    numbers = np.ascontiguousarray(values, dtype=_narrow(values) if values.dtype.kind in "iu" else "f4")
    return {**(_changes(numbers) or _written(numbers)), "shape": numbers.shape}


def _narrow(values: np.ndarray) -> np.dtype[Any]:
    """The type of fewest bytes, of those that a browser has, that holds whole numbers; any other stays as it is."""
    if values.dtype.kind not in "iu":
        return values.dtype
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    kinds = (np.dtype(kind) for kind in ("u1", "i2", "i4"))
    return next(kind for kind in kinds if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)


def _changes(numbers: np.ndarray) -> dict[str, Any] | None:
    """The first line of a matrix, and of each further one the cells that are not as in the line before; None if that is more."""
    lines = numbers.reshape(len(numbers), -1) if numbers.size else np.zeros((0, 0), "u1")
    bits = lines.view(f"u{lines.itemsize}")  # where it is not a number it may stay so
    line, cell = np.nonzero(bits[1:] != bits[:-1])
    where = cell.astype("u2" if lines.shape[1] <= np.iinfo("u2").max else "i4")
    if lines[:1].nbytes + len(cell) * (lines.itemsize + where.itemsize) > WORTHWHILE * numbers.nbytes:
        return None
    ends = np.searchsorted(line, np.arange(len(lines) - 1), side="right").tolist()
    sent = np.concatenate([lines[0], lines[1:][line, cell]])
    return {**_written(sent), "changed": {"cells": _written(where), "ends": ends}}


def _written(numbers: np.ndarray) -> dict[str, Any]:
    """Numbers as plotly.py writes them."""
    return {"dtype": numbers.dtype.str[1:], "bdata": base64.b64encode(numbers.tobytes()).decode()}
