"""What moves with a slider while it moves, with no word to the server until it is released.

One generic element (Streamlit components v2) is mounted once per moving part of a page: a strip of linked sliders and
headline numbers, a Plotly figure of the library, a wall of photographs. The parts of a page share a *channel*, which
holds one number: the place at which every array and every text of the page is read. Moving a slider chooses a place, and
each part redraws itself with the values of that place. On release Python is told, so that the address can follow.

Everything a part needs is sent once. Streamlit does not send an unchanged message again, so a move costs the network
nothing and a release a few hundred bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from session.serving import plotly_address
from workbench.figures.base import Click, Move, moved
from workbench.figures.style import PLOTLY_CONFIG

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Slider:
    """One way to say where we are, such as a mean size K or a threshold.

    `values` are what a person can choose and `places` the place of each. `nearest` is, for every place, the position of the
    nearest of those values, and `texts` what to write there: so a slider that is not held shows what it becomes.
    """

    name: str
    label: str
    help: str
    values: Sequence[float]
    places: Sequence[int]
    nearest: Sequence[int]
    texts: Sequence[str]


@dataclass(frozen=True)
class Number:
    """A headline number: one text for every place."""

    label: str
    help: str
    texts: Sequence[str]


@dataclass(frozen=True)
class Suggestion:
    """A class that may be in a set: its name, its probability as a number and as a text, whether it is right."""

    name: str
    probability: float
    text: str
    right: bool


@dataclass(frozen=True)
class Card:
    """A row of a table: its photograph in words, its truth, its classes by falling probability, its set at every place.

    `number` is that of the row in its table. `classes` may stop before the largest set does; `sizes` does not. `hits` is
    None where the truth is not known.
    """

    number: int
    photo: str
    truth: str
    classes: Sequence[Suggestion]
    sizes: Sequence[int]
    hits: Sequence[bool] | None


@dataclass(frozen=True)
class SuggestedClass:
    """A suggested class of one row: its bars, as shares and as texts, and the places of its pictures on the sheet."""

    name: str
    in_set: bool
    right: bool
    shares: Sequence[float]
    texts: Sequence[str]
    pictures: Sequence[int]
    captions: Sequence[str]  # what each picture is, in words


def sliders(
    channel: str, sliders: Sequence[Slider], numbers: Sequence[Number], *, held: str, place: int, key: str
) -> dict[str, Any] | None:
    """Draw linked sliders and headline numbers. Returns where a slider was released, `{"held", "value"}`, or None."""
    parts = {"sliders": [asdict(slider) for slider in sliders], "numbers": [asdict(number) for number in numbers]}
    return _mount("sliders", channel, {**parts, "held": held, "place": place}, key).get("position")


def figure(
    channel: str,
    figure: go.Figure,
    moves: Sequence[Move],
    *,
    title: str,
    subtitles: Sequence[str],
    text: str,
    height: int,
    key: str,
    clickable: bool = False,
) -> Click | None:
    """Draw a Plotly figure whose values follow the channel, below its title and a subtitle (one, or one per place).

    `text` is for people who cannot see the picture. Returns what was clicked just now, or None.
    """
    begun = moved(figure, [move for move in moves if move.set_once()], 0)
    moving = [_sent(move, figure) for move in moves if not move.set_once()]
    parts = {"figure": json.loads(begun.to_json()), "config": PLOTLY_CONFIG, "moves": moving}
    words = {"title": title, "subtitles": list(subtitles), "text": text}
    return _clicked(_mount("figure", channel, {**parts, **words, "height": height, "clickable": clickable}, key))


def drawing(
    figure: go.Figure, *, title: str, subtitle: str, text: str, height: int, key: str, clickable: bool = False
) -> Click | None:
    """Draw a Plotly figure that Python sends anew when something changes; it is redrawn in place.

    Where it is narrow, a figure whose axes share one scale is not as high as `height`. Returns what was clicked just now,
    or None.
    """
    parts = prepared(figure, title=title, subtitle=subtitle, text=text, height=height)
    return prepared_drawing(parts, key=key, clickable=clickable)


def prepared(figure: go.Figure, *, title: str, subtitle: str, text: str, height: int) -> dict[str, Any]:
    """What `drawing` sends. It takes longer to write than to send, so whoever draws the same again may keep it."""
    words = {"title": title, "subtitle": subtitle, "text": text}
    drawn = json.loads(figure.to_json())
    drawn["layout"].pop("height", None)  # that of the element around it
    return _with_id({"figure": drawn, "config": PLOTLY_CONFIG, "height": height, **_shape(figure), **words})


def prepared_drawing(parts: dict[str, Any], *, key: str, clickable: bool = False) -> Click | None:
    """As `drawing`, of what `prepared` gave."""
    return _clicked(_mount("drawing", key, {**parts, "clickable": clickable}, key))


def _clicked(told: Any) -> Click | None:
    """What the browser says was clicked just now."""
    clicked = told.get("clicked")
    return None if clicked is None else Click(**clicked)


def _sent(move: Move, figure: go.Figure) -> dict[str, Any]:
    """A move as the browser reads it, which goes by numbers."""
    trace, path = move.found_in(figure)
    return {"trace": trace, "property": path, "values": _encoded(move.values)}


def _shape(figure: go.Figure) -> dict[str, float]:
    """How high a figure is for its width, and how many pixels stand beside and above its axes."""
    layout = figure.layout
    if layout.yaxis.scaleanchor is None:
        return {"ratio": 0, "beside": 0, "above": 0}
    margin = {**layout.template.layout.margin.to_plotly_json(), **layout.margin.to_plotly_json()}
    across, up = (abs(axis.range[1] - axis.range[0]) for axis in (layout.xaxis, layout.yaxis))
    return {"ratio": up / across, "beside": margin["l"] + margin["r"], "above": margin["t"] + margin["b"]}


def cards(
    channel: str,
    cards: Sequence[Card],
    *,
    sheet: str | None,
    columns: int,
    colours: dict[str, str],
    key: str,
    opens: bool = False,
) -> int | None:
    """Draw rows with their sets. `sheet` is one picture with all photographs, `columns` of them to a line, or None.

    Returns the number of the row that was opened just now, if cards can be opened, or None.
    """
    about = {"cards": [asdict(card) for card in cards], "sheet": sheet, "colours": colours, "opens": opens}
    parts = {**about, "columns": columns, "lines": -(-len(cards) // columns)}
    clicked = _mount("cards", channel, parts, key).get("clicked")
    return None if clicked is None else clicked["data"]


def suggestions(
    about: str,
    head: Sequence[str],
    lines: Sequence[SuggestedClass],
    *,
    photo: str | None,
    facts: Sequence[str],
    sheet: str | None,
    columns: int,
    colours: dict[str, str],
    key: str,
) -> None:
    """Draw one row in full: its photograph and facts, and a table with a line for each suggested class.

    `about` says in words what the photograph shows, `head` names the columns of bars. `sheet` is one picture with all
    training pictures, `columns` of them to a line.
    """
    parts = {
        "about": about,
        "head": list(head),
        "lines": [asdict(line) for line in lines],
        "photo": photo,
        "facts": list(facts),
    }
    _mount("suggestions", key, {**parts, "sheet": sheet, "columns": columns, "colours": colours}, key)


def _mount(kind: str, channel: str, parts: dict[str, Any], key: str) -> Any:
    data = {"kind": kind, "channel": channel, "plotly": plotly_address(), **parts}
    return _element()(
        data=data if "id" in data else _with_id(data), key=key, on_position_change=_keep, on_clicked_change=_keep
    )


def _with_id(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts and a name for their content: the browser does nothing when it is given the same again."""
    return {**parts, "id": hashlib.sha256(json.dumps(parts).encode()).hexdigest()}


def _keep() -> None:
    """Streamlit keeps a value that a component sends only if somebody listens."""


def _encoded(values: np.ndarray | list[Any]) -> dict[str, Any]:
    """A matrix in few characters, as plotly.py writes them; a list as its distinct values and where each stands."""
    if isinstance(values, list):
        written = [json.dumps(value) for value in values]
        place = {text: position for position, text in enumerate(dict.fromkeys(written))}
        return {"distinct": [json.loads(text) for text in place], "at": [place[text] for text in written]}
    numbers = np.ascontiguousarray(values, dtype="i4" if values.dtype.kind in "iu" else "f4")
    return {
        "dtype": numbers.dtype.str[1:],
        "shape": numbers.shape,
        "bdata": base64.b64encode(numbers.tobytes()).decode(),
    }


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    return st.components.v2.component(
        "live",
        js=(HERE / "live.js").read_text(encoding="utf-8"),
        css=(HERE / "live.css").read_text(encoding="utf-8"),
        isolate_styles=False,
    )
