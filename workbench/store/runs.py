"""One run on disk, read: every file is compared with its checksum before it is believed.

What lies on a disk may be damaged, changed or written by anybody. Whatever is wrong with a run, reading it gives a
`ValueError` that names the run, and `StoredRun.check` finds most of it without reading the tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.cards import run_card
from workbench.store.checked import CheckedFolder
from workbench.store.naming import whole_name
from workbench.store.record import TRAINED, RunRecord, is_count
from workbench.tables import LogitTable

WEIGHTS = "weights.safetensors"
EPOCHS = "epochs/"  # where the tables of further kept epochs are


def folder_of_epoch(epoch: int) -> str:
    """Where the tables of an epoch are that a further monitor kept, inside the folder of a run."""
    return f"{EPOCHS}{epoch}/"


@dataclass(frozen=True)
class Kept:
    """An epoch that a monitor kept, from 0 as in the history, and its tables: "val", "test", and of two heads the others."""

    epoch: int
    tables: Mapping[str, LogitTable]


@dataclass(frozen=True, repr=False)
class StoredRun(CheckedFolder):
    """One run on disk. Files are read when asked for, each checked against its checksum once."""

    @cached_property
    def record(self) -> RunRecord:
        """What `run.json` says."""
        said = self.json("run.json", self.verified("run.json"))
        try:
            record = RunRecord.from_json(said)
        except ValueError as error:
            raise ValueError(self.wrong("run.json", str(error))) from None
        if self.has_weights and (lacking := [name for name in TRAINED if name not in said]):
            raise ValueError(self.wrong("run.json", f"it lacks {', '.join(lacking)}"))
        return record

    @property
    def has_weights(self) -> bool:
        """Whether there is a network that gave the scores."""
        return WEIGHTS in self.checksums

    @property
    def title(self) -> str:
        """The title under which it is stored, such as `garden · cnn · CrossEntropy()`; `name` is for people."""
        return self.record.title

    @property
    def name(self) -> str:
        """What a person would want to know of the run, in words: `garden · CNN · Cross-entropy`."""
        return whole_name(self.record)

    @property
    def called(self) -> str:
        """Its name, or words in its place where it cannot be read."""
        try:
            return self.name
        except ValueError:
            return "a run that cannot be read"

    @property
    def dataset_spec(self) -> dict[str, Any] | None:
        """What loads the dataset again: `{"name": …, "knobs": {…}}`, or None if it was given as arrays."""
        return None if self.record.dataset is None else dict(self.record.dataset)

    @cached_property
    def tables(self) -> Mapping[str, LogitTable]:
        """Name ("val", "test", …) → table, loaded when it is first asked for."""
        return _Tables(self)

    def kept_by(self, monitor: str) -> Kept:
        """The epoch that was best in one of the monitors of the run, and its tables."""
        record = self.record
        watched = [record.monitor] if isinstance(record.monitor, str) else list(record.monitor or ())
        if monitor not in watched:
            kept = f"it watched {', '.join(watched)}" if watched else "it has no monitor and kept its last epoch"
            raise ValueError(f"{self.named} kept no epoch by {monitor!r}: {kept}")
        epoch = (record.best_epochs or {}).get(monitor, record.kept_epoch or 0)
        tables = self.tables if epoch == record.kept_epoch else _Tables(self, folder_of_epoch(epoch))
        return Kept(epoch, tables)

    @cached_property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """Name of each table → its numbers of rows and classes, read without the table itself."""
        facts = {name: self.json(f"{name}/table.json", self.verified(f"{name}/table.json")) for name in self.tables}
        for name, about in facts.items():
            if not isinstance(about, dict) or not all(is_count(about.get(what)) for what in ("rows", "classes")):
                raise ValueError(self.wrong(f"{name}/table.json", "it does not tell the numbers of rows and classes"))
        return {name: (about["rows"], about["classes"]) for name, about in facts.items()}

    def sizes(self) -> dict[str, int]:
        """Name of each table → its number of rows, read without the table itself."""
        return {name: rows for name, (rows, _) in self.shapes.items()}

    def rows_of(self, name: str) -> tuple[int, int, str] | None:
        """What two tables share if they are of the same rows and classes; None for one without labels.

        The shape, and the checksum of the labels: no table is opened, so that it can be asked of a thousand runs.
        """
        labels = self.checksums.get(f"{name}/labels.npy")
        return None if labels is None or name not in self.shapes else (*self.shapes[name], labels)

    @property
    def many_labels(self) -> bool:
        """Whether rows may have several labels, or none: they are a matrix then. No table is opened to know."""
        described = _array(self.path / "test" / "labels.npy")
        return described is not None and len(described[1]) == 2

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row per epoch; empty for a run that was not trained here."""
        if "history.csv" not in self.checksums:
            return pd.DataFrame()
        try:
            return pd.read_csv(self.verified("history.csv"))
        except ValueError as error:  # those of pandas' parser and of the decoder among them
            raise ValueError(self.wrong("history.csv", str(error))) from None

    def check(self) -> None:
        """Refuses a run that cannot be read, as far as that is seen without reading its tables and weights."""
        self.sizes()
        _ = self.record
        for name in self.checksums:
            path = self.path / name
            if not path.is_file():
                raise ValueError(self.wrong(name, "it is missing, or not a file"))
            if name.endswith(".npy") and path.stat().st_size != _size_of_array(path):
                raise ValueError(self.wrong(name, "it is no array, or not a whole one"))
            if name.endswith(".safetensors") and path.stat().st_size < 8:  # the length of what is told first
                raise ValueError(self.wrong(name, "it holds no weights"))

    @property
    def finished(self) -> str:
        """When the run was completed (ISO 8601, UTC)."""
        return self.record.finished

    def __repr__(self) -> str:
        return f"StoredRun({self.short!r})"

    def _repr_html_(self) -> str:
        return run_card(self)

    @property
    def named(self) -> str:
        return f"run {self.short}"

    def wrong(self, name: str, what: str) -> str:
        """What is said of a file that cannot be believed, and what to do."""
        advice = f"Remove the run (workbench runs rm {self.short}) and train it again, or train(run, again=True)"
        return f"{super().wrong(name, what)}. {advice}"


class _Tables(Mapping[str, LogitTable]):
    """The tables of a run, by name; each is verified and memory-mapped when it is first asked for."""

    def __init__(self, run: StoredRun, folder: str = "") -> None:
        self._run, self._folder = run, folder
        self._loaded: dict[str, LogitTable] = {}
        found = sorted(file.removesuffix("/table.json") for file in run.checksums if file.endswith("/table.json"))
        inside = [name.removeprefix(folder) for name in found if name.startswith(folder)]
        self._names = [name for name in inside if not name.startswith(EPOCHS)]

    def __getitem__(self, name: str) -> LogitTable:
        if name not in self._names:
            raise KeyError(f"no table {name!r}; this run has {', '.join(self._names)}")
        if name not in self._loaded:
            for file in self._run.checksums:
                if file.rpartition("/")[0] == self._folder + name:
                    self._run.verified(file)
            try:
                self._loaded[name] = LogitTable.load(self._run.path / self._folder / name)
            except (OSError, ValueError) as error:
                told = str(error).replace(f"{self._run.path}/", "")  # the run is named already
                raise ValueError(self._run.wrong(self._folder + name, told)) from None
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"the tables {', '.join(self._names)}"


def _size_of_array(path: Path) -> int | None:
    """The size that a file has if it holds all of the array that its first bytes describe; None if they do not."""
    described = _array(path)
    return None if described is None else described[0] + described[2] * math.prod(described[1])


def _array(path: Path) -> tuple[int, tuple[int, ...], int] | None:
    """Where an array begins in a file, its shape and the size of an entry, as the first bytes say; None if they do not."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, _, dtype = readers[version](file)
            return file.tell(), shape, dtype.itemsize
    except (OSError, ValueError, KeyError, EOFError):
        return None
