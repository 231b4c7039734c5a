"""What may choose the epoch that is kept: a column of every history, or a metric of the validation rows with its K."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.counts import FEW, MANY, SHOTS, shot_groups
from workbench.sets.ranks import label_ranks
from workbench.sets.selection import checked_m, threshold_among
from workbench.tables import LogitTable, groups
from workbench.tables.ordering import most_probable

if TYPE_CHECKING:
    from workbench.training.run import Run

# Columns that every history has, average-K at the K of the loss (or 5) → whether more is better.
COLUMNS = {"val_loss": False, "val_accuracy": True, "val_average_K_accuracy": True}
MACRO = "macro"
# Metrics with a K of one's own: of rows, the mean over classes, or the mean over classes with few, medium, many images.
METRICS = tuple(
    f"{part}{sets}_accuracy" for part in ("", f"{MACRO}_", *(f"{s}_" for s in SHOTS)) for sets in ("top_k", "average_k")
)
EXAMPLE = "average_k_accuracy@K=3"
MONITORS = (*COLUMNS, *(f"{metric}@K=…" for metric in METRICS))


@dataclass(frozen=True)
class Monitor:
    """What is watched of the validation rows after every epoch.

    - `name`: as a run names it.
    - `column`: where a history has it.
    - `more_is_better`: False for a loss.
    - `sets`: "top_k" or "average_k", or "" for a column of every history; with `K` classes, on average for average-K.
    - `of`: "" for the share of rows, "macro" for the mean over classes, or a shot: over the classes with few, medium or
      many training images.
    """

    name: str
    column: str
    more_is_better: bool = True
    sets: str = ""
    of: str = ""
    K: float = math.nan

    def value(self, val: LogitTable, found: np.ndarray) -> float:
        """The accuracy, given of every label of the table (`positives`) whether the set of its row holds it."""
        rows, classes = val.positives()
        if not self.of:  # a row with many labels is right if its set holds all of them
            missed = np.bincount(rows[~found], minlength=val.n) > 0
            return float(1 - missed[val.labelled].mean())
        of_classes = groups.means(found, classes, val.n_classes)
        if self.of in SHOTS:
            of_classes = of_classes[shot_groups(groups.training_images(val)) == self.of]
        return float(groups.mean_of_present(of_classes))


@functools.cache
def monitor_named(name: str) -> Monitor:
    """The monitor of this name.

    >>> monitor_named("few_average_k_accuracy@K=3.0").column
    'val_few_average_k_accuracy@K=3'
    >>> monitor_named("top_k_acuracy@K=3")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: monitor = 'top_k_acuracy@K=3' is not watched; give one of val_loss, val_accuracy, val_average_K_accuracy, ...
    """
    if name in COLUMNS:
        return Monitor(name, column=name, more_is_better=COLUMNS[name])
    metric, _, number = name.partition("@K=")
    if metric not in METRICS or not number:
        raise ValueError(f"monitor = {name!r} is not watched; give {_allowed()}")
    K = _number(number)
    part, sets = re.fullmatch("(?:([a-z]+)_)?(top_k|average_k)_accuracy", metric).groups("")  # type: ignore[union-attr]
    if K is None or (sets == "top_k" and K != int(K)):
        kind = "a whole number ≥ 1" if sets == "top_k" else "a number above 0"
        raise ValueError(f"monitor = {name!r}: K = {number}; give {kind}, such as {metric}@K=3")
    canonical = f"{metric}@K={int(K) if K == int(K) else K}"
    return Monitor(canonical, f"val_{canonical}", sets=sets, of=part, K=K)


def monitors_named(given: Any) -> tuple[Monitor, ...]:
    """The monitors that a run names: none, one or several."""
    names = (given,) if isinstance(given, str) else () if given is None else given
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"monitor = {given!r}; give {_allowed()}; or several of them as a tuple, or None")
    found = tuple(map(monitor_named, names))
    if len(set(found)) < len(found):
        raise ValueError(f"monitor = {given!r} names one of them twice; give each once")
    return found


def measured(monitors: Iterable[Monitor], val: LogitTable) -> dict[str, float]:
    """Column of the history → value, of the monitors that are no column of every history.

    What sets of one kind and one K hold is found once for all monitors that ask for it.
    """
    monitors = [monitor for monitor in monitors if monitor.sets]
    if not monitors:
        return {}
    kinds, probabilities = {(monitor.sets, monitor.K) for monitor in monitors}, val.probabilities()
    found = {(sets, K): _found(val, probabilities, sets, K) for sets, K in kinds}
    return {monitor.column: monitor.value(val, found[monitor.sets, monitor.K]) for monitor in monitors}


def _found(val: LogitTable, probabilities: np.ndarray, sets: str, K: float) -> np.ndarray:
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


def check_monitors(run: Run) -> None:
    """Refuses what cannot be measured on the validation rows of a run, or never changes."""
    for monitor in monitors_named(run.monitor):
        if monitor.name != "val_loss":
            _check_on(run, monitor)


def _check_on(run: Run, monitor: Monitor) -> None:
    said, data = f"monitor = {monitor.name!r}", run.data
    labels = data.val.labels
    n_labels = labels.sum(1) if labels.ndim == 2 else np.ones(len(labels), int)
    if not n_labels.any():
        raise ValueError(f"{said}, but no validation row of {data.name} has a label; use monitor='val_loss' or None")
    if monitor.sets and monitor.K >= data.n_classes:
        raise ValueError(
            f"{said}, but {data.name} has {data.n_classes} classes: sets of all of them are always right; give a K below that"
        )
    if monitor.sets == "top_k" and not monitor.of and n_labels[n_labels > 0].min() > monitor.K:
        raise ValueError(
            f"{said}, but every validation row of {data.name} has more than {monitor.K:g} labels, and a set is right if it "
            f"holds all of them; give a larger K, or {MACRO}_{monitor.name}, which counts every label"
        )
    if monitor.of in SHOTS:
        in_val = labels.any(0) if labels.ndim == 2 else np.isin(np.arange(data.n_classes), labels)
        shots = shot_groups(data.class_counts)[in_val]
        if monitor.of not in shots:
            there = ", ".join(f"{shot}_…" for shot in SHOTS if shot in shots)
            raise ValueError(
                f"{said}, but no class of the validation rows of {data.name} has {monitor.of} training rows (few < {FEW} ≤ "
                f"medium ≤ {MANY} < many); give {there} or {MACRO}_…"
            )


def _number(text: str) -> float | None:
    """A number above 0, or None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < math.inf else None


def _allowed() -> str:
    return f"one of {', '.join(MONITORS)}, such as {EXAMPLE!r}"
