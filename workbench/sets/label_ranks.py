"""The rank of the label among the classes of its row: top-K accuracy for every K at once."""

from __future__ import annotations

import numpy as np

from workbench.sets.thresholds import Largest
from workbench.tables import LogitTable
from workbench.tables.checks import BLOCK
from workbench.tables.map_reduce import over_parts
from workbench.tables.ordering import falling_order, marked_in_rows


def last_labels(table: LogitTable, label_probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the label of each row that enters last, the last one in the order of its classes, or -1 for a row without; and
    its probability."""
    rows, classes = table.positives()
    last, probabilities = np.full(table.n, -1), np.full(table.n, np.inf, table.dtype)
    first_to_last: np.ndarray | slice = slice(None)
    if table.many_labels:
        first_to_last = np.lexsort((classes, -table.scores[rows, classes], -label_probabilities, rows))
    last[rows[first_to_last]] = classes[first_to_last]  # of several assignments to a row the last one stays
    probabilities[rows[first_to_last]] = label_probabilities[first_to_last]
    return last, probabilities


def ranks_from(table: LogitTable, largest: Largest, label_probabilities: np.ndarray) -> np.ndarray:
    """`label_ranks` of a whole table, looked up among its largest probabilities as far as they reach."""
    labels, probabilities = last_labels(table, label_probabilities)
    own = probabilities[largest.rows]
    before = largest.probabilities > own
    tied = np.flatnonzero(largest.probabilities == own)
    rows, classes = largest.rows[tied], largest.classes[tied]
    others = classes != labels[rows]
    tied, rows, classes = tied[others], rows[others], classes[others]
    before[tied] = _ahead(table.scores[rows, classes], table.scores[rows, labels[rows]], classes, labels[rows])
    ranks = np.where(labels >= 0, np.bincount(largest.rows[before], minlength=table.n) + 1, 0)
    deep = (labels >= 0) & (probabilities < largest.floor)
    if deep.any():
        ranks[deep] = np.concatenate(list(over_parts(table, deep_ranks, sliced=(deep, labels))))
    return ranks


def deep_ranks(part: LogitTable, first_row: int, deep: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The ranks of the labels of some rows of a part, which lie below what was looked up."""
    rows, ranks = np.flatnonzero(deep), [np.zeros(0, np.int64)]
    for start in range(0, len(rows), BLOCK):
        some = rows[start : start + BLOCK]
        ranks.append(label_ranks(part.probabilities(some), part.scores[some], labels[some]))
    return np.concatenate(ranks)


def label_ranks(probabilities: np.ndarray, scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The rank from 1 of the label of each row in the order of its classes; of many labels the last one's.

    A row without a label has rank 0.

    >>> p = np.array([[0.2, 0.5, 0.3], [0.5, 0.5, 0.0]])
    >>> label_ranks(p, np.log(p + 1e-9), np.array([0, 1])).tolist()
    [3, 2]
    """
    n, n_classes = probabilities.shape
    if labels.ndim == 2:
        places = np.empty((n, n_classes), np.int64)
        np.put_along_axis(places, falling_order(probabilities, scores), np.arange(1, n_classes + 1), axis=1)
        last: np.ndarray = np.where(labels, places, 0).max(1)
        return last
    own = probabilities[np.arange(n), labels][:, None]  # where the label is -1, of the last class
    ranks = marked_in_rows(probabilities > own) + 1
    as_likely = probabilities == own
    if np.count_nonzero(as_likely) > n:  # one count of all is quicker than one of each row
        tied = np.flatnonzero(marked_in_rows(as_likely) > 1)  # with the label
        label, score = labels[tied, None], scores[tied]
        ahead = _ahead(score, np.take_along_axis(score, label, 1), np.arange(n_classes), label)
        ranks[tied] += np.count_nonzero(ahead & (probabilities[tied] == own[tied]), axis=1)
    return np.where(labels >= 0, ranks, 0)


def _ahead(score: np.ndarray, label_score: np.ndarray, index: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Mask of the classes that are as probable as the label and come before it."""
    ahead: np.ndarray = (score > label_score) | ((score == label_score) & (index < label))
    return ahead
