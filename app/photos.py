"""Test rows with the sets predicted for them, which grow and shrink with the sliders."""

from __future__ import annotations

import numpy as np
import streamlit as st

import live
import reading
import workbench as wb
from messages import friendly, plain
from places import Places
from workbench.figures.sprites import data_url, sprite_sheet
from workbench.figures.style import theme

ON_A_PAGE = 12
COLUMNS = 6  # of the sheet that holds the photographs
NAMES = 5  # written in a card; a larger set says how many more it holds
CHOICES = ("any rows", "misses", "hits", "largest sets", "empty sets")


@friendly
def wall(key: str, places: Places, row: int, dark: bool) -> None:
    """Photographs (or, where there are none, rows) with their sets; which ones is chosen here."""
    index = reading.index(key, "test")
    st.header("Test rows and their sets", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = CHOICES if index.table.labels is not None else (CHOICES[0], *CHOICES[3:])
        choice = st.segmented_control(
            "Show", options, default=CHOICES[0], required=True, key="show", bind="query-params"
        )
        chosen = chosen_rows(index, choice, float(places.thresholds[row]))
        n_pages = max(1, -(-len(chosen) // ON_A_PAGE))
        st.session_state["page"] = min(st.session_state.get("page", 1), n_pages)
        page = st.number_input(f"Page (of {n_pages})", 1, n_pages, key="page", bind="query-params", width=140)
    shown = chosen[(page - 1) * ON_A_PAGE :][:ON_A_PAGE]
    if len(shown) == 0:
        st.info(
            "No test row is of this kind here. Move a slider, or choose another kind.", icon=":material/search_off:"
        )
        return
    sheet = _sheet(key, shown)
    colours = {"hit": theme(dark).hit, "miss": theme(dark).miss}
    live.cards(key, cards(index.table, shown, places), sheet=sheet, columns=COLUMNS, colours=colours, key=f"wall {key}")


def _sheet(key: str, rows: np.ndarray) -> str | None:
    """One picture of the photographs of these rows; where they cannot be had, a word about it."""
    try:
        images = reading.photographs(key)
    except (ValueError, OSError) as error:
        st.caption(plain(f"The photographs are not shown: {error}"))
        return None
    return None if images is None else data_url(sprite_sheet(images[rows], COLUMNS))


def chosen_rows(index: wb.SetIndex, choice: str, threshold: float) -> np.ndarray:
    """The rows of a kind at a threshold, in the order of the table (the largest sets first)."""
    if choice == "hits":
        return np.flatnonzero(index.hits(threshold=threshold))
    if choice == "misses":
        return np.flatnonzero(~index.hits(threshold=threshold))
    sizes = index.sizes(threshold=threshold)
    if choice == "empty sets":
        return np.flatnonzero(sizes == 0)
    return np.argsort(-sizes, kind="stable") if choice == "largest sets" else np.arange(index.table.n)


def cards(table: wb.LogitTable, rows: np.ndarray, places: Places) -> list[live.Card]:
    """The rows as cards: their most probable classes, and size and hit at every place."""
    part = table.rows(rows)
    index = wb.SetIndex(part)
    sizes = np.array([index.sizes(threshold=threshold) for threshold in places.thresholds])
    hits = None
    if part.labels is not None:
        hits = np.array([index.hits(threshold=threshold) for threshold in places.thresholds])
    widest = wb.Threshold(float(places.thresholds.min())).fit(part).sets(part)
    return [
        live.Card(
            photo=_in_words(part, position, row),
            truth=_truth(part, position),
            classes=_suggestions(part, position, widest),
            sizes=sizes[:, position].tolist(),
            hits=None if hits is None else hits[:, position].tolist(),
        )
        for position, row in enumerate(rows.tolist())
    ]


def _labels(table: wb.LogitTable, row: int) -> list[int]:
    if table.labels is None:
        return []
    return np.flatnonzero(table.labels[row]).tolist() if table.many_labels else [int(table.labels[row])]


def _truth(table: wb.LogitTable, row: int) -> str:
    if table.labels is None:
        return "no label"
    names = table.named_classes()
    return "truth: " + (", ".join(names[label] for label in _labels(table, row)) or "none of the classes")


def _in_words(table: wb.LogitTable, position: int, row: int) -> str:
    facts = [f"{name} {values[position]}" for name, values in (table.attributes or {}).items()]
    return ", ".join([f"test row {row}", *facts])


def _suggestions(table: wb.LogitTable, row: int, widest: wb.PredictionSets) -> list[live.Suggestion]:
    names, right = table.named_classes(), _labels(table, row)
    members = zip(*(part[:NAMES].tolist() for part in widest.members(row)), strict=True)
    return [
        live.Suggestion(names[member], probability, _percent(probability), member in right)
        for member, probability in members
    ]


def _percent(probability: float) -> str:
    probability = min(probability, 1.0)  # the quasibinary link may give a little more
    return "< 1%" if 0 < probability < 0.005 else f"{probability:.0%}"
