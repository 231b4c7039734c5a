"""Elements that move with a slider while it moves; the server hears of it when it is released.

One generic element (Streamlit components v2) is mounted once per moving part of a page: a strip of linked sliders and
headline numbers, a Plotly figure of the library, a wall of photographs. The parts of a page share a *channel*, which
holds one number: the place at which every array and every text of the page is read. Moving a slider chooses a place, and
each part redraws itself with the values of that place. On release the position is sent to Python, so that the address can follow.

Everything a part needs is sent once. Streamlit does not send an unchanged message again, so a move costs the network
nothing and a release a few hundred bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from session.serving import plotly_address
from workbench.figures.base import Click
from workbench.figures.browser import ELEMENTS, FILM
from workbench.figures.film import Film, as_json, encoded, moves_along
from workbench.figures.style import PLOTLY_CONFIG

HERE = Path(__file__).parent
SCRIPTS = ("live.js", "pictures.js", "explorable.js", "map.js")


@dataclass(frozen=True)
class Slider:
    """One way to say where we are, such as a mean size K or a threshold.

    `values` are what a person can choose and `places` the place of each. `nearest` is, for every place, the position of the
    nearest of those values, and `texts` what to write there: so a slider that is not held shows what it becomes. Places may
    come in blocks: an `outer` slider moves from block to block, and `places` of it are where blocks begin.
    """

    name: str
    label: str
    help: str
    values: Sequence[float]
    places: Sequence[int]
    nearest: Sequence[int]
    texts: Sequence[str]
    outer: bool = False


@dataclass(frozen=True)
class Followed:
    """A slider of Streamlit's own that leads: what it says at each place.

    The page follows it while it moves; Python, its address and all else that a widget does hear of it when it rests.
    """

    widget: str
    texts: Sequence[str]


@dataclass(frozen=True)
class Number:
    """A headline number: one text for every place."""

    label: str
    help: str
    texts: Sequence[str]


@dataclass(frozen=True)
class Suggestion:
    """A class that may be in a set: its name, its probability as a number and as a text, whether it is right.

    It is in the set when that is larger than its `rank`; where the order of classes moves, at the places whose letter of
    `inside` is 1. `likeliest` says of a right class how many are at least as probable, itself included: where a set leaves it
    out, how far. `glyph` is the class itself where it is a symbol that is drawn: the fields of its `Symbol`.
    """

    name: str
    probability: float
    text: str
    right: bool
    rank: int
    inside: str = ""
    likeliest: int = 0
    glyph: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class Card:
    """A row of a table: its photograph in words, its truth, its classes by falling probability, its set at every place.

    `number` is that of the row in its table. `classes` may stop before the largest set does, but hold what is right;
    `sizes` does not. `hits` is None where the truth is not known. `head` says whose set it is, if there are several. `text` is
    the row itself, where it is a text.
    """

    number: int
    photo: str
    truth: str
    classes: Sequence[Suggestion]
    sizes: Sequence[int]
    hits: Sequence[bool] | None
    head: str = ""
    text: str = ""


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
    glyph: Mapping[str, Any] | None = None  # as of a `Suggestion`


def sliders(
    channel: str,
    sliders: Sequence[Slider],
    numbers: Sequence[Number],
    *,
    held: str,
    place: int,
    key: str,
    follows: Followed | None = None,
) -> dict[str, Any] | None:
    """Draw linked sliders and headline numbers. Returns where a slider was released, `{"held", "value"}`, or None.

    With an outer slider, its value stands there too, under its name.
    What `follows` a slider of Streamlit's needs none of its own, and `place` is only where it begins.
    """
    parts: dict[str, Any] = {
        "sliders": [vars(slider) for slider in sliders],
        "numbers": [vars(number) for number in numbers],
    }
    parts |= {"follows": None if follows is None else vars(follows)}
    return _mount("sliders", channel, {**parts, "held": held, "place": place}, key).get("position")


def table(
    channel: str, title: str, head: Sequence[str], lines: Sequence[tuple[str, *tuple[Sequence[str], ...]]], *, key: str
) -> None:
    """Draw a table whose cells follow the channel: each has one text, or one for every place. A line begins with its name."""
    cells = [[name, *map(list, texts)] for name, *texts in lines]
    _mount("table", channel, {"title": title, "head": list(head), "lines": cells}, key)


def figure(channel: str, film: Film, *, key: str, title: str | None = None) -> Click | None:
    """Draw a film that follows the channel, below its title (or another one) and a subtitle.

    A click on a film that `seeks` moves the slider of that name to what was clicked: the first custom number of the point, or
    how far right it is. Of any other, what was clicked just now is returned, or None.
    """
    parts = _of_film(film)
    if title is not None:
        parts = {**parts, "title": title, "id": _with_id({"of": parts["id"], "title": title})["id"]}
    return _clicked(_mount("figure", channel, parts, key))


_sent: WeakKeyDictionary[Film, dict[str, Any]] = WeakKeyDictionary()


def _of_film(film: Film) -> dict[str, Any]:
    """A film as it is sent, kept for as long as it lives: it takes longer to write than to send."""
    if film not in _sent:
        _sent[film] = _with_id({**film.spec(), "config": PLOTLY_CONFIG})
    return _sent[film]


def drawing(
    figure: go.Figure, *, title: str, subtitle: str, text: str, height: int, key: str, clickable: bool = False
) -> Click | None:
    """Draw a Plotly figure that Python sends anew when something changes; it is redrawn in place.

    Where it is narrow, a figure whose axes share one scale is not as high as `height`. Returns what was clicked just now,
    or None.
    """
    parts = prepared(figure, title=title, subtitle=subtitle, text=text, height=height)
    return prepared_drawing(parts, key=key, clickable=clickable)


def prepared(
    figure: go.Figure, *, title: str, subtitle: str, text: str, height: int, narrow: go.Figure | None = None
) -> dict[str, Any]:
    """The parts that `drawing` sends. They take longer to write than to send, so that they are worth keeping.

    `narrow` is the same picture for a narrow screen, of a height of its own.
    """
    words = {"title": title, "subtitle": subtitle, "text": text}
    parts = {**_drawn(figure, height), "config": PLOTLY_CONFIG, **words}
    return _with_id(parts | ({} if narrow is None else {"narrow": _drawn(narrow, narrow.layout.height)}))


def _drawn(figure: go.Figure, height: int) -> dict[str, Any]:
    """A figure without its own height, which is that of the element around it."""
    drawn = json.loads(figure.to_json())
    drawn["layout"].pop("height", None)
    return {"figure": drawn, "height": height, **_shape(figure)}


def prepared_film(
    figures: Sequence[go.Figure],
    *,
    follows: Followed,
    title: str,
    subtitles: Sequence[str],
    texts: Sequence[str],
    height: int,
) -> dict[str, Any]:
    """As `prepared`, of pictures of one kind: the one that a slider asks for is shown while it moves."""
    first = prepared(figures[0], title=title, subtitle=subtitles[0], text=texts[0], height=height)
    moves = [as_json(move, figures[0]) for move in moves_along(figures)]
    return _with_id(
        {**first, "film": {"moves": moves, "subtitles": subtitles, "texts": texts, "follows": vars(follows)}}
    )


def with_overlay(parts: dict[str, Any], traces: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What `prepared` or `prepared_film` gave, with traces above the picture that do not change along its slider."""
    overlay = json.loads(
        go.Figure([{**trace, "hoverinfo": "skip", "hovertemplate": None} for trace in traces]).to_json()
    )
    return {**parts, "overlay": overlay["data"], "id": _with_id({"of": parts["id"], "overlay": overlay["data"]})["id"]}


def prepared_drawing(parts: dict[str, Any], *, key: str, clickable: bool = False) -> Click | None:
    """As `drawing`, of what `prepared` gave."""
    return _clicked(_mount("drawing", key, {**parts, "clickable": clickable}, key))


def _clicked(message: Any) -> Click | None:
    """The click that the browser reports, if there is one."""
    clicked = message.get("clicked")
    return None if clicked is None else Click(**clicked)


def _shape(figure: go.Figure) -> dict[str, float]:
    """How high a figure is for its width, and how many pixels stand beside and above its axes."""
    layout = figure.layout
    if layout.yaxis.scaleanchor is None:
        return {"ratio": 0, "beside": 0, "above": 0}
    margin = {**layout.template.layout.margin.to_plotly_json(), **layout.margin.to_plotly_json()}
    across, up = (abs(axis.range[1] - axis.range[0]) for axis in (layout.xaxis, layout.yaxis))
    wide, high = (end - start for start, end in (axis.domain or (0, 1) for axis in (layout.xaxis, layout.yaxis)))
    ratio = up / across * wide / high  # of all panels, where there are several
    return {"ratio": ratio, "beside": margin["l"] + margin["r"], "above": margin["t"] + margin["b"]}


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
    about = {"cards": [_of_card(card) for card in cards], "sheet": sheet, "colours": colours, "opens": opens}
    parts = {**about, "columns": columns, "lines": -(-len(cards) // columns)}
    clicked = _mount("cards", channel, parts, key).get("clicked")
    return None if clicked is None else clicked["data"]


def _of_card(card: Card) -> dict[str, Any]:
    """A card as it is sent. (`dataclasses.asdict` would copy every number of every place.)"""
    return {**vars(card), "classes": [vars(suggestion) for suggestion in card.classes]}


def explorable(
    channel: str,
    cards: Sequence[Card],
    *,
    invitation: str,
    sheet: str | None,
    columns: int,
    colours: dict[str, str],
    key: str,
) -> None:
    """Draw one row large, its classes as bars with those of its set lit, and a strip of all rows ordered by set size.

    A click in the strip shows that row, and the `invitation` above it says so.
    """
    parts = {"cards": [_of_card(card) for card in cards], "sheet": sheet, "columns": columns, "invitation": invitation}
    _mount("explorable", channel, {**parts, "lines": -(-len(cards) // columns), "colours": colours}, key)


def row_map(
    channel: str,
    positions: np.ndarray,
    *,
    entries: np.ndarray,
    ranks: Sequence[int],
    colour: str,
    codes: np.ndarray | None,
    palette: Sequence[str],
    names: Sequence[str],
    islands: Sequence[tuple[str, float, float]],
    chosen: np.ndarray | None,
    lasso: Sequence[tuple[float, float]] | None,
    title: str,
    key: str,
) -> list[list[float]] | int | None:
    """Draw rows as points that follow the sliders.

    Returns what was done just now: the lasso that was drawn, as a polygon (empty: all rows again), or the row that was
    clicked; or None.

    `positions` (n, 2) are in [0, 1]. `entries` (n, T) says when the classes of a row enter its set, the label last: a class
    is in at a place whose rank (`ranks`) is below its entry. `colour` is "size", "correct" or "group"; a group has `codes`
    (n,). `palette` and `names` are those of sizes, verdicts or groups. `islands` are names with their places.
    `chosen` (n,) bool are the rows that are selected; the others are drawn as ghosts.
    """
    arrays = {"positions": positions.astype("f4"), "entries": entries.astype("i4")}
    further = {"codes": codes, "chosen": chosen}
    arrays |= {name: values.astype("i4")[None] for name, values in further.items() if values is not None}
    parts: dict[str, Any] = {name: encoded(values) for name, values in arrays.items()}
    words: dict[str, Any] = {
        "colour": colour,
        "palette": list(palette),
        "names": list(names),
        "title": title,
        "lasso": lasso,
    }
    words |= {"islands": list(islands), "ranks": list(ranks)}
    clicked = _mount("map", channel, {**parts, **words}, key).get("clicked")
    return None if clicked is None else clicked["data"]


def side_by_side(cards: Sequence[Card], *, colours: dict[str, str], key: str) -> None:
    """Draw the sets of one row, each at its only place."""
    parts = {"cards": [_of_card(card) for card in cards], "sheet": None, "columns": 1, "lines": 1}
    _mount("beside", key, {**parts, "colours": colours, "opens": False}, key)


def suggestions(
    about: str,
    head: Sequence[str],
    lines: Sequence[SuggestedClass],
    *,
    photo: str | None,
    text: str,
    sound: str | None,
    facts: Sequence[str],
    sheet: str | None,
    columns: int,
    awaited: int,
    colours: dict[str, str],
    key: str,
) -> None:
    """Draw one row in full: its photograph and facts, and a table with a line for each suggested class.

    `about` says in words what the photograph shows, `head` names the columns of bars. `sheet` is one picture with all
    training pictures, `columns` of them to a line; while it is `awaited`, there is room for that many in each line.
    """
    parts = {
        "about": about,
        "head": list(head),
        "lines": [vars(line) for line in lines],
        "photo": photo,
        "text": text,
        "sound": sound,
        "facts": list(facts),
    }
    pictures = {"sheet": sheet, "columns": columns, "awaited": awaited}
    _mount("suggestions", key, {**parts, **pictures, "colours": colours}, key)


def _mount(kind: str, channel: str, parts: dict[str, Any], key: str) -> Any:
    data = {"kind": kind, "channel": channel, "plotly": plotly_address(), **parts}
    return _element()(
        data=data if "id" in data else _with_id(data), key=key, on_position_change=_keep, on_clicked_change=_keep
    )


def _with_id(parts: dict[str, Any]) -> dict[str, Any]:
    """The parts and a name for their content: the browser does nothing when it is given the same again."""
    return {**parts, "id": hashlib.sha256(json.dumps(parts).encode()).hexdigest()}


def _keep() -> None:
    """Callback without effect: Streamlit keeps the value of a component only with one."""


@st.cache_resource(show_spinner=False)
def _element() -> Any:
    """The component."""
    return st.components.v2.component(
        "live",
        js="\n".join(file.read_text(encoding="utf-8") for file in (ELEMENTS, FILM, *(HERE / name for name in SCRIPTS))),
        css=(HERE / "live.css").read_text(encoding="utf-8"),
        isolate_styles=False,
    )
