"""Grid search: from `over` to settings, and from a setting to its run, its rules and its cells in a frame."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.datasets import Dataset, DatasetSpec, load_dataset, load_spec
from workbench.knobs import format_value
from workbench.losses import Loss
from workbench.losses.target_size import target_K
from workbench.metric_spec import MetricSpec
from workbench.networks.by_name import is_module
from workbench.runs.run import Run

if TYPE_CHECKING:
    from workbench.sets import Rule

Setting = dict[str, Any]
Over = Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]]
Cell = bool | int | float | str

TOLD_APART = 8  # characters of a key that tell two things of one name apart
GRIDS = (list, range)  # what is several values in a listed setting; a tuple is one value, such as p_k or transforms


def every_setting(over: Over) -> list[Setting]:
    """Every setting to train: the combinations of a grid, or of each grid of a list.

    >>> every_setting([{"seed": 0}, {"learning_rate": [0.1, 0.2], "seed": 1}])
    [{'seed': 0}, {'learning_rate': 0.1, 'seed': 1}, {'learning_rate': 0.2, 'seed': 1}]
    """
    grids: list[Mapping[str, Any]]
    if isinstance(over, Mapping):
        grids = [over]
        for name, values in over.items():
            if isinstance(values, str) or not isinstance(values, Iterable):
                raise ValueError(f"over: {name} = {values!r}; give a list of values to try")
    else:
        grids = list(over) if isinstance(over, Iterable) else [over]
        if not all(isinstance(grid, Mapping) for grid in grids):
            raise ValueError(
                f"over = {over!r}; give a grid, {{'seed': range(3)}}, or a list of settings, [{{'seed': 0}}]"
            )
        grids = [
            {name: values if isinstance(values, GRIDS) else [values] for name, values in grid.items()} for grid in grids
        ]
    found = [[dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())] for grid in grids]
    settings = list(itertools.chain.from_iterable(found))
    if not all(found) or not any(settings):
        raise ValueError("over is empty; say what to vary, such as over={'seed': range(3)}")
    return settings


def runs_in(run: Run, settings: Sequence[Setting]) -> list[Run]:
    """The run in every setting. A dataset that several runs share is loaded once; a `DatasetSpec` is not loaded."""
    loaded, changed = cache(load_dataset), cache(_with_knobs)
    runs = []
    for setting in settings:
        fields = {name: value for name, value in setting.items() if not name.startswith(("loss.", "data."))}
        K = fields.pop("K", None)
        knobs = _after("loss.", setting)
        loss = fields.pop("loss", run.loss)
        if not isinstance(loss, Loss):
            raise ValueError(
                f"over: loss = {loss!r} is not a loss; give some such as CrossEntropy(), with the brackets"
            )
        known = [field.name for field in dataclasses.fields(run)]
        if unknown := [name for name in fields if name not in known]:
            raise ValueError(
                f"a run has no {', '.join(unknown)}; it has {', '.join(known)}, and loss.… for its knobs, and K for that of "
                "loss, rule and monitors together"
            )
        if unknown := [name for name in knobs if name not in loss.knobs()]:
            raise ValueError(
                f"{type(loss).__name__} has no knob {', '.join(unknown)}; it has {', '.join(loss.knobs()) or 'none'}"
            )
        if K is not None:
            if "K" in knobs:
                raise ValueError("over: K is that of the loss too; give K or loss.K, and not both")
            knobs |= {"K": K} if "K" in loss.knobs() else {}
            fields["monitor"] = monitors_at(fields.get("monitor", run.monitor), K)
        given = fields.get("dataset", run.dataset)
        data = given if isinstance(given, (Dataset, DatasetSpec)) else loaded(str(given))
        fields["dataset"] = changed(data, tuple(_after("data.", setting).items()))
        runs.append(dataclasses.replace(run, loss=dataclasses.replace(loss, **knobs), **fields))
    return runs


def monitors_at(monitor: str | tuple[str, ...] | None, K: float) -> Any:
    """The monitors of a run at another K, each only once; those without a K stay.

    >>> monitors_at(("average_k_accuracy@K=5", "average_k_accuracy@K=10", "val_loss"), 3)
    ('average_k_accuracy@K=3', 'val_loss')
    """
    if isinstance(monitor, (tuple, list)):
        return tuple(dict.fromkeys(monitors_at(one, K) for one in monitor))
    return str(MetricSpec.parse(monitor).at(K)) if isinstance(monitor, str) else monitor


def rules_in(rules: Iterable[Rule], setting: Setting) -> dict[str, Rule]:
    """Name → rule, in a setting: a K that is varied is that of every rule that has one.

    >>> from workbench.sets import AverageK
    >>> rules_in([AverageK(2)], {"seed": 0})
    {'AverageK(K=2)': AverageK(K=2.0, min_size=0)}
    >>> rules_in([AverageK(2)], {"K": 3})
    {'AverageK(K)': AverageK(K=3.0, min_size=0)}
    """
    found = {}
    for rule in rules:
        if "K" in setting and "K" in rule.knobs():
            bound: Any = dataclasses.replace(rule, **{"K": setting["K"]})
            found[bound.short().replace(f"K={format_value(bound.K)}", "K", 1)] = bound
        else:
            found[rule.short()] = rule
    return found


def filled(settings: Sequence[Setting], runs: Sequence[Run]) -> list[Setting]:
    """The settings with the same names each: what one does not say is what its run has."""
    names = dict.fromkeys(name for setting in settings for name in setting)
    return [
        {name: setting.get(name, _value(run, name)) for name in names}
        for run, setting in zip(runs, settings, strict=True)
    ]


def cells(setting: Setting, *, seed: bool = True) -> dict[str, Cell]:
    """A setting as a frame holds it: numbers and words as they are, everything else as Python writes it.

    A loss is printed without the knobs that are varied by their own name, so that all of its grid is one loss. Data and
    modules that look alike are distinguished by their content.

    >>> from workbench.losses import ExactNoisedTopK
    >>> cells({"loss": ExactNoisedTopK(K=3), "loss.epsilon": 0.1, "seed": 0})
    {'loss': 'ExactNoisedTopK(K=3)', 'loss.epsilon': 0.1, 'seed': 0}
    """
    kept = {name: value for name, value in setting.items() if seed or name != "seed"}
    return {name: _loss(value, setting) if name == "loss" else _cell(value) for name, value in kept.items()}


def _loss(loss: Loss, setting: Setting) -> str:
    varied = {*_after("loss.", setting), *({"K"} & setting.keys())}
    if not varied & loss.knobs().keys():
        return repr(loss)
    knobs = {name: value for name, value in loss.settings().items() if name not in varied}
    return f"{type(loss).__name__}({', '.join(f'{name}={value!r}' for name, value in knobs.items())})"


def _cell(value: Any) -> Cell:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Dataset):
        return f"{value.name} {value.key[:TOLD_APART]}"
    if is_module(value):
        from workbench.networks.network import weights_digest

        return f"{type(value).__name__} {weights_digest(value)[:TOLD_APART]}"
    return value if isinstance(value, (bool, int, float, str)) else repr(value)


def _value(run: Run, name: str) -> Any:
    """The value of a run where its setting has none; "" for a knob that its loss or its dataset does not have."""
    if name == "K":
        return target_K(run.loss.settings(), run.data.n_classes)
    if name.startswith("loss."):
        return run.loss.settings().get(name.removeprefix("loss."), "")
    if name.startswith("data."):
        return (run.data.spec or {"knobs": {}})["knobs"].get(name.removeprefix("data."), "")
    return getattr(run, name)


def _after(prefix: str, setting: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a setting whose names start so, by what follows."""
    return {name.removeprefix(prefix): value for name, value in setting.items() if name.startswith(prefix)}


def _with_knobs(data: Dataset | DatasetSpec, knobs: tuple[tuple[str, Any], ...]) -> Dataset | DatasetSpec:
    """The dataset with some of its knobs at other values."""
    if not knobs:
        return data
    if isinstance(data, DatasetSpec):
        return dataclasses.replace(data, knobs={**data.knobs, **dict(knobs)}, key=None)
    if data.spec is None:
        raise ValueError(f"{data.name} was given as arrays and has no knobs to vary; vary dataset itself")
    return load_spec({**data.spec, "knobs": data.spec["knobs"] | dict(knobs)})
