"""Test rows with the sets predicted for them, which grow and shrink with the sliders."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls.positions import Places, places
from controls.rules import ChosenRule
from session import cached_data
from session.address import bound, one_of
from session.messages import plain
from workbench.drawings.symbols import SYMBOL_OF
from workbench.figures.data.row_pictures import read_wave
from workbench.figures.data.sprites import data_url, sprite_sheet
from workbench.figures.style import theme
from workbench.metrics.along_slider import members_at, of_few_rows, sizes_and_hits
from workbench.sets.prevalence import AdjustedTable, class_weights

ON_A_PAGE = 12
COLUMNS = 6  # of the sheet that holds the photographs
NAMES = 5  # written in a card; a larger set says how many more it holds


def one_page(rows: np.ndarray) -> np.ndarray:
    """The rows of one page, chosen here and kept in the address as `page`."""
    n_pages = max(1, -(-len(rows) // ON_A_PAGE))
    readable = bound("page", one_of(range(1, n_pages + 1)))
    st.session_state["page"] = min(st.session_state.get("page", 1), n_pages)
    page = st.number_input(f"Page (of {n_pages})", 1, n_pages, width=200, **readable)
    return rows[(page - 1) * ON_A_PAGE :][:ON_A_PAGE]


def on_cards(chosen_rule: ChosenRule, rows: np.ndarray, dark: bool, *, key: str) -> int | None:
    """The rows as cards. Returns the number of the row that was opened just now, or None."""
    colours = {"hit": theme(dark).hit, "miss": theme(dark).miss}
    table = chosen_rule.sets.table
    if chosen_rule.adjusted:
        made = adjusted_cards(table, rows, places(chosen_rule.key, adjusted=True))
    elif chosen_rule.place is not None:
        made = cards(table, rows, places(chosen_rule.key))
    elif chosen_rule.along is not None:
        made = cards_along(cached_data.sets_along(chosen_rule.key, chosen_rule.along), rows)
    else:
        made = cards_of(chosen_rule.sets, rows)
    made = with_texts(chosen_rule.key, rows, made)
    images = sheet(chosen_rule.key, rows)
    return live.cards(
        chosen_rule.channel, made, sheet=images, columns=min(COLUMNS, len(rows)), colours=colours, key=key, opens=True
    )


def with_texts(key: str, rows: np.ndarray, made: list[live.Card]) -> list[live.Card]:
    """The cards of rows, each with the text of its row where there is one."""
    texts = cached_data.row_texts(key, rows)
    return [dataclasses.replace(card, text=text) for card, text in zip(made, texts, strict=True)] if texts else made


def sheet(key: str, rows: np.ndarray) -> str | None:
    """One picture of the photographs of these rows; where they cannot be had, a word about it."""
    try:
        images = cached_data.photographs(key)
    except (ValueError, OSError) as error:
        st.caption(plain(f"The photographs are not shown: {error}"))
        return None
    return None if images is None else _sheet(key, tuple(rows.tolist()), images)


@st.cache_resource(show_spinner=False, max_entries=256)
def _sheet(key: str, rows: tuple[int, ...], _images: Any) -> str:
    """The same rows stand on the wall whatever the sliders say: they are packed once."""
    return data_url(sprite_sheet(_images[np.array(rows)], min(COLUMNS, len(rows))))


def photo(key: str, row: int) -> str | None:
    """The photograph of one row."""
    return sheet(key, np.array([row]))


def sound(key: str, row: int) -> str | None:
    """The sound of one row, as an address that a player takes; None where it has none that can be read."""
    sounds = cached_data.run(key).tables["test"].sounds
    if sounds is None:
        return None
    path = Path(sounds[row])
    try:
        read_wave(path)
    except (OSError, ValueError) as error:
        st.caption(plain(f"The sound cannot be played: {path.name} {error}"))
        return None
    return "data:audio/wav;base64," + base64.b64encode(path.read_bytes()).decode()


def cards(table: wb.LogitTable, rows: np.ndarray, places: Places, names: int = NAMES) -> list[live.Card]:
    """The rows as cards: their most probable classes, `names` of them, and size and hit at every place of the sliders."""
    part = table.rows(rows)
    sizes, hits = of_few_rows(part, places.thresholds)
    return _cards(rows, wb.Threshold(float(places.thresholds.min())).fit(part).sets(part), sizes, hits, names)


def adjusted_cards(table: wb.LogitTable, rows: np.ndarray, places: Places) -> list[live.Card]:
    """The rows as cards, where a slider τ changes the order of the classes: each says for itself where it is in the set."""
    part = table.rows(rows)
    blocks = zip(places.taus, np.split(places.thresholds, len(places.taus)), strict=True)
    inside = np.concatenate([members_at(_adjusted(part, tau), thresholds) for tau, thresholds in blocks])
    sizes, hits = sizes_and_hits(part, inside)
    of_tail = _adjusted(part, places.taus[-1]).probabilities()
    found = _cards(rows, wb.TopK(min(NAMES, part.n_classes)).fit(part).sets(part), sizes, hits)
    names = part.named_classes()
    return [
        dataclasses.replace(card, classes=_marked(part, position, of_tail[position], inside[:, position], names))
        for position, card in enumerate(found)
    ]


def _adjusted(part: wb.LogitTable, tau: float) -> wb.LogitTable:
    weights = class_weights(part, tau)
    return part if weights is None else AdjustedTable.of(part, weights)


def _marked(
    part: wb.LogitTable, position: int, of_tail: np.ndarray, inside: np.ndarray, names: Sequence[str]
) -> list[live.Suggestion]:
    """The first classes of a row from head and tail, and the label, by falling probability, with the places of each."""
    probabilities, right = part.probabilities([position])[0], _labels(part, position)
    first = {*np.argsort(-probabilities)[:NAMES].tolist(), *np.argsort(-of_tail)[:NAMES].tolist(), *right}
    return [
        live.Suggestion(
            names[member],
            float(probabilities[member]),
            percent(float(probabilities[member])),
            member in right,
            rank,
            "".join(np.where(inside[:, member], "1", "0")),
            _likeliest(probabilities, member) if member in right else 0,
            glyph(part, names[member]),
        )
        for rank, member in enumerate(sorted(first, key=lambda member: -probabilities[member]))
    ]


def cards_of(sets: wb.PredictionSets, rows: np.ndarray) -> list[live.Card]:
    """The rows as cards with the sets of any rule: there is one place, and it is here."""
    part = sets.table.rows(rows)
    members = np.zeros((len(rows), sets.table.n_classes), bool)
    for position, row in enumerate(rows.tolist()):
        members[position, sets.members(row)[0]] = True
    hits = None if part.labels is None else sets.hits[None, rows]
    return _cards(rows, wb.PredictionSets.from_matrix(part, members), sets.sizes[None, rows], hits)


def cards_along(sets: Sequence[wb.PredictionSets], rows: np.ndarray) -> list[live.Card]:
    """The rows as cards with the sets of a rule at every place of its slider."""
    largest = [max((each.members(row)[0] for each in sets), key=len) for row in rows.tolist()]
    part = sets[0].table.rows(rows)
    members = np.zeros((len(rows), part.n_classes), bool)
    for position, classes in enumerate(largest):
        members[position, classes] = True
    hits = None if part.labels is None else np.array([each.hits[rows] for each in sets])
    sizes = np.array([each.sizes[rows] for each in sets])
    return _cards(rows, wb.PredictionSets.from_matrix(part, members), sizes, hits)


def _cards(
    rows: np.ndarray, widest: wb.PredictionSets, sizes: np.ndarray, hits: np.ndarray | None, names: int = NAMES
) -> list[live.Card]:
    """The rows as cards; `widest` are their largest sets, `sizes` and `hits` those at every place."""
    part = widest.table
    return [
        live.Card(
            number=row,
            photo=", ".join([f"test row {part.row_ids[position]}", *facts(part, position)]),
            truth=truth(part, position),
            classes=_suggestions(part, position, *widest.members(position), names),
            sizes=sizes[:, position].tolist(),
            hits=hits[:, position].tolist() if hits is not None and part.labelled[position] else None,
        )
        for position, row in enumerate(rows.tolist())
    ]


def _labels(table: wb.LogitTable, row: int) -> list[int]:
    if table.labels is None:
        return []
    return table.rows([row]).positives()[1].tolist()


def truth(table: wb.LogitTable, row: int) -> str:
    """The label of a row, or its labels, in words."""
    if table.labels is None:
        return "no label"
    names = table.named_classes()
    return "true class: " + (", ".join(names[label] for label in _labels(table, row)) or "none of the classes")


def facts(table: wb.LogitTable, position: int) -> list[str]:
    """The attributes of a row besides its label."""
    return [f"{name}: {values[position]}" for name, values in (table.attributes or {}).items()]


def _suggestions(
    table: wb.LogitTable, row: int, classes: np.ndarray, probabilities: np.ndarray, most: int
) -> list[live.Suggestion]:
    """The first classes of a set, and those that are right, wherever they stand: also outside of it."""
    names, right = table.named_classes(), _labels(table, row)
    ranks = {member: rank for rank, member in enumerate(classes.tolist())}
    of_members = dict(zip(classes.tolist(), probabilities.tolist(), strict=True))
    of_all = table.probabilities([row])[0] if right else np.array([])
    of_members |= {label: float(of_all[label]) for label in right if label not in ranks}
    further = [label for label in right if ranks.get(label, most) >= most]
    listed = [*classes[: max(most - len(further), 1)].tolist(), *further]
    return [
        live.Suggestion(
            names[member],
            of_members[member],
            percent(of_members[member]),
            member in right,
            ranks.get(member, table.n_classes),
            likeliest=_likeliest(of_all, member) if member in right else 0,
            glyph=glyph(table, names[member]),
        )
        for member in listed
    ]


def glyph(table: wb.LogitTable, name: str) -> dict[str, Any] | None:
    """The symbol that a class of drawings is called after; None where rows are no drawings, or the class is no symbol."""
    symbol = None if table.strokes is None else SYMBOL_OF.get(name)
    return None if symbol is None else vars(symbol)


def _likeliest(probabilities: np.ndarray, member: int) -> int:
    """How many classes are at least as probable as one of them, itself included."""
    return int(np.count_nonzero(probabilities >= probabilities[member]))


def percent(probability: float) -> str:
    """A probability as a person reads it."""
    probability = min(probability, 1.0)  # the quasibinary link may give a little more
    return "< 1%" if 0 < probability < 0.005 else f"{probability:.0%}"
