"""The strip that stays in sight on every view of sets: the linked sliders and the headline numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls.positions import Places, Position, compact, places
from session import cached_data
from session.address import visit
from session.sliced_runs import whole
from workbench.class_counts import FEW, MANY
from workbench.figures.base import counted
from workbench.sets.coverage_band import coverage_band
from workbench.tables.row_kinds import training_rows

MEAN_SIZE = "classes in a set on average, on the test rows"
REACHED = "share of the test rows whose set contains the label: the coverage reached"
MACRO = "the same, averaged over classes"
EXPECTED = (
    "where the coverage of new rows lies in 95 of 100 cases, for what is promised: one set of {n} is a draw, and the promise is "
    "an average over such draws"
)
SHOTS = {  # shot group → its name here and its training rows
    "few": ("Rare classes", f"under {FEW}"),
    "medium": ("Medium", f"{FEW} to {MANY}"),
    "many": ("Frequent", f"over {MANY}"),
}


def strip(view: str, key: str, adjusted: bool = False) -> Position:
    """Sliders and headline numbers of a view, always in sight, with τ among them if probabilities are `adjusted` by it.

    Returns where a slider was released last.
    """
    at, (sliders, numbers) = places(key, adjusted), at_every_place(key, adjusted)
    mount = f"strip of {view} {channel_of(key, adjusted)}"
    position = moved(channel_of(whole(key), adjusted), at, sliders, numbers, start=at.current, mount=mount)
    position.keep()
    return position


@st.cache_resource(show_spinner=False, max_entries=8)
def at_every_place(key: str, adjusted: bool = False) -> tuple[list[live.Slider], list[live.Number]]:
    """The linked sliders of a run, and the numbers at each of their positions."""
    everywhere, at = compact(key, None, adjusted=adjusted), places(key, adjusted)
    numbers = numbers_along(cached_data.index(key, "test").table, everywhere)
    # A slice is no draw of rows like the validation rows: nothing is promised of it.
    of_promise = expected(cached_data.run(key).tables["val"], at.confidence) if key == whole(key) else []
    return at.sliders(), [*numbers[:2], *of_promise, *numbers[2:]]


def expected(val: wb.LogitTable, confidences: Iterable[float]) -> list[live.Number]:
    """The band in which coverage lies at every place, for what is promised there; none where nothing can be promised."""
    if val.labels is None or val.chose_model:
        return []
    n = int(np.count_nonzero(val.labelled))
    about = EXPECTED.format(n=counted(n, "calibration row"))
    return [live.Number("Expected", about, [band_text(n, float(confidence)) for confidence in confidences])]


def band_text(n: int, confidence: float) -> str:
    """The band of a promise: `86–94%`."""
    if not 0 < confidence <= 1:
        return "–"
    low, high = coverage_band(n, confidence, level=0.95)
    digits = 0 if high - low >= 0.03 else 1
    return f"{100 * low:.{digits}f}–{100 * high:.{digits}f}%"


def channel_of(key: str, adjusted: bool) -> str:
    """Channel of the parts that follow the linked sliders of a run."""
    return f"{key} tau" if adjusted else key


def moved(
    channel: str,
    at: Places,
    sliders: Sequence[live.Slider],
    numbers: Sequence[live.Number],
    *,
    start: Callable[[], Position],
    mount: str,
) -> Position:
    """Draw sliders and numbers, at first where `start` says. Returns where a slider was released last.

    What the element is given stays the same as long as it is mounted: it knows best where its sliders are.
    """
    mount = f"{mount} {visit()}"
    if mount not in st.session_state:
        st.session_state[f"{mount} start"] = start()
    position = st.session_state[f"{mount} start"]
    released = live.sliders(channel, sliders, numbers, held=position.held, place=position.place, key=mount)
    return position if released is None else at.nearest(**released)


def numbers_of(sets: wb.PredictionSets) -> list[live.Number]:
    """The same numbers of the sets of any rule."""
    table = sets.table
    measured: dict[str, Any] = {}
    if table.labels is not None:
        measured |= {"accuracy": wb.metrics.accuracy(sets), "macro_accuracy": wb.metrics.macro_accuracy(sets)}
        if table.class_counts is not None:
            measured["shot_accuracy"] = wb.metrics.shot_accuracy(sets)
    return [
        live.Number(name, about, _texts(np.atleast_1d(value), digits))
        for name, (about, value, digits) in {
            "Mean size": (MEAN_SIZE, wb.metrics.mean_size(sets), ".2f"),
            **_accuracies(table, measured),
        }.items()
    ]


def numbers_along(table: wb.LogitTable, compact: dict[str, Any]) -> list[live.Number]:
    """The same numbers at every place of sliders, or of the slider of a rule."""
    return [
        live.Number(name, about, _texts(np.asarray(values), digits))
        for name, (about, values, digits) in {
            "Mean size": (MEAN_SIZE, compact["mean_size"], ".2f"),
            **_accuracies(table, compact),
        }.items()
    ]


def _accuracies(table: wb.LogitTable, measured: dict[str, Any]) -> dict[str, tuple[str, Any, str]]:
    """Name → words, values and how they are written, of the accuracies of a table."""
    if table.labels is None:
        return {}
    named = {
        "Correct": (REACHED, measured["accuracy"], ".1%"),
        "Mean over classes": (MACRO, measured["macro_accuracy"], ".1%"),
    }
    for shot, accuracy in measured.get("shot_accuracy", {}).items():
        name, counts = SHOTS[shot]
        named[name] = (f"the same, averaged over the classes with {counts} {training_rows(table)}", accuracy, ".1%")
    return named


def _texts(values: np.ndarray, digits: str) -> list[str]:
    return ["–" if np.isnan(value) else format(value, digits) for value in values.tolist()]
