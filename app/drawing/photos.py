"""Test rows with the sets predicted for them, which grow and shrink with the sliders."""

from __future__ import annotations

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls.places import Places, places
from controls.rules import ChosenRule
from session import reading
from session.address import bound, one_of
from session.messages import plain
from workbench.figures.of_data.sprites import data_url, sprite_sheet
from workbench.figures.style import theme

ON_A_PAGE = 12
COLUMNS = 6  # of the sheet that holds the photographs
NAMES = 5  # written in a card; a larger set says how many more it holds


def one_page(rows: np.ndarray) -> np.ndarray:
    """The rows of one page, chosen here and kept in the address as `page`."""
    n_pages = max(1, -(-len(rows) // ON_A_PAGE))
    readable = bound("page", one_of(range(1, n_pages + 1)))
    st.session_state["page"] = min(st.session_state.get("page", 1), n_pages)
    page = st.number_input(f"Page (of {n_pages})", 1, n_pages, width=140, **readable)
    return rows[(page - 1) * ON_A_PAGE :][:ON_A_PAGE]


def on_cards(chosen_rule: ChosenRule, rows: np.ndarray, dark: bool, *, key: str) -> int | None:
    """The rows as cards. Returns the number of the row that was opened just now, or None."""
    colours = {"hit": theme(dark).hit, "miss": theme(dark).miss}
    table = chosen_rule.sets.table
    made = (
        cards_of(chosen_rule.sets, rows) if chosen_rule.place is None else cards(table, rows, places(chosen_rule.key))
    )
    sheet = _sheet(chosen_rule.key, rows)
    return live.cards(
        chosen_rule.channel, made, sheet=sheet, columns=min(COLUMNS, len(rows)), colours=colours, key=key, opens=True
    )


def _sheet(key: str, rows: np.ndarray) -> str | None:
    """One picture of the photographs of these rows; where they cannot be had, a word about it."""
    try:
        images = reading.photographs(key)
    except (ValueError, OSError) as error:
        st.caption(plain(f"The photographs are not shown: {error}"))
        return None
    return None if images is None else data_url(sprite_sheet(images[rows], min(COLUMNS, len(rows))))


def photo(key: str, row: int) -> str | None:
    """The photograph of one row."""
    return _sheet(key, np.array([row]))


def cards(table: wb.LogitTable, rows: np.ndarray, places: Places) -> list[live.Card]:
    """The rows as cards: their most probable classes, and size and hit at every place of the sliders."""
    part = table.rows(rows)
    index, thresholds = wb.SetIndex(part), places.thresholds
    sizes = np.array([index.sizes(threshold=threshold) for threshold in thresholds])
    hits = None
    if part.labels is not None:
        hits = np.array([index.hits(threshold=threshold) for threshold in thresholds])
    return _cards(rows, wb.Threshold(float(thresholds.min())).fit(part).sets(part), sizes, hits)


def cards_of(sets: wb.PredictionSets, rows: np.ndarray) -> list[live.Card]:
    """The rows as cards with the sets of any rule: there is one place, and it is here."""
    part = sets.table.rows(rows)
    members = np.zeros((len(rows), sets.table.n_classes), bool)
    for position, row in enumerate(rows.tolist()):
        members[position, sets.members(row)[0]] = True
    hits = None if part.labels is None else sets.hits[None, rows]
    return _cards(rows, wb.PredictionSets.from_matrix(part, members), sets.sizes[None, rows], hits)


def _cards(rows: np.ndarray, widest: wb.PredictionSets, sizes: np.ndarray, hits: np.ndarray | None) -> list[live.Card]:
    """The rows as cards; `widest` are their largest sets, `sizes` and `hits` those at every place."""
    part = widest.table
    return [
        live.Card(
            number=row,
            photo=", ".join([f"test row {row}", *facts(part, position)]),
            truth=truth(part, position),
            classes=_suggestions(part, position, *widest.members(position)),
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
    return "truth: " + (", ".join(names[label] for label in _labels(table, row)) or "none of the classes")


def facts(table: wb.LogitTable, position: int) -> list[str]:
    """What is known of a row besides its label."""
    return [f"{name}: {values[position]}" for name, values in (table.attributes or {}).items()]


def _suggestions(
    table: wb.LogitTable, row: int, classes: np.ndarray, probabilities: np.ndarray
) -> list[live.Suggestion]:
    names, right = table.named_classes(), _labels(table, row)
    return [
        live.Suggestion(names[member], probability, percent(probability), member in right)
        for member, probability in zip(classes[:NAMES].tolist(), probabilities[:NAMES].tolist(), strict=True)
    ]


def percent(probability: float) -> str:
    """A probability as a person reads it."""
    probability = min(probability, 1.0)  # the quasibinary link may give a little more
    return "< 1%" if 0 < probability < 0.005 else f"{probability:.0%}"
