"""The places of the linked sliders: every K, threshold and confidence that can be chosen, and all numbers there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

import workbench as wb
from controls import knobs
from live import Slider
from session import reading
from session.address import POSITION, number_asked
from session.reading import SLIDERS
from workbench.figures.base import counted
from workbench.metrics.places import at_places
from workbench.sets import Rule
from workbench.sets.conformal import FittedConformalRule, rows_needed
from workbench.tables.groups import rows_by

# Thresholds a person would choose: 0.01, 0.011, … 0.03, 0.032, … 0.05, 0.055, … and the same in every other decade.
DIGITS = np.concatenate([np.arange(10, 30), np.arange(30, 50, 2), np.arange(50, 100, 5)])
DECADES = (-4, -3, -2, -1)
CONFIDENCES = 50  # steps of 0.01
WRITTEN = {"K": ".2f", "threshold": ".3g", "confidence": ".3f"}


@dataclass(frozen=True)
class Position:
    """Where the linked sliders stand: which of them is held, its value, and which of the `Places` that is.

    The address of the page, the session and the element in the browser know the slider and its value, as `K=3`: the place
    depends on the run. `Places` makes a position of what they say.
    """

    held: str
    value: float
    place: int

    @property
    def rule(self) -> Rule:
        """The rule that the held slider stands for."""
        return SLIDERS[self.held](**{self.held: self.value})

    def keep(self) -> None:
        """Write it into the session, for the next view, and into the address, where only the held slider stands."""
        st.session_state[POSITION] = {"held": self.held, "value": self.value}
        for name in set(SLIDERS) & set(st.query_params) - {self.held}:
            del st.query_params[name]
        st.query_params[self.held] = f"{self.value:g}"


@dataclass(frozen=True)
class Places:
    """One place for every value of K, then one for every threshold, then one for every confidence.

    K and confidence are fitted on the validation rows. `thresholds` (places,) is the threshold of every place, `mean_size`
    what it gives on the validation rows, `K` the same and `confidence` the coverage it promises (the values asked for,
    where one is asked for: ties can make sets larger). Without labels there is no confidence, and with few validation
    rows no high one; `why_confidence_ends` says in words what stops it.
    """

    K_values: np.ndarray
    threshold_values: np.ndarray
    confidence_values: np.ndarray
    K: np.ndarray
    mean_size: np.ndarray
    thresholds: np.ndarray
    confidence: np.ndarray
    why_confidence_ends: str

    @property
    def values(self) -> dict[str, np.ndarray]:
        """Slider → what can be chosen, in their order."""
        every = {"K": self.K_values, "threshold": self.threshold_values, "confidence": self.confidence_values}
        return {name: values for name, values in every.items() if len(values)}

    def first(self, name: str) -> int:
        """The first place of a slider."""
        names = list(self.values)
        return sum(len(self.values[before]) for before in names[: names.index(name)])

    def nearest(self, held: str, value: float) -> Position:
        """The position of a slider's nearest value; of K where there is no such slider."""
        held = held if held in self.values else "K"
        at = int(np.abs(self.values[held] - value).argmin())
        return Position(held, float(self.values[held][at]), self.first(held) + at)

    def positions(self) -> list[Position]:
        """The position of every place."""
        of_sliders = [(held, value) for held, values in self.values.items() for value in values.tolist()]
        return [Position(held, value, place) for place, (held, value) in enumerate(of_sliders)]

    def asked(self) -> Position:
        """What the address of the page asks for, or else where the sliders of another view were left.

        What cannot be read in the address counts for nothing, and is said.
        """
        for name in reversed(self.values):
            value = number_asked(name)
            if value is not None:
                return self.nearest(name, value)
        return self.nearest(**st.session_state.get(POSITION, {"held": "K", "value": wb.AverageK().K}))

    def sliders(self) -> list[Slider]:
        """The sliders, linked."""
        at_places = {"K": self.K, "threshold": self.thresholds, "confidence": self.confidence}
        return [
            knobs.slider(
                name,
                SLIDERS[name].knobs()[name],
                values,
                first_place=self.first(name),
                at_places=at_places[name],
                digits=WRITTEN[name],
                note=self.why_confidence_ends if name == "confidence" else "",
            )
            for name, values in self.values.items()
        ]


@st.cache_resource(show_spinner=False, max_entries=8)
def places(key: str) -> Places:
    """The places of a run; thresholds reach down to that of the largest K, and confidences up to it."""
    val, promises = reading.index(key, "val"), promised(key)
    lowest = val.thresholds.min()
    round_values = [*(float(f"{digits}e{decade - 1}") for decade in DECADES for digits in DIGITS), 1.0]
    threshold_values = np.array([value for value in round_values if value >= lowest])
    confidence_values, why_confidence_ends = np.array([]), ""
    if promises is not None:
        every = wb.LAC.knobs()["confidence"].values(CONFIDENCES)
        kept = [value for value in every.tolist() if rows_needed(value) <= val.table.n]
        confidence_values = np.array([value for value in kept if promises.at(value).threshold >= lowest])
        if len(confidence_values) < len(kept):
            why_confidence_ends = f"more would take sets of over {val.K_values[-1]:g} classes on average, where K ends"
        elif len(kept) < len(every):
            why_confidence_ends = f"more cannot be promised by {counted(val.table.n, 'validation row')}"
        else:
            why_confidence_ends = "more can be asked of the library"
    asked = [*threshold_values, *thresholds_of_confidences(key, confidence_values)]
    thresholds = np.concatenate([val.thresholds, asked])
    confidence = np.full(len(thresholds), np.nan)
    if promises is not None:
        confidence = np.array([promises.confidence_at(threshold) for threshold in thresholds])
        confidence[len(thresholds) - len(confidence_values) :] = confidence_values
    mean_size = np.array([val.mean_size(threshold) for threshold in thresholds])
    return Places(
        K_values=val.K_values,
        threshold_values=threshold_values,
        confidence_values=confidence_values,
        K=np.concatenate([val.K_values, mean_size[len(val.K_values) :]]),
        mean_size=mean_size,
        thresholds=thresholds,
        confidence=confidence,
        why_confidence_ends=why_confidence_ends,
    )


@st.cache_resource(show_spinner=False, max_entries=16)
def promised(key: str) -> FittedConformalRule | None:
    """LAC, fitted on the validation rows of a run; None if they have no labels."""
    val = reading.run(key).tables["val"]
    return None if val.labels is None else wb.LAC().fit(val)


def thresholds_of_confidences(key: str, confidences: np.ndarray) -> list[float]:
    """The thresholds at which LAC, fitted on the validation rows of a run, keeps these promises."""
    promises = promised(key)
    return [] if promises is None else [promises.at(confidence).threshold for confidence in confidences.tolist()]


@st.cache_resource(show_spinner="Counting sizes and hits at every threshold…", max_entries=16)
def compact(key: str, by: str | None, other: str | None = None) -> dict[str, Any]:
    """`SetIndex.compact` of the test rows at every place; of the `other` run, if one is given, fitted on its own rows."""
    at = places(key)
    if other is None:
        return reading.index(key, "test").compact(at.thresholds, by=by)
    val, of_rows = reading.index(other, "val"), None
    if by is not None:  # the same rows, so the same groups, also where the other run does not know them
        codes, names = rows_by(reading.index(key, "test").table, by)
        of_rows = np.array(names)[codes]
    of_K = [val.threshold(K) for K in at.K_values]
    of_confidence = thresholds_of_confidences(other, at.confidence_values)
    return reading.index(other, "test").compact([*of_K, *at.threshold_values, *of_confidence], by=of_rows)


@st.cache_resource(show_spinner="Counting sizes and hits at every place of the slider…", max_entries=16)
def along(key: str, rules: tuple[str, ...], by: str | None, other: str | None = None) -> dict[str, Any]:
    """The same of the sets of another rule at every place of its slider; of the `other` run, if one is given."""
    if other is None:
        return at_places(reading.sets_along(key, rules), by)
    of_rows = None
    if by is not None:
        codes, names = rows_by(reading.index(key, "test").table, by)
        of_rows = np.array(names)[codes]
    return at_places(reading.sets_along(other, rules), of_rows)
