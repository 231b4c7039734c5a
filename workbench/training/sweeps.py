"""Many runs, one frame: a grid of knobs and seeds, tuned on val and reported on test."""

from __future__ import annotations

import dataclasses
import itertools
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from workbench.datasets import Dataset, load_dataset, load_spec
from workbench.losses import Loss
from workbench.metrics import (
    Metric,
    accuracy,
    expected_calibration_error,
    macro_accuracy,
    mean_size,
    negative_log_likelihood,
    top_k_accuracy,
)
from workbench.metrics.base import checked_metrics
from workbench.metrics.seeds import mean_over_seeds, measured_splits, sweep_frame
from workbench.networks.network import weights_digest
from workbench.sets import AverageK, Rule, checked_rule
from workbench.store import Store, chosen_store
from workbench.store.record import target_K
from workbench.training.features import network_of
from workbench.training.trainer import Run, TrainedRun, check_run, train

TOLD_APART = 8  # characters of a key that tell two things of one name apart
METRICS = (accuracy, macro_accuracy, mean_size, top_k_accuracy, negative_log_likelihood, expected_calibration_error)


def sweep(
    run: Run,
    over: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    *,
    rule: Rule | None = None,
    metrics: Sequence[Metric] = METRICS,
    store: Store | None = None,
    progress: bool = True,
) -> Sweep:
    """Train a run in every setting of some of its fields, and judge each on val and on test.

    - `run`: the run whose fields are varied.

    `over` names fields of the run (`seed`, `learning_rate`, `model`, …) or, after `loss.` and `data.`, knobs of its loss
    and of its dataset. A mapping of names to values is a grid: all combinations are trained. A list of mappings is
    trained as it stands. A run that is stored is not trained again, so a sweep that was interrupted goes on where it
    stopped. A run whose loss diverges is told of in `failed`, and the others go on.

    Sets are made by `rule`, fitted on val (default: average-K for K = 5, or fewer where there are few classes), and judged
    by `metrics`. `store` is where runs are kept, as in `train`; `progress` prints a line for each run.

    >>> import tempfile
    >>> from workbench.losses import NoisedTopK
    >>> run = Run("digits", model="linear", loss=NoisedTopK(K=3), epochs=2, device="cpu")
    >>> over = {"loss.epsilon": [0.1, 1.0], "seed": range(2)}
    >>> found = sweep(run, over, rule=AverageK(2), store=Store(tempfile.mkdtemp()), progress=False)
    >>> len(found.runs), found.best("accuracy").settings
    (4, {'loss.epsilon': 1.0})
    """
    if not isinstance(run, Run):
        raise ValueError(f"sweep takes a Run, such as Run('letters', model='mlp'), and not {run!r}")
    store, metrics = chosen_store(store), checked_metrics(metrics)
    settings = _settings(over)
    runs = _runs(run, settings)
    names = dict.fromkeys(name for setting in settings for name in setting)
    settings = [
        {name: setting.get(name, _value(one, name)) for name in names}
        for one, setting in zip(runs, settings, strict=True)
    ]
    first = [at for at, setting in enumerate(settings) if setting not in settings[:at]]  # a run counts once
    runs, settings = [runs[at] for at in first], [settings[at] for at in first]
    _check_all(runs)
    rule = AverageK(target_K({}, min(one.data.n_classes for one in runs))) if rule is None else checked_rule(rule)
    lines = _Lines(runs, store, progress)
    trained: list[TrainedRun] = []
    kept: list[dict[str, Any]] = []
    failed: list[tuple[dict[str, Any], str]] = []
    for one, setting in zip(runs, settings, strict=True):
        try:
            done = lines.trained(one, setting)
        except FloatingPointError as error:
            failed.append((setting, str(error)))
        else:
            trained.append(done)
            kept.append(setting)
    return Sweep(rule, metrics, tuple(trained), tuple(kept), tuple(failed))


@dataclass(frozen=True, eq=False)
class Sweep:
    """The runs of a sweep, the setting of each, and what they give on val and on test."""

    rule: Rule
    metrics: tuple[Metric, ...]
    runs: tuple[TrainedRun, ...]
    settings: tuple[dict[str, Any], ...]  # one per run
    failed: tuple[tuple[dict[str, Any], str], ...] = ()  # setting and message of the runs that diverged

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Tidy: one line per run, split, metric and group ("" or few, medium, many, …).

        Columns: what was varied, `run` (its key), `split`, `metric`, `group`, `value`, `n`.
        """
        return sweep_frame(
            (
                (
                    trained.stored.key,
                    {name: _cell(value) for name, value in setting.items()},
                    measured_splits(trained.tables, self.rule, self.metrics),
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
        """Mean over seeds with its 95 % interval (`mean_over_seeds`): one line per setting, split, metric and group."""
        return mean_over_seeds(self.frame, [name for name in self.varied if name != "seed"], self.metrics)

    def best(self, metric: str, split: str = "val", *, group: str = "") -> Best:
        """The setting with the best mean of a metric on val, and what it gives on test: tune on val, report test.

        Of a metric that is a number for each group, such as `shot_accuracy`, say which: group="few". Settings with a run
        that diverged are left out. The first of equals is taken.
        """
        ranking = ranking_metric(metric, self.metrics).stated()
        if split != "val":
            raise ValueError(f"split = {split!r}: settings are chosen on 'val', so that test stays a judge")
        unstable = [_setting_cells(setting) for setting, _ in self.failed]
        candidates = [cells for cells in map(_setting_cells, self.settings) if cells not in unstable]
        if not candidates:
            raise ValueError("every setting has a run that diverged; sweep.failed says why")
        summary = self.summary()
        known = dict.fromkeys(summary.loc[summary["metric"] == ranking.name, "group"])
        if known and group not in known:
            raise ValueError(
                f"group = {group!r}: {metric} is a number for each of {', '.join(known)}; give one of them"
            )
        chosen_lines = {"split": split, "metric": ranking.name, "group": group}
        means = [_rows(summary, cells, **chosen_lines)["mean"].mean() for cells in candidates]
        if np.isnan(means).all():
            raise ValueError(f"{metric} is not defined on these tables; give another metric")
        place = int(np.nanargmax(means) if ranking.direction == "higher" else np.nanargmin(means))
        cells = candidates[place]
        chosen = [at for at, setting in enumerate(self.settings) if _setting_cells(setting) == cells]
        setting = {name: value for name, value in self.settings[chosen[0]].items() if name != "seed"}
        runs = tuple(self.runs[at] for at in chosen)
        return Best(ranking.name, setting, runs, _rows(summary, cells), group)

    def _repr_html_(self) -> str:
        return self.summary().to_html(index=False, float_format="{:.4g}".format)


@dataclass(frozen=True, eq=False)
class Best:
    """The setting that was best on val: its runs, one per seed, and its lines of the summary."""

    metric: str
    settings: dict[str, Any]
    runs: tuple[TrainedRun, ...]
    summary: pd.DataFrame
    group: str = ""  # of the metric, where it is a number for each

    @property
    def test(self) -> dict[str, float]:
        """mean, low and high of the metric on test, and the number of seeds."""
        (row,) = _rows(self.summary, {}, split="test", metric=self.metric, group=self.group).to_dict("records")
        return {name: row[name] for name in ("mean", "low", "high", "seeds")}


def ranking_metric(name: str, metrics: Sequence[Metric] = METRICS) -> Metric:
    """The metric of this name, by which settings are ranked."""
    rankable = {metric.name: metric for metric in metrics if metric.direction != "none"}
    named_in_full = {metric.stated().name: metric for metric in rankable.values()}  # with its K, as the frame has it
    if name in named_in_full:
        return named_in_full[name]
    if name not in rankable:
        raise ValueError(f"metric = {name!r} does not rank settings; give one of {', '.join(rankable)}")
    return rankable[name]


class _Lines:
    """Trains runs one after the other and prints a line for each: how far the sweep is and how long it will take."""

    def __init__(self, runs: Sequence[Run], store: Store, progress: bool) -> None:
        self.store, self.progress, self.n, self.at = store, progress, len(runs), 0
        self.waiting = sum(not store.has(run.key) for run in runs)
        self.seconds: list[float] = []

    def trained(self, run: Run, setting: Mapping[str, Any]) -> TrainedRun:
        """The run, trained or read, and its line printed; an error has its line too."""
        new, start, told = not self.store.has(run.key), time.monotonic(), "stopped"
        try:
            done = train(run, store=self.store, progress=False)
            told = f"top-1 accuracy on val {done.kept['val_accuracy']:.1%}" + ("" if new else ", stored")
            return done
        except FloatingPointError:
            told = "diverged"
            raise
        finally:
            self.at += 1
            if new:
                self.waiting -= 1
                self.seconds.append(time.monotonic() - start)
            if self.progress:
                named = " ".join(f"{name}={_cell(value)}" for name, value in setting.items())
                print(
                    f"{self.at:>{len(str(self.n))}}/{self.n}  {named}  {told}{self._time()}",
                    file=sys.stderr,
                    flush=True,
                )

    def _time(self) -> str:
        if not self.seconds or not self.waiting:
            return ""
        left = self.waiting * sum(self.seconds) / len(self.seconds)
        return f", about {left:.0f} s left" if left < 100 else f", about {left / 60:.0f} min left"


def _settings(over: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every setting to train: the combinations of a grid, or a list as it stands."""
    if isinstance(over, Mapping):
        for name, values in over.items():
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ValueError(f"over: {name} = {values!r}; give a list of values to try")
        found = [dict(zip(over, values, strict=True)) for values in itertools.product(*over.values())]
    else:
        listed = list(over) if isinstance(over, Iterable) else [over]
        if not all(isinstance(setting, Mapping) for setting in listed):
            raise ValueError(
                f"over = {over!r}; give a grid, {{'seed': range(3)}}, or a list of settings, [{{'seed': 0}}]"
            )
        found = [dict(setting) for setting in listed]
    if not found or not any(found):
        raise ValueError("over is empty; say what to vary, such as over={'seed': range(3)}")
    return found


def _runs(run: Run, settings: Sequence[Mapping[str, Any]]) -> list[Run]:
    """The run in every setting. A dataset that several runs share is loaded once."""
    loaded, turned = cache(load_dataset), cache(_turned)
    runs = []
    for setting in settings:
        fields = {name: value for name, value in setting.items() if not name.startswith(("loss.", "data."))}
        knobs = _after("loss.", setting)
        loss = fields.pop("loss", run.loss)
        if not isinstance(loss, Loss):
            raise ValueError(
                f"over: loss = {loss!r} is not a loss; give some such as CrossEntropy(), with the brackets"
            )
        known = [field.name for field in dataclasses.fields(run)]
        if unknown := [name for name in fields if name not in known]:
            raise ValueError(f"a run has no {', '.join(unknown)}; it has {', '.join(known)}, and loss.… for its knobs")
        if unknown := [name for name in knobs if name not in loss.knobs()]:
            raise ValueError(
                f"{type(loss).__name__} has no knob {', '.join(unknown)}; it has {', '.join(loss.knobs()) or 'none'}"
            )
        given = fields.get("dataset", run.dataset)
        data = given if isinstance(given, Dataset) else loaded(str(given))
        fields["dataset"] = turned(data, tuple(_after("data.", setting).items()))
        runs.append(dataclasses.replace(run, loss=dataclasses.replace(loss, **knobs), **fields))
    return runs


def _check_all(runs: Sequence[Run]) -> None:
    """Every run can be trained: better to fail before the first than after it. A network that runs share is made once."""
    made = set()
    for run in runs:
        check_run(run)
        model = run.model if isinstance(run.model, str) else id(run.model)
        kind = (model, run.head, run.loss.head, run.loss.heads, run.data.input_shape, run.data.n_classes)
        if kind not in made:
            network_of(run)
            made.add(kind)


def _after(prefix: str, setting: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a setting whose names start so, by what follows."""
    return {name.removeprefix(prefix): value for name, value in setting.items() if name.startswith(prefix)}


def _turned(data: Dataset, knobs: tuple[tuple[str, Any], ...]) -> Dataset:
    """The dataset with some of its knobs at other values."""
    if not knobs:
        return data
    if data.spec is None:
        raise ValueError(f"{data.name} was given as arrays and has no knobs to vary; vary dataset itself")
    return load_spec({**data.spec, "knobs": data.spec["knobs"] | dict(knobs)})


def _value(run: Run, name: str) -> Any:
    """What a run has where its setting says nothing; "" for a knob that its loss or its dataset does not have."""
    if name.startswith("loss."):
        return run.loss.settings().get(name.removeprefix("loss."), "")
    if name.startswith("data."):
        return (run.data.spec or {"knobs": {}})["knobs"].get(name.removeprefix("data."), "")
    return getattr(run, name)


def _cell(value: Any) -> bool | int | float | str:
    """A value as a frame holds it: numbers and words as they are, everything else as Python prints it.

    Data and modules that look alike are told apart by their content.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Dataset):
        return f"{value.name} {value.key[:TOLD_APART]}"
    if isinstance(value, nn.Module):
        return f"{type(value).__name__} {weights_digest(value)[:TOLD_APART]}"
    return value if isinstance(value, (bool, int, float, str)) else repr(value)


def _setting_cells(setting: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """A setting without its seed, as the frame holds it."""
    return {name: _cell(value) for name, value in setting.items() if name != "seed"}


def _rows(summary: pd.DataFrame, cells: Mapping[str, Any], **more: str) -> pd.DataFrame:
    """The lines of the summary with these values."""
    inside = np.ones(len(summary), dtype=bool)
    for name, value in {**cells, **more}.items():
        inside &= (summary[name] == value).to_numpy()
    return summary[inside]
