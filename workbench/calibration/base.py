"""The shape of a recalibrator: `fit(table)` learns how to change the scores, the fitted object gives a changed `LogitTable`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from workbench.knobs import Knobbed
from workbench.tables import LogitTable, checked_table
from workbench.tables.links import check_same_link, log_losses
from workbench.tables.map_reduce import over_parts
from workbench.tables.ordering import column_order


@dataclass(frozen=True)
class Recalibrator(Knobbed, ABC):
    """The base of every recalibrator: a frozen dataclass of knobs; `fit` gives the change of scores for any table.

    One more defines `title` and `_fit`, and stands in `RECALIBRATORS` in `calibration/__init__.py`.
    """

    title: ClassVar[str]  # a word or two, for choosers
    links: ClassVar[tuple[str, ...]] = ("softmax", "sigmoid")  # of the tables that it takes
    objective: ClassVar[str] = "negative log-likelihood"  # what `before` and `after` of the fitted object are

    def fit(self, table: LogitTable, *, client: Any = None) -> FittedRecalibrator:
        """The change of scores that is best for the labels of a table; rows whose label is unknown are left out.

        Args:
            table: labelled rows.
            client: a Dask client whose workers make the passes over the table.
        """
        check_link(table, self)
        if client is None:
            return replace(self._fit(judged_rows(table)), link=table.link)
        from workbench.cluster import on

        with on(client):
            return replace(self._fit(judged_rows(table)), link=table.link)

    @abstractmethod
    def _fit(self, table: LogitTable) -> FittedRecalibrator:
        """The best change of scores; every row of the table has a label."""


@dataclass(frozen=True, eq=False)
class FittedRecalibrator(ABC):
    """A recalibrator and what it learned; call it on a table to get the table with changed scores."""

    recalibrator: Recalibrator
    before: float = field(kw_only=True)  # the objective on the fitting rows (`row_losses` stands for the likelihood)
    after: float = field(kw_only=True)
    # Of the columns that it was fitted on, where it has something per class.
    class_names: tuple[str, ...] | None = field(default=None, kw_only=True)
    link: str | None = field(default=None, kw_only=True)  # of the scores that it was fitted on; None takes every one
    link_constant: ClassVar[None] = None  # a quasibinary table cannot be recalibrated

    def check(self, table: LogitTable) -> None:
        """An error unless scores of this kind can be changed, and are read as those it was fitted on."""
        check_link(table, self.recalibrator)
        check_same_link(self, table)

    @abstractmethod
    def __call__(self, table: LogitTable) -> LogitTable:
        """The same rows with changed scores."""

    def order(self, class_names: tuple[str, ...] | None) -> np.ndarray | None:
        """Position of each column of a table among the fitted ones; None where they are the same."""
        if None in (self.class_names, class_names) or self.class_names == class_names:
            return None
        return column_order(self.class_names, class_names)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class FittedScaling(FittedRecalibrator):
    """Scores times `scale` (a number, one per class, or a matrix) plus `shift` (a number, or one per class)."""

    scale: np.ndarray
    shift: np.ndarray

    @property
    def temperature(self) -> float:
        """Divisor of the scores, where it is one number."""
        if self.scale.ndim:
            raise ValueError(f"{self.recalibrator.title} scaling has one scale per class, not one temperature")
        return float(1 / self.scale)

    def __call__(self, table: LogitTable) -> LogitTable:
        self.check(table)
        for fitted in (self.scale, self.shift):
            if fitted.ndim and len(fitted) != table.n_classes:
                raise ValueError(f"the scaling was fitted on {len(fitted)} classes and the table has {table.n_classes}")
        scale, shift = self._for_columns(table.class_names)
        scores = np.empty(table.scores.shape, table.dtype)
        for rows in table.spans():
            given = self.given(table.scores[rows].astype(np.float64))
            scores[rows] = (given @ scale.T if scale.ndim == 2 else given * scale) + shift
        return replace(table, scores=scores)

    @staticmethod
    def given(scores: np.ndarray) -> np.ndarray:
        """Input of the scaling for some rows of scores: the scores themselves."""
        return scores

    def _for_columns(self, class_names: tuple[str, ...] | None) -> tuple[np.ndarray, np.ndarray]:
        """Scale and shift for a table of these columns: what was fitted per class follows the names."""
        if (order := self.order(class_names)) is None:
            return self.scale, self.shift
        return self.scale[np.ix_(order, order)] if self.scale.ndim == 2 else self.scale[order], self.shift[order]


@dataclass(frozen=True)
class Scaling(Recalibrator):
    """The base of recalibrators that multiply the scores and add to them."""

    if TYPE_CHECKING:

        def fit(self, table: LogitTable, *, client: Any = None) -> FittedScaling: ...


def of_one_class(table: LogitTable, which: int) -> LogitTable:
    """The question "is it this class?" as a table of one class: its probability, and whether it is a label, in every row
    whose truth is known.

    >>> table = LogitTable.from_probabilities([[0.75, 0.25], [0.5, 0.5]], labels=[0, 1])
    >>> one = of_one_class(table, 1)
    >>> one.probabilities().round(2).tolist(), one.labels.tolist()
    ([[0.25], [0.5]], [[False], [True]])
    """
    if not 0 <= which < table.n_classes:
        raise ValueError(f"there is no class {which}; the classes are 0 to {table.n_classes - 1}")
    table = table.known_rows()
    labels = table.checked_labels()
    probabilities = np.concatenate([block[:, [which]] for block in table.blocks()]).astype(np.float64)
    probabilities = np.clip(probabilities, 1e-12, 1 - 1e-12)  # the logit of 0 or 1 is not finite
    return LogitTable(
        np.log(probabilities / (1 - probabilities)),
        labels[:, [which]] if table.many_labels else (labels == which)[:, None],
        link="sigmoid",
        class_names=(table.named_classes()[which],),
    )


def judged_rows(table: LogitTable) -> LogitTable:
    """The rows whose truth is known; under softmax, which promises a label to every row, those that have one."""
    return table.labelled_rows() if table.link == "softmax" else table.known_rows()


def check_link(table: LogitTable, recalibrator: Recalibrator) -> None:
    """An error unless the recalibrator takes scores of this kind."""
    if checked_table(table).link not in recalibrator.links:
        allowed = " or the ".join(recalibrator.links)
        raise ValueError(f"the link is {table.link}; scores of the {allowed} link can be scaled")


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


def label_shares(labels: np.ndarray, table: LogitTable) -> np.ndarray:
    """(n, L): the same of labels of a table, of one class a row or of many."""
    return shares(labels if labels.ndim == 2 else np.eye(table.n_classes, dtype=bool)[labels], table.link)


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
    """The loss of a row (`row_losses`) on average, with the scores times a factor, of the rows that a fit reads."""
    table = judged_rows(table)
    return sum(over_parts(table, summed_losses, scale)) / table.n


def summed_losses(part: LogitTable, first_row: int, scale: float) -> float:
    """The sum of the losses of some rows."""
    return sum(float(row_losses(scaled, labels, part.link).sum()) for _, scaled, labels in scaled_blocks(part, scale))
