"""The temperature that makes conformal sets small."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from workbench.calibration.base import FittedScaling, Scaling
from workbench.calibration.temperature import at_temperature
from workbench.row_sampling import evenly_spaced_rows
from workbench.sets.conformal import ConformalRule, confidence_knob
from workbench.sets.marginal import score_knob, scored
from workbench.tables import LogitTable
from workbench.warning_capture import captured_warnings

TEMPERATURES = tuple(2 ** (step / 8) for step in range(-16, 17))  # evenly in log T, and 1 among them
ROWS = 4000  # that are looked at: of more, the mean size is hardly another


@dataclass(frozen=True)
class SmallSetScaling(Scaling):
    r"""Divides all scores by the temperature at which the sets of a conformal rule are smallest.

    $$T = \arg\min_T \frac1n \sum_i |\Gamma_T(x_i)|, \qquad
      \Gamma_T \text{ the sets of the rule on } s / T, \text{ fitted at the same confidence}$$

    Coverage is the same at every temperature, size is not: the T of the likelihood makes probabilities honest, and sets of
    `APS` often larger. T is the best of 33 between 1/4 and 4, by at most 4 000 rows; draws of a randomised rule are left out
    of the choice. Fit it on other rows than the rule afterwards, or the promise is no longer exact.

    Dabah & Tirer 2024; Xi et al. 2024.
    """

    title = "temperature for small sets"
    objective = "mean size"

    confidence: float = confidence_knob("promised probability of the sets that are made small")
    score: str = score_knob("APS")

    def _fit(self, table: LogitTable) -> FittedScaling:
        some = table.rows(evenly_spaced_rows(table.n, ROWS))
        sizes = np.array([self._mean_size(at_temperature(some, T)) for T in TEMPERATURES])
        smallest = np.flatnonzero(sizes == sizes.min())
        unchanged = TEMPERATURES.index(1.0)
        best = smallest[np.abs(smallest - unchanged).argmin()]  # of equally good ones the least change
        before, after = float(sizes[unchanged]), float(sizes[best])
        return FittedScaling(self, np.array(1 / TEMPERATURES[best]), np.array(0.0), before=before, after=after)

    def _mean_size(self, table: LogitTable) -> float:
        rule: ConformalRule = replace(scored(self.score), confidence=self.confidence)
        if hasattr(rule, "randomized"):
            rule = replace(rule, randomized=False)  # type: ignore[call-arg]
        with captured_warnings():  # that of a promise, which is not made here
            return float(rule.fit(table).sets(table).sizes.mean())
