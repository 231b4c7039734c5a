"""Head or tail: probabilities divided by how common their class is.

Thresholds of $p_y / \\pi_y^\tau$ lead from rows (τ = 0, which favours common classes) to classes (τ = 1, which favours none).
Ding, Fermanian & Salmon 2025 (arXiv 2507.06867).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import min_size_knob
from workbench.sets.conformal import ConformalRule
from workbench.sets.scores import IMPROBABILITY, Improbability, Score
from workbench.tables import LogitTable
from workbench.tables.groups import known_class_counts


def tau_knob(default: float) -> float:
    """The knob from head to tail."""
    return knob(
        default,
        low=0,
        high=1,
        symbol="τ",
        meaning="power of the class share: 0 counts rows alike, 1 counts classes alike",
    )


def class_weights(table: LogitTable, tau: float, importance: Sequence[float] | None = None) -> np.ndarray | None:
    r"""(L,) $\omega_y / (L \pi_y)^\tau$ from the training images of a table; None where all are 1.

    A class without training images counts as one image.

    >>> table = LogitTable(np.zeros((1, 2)), class_counts=[30, 10])
    >>> class_weights(table, tau=1.0).round(3).tolist()
    [0.667, 2.0]
    """
    if tau == 0 and importance is None:
        return None
    weights = np.ones(table.n_classes)
    if tau:
        counts = np.maximum(known_class_counts(table), 1)
        weights = (counts.sum() / (table.n_classes * counts)) ** tau
    return weights if importance is None else weights * checked_importance(importance, table.n_classes)


def checked_importance(importance: Sequence[float], n_classes: int) -> np.ndarray:
    """(L,) the importance of the classes, or an error."""
    values = np.asarray(importance, dtype=np.float64)
    if values.shape != (n_classes,) or not np.isfinite(values).all() or not (values > 0).all():
        raise ValueError(
            f"importance = {importance!r}; give one finite number above 0 for each of the {n_classes} classes"
        )
    return values


@dataclass(frozen=True)
class PAS(ConformalRule):
    r"""Every class whose probability, divided by how common the class is, reaches one threshold.

    $$\Gamma(x) = \{j : \omega_j \, p_j(x) / (L \pi_j)^\tau \ge \lambda\}, \qquad
    \lambda = k\text{-th largest value of a label}, \quad k = \lceil (n+1) \cdot \mathrm{confidence} \rceil$$

    π are the class shares of the training rows (`table.class_counts`). At τ = 0 it is `LAC`. At τ = 1, if p is the posterior,
    no rule of that mean size has a larger macro-coverage: rare classes are covered like common ones. `importance` ω gives
    some classes more weight, such as threatened species.

    >>> scores = np.log([[0.6, 0.4], [0.7, 0.3], [0.55, 0.45], [0.9, 0.1]])
    >>> table = LogitTable(scores, labels=[0, 0, 1, 0], class_counts=[90, 10])
    >>> PAS(0.75).fit(table)(table).sizes.tolist()
    [2, 2, 1, 2]

    Ding, Fermanian & Salmon 2025, Eq. 4 and Proposition 2 (PAS, WPAS).
    """

    title = "Prevalence-adjusted sets (PAS)"
    formulation = "macro error"
    requires = ("labels", "class_counts")
    reorders = True

    tau: float = tau_knob(1.0)
    importance: tuple[float, ...] | None = None
    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        weights = class_weights(table, self.tau, self.importance)
        return IMPROBABILITY if weights is None else Improbability(weights)


class AdjustedTable(LogitTable):
    """A table whose probabilities are multiplied by class weights, for whatever counts or orders them.

    Rows do not sum to 1. Thresholds at a mean size and a `SetIndex` of it are those of the weighted probabilities.
    """

    weights: np.ndarray

    @classmethod
    def of(cls, table: LogitTable, weights: np.ndarray) -> Self:
        """The table with weights."""
        adjusted = cls.trusted(**{name: getattr(table, name) for name in table.__dataclass_fields__})
        adjusted._fill(weights=weights)
        return adjusted

    def part(self, rows: slice) -> Self:
        part = super().part(rows)
        part._fill(weights=self.weights)
        return part

    def rows(self, index: Any) -> Self:
        rows = super().rows(index)
        rows._fill(weights=self.weights)
        return rows

    def probabilities(self, rows: Any = slice(None)) -> np.ndarray:
        adjusted: np.ndarray = super().probabilities(rows) * self.weights.astype(self.dtype)
        return adjusted
