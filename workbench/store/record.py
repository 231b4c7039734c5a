"""What `run.json` says of a run: one class that reads it, writes it, and answers what is asked of it everywhere.

    record = store.open(key).record
    record.loss_name, record.K, record.settings, record.repeatable

A file is only data, of any age and of anybody. `RunRecord.from_json` looks at every field, refuses in words what cannot be,
and brings what an earlier version wrote into the form of today:

- format 1 named a loss of the workbench by its place in the code, `workbench.losses.noised:NoisedTopK`;
- format 2 names what comes with the workbench by its bare name, `NoisedTopK`, and code of somebody else as `module:name`,
  so that a file of ours can move and no stored run is lost.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from workbench import schedules

FORMAT = 2  # of run.json; the key of a run does not depend on it
READS = (1, FORMAT)
ALWAYS_TOLD = ("dataset", "features", "monitor", "patience", "repeatable")  # of a trained run, also where there is none
USUAL_K = 5.0  # classes in a set, for a loss that does not ask for a number

Accepts = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _switch(value: Any) -> bool:
    return isinstance(value, bool)


def _facts(value: Any) -> bool:
    return isinstance(value, dict)


def is_count(value: Any) -> bool:
    """Whether a value is a whole number that counts something."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _positive(value: Any) -> bool:
    return is_count(value) and value >= 1


def _spec(name: str) -> Accepts:
    """Whether a value names a loss, a dataset or a transform with its knobs."""
    return lambda value: isinstance(value, dict) and _text(value.get(name)) and isinstance(value.get("knobs", {}), dict)


def _list_of(accepts: Accepts) -> Accepts:
    return lambda value: isinstance(value, (list, tuple)) and all(map(accepts, value))


def _mapping_to(accepts: Accepts) -> Accepts:
    return lambda value: isinstance(value, dict) and all(map(accepts, value.values()))


_transforms = _list_of(_spec("transform"))


def _dataset(value: Any) -> bool:
    return _spec("name")(value) and _transforms(value.get("transforms", []))


def _model(value: Any) -> bool:
    return _text(value) or (isinstance(value, dict) and _text(value.get("module")))


def _or_none(accepts: Accepts) -> Accepts:
    return lambda value: value is None or accepts(value)


_dataset_or_none, _loss_or_none = _or_none(_dataset), _or_none(_spec("loss"))
_text_or_none, _count_or_none = _or_none(_text), _or_none(is_count)
_epochs = _mapping_to(is_count)
_texts, _numbers, _counts = _list_of(_text), _list_of(_number), _list_of(is_count)


def _monitor(value: Any) -> bool:
    return _text_or_none(value) or (_texts(value) and len(value) > 0)


def _setting(accepts: Accepts) -> Any:
    """A field that decides what training gives."""
    return field(default=None, metadata={"accepts": accepts, "setting": True})


def _fact(accepts: Accepts, default: Any = None) -> Any:
    """A field that tells of a run."""
    return field(default=default, metadata={"accepts": accepts})


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """What is known of a run without reading its tables. Only the title must be there; None is what was not told.

    >>> record = RunRecord.from_json({"title": "mine", "loss": {"loss": "workbench.losses.noised:NoisedTopK", "knobs": {"K": 3}}})
    >>> record.loss_name, record.K, record.loss
    ('NoisedTopK', 3.0, {'loss': 'NoisedTopK', 'knobs': {'K': 3}})
    >>> RunRecord.from_json({"title": "mine", "seed": -1})
    Traceback (most recent call last):
        ...
    ValueError: seed cannot be -1
    """

    title: str = field(metadata={"accepts": _text})
    dataset: Mapping[str, Any] | None = _setting(_dataset_or_none)  # None: it was given as arrays
    dataset_key: str | None = _setting(_text)
    model: str | Mapping[str, str] | None = _setting(_model)  # a Module is told of by its repr and its weights
    loss: Mapping[str, Any] | None = _setting(_loss_or_none)
    transforms: Sequence[Mapping[str, Any]] | None = _setting(_transforms)
    epochs: int | None = _setting(is_count)
    batch_size: int | None = _setting(is_count)
    optimizer: str | None = _setting(_text)
    learning_rate: float | None = _setting(_number)
    schedule: str | None = _setting(_text)
    weight_decay: float | None = _setting(_number)
    seed: int | None = _setting(is_count)
    features: str | None = _setting(_text_or_none)
    monitor: str | Sequence[str] | None = _setting(_monitor)  # several: the first chose the weights
    patience: int | None = _setting(_count_or_none)
    precision: str | None = _setting(_text)
    compile: bool | None = _setting(_switch)
    channels_last: bool | None = _setting(_switch)
    accumulate: int | None = _setting(is_count)
    drops: Sequence[float] | None = _setting(_numbers)
    head: str | None = _setting(_text)
    device: str | None = _fact(_text)  # where a run is trained does not change what it is
    devices: int | None = _fact(is_count)
    nodes: int | None = _fact(is_count)
    together: int | None = _fact(_positive)  # how many runs were trained at the same time, on stacked weights
    repeatable: bool = _fact(_switch, default=False)  # from this file alone: data and model have names
    imported: bool = _fact(_switch, default=False)
    note: str = _fact(_text, default="")
    input_shape: Sequence[int] | None = _fact(_counts)
    columns: Sequence[str] | None = _fact(_texts)  # names of the numbers in a row, where they had some
    resize: int | None = _fact(_positive)  # shorter side of images in files, before the square is cut out
    n_classes: int | None = _fact(_positive)
    kept_epoch: int | None = _fact(is_count)
    best_epochs: Mapping[str, int] | None = _fact(_epochs)  # of each monitor, where there are several
    warned: str = _fact(_text, default="")  # of a constant answer at the end of training
    versions: Mapping[str, str] | None = _fact(_facts)
    rounded: str | None = _fact(_text)
    finished: str = _fact(_text, default="")  # ISO 8601, UTC
    formerly: tuple[str, ...] = _fact(_texts, default=())  # keys under which earlier versions kept the run
    others: Mapping[str, Any] = field(default_factory=dict)  # what somebody else wrote; kept and not looked at

    @classmethod
    def from_json(cls, said: Any) -> Self:
        """The record that a file of any format holds, or a ValueError that says what cannot be."""
        if not isinstance(said, Mapping):
            raise ValueError(f"it is a {type(said).__name__} where facts about a run should be")
        version = said.get("format", FORMAT)
        if version not in tuple(READS):
            raise ValueError(f"it is of format {version!r:.40} and this version reads {' and '.join(map(str, READS))}")
        for name, accepts in FIELDS.items():
            if (name in said or name == "title") and not accepts(said.get(name)):
                raise ValueError(f"{name} cannot be {said.get(name)!r:.40}")
        facts = _bare_names(said)
        known = {name: facts[name] for name in FIELDS if name in facts}
        others = {name: value for name, value in facts.items() if name not in FIELDS and name != "format"}
        return cls(**known | {"formerly": tuple(known.get("formerly", ())), "others": others})

    def to_json(self) -> dict[str, Any]:
        """What is written: all that was told, and of a trained run also what it has none of (`monitor`: null)."""
        told = {
            each.name: value
            for each in dataclasses.fields(self)
            if each.name in FIELDS
            and ((value := getattr(self, each.name)) != each.default or (self.trained and each.name in ALWAYS_TOLD))
        }
        return {"format": FORMAT, **told, **self.others}

    @property
    def trained(self) -> bool:
        """Whether the run was trained here; one that was not is a table that somebody brought."""
        return self.loss is not None

    @property
    def loss_name(self) -> str:
        """The name of the loss's class, wherever it lives; "" for a run that was not trained here."""
        return "" if self.loss is None else str(self.loss["loss"]).rpartition(":")[2]

    @property
    def loss_knobs(self) -> Mapping[str, Any]:
        """Knob of the loss → its value."""
        return {} if self.loss is None else self.loss.get("knobs", {})

    @property
    def data_name(self) -> str | None:
        """The name or the path of the data; None if they were given as arrays, or somewhere else."""
        return None if self.dataset is None else self.dataset["name"]

    @property
    def K(self) -> float:
        """Classes in a set on average, where nobody says otherwise."""
        return target_K(self.loss_knobs, math.inf if self.n_classes is None else self.n_classes)

    @property
    def settings(self) -> dict[str, Any]:
        """All that decides a trained run, flat: `loss` is the name of the loss and `loss.epsilon` one of its knobs.

        `data` and `data.rho` are likewise of its data, unless they were given as arrays; `dataset_key` stands for all of
        them. What is neither a number nor a text is written as Python prints it.
        """
        told = self.to_json()
        flat = {name: told[name] for name in SETTINGS if name in told and name not in ("dataset", "loss")}
        flat |= {"loss": self.loss_name, **{f"loss.{name}": value for name, value in self.loss_knobs.items()}}
        if self.dataset is not None:
            knobs = self.dataset.get("knobs", {})
            flat |= {"data": self.data_name, **{f"data.{name}": value for name, value in knobs.items()}}
        return {
            name: value if isinstance(value, (bool, int, float, str)) else repr(value) for name, value in flat.items()
        }

    def says(self, described: Mapping[str, Any]) -> bool:
        """Whether this is a run of that description, as far as the description goes; names of ours in any spelling."""
        told = self.to_json()
        return all(name in told and told[name] == value for name, value in _bare_names(described).items())


def target_K(loss_knobs: Mapping[str, Any], n_classes: float) -> float:
    """Classes in a set on average, where nobody says otherwise: those of the loss, or 5, or as many as there can be.

    >>> target_K({"K": 3}, n_classes=10), target_K({}, n_classes=10), target_K({}, n_classes=4)
    (3.0, 5.0, 3.0)
    """
    K = schedules.end_of(loss_knobs.get("K", USUAL_K))
    return float(min(max(K if _number(K) else USUAL_K, 1), n_classes - 1))


def _bare_names(said: Mapping[str, Any]) -> dict[str, Any]:
    """What format 1 says, in format 2: a loss of ours without the place where its class lived."""
    facts = dict(said)
    if isinstance(facts.get("loss"), Mapping):
        bare = re.sub(r"^workbench\.[\w.]*:", "", facts["loss"]["loss"])
        facts["loss"] = {**facts["loss"], "loss": bare}
    return facts


FIELDS: dict[str, Accepts] = {
    each.name: each.metadata["accepts"] for each in dataclasses.fields(RunRecord) if "accepts" in each.metadata
}
SETTINGS = tuple(each.name for each in dataclasses.fields(RunRecord) if each.metadata.get("setting"))
TRAINED = ("dataset", "dataset_key", "model", "loss", "n_classes", "input_shape", "kept_epoch")  # of a run with weights
