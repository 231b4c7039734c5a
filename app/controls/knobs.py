"""A knob drawn as a control: the only file that knows both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from live import Slider
from session.address import bound, one_of, switch
from workbench import display_names
from workbench.knobs import Knob, format_value

Weights = tuple[float, ...]
LINKED = {
    "K": "Average size K",
    "threshold": "Threshold λ",
    "confidence": "Coverage 1 − α",
    "tau": "Head ↔ tail τ",
}  # names of the linked sliders
WEIGHT_STEPS = 21  # places of a slider that shares a weight between two


def widget(name: str, knob: Knob, value: Any, *, key: str, side: str = "", steps: int = 101) -> Any:
    """A knob as a widget of its own kind, bound to the address of the page under `key`. Returns the chosen value.

    `value` is where it stands at first; weights stay as many as it has. `side` says which of two pictures it moves;
    `steps` is how many values a slider has.
    """
    label = f"{display_names.of_knob(name, knob)}{f' ({side})' if side else ''}"
    about = f"{_sentence(knob)}. In code: `{name}`"
    return CONTROLS[knob.kind](name, knob, value, label=label, help=about, key=key, steps=steps)


def _sentence(knob: Knob) -> str:
    """The meaning of a knob, and what it accepts."""
    return f"{knob.meaning[:1].upper()}{knob.meaning[1:]}: {knob.accepts()}"


def _switch(name: str, knob: Knob, value: bool, *, label: str, help: str, key: str, steps: int) -> bool:
    return st.toggle(label, value, help=help, **bound(key, switch))


def _choice(name: str, knob: Knob, value: str, *, label: str, help: str, key: str, steps: int) -> str:
    at = knob.choices.index(value)
    return st.selectbox(label, knob.choices, at, help=help, **bound(key, one_of(knob.choices)))


def options_of(knob: Knob, value: float, *, key: str, steps: int = 101) -> list[float]:
    """The values to choose from, of a knob with a scale."""
    return sorted({*knob.values(steps).tolist(), *_linked(knob, key), value})


def _scale(name: str, knob: Knob, value: float, *, label: str, help: str, key: str, steps: int) -> float:
    options = options_of(knob, value, key=key, steps=steps)
    readable = bound(key, one_of(map(format_value, options)))
    return st.select_slider(label, options, value, format_func=format_value, help=help, **readable)


def _linked(knob: Knob, key: str) -> set[float]:
    """The value between two of a coarse slider that a link asks for; it stays among them as long as the session."""
    in_use: set[Any] = {st.session_state.get(key), *map(_number, st.query_params.get_all(key))}
    kept: set[float] = st.session_state.setdefault(f"{key} linked", set())
    kept |= set(knob.values().tolist()) & in_use
    return kept


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _weights(name: str, knob: Knob, value: Weights, *, label: str, help: str, key: str, steps: int) -> Weights:
    drawn = _two_weights if len(value) == 2 else _many_weights
    return drawn(name, knob, value, label=label, help=help, key=key)


# Kind of a knob → its control.
CONTROLS: dict[str, Callable[..., Any]] = {
    "real": _scale,
    "integer": _scale,
    "choice": _choice,
    "suggestion": _choice,
    "switch": _switch,
    "weights": _weights,
}


def _two_weights(name: str, knob: Knob, value: Weights, *, label: str, help: str, key: str) -> Weights:
    """One slider shares the whole between two."""
    firsts = np.linspace(0, 1, WEIGHT_STEPS).round(2).tolist()
    pairs: dict[float, Weights] = {first: (first, round(1 - first, 2)) for first in firsts} | {value[0]: value}
    readable = one_of(map(written, pairs.values()))
    first = st.select_slider(
        label, sorted(pairs), value[0], format_func=lambda at: written(pairs[at]), help=help, **bound(key, readable)
    )
    return pairs[first]


def _many_weights(name: str, knob: Knob, value: Weights, *, label: str, help: str, key: str) -> Weights:
    """All weights, written one after the other."""

    def read(text: str) -> Weights | None:
        try:
            weights = value if text == written(value) else knob.checked(name, text.split(","))
        except ValueError:
            return None
        return weights if len(weights) == len(value) else None

    readable = bound(key, lambda values: len(values) == 1 and read(values[0]) is not None)
    text = st.text_input(label, written(value), help=help, **readable)
    if (weights := read(text)) is None:
        raise ValueError(
            f"{name} = {text} is not allowed; give {len(value)} {knob.accepts()}, such as {written(value)}"
        )
    return weights


def written(weights: Weights) -> str:
    """Weights as a person writes them, all digits included: `0.5, 0, 0.5`."""
    return ", ".join(
        format_value(weight) if float(format_value(weight)) == weight else repr(weight) for weight in weights
    )


def slider(
    name: str,
    knob: Knob,
    values: np.ndarray,
    *,
    first_place: int,
    at_places: np.ndarray,
    digits: str,
    block: int,
    note: str = "",
) -> Slider:
    """A linked slider for a knob.

    `values` can be chosen and own the places from `first_place` on, of every `block` of places; `at_places` is the value of the
    knob at every place of the page, written with the format `digits`. `note` says why the slider ends where it ends.
    """
    own = np.arange(len(values))
    nearest = np.abs(at_places[:, None] - values[None, :]).argmin(axis=1)
    for start in range(first_place, len(at_places), block):
        nearest[start + own] = own
    return Slider(
        name=name,
        label=LINKED[name],
        help=_sentence(knob) + (f"; here it ends at {values[-1]:g}: {note}" if note else ""),
        values=values.tolist(),
        places=(first_place + own).tolist(),
        nearest=nearest.tolist(),
        texts=[format(value, digits) for value in at_places.tolist()],
    )
