"""Rules that promise to contain the label: with probability `confidence`, whatever the network.

Each says how bad a class of a row would be as its label, learns from labelled rows how bad a label may be, and returns
all classes that are no worse (Garcin, thesis, Sec. 2.2.2). The promise is about rows like those it was fitted on and that
chose nothing: `test.split()` is the clean way to get them.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.counts import exact
from workbench.knobs import knob
from workbench.sets.base import FittedRule, Rule, min_size_knob
from workbench.tables import LogitTable
from workbench.tables.passes import over_parts

# What a built-in rule computes in a quicker way than from the scores of all classes, with the same result.
SHORTCUTS = ("scores_of", "threshold_at", "mask")


@dataclass(frozen=True)
class ConformalRule(Rule):
    r"""A rule that learns from the scores of labels how bad a label may be.

    $$\Gamma(x) = \{j : s(x, j) \le q\}, \qquad
    q = k\text{-th smallest } s(x_i, y_i), \quad k = \lceil (n+1) \cdot \mathrm{confidence} \rceil$$

    A rule of one's own writes one method, `class_scores`: the score s of every class of every row, the smaller the
    better a label it would be. Fitting, sets and the promise follow, whatever the score. Here, how far a class lies
    behind the most probable one:

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

    A row with many labels is as good as its worst label; rows without one are left out, and the promise is about rows
    that have one. A class of probability 0 has an infinite score, so it is in a set only where nothing less than every
    class keeps the promise.
    """

    per_class: ClassVar[bool] = False  # True: one threshold for every class

    confidence: float = knob(
        0.9,
        low=0.5,
        high=0.99,
        minimum=1e-6,
        maximum=1,
        symbol="1 − α",
        meaning="promised probability that a set contains the label",
    )

    def __init_subclass__(cls, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        home = _definer(cls, "class_scores")
        alone = [name for name in SHORTCUTS if _definer(cls, name) not in (ConformalRule, home)]
        if alone and home is ConformalRule:
            raise TypeError(
                f"{cls.__name__} defines {', '.join(alone)} but not the one method that makes a conformal rule: define "
                f"{ONE_METHOD}, and leave {', '.join(alone)} out"
            )
        if alone:
            raise TypeError(
                f"{cls.__name__} takes class_scores from {home.__name__} and {', '.join(alone)} from "
                f"{', '.join(dict.fromkeys(_definer(cls, name).__name__ for name in alone))}, which need not agree: derive "
                f"from ConformalRule and define {ONE_METHOD}, nothing else"
            )

    def __post_init__(self) -> None:
        super().__post_init__()
        if _definer(type(self), "class_scores") is ConformalRule:
            raise TypeError(f"{type(self).__name__} has no score yet: define {ONE_METHOD}")

    def class_scores(self, probabilities: np.ndarray) -> np.ndarray:
        """(rows, L): how bad each class of a block of rows would be as its label; the one method to write.

        A row of scores may depend on its own row of probabilities only.
        """
        raise NotImplementedError

    if TYPE_CHECKING:

        def fit(self, table: LogitTable, *, client: Any = None) -> FittedConformalRule: ...

    def fitted(self, table: LogitTable) -> FittedConformalRule:
        table.checked_labels()
        if table.chose_model:
            warnings.warn(
                "these rows also stopped training or chose the checkpoint, so they flatter the model and the promise is "
                "void; fit on rows that chose nothing: fitting, judging = test.split()",
                stacklevel=3,
            )
        if n_without := int(np.count_nonzero(~table.labelled)):
            warnings.warn(
                f"{n_without} of {table.n} rows have no label and were left out of the fit; the promise is about rows that "
                "have one",
                stacklevel=3,
            )
        fitted = FittedConformalRule(self, None, table.n_classes, table.named_classes(), self.calibration_scores(table))
        return fitted.at(self.confidence)

    def calibration_scores(self, table: LogitTable) -> list[np.ndarray]:
        """Rising scores of the labels; one array for all rows, or one per class."""
        rows, _, of_labels = self.label_scores(table)
        of_rows = np.full(table.n, -np.inf)
        np.maximum.at(of_rows, rows, of_labels)
        return [np.sort(of_rows[table.labelled])]

    def label_scores(self, table: LogitTable) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows, the classes and the scores of all labels."""
        rows, classes = table.positives()
        return rows, classes, np.concatenate(list(over_parts(table, label_scores_of, self)))

    def scores_of(self, probabilities: np.ndarray, rows: np.ndarray, classes: np.ndarray, span: slice) -> np.ndarray:
        """The scores of some classes of a block of rows."""
        own: np.ndarray = self._scores(probabilities)[rows, classes]
        return own

    def threshold_at(self, score: float) -> float:
        """What `threshold` says of the score up to which classes are let in: the score itself."""
        return score

    def mask(self, fitted: FittedRule, probabilities: np.ndarray, scores: np.ndarray, rows: slice) -> np.ndarray:
        mask: np.ndarray = self._scores(probabilities) <= fitted.threshold
        return mask

    def _scores(self, probabilities: np.ndarray) -> np.ndarray:
        """`class_scores` in float64, checked, and infinite for a class of probability 0."""
        scores = np.asarray(self.class_scores(probabilities), dtype=np.float64)
        if scores.shape != probabilities.shape or np.isnan(scores).any():
            wrong = "some are NaN" if scores.shape == probabilities.shape else f"their shape is {scores.shape}"
            raise ValueError(
                f"{type(self).__name__}.class_scores must give one number for each of the {probabilities.shape} "
                f"probabilities; {wrong}"
            )
        return np.where(probabilities > 0, scores, np.inf)

    def promise_broken(self, fitted: FittedConformalRule, short: list[int]) -> str:
        """What to tell when some of the calibration scores are too few to promise anything."""
        if self.confidence == 1:
            return "confidence 1 is kept by no number of rows but only by every class: every set holds every class"
        return (
            f"confidence {self.confidence:g} needs {rows_needed(self.confidence)} rows to fit on and there are "
            f"{len(fitted.scores[0])}: every set holds every class"
        )

    def impossible_labels(self, fitted: FittedConformalRule, places: list[int]) -> str:
        """What to tell when more labels have probability 0 than the confidence lets sets miss."""
        n_zero, n = sum(int(np.isposinf(fitted.scores[j]).sum()) for j in places), sum(map(len, fitted.scores))
        who = "every set holds every class"
        if self.per_class:
            who = f"{_some([fitted.class_names[j] for j in places])} {'are' if len(places) > 1 else 'is'} in every set"
        return (
            f"the label has probability 0 in {n_zero} of {n} rows, more than confidence {self.confidence:g} lets sets miss: "
            f"{who}; sparsemax, and scores so large that softmax underflows, give exact zeros: "
            "table.with_link('softmax'), TemperatureScaling or a table in float64 parts them"
        )


def label_scores_of(part: LogitTable, first_row: int, rule: ConformalRule) -> np.ndarray:
    """The scores of all labels of some rows."""
    rows, classes = part.positives()
    scores = np.empty(len(rows))
    for span in part.spans():
        inside = slice(*np.searchsorted(rows, (span.start, span.stop)))
        of_all = slice(first_row + span.start, first_row + span.stop)
        scores[inside] = rule.scores_of(part.probabilities(span), rows[inside] - span.start, classes[inside], of_all)
    return scores


# What an error asks for.
ONE_METHOD = "class_scores(self, probabilities) → (rows, L) numbers, the smaller the better a label the class would be"


def _definer(cls: type, name: str) -> type:
    """The class that a method comes from."""
    return next(base for base in cls.__mro__ if name in vars(base))


def _some(names: list[str], most: int = 3) -> str:
    """The first few of some names."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")


@dataclass(frozen=True, eq=False, repr=False)
class FittedConformalRule(FittedRule):
    """A conformal rule and the scores of the labels it was fitted on, from which any confidence follows."""

    class_names: tuple[str, ...]
    scores: list[np.ndarray]  # rising; one array for all rows, or one per class

    def at(self, confidence: float) -> FittedConformalRule:
        """The same fit with another confidence: no second look at the table.

        The threshold lies at the k-th smallest score, k = ⌈(n + 1)·confidence⌉ in exact arithmetic. For k > n no number
        of rows like these can keep the promise by less than every class.
        """
        assert isinstance(self.rule, ConformalRule)
        rule = replace(self.rule, confidence=confidence)
        ranks = [math.ceil((len(scores) + 1) * exact(rule.confidence)) for scores in self.scores]
        short = [place for place, (scores, k) in enumerate(zip(self.scores, ranks, strict=True)) if k > len(scores)]
        if short:
            warnings.warn(rule.promise_broken(self, short), stacklevel=3)
        worst = [
            float(scores[k - 1]) if k <= len(scores) else math.inf for scores, k in zip(self.scores, ranks, strict=True)
        ]
        if impossible := [place for place, score in enumerate(worst) if score == math.inf and place not in set(short)]:
            warnings.warn(rule.impossible_labels(self, impossible), stacklevel=3)
        thresholds = [rule.threshold_at(score) for score in worst]
        return replace(self, rule=rule, threshold=np.array(thresholds) if rule.per_class else thresholds[0])

    def to_make_sets(self) -> FittedConformalRule:
        return replace(self, scores=[])

    def confidence_at(self, threshold: float) -> float:
        """The largest confidence that the classes above a threshold keep: k/(n + 1), where k of the n labels are above.

        The inverse of `at`, for the rule whose threshold is one probability: `LAC`.
        """
        if not isinstance(self.rule, LAC):
            raise ValueError(f"{self.rule!r} has no threshold that is one probability; fit LAC()")
        n = len(self.scores[0])
        k = np.searchsorted(self.scores[0], -threshold, side="right") if threshold > 0 else n  # at 0 nothing is missed
        return float(k / (n + 1))


def rows_needed(confidence: float) -> int | float:
    """The smallest number of rows with which a confidence can be promised by less than every class: 1/(1 − c) − 1.

    >>> rows_needed(0.9), rows_needed(0.99)
    (9, 99)
    """
    return math.ceil(1 / (1 - exact(confidence)) - 1) if confidence < 1 else math.inf


@dataclass(frozen=True)
class ProbabilityRule(ConformalRule):
    """What `LAC` and `ClassConditionalLAC` share: the less probable a class, the worse; so the threshold is a probability."""

    def class_scores(self, probabilities: np.ndarray) -> np.ndarray:
        return -probabilities

    def scores_of(self, probabilities: np.ndarray, rows: np.ndarray, classes: np.ndarray, span: slice) -> np.ndarray:
        own = probabilities[rows, classes].astype(np.float64)
        return np.where(own > 0, -own, np.inf)

    def threshold_at(self, score: float) -> float:
        return max(-score, 0.0)

    def mask(self, fitted: FittedRule, probabilities: np.ndarray, scores: np.ndarray, rows: slice) -> np.ndarray:
        return Rule.mask(self, fitted, probabilities, scores, rows)


@dataclass(frozen=True)
class LAC(ProbabilityRule):
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
    formulation = "average error"

    min_size: int = min_size_knob()

    def bayes(self, posterior: LogitTable) -> FittedRule:
        """The largest threshold at which the sets hold the label with the promised probability."""
        falling = -np.sort(-posterior.probabilities().ravel().astype(np.float64))
        falling = falling[falling > 0]
        enough = np.cumsum(falling) >= self.confidence * posterior.n * (1 - 1e-12)
        threshold = falling[np.argmax(enough)] if enough.any() else falling[-1]
        return FittedRule(self, float(threshold), posterior.n_classes)


@dataclass(frozen=True)
class ClassConditionalLAC(ProbabilityRule):
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
    per_class = True

    min_size: int = min_size_knob()

    def calibration_scores(self, table: LogitTable) -> list[np.ndarray]:
        _, classes, scores = self.label_scores(table)
        by_class = np.lexsort((scores, classes))
        ends = np.cumsum(np.bincount(classes, minlength=table.n_classes))
        return np.split(scores[by_class], ends[:-1])

    def promise_broken(self, fitted: FittedConformalRule, short: list[int]) -> str:
        names = _some([fitted.class_names[j] for j in short])
        return (
            f"{len(short)} of {fitted.n_classes} classes ({names}) have fewer than {rows_needed(self.confidence)} rows to "
            f"fit on, which confidence {self.confidence:g} needs: they are in every set"
        )

    def bayes(self, posterior: LogitTable) -> FittedRule:
        raise ValueError("the class-conditional promise is not among the four formulations; it has no Bayes form here")
