"""One temperature that divides all scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.calibration.base import FittedScaling, Recalibrator, mean_loss, scaled_blocks, shares
from workbench.tables import LogitTable
from workbench.tables.links import LINKS


@dataclass(frozen=True)
class TemperatureScaling(Recalibrator):
    r"""Divides all scores by one temperature, the one that makes the labels most likely.

    $$p = \mathrm{softmax}(s / T), \qquad T = \arg\min_T -\sum_i \log p_{y_i}(x_i)$$

    No ranking inside a row changes, so top-K sets stay; confidences, and with them average-K and conformal sets, do.
    Needs labels and a softmax link, or a sigmoid link with (n, L) labels; rows without a label are left out. Softmax with
    (n, L) labels has no likelihood: there T makes cross-entropy least, of which the labels of a row share the weight equally.

    >>> scores = np.random.default_rng(0).normal(size=(4000, 5))
    >>> p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    >>> labels = (p.cumsum(1) < np.random.default_rng(1).random((4000, 1))).sum(1)
    >>> overconfident = LogitTable(scores * 3, labels)
    >>> round(TemperatureScaling().fit(overconfident).temperature, 1)
    3.0

    Guo et al. 2017.
    """

    title = "temperature"

    def fitted(self, table: LogitTable) -> FittedScaling:
        """The best temperature for the labels of a table: a convex problem in 1/T, solved by bracketed Newton steps."""
        low, high, inverse = 0.0, np.inf, 1.0
        for _ in range(100):
            slope, curvature = _derivatives(table, inverse)
            if slope == 0:  # also where every temperature is as good, as with equal scores
                break
            low, high = (inverse, high) if slope < 0 else (low, inverse)
            step = inverse - slope / curvature if curvature > 0 else np.nan
            if not low < step < high:  # outside the bracket: halve it, or double while it is open
                step = (low + high) / 2 if np.isfinite(high) else 2 * inverse
            if abs(step - inverse) <= 1e-10 * inverse or not 1e-6 < step < 1e6:
                break
            inverse = step
        inverse = float(np.clip(inverse, 1e-6, 1e6))  # labels that are always right, or always wrong, have no optimum
        return FittedScaling(self, np.array(inverse), np.array(0.0), mean_loss(table), mean_loss(table, inverse))


def at_temperature(table: LogitTable, temperature: float) -> LogitTable:
    """The table with all scores divided by a temperature: above 1 less sure of itself, below 1 surer.

    >>> at_temperature(LogitTable(np.array([[2.0, 0.0]])), 4.0).scores.tolist()
    [[0.5, 0.0]]
    """
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature = {temperature}; give a positive number")
    return FittedScaling(TemperatureScaling(), np.array(1 / temperature), np.array(0.0), np.nan, np.nan)(table)


def _derivatives(table: LogitTable, inverse: float) -> tuple[float, float]:
    """First and second derivative of the mean loss with respect to 1/T."""
    slope = curvature = 0.0
    for scores, scaled, labels in scaled_blocks(table, inverse):
        p = LINKS[table.link](scaled, None)
        first = np.einsum("ij,ij->i", p, scores)  # the mean of the scores under p
        own = (
            (shares(labels, table.link) * scores).sum()
            if table.many_labels
            else scores[np.arange(len(labels)), labels].sum()
        )
        slope += float(first.sum() - own)
        if table.link == "softmax":
            curvature += float(np.einsum("ij,ij,ij->", p, scores, scores) - (first**2).sum())
        else:
            curvature += float(np.einsum("ij,ij,ij->", p * (1 - p), scores, scores))
    return slope / table.n, curvature / table.n
