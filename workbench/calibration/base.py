"""The shape of a recalibrator: `fit(table)` learns how to change the scores, the fitted object gives a changed `LogitTable`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from workbench.knobs import Knobbed
from workbench.tables import LogitTable, checked_table
from workbench.tables.links import log_losses
from workbench.tables.passes import over_parts


@dataclass(frozen=True)
class Recalibrator(Knobbed, ABC):
    """What every recalibrator is: a frozen dataclass of knobs whose `fit` gives what changes the scores of any table.

    One more writes `title` and `fitted`, and stands in `RECALIBRATORS` in `calibration/__init__.py`.
    """

    title: ClassVar[str]  # a word or two, for choosers

    def fit(self, table: LogitTable, *, client: Any = None) -> FittedScaling:
        """What makes the labels of a table most likely; rows without a label are left out.

        With a Dask `client` its workers make the passes over the table.
        """
        check_link(table)
        if client is None:
            return self.fitted(table.labelled_rows())
        from workbench.cluster import on

        with on(client):
            return self.fitted(table.labelled_rows())

    @abstractmethod
    def fitted(self, table: LogitTable) -> FittedScaling:
        """The change that makes the labels most likely; every row of the table has one."""


@dataclass(frozen=True, eq=False)
class FittedScaling:
    """Scores times `scale` plus `shift` (numbers, or one per class)."""

    recalibrator: Recalibrator
    scale: np.ndarray
    shift: np.ndarray
    before: float  # negative log-likelihood of the fitting rows, or what stands for it (`row_losses`)
    after: float

    @property
    def temperature(self) -> float:
        """What the scores are divided by, where it is one number."""
        if self.scale.ndim:
            raise ValueError("vector scaling has one scale per class, not one temperature")
        return float(1 / self.scale)

    def __call__(self, table: LogitTable) -> LogitTable:
        check_link(table)
        for fitted in (self.scale, self.shift):
            if fitted.ndim and len(fitted) != table.n_classes:
                raise ValueError(f"the scaling was fitted on {len(fitted)} classes and the table has {table.n_classes}")
        scores = np.empty(table.scores.shape, table.dtype)
        for rows in table.spans():
            scores[rows] = table.scores[rows].astype(np.float64) * self.scale + self.shift
        return replace(table, scores=scores)


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


def check_link(table: LogitTable) -> None:
    """An error unless the scores can be scaled."""
    if checked_table(table).link not in ("softmax", "sigmoid"):
        raise ValueError(f"the link is {table.link}; scores of the softmax or the sigmoid link can be scaled")


def scaled_blocks(
    table: LogitTable, scale: float | np.ndarray, shift: float | np.ndarray = 0.0
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Blocks of scores, scaled scores and labels, in float64."""
    labels = table.checked_labels()
    for rows in table.spans():
        scores = table.scores[rows].astype(np.float64)
        yield scores, scores * scale + shift, labels[rows]


def shares(labels: np.ndarray, link: str) -> np.ndarray:
    """(n, L): how much of each class should be there. Under softmax the labels of a row share one; sigmoids give each one.

    >>> shares(np.array([[True, True, False]]), "softmax").tolist()
    [[0.5, 0.5, 0.0]]
    """
    per_row = labels.sum(1, keepdims=True) if link == "softmax" else 1
    divided: np.ndarray = labels / per_row
    return divided


def row_losses(scaled: np.ndarray, labels: np.ndarray, link: str) -> np.ndarray:
    """(n,) what a recalibrator makes small: minus the log-likelihood of the labels of each row.

    Many labels have no likelihood under softmax, which promises one. There it is cross-entropy, of which the labels of a
    row share the weight equally: what the losses with a softmax link are trained by.
    """
    if link != "softmax" or labels.ndim == 1:
        return log_losses(scaled, labels, link)
    largest = scaled.max(-1)
    losses: np.ndarray = np.log(np.exp(scaled - largest[:, None]).sum(-1)) + largest
    losses -= (shares(labels, link) * scaled).sum(-1)
    return losses


def mean_loss(table: LogitTable, scale: float = 1.0) -> float:
    """The loss of a row (`row_losses`) on average, with the scores times a factor; rows without a label are left out."""
    table = table.labelled_rows()
    return sum(over_parts(table, summed_losses, scale)) / table.n


def summed_losses(part: LogitTable, first_row: int, scale: float) -> float:
    """The sum of the losses of some rows."""
    return sum(float(row_losses(scaled, labels, part.link).sum()) for _, scaled, labels in scaled_blocks(part, scale))
