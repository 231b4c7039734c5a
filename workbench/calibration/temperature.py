"""One temperature that divides all scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.calibration.base import FittedScaling, Scaling, shares
from workbench.tables import LogitTable
from workbench.tables.links import check_likelihood, sigmoid
from workbench.tables.map_reduce import over_parts
from workbench.warning_capture import warn

SAMPLE = 2**22  # scores that the search begins with: it comes within a few per cent before the table is read
# A Newton step this small, relative to 1/T, leaves an error of about its square: T is decided and nothing is read again.
DECIDED = 1e-6
LEAST, MOST = 1e-6, 1e6  # of 1/T: labels that are always right, or always wrong, have no optimum
SURE = 1e-12  # mean loss of labels whose probability is 1


class Terms(NamedTuple):
    """Sums over rows, at one 1/T, of the loss and of its derivatives by 1/T."""

    loss: float
    slope: float
    curvature: float


@dataclass(frozen=True)
class TemperatureScaling(Scaling):
    r"""Divides all scores by one temperature, the one that makes the labels most likely.

    $$p = \mathrm{softmax}(s / T), \qquad T = \arg\min_T -\sum_i \log p_{y_i}(x_i)$$

    No ranking inside a row changes, so top-K sets stay; confidences, and with them average-K and conformal sets, do.
    Needs labels and a softmax link, or a sigmoid link with (n, L) labels; rows without a label are left out. Softmax with
    (n, L) labels has no likelihood: there T makes cross-entropy least, of which the labels of a row share the weight equally.

    The search begins on some of the rows, so that a large table is read three or four times in all; T is exact to about 1e-7
    of itself (1e-9 for scores in double precision).

    >>> scores = np.random.default_rng(0).normal(size=(4000, 5))
    >>> p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    >>> labels = (p.cumsum(1) < np.random.default_rng(1).random((4000, 1))).sum(1)
    >>> overconfident = LogitTable(scores * 3, labels)
    >>> round(TemperatureScaling().fit(overconfident).temperature, 1)
    3.0

    Guo et al. 2017.
    """

    title = "temperature"

    def _fit(self, table: LogitTable) -> FittedScaling:
        """The best temperature for the labels of a table: a convex problem in 1/T, solved by bracketed Newton steps."""

        if table.link != "softmax":  # there many labels share their weight
            check_likelihood(table.link, table.many_labels)

        def read(inverses: Iterable[float]) -> list[Terms]:
            return terms(table, inverses)

        inverse, before, after = best_inverse(read, _first_guess(table))
        if inverse < 10 * LEAST:
            warn(
                f"no temperature is best: the labels are no likelier than by chance, and T = {1 / inverse:.2g} makes all classes "
                "of a row equally probable; do the labels belong to these rows?",
                stacklevel=4,
            )
        elif after < SURE * table.n:
            warn(
                f"no temperature is best: every label is the most probable class, and T = {1 / inverse:.2g} makes probabilities "
                "0 and 1; fit on rows that the model did not learn by heart",
                stacklevel=4,
            )
        return FittedScaling(self, np.array(inverse), np.array(0.0), before=before / table.n, after=after / table.n)


def best_inverse(read: Callable[[Iterable[float]], list[Terms]], start: float) -> tuple[float, float, float]:
    """The 1/T with the least loss, the loss at T = 1 and the least loss.

    `read` gives the terms at some 1/T in one read of the table; `start` is where the search begins. The loss at T = 1 comes
    along with the first read, and the least one from the last: around its place the loss is a parabola.
    """
    at_one, now = read([1.0, start]) if start != 1 else read([1.0]) * 2
    low, high, inverse = 0.0, math.inf, start
    for _ in range(100):
        if now.slope == 0:  # also where every temperature is as good, as with equal scores
            break
        low, high = (inverse, high) if now.slope < 0 else (low, inverse)
        step = -now.slope / now.curvature if now.curvature > 0 else math.nan
        if abs(step) <= DECIDED * inverse:
            return inverse + step, at_one.loss, now.loss + now.slope * step + now.curvature * step**2 / 2
        following = inverse + step
        if not low < following < high:  # outside the bracket: halve it, or double while it is open
            following = (low + high) / 2 if math.isfinite(high) else 2 * inverse
        if not LEAST < following < MOST:
            break
        inverse = following
        (now,) = read([inverse])
    return inverse, at_one.loss, now.loss


def at_temperature(table: LogitTable, temperature: float) -> LogitTable:
    """The table with all scores divided by a temperature: above 1 less sure of itself, below 1 surer.

    >>> at_temperature(LogitTable(np.array([[2.0, 0.0]])), 4.0).scores.tolist()
    [[0.5, 0.0]]
    """
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature = {temperature}; give a positive number")
    return _at(temperature)(table)


def _at(temperature: float) -> FittedScaling:
    return FittedScaling(
        TemperatureScaling(), np.array(1 / temperature), np.array(0.0), before=math.nan, after=math.nan
    )


def terms(table: LogitTable, inverses: Iterable[float]) -> list[Terms]:
    """The terms of all rows at some 1/T, in one read."""
    parts = over_parts(table, summed_derivatives, tuple(inverses))
    return [Terms(*map(math.fsum, zip(*each, strict=True))) for each in zip(*parts, strict=True)]


def summed_derivatives(part: LogitTable, first_row: int, inverses: Sequence[float]) -> list[Terms]:
    """The terms of some rows at each 1/T, in one read. Those of several parts of a table are merged by their sum.

    A row's terms have the same bits in whatever block they are computed, and their sum is rounded once.
    """
    labels = part.checked_labels()
    found: list[list[np.ndarray]] = [[] for _ in inverses]
    for rows in part.spans():
        scores = part.scores[rows]
        scores = scores.astype(np.float32) if scores.dtype.itemsize < 4 else np.asarray(scores)
        for each, inverse in zip(found, inverses, strict=True):
            each.append(row_terms(scores, labels[rows], part.link, inverse))
    return [Terms(*map(math.fsum, np.concatenate(each, axis=1))) for each in found]


def row_terms(scores: np.ndarray, labels: np.ndarray, link: str, inverse: float) -> np.ndarray:
    """(3, n) in float64: loss, slope and curvature of each row at one 1/T, in the arithmetic of the scores."""
    factor = scores.dtype.type(inverse)
    if link != "softmax":
        scaled = scores * factor
        p, own = sigmoid(scaled), np.where(labels, scores, 0).sum(-1, dtype=np.float64)
        softplus = np.maximum(scaled, 0) + np.log1p(np.exp(-np.abs(scaled)))  # log(1 + e^s), safe for large s
        sums = (softplus, p * scores, (p * scores) * ((1 - p) * scores))
        loss, slope, curvature = (each.sum(-1).astype(np.float64) for each in sums)
        return np.stack([loss - inverse * own, slope - own, curvature])
    below = scores - scores.max(-1, keepdims=True)  # ≤ 0: nothing overflows, and squares cancel less
    own = (
        (shares(labels, link) * below).sum(-1)
        if labels.ndim == 2
        else below[np.arange(len(labels)), labels].astype(np.float64)
    )
    weights = np.exp(below * factor)
    total = weights.sum(-1).astype(np.float64)
    weights *= below
    mean = weights.sum(-1) / total  # of the scores under p
    weights *= below
    return np.stack([np.log(total) - inverse * own, mean - own, weights.sum(-1) / total - mean**2])


def _first_guess(table: LogitTable) -> float:
    """1/T by some of the rows, evenly spread; 1 where they are all of the table or have no optimum."""
    n = max(1, SAMPLE // table.n_classes)
    if n >= table.n:
        return 1.0
    some = table.rows(np.linspace(0, table.n - 1, n).round().astype(int))
    inverse, _, _ = best_inverse(lambda inverses: terms(some, inverses), 1.0)
    return inverse if 1e-3 < inverse < 1e3 else 1.0
