"""Results over seeds: the frame of a sweep, and means over seeds with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from workbench.metrics import METRICS, Metric
from workbench.metrics.intervals import over_seeds_interval
from workbench.metrics.reporting import report
from workbench.sets import Rule
from workbench.tables import LogitTable

CONFIDENCE = 0.95
T = TypeVar("T")
MEASURED = ["rule", "split", "metric", "group", "value", "n"]


def best_on_val(values: Mapping[T, Sequence[float]], direction: str = "higher") -> T:
    """The candidate whose validation values have the best mean over seeds; the first of equals.

    Args:
        values: Candidate → its value on validation rows for each seed.
        direction: "higher" or "lower" is better.

    Raises:
        ValueError: No candidate has a mean that is a number.

    >>> best_on_val({"0.1": [0.5, 0.6], "1.0": [0.7, 0.6]})
    '1.0'
    """
    sign = -1 if direction == "lower" else 1
    means = {candidate: sign * float(np.mean(each)) for candidate, each in values.items()}
    numbers = {candidate: mean for candidate, mean in means.items() if not np.isnan(mean)}
    if not numbers:
        raise ValueError("no setting has a number on validation rows")
    return max(numbers, key=lambda candidate: numbers[candidate])


def measured_splits(
    tables: Mapping[str, LogitTable], rules: Mapping[str, Rule], metrics: Sequence[Metric]
) -> pd.DataFrame:
    """`rule`, `split`, `metric`, `group`, `value` and `n` of one run, on val and on test; rules are fitted on val.

    Args:
        rules: Name → rule. A metric of the probabilities alone has the rule "".
    """
    names = {"": "", **{repr(rule): name for name, rule in rules.items()}}
    parts = []
    for split in ("val", "test"):
        found = pd.DataFrame(report(tables[split], rules=rules.values(), metrics=metrics, val=tables["val"]))
        parts.append(found.assign(split=split, rule=found["rule"].map(names)))
    return pd.concat(parts, ignore_index=True)[MEASURED]


def sweep_frame(runs: Iterable[tuple[str, Mapping[str, Any], pd.DataFrame]], varied: Sequence[str]) -> pd.DataFrame:
    """The tidy frame of a sweep, of the key, the setting and the `measured_splits` of each run.

    One line per run, rule, split, metric and group; columns: what was varied, `run`, `rule` ("" for metrics of the
    probabilities alone), `split`, `metric`, `group`, `value`, `n`.
    """
    columns = [*varied, "run", *MEASURED]
    parts = [measured.assign(run=key, **{name: setting[name] for name in varied}) for key, setting, measured in runs]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def mean_over_seeds(frame: pd.DataFrame, names: Sequence[str], metrics: Iterable[Metric] = METRICS) -> pd.DataFrame:
    r"""Mean over seeds with its 95 % interval: one line per setting of `names`, rule, split, metric and group.

    $$ \bar v \pm t_{0.975,\, n-1} \, s / \sqrt n $$

    is Student's interval of the mean over n seeds (`low`, `high`), with s the standard deviation of the n values. Of a
    share it is taken in log-odds and of a size in logarithms, so that it ends where the metric does (its `bounds`). It
    tells how much training varies, not how much test rows do; with one seed there is none (NaN).

    >>> frame = pd.DataFrame({"epsilon": 0.1, "seed": [0, 1], "split": "test", "metric": "accuracy", "value": [0.5, 0.7]})
    >>> mean_over_seeds(frame, ["epsilon"]).round(2).to_dict("records")
    [{'epsilon': 0.1, 'split': 'test', 'metric': 'accuracy', 'mean': 0.6, 'seeds': 2, 'low': 0.01, 'high': 1.0}]
    """
    from scipy import stats  # only here: it takes longer to load than all other modules of the app

    by = [*names, *(name for name in ("rule", "split", "metric", "group") if name in frame)]
    groups = frame.groupby(by, sort=False, dropna=False)["value"]
    found = groups.agg(mean="mean", deviation="std", seeds="size").reset_index()
    n = found["seeds"].to_numpy()
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(n - 1, 1))
    mean, error = found["mean"].to_numpy(float), found["deviation"].to_numpy(float) / np.sqrt(n)
    bounds = {metric.stated().name: metric.bounds for metric in metrics}
    low, high = np.empty(len(found)), np.empty(len(found))
    for name in found["metric"].unique():
        lines = (found["metric"] == name).to_numpy()
        low[lines], high[lines] = over_seeds_interval(
            mean[lines], error[lines], reach[lines], bounds.get(name, (-np.inf, np.inf))
        )
    return found.assign(low=low, high=high).drop(columns="deviation")
