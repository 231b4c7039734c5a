"""Runs in the store that differ in one knob, and perhaps in a second: sweeps, however they were trained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd

from workbench.losses.target_size import target_K
from workbench.metric_spec import MetricSpec
from workbench.metrics import METRICS, Metric
from workbench.metrics.seeds import best_on_val, mean_over_seeds, measured_splits, sweep_frame
from workbench.sets import AverageK, Rule
from workbench.store import StoredRun
from workbench.warning_capture import warn

FEWEST = 3  # values of a knob that make a sweep
SEEDS = ("seed", "data.seed")  # numbers that are not knobs
SHOWN = ("accuracy", "macro_accuracy", "shot_accuracy", "mean_size", "top_k_accuracy", "negative_log_likelihood")

Setting = dict[str, Any]


@dataclass(frozen=True, eq=False)
class StoredSweep:
    """Runs that differ in `knob`, in their seed and, unless it is None, in one thing more, `beside`."""

    knob: str
    beside: str | None
    runs: tuple[StoredRun, ...]

    @property
    def varied(self) -> list[str]:
        """The names that were varied."""
        return [name for name in (self.knob, self.beside) if name is not None]

    def frame(self, rule: Rule | None = None, metrics: Sequence[Metric] | None = None) -> pd.DataFrame:
        """Tidy: one line per run, split, metric and group ("" or few, medium, many, …).

        Columns: what was varied, `run` (its key), `rule`, `split`, `metric`, `group`, `value`, `n`.
        Sets are made by `rule`, fitted on val (default: average-K for K = 5, or fewer where there are few classes).
        """
        of = tuple(metric for metric in METRICS if metric.name in SHOWN) if metrics is None else tuple(metrics)
        parts = []
        for run in self.runs:
            try:
                chosen = AverageK(target_K({}, run.tables["val"].n_classes)) if rule is None else rule
                measured = _measured(run, frozenset(run.checksums.items()), chosen, of)
            except (ValueError, KeyError) as error:
                if _opens(run):
                    raise
                warn(f"a run is left out: {error}", stacklevel=2)
                continue
            parts.append((run.key, run.record.settings, measured))
        if not parts:
            raise ValueError("no run of this sweep can be read; `workbench evaluate KEY` says what is wrong with one")
        return sweep_frame(parts, self.varied)

    def summary(self, rule: Rule | None = None, metrics: Sequence[Metric] | None = None) -> pd.DataFrame:
        """Mean over seeds with its 95 % interval (`mean_over_seeds`): one line per setting, rule, split, metric and group."""
        means = mean_over_seeds(self.frame(rule, metrics), self.varied, METRICS if metrics is None else metrics)
        return means.sort_values(self.varied, kind="stable", ignore_index=True)


def chosen_on_val(summary: pd.DataFrame, varied: Sequence[str], metric: str) -> pd.DataFrame:
    """The lines of a summary of the setting that is best on val by a metric, such as "accuracy" or "shot_accuracy (few)".

    Tune on val, report test: its lines of test are what the choice is worth. The first of equals is taken.

    >>> rows = [(0.1, "val", 0.5), (1.0, "val", 0.7), (0.1, "test", 0.9), (1.0, "test", 0.6)]
    >>> summary = pd.DataFrame(rows, columns=["loss.epsilon", "split", "mean"]).assign(metric="accuracy", group="")
    >>> chosen_on_val(summary, ["loss.epsilon"], "accuracy")[["loss.epsilon", "split", "mean"]].to_numpy().tolist()
    [[1.0, 'val', 0.7], [1.0, 'test', 0.6]]
    """
    named = summary["metric"].combine(summary["group"], lambda *of: str(MetricSpec.parse(*of)))
    ranked = summary[(named == metric) & (summary["split"] == "val") & summary["mean"].notna()]
    if ranked.empty:
        raise ValueError(f"metric = {metric!r} has no value on val; it has {', '.join(dict.fromkeys(named))}")
    name = MetricSpec.parse(metric).metric.partition(",")[0]
    direction = next(each.direction for each in METRICS if each.name == name)
    at = best_on_val({at: [mean] for at, mean in enumerate(ranked["mean"])}, direction)
    chosen: pd.DataFrame = summary.merge(ranked[list(varied)].iloc[[at]], on=list(varied))
    return chosen


def _opens(run: StoredRun) -> bool:
    """Whether the tables of a run can be read."""
    try:
        return run.tables["val"] is not None and run.tables["test"] is not None
    except (ValueError, KeyError):
        return False


@lru_cache(maxsize=1024)  # the same runs are read whenever another joins them
def _measured(
    run: StoredRun, content: frozenset[tuple[str, str]], rule: Rule, metrics: tuple[Metric, ...]
) -> pd.DataFrame:
    """Return `measured_splits` of one run; `content` changes when the run is trained again."""
    return measured_splits(run.tables, {rule.short(): rule}, metrics)


def stored_sweeps(runs: Iterable[StoredRun]) -> list[StoredSweep]:
    """Every sweep among the runs: a knob with at least three values where all else but the seed is equal.

    Runs of the same loss and data that differ in one thing more are lines of the same sweep. Runs that were not trained
    here have no settings and are left out.
    """
    trained = {run: run.record.settings for run in runs if run.record.trained}
    knobs = dict.fromkeys(
        name for settings in trained.values() for name, value in settings.items() if _is_number(value)
    )
    found = []
    for knob in [name for name in knobs if name not in SEEDS]:
        varied = {knob, "seed"} | ({"dataset_key"} if knob.startswith("data.") else set())
        families: dict[Any, dict[Any, list[StoredRun]]] = defaultdict(lambda: defaultdict(list))
        for run, settings in trained.items():
            if _is_number(settings.get(knob)):  # not what follows a schedule
                rest = {name: value for name, value in settings.items() if name not in varied}
                family = tuple(rest.get(name) for name in ("loss", "data", "dataset_key", "model", "features"))
                families[family][tuple(sorted(rest.items()))].append(run)
        for lines in families.values():
            swept = {rest: runs for rest, runs in lines.items() if len({trained[run][knob] for run in runs}) >= FEWEST}
            found += _merged(knob, swept)
    return sorted(found, key=lambda sweep: len(sweep.runs), reverse=True)


def _merged(knob: str, lines: dict[Any, list[StoredRun]]) -> list[StoredSweep]:
    """One sweep of all lines if they differ in one name at most, otherwise one of each."""
    different = {
        name for rest in lines for name, value in rest if any(dict(other).get(name) != value for other in lines)
    }
    if len(different) <= 1:
        runs = tuple(run for line in lines.values() for run in line)
        return [StoredSweep(knob, next(iter(different), None), runs)] if runs else []
    return [StoredSweep(knob, None, tuple(line)) for line in lines.values()]


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
