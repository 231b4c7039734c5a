"""Sets that answer with a genus: a species where it is clear, the genus where it is not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.knobs import knob
from workbench.sets.base import Block, min_size_knob, take_rows
from workbench.sets.marginal import ScoredRule, score_knob
from workbench.sets.scores import Score
from workbench.tables import LogitTable
from workbench.tables.groups import GroupedColumns, classes_by


@dataclass(frozen=True, eq=False)
class NodeScore(Score):
    """The score at which a class enters the union of nodes that covers all classes of at most that score."""

    leaf: Score  # of single classes
    codes: np.ndarray  # (L,) the group of every class
    group_names: tuple[str, ...]
    n_nodes: int

    @cached_property
    def columns(self) -> GroupedColumns:
        """The columns of each group."""
        return GroupedColumns.of(self.codes)

    def of_classes(self, block: Block) -> np.ndarray:
        scores = self.leaf.of_classes(block)
        first, second = self._smallest_two(scores)
        return self._entering(scores, second[:, self.codes], scores, first)

    def of_labels(self, block: Block, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
        scores = take_rows(self.leaf.of_classes(block), rows)
        first = self.columns.reduced(np.minimum, scores)
        groups, places = self.codes[classes], np.arange(self.columns.sizes.max())
        inside = places < self.columns.sizes[groups, None]
        members = self.columns.order[np.where(inside, self.columns.starts[groups, None] + places, 0)]
        second = order_statistic(np.where(inside, np.take_along_axis(scores, members, 1), np.inf), 1)
        own = scores[np.arange(len(rows)), classes][:, None]
        return self._entering(own, second, scores, first)[:, 0]

    def mask(self, block: Block, limit: Any) -> np.ndarray:
        if np.ndim(limit) == 1:  # one limit per class
            return super().mask(block, limit)
        mask = self.leaf.mask(block, limit)
        many = np.flatnonzero(
            np.count_nonzero(mask, axis=1) > self.n_nodes
        )  # leaves; of groups, those with several are whole
        in_groups = self.columns.reduced(np.add, mask[many].astype(np.int32))
        mask[many] |= (in_groups > 1)[:, self.codes]
        mask[many[np.count_nonzero(in_groups, axis=1) > self.n_nodes]] = True
        return mask

    def _entering(self, own: np.ndarray, second: np.ndarray, scores: np.ndarray, first: np.ndarray) -> np.ndarray:
        """When classes enter, from their scores, the second smallest of their groups, and the scores of classes and groups."""
        whole_group = np.maximum(second, order_statistic(scores, self.n_nodes))
        entering: np.ndarray = np.minimum(np.minimum(own, whole_group), order_statistic(first, self.n_nodes))
        return entering

    def _smallest_two(self, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(rows, G) the smallest and the second smallest score of each group; infinite where there is one class."""
        first = self.columns.reduced(np.minimum, scores)
        smallest = scores == first[:, self.codes]
        others = self.columns.reduced(np.minimum, np.where(smallest, np.inf, scores))
        return first, np.where(self.columns.reduced(np.add, smallest.astype(np.int64)) > 1, first, others)

    def as_threshold(self, limit: Any) -> Any:
        return self.leaf.as_threshold(limit)

    def reordered(self, order: np.ndarray) -> Self:
        return replace(self, leaf=self.leaf.reordered(order), codes=self.codes[order])

    @property
    def per_class(self) -> bool:
        return True

    @property
    def class_groups(self) -> tuple[np.ndarray, tuple[str, ...]]:
        return self.codes, self.group_names


def order_statistic(values: np.ndarray, k: int) -> np.ndarray:
    """(rows, 1) the (k + 1)-th smallest value of each row; infinite where there are not so many."""
    if k >= values.shape[1]:
        return np.full((len(values), 1), np.inf)
    statistic: np.ndarray = np.partition(values, k, axis=1)[:, k, None]
    return statistic


@dataclass(frozen=True)
class Hierarchical(ScoredRule):
    r"""The classes that the promise needs, written with few names: single classes if they are few, else whole groups.

    $$\Gamma(x) = \mathrm{cover}\{j : s(x, j) \le q\}, \qquad q \text{ conformal for the covers}$$

    The classes of at most a score are answered as they are if they are at most `n_nodes`. If they are more, each group (genus,
    superclass) with one of them answers with that class and each with several answers with the whole group. If these nodes are
    still more than `n_nodes`, the answer is every class. With `n_nodes` 1 it is the smallest node that holds them: a species, a
    genus, or everything. Covers grow with the score, so that the promise is exact for them, and not only for what they cover.

    Groups are those of the table that it is fitted on (`groups`). `sets.sizes` counts classes, `sets.node_counts` names;
    `sets.nodes(i)` gives them.

    >>> p = [[0.5, 0.4, 0.1, 0.0], [0.9, 0.04, 0.03, 0.03]] * 5
    >>> names, genera = ["red oak", "white oak", "field maple", "sugar maple"], ["oak", "oak", "maple", "maple"]
    >>> table = LogitTable.from_probabilities(p, labels=[1, 0] * 5, class_names=names, groups=genera)
    >>> sets = Hierarchical(0.8, n_nodes=1).fit(table)(table)
    >>> sets.nodes(0), sets.nodes(1)
    (['oak'], ['red oak'])

    A split conformal rule on nested sets (Gupta, Kuchibhotla & Ramdas 2022); answers of few nodes as in Mortier et al. 2025
    (arXiv 2501.19038: representation complexity).
    """

    title = "Hierarchical sets (class or genus)"
    formulation = "average error"
    promise = (
        "the label is in the set with probability `confidence`, on average over rows; a set has at most `n_nodes` names"
    )
    requires = ("labels", "groups")

    n_nodes: int = knob(1, low=1, high=10, maximum=math.inf, meaning="largest number of classes or groups in an answer")
    score: str = score_knob()
    min_size: int = min_size_knob()

    def scorer(self, table: LogitTable) -> Score:
        return NodeScore(super().scorer(table), *classes_by(table, "groups"), self.n_nodes)
