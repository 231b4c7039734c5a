"""What the tables of the papers print, measured on the tables of a run: a number by its name, `average_k_accuracy@K=5`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from workbench.metrics import (
    accuracy,
    auroc,
    count_bin_accuracy,
    macro_accuracy,
    macro_f1,
    max_confidence,
    shot_accuracy,
    top_k_accuracy,
    top_k_calibration_error,
)
from workbench.sets import AverageK, PredictionSets, TopK
from workbench.tables import LogitTable

SHOTS = ("few", "medium", "many")
BINS = 10  # of the calibration error of Liao et al.

Measure = Callable[[LogitTable, LogitTable, int], float]  # of val, of the table that is judged, and of K


def _top(val: LogitTable, table: LogitTable, K: int) -> PredictionSets:
    return TopK(K).fit(val)(table)


def _average(val: LogitTable, table: LogitTable, K: int) -> PredictionSets:
    return AverageK(float(K)).fit(val)(table)


def _of_sets(kind: str, made: Callable[[LogitTable, LogitTable, int], PredictionSets]) -> dict[str, Measure]:
    """Accuracy of all rows, mean of that of the classes, and the same of the classes of each shot group."""

    def of_shot(shot: str) -> Measure:
        return lambda val, table, K: shot_accuracy(made(val, table, K))[shot]

    return {
        f"{kind}_accuracy": lambda val, table, K: accuracy(made(val, table, K)),
        f"macro_{kind}_accuracy": lambda val, table, K: macro_accuracy(made(val, table, K)),
        **{f"{shot}_{kind}_accuracy": of_shot(shot) for shot in SHOTS},
    }


def _of_count_bin(place: int) -> Measure:
    """Mean accuracy of the classes of a bin of training images, as in Table 3.1 of Garcin's thesis, counted from 1."""
    return lambda val, table, K: list(count_bin_accuracy(_top(val, table, K)).values())[place - 1]


def _without_label(table: LogitTable) -> LogitTable:
    return table.rows(~table.labelled)


MEASURES: dict[str, Measure] = {
    **_of_sets("top_k", _top),
    **_of_sets("average_k", _average),
    "top_k_error": lambda val, table, K: 1 - top_k_accuracy(table, K),
    **{f"count_bin_{place}_accuracy": _of_count_bin(place) for place in range(1, 6)},
    "unlabelled_confidence": lambda val, table, K: max_confidence(_without_label(table)),
    "unlabelled_auroc": lambda val, table, K: auroc(table.rows(table.labelled), _without_label(table)),
    "macro_f1": lambda val, table, K: macro_f1(_top(val, table, K)),
    "top_k_calibration_error": lambda val, table, K: top_k_calibration_error(table, K, BINS),
}


def measured(name: str, tables: Mapping[str, LogitTable], split: str = "test") -> float:
    """A number of a run, by its name and K: rules are fitted on val and judged on the split.

    >>> import numpy as np
    >>> table = LogitTable(9 * np.eye(4), labels=[3, 2, 1, 0])
    >>> measured("top_k_accuracy@K=3", {"val": table, "test": table})
    0.75
    """
    return measure_of(name)(tables["val"], tables[split])


def measure_of(name: str) -> Callable[[LogitTable, LogitTable], float]:
    """The measure of a name such as `few_average_k_accuracy@K=5`, as a function of val and of the table to judge."""
    found = re.fullmatch(r"(\w+)@K=(\d+)", name)
    if found is None or found[1] not in MEASURES:
        raise ValueError(
            f"{name!r} is no measure; give one of {', '.join(MEASURES)} with its K, such as top_k_accuracy@K=5"
        )
    return lambda val, table: float(MEASURES[found[1]](val, table, int(found[2])))
