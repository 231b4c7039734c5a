"""Conformal rules with one limit per class, so that every class is covered and not only the rows on average."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from workbench.sets.base import FittedRule, min_size_knob
from workbench.sets.conformal import (
    Calibration,
    ConformalRule,
    FittedConformalRule,
    label_scores,
    rows_needed,
)
from workbench.sets.scores import IMPROBABILITY, Score
from workbench.tables import LogitTable
from workbench.tables.ordering import some


@dataclass(frozen=True, eq=False, repr=False)
class FittedPerClass(FittedConformalRule):
    """A conformal rule with one limit per class."""

    def limit_at(self, confidence: float) -> np.ndarray:
        limits: np.ndarray = self.calibration.limits(confidence)
        return limits

    def too_few(self, rule: ConformalRule, groups: np.ndarray) -> str:
        names = some([self.calibration.names[j] for j in groups])
        return (
            f"{len(groups)} of {self.n_classes} classes ({names}) have fewer than {rows_needed(rule.confidence)} rows to "
            f"fit on, which confidence {rule.confidence:g} needs: they are in every set"
        )

    def who(self, groups: np.ndarray) -> str:
        names = some([self.calibration.names[j] for j in groups])
        return f"{names} {'are' if len(groups) > 1 else 'is'} in every set"

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        return np.stack([self.calibration.p_values(scores[:, j], j) for j in range(self.n_classes)], axis=1)

    def reordered(self, order: np.ndarray) -> Self:
        calibration = self.calibration and self.calibration.reordered(order)
        return replace(super().reordered(order), calibration=calibration)


@dataclass(frozen=True)
class ClassConditionalLAC(ConformalRule):
    r"""One threshold per class, so that the promise holds for every class and not only on average.

    $$\Gamma(x) = \{j : p_j(x) \ge \lambda_j\}, \qquad
    \lambda_j = k_j\text{-th largest } p_j \text{ among the } n_j \text{ rows of } j, \quad
    k_j = \lceil (n_j+1) \cdot \mathrm{confidence} \rceil$$

    A class with fewer than 1/(1 − confidence) − 1 fitting rows can only keep the promise by being in every set, and
    with many rare classes sets become useless: it warns.

    Sadinle et al. 2019; Ding et al. 2023.
    """

    title = "Class-conditional LAC"
    formulation = "average error"
    guarantee = "class coverage"
    fitted_kind = FittedPerClass
    reorders = True
    promise = "the label is in the set with probability `confidence`, for each class"
    elsewhere = ("TorchCP", "crepes")

    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return IMPROBABILITY

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        _, classes, scores = label_scores(score, table)
        return Calibration.grouped(scores, classes, table.named_classes())

    def bayes(self, posterior: LogitTable) -> FittedRule:
        raise ValueError("the class-conditional promise is not among the four formulations; it has no Bayes form here")
