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
from workbench.knobs import three_digits

THRESHOLDS = 121  # values of the threshold slider, evenly spaced in their logarithm …
LOWEST = 1e-4  # … from here, or from the threshold of the largest K, up to 1


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
        """The row the address of the page asks for; what cannot be read there counts for nothing."""
        for name in ("threshold", "K"):
            try:
                value = float(st.query_params[name])
            except (KeyError, ValueError):
                continue
            if np.isfinite(value):
                return self.row(name, value)
        return self.row("K", wb.AverageK().K)

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
    """The places of a run."""
    val = reading.index(key, "val")
    lowest = max(val.thresholds.min(), LOWEST)
    threshold_values = np.unique([three_digits(value) for value in np.geomspace(lowest, 1, THRESHOLDS)])
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
