"""Values of the monitors of a run, measured on the validation rows after every epoch."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from workbench.class_counts import SHOTS, shot_groups
from workbench.runs.monitors import Monitor
from workbench.sets.label_ranks import label_ranks
from workbench.sets.thresholds import checked_m, threshold_among
from workbench.tables import LogitTable, groups
from workbench.tables.ordering import most_probable


def measured(monitors: Iterable[Monitor], val: LogitTable) -> dict[str, float]:
    """Column of the history → value, of the monitors that are no column of every history.

    What sets of one kind and one K hold is found once for all monitors that ask for it.
    """
    monitors = [monitor for monitor in monitors if monitor.sets]
    if not monitors:
        return {}
    kinds, probabilities = {(monitor.sets, monitor.K) for monitor in monitors}, val.probabilities()
    found = {(sets, K): _membership(val, probabilities, sets, K) for sets, K in kinds}
    return {monitor.column: _value(monitor, val, found[monitor.sets, monitor.K]) for monitor in monitors}


def _membership(val: LogitTable, probabilities: np.ndarray, sets: str, K: float) -> np.ndarray:
    """Of every label of the table: is it in the set of its row? The threshold of average-K is that of these rows."""
    rows, classes = val.positives()
    inside: np.ndarray
    if sets == "average_k":
        inside = probabilities[rows, classes] >= threshold_among(probabilities, checked_m(K, val))
    elif val.many_labels:
        inside = most_probable(probabilities, val.scores, int(K))[rows, classes]
    else:
        inside = label_ranks(probabilities, val.scores, val.checked_labels())[rows] <= K
    return inside


def _value(monitor: Monitor, val: LogitTable, found: np.ndarray) -> float:
    """The accuracy, given of every label of the table (`positives`) whether the set of its row holds it."""
    rows, classes = val.positives()
    if not monitor.of:  # a row with many labels is right if its set holds all of them
        missed = np.bincount(rows[~found], minlength=val.n) > 0
        return float(1 - missed[val.labelled].mean())
    of_classes = groups.means(found, classes, val.n_classes)
    if monitor.of in SHOTS:
        of_classes = of_classes[shot_groups(groups.known_class_counts(val)) == monitor.of]
    return float(groups.mean_of_present(of_classes))
