"""Conformal rules whose rows weigh differently: macro-coverage, shifted data, and labels by vote."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from workbench.exact_arithmetic import exact
from workbench.knobs import knob
from workbench.sets.adaptive import seed_knob
from workbench.sets.base import Block, min_size_knob
from workbench.sets.conformal import (
    ConformalRule,
    FittedConformalRule,
    label_scores,
    row_scores,
    rows_needed,
    zeros_text,
)
from workbench.sets.marginal import ScoredRule, score_knob, scored
from workbench.sets.prevalence import PAS, checked_importance, tau_knob
from workbench.sets.row_draws import row_draws
from workbench.sets.scores import Score
from workbench.tables import LogitTable
from workbench.tables.groups import classes_by
from workbench.warning_capture import warn

EVERY_CLASS = "every set holds every class"
HEAVIEST = 1e100  # weights are added up


@dataclass(frozen=True, eq=False)
class WeightedScores:
    """Scores of labels in rising order, with weights: the weighted quantiles of every confidence."""

    scores: np.ndarray
    cumulated: np.ndarray  # of the weights

    @classmethod
    def of(cls, scores: np.ndarray, weights: np.ndarray) -> Self:
        """Scores and weights, in any order."""
        order = np.argsort(scores, kind="stable")
        return cls(scores[order], np.cumsum(weights[order]))

    def limits(self, mass: Any) -> np.ndarray:
        """The smallest scores whose cumulated weight reaches some masses; infinite where none does."""
        mass = np.atleast_1d(np.asarray(mass, dtype=np.float64))
        place = np.searchsorted(self.cumulated, mass * (1 - 1e-12), side="left")
        limits: np.ndarray = np.append(self.scores, np.inf)[place]
        return limits

    def p_values(self, scores: np.ndarray, own: Any) -> np.ndarray:
        """The share of the weight that lies at some scores or above, that of the new row or class included."""
        below = np.append(0, self.cumulated)[np.searchsorted(self.scores, scores, side="left")]
        values: np.ndarray = (self.total - below + own) / (self.total + own)
        return values

    @property
    def total(self) -> float:
        """The sum of the weights."""
        return float(self.cumulated[-1])


@dataclass(frozen=True, eq=False)
class MacroScores(WeightedScores):
    """Weighted scores of a macro promise: weights sum to 1, and the largest is what one more row may cost."""

    largest: float
    n_absent: int  # classes without rows


@dataclass(frozen=True, eq=False, repr=False)
class FittedMacro(FittedConformalRule):
    """A limit at which the classes are covered on average."""

    def limit_at(self, confidence: float) -> float:
        alpha = 1 - confidence - self.calibration.largest
        return float(self.calibration.limits(1 - alpha)[0]) if alpha > 0 else math.inf

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        below = np.append(0, self.calibration.cumulated)[np.searchsorted(self.calibration.scores, scores, side="left")]
        values: np.ndarray = np.minimum(1 - below + self.calibration.largest, 1)
        return values

    def warn(self, rule: ConformalRule) -> None:
        calibration = self.calibration
        if calibration.largest < 1 - rule.confidence and math.isinf(self.limit_at(rule.confidence)):
            warn(zeros_text(calibration.scores, len(calibration.scores), EVERY_CLASS), stacklevel=4)
        elif math.isinf(self.limit_at(rule.confidence)):
            warn(
                f"macro-coverage {rule.confidence:g} cannot be promised: a class with few rows weighs {calibration.largest:.3g}"
                f" a row, which must be below {1 - rule.confidence:.3g}: every set holds every class",
                stacklevel=4,
            )
        if calibration.n_absent:
            warn(
                f"{calibration.n_absent} of {self.n_classes} classes have no rows to fit on: the promise is about the others",
                stacklevel=4,
            )


@dataclass(frozen=True)
class MacroCoverage(ScoredRule):
    r"""One limit at which the classes are covered on average, common and rare alike, with a finite-sample promise.

    $$q = \text{smallest score with } \sum_{i : s_i \le q} w_i \ge 1 - \alpha + \max_i w_i, \qquad w_i = \frac{1}{L\, n_{y_i}}$$

    The score is that of `PAS` at `tau`, unless another is named. `importance` weighs classes, and `by="groups"` averages over
    groups and then over their classes. Classes without calibration rows are not part of the promise.

    Bhattacharyya, Ding & Barber 2026 (arXiv 2606.28598).
    """

    title = "Macro-coverage sets"
    formulation = "macro error"
    guarantee = "macro-coverage"
    promise = "the mean over classes of the probability that the set contains the label is at least `confidence`"
    fitted_kind = FittedMacro

    tau: float = tau_knob(1.0)
    importance: tuple[float, ...] | None = None
    by: str = knob(
        "label", kind="suggestion", choices=("label", "groups"), meaning="classes, or groups of them, that count alike"
    )
    score: str = score_knob("PAS")
    min_size: int = min_size_knob()

    def _scored(self) -> ConformalRule:
        named = scored(self.score)
        return PAS(tau=self.tau) if self.score == "PAS" else named

    def missing(self, table: LogitTable) -> list[str]:
        groups = ["groups"] if self.by == "groups" and table.groups is None else []
        return [*super().missing(table), *groups]

    def calibrated(self, score: Score, table: LogitTable) -> Any:
        _, classes, scores = label_scores(score, table)
        counts = np.bincount(classes, minlength=table.n_classes)
        per_class = np.where(counts > 0, 1.0, 0.0)
        if self.importance is not None:
            per_class = per_class * checked_importance(self.importance, table.n_classes)
        if self.by != "label":
            codes, _ = classes_by(table, self.by)
            present = np.bincount(codes, counts > 0)
            per_class = per_class / np.maximum(present[codes], 1)
        weights = (per_class / np.maximum(counts, 1) / per_class.sum())[classes]
        plain = WeightedScores.of(scores, weights)
        n_absent = int(np.count_nonzero(counts == 0))
        return MacroScores(plain.scores, plain.cumulated, float(weights.max(initial=0)), n_absent)


@dataclass(frozen=True, eq=False, repr=False)
class FittedWeighted(FittedConformalRule):
    """Limits that depend on the weight of the new row."""

    def limit_at(self, confidence: float) -> float:
        return float(self.calibration.limits(confidence * self.calibration.total)[0])

    def warn(self, rule: ConformalRule) -> None:
        return None

    def to_make_sets(self) -> FittedConformalRule:
        return self

    def row_values(self, table: LogitTable) -> np.ndarray:
        own = row_weights(table, self.rule.by)  # type: ignore[attr-defined]
        mass = self.rule.confidence * (self.calibration.total + own)
        limits: np.ndarray = self.calibration.limits(mass)
        if n_heavy := int(np.count_nonzero(np.isinf(limits) & (mass > self.calibration.total))):
            warn(
                f"{n_heavy} of {table.n} rows weigh more than the rows it was fitted on can answer for: their sets hold "
                "every class",
                stacklevel=4,
            )
        if n_every := int(np.isinf(limits).sum()) - n_heavy:
            sets = f"{n_every} of {table.n} sets hold every class"
            warn(zeros_text(self.calibration.scores, len(self.calibration.scores), sets), stacklevel=4)
        return limits

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        own = row_weights(table, self.rule.by)  # type: ignore[attr-defined]
        values: np.ndarray = self.calibration.p_values(scores, own[:, None])
        return values


def row_weights(table: LogitTable, by: Any) -> np.ndarray:
    """(n,) the weights of the rows: an attribute, or a function of the table."""
    if callable(by):
        values = by(table)
    elif by in (table.attributes or {}):
        values = (table.attributes or {})[by]
    else:
        known = ", ".join(table.attributes or {}) or "no attributes"
        raise ValueError(
            f"by = {by!r} gives no weights; this table has {known}: name one, or give a function of a table"
        )
    weights = np.asarray(values, dtype=np.float64)
    if weights.shape != (table.n,) or not ((weights >= 0) & (weights <= HEAVIEST)).all():
        raise ValueError(
            f"weights by {by!r} must be numbers from 0 to {HEAVIEST:g}, one for each of the {table.n} rows"
        )
    return weights


@dataclass(frozen=True)
class Weighted(ScoredRule):
    r"""Conformal sets for rows of another distribution than those it is fitted on: covariate shift.

    $$q(x) = \text{smallest score with } \sum_{i : s_i \le q} w(x_i) \ge
    \mathrm{confidence} \cdot \Big(\sum_i w(x_i) + w(x)\Big)$$

    w is the density ratio of new rows to fitting rows: an attribute of both tables, by default "weight", or a function of a
    table. A row that weighs more than the fitting rows can answer for gets every class: it warns.

    Tibshirani et al. 2019. (TorchCP 1.2.1 sorts weights and scores each by themselves, so its limits are others.)
    """

    title = "Weighted sets (covariate shift)"
    formulation = "average error"
    promise = (
        "the label of a row of the shifted data is in the set with probability `confidence`, if the weights are right"
    )
    elsewhere = ("TorchCP", "MAPIE")
    fitted_kind = FittedWeighted

    by: str = knob(
        "weight", kind="suggestion", choices=("weight", "ratio"), meaning="attribute with the density ratio of a row"
    )
    score: str = score_knob()
    min_size: int = min_size_knob()

    def missing(self, table: LogitTable) -> list[str]:
        has = callable(self.by) or self.by in (table.attributes or {})
        return [*super().missing(table), *([] if has else [f"attributes[{self.by!r}]"])]

    def calibrated(self, score: Score, table: LogitTable) -> Any:
        weights = row_weights(table, self.by)[table.labelled]
        if not weights.sum() > 0:
            raise ValueError(f"weights by {self.by!r} are all 0: none of these rows is like the new ones")
        return WeightedScores.of(row_scores(score, table)[table.labelled], weights)


@dataclass(frozen=True, eq=False, repr=False)
class FittedLabelShift(FittedConformalRule):
    """A limit per class, by the weight that the class has in the shifted data."""

    def limit_at(self, confidence: float) -> np.ndarray:
        scores, ratios = self.calibration
        return np.asarray(scores.limits(confidence * (scores.total + ratios)))

    def warn(self, rule: ConformalRule) -> None:
        scores, ratios = self.calibration
        unlimited = np.isinf(self.limit_at(rule.confidence))
        heavy = rule.confidence * (scores.total + ratios) > scores.total
        if n_heavy := np.count_nonzero(unlimited & heavy):
            warn(f"{n_heavy} of {self.n_classes} classes are in every set: too few rows for their share", stacklevel=4)
        if n_every := np.count_nonzero(unlimited & ~heavy):
            sets = f"{n_every} of {self.n_classes} classes are in every set"
            warn(zeros_text(scores.scores, len(scores.scores), sets), stacklevel=4)

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        calibration, ratios = self.calibration
        values: np.ndarray = calibration.p_values(scores, ratios)
        return values

    def reordered(self, order: np.ndarray) -> Self:
        calibration = self.calibration and (self.calibration[0], self.calibration[1][order])
        return replace(super().reordered(order), calibration=calibration)


@dataclass(frozen=True)
class LabelShift(ScoredRule):
    r"""Conformal sets for rows whose classes are more or less common than in those it is fitted on.

    $$q_j = \text{smallest score with } \sum_{i : s_i \le q} r_{y_i} \ge \mathrm{confidence} \cdot \Big(\sum_i r_{y_i} + r_j\Big),
    \qquad r_j = \frac{\text{share of } j \text{ in new rows}}{\text{share of } j \text{ in the fitting rows}}$$

    `shares` are those of the new rows, one per class; without, all classes are equally common.

    Podkopaev & Ramdas 2021.
    """

    title = "Label-shift sets"
    formulation = "average error"
    promise = (
        "the label of a row of the shifted data is in the set with probability `confidence`, if the shares are right"
    )
    fitted_kind = FittedLabelShift

    shares: tuple[float, ...] | None = None
    score: str = score_knob()
    min_size: int = min_size_knob()

    def calibrated(self, score: Score, table: LogitTable) -> Any:
        _, classes, scores = label_scores(score, table)
        counts = np.bincount(classes, minlength=table.n_classes)
        shares = np.ones(table.n_classes) if self.shares is None else np.asarray(self.shares, dtype=np.float64)
        if (
            shares.shape != (table.n_classes,)
            or not np.isfinite(shares).all()
            or (shares < 0).any()
            or not shares.any()
        ):
            raise ValueError(f"shares = {self.shares!r}; give one number ≥ 0 for each of the {table.n_classes} classes")
        ratios = shares / shares.sum() * len(classes) / np.maximum(counts, 1)
        return WeightedScores.of(scores, ratios[classes]), ratios


@dataclass(frozen=True, eq=False, repr=False)
class FittedVotes(FittedConformalRule):
    """A limit from several drawn labels a row."""

    def limit_at(self, confidence: float) -> float:
        scores, n_samples = self.calibration
        k = math.ceil((len(scores) + n_samples) * exact(confidence))
        return float(scores[k - 1]) if k <= len(scores) else math.inf

    def warn(self, rule: ConformalRule) -> None:
        scores, n_samples = self.calibration
        n_rows = len(scores) // n_samples
        if n_rows < rows_needed(rule.confidence):
            warn(
                f"confidence {rule.confidence:g} needs {rows_needed(rule.confidence)} rows with votes to fit on and there "
                f"are {n_rows}: {EVERY_CLASS}",
                stacklevel=4,
            )
        elif math.isinf(self.limit_at(rule.confidence)):
            warn(zeros_text(scores, len(scores), EVERY_CLASS), stacklevel=4)

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        drawn, n_samples = self.calibration
        below = np.searchsorted(drawn, scores, side="left")
        values: np.ndarray = (n_samples + len(drawn) - below) / (len(drawn) + n_samples)
        return values


@dataclass(frozen=True)
class VoteCalibrated(ScoredRule):
    r"""Conformal sets fitted on labels drawn from the votes of people, where the one written label may be wrong.

    $$q = k\text{-th smallest of all } m\,n \text{ scores of drawn labels}, \qquad
    k = \lceil m (n + 1) \cdot \mathrm{confidence} \rceil$$

    m labels a row are drawn in proportion to its votes, from `seed` and the scores of the row.

    Stutz et al. 2023 (Monte-Carlo conformal prediction: 1 − 2α is proven, about 1 − α is observed).
    """

    title = "Vote-calibrated sets"
    formulation = "average error"
    promise = (
        "a label drawn from the votes is in the set with probability 2·`confidence` − 1, in practice about `confidence`"
    )
    requires = ("labels", "votes")
    fitted_kind = FittedVotes

    n_samples: int = knob(10, low=1, high=100, maximum=10_000, symbol="m", meaning="number of labels drawn for a row")
    score: str = score_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def calibrated(self, score: Score, table: LogitTable) -> Any:
        if table.votes is None:
            raise ValueError("this table has no votes; give LogitTable(..., votes=) how many people chose each class")
        voted = np.flatnonzero(table.votes.sum(1) > 0)
        if not len(voted):
            raise ValueError(f"none of the {table.n} rows has votes; give LogitTable(..., votes=) of some rows")
        scores = [drawn_scores(score, table.rows(voted), self.seed + 1000 * m) for m in range(self.n_samples)]
        return np.sort(np.concatenate(scores)), self.n_samples


def drawn_scores(score: Score, table: LogitTable, seed: int) -> np.ndarray:
    """(n,) the score of one label of every row, drawn in proportion to its votes."""
    found = []
    for rows in table.spans():
        block, votes = Block(table, rows), np.asarray(table.votes)[rows]
        targets = row_draws(block.scores, seed) * votes.sum(1)
        labels = (np.cumsum(votes, axis=1) <= targets[:, None]).sum(1)
        found.append(score.of_labels(block, np.arange(len(labels)), labels))
    return np.concatenate(found)
