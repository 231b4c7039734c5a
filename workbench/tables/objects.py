"""Several rows of one object, such as photographs of one plant: they stay together when a table is split."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

import numpy as np

# What an attribute may be called that names the object of each row.
OBJECTS = ("object", "object_id", "observation", "observation_id", "plant_id", "individual", "specimen", "patient_id")


class Rows(Protocol):
    """A table whose rows may have ids and attributes."""

    @property
    def n(self) -> int: ...

    @property
    def ids(self) -> np.ndarray | None: ...

    @property
    def attributes(self) -> Mapping[str, np.ndarray] | None: ...


class Objects(NamedTuple):
    """The object of each row; a row without an object id is an object of its own."""

    by: str  # the attribute that names them, or "ids"
    codes: np.ndarray  # (n,) from 0
    names: frozenset[str]

    @property
    def n_objects(self) -> int:
        """Number of objects."""
        return int(self.codes.max()) + 1


def objects_of_rows(table: Rows) -> Objects | None:
    """The objects that an attribute names, or ids that repeat; None where every row is an object of its own.

    >>> from workbench.tables import LogitTable
    >>> objects_of_rows(LogitTable(np.zeros((3, 2)), attributes={"plant_id": ["b", "a", "b"]})).codes.tolist()
    [1, 0, 1]
    """
    attributes = table.attributes or {}
    candidates = {name: values for name, values in attributes.items() if name.lower() in OBJECTS} | {"ids": table.ids}
    for name, values in candidates.items():
        if values is None:
            continue
        named, missing = _named(np.asarray(values))
        names, codes = np.unique(named[~missing], return_inverse=True)
        if len(names) < len(codes):
            of_rows = np.empty(table.n, np.int64)
            of_rows[~missing] = codes
            of_rows[missing] = len(names) + np.arange(np.count_nonzero(missing))
            return Objects(name, of_rows, frozenset(map(str, names.tolist())))
    return None


def _named(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values that can be sorted, and which of them are missing."""
    if values.dtype.kind in "iub":
        return values, np.zeros(len(values), bool)
    named = values.astype(str)
    return named, np.isin(named, ("", "nan", "None"))


def split_rows(table: Rows, fraction: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two sets of rows in rising order: those of a random fraction of the objects, and those of the others.

    Raises:
        ValueError: one side would be empty.
    """
    objects = objects_of_rows(table)
    codes = np.arange(table.n) if objects is None else objects.codes
    n_objects, given = table.n, f"{table.n} rows"
    if objects is not None:
        n_objects, given = objects.n_objects, f"{objects.n_objects} objects ({objects.by}) with {table.n} rows"
    n_first = round(fraction * n_objects)
    if not 0 < n_first < n_objects:
        raise ValueError(
            f"fraction = {fraction} of {given} leaves one side empty; give more rows, a fraction that leaves both sides some, "
            "or two tables instead of one"
        )
    chosen = np.zeros(n_objects, bool)
    chosen[np.random.default_rng(seed).permutation(n_objects)[:n_first]] = True
    first = chosen[codes]
    return np.flatnonzero(first), np.flatnonzero(~first)


def n_shared_objects(one: Rows, other: Rows) -> int:
    """How many objects have rows in both of two tables that name their objects alike."""
    both = [objects_of_rows(each) for each in (one, other)]
    if both[0] is None or both[1] is None or both[0].by != both[1].by:
        return 0
    return len(both[0].names & both[1].names)
