"""A knob drawn as a control: the only file that knows both."""

from __future__ import annotations

from typing import Any

import numpy as np
import streamlit as st

from live import Slider
from workbench.knobs import Knob, shown

WEIGHT_STEPS = 21  # places of a slider that shares a weight between two


def widget(name: str, knob: Knob, value: Any, *, key: str, side: str = "", steps: int = 101) -> Any:
    """A knob as a widget of its own kind, bound to the address of the page under `key`. Returns the chosen value.

    `value` is where it stands at first. Weights are shared between two ranks by one slider. `side` says which of two
    pictures it moves; `steps` is how many values a slider has.
    """
    symbol = knob.symbol or name.replace("_", " ")
    label = f"{symbol}{f' ({side})' if side else ''}: {knob.meaning}"
    bound: dict[str, Any] = {"key": key, "bind": "query-params", "help": f"{name}: {knob.accepts()}"}
    if knob.kind == "switch":
        return st.toggle(label, value, **bound)
    if knob.kind == "choice":
        return st.selectbox(label, knob.choices, knob.choices.index(value), **bound)
    if knob.kind == "weights":
        first = st.select_slider(
            label, np.linspace(0, 1, WEIGHT_STEPS).round(2).tolist(), value[0], format_func=_two_weights, **bound
        )
        return (1.0,) if first == 1 else (first, round(1 - first, 2))
    options = sorted({*knob.values(steps).tolist(), value})
    return st.select_slider(label, options, value, format_func=shown, **bound)


def _two_weights(first: float) -> str:
    return f"{first:g}, {1 - first:g}"


def slider(
    name: str, knob: Knob, values: np.ndarray, *, first_row: int, at_rows: np.ndarray, digits: str, note: str = ""
) -> Slider:
    """A linked slider for a knob.

    `values` can be chosen and own the rows from `first_row` on; `at_rows` is the value of the knob at every row of the
    page, written with the format `digits`. `note` says why the slider ends where it ends.
    """
    own = np.arange(len(values))
    nearest = np.abs(at_rows[:, None] - values[None, :]).argmin(axis=1)
    nearest[first_row + own] = own
    return Slider(
        name=name,
        label=f"{knob.symbol}, {knob.meaning}",
        help=f"{name}: {knob.accepts()}" + (f"; here it ends at {values[-1]:g}: {note}" if note else ""),
        values=values.tolist(),
        rows=(first_row + own).tolist(),
        places=nearest.tolist(),
        texts=[format(value, digits) for value in at_rows.tolist()],
    )
