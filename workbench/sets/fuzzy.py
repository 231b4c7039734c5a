"""A conformal rule whose classes borrow calibration rows from classes that are like them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from workbench.exact_arithmetic import exact
from workbench.knobs import knob
from workbench.sets.adaptive import seed_knob
from workbench.sets.base import Block, min_size_knob
from workbench.sets.clustered import draws_of
from workbench.sets.conformal import ConformalRule, FittedConformalRule, label_scores, rows_needed
from workbench.sets.marginal import ScoredRule, score_knob
from workbench.sets.scores import Score
from workbench.tables import LogitTable
from workbench.tables.groups import known_class_counts
from workbench.tables.map_reduce import over_parts
from workbench.tables.ordering import column_order, some
from workbench.warning_capture import warn

PROJECTIONS = ("prevalence", "quantile")  # of a class on the line


@dataclass(frozen=True, eq=False)
class FuzzyCalibration:
    """Scores of labels in rising order, which every class weighs in its own way, and held-out ones, which set the level."""

    scores: np.ndarray
    classes: np.ndarray  # of the scores
    positions: np.ndarray | None  # (L,) of the classes on a line; None: by the quantile of their scores
    bandwidth: float
    largest: float  # score that a class of positive probability can have
    held_out: tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, classes and scores of the held-out labels
    names: tuple[str, ...]  # (L,)

    def class_positions(self, confidence: float) -> np.ndarray:
        """(L,) where the classes lie on the line; one without rows lies at the largest score."""
        if self.positions is not None:
            return self.positions
        finite = np.minimum(self.scores, self.scores[np.isfinite(self.scores)].max(initial=0))
        positions = np.full(len(self.names), finite.max(initial=0))
        for j in np.unique(self.classes):
            positions[j] = np.quantile(finite[self.classes == j], confidence)
        return positions

    @cached_property
    def _present(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes that have scores, and which of them each score is of."""
        present, codes = np.unique(self.classes, return_inverse=True)
        return present, codes

    def cumulated(self, j: int, positions: np.ndarray) -> np.ndarray:
        """(n,) the share of the scores up to each one, as class j weighs them; the new row weighs 1 and lies at infinity."""
        precision = (np.count_nonzero(self.classes == j) + 1) / self.bandwidth
        present, codes = self._present
        weights = np.exp(-precision / 2 * (positions[present] - positions[j]) ** 2)[codes]
        total = np.cumsum(weights)
        return total / (total[-1] + 1) if len(total) else total

    def shares(self, j: int, positions: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The share of the scores that are at most some of class j; 1 at infinity."""
        place = np.searchsorted(self.scores, scores, side="right")
        shares: np.ndarray = np.append(0, self.cumulated(j, positions))[place]
        return np.where(np.isinf(scores), 1.0, shares)

    def held_out_shares(self, confidence: float) -> np.ndarray:
        """The share of every held-out row, rising; of many labels the largest."""
        (rows, classes, scores), positions = self.held_out, self.class_positions(confidence)
        of_labels = np.empty(len(rows))
        for j in np.unique(classes):
            of_labels[classes == j] = self.shares(j, positions, scores[classes == j])
        _, codes = np.unique(rows, return_inverse=True)
        of_rows = np.zeros(codes.max(initial=-1) + 1)
        np.maximum.at(of_rows, codes, of_labels)
        return np.sort(of_rows)

    def level(self, confidence: float) -> float:
        """The share up to which classes are let in: the conformal quantile of the held-out rows."""
        shares = self.held_out_shares(confidence)
        k = math.ceil((len(shares) + 1) * exact(confidence))
        return float(shares[k - 1]) if k <= len(shares) else math.inf

    def limits(self, confidence: float) -> np.ndarray:
        """(L,) the largest score of each class whose share is at most the level; infinite if the level is 1."""
        level, positions = self.level(confidence), self.class_positions(confidence)
        if level >= 1:
            return np.full(len(self.names), np.inf)
        above = np.minimum(np.append(self.scores, self.largest), self.largest)
        first = [
            np.searchsorted(self.cumulated(j, positions), level * (1 + 1e-12), "right") for j in range(len(self.names))
        ]
        below: np.ndarray = np.nextafter(above[first], -np.inf)
        return below


@dataclass(frozen=True, eq=False, repr=False)
class FittedFuzzy(FittedConformalRule):
    """One limit per class, from weighted quantiles of all scores."""

    def limit_at(self, confidence: float) -> np.ndarray:
        limits: np.ndarray = self.calibration.limits(confidence)
        return limits

    def warn(self, rule: ConformalRule) -> None:
        limits = self.limit_at(rule.confidence)
        n_held_out = len(self.calibration.held_out_shares(rule.confidence))
        if np.isinf(limits).all():
            warn(
                f"confidence {rule.confidence:g} needs {rows_needed(rule.confidence)} held-out rows whose label has a positive "
                f"probability, and {n_held_out} were held out: every set holds every class",
                stacklevel=4,
            )
            return
        unlimited = np.flatnonzero(limits >= np.nextafter(self.calibration.largest, -np.inf))
        if len(unlimited):
            names = some([self.calibration.names[j] for j in unlimited])
            warn(
                f"{len(unlimited)} of {self.n_classes} classes ({names}) have too few rows like theirs to fit on: they are in "
                "every set; a larger bandwidth borrows from more classes",
                stacklevel=4,
            )

    def calibration_rows(self) -> dict[str, int]:
        return {} if self.calibration is None else {"": len(np.unique(self.calibration.held_out[0]))}

    def p_values(self, table: LogitTable) -> np.ndarray:
        fitted, calibration = self.for_table(table), self.calibration
        order = np.arange(self.n_classes)
        if fitted is not self:
            order = column_order(self.class_names, table.class_names)  # type: ignore[arg-type]
        scores = np.concatenate([fitted.score.of_classes(Block(table, rows)) for rows in table.spans()])
        held_out = calibration.held_out_shares(self.rule.confidence)
        positions = calibration.class_positions(self.rule.confidence)
        shares = np.stack([calibration.shares(j, positions, scores[:, at]) for at, j in enumerate(order)], axis=1)
        below = np.searchsorted(held_out, shares * (1 - 1e-12), side="left")
        values: np.ndarray = (1 + len(held_out) - below) / (len(held_out) + 1)
        return values


@dataclass(frozen=True)
class Fuzzy(ScoredRule):
    r"""A limit per class from all rows, weighed by how much their class is like it: between marginal and class-conditional.

    $$\Gamma(x) = \{j : F_j(s(x, j)) \le u\}, \qquad
    F_j(s) = \frac{\sum_{i : s_i \le s} w_j(y_i)}{\sum_i w_j(y_i) + 1}, \quad
    w_j(y) = \exp\Big(-\frac{(n_j + 1)(\Pi_y - \Pi_j)^2}{2 \cdot \mathrm{bandwidth}}\Big)$$

    Π places the classes on a line: by their number of training rows, as a share of the largest ("prevalence"), or by the
    `confidence` quantile of their scores ("quantile"). n_j is the number of calibration rows of class j: the more there are,
    the less a class borrows. u is the ⌈(m+1)·confidence⌉-th smallest value of F among m held-out rows, so that the promise
    holds on average whatever the weights. With a large bandwidth all classes have one limit, with a small one each its own.

    Ding, Fermanian & Salmon 2025, App. A (fuzzy classwise, reconformalised). The authors also move each class by a random
    number of ±0.01: `jitter=0.01`.
    """

    title = "Fuzzy class-conditional sets"
    formulation = "average error"
    fitted_kind = FittedFuzzy

    bandwidth: float = knob(
        0.01,
        low=1e-6,
        high=10,
        minimum=1e-300,
        maximum=math.inf,
        scale="log",
        meaning="variance of the kernel between classes for a class without rows",
    )
    projection: str = knob("prevalence", choices=PROJECTIONS, meaning="line on which classes are compared")
    jitter: float = knob(0.0, low=0, high=0.01, maximum=1, meaning="largest random move of a class on the line")
    held_out: float = knob(
        0.2, low=0.1, high=0.9, minimum=0.01, maximum=0.99, meaning="share of the rows that only sets the level"
    )
    score: str = score_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def missing(self, table: LogitTable) -> list[str]:
        counts = self.projection == "prevalence" and table.class_counts is None
        return [*super().missing(table), *(["class_counts"] if counts else [])]

    def calibrated(self, score: Score, table: LogitTable) -> Any:
        rows, classes, scores = label_scores(score, table)
        held = np.concatenate(list(over_parts(table, draws_of, self.seed)))[rows] < self.held_out
        order = np.lexsort((classes[~held], scores[~held]))
        return FuzzyCalibration(
            scores[~held][order],
            classes[~held][order],
            self._positions(table),
            self.bandwidth,
            score.largest,
            (rows[held], classes[held], scores[held]),
            table.named_classes(),
        )

    def _positions(self, table: LogitTable) -> np.ndarray | None:
        if self.projection == "quantile":
            return None
        counts = known_class_counts(table)
        moves = np.random.default_rng(self.seed).uniform(-self.jitter, self.jitter, table.n_classes)
        positions: np.ndarray = counts / max(counts.max(), 1) + moves
        return positions
