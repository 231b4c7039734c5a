"""One run on disk, read: every file is compared with its checksum before it is believed.

What lies on a disk may be damaged, changed or written by anybody. Whatever is wrong with a run, reading it gives a
`ValueError` that names the run, and `StoredRun.check` finds most of it without reading the tables.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.cards import run_card
from workbench.tables import LogitTable

CHECKSUMS = "checksums.json"
FORMAT = 1  # of run.json and of the key of a run; a change makes every run a new one
SHORT = 12  # digits of a key that people read


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _spec(name: str) -> Callable[[Any], bool]:
    """Whether a value names a loss, a dataset or a transform with its knobs."""
    return lambda value: isinstance(value, dict) and _text(value.get(name)) and isinstance(value.get("knobs", {}), dict)


def _list_of(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(map(accepts, value))


def _dataset(value: Any) -> bool:
    return _spec("name")(value) and _list_of(_spec("transform"))(value.get("transforms", []))


def _or_none(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or accepts(value)


# What `run.json` may say. Only the title must be there; whatever else somebody adds is not looked at.
FIELDS: dict[str, Callable[[Any], bool]] = {
    "title": _text,
    "format": lambda value: value == FORMAT,
    **dict.fromkeys(("note", "finished", "dataset_key", "optimizer", "schedule", "precision", "device"), _text),
    **dict.fromkeys(("imported", "repeatable"), lambda value: isinstance(value, bool)),
    **dict.fromkeys(("epochs", "batch_size", "seed", "devices", "nodes", "accumulate", "kept_epoch"), _count),
    **dict.fromkeys(("learning_rate", "weight_decay"), lambda value: isinstance(value, (int, float))),
    "n_classes": lambda value: _count(value) and value >= 1,
    "input_shape": _list_of(_count),
    "dataset": _or_none(_dataset),
    "loss": _or_none(_spec("loss")),
    "model": lambda value: _text(value) or (isinstance(value, dict) and _text(value.get("module"))),
    "features": _or_none(_text),
    "monitor": _or_none(_text),
    "patience": _or_none(_count),
    "transforms": _list_of(_spec("transform")),
    "drops": _list_of(lambda value: isinstance(value, (int, float))),
    "versions": lambda value: isinstance(value, dict),
}
TRAINED = ("dataset", "dataset_key", "model", "loss", "n_classes", "input_shape", "kept_epoch")  # of a run with weights


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
        found = self._json("run.json", self.verified("run.json"))
        if not isinstance(found, dict):
            raise ValueError(
                self._wrong("run.json", f"it is a {type(found).__name__} where facts about a run should be")
            )
        if found.get("format", FORMAT) != FORMAT:
            raise ValueError(
                self._wrong("run.json", f"it is of format {found['format']!r:.40} and this version reads {FORMAT}")
            )
        for name, accepts in FIELDS.items():
            if (name in found or name == "title") and not accepts(found.get(name)):
                raise ValueError(self._wrong("run.json", f"{name} cannot be {found.get(name)!r:.40}"))
        if "weights.safetensors" in self.checksums and (lacking := [name for name in TRAINED if name not in found]):
            raise ValueError(self._wrong("run.json", f"it lacks {', '.join(lacking)}"))
        return found

    @property
    def title(self) -> str:
        """A short name for people, such as `garden · cnn · CrossEntropy()`."""
        return self.info["title"]

    @property
    def called(self) -> str:
        """The title, or words in its place where it cannot be read."""
        try:
            return self.title
        except ValueError:
            return "a run that cannot be read"

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
        facts = {name: self._json(f"{name}/table.json", self.verified(f"{name}/table.json")) for name in self.tables}
        for name, about in facts.items():
            if not isinstance(about, dict) or not _count(about.get("rows")):
                raise ValueError(self._wrong(f"{name}/table.json", "it does not tell the number of rows"))
        return {name: about["rows"] for name, about in facts.items()}

    @cached_property
    def history(self) -> pd.DataFrame:
        """One row per epoch; empty for a run that was not trained here."""
        if "history.csv" not in self.checksums:
            return pd.DataFrame()
        try:
            return pd.read_csv(self.verified("history.csv"))
        except ValueError as error:  # those of pandas' parser and of the decoder among them
            raise ValueError(self._wrong("history.csv", str(error))) from None

    @cached_property
    def checksums(self) -> dict[str, str]:
        """File, relative to the run directory → SHA-256."""
        found = self._json(CHECKSUMS, self.path / CHECKSUMS)
        if not isinstance(found, dict) or not all(map(_text, found.values())) or not all(map(_inside, found)):
            raise ValueError(self._wrong(CHECKSUMS, "it is no list of files with their checksums"))
        return found

    def verified(self, name: str) -> Path:
        """The path of a file of this run, after comparing its content with its checksum."""
        path = self.path / name
        if name not in self.checksums:
            raise ValueError(f"run {self.key[:SHORT]}: it has no {name}, but {', '.join(self.checksums) or 'nothing'}")
        try:
            found = sha256_of(path) if path.is_file() else None
        except OSError as error:
            raise ValueError(self._wrong(name, str(error.strerror))) from None
        if found == self.checksums[name]:
            return path
        now = StoredRun(self.path).checksums
        if found is not None and found == now.get(name):  # the run was written anew since it was opened
            self.__dict__["checksums"] = now
            return path
        raise ValueError(self._wrong(name, "it does not match its checksum"))

    def check(self) -> None:
        """Refuses a run that cannot be read, as far as that is seen without reading its tables and weights."""
        self.sizes()
        _ = self.info
        for name in self.checksums:
            path = self.path / name
            if not path.is_file():
                raise ValueError(self._wrong(name, "it is missing, or not a file"))
            if name.endswith(".npy") and path.stat().st_size != _size_of_array(path):
                raise ValueError(self._wrong(name, "it is no array, or not a whole one"))
            if name.endswith(".safetensors") and path.stat().st_size < 8:  # the length of what is told first
                raise ValueError(self._wrong(name, "it holds no weights"))

    @property
    def finished(self) -> str:
        """When the run was completed (ISO 8601, UTC)."""
        return self.info.get("finished", "")

    def __repr__(self) -> str:
        return f"StoredRun({self.key[:SHORT]!r})"

    def _repr_html_(self) -> str:
        return run_card(self)

    def _json(self, name: str, path: Path) -> Any:
        """What a JSON file says; JSON itself knows neither NaN nor infinity."""
        try:
            return json.loads(path.read_text(encoding="utf-8"), parse_constant=_refused)
        except OSError as error:
            raise ValueError(self._wrong(name, str(error.strerror))) from None
        except (ValueError, RecursionError) as error:
            raise ValueError(self._wrong(name, str(error))) from None

    def _wrong(self, name: str, what: str) -> str:
        return (
            f"run {self.key[:SHORT]}: {name} is damaged or was changed: {what}. Remove the run (workbench runs rm "
            f"{self.key[:SHORT]}) and train it again, or train(run, again=True)"
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
            try:
                self._loaded[name] = LogitTable.load(self._run.path / name)
            except (OSError, ValueError) as error:
                told = str(error).replace(f"{self._run.path}/", "")  # the run is named already
                raise ValueError(self._run._wrong(name, told)) from None
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:  # without reading it
        return name in self._names

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


def _inside(name: str) -> bool:
    """Whether a name is that of a file inside a folder."""
    path = Path(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts and "\0" not in name


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _size_of_array(path: Path) -> int | None:
    """The size that a file has if it holds all of the array that its first bytes describe; None if they do not."""
    try:
        with path.open("rb") as file:
            version = np.lib.format.read_magic(file)
            readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, _, dtype = readers[version](file)
            return file.tell() + dtype.itemsize * math.prod(shape)
    except (OSError, ValueError, KeyError, EOFError):
        return None
