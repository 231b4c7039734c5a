"""What a run is called: by what tells it from its neighbours, and whole where there is room.

A run is trained under a title that says everything in code, `garden · cnn · AverageKTwoHead(K=3.0, alpha=0.2)`. Beside two
runs of other losses on the same data, “Average-K two-head” is enough; beside another α, “Average-K two-head, α = 0.2”.
A title that a person gave stays what it is.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from workbench import words
from workbench.catalogue import LOSSES, SETTINGS
from workbench.store.record import RunRecord

LOSS = "loss"  # told of every run, for a number alone is no name
OF_DATA, OF_LOSS, SEED = "data.", "loss.", "seed"
LAST = (SEED, "dataset_key", "features")  # what says least
TOLD_ELSEWHERE = ("dataset", "loss", "model", *LAST)
DIGITS = (4, 8, 12, 64)  # of a key, where all else is equal


def names(records: Mapping[str, RunRecord]) -> dict[str, str]:
    """Key → what the run is called among these runs: as little as tells it from the others.

    Names differ, do not depend on the order of the runs, and tell a fact only where runs that share all that was told
    before differ in it. Runs that are alike in everything have a part of their key behind them.

    >>> def run(loss, **knobs):
    ...     return RunRecord(title=f"garden · cnn · {loss}(…)", model="cnn", loss={"loss": loss, "knobs": knobs})
    >>> two, more, other = run("AverageKTwoHead", K=3, alpha=0.2), run("AverageKTwoHead", K=3, alpha=1.05), run("CrossEntropy")
    >>> list(names({"a": two, "b": other}).values())
    ['Average-K two-head', 'Cross-entropy']
    >>> list(names({"a": two, "b": other, "c": more}).values())
    ['Average-K two-head, α = 0.2', 'Cross-entropy', 'Average-K two-head, α = 1.05']
    """
    facts = {key: _facts(record) for key, record in records.items() if not named_by_a_person(record)}
    told: dict[str, list[str]] = {key: [] for key in facts}
    alike = [sorted(facts)] if facts else []
    for name in _in_order(facts):
        apart = []
        for group in alike:
            by: dict[str, list[str]] = defaultdict(list)
            for key in group:
                by[facts[key].get(name, "")].append(key)
            if len(by) > 1 or name == LOSS:
                for text, keys in by.items():
                    for key in keys:
                        told[key] += [text] if text else []
                if name == LOSS:
                    for key in group:  # data and network stand before the loss, numbers behind it
                        told[key] = [" · ".join(told[key])]
            apart += list(by.values())
        alike = apart
    return _distinct({key: ", ".join(told[key]) if key in told else record.title for key, record in records.items()})


def whole_name(record: RunRecord) -> str:
    """All that a person would want to know of a run: its data, network and loss, and the settings that are not the usual.

    >>> loss = {"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": 0.9, "n_samples": 5}}
    >>> whole_name(RunRecord(title="mlp · NoisedTopK(K=3)", dataset={"name": "letters"}, model="mlp", loss=loss, epochs=3))
    'letters · MLP · Noised top-K, K = 3, ε = 0.9 · 3 epochs'
    """
    if not record.trained:
        return record.title
    facts = _facts(record)
    loss = words.of_spec(record.loss or {})
    unusual = [
        text
        for name, text in facts.items()
        if name not in (*TOLD_ELSEWHERE, "data", "data.transforms")
        and not name.startswith((OF_DATA, OF_LOSS))
        and (name not in SETTINGS or getattr(record, name) != SETTINGS[name].default)
    ]
    seed = [facts[SEED]] if record.seed else []
    changed = [facts["data.transforms"]] if facts.get("data.transforms") else []
    parts = [facts["data"], *changed, facts["model"], loss, *unusual, *seed]
    told = " · ".join(filter(None, parts))
    return f"{record.title} ({told})" if named_by_a_person(record) else told


def named_by_a_person(record: RunRecord) -> bool:
    """Whether the title is a person's: that of a file, or one that took the place of what training writes."""
    return not record.trained or f"{record.loss_name}(" not in record.title


def _facts(record: RunRecord) -> dict[str, str]:
    """Name of a fact → what is said of it; nothing is said of what is not there."""
    data = record.dataset or {}
    model = "own network" if isinstance(record.model, Mapping) else words.of_model(record.model or "")
    facts = {"data": PurePath(record.data_name).name if record.data_name else "own data"}
    facts |= {f"{OF_DATA}{name}": _setting(name, value) for name, value in data.get("knobs", {}).items()}
    facts["data.transforms"] = words.of_value(data["transforms"]) if data.get("transforms") else ""
    facts["model"] = f"head of {model}" if record.features else model
    facts[LOSS] = words.of_loss(record.loss_name)
    declared = LOSSES[record.loss_name].knobs if record.loss_name in LOSSES else {}
    for name, value in record.loss_knobs.items():
        facts[f"{OF_LOSS}{name}"] = f"{words.of_knob(name, declared.get(name))} = {words.of_value(value)}"
    told = record.to_json()
    for name in ("transforms", *(name for name in record.settings if name in told and name != "transforms")):
        if name not in TOLD_ELSEWHERE and told.get(name):
            facts[name] = _setting(name, told[name])
    facts |= {SEED: f"seed {record.seed}", "dataset_key": f"data {(record.dataset_key or '')[:4]}"}
    return facts | {"features": f"features {record.features[:4]}" if record.features else ""}


def _setting(name: str, value: Any) -> str:
    if name == "epochs":
        return f"{value} {'epoch' if value == 1 else name}"
    return words.of_value(value) if name == "transforms" else f"{words.of_name(name)} {words.of_value(value)}"


def _in_order(facts: Mapping[str, Mapping[str, str]]) -> list[str]:
    """The facts that some run tells, what matters most first: data, network, loss, its knobs, settings, seed."""
    known = dict.fromkeys(name for key in sorted(facts) for name in facts[key])
    ranks = ("data", "model", LOSS)

    def rank(name: str) -> int:
        if name in ranks:
            return 2 * ranks.index(name)
        if name in LAST:
            return 10 + LAST.index(name)
        return 1 if name.startswith(OF_DATA) else 5 if name.startswith(OF_LOSS) else 9

    return sorted(known, key=rank)


def _distinct(named: Mapping[str, str]) -> dict[str, str]:
    """The names, with the beginning of the key behind those that several runs have."""
    for digits in DIGITS:
        often = Counter(named.values())
        apart = {key: name if often[name] == 1 else f"{name} ({key[:digits]})" for key, name in named.items()}
        if len(set(apart.values())) == len(apart):
            return apart
    return {key: f"{name} ({key})" for key, name in named.items()}
