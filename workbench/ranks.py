"""The rank of the label among the classes of its row: top-K accuracy for every K at once."""

from __future__ import annotations

import numpy as np

from workbench.selection import Largest
from workbench.table_checks import BLOCK
from workbench.tables import LogitTable


def last_labels(table: LogitTable, label_probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(n,) the label of each row that enters last, the least probable (of equal ones the highest index), or -1 for a row
    without; and its probability."""
    rows, classes = table.positives()
    last, probabilities = np.full(table.n, -1), np.full(table.n, np.inf, table.dtype)
    first_to_last = np.lexsort((classes, -label_probabilities, rows)) if table.many_labels else slice(None)
    last[rows[first_to_last]] = classes[first_to_last]  # of several assignments to a row the last one stays
    probabilities[rows[first_to_last]] = label_probabilities[first_to_last]
    return last, probabilities


def ranks_from(table: LogitTable, largest: Largest, label_probabilities: np.ndarray) -> np.ndarray:
    """`label_ranks` of a whole table, looked up among its largest probabilities as far as they reach."""
    labels, probabilities = last_labels(table, label_probabilities)
    own = probabilities[largest.rows]
    before = largest.probabilities > own
    tied = np.flatnonzero(largest.probabilities == own)
    before[tied] = largest.classes[tied] < labels[largest.rows[tied]]
    ranks = np.where(labels >= 0, np.bincount(largest.rows[before], minlength=table.n) + 1, 0)
    deep = np.flatnonzero((labels >= 0) & (probabilities < largest.floor))
    for start in range(0, len(deep), BLOCK):
        some = deep[start : start + BLOCK]
        ranks[some] = label_ranks(table.probabilities(some), labels[some])
    return ranks


def label_ranks(probabilities: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The rank from 1 of the label of each row, equal probabilities in order of class; of many labels the last one's.

    A row without a label has rank 0.

    >>> label_ranks(np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]), np.array([0, 1])).tolist()
    [3, 2]
    """
    n, n_classes = probabilities.shape
    if labels.ndim == 2:  # the last label to enter: the least probable, of equal ones the highest index
        labelled = np.where(labels, probabilities, np.inf)[:, ::-1]
        last = n_classes - 1 - np.argmin(labelled, axis=1)
        ranks = label_ranks(probabilities, last)
        return np.where(labels.any(1), ranks, 0)
    own = probabilities[np.arange(n), labels][:, None]  # where the label is -1, of the last class
    larger = _marked(probabilities > own)
    at_least = _marked(probabilities >= own)
    ranks = larger + 1
    for row in np.flatnonzero(at_least > ranks):  # ties with the label
        ranks[row] += np.count_nonzero(probabilities[row, : labels[row]] == own[row])
    return np.where(labels >= 0, ranks, 0)


def _marked(mask: np.ndarray) -> np.ndarray:
    """How many entries of each row are True; eight at a time, which NumPy's own count along an axis is not."""
    return np.bitwise_count(np.packbits(mask, axis=1)).sum(1, dtype=np.int64)
