"""`run.json`: the description of a run, as `Run.to_json` writes it, and facts about its result.

    {"format": 1, "run": {"dataset": …, "model": …, "loss": …, "epochs": 10, …}, "facts": {"title": …, "n_classes": …}}

A file is only data, of anybody: `RunRecord.from_json` checks every field and imports nothing that it names. The fields of a
run are checked by `Run` itself; a table that was imported has no run.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from workbench.losses.target_size import target_K

FORMAT = 1  # of run.json; the key of a run does not depend on it
WHERE = ("device", "devices", "nodes")  # where a run is trained does not change what it is

Accepts = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _switch(value: Any) -> bool:
    return isinstance(value, bool)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number that counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _positive(value: Any) -> bool:
    return is_count(value) and value >= 1


def _list_of(accepts: Accepts) -> Accepts:
    return lambda value: isinstance(value, (list, tuple)) and all(map(accepts, value))


def _mapping_to(accepts: Accepts) -> Accepts:
    return lambda value: isinstance(value, dict) and all(map(accepts, value.values()))


def _fact(accepts: Accepts, default: Any = None) -> Any:
    return field(default=default, metadata={"accepts": accepts})


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """Content of `run.json`: the run as JSON, and facts about its result. Only the title must be there.

    >>> loss = {"loss": "NoisedTopK", "knobs": {"K": 3}}
    >>> record = RunRecord.from_json({"format": 1, "run": {"loss": loss}, "facts": {"title": "mine"}})
    >>> record.loss_name, record.K
    ('NoisedTopK', 3.0)
    """

    title: str = field(metadata={"accepts": _text})
    run: Mapping[str, Any] = field(default_factory=dict)  # empty: a table that was imported
    together: int | None = _fact(_positive)  # number of runs trained at the same time, on stacked weights
    repeatable: bool = _fact(_switch, default=False)  # from this file alone: data and model have names
    imported: bool = _fact(_switch, default=False)
    note: str = _fact(_text, default="")
    data: str = _fact(_text, default="")  # name of data that were given as arrays
    input_shape: Sequence[int] | None = _fact(_list_of(is_count))
    columns: Sequence[str] | None = _fact(_list_of(_text))  # names of the numbers in a row, where they had some
    resize: int | None = _fact(_positive)  # shorter side of images in files, before the square is cut out
    n_classes: int | None = _fact(_positive)
    kept_epoch: int | None = _fact(is_count)
    best_epochs: Mapping[str, int] | None = _fact(_mapping_to(is_count))  # of each monitor, where there are several
    warned: str = _fact(_text, default="")  # of a constant answer at the end of training
    versions: Mapping[str, str] | None = _fact(_mapping_to(_text))
    rounded: str | None = _fact(_text)
    finished: str = _fact(_text, default="")  # ISO 8601, UTC
    others: Mapping[str, Any] = field(default_factory=dict)  # facts that another program wrote, kept as they are

    @classmethod
    def from_json(cls, content: Any) -> Self:
        """The record that a file holds.

        Raises:
            ValueError: If the file is of another format, or a field is not what it must be.
        """
        if not isinstance(content, Mapping):
            raise ValueError(f"it is a {type(content).__name__}; expected an object with format, run and facts")
        if content.get("format") != FORMAT or isinstance(content.get("format"), bool):
            raise ValueError(f"it is of format {content.get('format')!r:.40}; this version reads format {FORMAT}")
        facts, run = content.get("facts"), content.get("run") or {}
        if not isinstance(facts, Mapping):
            raise ValueError(f"facts cannot be {facts!r:.40}")
        for name, accepts in FACTS.items():
            if (name in facts or name == "title") and not accepts(facts.get(name)):
                raise ValueError(f"{name} cannot be {facts.get(name)!r:.40}")
        if run:
            from workbench.runs.description import check_description

            check_description(run)
        known = {name: facts[name] for name in FACTS if name in facts}
        others = {name: value for name, value in facts.items() if name not in FACTS}
        return cls(run=run, others=others, **known)

    def to_json(self) -> dict[str, Any]:
        """The content of `run.json`; facts that stand at their default are left out."""
        facts = {
            each.name: value
            for each in dataclasses.fields(self)
            if each.name in FACTS and (value := getattr(self, each.name)) != each.default
        }
        return {"format": FORMAT, "run": dict(self.run) or None, "facts": {**facts, **self.others}}

    @property
    def trained(self) -> bool:
        """Whether the run was trained here; one that was not is a table that was imported."""
        return self.loss is not None

    @property
    def learnt(self) -> bool:
        """Whether its weights were trained here; a network with epochs = 0 was stored as it is."""
        return self.trained and self.run.get("epochs") != 0

    @property
    def loss(self) -> Mapping[str, Any] | None:
        """The loss as `Loss.spec()` writes it."""
        return self.run.get("loss")

    @property
    def loss_name(self) -> str:
        """The name of the loss's class, wherever it lives; "" for a run that was not trained here."""
        return "" if self.loss is None else str(self.loss["loss"]).rpartition(":")[2]

    @property
    def loss_knobs(self) -> Mapping[str, Any]:
        """Knob of the loss → its value."""
        return {} if self.loss is None else self.loss.get("knobs", {})

    @property
    def dataset(self) -> Mapping[str, Any] | None:
        """The data as `Dataset.spec` has them; None if they were given as arrays, or somewhere else."""
        return self.run.get("dataset")

    @property
    def data_name(self) -> str | None:
        """The name or the path of the data; None if they were never named."""
        return (self.data or None) if self.dataset is None else self.dataset["name"]

    @property
    def model(self) -> str | Mapping[str, str] | None:
        """The name of the model; a Module is described by its repr and its weights."""
        return self.run.get("model")

    @property
    def K(self) -> float:
        """Target size of a set: that of the loss, or the usual one."""
        return target_K(self.loss_knobs, math.inf if self.n_classes is None else self.n_classes)

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides a trained run, flat: `loss` is the name of the loss and `loss.epsilon` one of its knobs.

        Only a learning rate that falls in steps has milestones.
        `data` and `data.rho` are likewise of its data, unless they were given as arrays; `dataset_key` stands for all of
        them. What is neither a number nor a text is written as Python writes it.
        """
        idle = () if self.run.get("schedule") == "steps" else ("milestones",)
        flat = {name: value for name, value in self.run.items() if name not in ("dataset", "loss", *idle, *WHERE)}
        flat |= {"loss": self.loss_name, **{f"loss.{name}": value for name, value in self.loss_knobs.items()}}
        if self.dataset is not None:
            knobs = self.dataset.get("knobs", {})
            flat |= {"data": self.data_name, **{f"data.{name}": value for name, value in knobs.items()}}
        return {
            name: value if isinstance(value, (bool, int, float, str)) else repr(value) for name, value in flat.items()
        }

    def matches(self, description: Mapping[str, Any]) -> bool:
        """Whether this is a run of that description, as far as the description goes."""
        compared = {name: value for name, value in description.items() if name not in WHERE}
        return all(self.run.get(name) == value for name, value in compared.items())


FACTS: dict[str, Accepts] = {
    each.name: each.metadata["accepts"] for each in dataclasses.fields(RunRecord) if "accepts" in each.metadata
}
OF_A_NETWORK = ("n_classes", "input_shape", "kept_epoch")  # facts that a run with weights has
