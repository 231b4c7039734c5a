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

    `value` is where it stands at first; weights stay as many as it has. `side` says which of two pictures it moves;
    `steps` is how many values a slider has.
    """
    symbol = knob.symbol or name.replace("_", " ")
    label = f"{symbol}{f' ({side})' if side else ''}: {knob.meaning}"
    bound: dict[str, Any] = {"key": key, "bind": "query-params", "help": f"{name}: {knob.accepts()}"}
    if knob.kind == "switch":
        return st.toggle(label, value, **bound)
    if knob.kind == "choice":
        return st.selectbox(label, knob.choices, knob.choices.index(value), **bound)
    if knob.kind == "weights":
        return _two_weights(label, value, bound) if len(value) == 2 else _weights(name, knob, label, value, bound)
    options = sorted({*knob.values(steps).tolist(), value})
    return st.select_slider(label, options, value, format_func=shown, **bound)


def _two_weights(label: str, value: tuple[float, ...], bound: dict[str, Any]) -> tuple[float, ...]:
    """One slider shares the whole between two."""
    pairs = {first: (first, round(1 - first, 2)) for first in np.linspace(0, 1, WEIGHT_STEPS).round(2).tolist()}
    pairs[value[0]] = value  # type: ignore[assignment]
    return pairs[st.select_slider(label, sorted(pairs), value[0], format_func=lambda at: written(pairs[at]), **bound)]


def _weights(name: str, knob: Knob, label: str, value: tuple[float, ...], bound: dict[str, Any]) -> tuple[float, ...]:
    """All weights, written one after the other."""
    text = st.text_input(label, written(value), **bound)
    if text == written(value):
        return value
    try:
        weights = knob.checked(name, text.split(","))
    except ValueError:
        weights = ()
    if len(weights) != len(value):
        raise ValueError(f"{name} = {text} is not allowed; give {len(value)} {knob.accepts()}, such as {written(value)}")
    return weights


def written(weights: tuple[float, ...]) -> str:
    """Weights as a person writes them, all digits included: `0.5, 0, 0.5`."""
    return ", ".join(shown(weight) if float(shown(weight)) == weight else repr(weight) for weight in weights)


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
