"""Training requests of the pages: the queue and the workers of the server, the title of a run, and the code that trains it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from workbench import display_names
from workbench.app_balancer import SERVER
from workbench.datasets import DatasetSpec, ImageTransform, recipe_class
from workbench.figures import Code
from workbench.runs import Run
from workbench.workers.client import Worker
from workbench.workers.queue import LiveQueue, Visitor

# Settings of a run that the pages have controls for, besides its data, model and loss.
SETTINGS = ("epochs", "batch_size", "optimizer", "learning_rate", "schedule", "weight_decay", "seed")


@st.cache_resource(show_spinner=False)
def live_queue() -> LiveQueue:
    """The queue of live heads of all sessions, with one worker for every four processors and at least one.

    Where several servers share the address and the machine, each of them has one.
    """
    workers = 1 if SERVER in os.environ else max(1, (os.cpu_count() or 1) // 4)
    return LiveQueue([Worker() for _ in range(workers)])


@st.cache_resource(show_spinner=False, scope="session", on_release=Visitor.cancel)
def live_visitor() -> Visitor:
    """The place of this session in the queue; when the session ends, so does its request."""
    return live_queue().visitor()


@st.cache_resource(show_spinner=False)
def long_worker() -> Worker:
    """The worker of runs and sweeps, one request at a time. It goes on when the page is closed."""
    return Worker()


def title(run: Run) -> str:
    """A short name: `garden · CNN · Noised top-K, K = 3, ε = 0.9`."""
    assert isinstance(run.dataset, DatasetSpec)
    model = display_names.of_model(run.model_name)
    network = model if run.features is None else f"head of {model}"
    changes = [display_names.of_thing(each) for each in run.transforms if isinstance(each, ImageTransform)]
    return " · ".join([run.dataset.name, network, display_names.of_thing(run.loss), *changes])


def code(run: Run) -> Code:
    """The lines that train a run: they define `trained`, `val` and `test`."""
    trained = ["trained = wb.train(run)", 'val, test = trained.tables["val"], trained.tables["test"]']
    return Code(setup=trained).after(run_code(run))


def sweep_code(run: Run, over: Mapping[str, Sequence[Any]]) -> Code:
    """The lines that train a sweep: they define `found`."""
    return Code(setup=[f"found = wb.sweep(run, {dict(over)!r})"]).after(run_code(run))


def run_code(run: Run) -> Code:
    """The lines that define `run`: its fields that differ from their defaults."""
    given = {field.name: getattr(run, field.name) for field in dataclasses.fields(run)}
    defaults = {field.name: field.default for field in dataclasses.fields(run)}
    changed = [name for name in given if given[name] != defaults[name] or name in ("model", "loss")]
    lines = [f"    {name}={_expression(given[name])}," for name in changed]
    home, name = type(run.loss).__module__, type(run.loss).__name__
    imports = [] if home.startswith("workbench.") else [f"from {home} import {name}"]
    return Code(setup=["run = wb.Run(", *lines, ")"], imports=imports)


def _expression(value: Any) -> str:
    """A field of a run as code, from its repr; classes of the workbench after `wb`."""
    match value:
        case DatasetSpec():
            return _dataset_expression(value)
        case tuple():
            return f"({', '.join(map(_expression, value))}{',' if len(value) == 1 else ''})"
    home = type(value).__module__.split(".")
    prefix = f"wb.{home[1]}." if home[0] == "workbench" else ""
    return prefix + repr(value).replace("anneal(", "wb.schedules.anneal(")


def _dataset_expression(spec: DatasetSpec) -> str:
    defaults = {name: knob.default for name, knob in recipe_class(spec.name).knobs().items()}
    changed = [f"{name}={value!r}" for name, value in spec.knobs.items() if value != defaults[name]]
    if not changed and not spec.transforms:
        return repr(spec.name)
    data = f"wb.load_dataset({', '.join([repr(spec.name), *changed])})"
    changes = ", ".join(map(_expression, spec.transforms))
    return f"{data}.transformed({changes})" if changes else data
