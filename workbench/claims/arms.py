"""How claims are measured: arms tuned on validation rows, the same seeds for all, differences on the same test rows.

An interval is of both kinds of luck: of the seeds (other weights, orders and noise) and of the test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench.claims.claim import Bench, Expectation, Found, Line
from workbench.metrics import Metric
from workbench.metrics.base import Parts, named, resampled
from workbench.metrics.hierarchical import RESAMPLES, seeds_and_rows_interval
from workbench.sets import Rule
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun, train
from workbench.training.stacked.heads import stackable, train_heads

POINTS = 100  # shares are told in points
Tables = Mapping[str, LogitTable]


# Numbers


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    def expected(self, what: str, *, above: float | None = None, below: float | None = None) -> Expectation:
        """What a claim says of it."""
        return Expectation(what, self.value, self.low, self.high, above, below)

    def at(self, series: str, x: float | str) -> Line:
        """Its point in a figure."""
        return Line(series, x, self.value, self.low, self.high)

    def __mul__(self, factor: float) -> Estimate:
        return Estimate(self.value * factor, self.low * factor, self.high * factor)

    def __sub__(self, known: float) -> Estimate:
        return Estimate(self.value - known, self.low - known, self.high - known)


@dataclass(frozen=True, eq=False)
class Sample:
    """A number of each seed, on all test rows (`values`) and on resamples of them (`drawn`), the same for everyone."""

    values: np.ndarray  # (seeds,)
    drawn: np.ndarray  # (seeds, resamples)

    @classmethod
    def of(cls, parts: Sequence[Parts], group: str = "") -> Sample:
        """The value of a metric, of one `group` if it has several, from its parts for each seed."""
        values = np.array([named(one.value())[group] for one in parts])
        return cls(values, np.stack([found[group] for found in resampled(parts, RESAMPLES, seed=0)]))

    def __sub__(self, other: Sample) -> Sample:
        return Sample(self.values - other.values, self.drawn - other.drawn)

    def __mul__(self, factor: float) -> Sample:
        return Sample(self.values * factor, self.drawn * factor)

    def estimate(self) -> Estimate:
        """The mean over seeds; its interval is of seeds and rows."""
        return Estimate(float(self.values.mean()), *seeds_and_rows_interval(self.values, self.drawn))


@dataclass(frozen=True)
class Measure:
    """A metric of the sets that a rule makes (or of the table, without one), and the group of classes it is of."""

    metric: Metric
    rule: Rule | None = None
    group: str = ""

    def parts(self, tables: Tables, split: str = "test") -> Parts:
        """On the rows of a split; the rule is fitted on val."""
        subject = tables[split] if self.rule is None else self.rule.fit(tables["val"])(tables[split])
        return self.metric.parts(subject)

    def on_val(self, run: TrainedRun) -> float:
        """What chooses settings: the value on validation rows."""
        return float(named(self.parts(run.tables, "val").value())[self.group])


def over_seeds(values: Sequence[float] | np.ndarray) -> Estimate:
    """The mean over seeds with Student's interval, of numbers that are no metrics of rows."""
    known = np.asarray(values, dtype=float)[:, None]
    return Sample(known[:, 0], np.repeat(known, RESAMPLES, axis=1)).estimate()


def over_rows(value: Callable[[np.ndarray], float], n: int, resamples: int = RESAMPLES) -> Estimate:
    """A number that is a function of the numbers of rows (or classes), and the quantiles of what resamples of them give."""
    rng = np.random.default_rng(0)
    drawn = [value(rng.integers(n, size=n)) for _ in range(resamples)]
    low, high = np.nanquantile(drawn, [0.025, 0.975])
    return Estimate(value(np.arange(n)), float(low), float(high))


# Arms


@dataclass(frozen=True)
class Arm:
    """One side of a comparison: its settings, of which the best on validation rows is taken."""

    name: str
    settings: tuple[Mapping[str, Any], ...]


def arm(name: str, **setting: Any) -> Arm:
    """An arm with a grid: values that are lists are tried in all combinations.

    >>> len(arm("cross-entropy", learning_rate=[1e-3, 1e-2]).settings)
    2
    """
    settings: list[dict[str, Any]] = [{}]
    for knob, values in setting.items():
        listed = values if isinstance(values, list) else [values]
        settings = [{**before, knob: value} for before in settings for value in listed]
    return Arm(name, tuple(settings))


@dataclass(frozen=True)
class Trained:
    """An arm with the setting that was best on validation rows, trained once for each seed."""

    name: str
    setting: Mapping[str, Any]
    runs: tuple[TrainedRun, ...]

    def sample(self, measure: Measure, tables: Callable[[TrainedRun], Tables] = lambda run: run.tables) -> Sample:
        """What a measure gives for each seed; `tables` gives other tables of a run, such as those of its candidates."""
        return Sample.of([measure.parts(tables(run)) for run in self.runs], measure.group)


def trained(
    bench: Bench, run: Run, arms: Iterable[Arm], *, tuned_by: Callable[[TrainedRun], float], seeds: int
) -> dict[str, Trained]:
    """Every arm at its best setting: all settings are trained with all seeds, and `tuned_by` chooses (larger is better).

    `tuned_by` is to look at validation rows only. A setting with a run that diverged is not chosen.
    """
    arms = list(arms)
    asked = {
        (each.name, place): [replace(run, **setting, seed=seed) for seed in range(seeds)]
        for each in arms
        for place, setting in enumerate(each.settings)
    }
    done = _trained_runs(bench, [one for runs in asked.values() for one in runs])
    chosen = {}
    for each in arms:
        candidates = {}
        for place, _ in enumerate(each.settings):
            runs = [done[one.key] for one in asked[each.name, place] if one.key in done]
            if len(runs) == seeds:
                candidates[place] = (float(np.mean([tuned_by(one) for one in runs])), runs)
        if not candidates:
            raise FloatingPointError(f"{each.name}: every setting diverged; give smaller learning rates")
        best = max(candidates, key=lambda place: candidates[place][0])
        chosen[each.name] = Trained(each.name, each.settings[best], tuple(candidates[best][1]))
    return chosen


def _trained_runs(bench: Bench, runs: Sequence[Run]) -> dict[str, TrainedRun]:
    """Key → run, of all that did not diverge; heads are trained together, and what is stored is read."""
    together = [run for run in runs if stackable(run)]
    done: list[TrainedRun | FloatingPointError] = []
    if together:
        done += train_heads(together, store=bench.store, progress=bench.progress)
    for run in runs:
        if run not in together:
            try:
                done.append(train(run, store=bench.store, progress=bench.progress))
            except FloatingPointError as error:
                done.append(error)
    runs_done = {one.stored.key: one for one in done if isinstance(one, TrainedRun)}
    bench.seconds.update({key: float(one.history["seconds"].sum()) for key, one in runs_done.items()})
    return runs_done


def score(side: Trained, measure: Measure) -> Estimate:
    """What a measure of shares gives for an arm, in points."""
    return (side.sample(measure) * POINTS).estimate()


def gain(side: Trained, over: Trained, measure: Measure) -> Estimate:
    """How many points an arm is above another one on the same test rows, seed by seed."""
    return ((side.sample(measure) - over.sample(measure)) * POINTS).estimate()


def found(
    expectations: Iterable[Expectation], lines: Iterable[Line], used: Mapping[str, Trained], remark: str = ""
) -> Found:
    """What a claim gave, with what was chosen on validation rows for each arm it used, and the runs of these arms."""
    settled = {
        name: ", ".join(f"{knob} = {value!r}" for knob, value in side.setting.items()) for name, side in used.items()
    }
    runs = dict.fromkeys(run.stored.key for side in used.values() for run in side.runs)
    return Found(tuple(expectations), tuple(lines), settled, tuple(runs), remark)
