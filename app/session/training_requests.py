"""What a person asks to be trained: who trains it, what it is called, the code that does the same, where to see it.

A run is described here as in its `run.json`: making a `Run` would need torch, which only the workers load.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from workbench import words
from workbench.datasets import ImageTransform, recipe_class, transforms
from workbench.figures import Code
from workbench.lookup import allowed_modules
from workbench.workers.heads import WarmWorker
from workbench.workers.sweeps import WatchedSweep

# What a page asks about a run besides its data, model and loss.
SETTINGS = ("epochs", "batch_size", "optimizer", "learning_rate", "schedule", "weight_decay", "seed")
SET_BY_RECIPES = ("drops", "monitor", "patience")  # what it never asks about, and a recipe may set


@st.cache_resource(show_spinner=False)
def live_worker() -> WarmWorker:
    """The worker of live heads, one for the whole server."""
    return WarmWorker()


@st.cache_resource(show_spinner=False)
def long_worker() -> WarmWorker:
    """The worker of everything that takes longer. It goes on when the page is closed."""
    return WarmWorker()


@st.cache_resource(show_spinner=False)
def long_sweep() -> WatchedSweep:
    """The sweep that was asked for last. It is trained by the worker of everything that takes longer."""
    return WatchedSweep(long_worker())


def busy() -> bool:
    """Whether something that takes longer is being trained: one run, or one sweep, at a time."""
    return long_worker().progress.working or long_sweep().progress.working


def title(described: Mapping[str, Any]) -> str:
    """A short name for people: `garden · CNN · Noised top-K, K = 3, ε = 0.9`."""
    model = words.of_model(described["model"])
    changes = [words.of_thing(each) for each in of_images(described.get("transforms", ()))]
    network = model if described.get("features") is None else f"head of {model}"
    return " · ".join([described["dataset"]["name"], network, words.of_spec(described["loss"]), *changes])


def code(described: Mapping[str, Any]) -> Code:
    """The lines that train the same run: they give `trained`, `val` and `test`."""
    trained = ["trained = wb.train(run)", 'val, test = trained.tables["val"], trained.tables["test"]']
    return Code(setup=trained).after(_run_in_code(described))


def sweep_code(described: Mapping[str, Any], over: Mapping[str, Sequence[Any]]) -> Code:
    """The lines that train the same sweep: they give `found`."""
    return Code(setup=[f"found = wb.sweep(run, {dict(over)!r})"]).after(_run_in_code(described))


def _run_in_code(described: Mapping[str, Any]) -> Code:
    """The lines that give `run`."""
    imports: list[str] = []
    data = _data_in_code(described["dataset"], imports)
    loss = _loss_in_code(described["loss"], imports)
    fields = [data, f"model={described['model']!r}", f"loss={loss}"]
    if changes := of_images(described.get("transforms", ())):
        fields.append(f"transforms=({', '.join(map(repr, changes))},)")
        imports.append(_import_of(changes))
    told = ("features", *SETTINGS, *SET_BY_RECIPES)
    fields += [f"{name}={_tuple(described[name])!r}" for name in told if described.get(name) is not None]
    lines = [
        "run = wb.Run(",
        *(f"    {field}," for field in fields),
        ")",
    ]
    return Code(setup=lines, imports=imports)


def of_images(specs: Iterable[Mapping[str, Any]]) -> list[ImageTransform]:
    """The transforms of a run that change images on their way into the network; its data tell of the others."""
    made = [transforms.from_spec(spec, allowed=allowed_modules()) for spec in specs]
    return [each for each in made if isinstance(each, ImageTransform)]


def _import_of(changes: Iterable[transforms.Transform]) -> str:
    return f"from workbench.datasets import {', '.join(sorted({type(each).__name__ for each in changes}))}"


def _data_in_code(spec: Mapping[str, Any], imports: list[str]) -> str:
    knobs = recipe_class(spec["name"]).knobs()
    changed = [f"{name}={value!r}" for name, value in spec["knobs"].items() if value != knobs[name].default]
    changes = [transforms.from_spec(transform) for transform in spec.get("transforms", ())]
    if not changed and not changes:
        return repr(spec["name"])
    data = f"wb.load_dataset({', '.join([repr(spec['name']), *changed])})"
    if changes:
        imports.append(_import_of(changes))
        data += f".transformed({', '.join(map(repr, changes))})"
    return data


def _loss_in_code(spec: Mapping[str, Any], imports: list[str]) -> str:
    module, _, name = spec["loss"].rpartition(":")
    knobs = ", ".join(f"{knob}={_value_in_code(value)}" for knob, value in spec["knobs"].items())
    if not module:
        return f"wb.losses.{name}({knobs})"
    imports.append(f"from {module} import {name}")
    return f"{name}({knobs})"


def _value_in_code(value: Any) -> str:
    """The value of a knob as Python writes it; a schedule is stored as it is written."""
    is_schedule = isinstance(value, str) and value.startswith("anneal(")
    return f"wb.schedules.{value}" if is_schedule else repr(_tuple(value))


def _tuple(value: Any) -> Any:
    """JSON knows no tuples."""
    return tuple(value) if isinstance(value, list) else value
