"""Test rows with the sets predicted for them, which grow and shrink with the sliders."""

from __future__ import annotations

from collections.abc import Sequence

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
from workbench.metrics.places import of_few_rows

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
    if chosen_rule.place is not None:
        made = cards(table, rows, places(chosen_rule.key))
    elif chosen_rule.along is not None:
        made = cards_along(reading.sets_along(chosen_rule.key, chosen_rule.along), rows)
    else:
        made = cards_of(chosen_rule.sets, rows)
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
    sizes, hits = of_few_rows(part, places.thresholds)
    return _cards(rows, wb.Threshold(float(places.thresholds.min())).fit(part).sets(part), sizes, hits)


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
    """The first classes of a set, and those that are right, wherever they stand: also outside of it."""
    names, right = table.named_classes(), _labels(table, row)
    ranks = {member: rank for rank, member in enumerate(classes.tolist())}
    of_members = dict(zip(classes.tolist(), probabilities.tolist(), strict=True))
    missed = [label for label in right if label not in ranks]
    of_members |= dict(zip(missed, table.probabilities([row])[0, missed].tolist(), strict=True)) if missed else {}
    further = [label for label in right if ranks.get(label, NAMES) >= NAMES]
    told = [*classes[: max(NAMES - len(further), 1)].tolist(), *further]
    return [
        live.Suggestion(
            names[member],
            of_members[member],
            percent(of_members[member]),
            member in right,
            ranks.get(member, table.n_classes),
        )
        for member in told
    ]


def percent(probability: float) -> str:
    """A probability as a person reads it."""
    probability = min(probability, 1.0)  # the quasibinary link may give a little more
    return "< 1%" if 0 < probability < 0.005 else f"{probability:.0%}"
