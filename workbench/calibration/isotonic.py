"""One rising function for the probability of every class: isotonic regression and Venn–Abers predictors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from workbench.calibration.base import FittedRecalibrator, Recalibrator, label_shares, mean_loss
from workbench.progress import slow
from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts

COLUMNS = 2**25  # probabilities that are held at one time: a larger table is read once for every so many
LEAST = 1e-12  # probability, so that its logarithm is finite


class ClassMap(Protocol):
    """The new probability of one class, as a function of its probability."""

    def __call__(self, probabilities: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class ClasswiseRecalibrator(Recalibrator):
    """The base of recalibrators that ask of each class by itself "is it this one?"; under softmax the answers are normalised."""

    own_share: ClassVar[float] = 0.0  # what the probability of the network weighs, in rows

    def _fit(self, table: LogitTable) -> FittedRecalibrator:
        columns = _columns(table)
        with slow(f"{self.title} calibration", "class", total=table.n_classes) as bar:
            maps = []
            for probabilities, shares in columns:
                maps.append(self.class_map(Steps.of(probabilities, shares)))
                bar.update()
        weight = self.own_share / (table.n + self.own_share)
        fitted = FittedMaps(
            self, tuple(maps), weight, before=mean_loss(table), after=np.nan, class_names=table.class_names
        )
        return replace(fitted, after=mean_loss(fitted(table)))

    @abstractmethod
    def class_map(self, steps: Steps) -> ClassMap:
        """The function of one class."""


@dataclass(frozen=True, eq=False)
class FittedMaps(FittedRecalibrator):
    """A rising function for the probability of each class; `weight` is that of the probability as it was."""

    maps: tuple[ClassMap, ...]
    weight: float

    def __call__(self, table: LogitTable) -> LogitTable:
        self.check(table)
        if len(self.maps) != table.n_classes:
            raise ValueError(f"the maps were fitted on {len(self.maps)} classes and the table has {table.n_classes}")
        order = self.order(table.class_names)
        maps = self.maps if order is None else [self.maps[j] for j in order]
        scores = np.empty(table.scores.shape, table.dtype)
        for rows in table.spans():
            given = table.probabilities(rows).astype(np.float64)
            mapped = np.stack([of_class(given[:, j]) for j, of_class in enumerate(maps)], axis=1)
            scores[rows] = self._scores((1 - self.weight) * mapped + self.weight * given, table.link)
        return replace(table, scores=scores)

    @staticmethod
    def _scores(probabilities: np.ndarray, link: str) -> np.ndarray:
        """Scores whose probabilities these are, normalised under softmax."""
        if link == "softmax":
            odds = probabilities / probabilities.sum(1, keepdims=True)
        else:
            odds = probabilities / np.maximum(1 - probabilities, LEAST)
        scores: np.ndarray = np.log(np.maximum(odds, LEAST))
        return scores


class Steps(NamedTuple):
    """Distinct probabilities in rising order, how many rows have each, and how many of those are right."""

    values: np.ndarray
    counts: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, probabilities: np.ndarray, right: np.ndarray) -> Steps:
        """The steps of some rows; `right` is 1 where the class is the label, a share where labels share a row."""
        values, places = np.unique(probabilities, return_inverse=True)
        return cls(values, np.bincount(places).astype(np.float64), np.bincount(places, right))

    def isotonic(self) -> np.ndarray:
        """The rising function that is nearest to the share of right rows, at every step."""
        from scipy.optimize import isotonic_regression

        fitted: np.ndarray = isotonic_regression(self.right / self.counts, weights=self.counts).x
        return fitted


@dataclass(frozen=True)
class IsotonicScaling(ClasswiseRecalibrator):
    r"""A rising function for the probability of each class, the one nearest to how often the class is the label.

    $$g_j = \arg\min_{g \text{ rising}} \sum_i \big(g(p_j(x_i)) - \mathbb 1[y_i = j]\big)^2, \qquad
      p'_j \propto \tfrac{n}{n+1}\, g_j(p_j) + \tfrac{1}{n+1}\, p_j$$

    It repairs any rising error, not only one of temperature. With few rows a class it overfits. Between two steps the function
    is linear. The network's own probability counts as one row: without it most classes of a row would have probability 0,
    and ties. Sigmoid tables are not normalised.

    Zadrozny & Elkan 2002.
    """

    title = "isotonic"
    own_share = 1.0

    def class_map(self, steps: Steps) -> ClassMap:
        fitted = steps.isotonic()
        inner = np.diff(fitted) != 0
        ends = np.concatenate([[True], inner]) | np.concatenate([inner, [True]])  # of each flat piece
        return Linear(steps.values[ends], fitted[ends])


class Linear(NamedTuple):
    """Values at some probabilities, linear between them and constant outside."""

    at: np.ndarray
    values: np.ndarray

    def __call__(self, probabilities: np.ndarray) -> np.ndarray:
        values: np.ndarray = np.interp(probabilities, self.at, self.values)
        return values


@dataclass(frozen=True)
class VennAbers(ClasswiseRecalibrator):
    r"""Isotonic regression twice for each class: as if the new row had that label, and as if it had not.

    $$p_j' \propto \frac{p^1}{1 - p^0 + p^1}, \qquad p^b = g_b(p_j(x)), \quad
      g_b \text{ isotonic on the fitting rows and } (p_j(x), b)$$

    One of p⁰ and p¹ is calibrated, whatever the network, on rows like the fitting ones; before the classes are normalised. No
    probability is 0 or 1, and with few rows it is pulled less far than `IsotonicScaling`. It keeps three numbers for
    every probability of the fitting rows.

    Vovk, Petej & Fedorova 2015, one class against the others.
    """

    title = "Venn–Abers"

    def class_map(self, steps: Steps) -> ClassMap:
        return TwoLabels(steps.values, _labelled_0(steps), _labelled_1(steps))


class TwoLabels(NamedTuple):
    """p⁰ and p¹ at every step: p⁰ is that of the step below, p¹ that of the step above."""

    at: np.ndarray
    labelled_0: np.ndarray  # (k + 1,) the first for what lies below all steps
    labelled_1: np.ndarray  # (k + 1,) the last for what lies above all steps

    def pair(self, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """p⁰ and p¹ of some probabilities."""
        below = self.labelled_0[np.searchsorted(self.at, probabilities, side="right")]
        return below, self.labelled_1[np.searchsorted(self.at, probabilities, side="left")]

    def __call__(self, probabilities: np.ndarray) -> np.ndarray:
        labelled_0, labelled_1 = self.pair(probabilities)
        merged: np.ndarray = labelled_1 / (1 - labelled_0 + labelled_1)
        return merged


def _labelled_1(steps: Steps) -> np.ndarray:
    """(k + 1,) the isotonic value at each step if one more right row joins it, and 1 beyond the last.

    The value at step i is max over a ≤ i of min over b > i of (Y_b − Y_a + 1)/(W_b − W_a + 1), with W and Y the cumulated rows
    and right rows. It begins with the step alone and pools it with its neighbours as long as they violate the order; these
    are pieces of the convex hull of the points (W, Y) on either side.
    """
    W, Y = (np.concatenate([[0], np.cumsum(values)]) for values in (steps.counts, steps.right))
    k = len(W) - 1
    following, previous = _next_vertices(W, Y), k - _next_vertices(W[-1] - W[::-1], Y[::-1])[::-1]
    a, b = np.arange(k), np.arange(1, k + 1)
    pooled = (Y[b] - Y[a] + 1) / (W[b] - W[a] + 1)
    moving = np.arange(k)
    while len(moving):
        left, right, own = a[moving], b[moving], pooled[moving]
        further, before = following[right], previous[left]
        with np.errstate(invalid="ignore"):  # 0/0 at the ends, where there is no neighbour
            higher = (right < k) & (Y[further] - Y[right] < own * (W[further] - W[right]))
            lower = (left > 0) & (Y[left] - Y[before] > own * (W[left] - W[before]))
        a[moving], b[moving] = np.where(lower, before, left), np.where(higher, further, right)
        moving = moving[lower | higher]
        pooled[moving] = (Y[b[moving]] - Y[a[moving]] + 1) / (W[b[moving]] - W[a[moving]] + 1)
    return np.append(pooled, 1.0)


def _labelled_0(steps: Steps) -> np.ndarray:
    """(k + 1,) the same if one more wrong row joins: the mirror image of a right one, and 0 below the first."""
    mirrored = Steps(-steps.values[::-1], steps.counts[::-1], (steps.counts - steps.right)[::-1])
    return 1 - _labelled_1(mirrored)[::-1]


def _next_vertices(W: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """(k + 1,) for every point, the next vertex of the lower convex hull of it and all points after it.

    Only points where the slope rises can be vertices: of a class with few right rows they are few.
    """
    k = len(W) - 1
    rising = 1 + np.flatnonzero(np.diff(np.diff(Y) / np.diff(W)) > 0)
    vertices = np.append(rising, k)
    following = np.full(k + 1, k)
    for at in range(len(rising) - 1, -1, -1):
        here, there = int(vertices[at]), int(vertices[at + 1])
        while there < k and _bends_down(W, Y, here, there, int(following[there])):
            there = int(following[there])
        following[here] = there
    others = np.setdiff1d(np.arange(k), rising)
    following[others] = vertices[np.searchsorted(vertices, others, side="right")]
    while len(others):
        ends = following[others]
        others = others[(ends < k) & _bends_down(W, Y, others, ends, following[ends])]
        following[others] = following[following[others]]
    return following


def _bends_down(
    W: np.ndarray, Y: np.ndarray, a: int | np.ndarray, b: int | np.ndarray, c: int | np.ndarray
) -> np.ndarray:
    """Whether b lies on or above the line from a to c."""
    above: np.ndarray = (Y[b] - Y[a]) * (W[c] - W[b]) >= (Y[c] - Y[b]) * (W[b] - W[a])
    return above


def _columns(table: LogitTable) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The probabilities of every class and whether it is the label, class after class, in few reads of the table."""
    labels = table.checked_labels()
    shares = label_shares(labels, table) if table.many_labels else None
    step = max(1, COLUMNS // table.n)
    for start in range(0, table.n_classes, step):
        some = slice(start, min(start + step, table.n_classes))
        probabilities = np.concatenate(list(over_parts(table, probabilities_of, some)))
        for j in range(some.start, some.stop):
            right = (labels == j).astype(np.float64) if shares is None else shares[:, j]
            yield probabilities[:, j - start].astype(np.float64), right


def probabilities_of(part: LogitTable, first_row: int, columns: slice) -> np.ndarray:
    """(rows, some classes) the probabilities of some columns."""
    return np.concatenate([part.probabilities(rows)[:, columns] for rows in part.spans()])
