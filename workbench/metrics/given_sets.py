"""Sets made elsewhere beside sets of ours, on the same rows at the same mean size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.metrics.intervals import wilson_interval
from workbench.sets import AverageK, PredictionSets
from workbench.tables import LogitTable
from workbench.warning_capture import captured_warnings

OURS = "average-K sets of the same mean size"


def given_against_ours(given: PredictionSets, table: LogitTable | None = None) -> pd.DataFrame:
    """Coverage of sets made elsewhere, and of our average-K sets that are as large on average, on the same rows.

    Args:
        given: The sets, read with `wb.import_sets(path, table)`.
        table: Scores of the same rows; by default those that the sets were read with.

    Returns:
        A frame with one line for each: `sets`, `n` labelled rows, `mean_size`, `coverage` with Wilson's 95 % interval (`low`,
        `high`) and `macro_coverage`; `only` is how many labels are in these sets and not in the others.

    Raises:
        ValueError: the rows have no labels, or several each.

    Example:
        >>> table = LogitTable.from_probabilities([[0.9, 0.1], [0.4, 0.6]], labels=[0, 0], class_names=["oak", "elm"])
        >>> given = PredictionSets.from_matrix(table, [[True, False], [True, False]], source="theirs")
        >>> given_against_ours(given)[["sets", "mean_size", "coverage", "only"]].to_numpy().tolist()
        [['theirs', 1.0, 1.0, 1], ['average-K sets of the same mean size', 1.0, 0.5, 0]]
    """
    table = given.table if table is None else table
    if table.n != len(given) or table.labels is None or table.many_labels or not table.labelled.any():
        raise ValueError("give a table of the rows of the sets, with one label a row")
    size = float(given.sizes.mean())
    with captured_warnings():  # ties, and sets that are empty on purpose
        ours = AverageK(min(max(size, 1 / table.n), table.n_classes)).fit(table)(table)
    at = table.labelled
    hits = {given.source: given.hits[at], OURS: ours.hits[at]}
    lines = [
        {"sets": name, **_line(mine, other, sets, table.labels[at])}
        for (name, mine), other, sets in zip(hits.items(), reversed(hits.values()), (given, ours), strict=True)
    ]
    return pd.DataFrame(lines)


def figure_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame of `given_against_ours` as `wb.figures.with_intervals` takes it."""
    sized = [f"{size:.2f} classes" for size in frame["mean_size"]]
    columns = {"series": frame["sets"], "x": sized, "value": frame["coverage"], "low": frame["low"]}
    return pd.DataFrame({**columns, "high": frame["high"]})


def _line(hits: np.ndarray, others: np.ndarray, sets: PredictionSets, labels: np.ndarray) -> dict[str, float]:
    low, high = wilson_interval(np.array([hits.sum()]), np.array([len(hits)]))
    return {
        "n": len(hits),
        "mean_size": float(sets.sizes.mean()),
        "coverage": float(hits.mean()),
        "low": float(low[0]),
        "high": float(high[0]),
        "macro_coverage": float(pd.Series(hits).groupby(labels).mean().mean()),
        "only": int((hits & ~others).sum()),
    }
