"""Keys of runs that are seen through a slice of their test rows: whatever is cached under such a key is of these rows."""

from __future__ import annotations

import json
from typing import Any

from workbench.metrics.rows import RowFilter

APART = "~"  # between the run, the run whose rows are selected, the name of the slice and its filter


def sliced(key: str, like: str) -> str:
    """The key of a run, seen through the slice of another key if that has one."""
    return APART.join([whole(key), *like.split(APART)[1:]])


def through(key: str, text: str) -> str:
    """The key of a run, seen through a slice of its own rows as it stands in the address."""
    return APART.join([whole(key), whole(key), text])


def whole(key: str) -> str:
    """The short key of the run with all its rows."""
    return key.partition(APART)[0]


def slice_of(key: str) -> tuple[str, str, RowFilter] | None:
    """The run whose rows are selected, the name of the slice and its filter; None for all rows."""
    if APART not in key:
        return None
    _, origin, text = key.split(APART, 2)
    return origin, *parsed(text)


def parsed(text: str) -> tuple[str, RowFilter]:
    """The name of a slice and its filter, as it stands in the address."""
    name, _, asked = text.partition(APART)
    return name, RowFilter(**{field: _tuples(value) for field, value in json.loads(asked).items()})


def _tuples(value: Any) -> Any:
    """JSON knows no tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
