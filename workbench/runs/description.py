"""Checks of a run as JSON: each field against what `Run` declares. A file is only data, so nothing it names is imported."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.runs.checks import is_rising
from workbench.runs.monitors import monitors_named
from workbench.runs.run import Run
from workbench.validation import whole_number

NEEDED = ("dataset", "dataset_key", "model", "loss")  # of a run that was trained


def check_description(described: Any) -> None:
    """Refuse what `Run.to_json` cannot have written.

    Raises:
        ValueError: If a field has another type or lies outside its range.
    """
    if not isinstance(described, Mapping):
        raise ValueError(f"run cannot be {described!r:.40}")
    knobs = Run.knobs()
    for name, value in described.items():
        if name in knobs:
            try:
                knobs[name].checked(name, value)
            except TypeError as error:
                raise ValueError(str(error)) from None
        elif name in FIELDS and not FIELDS[name](value):
            raise ValueError(f"{name} cannot be {value!r:.40}")
    monitors_named(described.get("monitor"))
    if described.get("patience") is not None:
        whole_number("patience", described["patience"])


def _named(field: str) -> Callable[[Any], bool]:
    """Whether a value names a loss, a dataset or a transform with its knobs."""
    return lambda value: (
        isinstance(value, dict) and isinstance(value.get(field), str) and isinstance(value.get("knobs", {}), dict)
    )


def _transforms(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(map(_named("transform"), value))


def _dataset(value: Any) -> bool:
    return value is None or (_named("name")(value) and _transforms(value.get("transforms", [])))


def _model(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, dict) and isinstance(value.get("module"), str))


# Fields of a run that are not knobs.
FIELDS: dict[str, Callable[[Any], bool]] = {
    "dataset": _dataset,
    "dataset_key": lambda value: isinstance(value, str),
    "model": _model,
    "loss": lambda value: value is None or _named("loss")(value),
    "transforms": _transforms,
    "features": lambda value: value is None or isinstance(value, str),
    "milestones": is_rising,
}
