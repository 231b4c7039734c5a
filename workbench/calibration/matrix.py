"""One matrix that mixes the scores, or the log-probabilities, of all classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workbench.calibration.base import FittedScaling, Scaling, label_shares, mean_loss, row_losses
from workbench.knobs import knob
from workbench.progress import slow
from workbench.tables import LogitTable
from workbench.tables.links import LINKS
from workbench.tables.map_reduce import over_parts

ITERATIONS = 200  # of L-BFGS
TOLERANCE = 1e-9  # a step that lowers the objective by less of itself is the last


@dataclass(frozen=True)
class MatrixScaling(Scaling):
    r"""Multiplies the scores of a row by a matrix and adds a shift: each class may be corrected by all the others.

    $$p = \mathrm{softmax}(W s + b), \qquad
      (W, b) = \arg\min -\frac1n \sum_i \log p_{y_i}(x_i)
      + \frac{\lambda}{L (L - 1)} \sum_{j \ne k} W_{jk}^2 + \frac{\lambda}{L} \sum_j b_j^2$$

    It can move probability between two classes that are mistaken for each other, which `VectorScaling` cannot. It has L²
    numbers to fit: λ (penalty) keeps those off the diagonal small, and without many rows a class it overfits all the
    same, so measure it on other rows. Needs what `VectorScaling` needs.

    Guo et al. 2017; the penalty (ODIR) is that of Kull et al. 2019.
    """

    title = "matrix"
    fitted_kind: ClassVar[type[FittedScaling]] = FittedScaling

    penalty: float = knob(
        0.1, low=1e-4, high=100.0, minimum=0.0, scale="log", symbol="w", meaning="weight that keeps classes apart"
    )

    def _fit(self, table: LogitTable) -> FittedScaling:
        """The least penalised loss: a convex problem, by at most 200 steps of L-BFGS from the identity."""
        from scipy.optimize import minimize

        n_classes = table.n_classes
        start = np.concatenate([np.eye(n_classes).ravel(), np.zeros(n_classes)])
        weights = self.penalty * _weights(n_classes)

        def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            loss, gradient = _loss_and_gradient(parameters, table, self.fitted_kind)
            return loss + float(weights @ parameters**2), gradient + 2 * weights * parameters

        with slow(f"{self.title} scaling", "step", total=ITERATIONS) as bar:
            found = minimize(
                objective,
                start,
                method="L-BFGS-B",
                jac=True,
                callback=lambda _: bar.update(),
                options={"maxiter": ITERATIONS, "ftol": TOLERANCE},
            )
        after, _ = _loss_and_gradient(found.x, table, self.fitted_kind)
        matrix, shift = _parts(found.x, n_classes)
        return self.fitted_kind(
            self, matrix, shift, before=mean_loss(table), after=after, class_names=table.class_names
        )


@dataclass(frozen=True, eq=False)
class FittedDirichlet(FittedScaling):
    """A matrix and a shift of log-probabilities."""

    @staticmethod
    def given(scores: np.ndarray) -> np.ndarray:
        return log_softmax(scores)


@dataclass(frozen=True)
class DirichletScaling(MatrixScaling):
    r"""Matrix scaling of the log-probabilities: the calibration map if the probabilities of each class are Dirichlet.

    $$p = \mathrm{softmax}(W \log \mathrm{softmax}(s) + b), \qquad (W, b) \text{ as in } \texttt{MatrixScaling}$$

    A constant added to all scores of a row changes nothing, which it may with `MatrixScaling`. With two classes it is beta
    calibration. Needs a softmax link, and as many rows as `MatrixScaling`.

    Kull et al. 2019.
    """

    title = "Dirichlet"
    links = ("softmax",)
    fitted_kind = FittedDirichlet


def log_softmax(scores: np.ndarray) -> np.ndarray:
    """(n, L) the log-probabilities of the softmax link."""
    below = scores - scores.max(-1, keepdims=True)
    logs: np.ndarray = below - np.log(np.exp(below).sum(-1, keepdims=True))
    return logs


def _parts(parameters: np.ndarray, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The matrix (L, L) and the shift (L,)."""
    return parameters[: n_classes**2].reshape(n_classes, n_classes), parameters[n_classes**2 :]


def _weights(n_classes: int) -> np.ndarray:
    """Weight of the square of each parameter in the penalty: 0 on the diagonal."""
    off_diagonal = (1 - np.eye(n_classes)) / max(1, n_classes * (n_classes - 1))
    return np.concatenate([off_diagonal.ravel(), np.full(n_classes, 1 / n_classes)])


def _loss_and_gradient(
    parameters: np.ndarray, table: LogitTable, kind: type[FittedScaling] = FittedScaling
) -> tuple[float, np.ndarray]:
    """The mean loss without the penalty, and its gradient."""
    loss, gradient = 0.0, np.zeros_like(parameters)
    for of_part, slope in over_parts(table, summed_gradient, parameters, kind):
        loss, gradient = loss + of_part, gradient + slope
    return loss / table.n, gradient / table.n


def summed_gradient(
    part: LogitTable, first_row: int, parameters: np.ndarray, kind: type[FittedScaling]
) -> tuple[float, np.ndarray]:
    """The loss of some rows and its gradient, summed, in float64."""
    matrix, shift = _parts(parameters, part.n_classes)
    loss, of_matrix, of_shift, labels = 0.0, np.zeros_like(matrix), np.zeros_like(shift), part.checked_labels()
    for rows in part.spans():
        scores = kind.given(part.scores[rows].astype(np.float64))
        scaled = scores @ matrix.T + shift
        loss += float(row_losses(scaled, labels[rows], part.link).sum())
        residuals = LINKS[part.link](scaled, None) - label_shares(labels[rows], part)
        of_matrix += residuals.T @ scores
        of_shift += residuals.sum(0)
    return loss, np.concatenate([of_matrix.ravel(), of_shift])
