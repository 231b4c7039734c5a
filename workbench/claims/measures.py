"""Measures by name, such as `average_k_accuracy@K=5`, as the tables of the papers print them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from workbench.metric_spec import MetricSpec
from workbench.metrics import (
    accuracy,
    auroc,
    count_bin_accuracy,
    macro_accuracy,
    macro_f1,
    max_confidence,
    shot_accuracy,
    size_by,
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


def _share_of_size(size: int) -> Measure:
    """Share of the average-K sets that hold so many classes."""
    return lambda val, table, K: float(np.mean(_average(val, table, K).sizes == size))


def _mean_size(shot: str) -> Measure:
    """Mean size of the average-K sets of rows whose label has few, medium or many training images."""
    return lambda val, table, K: size_by(_average(val, table, K), "shots")[shot]


def _without_label(table: LogitTable) -> LogitTable:
    return table.rows(~table.labelled)


MEASURES: dict[str, Measure] = {
    **_of_sets("top_k", _top),
    **_of_sets("average_k", _average),
    **{f"average_k_share_of_size_{size}": _share_of_size(size) for size in range(1, 11)},
    **{f"{shot}_average_k_size": _mean_size(shot) for shot in SHOTS},
    "top_k_error": lambda val, table, K: 1 - top_k_accuracy(table, K),
    **{f"count_bin_{place}_accuracy": _of_count_bin(place) for place in range(1, 6)},
    "unlabelled_confidence": lambda val, table, K: max_confidence(_without_label(table)),
    "unlabelled_auroc": lambda val, table, K: auroc(table.rows(table.labelled), _without_label(table)),
    "macro_f1": lambda val, table, K: macro_f1(_top(val, table, K)),
    "top_k_calibration_error": lambda val, table, K: top_k_calibration_error(table, K, BINS),
}


HISTORY = "history."  # what the name of a column of a run's history begins with


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
    spec = MetricSpec.parse(name)
    if spec.metric not in MEASURES or not isinstance(spec.K, int) or spec.group:
        raise ValueError(
            f"{name!r} is not a measure; give one of {', '.join(MEASURES)} with its K, such as top_k_accuracy@K=5"
        )
    K = spec.K
    return lambda val, table: float(MEASURES[spec.metric](val, table, K))
