"""One factor and one shift for every class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.calibration.base import FittedScaling, Recalibrator, mean_loss, row_losses, scaled_blocks, shares
from workbench.progress import slow
from workbench.tables import LogitTable
from workbench.tables.links import LINKS
from workbench.tables.passes import over_parts

ITERATIONS = 100  # of L-BFGS; with more the rare classes only overfit further


@dataclass(frozen=True)
class VectorScaling(Recalibrator):
    r"""Multiplies the score of each class by its own factor and adds its own shift.

    $$p = \mathrm{softmax}(w \odot s + b), \qquad (w, b) = \arg\min -\sum_i \log p_{y_i}(x_i)$$

    It can repair classes that are over- or under-predicted, which one temperature cannot; with few rows a class it
    overfits, so measure it on other rows. Needs labels and a softmax link, or a sigmoid link with (n, L) labels; rows
    without a label are left out. Softmax with (n, L) labels as in `TemperatureScaling`.

    Guo et al. 2017.
    """

    title = "vector"

    def fitted(self, table: LogitTable) -> FittedScaling:
        """The most likely factors and shifts: a convex problem, by at most 100 steps of L-BFGS from factor 1, shift 0."""
        from scipy.optimize import minimize

        n_classes = table.n_classes
        start = np.concatenate([np.ones(n_classes), np.zeros(n_classes)])
        with slow("vector scaling", "step", total=ITERATIONS) as bar:
            found = minimize(
                _loss_and_gradient,
                start,
                (table,),
                method="L-BFGS-B",
                jac=True,
                callback=lambda _: bar.update(),
                options={"maxiter": ITERATIONS},
            )
        scale, shift = np.split(found.x, 2)
        return FittedScaling(self, scale, shift, mean_loss(table), float(found.fun))


def _loss_and_gradient(parameters: np.ndarray, table: LogitTable) -> tuple[float, np.ndarray]:
    """The mean loss and its gradient with respect to the factors and the shifts."""
    loss, gradient = 0.0, np.zeros((2, table.n_classes))
    for of_part, slope in over_parts(table, summed_gradient, parameters):
        loss, gradient = loss + of_part, gradient + slope
    return loss / table.n, gradient.ravel() / table.n


def summed_gradient(part: LogitTable, first_row: int, parameters: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss of some rows and its gradient, summed."""
    scale, shift = np.split(parameters, 2)
    loss, gradient = 0.0, np.zeros((2, part.n_classes))
    for scores, scaled, labels in scaled_blocks(part, scale, shift):
        loss += float(row_losses(scaled, labels, part.link).sum())
        residuals = _residuals(scaled, labels, part.link)
        gradient += np.einsum("ij,ij->j", residuals, scores), residuals.sum(0)
    return loss, gradient


def _residuals(scaled: np.ndarray, labels: np.ndarray, link: str) -> np.ndarray:
    """Probabilities minus truth: the gradient of the loss with respect to the scores."""
    residuals = LINKS[link](scaled, None)
    if labels.ndim == 2:
        differences: np.ndarray = residuals - shares(labels, link)
        return differences
    residuals[np.arange(len(labels)), labels] -= 1
    return residuals
