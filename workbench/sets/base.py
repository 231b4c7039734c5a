"""The shape of a rule, which turns probabilities into sets of classes.

A rule is a frozen dataclass of knobs; `rule.fit(table)` gives a new, fitted object, and `fitted(table)` gives
`PredictionSets`. A custom rule is listed in `RULES` in `sets/__init__.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from workbench.knobs import Knobbed, knob
from workbench.sets.coverage_band import promise_text
from workbench.sets.prediction_sets import PredictionSets
from workbench.sets.thresholds import rounded_up
from workbench.tables import LogitTable, checked_table
from workbench.tables.groups import classes_by
from workbench.tables.links import LINKS, check_same_link
from workbench.tables.ordering import column_order, most_probable
from workbench.warning_capture import warn

UNDERFLOW = float(np.finfo(np.float32).tiny)  # in float32, what lies below may be 0: it is for every rule


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive rows of a table: their probabilities, their scores, and the row's own value for the rule, if any."""

    table: LogitTable
    rows: slice = field(default_factory=lambda: slice(None))
    given: np.ndarray | None = None  # (rows, L) probabilities that were computed already
    row_values: Any = None  # (rows,) what the fitted rule knows of each row, such as a threshold

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(rows, L) in the type of the table."""
        return self.table.probabilities(self.rows) if self.given is None else self.given

    @cached_property
    def capped(self) -> np.ndarray:
        """The same numbers, at most 1: a quasibinary q has no upper end."""
        return np.minimum(self.probabilities, 1) if self.table.link == "quasibinary" else self.probabilities

    @property
    def labels(self) -> np.ndarray | None:
        """(rows,) or (rows, L) the labels, where the table has some."""
        return None if self.table.labels is None else self.table.labels[self.rows]

    @cached_property
    def scores(self) -> np.ndarray:
        """(rows, L) the scores that the probabilities come from."""
        return np.asarray(self.table.scores[self.rows])

    @cached_property
    def precise(self) -> np.ndarray:
        """(rows, L) the probabilities in float64: the same bits whatever type the scores are stored in."""
        return self.precise_rows(np.arange(len(self.probabilities)))

    def precise_rows(self, rows: np.ndarray) -> np.ndarray:
        """The same of some rows of the block."""
        if self.table.dtype == np.float64:
            return take_rows(self.probabilities, rows)
        precise = LINKS[self.table.link](take_rows(self.scores, rows).astype(np.float64), self.table.link_constant)
        precise[precise < UNDERFLOW] = 0
        return precise

    @property
    def nearly_precise(self) -> bool:
        """Whether float32 probabilities are those of float64 up to a relative error of 1e-5, where they are not tiny."""
        return self.table.dtype == np.float32 and self.table.link in ("softmax", "identity")


def take_rows(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Some rows in rising order; no copy where they are all."""
    return values if len(rows) == len(values) else values[rows]


# Kinds of promises, the most common first.
GUARANTEES = ("size", "coverage", "macro-coverage", "class coverage", "group coverage", "risk", "nothing")


@dataclass(frozen=True)
class Rule(Knobbed):
    """The base of every rule: `fit(table)` gives a `FittedRule`, which gives the sets of any table of the same classes.

    A rule that learns something overrides `_fit`; one whose sets are not `probability >= threshold` overrides `mask`.
    """

    title: ClassVar[str]
    formulation: ClassVar[str]  # the line of Table 2.1 of the thesis that it estimates
    needs_fit: ClassVar[bool] = True  # False: the table it is fitted on does not matter
    promise: ClassVar[str] = "nothing"  # what holds for new rows, whatever the network
    guarantee: ClassVar[str] = "nothing"  # the kind of the promise: one of GUARANTEES
    requires: ClassVar[tuple[str, ...]] = ()  # fields that the table it is fitted on must have
    cost: ClassVar[str] = "one pass"  # of sets, over the probabilities
    reorders: ClassVar[bool] = False  # True: a set need not hold the most probable classes
    elsewhere: ClassVar[tuple[str, ...]] = ()  # other packages that have it

    def fit(self, table: LogitTable, *, client: Any = None) -> FittedRule:
        """Fit the rule.

        Args:
            table: rows kept apart for that; a conformal rule needs their labels.
            client: a Dask client whose workers make the passes over the table.

        Returns:
            A new object: the rule and what it learned.
        """
        if client is None:
            return self._fit(checked_table(table)).with_link_of(table)
        from workbench.cluster import on

        with on(client):
            return self._fit(checked_table(table)).with_link_of(table)

    def _fit(self, table: LogitTable) -> FittedRule:
        """The fitted rule; `fit` calls it with a checked table."""
        return FittedRule(self, None, table.n_classes, table.class_names)

    def missing(self, table: LogitTable) -> list[str]:
        """The fields that the rule needs and a table lacks."""
        unlabelled = not table.labelled.any()
        return [name for name in self.requires if (unlabelled if name == "labels" else getattr(table, name) is None)]

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The rule when the probabilities are the true ones: its line of Table 2.1 solved, not estimated."""
        return self.fit(posterior)

    def __call__(self, table: LogitTable) -> PredictionSets:
        """Only a fitted rule makes sets."""
        raise ValueError(
            f"{self!r} is not fitted: {type(self).__name__}(…).fit(val)(test), on rows kept apart for that"
        )

    def mask(self, fitted: Any, block: Block) -> np.ndarray:
        """(rows, L) bool: the classes in the sets of a block of rows."""
        p = block.probabilities
        mask: np.ndarray = p >= dtype_threshold(fitted.threshold, p.dtype)
        return mask


@dataclass(frozen=True, eq=False)
class FittedRule:
    """A rule and what it learned; call it on a table to get sets."""

    rule: Rule
    threshold: Any  # float, (L,) or None
    n_classes: int
    class_names: tuple[str, ...] | None  # of the columns it was fitted on, where the table had names
    link: str | None = field(default=None, kw_only=True)  # of the probabilities it was fitted on
    link_constant: float | None = field(default=None, kw_only=True)

    def with_link_of(self, table: LogitTable) -> Self:
        """The same, fitted on probabilities of the link of this table; a rule that needs no fit takes every link."""
        return replace(self, link=table.link, link_constant=table.link_constant) if self.rule.needs_fit else self

    def __call__(self, table: LogitTable) -> PredictionSets:
        """The sets of the rows of a table; warns if some are empty, or if a promise is kept by every class alone."""
        sets = self.sets(table)
        n_empty = int(np.count_nonzero(sets.sizes == 0))
        if n_empty and not table.many_labels:  # where a row may have no label, an empty set is an answer
            warn(
                f"{n_empty} of {table.n} sets are empty: no class reaches the threshold; "
                f"{type(self.rule).__name__}(..., min_size=1) returns the most probable class there",
                stacklevel=2,
            )
        asked_for_all = getattr(self.rule, "min_size", 0) >= self.n_classes
        if self.excludes and not asked_for_all and self.n_classes > 1 and (sets.sizes == self.n_classes).all():
            warn(
                f"every set holds all {self.n_classes} classes: the scores of labels and of other classes are tied or "
                f"too alike for {self.rule.short()}",
                stacklevel=2,
            )
        return sets

    @property
    def excludes(self) -> bool:
        """Whether a class with a score that is bad enough is in no set."""
        return False

    def sets(self, table: LogitTable) -> PredictionSets:
        """The sets of the rows of a table, without these warnings."""
        fitted = self.for_table(table)
        return PredictionSets(table, fitted, RuleMask(table, fitted, fitted.row_values(table)))

    @property
    def per_class(self) -> bool:
        """Whether something was learned for each class, so that the order of the columns matters."""
        return np.ndim(self.threshold) == 1

    @property
    def cuts_probabilities(self) -> bool:
        """Whether a set is every class whose probability reaches `threshold`, and nothing else."""
        return type(self.rule).mask is Rule.mask

    def for_table(self, table: LogitTable) -> Self:
        """The same rule for the columns of a table: what was fitted per class follows the names of the classes.

        Raises:
            ValueError: the classes, or the link of the probabilities, are others than those it was fitted on.
        """
        if checked_table(table).n_classes != self.n_classes:
            raise ValueError(f"the rule was fitted on {self.n_classes} classes and the table has {table.n_classes}")
        check_same_link(self, table)
        class_names = table.class_names
        if not self.per_class or None in (class_names, self.class_names) or class_names == self.class_names:
            return self
        return self.reordered(column_order(self.class_names, class_names))  # type: ignore[arg-type]

    def reordered(self, order: np.ndarray) -> Self:
        """The same rule with its classes in another order: entry j is what stood at `order[j]`."""
        names = None if self.class_names is None else tuple(self.class_names[j] for j in order)
        threshold = self.threshold[order] if np.shape(self.threshold) == (self.n_classes,) else self.threshold
        return replace(self, threshold=threshold, class_names=names)

    def class_groups(self, table: LogitTable) -> tuple[np.ndarray, tuple[str, ...]]:
        """The group of each class, as a code, and the names of the groups: those of the table, or its own."""
        return classes_by(table, "groups")

    def row_values(self, table: LogitTable) -> np.ndarray | None:
        """(n,) what the rule knows of each row beside its probabilities, such as its own threshold; None for most rules."""
        return None

    def to_make_sets(self) -> FittedRule:
        """The same without what was learned only for other questions: what is sent to workers."""
        return self

    def calibration_rows(self) -> dict[str, int]:
        """The number of rows behind each promise, by group ("" for all rows); empty where the law of coverage is not known."""
        return {}

    def promise_text(self, level: float = 0.95) -> str:
        """The promise with the band in which the coverage of this one fit lies; "" for a rule without such a promise.

        Args:
            level: Probability of the band.
        """
        rows = self.calibration_rows()
        if not rows:
            return ""
        group, fewest = min(rows.items(), key=lambda item: item[1])
        text = promise_text(fewest, self.rule.confidence, level)  # type: ignore[attr-defined]
        return text if group == "" else f"in each of {len(rows)} groups {text} in the smallest ({group})"

    @property
    def name(self) -> str:
        """The rule, and its threshold where that is one number."""
        return f"{self.rule!r} at {self.threshold:.4g}" if isinstance(self.threshold, float) else repr(self.rule)

    def __repr__(self) -> str:
        return ", ".join(filter(None, (self.name, self.promise_text())))


@dataclass(frozen=True, eq=False)
class RuleMask:
    """The membership mask of a fitted rule, block by block; `first_row` is the place of the table's first row."""

    table: LogitTable
    fitted: FittedRule
    row_values: np.ndarray | None = None  # (all rows,)
    first_row: int = 0

    def __call__(self, probabilities: np.ndarray, rows: slice) -> np.ndarray:
        values = self.row_values
        if values is not None:
            values = values[self.first_row + rows.start : self.first_row + rows.stop]
        block, rule = Block(self.table, rows, probabilities, values), self.fitted.rule
        mask = rule.mask(self.fitted, block)
        return filled(mask, probabilities, self.table.scores[rows], getattr(rule, "min_size", 0))

    def without_table(self) -> RuleMask:
        """The same without its rows, which are given back part by part: what is sent to a worker."""
        return replace(self, table=self.table.part(slice(0, 0)), fitted=self.fitted.to_make_sets())

    def of_part(self, part: LogitTable, first_row: int) -> RuleMask:
        """The same for some consecutive rows, as a table of their own."""
        return replace(self, table=part, first_row=self.first_row + first_row)


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
    """The knob that leaves no set empty."""
    return knob(0, low=0, high=5, maximum=math.inf, meaning="number of classes a set has at least")
