"""The settings of a sweep that were best on val, and what they give on test: alone, and side by side."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from workbench.metrics import Metric, Parts
from workbench.metrics.hierarchical import CONFIDENCE, RESAMPLES, Repeated, differences, interval_of, repeated
from workbench.runs.grid import Cell, Setting, cells, rules_in
from workbench.sets import Rule
from workbench.training.trained_run import TrainedRun


@dataclass(frozen=True, eq=False)
class Best:
    """The setting that was best on val: its runs, one per seed, and its lines of the summary."""

    metric: str
    settings: Setting
    runs: tuple[TrainedRun, ...]
    summary: pd.DataFrame
    group: str  # of the metric, where it is a number for each
    rule: str  # that made the sets, as the frame has it; "" for a metric of the probabilities alone
    _metric: Metric = field(repr=False)
    _rules: tuple[Rule, ...] = field(repr=False)  # of the sweep

    @property
    def test(self) -> dict[str, float]:
        """mean, low and high of the metric on test, and the number of seeds."""
        return {name: self._line("test")[name] for name in ("mean", "low", "high", "seeds")}

    @property
    def val(self) -> float:
        """The mean of the metric on val, by which the setting was chosen."""
        return float(self._line("val")["mean"])

    def interval(self, *, resamples: int = RESAMPLES, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Interval of the mean over all seeds on test rows (`workbench.metrics.hierarchical`)."""
        return interval_of(self._metric, self.repeated(resamples), confidence=confidence)

    def repeated(self, resamples: int = RESAMPLES) -> Repeated:
        """The metric of each seed, also on resamples of the rows of test."""
        return repeated({"": self.parts}, self.group, resamples=resamples)[""]

    @cached_property
    def parts(self) -> dict[int, Parts]:
        """Seed → the metric on test, row by row."""
        found = {}
        for trained in self.runs:
            subject: Any = trained.tables["test"]
            if self._metric.subject == "sets":
                subject = rules_in(self._rules, self.settings)[self.rule].fit(trained.tables["val"]).sets(subject)
            found[trained.run.seed] = self._metric.parts(subject)
        return found

    def _line(self, split: str) -> dict[str, Any]:
        cell = {"split": split, "metric": self.metric, "group": self.group, "rule": self.rule}
        (row,) = lines_with(self.summary, cell).to_dict("records")
        return {str(name): value for name, value in row.items()}


@dataclass(frozen=True, eq=False)
class BestOfEach(Mapping[Any, Best]):
    """The best setting for each value of what was varied: a mapping of the values, as the frame has them, to the best.

    Args:
        by: The names of what was varied; of several, a value is a tuple.
    """

    by: tuple[str, ...]
    bests: dict[tuple[Cell, ...], Best]

    def __getitem__(self, value: Any) -> Best:
        return self.bests[value if isinstance(value, tuple) else (value,)]

    def __iter__(self) -> Iterator[Any]:
        return iter(value[0] if len(self.by) == 1 else value for value in self.bests)

    def __len__(self) -> int:
        return len(self.bests)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Side by side: what was chosen, its mean over seeds on `val` and on `test`, and `low` and `high` of the latter.

        The interval is of seeds and rows together (`Best.interval`). Further columns: `rule`, `metric`, `group`, `seeds`, `n`.
        """
        lines = []
        for best in self.bests.values():
            low, high = best.interval()
            line = {"rule": best.rule, "metric": best.metric, "group": best.group, "val": best.val}
            line |= {"test": best.test["mean"], "low": low, "high": high, "seeds": len(best.runs)}
            lines.append(cells(best.settings) | line | {"n": best.runs[0].tables["test"].n})
        return pd.DataFrame(lines)

    def differences(self, *, resamples: int = RESAMPLES, confidence: float = CONFIDENCE) -> pd.DataFrame:
        """Every pair of the chosen settings on test, first minus second; those of different K are not paired.

        Columns: `first`, `second`, `difference`, `low`, `high` (seeds and rows), `t` and `p` (paired t-test over seeds),
        `p_holm` (corrected for all pairs), `comparisons`, `seeds`, `n` (`workbench.metrics.hierarchical`).
        """
        bests = {self._title(value): best for value, best in self.bests.items()}
        first, *others = bests.items()
        labels = first[1].runs[0].tables["test"].checked_labels()
        for name, best in others:
            if not np.array_equal(labels, best.runs[0].tables["test"].checked_labels()):
                raise ValueError(f"{first[0]} and {name} were evaluated on different rows, so nothing pairs them")
        pairs = [
            (one, other)
            for one, other in itertools.combinations(bests, 2)
            if bests[one].settings.get("K") == bests[other].settings.get("K")
        ]
        parts = {name: best.parts for name, best in bests.items()}
        found = repeated(parts, first[1].group, resamples=resamples)
        return differences(first[1]._metric, found, pairs, confidence=confidence)

    def _title(self, value: tuple[Cell, ...]) -> str:
        if len(self.by) == 1:
            return str(value[0])
        return ", ".join(f"{name} = {cell}" for name, cell in zip(self.by, value, strict=True))

    def __repr__(self) -> str:
        return (
            f"BestOfEach({len(self)} settings, one for each {' and '.join(self.by)})"
            if self.by
            else "BestOfEach(1 setting)"
        )

    def _repr_html_(self) -> str:
        return self.frame.to_html(index=False, float_format="{:.4g}".format)


def lines_with(summary: pd.DataFrame, values: Mapping[str, Any]) -> pd.DataFrame:
    """The lines of a summary with these values."""
    inside = np.ones(len(summary), dtype=bool)
    for name, value in values.items():
        inside &= (summary[name] == value).to_numpy()
    return summary[inside]
