"""Rows that get the same answer: the distinct sets, and how many rows have each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from workbench.sets.prediction_sets import PredictionSets, checked_sets

NO_CLASS = "no class"  # the name of the empty set


def distinct_sets(sets: PredictionSets) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """The distinct sets, each by its rising class numbers, and (n,) which of them each row has.

    Example:
        >>> from workbench.sets import Threshold
        >>> from workbench.tables import LogitTable
        >>> table = LogitTable.from_probabilities([[0.6, 0.4, 0.0], [0.9, 0.1, 0.0], [0.4, 0.6, 0.0]])
        >>> distinct_sets(Threshold(0.3).fit(table)(table))
        (array([1, 0, 1]), [(0,), (0, 1)])
    """
    sizes, offsets = checked_sets(sets).sizes, sets.offsets
    row = np.repeat(np.arange(len(sets)), sizes)
    rising = sets.classes[np.lexsort((sets.classes, row))]
    codes, known = np.empty(len(sets), int), list[tuple[int, ...]]()
    for size in np.unique(sizes).tolist():  # sets of one size are the lines of a matrix
        rows = np.flatnonzero(sizes == size)
        lines = rising[offsets[rows][:, None] + np.arange(size)]
        distinct, code = np.unique(lines, axis=0, return_inverse=True) if size else (lines[:1], 0)
        codes[rows] = len(known) + np.ravel(code)
        known += map(tuple, distinct.tolist())
    return codes, known


def frequent_sets(sets: PredictionSets, rows: Any = None) -> pd.DataFrame:
    """The distinct sets, the most frequent first.

    Args:
        sets: the sets of some rows, what a fitted rule returns.
        rows: a selection of rows, as a mask or as numbers; sets with the most selected rows come first then.

    Returns:
        A frame with `classes` (their numbers, joined by dots), `names`, `size`, `count` (rows with that set), `share`, with
        labels `hits` and `misses` (of the rows that have one), and the same counts of the selection: `selected`,
        `selected_hits`, `selected_misses`.

    Example:
        >>> from workbench.sets import Threshold
        >>> from workbench.tables import LogitTable
        >>> table = LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1], [0.4, 0.6]], labels=[1, 1, 1])
        >>> frequent_sets(Threshold(0.3).fit(table)(table))[["names", "count", "hits", "misses"]].to_numpy().tolist()
        [['class 0, class 1', 2, 2, 0], ['class 0', 1, 0, 1]]
    """
    codes, known = distinct_sets(sets)
    names = sets.table.named_classes()
    verdicts = {"": np.ones(len(sets), bool)}
    if sets.table.labels is not None:
        verdicts |= {"hits": sets.hits, "misses": sets.labelled & ~sets.hits}
    counts = {name or "count": np.bincount(codes[held], minlength=len(known)) for name, held in verdicts.items()}
    columns: dict[str, Any] = {
        "classes": [".".join(map(str, members)) for members in known],
        "names": [", ".join(names[member] for member in members) or NO_CLASS for members in known],
        "size": [len(members) for members in known],
        "count": counts.pop("count"),
    }
    columns |= {"share": columns["count"] / max(len(sets), 1), **counts}
    order = ["count"]
    if rows is not None:
        chosen = np.zeros(len(sets), bool)
        chosen[rows] = True
        for name, held in verdicts.items():
            column = "_".join(filter(None, ("selected", name)))
            columns[column] = np.bincount(codes[held & chosen], minlength=len(known))
        order = ["selected", "count"]
    return pd.DataFrame(columns).sort_values(order, ascending=False, kind="stable", ignore_index=True)
