"""From a table to its runs: what is trained for every cell, checked before anything is, trained by a sweep, measured."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from workbench import calibration, losses
from workbench.claims.data_requirements import check_classes, check_needs
from workbench.claims.measures import HISTORY, measured
from workbench.claims.reproduction import Reproduction, with_ours
from workbench.claims.table import PaperTable
from workbench.claims.table_spec import Column, Data, Part, Place, Row, Setting, Spec
from workbench.datasets import Dataset, Transform, load_dataset, transforms
from workbench.losses import Loss
from workbench.metrics.intervals import over_seeds_interval
from workbench.metrics.seeds import best_on_val
from workbench.runs.recipes import RECIPES
from workbench.store import Store, chosen_store
from workbench.tables import LogitTable
from workbench.training import Run, TrainedRun
from workbench.training.many_runs import train_all
from workbench.validation import whole_number

CONFIDENCE = 0.95


@dataclass(frozen=True, eq=False)
class Try:
    """A cell with one choice of its knobs, and the runs behind it, one per seed."""

    table: PaperTable
    row: Row
    column: Column
    setting: Setting
    runs: tuple[Run, ...] = ()

    def measure(self, part: Part) -> str:
        """Return the name of the measure of a part."""
        return part.measure.format(K=self.setting.K, row=self.table.rows.index(self.row) + 1)

    def monitor(self, part: Part) -> str | None:
        """Return the monitor that selects the epoch of a part; None to use that of the recipe."""
        monitor = self.table.protocol_of.monitor
        return None if monitor is None else monitor.format(K=self.setting.K, measure=self.measure(part))


def reproduce(
    table: PaperTable,
    data: str | os.PathLike[str] | Dataset | Mapping[str, Any] | None,
    *,
    small: bool,
    tune: bool,
    seeds: int | None,
    model: str | None,
    device: str,
    devices: int,
    share: tuple[int, int],
    store: Store | None,
    progress: bool,
) -> Reproduction:
    """`PaperTable.reproduce`, which says what is what."""
    store = chosen_store(store)
    mine, of = _checked_share(share)
    started = time.monotonic()
    tries = planned(table, data, small=small, tune=tune, seeds=seeds, model=model, device=device, devices=devices)
    runs = list({run.key: run for one in tries for run in one.runs}.values())
    here = [
        run for at, run in enumerate(runs) if at % of == mine - 1 or store.has(run.key)
    ]  # others may have done some
    if not here:
        raise ValueError(f"share = {mine}/{of}: {table.name} has {len(runs)} runs, and none is left for this share")
    results = dict(zip((run.key for run in here), train_all(here, store=store, progress=progress), strict=True))
    trained = {key: one for key, one in results.items() if isinstance(one, TrainedRun)}
    asked = {run.key for run in here}
    there = [one for one in tries if all(run.key in asked for run in one.runs)]
    reproduction = Reproduction(
        table,
        with_ours(table, _measured(table, there, trained)),
        small,
        in_words(table, tries, small, seconds=time.monotonic() - started),
        tuple(trained),
        tuple(f"{run.title}, seed {run.seed}: {results[run.key]}" for run in here if run.key not in trained),
    )
    reproduction.save(store)
    return reproduction


def _checked_share(share: Any) -> tuple[int, int]:
    """Which part of the runs, of how many parts."""
    try:
        mine, of = (whole_number("share", part) for part in share)
    except (TypeError, ValueError):
        mine, of = 0, 0
    if not 1 <= mine <= of:
        raise ValueError(f"share = {share!r}; give which part of the runs to train and of how many, such as (2, 4)")
    return mine, of


def planned(
    table: PaperTable,
    data: str | os.PathLike[str] | Dataset | Mapping[str, Any] | None = None,
    *,
    small: bool = False,
    tune: bool = False,
    seeds: int | None = None,
    model: str | None = None,
    device: str = "auto",
    devices: int = 1,
) -> list[Try]:
    """Every run of the table, composed and checked, and none trained; a run serves all the epochs that are asked of it."""
    seeds = None if seeds is None else whole_number("seeds", seeds)
    given = _datasets(table, data, small)
    if small and model is not None:
        raise ValueError(f"model = {model!r}: small runs have networks of their own; leave model out")
    if not small and not table.protocol_of.model and model is None:
        raise ValueError(
            f"{table.name} fine-tunes networks that others published, and does not come with one: give model=, 'linear' where "
            "the rows of your data are what such a network sees, or 'torchvision:…' for one whose head is to be trained"
        )
    asked: dict[str, list[str]] = {}  # what decides a run but for its monitors → those
    drafts = []
    for row, column, setting in table.settings():
        which = _data_of(table, setting)
        if which.name not in given:
            continue
        check_classes(given[which.name], setting.K or 1, table.name)
        for loss in _losses(setting, tune):
            fields = {**_fields(table, which, setting, small, model), "loss": loss}
            alike = f"{which.name} {sorted(fields.items(), key=lambda field: field[0])}"
            one = Try(table, row, column, setting)
            drafts.append((one, which, fields, alike))
            watched = asked.setdefault(alike, [])
            watched += [name for name in dict.fromkeys(map(one.monitor, column.parts)) if name and name not in watched]
    tries, made = [], {}
    for one, which, fields, alike in drafts:
        seeded = range(_seeds(table, which, small, seeds))
        for seed in seeded:
            if (alike, seed) not in made:
                fields |= {"seed": seed, "device": device, "devices": devices}
                fields |= {"monitor": tuple(asked[alike])} if asked[alike] else {}
                made[alike, seed] = RECIPES[table.recipe_of(which)].run(given[which.name], **fields)
        tries.append(replace(one, runs=tuple(made[alike, seed] for seed in seeded)))
    if not tries:
        raise ValueError(
            f"nothing of {table.name} is left to run; its data are {', '.join(one.name for one in table.data)}"
        )
    return tries


def _datasets(table: PaperTable, data: Any, small: bool) -> dict[str, Dataset]:
    """Name of the paper's dataset → what stands in for it, checked to have what the table needs."""
    names = [one.name for one in table.data]
    if small:
        if table.small is None:
            raise ValueError(f"{table.name} has no reduced scale; give its data: {', '.join(names)}")
        if data is not None:
            raise ValueError(
                f"small runs are on {', '.join(name for name, _ in table.small.data.values())}; leave data out"
            )
        before = tuple(map(_transform, table.small.transforms))
        loaded = {name: load_dataset(spec[0], **spec[1]) for name, spec in table.small.data.items()}
        found = {name: dataset.transformed(*before) if before else dataset for name, dataset in loaded.items()}
    elif isinstance(data, Mapping):
        if unknown := [name for name in data if name not in names]:
            raise ValueError(f"{table.name} has no data {', '.join(map(str, unknown))}; it has {', '.join(names)}")
        found = {str(name): _loaded(one) for name, one in data.items()}
    elif data is None or len(names) > 1:
        several = f"{{{names[0]!r}: PATH, …}} (--data '{names[0]}=PATH')" if len(names) > 1 else "PATH (--data PATH)"
        raise ValueError(
            f"{table.name} is about {', '.join(names)}: give data={several}, or small=True (--small) for a reduced scale"
        )
    else:
        found = {names[0]: _loaded(data)}
    for one in table.data:
        if one.name in found:
            check_needs(found[one.name], one.needs, table.name)
    return found


def _loaded(data: Any) -> Dataset:
    return data if isinstance(data, Dataset) else load_dataset(data)


def _data_of(table: PaperTable, setting: Setting) -> Data:
    (found,) = [one for one in table.data if one.name == setting.data] if setting.data else table.data
    return found


def _seeds(table: PaperTable, data: Data, small: bool, given: int | None) -> int:
    """How many seeds: those asked for, or those of the scale, or those of the paper."""
    if given is not None:
        return given
    return table.small.seeds if small and table.small is not None else data.seeds or table.protocol_of.seeds


def _losses(setting: Setting, tune: bool) -> Iterator[Loss]:
    """The loss of a cell, with the knobs that were settled on, or with every combination of those that were searched."""
    kind = losses.class_named(setting.loss)
    knobs = {**setting.knobs, **({} if setting.K is None else {"K": setting.K})}
    grid = setting.grid if tune else {}
    for values in itertools.product(*grid.values()):
        chosen = {**knobs, **dict(zip(grid, values, strict=True))}
        yield kind(**{name: value for name, value in chosen.items() if name in kind.knobs()})


def _fields(table: PaperTable, data: Data, setting: Setting, small: bool, model: str | None) -> dict[str, Any]:
    """The fields of a run that are not those of its recipe, but for its loss, its seed and its monitors.

    At a reduced scale images are not augmented, for there are none, and there is no published network to take features of.
    """
    own, changes = dict(setting.run), tuple(map(_transform, (*table.transforms, *setting.transforms)))
    if small and table.small is not None:
        own.pop("model", None)
        return {**table.small.run, **own, "transforms": changes, "features": None}
    augmentation = tuple(RECIPES[table.recipe_of(data)].settings.get("transforms", ()))
    fields = {"transforms": (*changes, *augmentation), **({} if model is None else {"model": model}), **own}
    return fields | ({"features": None} if model == "linear" else {})  # the rows are the features


def _transform(spec: Spec) -> Transform:
    name, knobs = spec
    return transforms.from_spec({"transform": name, "knobs": dict(knobs)})


def _measured(
    table: PaperTable, tries: Sequence[Try], trained: Mapping[str, TrainedRun]
) -> dict[Place, dict[str, Any]]:
    """Mean over seeds with its interval of every part of every cell; of several tries, that which is best on val."""
    found: dict[Place, dict[str, Any]] = {}
    for (row, column), group in itertools.groupby(tries, key=lambda one: (one.row.label, one.column.label)):
        values = {one: [_values(one, trained[run.key]) for run in one.runs if run.key in trained] for one in group}
        whole_ones = {one: rows for one, rows in values.items() if len(rows) == len(one.runs)}
        best = _best(whole_ones)
        for part in column_parts(table, column):
            scale = 100 if part.percent else 1
            of_seeds = [] if best is None else [scale * row[part.name] for row in whole_ones[best]]
            loss = next(iter(values) if best is None else iter([best])).runs[0].loss
            found[row, column, part.name] = {**over_seeds(of_seeds), "loss": repr(loss)}
    return found


def _best(values: Mapping[Try, Sequence[Mapping[str, float]]]) -> Try | None:
    """The try that is best on val, the first where val has no number for any, None where there is none."""
    try:
        return best_on_val({one: [row["val"] for row in rows] for one, rows in values.items()})
    except ValueError:
        return next(iter(values), None)


def column_parts(table: PaperTable, label: str) -> tuple[Part, ...]:
    """The parts of the column of this label."""
    return next(column.parts for column in table.columns if column.label == label)


def _values(one: Try, trained: TrainedRun) -> dict[str, float]:
    """Return the values of a run for a cell: every part, and under "val" the first part on validation rows."""
    split = one.table.protocol_of.split
    found = {part.name: _value(one, trained, part, split) for part in one.column.parts}
    first = one.column.parts[0]
    better = -1 if "error" in first.measure else 1
    return {**found, "val": better * _value(one, trained, first, "val")}


def _value(one: Try, trained: TrainedRun, part: Part, split: str) -> float:
    """A number of a run on the rows of a split, or of the last epoch of its history."""
    measure = one.measure(part)
    if measure.startswith(HISTORY):
        return float(trained.history[measure.removeprefix(HISTORY)].iloc[-1])
    return measured(measure, _judged(one, trained, one.monitor(part)), split)


def _judged(one: Try, trained: TrainedRun, monitor: str | None) -> Mapping[str, LogitTable]:
    """The tables of the epoch that was best, recalibrated where the row says so."""
    tables = trained.tables if monitor is None else trained.kept_by(monitor).tables
    if not one.setting.recalibrated:
        return tables
    fitted = getattr(calibration, one.setting.recalibrated)().fit(tables["val"])
    return {name: fitted(tables[name]) for name in ("val", "test")}


def over_seeds(values: Sequence[float]) -> dict[str, float]:
    """Mean over seeds with Student's interval, as the papers print it: mean ± t · s / √n.

    >>> over_seeds([90.0, 91.0])["ours"], over_seeds([])["seeds"]
    (90.5, 0)
    """
    from scipy import stats

    n = len(values)
    if n == 0:
        return {"ours": np.nan, "low": np.nan, "high": np.nan, "seeds": 0}
    mean, deviation = np.mean(values), np.std(values, ddof=1) if n > 1 else np.nan
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, max(n - 1, 1))
    bounds = (-np.inf, np.inf)
    low, high = over_seeds_interval(np.array(mean), np.array(deviation / np.sqrt(n)), np.array(reach), bounds)
    return {"ours": float(mean), "low": float(low), "high": float(high), "seeds": n}


def in_words(table: PaperTable, tries: Sequence[Try], small: bool, *, seconds: float) -> str:
    """At what scale a table was reproduced, of a small one what is reduced, and how long it took."""
    run = tries[0].runs[0]
    counts = sorted({len(one.runs) for one in tries})
    names = dict.fromkeys(one.runs[0].data.name.partition(" · ")[0] for one in tries)
    of = f"{'–'.join(map(str, counts))} seed{'s' if counts[-1] > 1 else ''}"
    whole_scale = f"data {', '.join(names)}, {run.model_name}, {run.epochs} epochs, {of}"
    took = f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
    return f"{f'reduced: {table.reduction(counts[-1])}' if small else whole_scale}; trained in {took}"
