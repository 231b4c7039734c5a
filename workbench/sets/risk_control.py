"""Conformal risk control: the smallest sets whose expected loss stays below a level."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import Block, Rule, min_size_knob
from workbench.sets.conformal import FittedLimit, check_promise, label_scores, mask_at_limit, zeros_text
from workbench.sets.marginal import score_knob, scored
from workbench.sets.prevalence import checked_importance
from workbench.sets.scores import Score
from workbench.sets.weighted import WeightedScores
from workbench.tables import LogitTable
from workbench.tables.groups import classes_by
from workbench.tables.map_reduce import over_parts
from workbench.warning_capture import warn


class Events(NamedTuple):
    """Losses of all rows: each is paid unless the limit reaches its score."""

    scores: np.ndarray
    losses: np.ndarray
    largest: float  # that one row can pay


@dataclass(frozen=True)
class Risk:
    """A loss of a row that falls as its set grows."""

    events: Callable[[RiskControl, Score, LogitTable], Events]
    requires: tuple[str, ...] = ()  # fields of the table, beside labels


def missing_labels(rule: RiskControl, score: Score, table: LogitTable) -> Events:
    """The share of the labels of a row that are missing."""
    rows, _, scores = label_scores(score, table)
    return Events(scores, label_shares(table, rows), 1.0)


def missing_costs(rule: RiskControl, score: Score, table: LogitTable) -> Events:
    """The costs of the missing labels; 1 each where none are given."""
    _, classes, scores = label_scores(score, table)
    costs = np.ones(table.n_classes) if rule.costs is None else checked_importance(rule.costs, table.n_classes)
    return Events(scores, costs[classes], float(costs.sum() if table.many_labels else costs.max()))


def missing_groups(rule: RiskControl, score: Score, table: LogitTable) -> Events:
    """The share of the labels of a row without a class of their group in the set."""
    rows, _ = table.positives()
    scores = np.concatenate(list(over_parts(table, group_scores_of, score, classes_by(table, "groups")[0])))
    return Events(scores, label_shares(table, rows), 1.0)


def label_shares(table: LogitTable, rows: np.ndarray) -> np.ndarray:
    """One over the number of labels of the row of each label."""
    shares: np.ndarray = 1 / np.bincount(rows, minlength=table.n)[rows]
    return shares


RISKS = {
    "false negatives": Risk(missing_labels),
    "cost": Risk(missing_costs),
    "wrong group": Risk(missing_groups, requires=("groups",)),
}


@dataclass(frozen=True)
class RiskControl(Rule):
    r"""The smallest sets whose expected loss stays below a level: conformal risk control.

    $$q = \text{smallest limit with } \frac{n \hat R(q) + B}{n + 1} \le \mathrm{level}$$

    The loss of a row falls as its set grows: the share of its labels that are missing ("false negatives", for many labels),
    the `costs` of the missing labels ("cost"), or 1 if no class of the label's group is in the set ("wrong group"). B is the
    largest loss.

    >>> table = LogitTable.from_probabilities([[0.7, 0.3]] * 19 + [[0.4, 0.6]], labels=[0] * 20)
    >>> RiskControl(level=0.1).fit(table).threshold
    0.7

    Angelopoulos et al. 2024.
    """

    title = "Risk control"
    formulation = "average risk"
    guarantee = "risk"
    promise = "the expected loss of a row is at most `level`"
    requires = ("labels",)
    elsewhere = ("MAPIE",)

    level: float = knob(
        0.1, low=0.01, high=0.5, minimum=1e-6, maximum=math.inf, meaning="largest expected loss of a row"
    )
    loss: str = knob("false negatives", choices=tuple(RISKS), meaning="loss of a row")
    costs: tuple[float, ...] | None = None
    score: str = score_knob()
    min_size: int = min_size_knob()

    def missing(self, table: LogitTable) -> list[str]:
        lacking = [name for name in RISKS[self.loss].requires if getattr(table, name) is None]
        return list(dict.fromkeys([*super().missing(table), *scored(self.score).missing(table), *lacking]))

    def _fit(self, table: LogitTable) -> FittedLimit:
        check_promise(table)
        score = scored(self.score).scorer(table)
        limit = self._limit(RISKS[self.loss].events(self, score, table), int(np.count_nonzero(table.labelled)))
        return FittedLimit(self, score.as_threshold(limit), table.n_classes, table.class_names, score, limit)

    def _limit(self, events: Events, n: int) -> float:
        """The smallest limit that keeps the corrected risk of n rows; infinite, with a warning, if none does."""
        paid = WeightedScores.of(events.scores, events.losses)
        allowed = self.level * (n + 1) - events.largest  # of the losses of all rows together
        if allowed < 0:
            limit = math.inf
        elif paid.total <= allowed:
            limit = float(paid.scores[0])
        else:
            limit = float(paid.limits(paid.total - allowed)[0])
        if math.isinf(limit) and allowed >= 0:
            warn(zeros_text(events.scores, len(events.scores), "every set holds every class"), stacklevel=4)
        elif math.isinf(limit):
            warn(
                f"a risk of {self.level:g} cannot be promised with {n} rows and losses up to {events.largest:g}: "
                "every set holds every class",
                stacklevel=4,
            )
        return limit

    def mask(self, fitted: Any, block: Block) -> np.ndarray:
        return mask_at_limit(self, fitted, block)


def group_scores_of(part: LogitTable, first_row: int, score: Score, codes: np.ndarray) -> np.ndarray:
    """The smallest score of a class of the group of every label."""
    rows, classes = part.positives()
    found = np.empty(len(rows))
    for span in part.spans():
        inside = slice(*np.searchsorted(rows, (span.start, span.stop)))
        of_classes = score.of_classes(Block(part, span))[rows[inside] - span.start]
        found[inside] = np.where(codes == codes[classes[inside], None], of_classes, np.inf).min(axis=1)
    return found
