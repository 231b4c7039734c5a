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

    def fit(self, table: LogitTable, *, client: Any = None) -> FittedRule:
        """What the rule learns from a table, as a new object; with a Dask `client`, learned by its workers."""
        if client is None:
            return self.fitted(checked_table(table))
        from workbench.cluster import on

        with on(client):
            return self.fitted(checked_table(table))

    def fitted(self, table: LogitTable) -> FittedRule:
        """The rule with what it learns from a table: what a rule that learns something writes."""
        return FittedRule(self, None, table.n_classes)

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

    def to_make_sets(self) -> FittedRule:
        """The same without what was learned only for other questions."""
        return self

    def sets(self, table: LogitTable) -> PredictionSets:
        """The sets, without a word about empty ones."""
        if checked_table(table).n_classes != self.n_classes:
            raise ValueError(f"the rule was fitted on {self.n_classes} classes and the table has {table.n_classes}")
        return PredictionSets(table, self, RuleMarks(table, self))

    def __repr__(self) -> str:
        at = f" at {self.threshold:.4g}" if isinstance(self.threshold, float) else ""
        return f"{self.rule!r}{at}"


@dataclass(frozen=True, eq=False)
class RuleMarks:
    """Which classes a fitted rule puts into the sets of a block of rows; `first_row` is the place of the table's first."""

    table: LogitTable
    fitted: FittedRule
    first_row: int = 0

    def __call__(self, probabilities: np.ndarray, rows: slice) -> np.ndarray:
        scores, rule = self.table.scores[rows], self.fitted.rule
        of_all = slice(self.first_row + rows.start, self.first_row + rows.stop)
        mask = rule.mask(self.fitted, probabilities, scores, of_all)
        return filled(mask, probabilities, scores, getattr(rule, "min_size", 0))

    def without_table(self) -> RuleMarks:
        """The same without its rows, which are given back part by part: what is sent to a worker."""
        return RuleMarks(self.table.part(slice(0, 0)), self.fitted.to_make_sets(), self.first_row)

    def of_part(self, part: LogitTable, first_row: int) -> RuleMarks:
        """The same for some consecutive rows, as a table of their own."""
        return RuleMarks(part, self.fitted, self.first_row + first_row)


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
