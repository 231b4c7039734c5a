"""The places of the linked sliders: every K, threshold, confidence and τ that can be chosen, and all numbers there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import streamlit as st

import workbench as wb
from controls import knobs
from live import Slider
from session import cached_data
from session.address import POSITION, number_in_address
from session.cached_data import SLIDERS
from workbench.figures.base import counted
from workbench.figures.film import affordable
from workbench.metrics.along_slider import at_places, joined
from workbench.sets import PAS, Rule
from workbench.sets.conformal import FittedConformalRule, rows_needed
from workbench.tables.groups import rows_by

# Thresholds a person would choose: 0.01, 0.011, … 0.03, 0.032, … 0.05, 0.055, … and the same in every other decade.
DIGITS = np.concatenate([np.arange(10, 30), np.arange(30, 50, 2), np.arange(50, 100, 5)])
DECADES = (-4, -3, -2, -1)
CONFIDENCES = 50  # steps of 0.01
WRITTEN = {"K": ".2f", "threshold": ".3g", "confidence": ".3f", "tau": ".2f"}
# From head (every row counts alike) to tail (every class counts alike); fewer where a table is large.
FINE_TAUS, COARSE_TAUS = (tuple(np.linspace(0, 1, steps).round(2).tolist()) for steps in (11, 5))
ALONG = ("K", "mean_size", "thresholds", "confidence")  # what `Places` has of every place
ADJUSTED: dict[str, type[Rule]] = {"K": wb.AverageK, "confidence": PAS}  # slider → rule, where there is a slider τ


@dataclass(frozen=True)
class Position:
    """Position of the linked sliders: which of them is held, its value, and its index in `Places`.

    The address of the page, the session and the element in the browser know the slider and its value, as `K=3`: the place
    depends on the run. `Places` makes a position of what they say. `tau` is None where there is no slider τ.
    """

    held: str
    value: float
    place: int
    tau: float | None = None

    @property
    def rule(self) -> Rule:
        """The rule that the held slider stands for."""
        if self.tau is None:
            return SLIDERS[self.held](**{self.held: self.value})
        return ADJUSTED[self.held](**{self.held: self.value}, tau=self.tau)

    def keep(self) -> None:
        """Write it into the session, for the next view, and into the address: the held slider, and τ where there is one."""
        written = {self.held: self.value} | ({} if self.tau is None else {"tau": self.tau})
        before = st.session_state.get(POSITION, {})
        st.session_state[POSITION] = {**before, "held": self.held, "value": self.value, **_known(tau=self.tau)}
        for name in {*SLIDERS, "tau"} & set(st.query_params) - set(written):
            del st.query_params[name]
        st.query_params.update({name: f"{value:g}" for name, value in written.items()})


def _known(**values: float | None) -> dict[str, float]:
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True)
class Places:
    """One place for every value of K, then one for every threshold, then one for every confidence.

    K and confidence are fitted on the validation rows. `thresholds` (places,) is the threshold of every place, `mean_size`
    what it gives on the validation rows, `K` the same and `confidence` the coverage it promises (the values asked for,
    where one is asked for: ties can make sets larger). Without labels there is no confidence, and with few validation
    rows no high one; `why_confidence_ends` says in words what stops it. Where there are several `taus`, all this comes once
    for each of them, one block of places after the other; thresholds are then of p/(L·π)^τ, and cannot be chosen.
    """

    K_values: np.ndarray
    threshold_values: np.ndarray
    confidence_values: np.ndarray
    K: np.ndarray
    mean_size: np.ndarray
    thresholds: np.ndarray
    confidence: np.ndarray
    why_confidence_ends: str
    taus: tuple[float, ...] = (0.0,)

    @property
    def adjusted(self) -> bool:
        """Whether there is a slider τ."""
        return len(self.taus) > 1

    @property
    def block(self) -> int:
        """Places of one τ."""
        return len(self.thresholds) // len(self.taus)

    @property
    def values(self) -> dict[str, np.ndarray]:
        """Slider → what can be chosen, in their order."""
        every = {"K": self.K_values, "threshold": self.threshold_values, "confidence": self.confidence_values}
        return {name: values for name, values in every.items() if len(values)}

    def first(self, name: str) -> int:
        """The first place of a slider."""
        names = list(self.values)
        return sum(len(self.values[before]) for before in names[: names.index(name)])

    def nearest(self, held: str, value: float, tau: float | None = None) -> Position:
        """The position of a slider's nearest value; of K where there is no such slider."""
        held = held if held in self.values else "K"
        at = int(np.abs(self.values[held] - value).argmin())
        block = int(np.abs(np.array(self.taus) - (PAS().tau if tau is None else tau)).argmin())
        place = block * self.block + self.first(held) + at
        return Position(held, float(self.values[held][at]), place, self.taus[block] if self.adjusted else None)

    def positions(self) -> list[Position]:
        """The position of every place, where there is no slider τ."""
        of_sliders = [(held, value) for held, values in self.values.items() for value in values.tolist()]
        return [Position(held, value, place) for place, (held, value) in enumerate(of_sliders)]

    def current(self) -> Position:
        """The positions in the address of the page, or else those that another view left.

        Values that cannot be read are ignored with a message.
        """
        tau = number_in_address("tau") if self.adjusted else None
        for name in reversed(self.values):
            value = number_in_address(name)
            if value is not None:
                return self.nearest(name, value, tau)
        kept = st.session_state.get(POSITION, {})
        if kept.get("held") not in self.values:
            kept = {**kept, "held": "K", "value": wb.AverageK().K}
        return self.nearest(**{**kept, **_known(tau=tau)})

    def sliders(self) -> list[Slider]:
        """The sliders, linked."""
        at_places = {"K": self.K, "threshold": self.thresholds, "confidence": self.confidence}
        linked = [
            knobs.slider(
                name,
                SLIDERS[name].knobs()[name],
                values,
                first_place=self.first(name),
                at_places=at_places[name],
                digits=WRITTEN[name],
                note=self.why_confidence_ends if name == "confidence" else "",
                block=self.block,
            )
            for name, values in self.values.items()
        ]
        return [*linked, self._of_tau()] if self.adjusted else linked

    def _of_tau(self) -> Slider:
        """The slider from head to tail, which moves from block to block."""
        taus = np.array(self.taus)
        starts = np.arange(len(taus)) * self.block
        slider = knobs.slider(
            "tau", PAS.knobs()["tau"], taus, first_place=0, at_places=np.repeat(taus, self.block),
            digits=WRITTEN["tau"], block=self.block,
        )  # fmt: skip
        of_blocks = np.repeat(np.arange(len(taus)), self.block).tolist()
        return replace(slider, places=starts.tolist(), nearest=of_blocks, outer=True)


@st.cache_resource(show_spinner=False, max_entries=8)
def places(key: str, adjusted: bool = False) -> Places:
    """The places of a run; thresholds reach down to that of the largest K, and confidences up to it."""
    if adjusted:
        return _adjusted_places(key)
    val, promises = cached_data.index(key, "val"), promised(key)
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
    return _fitted(key, val.K_values, threshold_values, confidence_values, why_confidence_ends)


def _fitted(
    key: str,
    K_values: np.ndarray,
    threshold_values: np.ndarray,
    confidence_values: np.ndarray,
    why: str,
    tau: float = 0,
) -> Places:
    """The places of these values at one τ, fitted on the validation rows of a run."""
    val, promises = cached_data.index(key, "val", tau), promised(key, tau)
    thresholds = np.array(thresholds_of(key, K_values, threshold_values, confidence_values, tau))
    confidence = np.full(len(thresholds), np.nan)
    if promises is not None:
        confidence = np.array([promises.confidence_at(threshold) for threshold in thresholds])
        confidence[len(thresholds) - len(confidence_values) :] = confidence_values
    mean_size = np.array([val.mean_size(threshold) for threshold in thresholds])
    return Places(
        K_values=K_values,
        threshold_values=threshold_values,
        confidence_values=confidence_values,
        K=np.concatenate([K_values, mean_size[len(K_values) :]]),
        mean_size=mean_size,
        thresholds=thresholds,
        confidence=confidence,
        why_confidence_ends=why,
    )


def _adjusted_places(key: str) -> Places:
    """The places of K and confidence at every τ."""
    flat, taus = places(key), taus_of(key)
    values = flat.K_values, np.array([]), flat.confidence_values, flat.why_confidence_ends
    blocks = [_fitted(key, *values, tau=tau) for tau in taus]
    joined: dict[str, Any] = {name: np.concatenate([getattr(block, name) for block in blocks]) for name in ALONG}
    return replace(blocks[0], **joined, taus=taus)


def taus_of(key: str) -> tuple[float, ...]:
    """The values of the slider τ of a run."""
    test = cached_data.run(key).tables["test"]
    return FINE_TAUS if affordable(test) else COARSE_TAUS


@st.cache_resource(show_spinner=False, max_entries=64)
def promised(key: str, tau: float = 0) -> FittedConformalRule | None:
    """LAC, or PAS at τ, fitted on the validation rows of a run; None if they have no labels."""
    val = cached_data.run(key).tables["val"]
    return None if not val.labelled.any() else (PAS(tau=tau) if tau else wb.LAC()).fit(val)


def thresholds_of(
    key: str, K_values: np.ndarray, threshold_values: np.ndarray, confidence_values: np.ndarray, tau: float = 0
) -> list[float]:
    """The thresholds of some places: K and confidence are fitted on the validation rows of a run."""
    val, promises = cached_data.index(key, "val", tau), promised(key, tau)
    of_confidence = [] if promises is None else [promises.at(value).threshold for value in confidence_values.tolist()]
    return [*(val.threshold(K) for K in K_values), *threshold_values, *of_confidence]


@st.cache_resource(show_spinner="Counting sizes and hits at every threshold…", max_entries=16)
def compact(key: str, by: str | None, other: str | None = None, adjusted: bool = False) -> dict[str, Any]:
    """`SetIndex.compact` of the test rows at every place; of the `other` run, if one is given, fitted on its own rows."""
    at, of_rows, shown = places(key, adjusted), by, other or key
    if other is not None and by is not None:  # the same rows, so the same groups, also where it does not know them
        codes, names = rows_by(cached_data.index(key, "test").table, by)
        of_rows = np.array(names)[codes]
    values = at.K_values, at.threshold_values, at.confidence_values
    return joined(
        [
            cached_data.index(shown, "test", tau).compact(thresholds_of(shown, *values, tau), by=of_rows)
            for tau in at.taus
        ]
    )


@st.cache_resource(show_spinner="Counting sizes and hits at every place of the slider…", max_entries=16)
def along(key: str, rules: tuple[str, ...], by: str | None, other: str | None = None) -> dict[str, Any]:
    """The same of the sets of another rule at every place of its slider; of the `other` run, if one is given."""
    if other is None:
        return at_places(cached_data.sets_along(key, rules), by)
    of_rows = None
    if by is not None:
        codes, names = rows_by(cached_data.index(key, "test").table, by)
        of_rows = np.array(names)[codes]
    return at_places(cached_data.sets_along(other, rules), of_rows)
