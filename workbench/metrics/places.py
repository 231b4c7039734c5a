"""The numbers of many sets of the same rows, one place of a slider after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from workbench.metrics.of_sets import accuracy, class_accuracy, macro_accuracy, mean_size, shot_accuracy
from workbench.sets import PredictionSets
from workbench.sets.index import LARGEST_SIZE
from workbench.tables import LogitTable, groups


def of_few_rows(table: LogitTable, thresholds: Iterable[float]) -> tuple[np.ndarray, np.ndarray | None]:
    """(places, n) sizes and hits of the sets of each threshold, without the index that many rows would need.

    - `table`: few rows; all their probabilities are looked at for every threshold.
    - `thresholds`: one for every place.

    There are no hits without labels. A row hits if every label of it is in its set.

    >>> table = LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.4, 0.35, 0.25]], labels=[0, 2])
    >>> sizes, hits = of_few_rows(table, [0.5, 0.2])
    >>> sizes.tolist(), hits.tolist()
    ([[1, 0], [2, 3]], [[True, False], [True, True]])
    """
    inside = table.probabilities() >= np.array(list(thresholds), float)[:, None, None]  # (places, n, L)
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

    - `sets`: those of the same rows at every place, such as of `RAPS` at every confidence.
    - `by`: what splits the rows into groups; shot groups, where there are any, if it is not given.

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
