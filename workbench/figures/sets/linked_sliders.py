"""Linked sliders: mean size K, threshold λ and promised coverage 1 − α choose the same sets in three ways; τ weighs classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.figures.base import Places
from workbench.figures.film import affordable
from workbench.figures.panel import PanelNumber, PanelSlider
from workbench.sets import LAC, PAS, AverageK, Rule, SetIndex, Threshold
from workbench.sets.conformal import rows_needed
from workbench.sets.prevalence import AdjustedTable, class_weights
from workbench.tables import LogitTable

DIGITS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)
THRESHOLDS = tuple(float(f"{digit}e{decade}") for decade in (-4, -3, -2, -1) for digit in DIGITS)
CONFIDENCES = tuple(round(0.5 + 0.01 * step, 2) for step in range(50))
TAUS = (0.0, 0.25, 0.5, 0.75, 1.0)
RULES: dict[str, type[Rule]] = {"K": AverageK, "threshold": Threshold, "confidence": LAC}  # slider → what it chooses
LABELS = {
    "K": "Average size K",
    "threshold": "Threshold λ",
    "confidence": "Promised coverage 1\N{NO-BREAK SPACE}−\N{NO-BREAK SPACE}α",
    "tau": "From head to tail τ",
}
WRITTEN = {"K": "{:.2f}", "threshold": "{:.3g}", "confidence": "{:.3f}", "tau": "{:g}"}


@dataclass(frozen=True, eq=False)
class LinkedSliders:
    """One position for every value of K, then one for every threshold, then one for every promised coverage.

    With several τ all of them come once for each. A threshold is chosen at τ = 0; at another τ it is that of the nearest K.

    Args:
        values: Slider → its values; without labels there is no coverage to promise.
        along: Slider → what it says at every position. K and coverage are fitted on the validation rows.
        taus: The values of τ.
    """

    values: dict[str, np.ndarray]
    along: dict[str, np.ndarray]
    taus: tuple[float, ...]

    @property
    def block(self) -> int:
        """The number of positions of one τ."""
        return sum(map(len, self.values.values()))

    def first(self, name: str) -> int:
        """The first position of a slider in a block."""
        names = list(self.values)
        return sum(len(self.values[before]) for before in names[: names.index(name)])

    def nearest(self, name: str, value: float, place: int = 0) -> int:
        """The position nearest to this value of a slider; another slider than τ keeps the τ of a place, and τ all others.

        Raises:
            ValueError: There is no such slider.
        """
        block, inner = divmod(place, self.block)
        if name == "tau" and len(self.taus) > 1:
            return int(np.abs(np.array(self.taus) - value).argmin()) * self.block + inner
        if name not in self.values:
            there = [*self.values, *(["tau"] if len(self.taus) > 1 else [])]
            raise ValueError(f"no slider {name!r}; give one of {', '.join(there)}")
        return block * self.block + self.first(name) + int(np.abs(self.values[name] - value).argmin())

    def rule(self, place: int) -> Rule:
        """The rule that the slider which has this position of its own stands for."""
        block, inner = divmod(place, self.block)
        name = next(name for name in reversed(self.values) if self.first(name) <= inner)
        value, tau = float(self.values[name][inner - self.first(name)]), self.taus[block]
        if not tau:
            return RULES[name](**{name: value})
        return PAS(value, tau=tau) if name == "confidence" else AverageK(float(self.along["K"][place]), tau=tau)

    def sliders(self) -> tuple[PanelSlider, ...]:
        """The sliders of a panel."""
        linked = tuple(map(self._slider, self.values))
        if len(self.taus) == 1:
            return linked
        of_tau = np.repeat(np.arange(len(self.taus)), self.block)
        texts = tuple(WRITTEN["tau"].format(self.taus[at]) for at in of_tau)
        return (*linked, PanelSlider(LABELS["tau"], tuple(of_tau.tolist()), texts, stride=self.block))

    def _slider(self, name: str) -> PanelSlider:
        values, at = self.values[name], self.along[name]
        own = self.first(name) + np.arange(len(values))
        nearest = np.abs(values[None, :] - at[:, None]).argmin(axis=1)
        # Also where two of its values give the same sets. At another τ than 0 a threshold says what was asked for as well.
        nearest[own + self.block * np.arange(len(self.taus))[:, None]] = np.arange(len(values))
        texts = tuple(map(WRITTEN[name].format, at.tolist()))
        return PanelSlider(LABELS[name], tuple(nearest.tolist()), texts, tuple(own.tolist()), block=self.block)


def usual_taus(val: LogitTable, test: LogitTable) -> tuple[float, ...]:
    """Some values of τ where the tables know how common classes are and are small enough to be looked at for each."""
    known = val.class_counts is not None and test.class_counts is not None
    return TAUS if known and affordable(val, test, looks=len(TAUS)) else TAUS[:1]


def adjusted(table: LogitTable, tau: float) -> LogitTable:
    """The table with its probabilities divided by the class shares to the power τ."""
    weights = class_weights(table, tau)
    return table if weights is None else AdjustedTable.of(table, weights)


def linked_sliders(val: Sequence[SetIndex], taus: tuple[float, ...] = (0.0,)) -> LinkedSliders:
    """The sliders of sets whose thresholds are fitted on these rows, one index for each τ; they end where K does."""
    flat = val[0]
    promise, lowest = promised(flat.table, 0.0), float(flat.thresholds.min())
    values = {"K": flat.K_values, "threshold": np.array([each for each in THRESHOLDS if each >= lowest])}
    if promise is not None:
        possible = [each for each in CONFIDENCES if rows_needed(each) <= len(promise.calibration.scores)]
        values["confidence"] = np.array([each for each in possible if promise.at(each).threshold >= lowest])
    values = {name: each for name, each in values.items() if len(each)}
    blocks = [_along(index, values, tau, promised(flat.table, tau)) for index, tau in zip(val, taus, strict=True)]
    along = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    return LinkedSliders(values, along, taus)


def promised(val: LogitTable, tau: float) -> Any:
    """LAC, or PAS at τ, fitted on rows; None if they have no labels."""
    return (PAS(tau=tau) if tau else LAC()).fit(val) if val.labelled.any() else None


def _along(val: SetIndex, values: dict[str, np.ndarray], tau: float, promise: Any) -> dict[str, np.ndarray]:
    """What each slider says at every position of one τ."""
    parts, own = {"K": val.thresholds}, dict(values)
    if "threshold" in values:
        parts["threshold"] = own["threshold"] = values["threshold"]
        if tau:
            nearest = [int(np.abs(val.thresholds - each).argmin()) for each in values["threshold"]]
            parts["threshold"] = own["threshold"] = val.thresholds[nearest]
    if "confidence" in values:
        parts["confidence"] = np.array([promise.at(each).threshold for each in values["confidence"].tolist()])
    at = {"threshold": np.concatenate([parts[name] for name in values])}
    at["K"] = np.array([val.mean_size(each) for each in at["threshold"]])
    if promise is not None:
        at["confidence"] = np.array([promise.confidence_at(each) for each in at["threshold"]])
    start = 0
    for name, each in own.items():
        at[name][start : start + len(each)] = each  # as asked for: ties can make sets larger
        if name == "threshold" and tau:
            at["K"][start : start + len(each)] = val.K_values[nearest]
        start += len(each)
    return at


def numbers(compact: Places) -> tuple[PanelNumber, ...]:
    """Numbers about the sets of each position."""
    return (
        PanelNumber("Mean size", tuple(map("{:.2f}".format, compact["mean_size"]))),
        PanelNumber("Correct", tuple(f"{100 * share:.1f} %" for share in compact["accuracy"])),
        PanelNumber("Mean over classes", tuple(f"{100 * share:.1f} %" for share in compact["macro_accuracy"])),
    )
