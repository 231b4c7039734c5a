"""Conformal rules: sets that contain the label with probability `confidence`, whatever the network.

A conformal rule is a *score* of every class (`scores.py`) and a *fit* of the limit up to which classes are let in. The
rules here have one limit for all rows, the marginal fit (Garcin, thesis, Sec. 2.2.2); `per_group.py`, `per_class.py` and
`weighted.py` have the others. The promise is about rows like those it was fitted on and that chose nothing:
`test.split()` is the clean way to get them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from workbench.exact_arithmetic import exact
from workbench.knobs import knob
from workbench.sets.base import Block, FittedRule, Rule, min_size_knob
from workbench.sets.scores import IMPROBABILITY, Improbability, OwnScore, Score
from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts
from workbench.warning_capture import warn


def confidence_knob(meaning: str = "promised probability that a set contains the label") -> Any:
    """The knob that conformal rules share."""
    return knob(0.9, low=0.5, high=0.99, minimum=1e-6, maximum=1, symbol="1 − α", meaning=meaning)


@dataclass(frozen=True)
class ConformalRule(Rule):
    r"""A rule that learns from the scores of labels how badly a label may fit.

    $$\Gamma(x) = \{j : s(x, j) \le q\}, \qquad
    q = k\text{-th smallest } s(x_i, y_i), \quad k = \lceil (n+1) \cdot \mathrm{confidence} \rceil$$

    A custom rule defines one method, `class_scores`: the score s of every class of every row, the smaller the
    better it fits. Fitting, sets, p-values and the promise follow, whatever the score, and its score works in every other
    fit: `Mondrian(by="organ", score=Behind())`. Here, how far a class lies behind the most probable one:

    >>> @dataclass(frozen=True)
    ... class Behind(ConformalRule):
    ...     title = "Not far behind the first"
    ...     formulation = "average error"
    ...
    ...     def class_scores(self, probabilities):
    ...         return probabilities.max(axis=1, keepdims=True) - probabilities
    >>> table = LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.4, 0.35, 0.25]] * 5, labels=[0, 1] * 5)
    >>> fitted = Behind(confidence=0.9).fit(table)
    >>> round(fitted.threshold, 2), fitted(table).sizes.tolist()[:2]
    (0.05, [1, 2])

    A row with many labels fits as badly as its worst label; rows without one are left out, and the promise is about rows
    that have one. A class of probability 0 has an infinite score, so it is in a set only where nothing less than every
    class keeps the promise.
    """

    fitted_kind: ClassVar[type[FittedConformalRule]]
    requires: ClassVar[tuple[str, ...]] = ("labels",)
    promise = "the label is in the set with probability `confidence`, on average over rows"
    guarantee = "coverage"

    confidence: float = confidence_knob()

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        if "class_scores" in vars(cls):  # a custom score holds, whatever rule one derives from
            cls.scorer = ConformalRule.scorer  # type: ignore[method-assign]

    def __post_init__(self) -> None:
        super().__post_init__()
        if type(self).class_scores is ConformalRule.class_scores and type(self).scorer is ConformalRule.scorer:
            raise TypeError(
                f"{type(self).__name__} has no score yet: define class_scores(self, probabilities) → (rows, L) numbers, "
                "the smaller the better a class fits as the label"
            )

    def class_scores(self, probabilities: np.ndarray) -> np.ndarray:
        """(rows, L): how badly each class of a block of rows would fit as its label; the one method to define.

        A row of scores may depend on its own row of probabilities only.
        """
        raise NotImplementedError

    def scorer(self, table: LogitTable) -> Score:
        """The score, with what it needs to know of the table it is fitted on."""
        return OwnScore(self)

    if TYPE_CHECKING:

        def fit(self, table: LogitTable, *, client: Any = None) -> FittedConformalRule: ...

    def _fit(self, table: LogitTable) -> FittedConformalRule:
        check_promise(table)
        score = self.scorer(table)
        calibration = self.calibrated(score, table)
        fitted = self.fitted_kind(self, None, table.n_classes, table.class_names, score, np.inf, calibration)
        return fitted.at(self.confidence)

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        """The basis of the limits of all confidences; here the scores of all rows, in rising order."""
        return row_calibration(score, table)

    def mask(self, fitted: Any, block: Block) -> np.ndarray:
        return mask_at_limit(self, fitted, block)


def mask_at_limit(rule: Rule, fitted: Any, block: Block) -> np.ndarray:
    """(rows, L) bool: the classes whose score is at most the limit of the rule, or of the row where each has its own."""
    limit = fitted.limit if block.row_values is None else block.row_values[:, None]
    mask: np.ndarray = fitted.score.mask(block, limit)
    return mask


def check_promise(table: LogitTable) -> None:
    """An error without labels; warnings where rows void the promise or are left out."""
    table.checked_labels()
    if not table.labelled.any():
        raise ValueError(
            f"none of the {table.n} rows has a label, so nothing can be promised; give labels of some rows, or a rule that "
            "needs none, such as AverageK(5)"
        )
    if table.chose_model:
        warn(
            "these rows also stopped training or chose the checkpoint, so they flatter the model and the promise is "
            "void; fit on rows that chose nothing: fitting, judging = test.split()",
            stacklevel=4,
        )
    if n_without := int(np.count_nonzero(~table.labelled)):
        warn(
            f"{n_without} of {table.n} rows have no label and were left out of the fit; the promise is about rows that "
            "have one",
            stacklevel=4,
        )


def label_scores(score: Score, table: LogitTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows, the classes and the scores of all labels."""
    rows, classes = table.positives()
    return rows, classes, np.concatenate(list(over_parts(table, label_scores_of, score)))


def label_scores_of(part: LogitTable, first_row: int, score: Score) -> np.ndarray:
    """The scores of all labels of some rows."""
    rows, classes = part.positives()
    scores = np.empty(len(rows))
    for span in part.spans():
        inside = slice(*np.searchsorted(rows, (span.start, span.stop)))
        scores[inside] = score.of_labels(Block(part, span), rows[inside] - span.start, classes[inside])
    return scores


def row_scores(score: Score, table: LogitTable) -> np.ndarray:
    """(n,) the score of the label of each row; of many labels the largest, of none -inf."""
    rows, _, of_labels = label_scores(score, table)
    of_rows = np.full(table.n, -np.inf)
    np.maximum.at(of_rows, rows, of_labels)
    return of_rows


def row_calibration(score: Score, table: LogitTable) -> Calibration:
    """The calibration of all labelled rows together."""
    return Calibration.grouped(row_scores(score, table)[table.labelled], None, ("",))


@dataclass(frozen=True, eq=False)
class Calibration:
    """Scores of labels by group, rising inside each: from them follow the limits of every confidence, and p-values.

    One group for a marginal promise, one per class or per kind of row for a conditional one.
    """

    scores: np.ndarray  # group after group, rising inside each
    offsets: np.ndarray  # (G + 1,) where the groups begin
    names: tuple[str, ...]  # (G,) of the groups
    class_codes: np.ndarray | None = None  # (L,) the group of each class, where groups are of classes; -1 for none

    @classmethod
    def grouped(
        cls,
        scores: np.ndarray,
        codes: np.ndarray | None,
        names: tuple[str, ...],
        class_codes: np.ndarray | None = None,
    ) -> Self:
        """Scores sorted into groups."""
        if codes is None:
            return cls(np.sort(scores), np.array([0, len(scores)]), names)
        counts = np.bincount(codes, minlength=len(names))
        offsets = np.concatenate([[0], np.cumsum(counts)])
        return cls(scores[np.lexsort((scores, codes))], offsets, names, class_codes)

    @property
    def counts(self) -> np.ndarray:
        """(G,) how many scores a group has."""
        return np.diff(self.offsets)

    def of_group(self, group: int) -> np.ndarray:
        """The scores of a group."""
        return self.scores[self.offsets[group] : self.offsets[group + 1]]

    def reordered(self, order: np.ndarray) -> Self:
        """The same groups in another order."""
        scores = np.concatenate([np.zeros(0), *(self.of_group(group) for group in order)])
        offsets = np.concatenate([[0], np.cumsum(self.counts[order])])
        return replace(self, scores=scores, offsets=offsets, names=tuple(self.names[group] for group in order))

    def ranks(self, confidence: float) -> np.ndarray:
        """(G,) which of the scores of a group is its limit: k = ⌈(n + 1)·confidence⌉ in exact arithmetic."""
        share, (found, place) = exact(confidence), np.unique(self.counts, return_inverse=True)
        return np.array([math.ceil((int(n) + 1) * share) for n in found])[place]

    def limits(self, confidence: float) -> np.ndarray:
        """(G,) the k-th smallest score of each group; infinite where k > n and only every class keeps the promise."""
        ranks = self.ranks(confidence)
        enough = ranks <= self.counts
        limits = np.full(len(self.names), np.inf)
        limits[enough] = self.scores[self.offsets[:-1][enough] + ranks[enough] - 1]
        return limits

    def without_limit(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """The groups with too few rows, and those in which too many labels have probability 0."""
        few = self.ranks(confidence) > self.counts
        return np.flatnonzero(few), np.flatnonzero(~few & np.isinf(self.limits(confidence)))

    def p_values(self, scores: np.ndarray, group: int = 0) -> np.ndarray:
        """(1 + #{calibration scores ≥ s}) / (n + 1) of some scores, among those of a group."""
        own = self.of_group(group)
        below = np.searchsorted(own, scores, side="left")
        values: np.ndarray = (1 + len(own) - below) / (len(own) + 1)
        return values


@dataclass(frozen=True, eq=False, repr=False)
class FittedLimit(FittedRule):
    """A rule, its score, and the limit up to which classes are let in."""

    score: Score
    limit: Any  # a class is in the set iff its score is ≤ limit: a number or (L,)

    @property
    def per_class(self) -> bool:
        return super().per_class or self.score.per_class

    @property
    def cuts_probabilities(self) -> bool:
        return type(self.rule).mask in (ConformalRule.mask, mask_at_limit) and self.score == IMPROBABILITY

    @property
    def excludes(self) -> bool:
        return self.rule.guarantee != "size" and bool(np.isfinite(self.limit).all())

    def class_groups(self, table: LogitTable) -> tuple[np.ndarray, tuple[str, ...]]:
        return self.score.class_groups or super().class_groups(table)

    def reordered(self, order: np.ndarray) -> Self:
        limit = self.limit[order] if np.shape(self.limit) == (self.n_classes,) else self.limit
        return replace(super().reordered(order), score=self.score.reordered(order), limit=limit)


@dataclass(frozen=True, eq=False, repr=False)
class FittedConformalRule(FittedLimit):
    """A conformal rule, its score and its calibration, from which any confidence follows."""

    rule: ConformalRule
    calibration: Any

    def at(self, confidence: float) -> Self:
        """The same fit with another confidence: no second look at the table."""
        rule = replace(self.rule, confidence=confidence)
        limit = self.limit_at(rule.confidence)
        self.warn(rule)
        return replace(self, rule=rule, limit=limit, threshold=self.score.as_threshold(limit))

    def limit_at(self, confidence: float) -> Any:
        """The limit of a confidence."""
        return float(self.calibration.limits(confidence)[0])

    def warn(self, rule: ConformalRule) -> None:
        """Warn where only every class keeps the promise."""
        few, impossible = self.calibration.without_limit(rule.confidence)
        if len(few):
            warn(self.too_few(rule, few), stacklevel=4)
        if len(impossible):
            warn(self.impossible(rule, impossible), stacklevel=4)

    def too_few(self, rule: ConformalRule, groups: np.ndarray) -> str:
        """The warning about groups with too few calibration rows."""
        if rule.confidence == 1:
            return "confidence 1 is kept by no number of rows but only by every class: every set holds every class"
        return (
            f"confidence {rule.confidence:g} needs {rows_needed(rule.confidence)} rows to fit on and there are "
            f"{self.calibration.counts[groups[0]]}: {self.who(groups)}"
        )

    def impossible(self, rule: ConformalRule, groups: np.ndarray) -> str:
        """The warning about more labels of probability 0 than the confidence lets sets miss."""
        scores = np.concatenate([self.calibration.of_group(group) for group in groups])
        return zeros_text(scores, len(self.calibration.scores), self.who(groups))

    def who(self, groups: np.ndarray) -> str:
        """Text: which sets or classes grow for a group whose quantile is infinite."""
        return "every set holds every class"

    def to_make_sets(self) -> FittedConformalRule:
        return replace(self, calibration=None)

    def calibration_rows(self) -> dict[str, int]:
        if not isinstance(self.calibration, Calibration):
            return {}
        return dict(zip(self.calibration.names, self.calibration.counts.tolist(), strict=True))

    def p_values(self, table: LogitTable) -> np.ndarray:
        """(n, L) the conformal p-value of every class: a class is in the set of a confidence iff p > 1 − confidence."""
        fitted = self.for_table(table)
        scores = np.concatenate([fitted.score.of_classes(Block(table, rows)) for rows in table.spans()])
        return fitted.p_values_of(scores, table)

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        """(n, L) the p-values of the scores of all classes, for columns in the order of the fit."""
        values: np.ndarray = self.calibration.p_values(scores)
        return values

    def confidence_at(self, threshold: float) -> float:
        """The largest confidence that the classes above a threshold keep: k/(n + 1), where k of the n labels are above.

        The inverse of `at`, for the rules with one threshold of (weighted) probabilities: `LAC` and `PAS`.
        """
        if not isinstance(self.score, Improbability):
            raise ValueError(f"{self.rule!r} has no threshold that is one probability; fit LAC() or PAS()")
        n = len(self.calibration.scores)
        k = np.searchsorted(self.calibration.scores, -threshold, side="right") if threshold > 0 else n
        return float(k / (n + 1))


ConformalRule.fitted_kind = FittedConformalRule


def zeros_text(scores: np.ndarray, n: int, consequence: str) -> str:
    """The warning that too many of n labels have probability 0, which is an infinite score."""
    return (
        f"the label has probability 0 in {np.isposinf(scores).sum()} of {n} rows, more than the promise lets sets miss: "
        f"{consequence}; sparsemax, and scores so large that softmax underflows, give exact zeros: "
        "table.with_link('softmax'), TemperatureScaling or a table in float64 parts them"
    )


def rows_needed(confidence: float) -> int | float:
    """The smallest number of rows with which a confidence can be promised by less than every class: 1/(1 − c) − 1.

    >>> rows_needed(0.9), rows_needed(0.99)
    (9, 99)
    """
    return math.ceil(1 / (1 - exact(confidence)) - 1) if confidence < 1 else math.inf


@dataclass(frozen=True)
class LAC(ConformalRule):
    r"""Every class above one threshold, chosen so that the label is above it with the promised probability.

    $$\Gamma(x) = \{j : p_j(x) \ge \lambda\}, \qquad
    \lambda = k\text{-th largest } p_{y_i}(x_i), \quad k = \lceil (n+1) \cdot \mathrm{confidence} \rceil$$

    n is the number of fitting rows. Of all rules with that coverage it has the smallest sets on average, but the
    coverage is kept on average only: ambiguous rows may pay for clear ones. (Least ambiguous classifier, Sadinle et al.
    2019; the estimator of the average-error formulation.)

    >>> table = LogitTable.from_probabilities([[p, 1 - p] for p in (0.9, 0.8, 0.7, 0.6)], labels=[0, 0, 0, 0])
    >>> fitted = LAC(confidence=0.6).fit(table)
    >>> round(fitted.threshold, 3), round(fitted.at(0.8).threshold, 3)
    (0.7, 0.6)

    Paper: Garcin, thesis, Sec. 2.2.2 and Eq. 2.5.
    """

    title = "Least ambiguous sets (LAC)"
    elsewhere = ("TorchCP", "MAPIE", "crepes")
    formulation = "average error"

    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return IMPROBABILITY

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The largest threshold at which the sets hold the label with the promised probability."""
        falling = -np.sort(-posterior.probabilities().ravel().astype(np.float64))
        falling = falling[falling > 0]
        enough = np.cumsum(falling) >= self.confidence * posterior.n * (1 - 1e-12)
        threshold = falling[np.argmax(enough)] if enough.any() else falling[-1]
        return FittedConformalRule(
            self, float(threshold), posterior.n_classes, posterior.class_names, IMPROBABILITY, -float(threshold), None
        ).with_link_of(posterior)
