"""One factor and one shift for every class."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from workbench.calibration.base import FittedScaling, Scaling, row_losses, shares
from workbench.progress import slow
from workbench.tables import LogitTable
from workbench.tables.links import LINKS, check_likelihood
from workbench.tables.map_reduce import over_parts

ITERATIONS = 100  # of L-BFGS; with more the rare classes only overfit further
TOLERANCE = 1e-8  # a step that lowers the loss by less of itself is the last
RIDGE, TINY = 1e-3, 1e-12  # shares of the mean curvature, and an absolute one, that every class is given


@dataclass(frozen=True)
class VectorScaling(Scaling):
    r"""Multiplies the score of each class by its own factor and adds its own shift.

    $$p = \mathrm{softmax}(w \odot s + b), \qquad (w, b) = \arg\min -\sum_i \log p_{y_i}(x_i)$$

    It can repair classes that are over- or under-predicted, which one temperature cannot; with few rows a class it
    overfits, so measure it on other rows. Needs labels and a softmax link, or a sigmoid link with (n, L) labels; rows
    without a label are left out. Softmax with (n, L) labels as in `TemperatureScaling`.

    Guo et al. 2017.
    """

    title = "vector"

    def _fit(self, table: LogitTable) -> FittedScaling:
        """The most likely factors and shifts: a convex problem, by at most 100 steps of L-BFGS from factor 1, shift 0.

        Steps are taken where the curvature of every class is 1, which takes a third of them. The loss is that of the
        optimum to about 1e-7 of itself.
        """
        from scipy.optimize import minimize

        if not table.many_labels:
            check_likelihood(table.link, many_labels=False)
        n_classes = table.n_classes
        start = np.concatenate([np.ones(n_classes), np.zeros(n_classes)])
        curvature = Curvature.of(table)
        known = [_loss_and_gradient(start, table)]
        before, gradient = known[0]
        unit = float(np.linalg.norm(curvature.gradient(gradient))) or 1.0  # L-BFGS begins with a step of length 1

        def loss_and_gradient(steps: np.ndarray) -> tuple[float, np.ndarray]:
            at = start + curvature.parameters(unit * steps)
            loss, gradient = known.pop() if known else _loss_and_gradient(at, table)
            return loss, unit * curvature.gradient(gradient)

        with slow("vector scaling", "step", total=ITERATIONS) as bar:
            found = minimize(
                loss_and_gradient,
                np.zeros_like(start),
                method="L-BFGS-B",
                jac=True,
                callback=lambda _: bar.update(),
                options={"maxiter": ITERATIONS, "ftol": TOLERANCE},
            )
        scale, shift = np.split(start + curvature.parameters(unit * found.x), 2)
        return FittedScaling(self, scale, shift, before=before, after=float(found.fun), class_names=table.class_names)


class Curvature(NamedTuple):
    """The second derivatives of the loss by factor and shift of each class at the start, as a Cholesky factor a class."""

    scale: np.ndarray  # (L,) each: [[scale, 0], [both, shift]]
    both: np.ndarray
    shift: np.ndarray

    @classmethod
    def of(cls, table: LogitTable) -> Curvature:
        """The curvature over the rows of a table; classes that are never likely get a little of the others'."""
        squares, products, weights = 4 / table.n * np.sum(list(over_parts(table, summed_curvature)), axis=0)
        squares, weights = (values + RIDGE * values.mean() + TINY for values in (squares, weights))
        scale = np.sqrt(squares)
        both = products / scale
        return cls(scale, both, np.sqrt(np.maximum(weights - both**2, RIDGE * weights)))

    def parameters(self, steps: np.ndarray) -> np.ndarray:
        """Factors and shifts for steps where the curvature is 1."""
        scale, shift = np.split(steps, 2)
        shift = shift / self.shift
        return np.concatenate([(scale - self.both * shift) / self.scale, shift])

    def gradient(self, gradient: np.ndarray) -> np.ndarray:
        """The gradient by those steps."""
        scale, shift = np.split(gradient, 2)
        scale = scale / self.scale
        return np.concatenate([scale, (shift - self.both * scale) / self.shift])


def summed_curvature(part: LogitTable, first_row: int) -> np.ndarray:
    """(3, L) the sums over every fourth of some rows of p(1 − p) times s², s and 1: only the number of steps depends on it."""
    sums = np.zeros((3, part.n_classes))
    for span in part.spans():
        rows = slice(span.start, span.stop, 4)
        scores, p = part.scores[rows].astype(part.dtype, copy=False), part.probabilities(rows)
        each, weights = np.ones(len(p), p.dtype), np.subtract(p, p * p, out=p)
        for of_power in reversed(sums):
            of_power += each @ weights  # several times quicker than a sum
            weights *= scores
    return sums


def _loss_and_gradient(parameters: np.ndarray, table: LogitTable) -> tuple[float, np.ndarray]:
    """The mean loss and its gradient with respect to the factors and the shifts."""
    loss, gradient = 0.0, np.zeros((2, table.n_classes))
    for of_part, slope in over_parts(table, summed_gradient, parameters):
        loss, gradient = loss + of_part, gradient + slope
    return loss / table.n, gradient.ravel() / table.n


def summed_gradient(part: LogitTable, first_row: int, parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss of some rows and its gradient, summed; in the type of the table's probabilities, with sums in float64."""
    scale, shift = np.split(parameters, 2)
    loss, gradient, labels = 0.0, np.zeros((2, part.n_classes)), part.checked_labels()
    for rows in part.spans():
        scores = part.scores[rows].astype(part.dtype, copy=False)
        if part.many_labels:
            scaled = scores * scale + shift
            loss += float(row_losses(scaled, labels[rows], part.link).sum())
            residuals = LINKS[part.link](scaled, None) - shares(labels[rows], part.link)
            gradient += np.einsum("ij,ij->j", residuals, scores), residuals.sum(0)
        else:
            own = np.arange(len(scores)), labels[rows]
            of_rows, expected = _softmax_sums(scores, own, scale, shift)
            loss += of_rows
            gradient += expected
            gradient -= [np.bincount(own[1], weights, part.n_classes) for weights in (scores[own], None)]
    return loss, gradient


def _softmax_sums(
    scores: np.ndarray, own: tuple[np.ndarray, ...], scale: np.ndarray, shift: np.ndarray
) -> tuple[float, np.ndarray]:
    """The summed loss of some rows with one label each, and (2, L) the sums of p·s and of p, from one power of 2.

    That takes half the time of an exponential, and a product with ones a third of that of a sum.
    """
    scaled = scores * (scale / math.log(2)).astype(scores.dtype)
    scaled += (shift / math.log(2)).astype(scores.dtype)
    scaled -= scaled.max(1, keepdims=True)
    of_labels = scaled[own].astype(np.float64)
    powers = np.exp2(scaled, out=scaled)
    totals = powers @ np.ones(powers.shape[1], powers.dtype)
    p_of_1 = 1 / totals
    of_p = p_of_1 @ powers
    powers *= scores
    loss = math.log(2) * float((np.log2(totals, dtype=np.float64) - of_labels).sum())
    return loss, np.stack([p_of_1 @ powers, of_p])
