"""The map of the test rows: points in the plane of their features that follow the sliders, and a lasso that selects."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls.positions import places
from controls.row_filters import knows_truth
from controls.rules import ChosenRule
from session import cached_data
from session.address import bound, drop, one_of
from workbench.figures.style import theme
from workbench.metrics import row_map
from workbench.metrics.against_bayes import sizes_against_bayes
from workbench.metrics.islands import islands
from workbench.metrics.row_map import PROJECTIONS, inside
from workbench.store import DEMO, row_maps
from workbench.tables.groups import rows_by
from workbench.warning_capture import captured_warnings

SIZE, CORRECT, BAYES, GROUPS = "set size", "correct", "Bayes set size", "class group"
LARGEST = 12  # classes of a set whose colour is that of all larger ones
MOST_COLOURS = 8  # of groups; where there are more, the largest have one each
MOST_VALUES = 200  # of an attribute that points are coloured by
OTHERS = "all others"
AGAINST = "against "  # begins the colouring by the hits of two runs
VERDICTS = ("both correct", "only this run correct", "only the other correct", "both missed")
PROJECTING = ThreadPoolExecutor(1, thread_name_prefix="projection")
Polygon = list[tuple[float, float]]


def controls(key: str, table: wb.LogitTable) -> tuple[str, str]:
    """The plane and what colours the points, in the address as `plane` and `colour`.

    The map that ships with a run of the package is the one to begin with; others are computed when they are asked for.
    """
    planes, colours = list(PROJECTIONS), colourings(key, table)
    plane = st.segmented_control(
        "Plane",
        planes,
        default=planes[-1] if cached_data.run(key).path.parent == DEMO else planes[0],
        required=True,
        label_visibility="collapsed",
        **bound("plane", one_of(planes)),
    )
    colour = st.selectbox("Colour by", colours, width=210, **bound("colour", one_of(colours)))
    return plane, colour


def colourings(key: str, table: wb.LogitTable) -> list[str]:
    """The colourings of the points: by their sets and Bayes sets, by another run, by their classes and attributes."""
    names = [SIZE]
    if table.labels is not None:
        names.append(CORRECT)
    if knows_truth(table):
        names.append(BAYES)
    if table.labels is not None:
        names += [f"{AGAINST}{name}" for name in cached_data.comparable(key).values()]
    known = list(table.attributes or {})
    if table.labels is not None and not table.many_labels:
        known = ["shots"] * (table.class_counts is not None) + [GROUPS] * (table.groups is not None) + known
    return names + [name for name in known if 1 < len(_groups(table, name)[1]) <= MOST_VALUES]


def _groups(table: wb.LogitTable, name: str) -> tuple[np.ndarray, Sequence[str]]:
    """The code of each row and the names of the codes."""
    return rows_by(table, "groups" if name == GROUPS else name)


def selected(key: str, plane: str) -> np.ndarray | None:
    """The rows inside the lasso of the address, `lasso`; None where there is none."""
    polygon = lasso()
    return None if polygon is None else np.flatnonzero(inside(positions(key, plane)[0], polygon))


def lasso() -> Polygon | None:
    """The polygon that the address asks for, in thousandths of the plane."""
    corners = st.query_params.get_all("lasso")
    if not corners:
        return None
    try:
        numbers = [int(each) / 1000 for each in corners[0].split(".")]
        polygon = list(zip(numbers[::2], numbers[1::2], strict=True))
    except ValueError:
        polygon = []
    if len(corners) == 1 and len(polygon) > 2:
        return polygon
    drop("lasso")
    del st.query_params["lasso"]
    return None


def clear() -> None:
    """Select all rows again."""
    st.query_params.pop("lasso", None)


def draw(chosen_rule: ChosenRule, rows: np.ndarray, plane: str, colour: str, dark: bool) -> int | None:
    """Draw the map with these rows selected. Returns the row that was clicked just now, or None.

    A lasso that was drawn just now goes into the address, and the fragment runs again.
    """
    found, ready = positions(chosen_rule.key, plane)
    if not ready:
        st.caption("t-SNE is being computed in the background; PCA is shown until it is there.")
    clicked = live.row_map(
        chosen_rule.channel, found, **coloured(chosen_rule, colour, dark),
        colour={SIZE: "size", CORRECT: "correct"}.get(colour, "group"), islands=_islands(chosen_rule.key, plane, ready),
        chosen=_mask(rows, len(found)), lasso=lasso(), title="Map of the test rows", key=f"map {chosen_rule.channel}",
    )  # fmt: skip
    if isinstance(clicked, list):
        if len(clicked) > 2:
            st.query_params["lasso"] = ".".join(str(round(1000 * value)) for corner in clicked for value in corner)
        else:
            clear()
        st.rerun(scope="fragment")
    return clicked


def _mask(rows: np.ndarray, n: int) -> np.ndarray | None:
    """(n,) bool: the selected rows; None where all are."""
    return None if len(rows) == n else np.isin(np.arange(n), rows)


def coloured(chosen_rule: ChosenRule, colour: str, dark: bool) -> dict[str, Any]:
    """The arguments of `live.row_map` that colour the points: when classes enter sets, or groups, and their colours."""
    colours, table = theme(dark), chosen_rule.sets.table
    parts: dict[str, Any] = dict(zip(("entries", "ranks"), entries_of(chosen_rule), strict=True))
    if colour in (SIZE, BAYES):
        ramp = [colours.sequential[round(step)] for step in np.linspace(1, len(colours.sequential) - 1, LARGEST + 1)]
        sizes = [str(size) if size < LARGEST else f"{LARGEST}+" for size in range(LARGEST + 1)]
        with captured_warnings():  # the rule said in the bar what it warns of
            codes = None if colour == SIZE else np.minimum(sizes_against_bayes(chosen_rule.sets).bayes, LARGEST)
        return {**parts, "codes": codes, "palette": ramp, "names": sizes}
    if colour == CORRECT:
        return {**parts, "codes": None, "palette": [colours.hit, colours.miss], "names": ["correct", "missed"]}
    if colour.startswith(AGAINST):
        other = next(
            short for short, name in cached_data.comparable(chosen_rule.key).items() if colour == AGAINST + name
        )
        here, there = chosen_rule.sets.hits, chosen_rule.of(other).hits
        palette = [colours.grid, colours.hit, colours.few, colours.miss]
        return {**parts, "codes": np.where(here, here & ~there, 3 - there), "palette": palette, "names": list(VERDICTS)}
    codes, names = _largest(*_groups(table, colour))
    return {**parts, "codes": codes, "palette": [*colours.categories, colours.grid][: len(names)], "names": names}


def _largest(codes: np.ndarray, names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    """The largest groups, as many as there are colours, and all others as one."""
    if len(names) <= MOST_COLOURS:
        return codes, list(names)
    largest = np.argsort(-np.bincount(codes, minlength=len(names)), kind="stable")[:MOST_COLOURS]
    placed = np.full(len(names), MOST_COLOURS)
    placed[largest] = np.arange(MOST_COLOURS)
    return placed[codes], [*(names[group] for group in largest), OTHERS]


def entries_of(chosen_rule: ChosenRule) -> tuple[np.ndarray, list[int]]:
    """When the likeliest classes of each row, and its label, enter its set; and the rank of every place of the sliders."""
    if chosen_rule.place is not None and not chosen_rule.adjusted:
        return _entries(chosen_rule.key)
    sets = chosen_rule.sets
    sizes = np.minimum(sets.sizes, LARGEST)
    entered = (np.arange(LARGEST)[None] < sizes[:, None]).astype(int)
    hits = sets.hits if sets.table.labels is not None else np.zeros(len(sets), bool)
    return np.hstack([entered, hits[:, None].astype(int)]), [0] * _places(chosen_rule)


def _places(chosen_rule: ChosenRule) -> int:
    """How many places its sliders have, all with the sets of the present one."""
    if chosen_rule.adjusted:
        return len(places(chosen_rule.key, adjusted=True).thresholds)
    return 1 + len(chosen_rule.along or ())


@st.cache_resource(show_spinner=False, max_entries=4)
def _entries(key: str) -> tuple[np.ndarray, list[int]]:
    """At a place of rank r a class is in the set if more than r of all places have no higher threshold than it has."""
    table, thresholds = cached_data.run(key).tables["test"], places(key).thresholds
    order = np.sort(thresholds)
    ranks = np.searchsorted(order, thresholds, side="left").tolist()
    n_top = min(LARGEST, table.n_classes)
    columns = np.zeros((table.n, LARGEST + 1))
    for rows in table.spans():
        probabilities = table.probabilities(rows)
        top = -np.sort(-probabilities, axis=1)[:, :n_top]
        columns[rows, :n_top] = top
        if table.labels is not None:
            columns[rows, -1] = _of_labels(table.rows(rows), probabilities)
    return np.searchsorted(order, columns, side="right"), ranks


def _of_labels(part: wb.LogitTable, probabilities: np.ndarray) -> np.ndarray:
    """The smallest probability of a label of each row; 0 of a row without one."""
    rows, classes = part.positives()
    smallest = np.full(part.n, np.inf)
    np.minimum.at(smallest, rows, probabilities[rows, classes])
    return np.where(np.isfinite(smallest), smallest, 0)


def positions(key: str, plane: str) -> tuple[np.ndarray, bool]:
    """The positions of the test rows in a plane, and whether they are those of that plane already."""
    if plane == "PCA":
        return _pca(key), True
    future = _projected(key, plane)
    done = future.done() and future.exception() is None
    return (future.result(), True) if done else (_pca(key), False)


@st.cache_resource(show_spinner=False, max_entries=8)
def _pca(key: str) -> np.ndarray:
    return PROJECTIONS["PCA"](cached_data.run(key).tables["test"])


@st.cache_resource(show_spinner=False, max_entries=8)
def _projected(key: str, plane: str) -> Future[np.ndarray]:
    stored = cached_data.run(key)
    if cached_data.is_upload(key):  # is forgotten: nothing of it is kept
        return PROJECTING.submit(PROJECTIONS[plane], stored.tables["test"])
    if (kept := row_maps.known(stored, plane)) is not None:
        known: Future[np.ndarray] = Future()
        known.set_result(kept)
        return known
    return PROJECTING.submit(row_map.positions, stored, plane)


@st.cache_data(show_spinner=False, max_entries=16)
def _islands(key: str, plane: str, ready: bool) -> list[tuple[str, float, float]]:
    """Name and place of each island of a plane; while it is computed, of PCA, which is shown instead."""
    table = cached_data.run(key).tables["test"]
    return [(island.name, island.x, island.y) for island in islands(table, positions(key, plane)[0])]
