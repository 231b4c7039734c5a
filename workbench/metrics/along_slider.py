"""The numbers of many sets of the same rows, one place of a slider after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.metrics.set_metrics import accuracy, class_accuracy, macro_accuracy, mean_size, shot_accuracy
from workbench.sets import PredictionSets
from workbench.sets.index import LARGEST_SIZE
from workbench.tables import LogitTable, groups


def of_few_rows(table: LogitTable, thresholds: Iterable[float]) -> tuple[np.ndarray, np.ndarray | None]:
    """(places, n) sizes and hits of the sets of each threshold, without the index that many rows would need.

    Args:
        table: Few rows; all their probabilities are looked at for every threshold.
        thresholds: One for every place.

    There are no hits without labels. A row hits if every label of it is in its set.

    >>> table = LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.4, 0.35, 0.25]], labels=[0, 2])
    >>> sizes, hits = of_few_rows(table, [0.5, 0.2])
    >>> sizes.tolist(), hits.tolist()
    ([[1, 0], [2, 3]], [[True, False], [True, True]])
    """
    return sizes_and_hits(table, members_at(table, thresholds))


def members_at(table: LogitTable, thresholds: Iterable[float]) -> np.ndarray:
    """(places, n, L) bool: the classes in the sets of few rows at each threshold."""
    inside: np.ndarray = table.probabilities() >= np.array(list(thresholds), float)[:, None, None]
    return inside


def sizes_and_hits(table: LogitTable, inside: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """(places, n) sizes and hits of the sets that hold these classes (places, n, L); no hits without labels."""
    sizes = np.count_nonzero(inside, axis=2)
    if table.labels is None:
        return sizes, None
    rows, classes = table.positives()
    hits = np.tile(table.labelled, (len(sizes), 1))
    for row, member in zip(rows, classes, strict=True):
        hits[:, row] &= inside[:, row, member]
    return sizes, hits


def at_places(sets: Sequence[PredictionSets], by: Any = None) -> dict[str, Any]:
    """All a browser needs to follow a slider over the sets of any rule: what `SetIndex.compact` gives of thresholds.

    Args:
        sets: Those of the same rows at every place, such as of `RAPS` at every confidence.
        by: What splits the rows into groups; shot groups, where there are any, if it is not given.

    >>> import workbench as wb
    >>> table = wb.LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.4, 0.35, 0.25]], labels=[0, 1])
    >>> found = at_places([wb.TopK(K).fit(table)(table) for K in (1, 2)])
    >>> found["accuracy"].tolist(), found["mean_size"].tolist()
    ([0.5, 1.0], [1.0, 2.0])
    """
    table = sets[0].table
    if by is None and table.labels is not None and not table.many_labels and table.class_counts is not None:
        by = "shots"
    codes, names = (np.zeros(table.n, np.int64), ()) if by is None else groups.rows_by(table, by)
    histograms = np.zeros((len(sets), max(len(names), 1), LARGEST_SIZE + 1), np.int32)
    for place, each in enumerate(sets):
        np.add.at(histograms[place], (codes, np.minimum(each.sizes, LARGEST_SIZE)), 1)
    mean_sizes = np.array([groups.means(each.sizes, codes, max(len(names), 1)) for each in sets])
    found: dict[str, Any] = {
        "n": table.n,
        "mean_size": np.array([mean_size(each) for each in sets]),
        "size_histogram": histograms.sum(1, dtype=np.int32),
        "histogram_by": {name: histograms[:, code] for code, name in enumerate(names)},
        "mean_size_by": {name: mean_sizes[:, code] for code, name in enumerate(names)},
    }
    if table.labels is not None:
        rows = np.bincount(table.positives()[1], minlength=table.n_classes).astype(np.int32)
        shares = np.array([class_accuracy(each) for each in sets])
        found |= {
            "accuracy": np.array([accuracy(each) for each in sets]),
            "macro_accuracy": np.array([macro_accuracy(each) for each in sets]),
            "class_hits": np.rint(np.nan_to_num(shares) * rows).astype(np.int32),
            "class_rows": rows,
        }
        if table.class_counts is not None:
            by_shots = [shot_accuracy(each) for each in sets]
            found["shot_accuracy"] = {shot: np.array([each[shot] for each in by_shots]) for shot in by_shots[0]}
    return found


def joined(blocks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The results of several calls of `SetIndex.compact`, the positions of one after those of the other."""
    found = dict(blocks[0])
    for name, value in found.items():
        if isinstance(value, dict):
            found[name] = {group: np.concatenate([block[name][group] for block in blocks]) for group in value}
        elif isinstance(value, np.ndarray) and name != "class_rows":
            found[name] = np.concatenate([block[name] for block in blocks])
    return found
