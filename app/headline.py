"""The strip that stays in sight on every view of sets: the linked sliders and the headline numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

import live
import reading
import workbench as wb
from places import Places, compact, places
from workbench.counts import FEW, MANY


def strip(view: str, key: str) -> int:
    """Sliders and headline numbers of a view, always in sight. Returns the row where a slider was released last."""
    at = places(key)
    # What the element is given stays the same as long as it is mounted: it knows best where its sliders are.
    mount = f"strip of {view} {key}"
    if mount not in st.session_state:
        st.session_state[f"{mount} start"] = at.asked()
    row = st.session_state[f"{mount} start"]
    said = numbers(reading.index(key, "test").table, at, compact(key, None))
    released = live.sliders(key, at.sliders(), said, held=at.at(row)[0], row=row, key=mount)
    if released is not None:
        row = at.row(released["name"], released["value"])
    held, value = st.session_state["place"] = at.at(row)
    other = "threshold" if held == "K" else "K"
    if other in st.query_params:
        del st.query_params[other]
    st.query_params[held] = f"{value:g}"
    return row


def numbers(table: wb.LogitTable, places: Places, compact: dict[str, Any]) -> list[live.Number]:
    """The numbers that are always in sight, at every place."""
    numbers = [
        live.Number("Target K", "classes in a set on average, on the validation rows", _texts(places.K, ".2f")),
        live.Number("Mean size", "classes in a set on average, on the test rows", _texts(compact["mean_size"], ".2f")),
    ]
    if table.labels is not None:
        share, macro = "share of the test rows whose set contains the label", "the same, averaged over classes"
        numbers.append(live.Number("Accuracy", share, _texts(compact["accuracy"], ".1%")))
        numbers.append(live.Number("Macro", macro, _texts(compact["macro_accuracy"], ".1%")))
    borders = {"few": f"under {FEW}", "medium": f"{FEW} to {MANY}", "many": f"over {MANY}"}
    for shot, accuracy in compact.get("shot_accuracy", {}).items():
        about = f"the same, averaged over the classes with {borders[shot]} training images"
        numbers.append(live.Number(shot.capitalize(), about, _texts(accuracy, ".1%")))
    return numbers


def _texts(values: np.ndarray, digits: str) -> list[str]:
    return ["–" if np.isnan(value) else format(value, digits) for value in values.tolist()]
