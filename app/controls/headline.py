"""The strip that stays in sight on every view of sets: the linked sliders and the headline numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls.places import Places, Position, compact, places
from session import reading
from session.address import visit
from workbench.counts import FEW, MANY
from workbench.sets import ConformalRule, rule_from_text

TARGET = "classes in a set on average, on the validation rows"
MEAN_SIZE = "classes in a set on average, on the test rows"
PROMISED = "share of rows like the validation rows whose sets will contain the label, as LAC promises it"
REACHED = "coverage reached: share of the test rows whose set contains the label"
MACRO = "the same, averaged over classes"


def strip(view: str, key: str) -> Position:
    """Sliders and headline numbers of a view, always in sight. Returns where a slider was released last."""
    at, (sliders, said) = places(key), at_every_place(key)
    position = moved(key, at, sliders, said, start=at.asked, mount=f"strip of {view} {key}")
    position.keep()
    return position


@st.cache_resource(show_spinner=False, max_entries=8)
def at_every_place(key: str) -> tuple[list[live.Slider], list[live.Number]]:
    """The linked sliders of a run, and what is said at every place of them."""
    return places(key).sliders(), numbers(reading.index(key, "test").table, places(key), compact(key, None))


def moved(
    channel: str,
    at: Places,
    sliders: Sequence[live.Slider],
    said: Sequence[live.Number],
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
    released = live.sliders(channel, sliders, said, held=position.held, place=position.place, key=mount)
    return position if released is None else at.nearest(**released)


def numbers(table: wb.LogitTable, places: Places, compact: dict[str, Any]) -> list[live.Number]:
    """The numbers that are always in sight, at every place."""
    return [
        live.Number(name, about, _texts(values, digits))
        for name, (about, values, digits) in {
            "Target K": (TARGET, places.K, ".2f"),
            "Mean size": (MEAN_SIZE, compact["mean_size"], ".2f"),
            **({"Promised": (PROMISED, places.confidence, ".1%")} if len(places.confidence_values) else {}),
            **_accuracies(table, compact),
        }.items()
    ]


def numbers_of(sets: wb.PredictionSets) -> list[live.Number]:
    """The same numbers of the sets of any rule; a rule that is given no size or no promise has none."""
    rule, table = sets.rule.rule, sets.table
    measured: dict[str, Any] = {}
    if table.labels is not None:
        measured |= {"accuracy": wb.metrics.accuracy(sets), "macro_accuracy": wb.metrics.macro_accuracy(sets)}
        if table.class_counts is not None:
            measured["shot_accuracy"] = wb.metrics.shot_accuracy(sets)
    return [
        live.Number(name, about, _texts(np.atleast_1d(value), digits))
        for name, (about, value, digits) in {
            **({"Target K": (TARGET, rule.K, ".2f")} if "K" in rule.knobs() else {}),
            "Mean size": (MEAN_SIZE, wb.metrics.mean_size(sets), ".2f"),
            **({"Promised": (PROMISED, rule.confidence, ".1%")} if isinstance(rule, ConformalRule) else {}),
            **_accuracies(table, measured),
        }.items()
    ]


def numbers_along(table: wb.LogitTable, rules: Sequence[str], compact: dict[str, Any]) -> list[live.Number]:
    """The same numbers of a rule at every place of a slider."""
    every = [rule_from_text(rule) for rule in rules]
    return [
        live.Number(name, about, _texts(np.asarray(values), digits))
        for name, (about, values, digits) in {
            **({"Target K": (TARGET, [rule.K for rule in every], ".2f")} if "K" in every[0].knobs() else {}),  # type: ignore[attr-defined]
            "Mean size": (MEAN_SIZE, compact["mean_size"], ".2f"),
            **(
                {"Promised": (PROMISED, [rule.confidence for rule in every], ".1%")}  # type: ignore[attr-defined]
                if isinstance(every[0], ConformalRule)
                else {}
            ),
            **_accuracies(table, compact),
        }.items()
    ]


def _accuracies(table: wb.LogitTable, measured: dict[str, Any]) -> dict[str, tuple[str, Any, str]]:
    """Name → words, values and how they are written, of the accuracies of a table."""
    if table.labels is None:
        return {}
    named = {
        "Accuracy": (REACHED, measured["accuracy"], ".1%"),
        "Macro, by class": (MACRO, measured["macro_accuracy"], ".1%"),
    }
    borders = {"few": f"under {FEW}", "medium": f"{FEW} to {MANY}", "many": f"over {MANY}"}
    for shot, accuracy in measured.get("shot_accuracy", {}).items():
        about = f"the same, averaged over the classes with {borders[shot]} training images"
        named[f"{shot.capitalize()}, by class"] = (about, accuracy, ".1%")
    return named


def _texts(values: np.ndarray, digits: str) -> list[str]:
    return ["–" if np.isnan(value) else format(value, digits) for value in values.tolist()]
