"""Names of runs: short ones, unique and stable, and full ones.

A run is trained under a title that says everything in code, `garden · cnn · AverageKTwoHead(K=3.0, alpha=0.2)`. Its short
name is “garden · Average-K two-head”; a later run with another α is “garden · Average-K two-head, w = 1.05”.
A title that a person gave stays what it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from workbench import display_names
from workbench.losses import by_name
from workbench.runs.run import Run
from workbench.store.record import RunRecord

LOSS = "loss"
UNNAMED_DATA = "own data"
OF_DATA, OF_LOSS, SEED = "data.", "loss.", "seed"
LAST = (SEED, "dataset_key", "features")  # what says least
TOLD_ELSEWHERE = ("dataset", "loss", "model", *LAST)
DIGITS = (4, 8, 12, 64)  # of a key, where all else is equal


def names(records: Mapping[str, RunRecord]) -> dict[str, str]:
    """Key → name of each run: its data and its loss, and what tells it from older runs of that name.

    Names differ and are fixed at birth: they depend on older runs only, so that training another run renames none. Runs that
    are alike in everything have a part of their key behind them.

    >>> def run(loss, finished, **knobs):
    ...     described = {"dataset": {"name": "garden"}, "model": "cnn", "loss": {"loss": loss, "knobs": knobs}}
    ...     return RunRecord(title=f"garden · cnn · {loss}(…)", run=described, finished=finished)
    >>> first, other = run("AverageKTwoHead", "2025-01-01", K=3, alpha=0.2), run("CrossEntropy", "2025-01-02")
    >>> list(names({"a": first, "b": other}).values())
    ['garden · Average-K two-head', 'garden · Cross-entropy']
    >>> names({"a": first, "b": other, "c": run("AverageKTwoHead", "2025-01-03", K=3, alpha=1.05)})["c"]
    'garden · Average-K two-head, w = 1.05'
    """
    named: dict[str, str] = {}  # name → key, the oldest first
    for key in sorted(records, key=lambda key: (records[key].finished or "", key)):
        named[_new_name(key, records, named)] = key
    found = {key: name for name, key in named.items()}
    return {key: found[key] for key in records}


def _new_name(key: str, records: Mapping[str, RunRecord], named: Mapping[str, str]) -> str:
    """The name of a run among older ones: with as many facts as tell it from them."""
    record = records[key]
    if named_by_a_person(record):
        return _distinct(record.title, key, named)
    facts = _facts(record)
    name = f"{facts['data']} · {facts[LOSS if record.learnt else 'model']}"
    for fact in _in_order(facts):
        if name not in named:
            break
        rival = records[named[name]]
        differs = named_by_a_person(rival) or _facts(rival).get(fact) != facts[fact]
        if differs and facts[fact] and fact not in ("data", LOSS):
            name = f"{name}, {facts[fact]}"
    return _distinct(name, key, named)


def whole_name(record: RunRecord) -> str:
    """All that a person would want to know of a run: its data, network and loss, and the settings that are not the usual.

    >>> loss = {"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": 0.9, "n_samples": 5}}
    >>> run = {"dataset": {"name": "letters"}, "model": "mlp", "loss": loss, "epochs": 3}
    >>> whole_name(RunRecord(title="mlp · NoisedTopK(K=3)", run=run))
    'letters · MLP · Noised top-K, K = 3, ε = 0.9 · 3 epochs'
    """
    if not record.trained:
        return record.title
    facts = _facts(record)
    loss = display_names.of_spec(record.loss or {}) if record.learnt else "as it came"
    fields = {field.name: field.default for field in dataclasses.fields(Run)}
    defaults = {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}
    unusual = [
        text
        for name, text in facts.items()
        if name not in (*TOLD_ELSEWHERE, "data", "data.transforms")
        and not name.startswith((OF_DATA, OF_LOSS))
        and (name not in defaults or record.run.get(name) != defaults[name])
    ]
    seed = [facts[SEED]] if record.run.get("seed") else []
    changed = [facts["data.transforms"]] if facts.get("data.transforms") else []
    parts = [facts["data"], *changed, facts["model"], loss, *unusual, *seed]
    summary = " · ".join(filter(None, parts))
    return f"{record.title} ({summary})" if named_by_a_person(record) else summary


def named_by_a_person(record: RunRecord) -> bool:
    """Whether the title is a person's: that of a file, or one that took the place of what training writes."""
    return not record.trained or f"{record.loss_name}(" not in record.title


def _facts(record: RunRecord) -> dict[str, str]:
    """Name of a fact → its text; missing facts are left out."""
    data = record.dataset or {}
    model = "own network" if isinstance(record.model, Mapping) else display_names.of_model(record.model or "")
    facts = {"data": PurePath(record.data_name).name if record.data_name else UNNAMED_DATA}
    facts |= {f"{OF_DATA}{name}": _setting(name, value) for name, value in data.get("knobs", {}).items()}
    facts["data.transforms"] = display_names.of_value(data["transforms"]) if data.get("transforms") else ""
    facts["model"] = f"head of {model}" if record.run.get("features") else model
    facts[LOSS] = display_names.of_loss(record.loss_name)
    declared = losses[record.loss_name].knobs() if record.loss_name in (losses := by_name()) else {}
    for name, value in record.loss_knobs.items():
        facts[f"{OF_LOSS}{name}"] = (
            f"{display_names.of_knob(name, declared.get(name))} = {display_names.of_value(value)}"
        )
    run, features = record.run, record.run.get("features")
    for name in ("transforms", *(name for name in record.settings if name in run and name != "transforms")):
        if name not in TOLD_ELSEWHERE and run.get(name):
            facts[name] = _setting(name, run[name])
    facts |= {SEED: f"seed {run.get('seed')}", "dataset_key": f"data {(run.get('dataset_key') or '')[:4]}"}
    return facts | {"features": f"features {features[:4]}" if features else ""}


def _setting(name: str, value: Any) -> str:
    if name == "epochs":
        return f"{value} {'epoch' if value == 1 else name}"
    return (
        display_names.of_value(value)
        if name == "transforms"
        else f"{display_names.of_name(name)} {display_names.of_value(value)}"
    )


def _in_order(facts: Mapping[str, str]) -> list[str]:
    """The facts of a run, what matters most first: network, data, knobs of the loss, settings, seed."""

    def rank(name: str) -> int:
        if name in LAST:
            return 10 + LAST.index(name)
        return 0 if name == "model" else 1 if name.startswith(OF_DATA) else 5 if name.startswith(OF_LOSS) else 9

    return sorted(facts, key=rank)


def _distinct(name: str, key: str, named: Mapping[str, str]) -> str:
    """The name, with the beginning of the key behind it if an older run has it."""
    longer = (f"{name} ({key[:digits]})" for digits in DIGITS)
    return name if name not in named else next(each for each in longer if each not in named)
