"""One run on disk, read: every file is compared with its checksum before it is believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.cards import run_card
from workbench.tables import LogitTable

CHECKSUMS = "checksums.json"


@dataclass(frozen=True, repr=False)
class StoredRun:
    """One run on disk. Files are read when asked for, each checked against its checksum once."""

    path: Path

    @property
    def key(self) -> str:
        return self.path.name

    @cached_property
    def info(self) -> dict[str, Any]:
        """What `run.json` says."""
        return json.loads(self.verified("run.json").read_text(encoding="utf-8"))

    @property
    def title(self) -> str:
        """A short name for people, such as `garden · cnn · CrossEntropy()`."""
        return self.info["title"]

    @property
    def dataset_spec(self) -> dict[str, Any] | None:
        """What loads the dataset again: `{"name": …, "knobs": {…}}`, or None if it was given as arrays."""
        return self.info.get("dataset")

    @cached_property
    def tables(self) -> Mapping[str, LogitTable]:
        """Name ("val", "test", …) → table, loaded when it is first asked for."""
        return _Tables(self)

    def sizes(self) -> dict[str, int]:
        """Name of each table → its number of rows, read without the table itself."""
        facts = {name: self.verified(f"{name}/table.json").read_text(encoding="utf-8") for name in self.tables}
        return {name: json.loads(text)["rows"] for name, text in facts.items()}

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row per epoch; empty for a run that was not trained here."""
        if "history.csv" not in self.checksums:
            return pd.DataFrame()
        return pd.read_csv(self.verified("history.csv"))

    @cached_property
    def checksums(self) -> dict[str, str]:
        """File, relative to the run directory → SHA-256."""
        try:
            return dict(json.loads((self.path / CHECKSUMS).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as error:
            raise ValueError(f"{self._damaged(CHECKSUMS)} ({error})") from None

    def verified(self, name: str) -> Path:
        """The path of a file of this run, after comparing its content with its checksum."""
        path = self.path / name
        if name not in self.checksums:
            raise ValueError(f"the run in {self.path} has no {name}; it has {', '.join(self.checksums)}")
        if not path.is_file() or sha256_of(path) != self.checksums[name]:
            raise ValueError(self._damaged(name))
        return path

    @property
    def finished(self) -> str:
        """When the run was completed (ISO 8601, UTC)."""
        return self.info.get("finished", "")

    def __repr__(self) -> str:
        return f"StoredRun({self.key[:12]!r})"

    def _repr_html_(self) -> str:
        return run_card(self)

    def _damaged(self, name: str) -> str:
        return (
            f"{self.path / name} is damaged or was changed: it does not match its checksum. "
            "Delete the run's folder and train again, or train(run, again=True)"
        )


class _Tables(Mapping[str, LogitTable]):
    """The tables of a run, by name; each is verified and memory-mapped when it is first asked for."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        self._loaded: dict[str, LogitTable] = {}
        self._names = sorted(file.removesuffix("/table.json") for file in run.checksums if file.endswith("/table.json"))

    def __getitem__(self, name: str) -> LogitTable:
        if name not in self._names:
            raise KeyError(f"no table {name!r}; this run has {', '.join(self._names)}")
        if name not in self._loaded:
            for file in self._run.checksums:
                if file.rpartition("/")[0] == name:
                    self._run.verified(file)
            self._loaded[name] = LogitTable.load(self._run.path / name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"the tables {', '.join(self._names)}"


def sha256_of(path: Path) -> str:
    """The sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
