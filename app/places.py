"""The places of the linked sliders: every K and every threshold that can be chosen, and all numbers there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import streamlit as st

import controls
import reading
import workbench as wb
from live import Slider
from workbench.groups import means, rows_by

# Thresholds a person would choose: 0.01, 0.011, … 0.03, 0.032, … 0.05, 0.055, … and the same in every other decade.
DIGITS = np.concatenate([np.arange(10, 30), np.arange(30, 50, 2), np.arange(50, 100, 5)])
DECADES = (-4, -3, -2, -1)


@dataclass(frozen=True)
class Places:
    """One row for every value of K, then one for every value of the threshold. K is fitted on the validation rows.

    `K` (rows,) is the value asked for or, where a threshold is asked for, the mean size it gives on the validation rows.
    """

    K_values: np.ndarray
    threshold_values: np.ndarray
    K: np.ndarray
    thresholds: np.ndarray

    def row(self, name: str, value: float) -> int:
        """The row of a slider's nearest value."""
        values, first = (self.K_values, 0) if name == "K" else (self.threshold_values, len(self.K_values))
        return first + int(np.abs(values - value).argmin())

    def at(self, row: int) -> tuple[str, float]:
        """The slider a row belongs to, and its value there."""
        if row < len(self.K_values):
            return "K", float(self.K_values[row])
        return "threshold", float(self.threshold_values[row - len(self.K_values)])

    def asked(self) -> int:
        """The row the address of the page asks for, or else where the sliders of another view were left.

        What cannot be read in the address counts for nothing.
        """
        for name in ("threshold", "K"):
            try:
                value = float(st.query_params[name])
            except (KeyError, ValueError):
                continue
            if np.isfinite(value):
                return self.row(name, value)
        return self.row(*st.session_state.get("place", ("K", wb.AverageK().K)))

    def sliders(self) -> list[Slider]:
        """The two sliders, linked."""
        K, threshold = wb.AverageK.knobs()["K"], wb.Threshold.knobs()["threshold"]
        first = len(self.K_values)
        return [
            controls.slider("K", K, self.K_values, first_row=0, at_rows=self.K, digits=".2f"),
            controls.slider(
                "threshold", threshold, self.threshold_values, first_row=first, at_rows=self.thresholds, digits=".3g"
            ),
        ]


@st.cache_resource(show_spinner=False, max_entries=8)
def places(key: str) -> Places:
    """The places of a run; thresholds reach down to that of the largest K."""
    val = reading.index(key, "val")
    round_values = [*(float(f"{digits}e{decade - 1}") for decade in DECADES for digits in DIGITS), 1.0]
    threshold_values = np.array([value for value in round_values if value >= val.thresholds.min()])
    mean_sizes = [val.mean_size(threshold) for threshold in threshold_values]
    return Places(
        K_values=val.K_values,
        threshold_values=threshold_values,
        K=np.concatenate([val.K_values, mean_sizes]),
        thresholds=np.concatenate([val.thresholds, threshold_values]),
    )


@st.cache_resource(show_spinner="Counting sizes and hits at every threshold…", max_entries=16)
def compact(key: str, by: str | None) -> dict[str, Any]:
    """`SetIndex.compact` of the test rows at every place; besides, `mean_size_by` (rows, groups)."""
    test, thresholds = reading.index(key, "test"), places(key).thresholds
    found = test.compact(thresholds, by=by)
    if by is None:
        return {**found, "mean_size_by": found["mean_size"][:, None]}
    codes, names = rows_by(test.table, by)
    by_group = [means(test.sizes(threshold=threshold), codes, len(names)) for threshold in thresholds]
    return {**found, "mean_size_by": np.array(by_group)}
