"""Conformal rules with one limit per group: of classes, of rows, or of classes that are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from workbench.exact_arithmetic import exact
from workbench.knobs import knob
from workbench.sets.base import Block, min_size_knob
from workbench.sets.conformal import (
    Calibration,
    ConformalRule,
    FittedConformalRule,
    label_scores,
    mask_at_limit,
    row_scores,
    rows_needed,
)
from workbench.sets.marginal import ScoredRule, score_knob
from workbench.sets.scores import Score, falling_to, label_ranks
from workbench.tables import LogitTable
from workbench.tables.groups import classes_by, quartiles, rows_by, values_by
from workbench.tables.map_reduce import over_parts
from workbench.tables.ordering import some
from workbench.warning_capture import warn

OF_CLASSES = ("label", "groups", "shots")  # groups that the label decides; all others are of rows


@dataclass(frozen=True, eq=False, repr=False)
class FittedGroups(FittedConformalRule):
    """A conformal rule with one limit per group of classes, or per group of rows."""

    def limit_at(self, confidence: float) -> Any:
        limits, codes = self.calibration.limits(confidence), self.calibration.class_codes
        return limits if codes is None else limits[codes]

    def at(self, confidence: float) -> Self:
        fitted = super().at(confidence)
        if self.calibration.class_codes is not None:
            return fitted
        return replace(fitted, threshold=dict(zip(self.calibration.names, fitted.threshold.tolist(), strict=True)))

    def too_few(self, rule: ConformalRule, groups: np.ndarray) -> str:
        return (
            f"{len(groups)} of {len(self.calibration.names)} groups ({self._named(groups)}) have fewer than "
            f"{rows_needed(rule.confidence)} rows to fit on, which confidence {rule.confidence:g} needs: {self.who(groups)}"
        )

    def who(self, groups: np.ndarray) -> str:
        if self.calibration.class_codes is None:
            return f"sets of rows of {self._named(groups)} hold every class"
        return f"{self._named(groups)} enter every set"

    def calibration_rows(self) -> dict[str, int]:
        rows, codes = super().calibration_rows(), self.calibration.class_codes
        with_classes = range(len(rows)) if codes is None else set(codes.tolist())
        return {name: n for group, (name, n) in enumerate(rows.items()) if group in with_classes}

    def _named(self, groups: np.ndarray) -> str:
        return some([self.calibration.names[group] for group in groups])

    def to_make_sets(self) -> FittedConformalRule:
        return self

    def row_values(self, table: LogitTable) -> np.ndarray | None:
        if self.calibration.class_codes is not None:
            return None
        codes, unseen = self.groups_of(table)
        if unseen:
            warn(f"{some(unseen)} had no rows to fit on: sets of rows of {some(unseen)} hold every class", stacklevel=4)
        of_rows: np.ndarray = np.append(self.limit, np.inf)[codes]
        return of_rows

    def groups_of(self, table: LogitTable) -> tuple[np.ndarray, list[str]]:
        """(n,) the group of each row, -1 for one without rows to fit on; and the names of those."""
        codes, names = rows_by(table, named(self.rule.by, table), self.calibration.cuts)  # type: ignore[attr-defined]
        known = {name: j for j, name in enumerate(self.calibration.names)}
        return np.array([known.get(name, -1) for name in names])[codes], [name for name in names if name not in known]

    def reordered(self, order: np.ndarray) -> Self:
        codes = self.calibration.class_codes
        if codes is None:
            return super().reordered(order)
        return replace(super().reordered(order), calibration=replace(self.calibration, class_codes=codes[order]))

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        values, calibration = np.ones(scores.shape), self.calibration
        if calibration.class_codes is not None:
            for j, group in enumerate(calibration.class_codes):
                values[:, j] = calibration.p_values(scores[:, j], group)
            return values
        codes, _ = self.groups_of(table)
        for group in np.unique(codes[codes >= 0]):
            values[codes == group] = calibration.p_values(scores[codes == group], group)
        return values


@dataclass(frozen=True, eq=False)
class RowGroups(Calibration):
    """Scores of labels by group of rows."""

    cuts: np.ndarray | None = None  # between the bins of a number


def named(by: Any, table: LogitTable) -> Any:
    """The name or the values of the groups of rows; `by` may be a function of the table."""
    return by(table) if callable(by) else by


@dataclass(frozen=True)
class Mondrian(ScoredRule):
    r"""One limit per group, so that the promise holds inside each group.

    $$\Gamma(x) = \{j : s(x, j) \le q_{g}\}, \qquad q_g = k_g\text{-th smallest score of the labels of group } g$$

    `by` names the groups: "label" (every class by itself), "groups" (the genus or superclass of the label), "shots", any
    attribute of the rows ("organ"), or a function of a table that gives one value per row. A group with fewer than
    1/(1 − confidence) − 1 rows can only keep the promise by every class: it warns.

    >>> table = LogitTable.from_probabilities([[0.9, 0.1]] * 9 + [[0.6, 0.4]] * 9, [0] * 9 + [1] * 9,
    ...     attributes={"organ": ["leaf"] * 9 + ["bark"] * 9})
    >>> Mondrian(0.9, by="organ").fit(table).threshold
    {'bark': 0.4, 'leaf': 0.9}

    Vovk, Gammerman & Shafer 2005, Sec. 4.5.
    """

    title = "Mondrian sets"
    formulation = "average error"
    guarantee = "group coverage"
    promise = "the label is in the set with probability `confidence`, inside each group"
    elsewhere = ("crepes",)
    fitted_kind = FittedGroups

    by: str = knob("label", kind="suggestion", choices=OF_CLASSES, meaning="groups that are covered each by itself")
    score: str = score_knob()
    min_size: int = min_size_knob()

    def missing(self, table: LogitTable) -> list[str]:
        needed = {"groups": "groups", "shots": "class_counts"}.get(self.by if isinstance(self.by, str) else "")
        return [*super().missing(table), *([needed] if needed and getattr(table, needed) is None else [])]

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        if self.by in OF_CLASSES:
            class_codes, names = classes_by(table, self.by)
            _, classes, scores = label_scores(score, table)
            return Calibration.grouped(scores, class_codes[classes], names, class_codes)
        by, labelled = named(self.by, table), table.labelled
        codes, names = rows_by(table, by)
        groups = RowGroups.grouped(row_scores(score, table)[labelled], codes[labelled], names)
        values = values_by(table, by)
        return groups if values is None else replace(groups, cuts=quartiles(values))


@dataclass(frozen=True, eq=False, repr=False)
class FittedRC3P(FittedGroups):
    """A limit and a largest rank per class."""

    largest_rank: np.ndarray | None = None  # (L,)

    def who(self, groups: np.ndarray) -> str:
        return f"{super().who(groups)} in which their rank allows it"

    def calibration_rows(self) -> dict[str, int]:
        return {}

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        raise ValueError("RC3P has a limit and a rank per class, and no p-values; fit ClassConditionalLAC or Clustered")

    def limit_at(self, confidence: float) -> Any:
        return self.calibration.limits_and_ranks(confidence)[0]

    def at(self, confidence: float) -> Self:
        return replace(super().at(confidence), largest_rank=self.calibration.limits_and_ranks(confidence)[1])

    def reordered(self, order: np.ndarray) -> Self:
        assert self.largest_rank is not None
        return replace(super().reordered(order), largest_rank=self.largest_rank[order])


@dataclass(frozen=True, eq=False)
class RankedCalibration(Calibration):
    """Scores of labels by class, and the ranks of labels by class, each rising."""

    ranks_of_labels: np.ndarray | None = None

    def limits_and_ranks(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """(L,) the limit at confidence + ε, and the smallest k whose top-k error ε is below 1 − confidence."""
        assert self.ranks_of_labels is not None
        n_classes, share = len(self.names), exact(confidence)
        limits, largest = np.full(n_classes, np.inf), np.full(n_classes, n_classes)
        for j, n in enumerate(self.counts.tolist()):
            ranks = self.ranks_of_labels[self.offsets[j] : self.offsets[j + 1]]
            inside = math.floor(n * share)  # of the rows; one more has a top-k error below α
            if inside >= n:
                continue
            largest[j] = ranks[inside]
            missed = n - int(np.searchsorted(ranks, ranks[inside], side="right"))
            k = math.ceil((n + 1) * (share + exact(missed) / n))
            limits[j] = self.of_group(j)[k - 1] if k <= n else np.inf
        return limits, largest


@dataclass(frozen=True)
class RC3P(ScoredRule):
    r"""Class-conditional sets that only hold a class where it ranks high enough.

    $$\Gamma(x) = \{j : s(x, j) \le q_j(1 - \alpha_j) \text{ and } \mathrm{rank}_j(x) \le k_j\}$$

    k_j is the smallest k whose top-k error ε_j on the rows of class j is below α = 1 − confidence, and α_j = α − ε_j. Sets
    are smaller than class-conditional ones; a class without enough rows is in every set as far as its rank allows.

    Shi et al. 2024.
    """

    title = "Rank-calibrated sets (RC3P)"
    cost = "a few passes in float64"
    formulation = "average error"
    guarantee = "class coverage"
    promise = "the label is in the set with probability `confidence`, for each class"
    elsewhere = ("TorchCP",)
    fitted_kind = FittedRC3P

    score: str = score_knob()
    min_size: int = min_size_knob()

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        _, classes, scores = label_scores(score, table)
        ranks = np.concatenate(list(over_parts(table, label_ranks_of)))
        plain = Calibration.grouped(scores, classes, table.named_classes(), np.arange(table.n_classes))
        sorted_ranks = ranks[np.lexsort((ranks, classes))]
        return RankedCalibration(plain.scores, plain.offsets, plain.names, plain.class_codes, sorted_ranks)

    def mask(self, fitted: Any, block: Block) -> np.ndarray:
        p, ranks = block.precise, fitted.largest_rank
        deepest = ranks.max(where=ranks < p.shape[1], initial=0)
        every_rank = np.full((len(p), 1), -1.0)
        first_outside = np.append(falling_to(p, deepest + 1), every_rank, axis=1)
        places = np.where(ranks < p.shape[1], ranks, deepest + 1)
        mask: np.ndarray = mask_at_limit(self, fitted, block) & (p > first_outside[:, places])
        return mask


def label_ranks_of(part: LogitTable, first_row: int) -> np.ndarray:
    """The ranks of all labels of some rows."""
    rows, classes = part.positives()
    ranks = np.empty(len(rows), np.int64)
    for span in part.spans():
        inside = slice(*np.searchsorted(rows, (span.start, span.stop)))
        ranks[inside] = label_ranks(Block(part, span).precise, rows[inside] - span.start, classes[inside])
    return ranks


@dataclass(frozen=True, eq=False, repr=False)
class FittedInterpolation(FittedGroups):
    """Limits between those of the classes and that of all rows."""

    def calibration_rows(self) -> dict[str, int]:
        return {}

    def limit_at(self, confidence: float) -> Any:
        calibration, weight = self.calibration, self.rule.weight  # type: ignore[attr-defined]
        together = Calibration.grouped(calibration.scores, None, ("",))
        of_classes, of_all = calibration.limits(confidence), float(together.limits(confidence)[0])
        finite = calibration.scores[np.isfinite(calibration.scores)]
        largest = self.score.largest if math.isfinite(self.score.largest) else float(finite.max(initial=-np.inf))
        of_classes = np.where(np.isinf(of_classes), largest, of_classes)
        return weight * of_classes + (1 - weight) * of_all if weight else np.full(len(of_classes), of_all)

    def p_values_of(self, scores: np.ndarray, table: LogitTable) -> np.ndarray:
        raise ValueError("interpolated limits promise nothing and have no p-values; fit LAC or ClassConditionalLAC")

    def warn(self, rule: ConformalRule) -> None:
        if np.isinf(self.limit_at(rule.confidence)).all():
            together = Calibration.grouped(self.calibration.scores, None, ("",))
            marginal = FittedConformalRule(rule, None, self.n_classes, None, self.score, np.inf, together)
            marginal.warn(rule)


@dataclass(frozen=True)
class InterpQ(ScoredRule):
    r"""A limit per class between that of the class and that of all rows.

    $$q_j = \mathrm{weight} \cdot q_j^{\text{class}} + (1 - \mathrm{weight}) \cdot q$$

    Where a class has too few rows, the largest score stands for its limit. Marginal and class-conditional promises are both
    approached; neither is proven.

    Ding, Fermanian & Salmon 2025, Sec. 3.2 (Interp-Q).
    """

    title = "Interpolated sets (Interp-Q)"
    formulation = "average error"
    guarantee = "nothing"
    promise = "nothing proven: between coverage on average and coverage of each class"
    fitted_kind = FittedInterpolation

    weight: float = knob(0.9, low=0, high=1, meaning="weight of the limits of the classes against that of all rows")
    score: str = score_knob()
    min_size: int = min_size_knob()

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        _, classes, scores = label_scores(score, table)
        return Calibration.grouped(scores, classes, table.named_classes(), np.arange(table.n_classes))
