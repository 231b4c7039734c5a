"""Recalibrators: `fit(table)` learns how to change the scores, the fitted object gives a changed `LogitTable`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from workbench.knobs import Knobbed
from workbench.progress import slow
from workbench.tables import LogitTable, checked_table
from workbench.tables.links import LINKS, log_losses

ITERATIONS = 100  # of L-BFGS; with more the rare classes only overfit further


@dataclass(frozen=True, eq=False)
class FittedScaling:
    """Scores times `scale` plus `shift` (numbers, or one per class)."""

    scaling: Knobbed
    scale: np.ndarray
    shift: np.ndarray
    before: float  # negative log-likelihood of the fitting rows
    after: float

    @property
    def temperature(self) -> float:
        """What the scores are divided by, where it is one number."""
        if self.scale.ndim:
            raise ValueError("vector scaling has one scale per class, not one temperature")
        return float(1 / self.scale)

    def __call__(self, table: LogitTable) -> LogitTable:
        _check_link(table)
        if self.scale.ndim and len(self.scale) != table.n_classes:
            raise ValueError(f"the scaling was fitted on {len(self.scale)} classes and the table has {table.n_classes}")
        scores = np.empty(table.scores.shape, table.dtype)
        for rows in table.spans():
            scores[rows] = table.scores[rows].astype(np.float64) * self.scale + self.shift
        return replace(table, scores=scores)


@dataclass(frozen=True)
class TemperatureScaling(Knobbed):
    r"""Divides all scores by one temperature, the one that makes the labels most likely.

    $$p = \mathrm{softmax}(s / T), \qquad T = \arg\min_T -\sum_i \log p_{y_i}(x_i)$$

    No ranking inside a row changes, so top-K sets stay; confidences, and with them average-K and conformal sets, do.
    Needs labels and a softmax link, or a sigmoid link with (n, L) labels; rows without a label are left out.

    >>> scores = np.random.default_rng(0).normal(size=(4000, 5))
    >>> p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    >>> labels = (p.cumsum(1) < np.random.default_rng(1).random((4000, 1))).sum(1)
    >>> overconfident = LogitTable(scores * 3, labels)
    >>> round(TemperatureScaling().fit(overconfident).temperature, 1)
    3.0

    Guo et al. 2017.
    """

    def fit(self, table: LogitTable) -> FittedScaling:
        """The best temperature for the labels of a table: a convex problem in 1/T, solved by bracketed Newton steps."""
        _check_link(table)
        table = table.labelled_rows()
        before = _loss(table)
        low, high, inverse = 0.0, np.inf, 1.0
        for _ in range(100):
            slope, curvature = _derivatives(table, inverse)
            if slope == 0:  # also where every temperature is as good, as with equal scores
                break
            low, high = (inverse, high) if slope < 0 else (low, inverse)
            step = inverse - slope / curvature if curvature > 0 else np.nan
            if not low < step < high:  # outside the bracket: halve it, or double while it is open
                step = (low + high) / 2 if np.isfinite(high) else 2 * inverse
            if abs(step - inverse) <= 1e-10 * inverse or not 1e-6 < step < 1e6:
                break
            inverse = step
        inverse = float(np.clip(inverse, 1e-6, 1e6))  # labels that are always right, or always wrong, have no optimum
        return FittedScaling(self, np.array(inverse), np.array(0.0), before, _loss(table, inverse))


@dataclass(frozen=True)
class VectorScaling(Knobbed):
    r"""Multiplies the score of each class by its own factor and adds its own shift.

    $$p = \mathrm{softmax}(w \odot s + b), \qquad (w, b) = \arg\min -\sum_i \log p_{y_i}(x_i)$$

    It can repair classes that are over- or under-predicted, which one temperature cannot; with few rows a class it
    overfits, so measure it on other rows. Needs labels and a softmax link, or a sigmoid link with (n, L) labels; rows
    without a label are left out.

    Guo et al. 2017.
    """

    def fit(self, table: LogitTable) -> FittedScaling:
        """The most likely factors and shifts: a convex problem, by at most 100 steps of L-BFGS from factor 1, shift 0."""
        from scipy.optimize import minimize

        _check_link(table)
        table = table.labelled_rows()
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
        return FittedScaling(self, scale, shift, _loss(table), float(found.fun))


def at_temperature(table: LogitTable, temperature: float) -> LogitTable:
    """The table with all scores divided by a temperature: above 1 less sure of itself, below 1 surer.

    >>> at_temperature(LogitTable(np.array([[2.0, 0.0]])), 4.0).scores.tolist()
    [[0.5, 0.0]]
    """
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature = {temperature}; give a positive number")
    return FittedScaling(TemperatureScaling(), np.array(1 / temperature), np.array(0.0), np.nan, np.nan)(table)


def of_one_class(table: LogitTable, which: int) -> LogitTable:
    """The question "is it this class?" as a table of one class: its probability, and whether it is a label, in every row
    that has one.

    >>> table = LogitTable.from_probabilities([[0.75, 0.25], [0.5, 0.5]], labels=[0, 1])
    >>> one = of_one_class(table, 1)
    >>> one.probabilities().round(2).tolist(), one.labels.tolist()
    ([[0.25], [0.5]], [[False], [True]])
    """
    if not 0 <= which < table.n_classes:
        raise ValueError(f"there is no class {which}; the classes are 0 to {table.n_classes - 1}")
    table = table.labelled_rows()
    labels = table.checked_labels()
    probabilities = np.concatenate([block[:, [which]] for block in table.blocks()]).astype(np.float64)
    probabilities = np.clip(probabilities, 1e-12, 1 - 1e-12)  # the logit of 0 or 1 is not finite
    return LogitTable(
        np.log(probabilities / (1 - probabilities)),
        labels[:, [which]] if table.many_labels else (labels == which)[:, None],
        link="sigmoid",
        class_names=(table.named_classes()[which],),
    )


def _check_link(table: LogitTable) -> None:
    if checked_table(table).link not in ("softmax", "sigmoid"):
        raise ValueError(f"the link is {table.link}; scores of the softmax or the sigmoid link can be scaled")


def _blocks(
    table: LogitTable, scale: float | np.ndarray, shift: float | np.ndarray = 0.0
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of scores, scaled scores and labels, in float64."""
    labels = table.checked_labels()
    for rows in table.spans():
        scores = table.scores[rows].astype(np.float64)
        yield scores, scores * scale + shift, labels[rows]


def _residuals(scaled: np.ndarray, labels: np.ndarray, link: str) -> np.ndarray:
    """Probabilities minus truth: the gradient of the loss with respect to the scores."""
    residuals = LINKS[link](scaled, None)
    if labels.ndim == 2:
        differences: np.ndarray = residuals - labels
        return differences
    residuals[np.arange(len(labels)), labels] -= 1
    return residuals


def _loss(table: LogitTable, scale: float = 1.0) -> float:
    blocks = _blocks(table, scale)
    return sum(float(log_losses(scaled, labels, table.link).sum()) for _, scaled, labels in blocks) / table.n


def _derivatives(table: LogitTable, inverse: float) -> tuple[float, float]:
    """First and second derivative of the mean loss with respect to 1/T."""
    slope = curvature = 0.0
    for scores, scaled, labels in _blocks(table, inverse):
        p = LINKS[table.link](scaled, None)
        first = np.einsum("ij,ij->i", p, scores)  # the mean of the scores under p
        if table.many_labels:
            slope += float(first.sum() - scores[labels].sum())
            curvature += float(np.einsum("ij,ij,ij->", p * (1 - p), scores, scores))
        else:
            slope += float(first.sum() - scores[np.arange(len(labels)), labels].sum())
            curvature += float(np.einsum("ij,ij,ij->", p, scores, scores) - (first**2).sum())
    return slope / table.n, curvature / table.n


def _loss_and_gradient(parameters: np.ndarray, table: LogitTable) -> tuple[float, np.ndarray]:
    """The mean loss and its gradient with respect to the factors and the shifts."""
    scale, shift = np.split(parameters, 2)
    loss, gradient = 0.0, np.zeros((2, table.n_classes))
    for scores, scaled, labels in _blocks(table, scale, shift):
        loss += float(log_losses(scaled, labels, table.link).sum())
        residuals = _residuals(scaled, labels, table.link)
        gradient += np.einsum("ij,ij->j", residuals, scores), residuals.sum(0)
    return loss / table.n, gradient.ravel() / table.n
