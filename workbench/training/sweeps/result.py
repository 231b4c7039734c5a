"""The result of a sweep: its frame, its summary, and the settings that were best on val."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from workbench.metric_spec import MetricSpec
from workbench.metrics import (
    Metric,
    accuracy,
    count_bin_accuracy,
    expected_calibration_error,
    macro_accuracy,
    mean_size,
    negative_log_likelihood,
    shot_accuracy,
    top_k_accuracy,
)
from workbench.metrics.hierarchical import RESAMPLES
from workbench.metrics.seeds import best_on_val, mean_over_seeds, measured_splits, sweep_frame
from workbench.runs.grid import Cell, Setting, cells, rules_in
from workbench.sets import Rule
from workbench.training.sweeps.best import Best, BestOfEach, lines_with
from workbench.training.trained_run import TrainedRun

METRICS = (
    accuracy,
    macro_accuracy,
    shot_accuracy,
    count_bin_accuracy,
    mean_size,
    top_k_accuracy,
    negative_log_likelihood,
    expected_calibration_error,
)


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of a sweep, the setting of each, and what they give on val and on test."""

    rules: tuple[Rule, ...]
    metrics: tuple[Metric, ...]
    runs: tuple[TrainedRun, ...]  # one per setting; a run that K does not change serves several
    settings: tuple[Setting, ...]
    failed: tuple[
        tuple[Setting, str], ...
    ] = ()  # setting and message of the runs that failed, most often because they diverged

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Tidy: one line per setting, rule, split, metric and group ("" or few, medium, many, …).

        Columns: what was varied, `run` (its key), `rule` ("" for metrics of the probabilities alone; `AverageK(K)` where
        the column K tells its K), `split`, `metric`, `group`, `value`, `n`.
        """
        return sweep_frame(
            (
                (
                    trained.stored.key,
                    cells(setting),
                    measured_splits(trained.tables, rules_in(self.rules, setting), self.metrics),
                )
                for trained, setting in zip(self.runs, self.settings, strict=True)
            ),
            self.varied,
        )

    @property
    def varied(self) -> list[str]:
        """The names that were varied, in their order."""
        return list([*self.settings, *(setting for setting, _ in self.failed)][0])

    def summary(self) -> pd.DataFrame:
        """Mean over seeds with its 95 % interval (`mean_over_seeds`): one line per setting, rule, split, metric, group."""
        return mean_over_seeds(self.frame, [name for name in self.varied if name != "seed"], self.metrics)

    def best(self, metric: str, split: str = "val", *, group: str = "", rule: Rule | str | None = None) -> Best:
        """The setting with the best mean of a metric on val, and what it gives on test: tune on val, report test.

        Of a metric that is a number for each group, such as `shot_accuracy`, say which: group="few"; of several rules too:
        rule=TopK(1). Settings with a run that diverged are left out. The first of equals is taken.
        """
        (best,) = self.best_of_each((), metric, split, group=group, rule=rule).values()
        return best

    def best_of_each(
        self,
        by: str | Sequence[str],
        metric: str,
        split: str = "val",
        *,
        group: str = "",
        rule: Rule | str | None = None,
    ) -> BestOfEach:
        """The best setting, as in `best`, for each value of what was varied: by = "loss", or ("K", "loss").

        `.frame` shows them side by side on test, and `.differences()` which of them differ by more than luck.
        """
        by = (by,) if isinstance(by, str) else tuple(by)
        if unknown := [name for name in by if name not in self.varied]:
            raise ValueError(f"{', '.join(unknown)} was not varied; give some of {', '.join(self.varied)}")
        if split != "val":
            raise ValueError(f"split = {split!r}: settings are chosen on 'val', so that test stays a judge")
        ranking, candidates = ranking_metric(metric, self.metrics).stated(), self._candidates()
        if ranking.subject == "sets" and "K" not in by and len({one.get("K") for one in candidates}) > 1:
            raise ValueError(
                f"{metric}: larger sets hit more, so settings of different K are not compared; "
                f"best_of_each({('K', *by)!r}, {metric!r}) takes the best of each"
            )
        judged = self._judged(ranking, group, rule, candidates)
        among: dict[tuple[Cell, ...], list[Best]] = {}
        for one, best in zip(candidates, judged, strict=True):
            among.setdefault(tuple(one[name] for name in by), []).append(best)
        return BestOfEach(by, {value: _best_on_val(bests, ranking) for value, bests in among.items()})

    def intervals(
        self, metric: str, *, group: str = "", rule: Rule | str | None = None, resamples: int = RESAMPLES
    ) -> pd.DataFrame:
        """The lines of the summary of one metric on test, with intervals of seeds and rows together (`Best.interval`)."""
        stated = ranking_metric(metric, self.metrics).stated()
        judged = self._judged(stated, group, rule, self._candidates())
        cell = {"split": "test", "metric": stated.name, "group": group, "rule": judged[0].rule}
        lines = pd.concat([lines_with(best.summary, cell) for best in judged], ignore_index=True)
        low, high = zip(*(best.interval(resamples=resamples) for best in judged), strict=True)
        lines = lines.assign(low=low, high=high)
        lines.attrs["intervals"] = "seeds and rows"  # for those who draw it
        return lines

    @cached_property
    def _without_seed(self) -> list[dict[str, Cell]]:
        """The settings as the frame holds them, without their seeds."""
        return [cells(setting, seed=False) for setting in self.settings]

    def _candidates(self) -> list[dict[str, Cell]]:
        """Every setting of which no run diverged, as the frame holds it and without its seed."""
        unstable = [cells(setting, seed=False) for setting, _ in self.failed]
        found: list[dict[str, Cell]] = []
        for one in self._without_seed:
            if one not in unstable and one not in found:
                found.append(one)
        if not found:
            raise ValueError("every setting has a run that failed; sweep.failed says why")
        return found

    def _judged(
        self, metric: Metric, group: str, rule: Rule | str | None, candidates: Sequence[dict[str, Cell]]
    ) -> list[Best]:
        """Each of the candidates, judged by a metric."""
        summary = self.summary()
        known = dict.fromkeys(summary.loc[summary["metric"] == metric.name, "group"])
        if [*known] == [""] and group:
            raise ValueError(f"group = {group!r}: {metric.name} is one number, of no group; leave group out")
        if known and group not in known:
            raise ValueError(
                f"group = {group!r}: {metric.name} is a number for each of {', '.join(known)}; give one of them"
            )
        name = self._rule_of(metric, rule)
        found = []
        for one in candidates:
            places = [at for at, setting in enumerate(self._without_seed) if setting == one]
            setting = {name: value for name, value in self.settings[places[0]].items() if name != "seed"}
            runs = tuple(self.runs[at] for at in places)
            of_setting = lines_with(summary, one)
            found.append(Best(metric.name, setting, runs, of_setting, group, name, metric, self.rules))
        return found

    def _rule_of(self, metric: Metric, given: Rule | str | None) -> str:
        """The name of the rule that a metric is judged with, as the frame has it; "" if it needs none."""
        if metric.subject != "sets":
            return ""
        known = list(dict.fromkeys(name for setting in self.settings for name in rules_in(self.rules, setting)))
        name = next(iter(rules_in((given,), self.settings[0]))) if isinstance(given, Rule) else given
        if name is None and len(known) == 1:
            return known[0]
        if name not in known:
            raise ValueError(
                f"rule = {given!r}: {metric.name} is a number for each of {', '.join(known)}; give one of them"
            )
        return str(name)

    def __repr__(self) -> str:
        summary = f"{len(self.runs)} runs over {', '.join(self.varied)}"
        return f"Sweep({summary}, {len(self.failed)} failed)" if self.failed else f"Sweep({summary})"

    def _repr_html_(self) -> str:
        return self.summary().to_html(index=False, float_format="{:.4g}".format)


def _best_on_val(bests: Sequence[Best], metric: Metric) -> Best:
    """The best on val; the first of equals."""
    try:
        return bests[best_on_val({at: [best.val] for at, best in enumerate(bests)}, metric.direction)]
    except ValueError:
        raise ValueError(f"{metric.name} is not defined on these tables; give another metric") from None


def ranking_metric(name: str, metrics: Sequence[Metric] = METRICS) -> Metric:
    """The metric of this name, with or without its K, by which settings are ranked."""
    rankable = {metric.stated().name: metric for metric in metrics if metric.direction != "none"}
    rankable |= {metric.name: metric for metric in rankable.values()}
    spec = str(MetricSpec.parse(name))
    if spec not in rankable:
        names = ", ".join(dict.fromkeys(metric.name for metric in rankable.values()))
        raise ValueError(f"metric = {name!r} does not rank settings; give one of {names}")
    return rankable[spec]
