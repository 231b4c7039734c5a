"""The shape of a rule, which turns probabilities into sets of classes.

A rule is a frozen dataclass of knobs; `rule.fit(table)` gives a new, fitted object, and `fitted(table)` gives
`PredictionSets`. A rule of one's own is listed in `RULES` in `sets/__init__.py`.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from workbench.knobs import Knobbed, knob
from workbench.sets.prediction_sets import PredictionSets
from workbench.sets.selection import rounded_up
from workbench.tables import LogitTable, checked_table
from workbench.tables.ordering import most_probable


@dataclass(frozen=True)
class Rule(Knobbed):
    """What every rule is: `fit(table)` gives a `FittedRule`, which gives the sets of any table of the same classes."""

    title: ClassVar[str]
    formulation: ClassVar[str]  # which line of Table 2.1 of the thesis it estimates
    needs_fit: ClassVar[bool] = True  # False: the table it is fitted on does not matter

    def fit(self, table: LogitTable) -> FittedRule:
        """What the rule learns from a table, as a new object."""
        return FittedRule(self, None, checked_table(table).n_classes)

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The rule when the probabilities are the true ones: its line of Table 2.1 solved, not estimated."""
        return self.fit(posterior)

    def __call__(self, table: LogitTable) -> PredictionSets:
        """Only what was fitted makes sets."""
        raise ValueError(
            f"{self!r} is not fitted: {type(self).__name__}(…).fit(val)(test), on rows kept apart for that"
        )

    def mask(self, fitted: FittedRule, probabilities: np.ndarray, scores: np.ndarray, rows: slice) -> np.ndarray:
        """Which classes are in the set, for a block of rows; the scores are there to part equal probabilities."""
        assert fitted.threshold is not None
        mask: np.ndarray = probabilities >= dtype_threshold(fitted.threshold, probabilities.dtype)
        return mask


@dataclass(frozen=True, eq=False)
class FittedRule:
    """A rule and what it learned; call it on a table to get sets."""

    rule: Rule
    threshold: Any  # float, (L,) or None
    n_classes: int

    def __call__(self, table: LogitTable) -> PredictionSets:
        sets = self.sets(table)
        n_empty = int(np.count_nonzero(sets.sizes == 0))
        if n_empty and not table.many_labels:  # where a row may have no label, an empty set is an answer
            warnings.warn(
                f"{n_empty} of {table.n} sets are empty: no class reaches the threshold; "
                f"{type(self.rule).__name__}(..., min_size=1) returns the most probable class there",
                stacklevel=2,
            )
        return sets

    def sets(self, table: LogitTable) -> PredictionSets:
        """The sets, without a word about empty ones."""
        if checked_table(table).n_classes != self.n_classes:
            raise ValueError(f"the rule was fitted on {self.n_classes} classes and the table has {table.n_classes}")

        def masks(probabilities: np.ndarray, rows: slice) -> np.ndarray:
            scores = table.scores[rows]
            mask = self.rule.mask(self, probabilities, scores, rows)
            return filled(mask, probabilities, scores, getattr(self.rule, "min_size", 0))

        return PredictionSets(table, self, masks)

    def __repr__(self) -> str:
        at = f" at {self.threshold:.4g}" if isinstance(self.threshold, float) else ""
        return f"{self.rule!r}{at}"


def checked_rule(given: Any) -> Rule:
    """The rule that is to be fitted, or an error for anything else."""
    if not isinstance(given, Rule):
        raise ValueError(f"rule = {given!r}; give a rule such as AverageK(K=5), with the brackets and not yet fitted")
    return given


def dtype_threshold(threshold: Any, dtype: np.dtype) -> Any:
    """A threshold (or one per class) in the type of the probabilities, rounded up so that `>=` means what it says."""
    if np.ndim(threshold) == 0:
        return rounded_up(float(threshold), dtype)
    nearest = threshold.astype(dtype)
    return np.where(nearest < threshold, np.nextafter(nearest, dtype.type(np.inf)), nearest)


def filled(mask: np.ndarray, probabilities: np.ndarray, scores: np.ndarray, min_size: int) -> np.ndarray:
    """The sets, with the most probable missing classes added to those smaller than `min_size`."""
    if min_size == 0:
        return mask
    sizes = np.count_nonzero(mask, axis=1)
    small = np.flatnonzero(sizes < min_size)
    if len(small):
        missing = np.where(mask[small], -np.inf, probabilities[small])
        mask[small] |= most_probable(missing, scores[small], min_size - sizes[small])
    return mask


def min_size_knob() -> Any:
    """Every rule can be told to leave no set empty."""
    return knob(0, low=0, high=5, maximum=math.inf, meaning="number of classes a set has at least")
