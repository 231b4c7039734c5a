"""A stored run: each file is compared with its checksum before it is used.

What lies on a disk may be damaged, changed or written by anybody. Whatever is wrong with a run, reading it gives a
`ValueError` that names the run, and `StoredRun.check` finds most of it without reading the tables.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from workbench.files.checksums import CheckedFolder
from workbench.html_repr import run_card
from workbench.store.record import OF_A_NETWORK, RunRecord, is_count
from workbench.tables import LogitTable
from workbench.tables.row_kinds import IMAGE, ROW, kind_of_rows
from workbench.untrusted_files import read_array_header

WEIGHTS = "weights.safetensors"
EPOCHS = "epochs/"  # where the tables of further kept epochs are


def folder_of_epoch(epoch: int) -> str:
    """Folder, inside a run, with the tables of the epoch that a further monitor selected."""
    return f"{EPOCHS}{epoch}/"


@dataclass(frozen=True)
class MonitoredTables:
    """An epoch that a monitor kept, from 0 as in the history, and its tables: "val", "test", and of two heads the others."""

    epoch: int
    tables: Mapping[str, LogitTable]


@dataclass(frozen=True, repr=False)
class StoredRun(CheckedFolder):
    """One run on disk. Files are read on first use, each checked against its checksum once."""

    @cached_property
    def record(self) -> RunRecord:
        """The content of `run.json`."""
        content = self.json("run.json", self.verified("run.json"))
        try:
            record = RunRecord.from_json(content)
        except ValueError as error:
            raise ValueError(self.wrong("run.json", str(error))) from None
        if self.has_weights:
            from workbench.runs.description import NEEDED

            lacking = [name for name in NEEDED if name not in record.run]
            lacking += [name for name in OF_A_NETWORK if getattr(record, name) is None]
            if lacking:
                raise ValueError(self.wrong("run.json", f"it lacks {', '.join(lacking)}"))
        return record

    @property
    def has_weights(self) -> bool:
        """Whether there is a network that gave the scores."""
        return WEIGHTS in self.checksums

    def check_network(self) -> None:
        """Refuses a run that has scores and no network."""
        if not self.has_weights:
            raise ValueError(
                f"{self.title} was imported and not trained here: it has no network; give a trained run (`workbench runs` "
                "lists them)"
            )

    @property
    def title(self) -> str:
        """The title under which it is stored, such as `garden · cnn · CrossEntropy()`; `name` is for people."""
        return self.record.title

    @property
    def name(self) -> str:
        """The display name of the run: `garden · CNN · Cross-entropy`."""
        from workbench.store.run_titles import whole_name  # which looks at declarations of losses and runs

        return whole_name(self.record)

    @property
    def display_name(self) -> str:
        """The name of the run, or a placeholder if `run.json` cannot be read."""
        try:
            return self.name
        except ValueError:
            return "a run that cannot be read"

    @property
    def dataset_spec(self) -> dict[str, Any] | None:
        """The spec that loads the dataset again: `{"name": …, "knobs": {…}}`, or None if it was given as arrays."""
        return None if self.record.dataset is None else dict(self.record.dataset)

    @cached_property
    def tables(self) -> Mapping[str, LogitTable]:
        """Name ("val", "test", …) → table, loaded on first use."""
        return _Tables(self)

    def kept_by(self, monitor: str) -> MonitoredTables:
        """The epoch that was best in one of the monitors of the run, and its tables."""
        record = self.record
        monitor_or_several = record.run.get("monitor")
        watched = [monitor_or_several] if isinstance(monitor_or_several, str) else list(monitor_or_several or ())
        if monitor not in watched:
            kept = f"it watched {', '.join(watched)}" if watched else "it has no monitor and kept its last epoch"
            raise ValueError(f"{self.named} kept no epoch by {monitor!r}: {kept}")
        epoch = (record.best_epochs or {}).get(monitor, record.kept_epoch or 0)
        tables = self.tables if epoch == record.kept_epoch else _Tables(self, folder_of_epoch(epoch))
        return MonitoredTables(epoch, tables)

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

    def rows_of(self, name: str) -> tuple[int, int, str, str | None] | None:
        """What tells whether two tables have the same rows and classes; None for a table without labels.

        The shape, and the checksums of labels and ids (None without ids): no table is opened, so this is cheap for a
        thousand runs.
        """
        labels, ids = (self.checksums.get(f"{name}/{field}.npy") for field in ("labels", "ids"))
        return None if labels is None or name not in self.shapes else (*self.shapes[name], labels, ids)

    @property
    def many_labels(self) -> bool:
        """Whether rows may have several labels, or none: they are a matrix then. No table is opened to know."""
        try:
            return len(read_array_header(self.path / "test" / "labels.npy").shape) == 2
        except (OSError, ValueError):
            return False

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
            path = os.path.join(self.path, name)  # a `Path` for each file of thousands of runs takes long
            if not os.path.isfile(path):
                raise ValueError(self.wrong(name, "it is missing, or not a file"))
            if name.endswith(".npy"):
                self._check_array(name, path)
            if name.endswith(".safetensors") and os.path.getsize(path) < 8:  # the length of the header
                raise ValueError(self.wrong(name, "it holds no weights"))

    def _check_array(self, name: str, path: str) -> None:
        try:
            read_array_header(path)
        except OSError as error:
            raise ValueError(self.wrong(name, str(error.strerror))) from None
        except ValueError as error:
            raise ValueError(self.wrong(name, str(error))) from None

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
        """The message about a file whose content cannot be trusted, with the remedy."""
        advice = f"Remove the run (workbench runs rm {self.short}) and train it again, or train(run, force=True)"
        return f"{super().wrong(name, what)}. {advice}"


class _Tables(Mapping[str, LogitTable]):
    """The tables of a run, by name; each is verified and memory-mapped on first use."""

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
                table = LogitTable.load(self._run.path / self._folder / name)
            except (OSError, ValueError) as error:
                message = str(error).replace(f"{self._run.path}/", "")  # the run is named already
                raise ValueError(self._run.wrong(self._folder + name, message)) from None
            is_image = len(self._run.record.input_shape or ()) == 3  # what the network saw; scores do not say
            self._loaded[name] = table.of_kind(IMAGE) if is_image and kind_of_rows(table) == ROW else table
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"the tables {', '.join(self._names)}"
