"""Experiments of claims: arms tuned on validation rows, the same seeds for all, differences on the same test rows.

An interval is of both kinds of luck: of the seeds (other weights, orders and noise) and of the test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from workbench.claims.claim import Bench, Expectation, Found, Line
from workbench.metrics import Metric
from workbench.metrics.base import Parts, named, resampled
from workbench.metrics.hierarchical import RESAMPLES, seeds_and_rows_interval
from workbench.metrics.seeds import best_on_val
from workbench.sets import Rule
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun
from workbench.training.many_runs import train_all

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
        """Return the expectation of a claim about this quantity."""
        return Expectation(what, self.value, self.low, self.high, above, below)

    def at(self, series: str, x: float | str) -> Line:
        """Its point in a figure."""
        return Line(series, x, self.value, self.low, self.high)

    def __str__(self) -> str:
        return f"{self.value:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"

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

    def on_val(self, run: TrainedRun, tables: Callable[[TrainedRun], Tables] = lambda run: run.tables) -> float:
        """Return the value on validation rows, by which settings are selected; `tables` as in `Trained.sample`."""
        return float(named(self.parts(tables(run), "val").value())[self.group])


def over_seeds(values: Sequence[float] | np.ndarray) -> Estimate:
    """The mean over seeds with Student's interval, of numbers that are not metrics of rows."""
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


def edges(side: Arm, setting: Mapping[str, Any]) -> tuple[str, ...]:
    """Numeric knobs, of the loss too, of which the setting has the smallest or the largest value that the arm tries.

    >>> tried = arm("cross-entropy", learning_rate=[1e-3, 3e-3, 1e-2])
    >>> edges(tried, tried.settings[0]), edges(tried, tried.settings[1])
    (('learning_rate',), ())
    """
    tried = [_numbers(each) for each in side.settings]
    values = {knob: {each[knob] for each in tried if knob in each} for knob in _numbers(setting)}
    chosen = _numbers(setting)
    return tuple(knob for knob, of in values.items() if len(of) > 1 and chosen[knob] in (min(of), max(of)))


def _numbers(setting: Mapping[str, Any]) -> dict[str, float]:
    knobs = {**setting, **(setting["loss"].settings() if "loss" in setting else {})}
    return {name: value for name, value in knobs.items() if isinstance(value, (int, float))}


def widened(side: Arm, setting: Mapping[str, Any]) -> Arm:
    """The arm with the settings half a decade beyond its grid, in every knob of which the setting has an end.

    >>> tried = arm("cross-entropy", learning_rate=[1e-3, 3e-3, 1e-2])
    >>> [each["learning_rate"] for each in widened(tried, tried.settings[2]).settings]
    [0.001, 0.003, 0.01, 0.03]
    >>> widened(tried, tried.settings[1]) is tried
    True
    """
    beyond = [_beyond(side, setting, knob) for knob in edges(side, setting)]
    new = [each for each in beyond if each is not None and each not in side.settings]
    return Arm(side.name, (*side.settings, *new)) if new else side


def _beyond(side: Arm, setting: Mapping[str, Any], knob: str) -> Mapping[str, Any] | None:
    """The setting with the next power of √10 beyond the grid of a knob; None where the knob does not accept one."""
    value = _numbers(setting)[knob]
    if value <= 0:
        return None
    largest = value == max(tried[knob] for tried in map(_numbers, side.settings))
    half_decades = round(2 * np.log10(value)) + (1 if largest else -1)
    further = float(f"{10 ** (half_decades / 2):.0e}")
    if knob in setting:
        return {**setting, knob: further}
    low, high = setting["loss"].knobs()[knob].accepted
    return {**setting, "loss": replace(setting["loss"], **{knob: further})} if low <= further <= high else None


def _added(grid: Arm, side: Arm) -> dict[str, tuple[float, ...]]:
    """Knob → the values that were tried beyond its grid, in their order."""
    given, tried = map(_numbers, grid.settings), map(_numbers, side.settings[len(grid.settings) :])
    known = {(knob, value) for each in given for knob, value in each.items()}
    new = dict.fromkeys((knob, value) for each in tried for knob, value in each.items() if (knob, value) not in known)
    return {knob: tuple(value for of, value in new if of == knob) for knob, _ in new}


@dataclass(frozen=True)
class Trained:
    """An arm with the setting that was best on validation rows, trained once for each seed.

    `edges` are knobs whose best value is the smallest or the largest that was tried, `added` the values of knobs that were
    tried beyond the grid.
    """

    name: str
    setting: Mapping[str, Any]
    runs: tuple[TrainedRun, ...]
    edges: tuple[str, ...] = ()
    added: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def settled(self) -> str:
        """The setting in words, with the edges of its grid."""
        words = ", ".join(f"{knob} = {value!r}" for knob, value in self.setting.items())
        further = "; ".join(f"{knob} = {', '.join(f'{value:g}' for value in of)}" for knob, of in self.added.items())
        notes = [
            *([f"grid widened by {further}"] if self.added else []),
            *([f"edge of the grid: {', '.join(self.edges)}"] if self.edges else []),
        ]
        return words + (f" ({'; '.join(notes)})" if notes else "")

    def sample(self, measure: Measure, tables: Callable[[TrainedRun], Tables] = lambda run: run.tables) -> Sample:
        """Return the measure for each seed; `tables` selects other tables of a run, such as those of its candidates."""
        return Sample.of([measure.parts(tables(run)) for run in self.runs], measure.group)

    def training_accuracy(self) -> float:
        """Top-1 accuracy on the training rows in the last epoch, the mean over seeds."""
        return float(np.mean([run.history["train_accuracy"].iloc[-1] for run in self.runs]))


def trained(
    bench: Bench,
    run: Run,
    arms: Iterable[Arm],
    *,
    tuned_by: Callable[[TrainedRun], float],
    seeds: int,
    tuned_on: int | None = None,
) -> dict[str, Trained]:
    """Every arm at its best setting: all settings are trained with all seeds, and `tuned_by` chooses (larger is better).

    `tuned_by` is to look at validation rows only. With `tuned_on` it chooses by that many seeds, and the others are trained
    with the best setting alone. Where several values of a knob are tried, more are added while the best one is the smallest
    or the largest. A setting with a run that diverged is not chosen.
    """
    given = {each.name: each for each in arms}
    arms_now, done, tried = given, dict[str, TrainedRun](), set[str]()
    tried_on = seeds if tuned_on is None else tuned_on
    while True:
        asked = {
            name: [_of_seeds(run, setting, tried_on) for setting in each.settings] for name, each in arms_now.items()
        }
        new = [one for of_arm in asked.values() for runs in of_arm for one in runs if one.key not in tried]
        done |= _train_runs(bench, new)
        tried |= {one.key for one in new}
        settings = {name: _best(each, asked[name], done, tuned_by) for name, each in arms_now.items()}
        further = {name: widened(each, settings[name]) for name, each in arms_now.items()}
        if further == arms_now:
            break
        arms_now = further
    best = {name: _of_seeds(run, setting, seeds) for name, setting in settings.items()}
    done |= _train_runs(bench, [one for runs in best.values() for one in runs if one.key not in done])
    chosen = {}
    for name, each in arms_now.items():
        if diverged := [one.seed for one in best[name] if one.key not in done]:
            raise FloatingPointError(f"{name}: seed {diverged[0]} diverged; give smaller learning rates")
        runs = tuple(done[one.key] for one in best[name])
        chosen[name] = Trained(name, settings[name], runs, edges(each, settings[name]), _added(given[name], each))
    return chosen


def _best(
    side: Arm, asked: Sequence[Sequence[Run]], done: Mapping[str, TrainedRun], tuned_by: Callable[[TrainedRun], float]
) -> Mapping[str, Any]:
    """The setting of an arm that is best on validation rows, of those whose runs are all done."""
    whole = {
        place: [tuned_by(done[one.key]) for one in runs]
        for place, runs in enumerate(asked)
        if all(one.key in done for one in runs)
    }
    if not whole:
        raise FloatingPointError(f"{side.name}: every setting diverged; give smaller learning rates")
    return side.settings[best_on_val(whole)]


def _of_seeds(run: Run, setting: Mapping[str, Any], seeds: int) -> list[Run]:
    return [replace(run, **setting, seed=seed) for seed in range(seeds)]


def _train_runs(bench: Bench, runs: Sequence[Run]) -> dict[str, TrainedRun]:
    """Key → run, of all that did not diverge."""
    done = {}
    for run, result in zip(runs, train_all(runs, store=bench.store, progress=bench.progress), strict=True):
        if isinstance(result, TrainedRun):
            done[run.key] = result
        elif not isinstance(result, FloatingPointError):
            raise result
    bench.seconds.update({key: float(one.history["seconds"].sum()) for key, one in done.items()})
    return done


def score(side: Trained, measure: Measure) -> Estimate:
    """Return a measure of shares for an arm, in percentage points."""
    return (side.sample(measure) * POINTS).estimate()


def gain(side: Trained, over: Trained, measure: Measure) -> Estimate:
    """How many points an arm is above another one on the same test rows, seed by seed."""
    return ((side.sample(measure) - over.sample(measure)) * POINTS).estimate()


def found(
    expectations: Iterable[Expectation], lines: Iterable[Line], used: Mapping[str, Trained], remark: str = ""
) -> Found:
    """Return the result of a claim, with the settings selected for each arm and the runs of these arms."""
    settled = {name: side.settled() for name, side in used.items()}
    runs = dict.fromkeys(run.stored.key for side in used.values() for run in side.runs)
    fits = {name: side.training_accuracy() for name, side in used.items()}
    return Found(tuple(expectations), tuple(lines), settled, tuple(runs), remark, training_accuracy=fits)
