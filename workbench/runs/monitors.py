"""Monitors, which choose the epoch that is kept: a column of every history, or a metric of the validation rows with its K."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.class_counts import FEW, MANY, SHOTS, shot_groups
from workbench.metric_spec import MACRO, MetricSpec

if TYPE_CHECKING:
    from workbench.runs.run import Run

# Columns that every history has, average-K at the K of the loss (or 5) → whether more is better.
COLUMNS = {"val_loss": False, "val_accuracy": True, "val_average_K_accuracy": True}
# Metrics with their own K: of rows, the mean over classes, or the mean over classes with few, medium, many images.
METRICS = tuple(
    f"{part}{sets}_accuracy" for part in ("", f"{MACRO}_", *(f"{s}_" for s in SHOTS)) for sets in ("top_k", "average_k")
)
EXAMPLE = "average_k_accuracy@K=3"
MONITORS = (*COLUMNS, *(f"{metric}@K=…" for metric in METRICS))


@dataclass(frozen=True)
class Monitor:
    """A number that is measured on the validation rows after every epoch.

    Args:
        name: As a run names it.
        column: Where a history has it.
        more_is_better: False for a loss.
        sets: "top_k" or "average_k", or "" for a column of every history; with `K` classes, on average for average-K.
        of: "" for the share of rows, "macro" for the mean over classes, or a shot: over the classes with few, medium or
            many training images.
    """

    name: str
    column: str
    more_is_better: bool = True
    sets: str = ""
    of: str = ""
    K: float = math.nan


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
    try:
        spec = MetricSpec.parse(name)
    except ValueError:
        spec = MetricSpec(metric, K=math.nan)
    if not spec.sets or spec.group or not number:
        raise ValueError(f"monitor = {name!r} is not watched; give {_allowed()}")
    K = math.nan if spec.K is None else spec.K
    if math.isnan(K) or (spec.sets == "top_k" and K != int(K)):
        kind = "a whole number ≥ 1" if spec.sets == "top_k" else "a number above 0"
        raise ValueError(f"monitor = {name!r}: K = {number}; give {kind}, such as {metric}@K=3")
    return Monitor(str(spec), f"val_{spec}", sets=spec.sets, of=spec.part, K=float(K))


def monitors_named(given: Any) -> tuple[Monitor, ...]:
    """The monitors that a run names: none, one or several."""
    names = (given,) if isinstance(given, str) else () if given is None else given
    if not isinstance(names, (tuple, list)) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"monitor = {given!r}; give {_allowed()}; or several of them as a tuple, or None")
    found = tuple(map(monitor_named, names))
    if len(set(found)) < len(found):
        raise ValueError(f"monitor = {given!r} names one of them twice; give each once")
    return found


def check_monitors(run: Run) -> None:
    """Refuses what cannot be measured on the validation rows of a run, or never changes."""
    for monitor in monitors_named(run.monitor):
        if monitor.name != "val_loss":
            _check_on(run, monitor)


def _check_on(run: Run, monitor: Monitor) -> None:
    prefix, data = f"monitor = {monitor.name!r}", run.data
    labels = data.val.labels
    n_labels = labels.sum(1) if labels.ndim == 2 else np.ones(len(labels), int)
    if not n_labels.any():
        raise ValueError(f"{prefix}, but no validation row of {data.name} has a label; use monitor='val_loss' or None")
    if monitor.sets and monitor.K >= data.n_classes:
        raise ValueError(
            f"{prefix}, but {data.name} has {data.n_classes} classes: sets of all of them are always right; give a K below that"
        )
    if monitor.sets == "top_k" and not monitor.of and n_labels[n_labels > 0].min() > monitor.K:
        raise ValueError(
            f"{prefix}, but every validation row of {data.name} has more than {monitor.K:g} labels, and a set is right if it "
            f"holds all of them; give a larger K, or {MACRO}_{monitor.name}, which counts every label"
        )
    if monitor.of in SHOTS:
        in_val = labels.any(0) if labels.ndim == 2 else np.isin(np.arange(data.n_classes), labels)
        shots = shot_groups(data.class_counts)[in_val]
        if monitor.of not in shots:
            there = ", ".join(f"{shot}_…" for shot in SHOTS if shot in shots)
            raise ValueError(
                f"{prefix}, but no class of the validation rows of {data.name} has {monitor.of} training rows (few < {FEW} ≤ "
                f"medium ≤ {MANY} < many); give {there} or {MACRO}_…"
            )


def _allowed() -> str:
    return f"one of {', '.join(MONITORS)}, such as {EXAMPLE!r}"
