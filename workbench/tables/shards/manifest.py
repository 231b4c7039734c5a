"""The manifest of a sharded table, `shards.json`: how many rows and classes, which files, and their checksums.

It is the last thing that an append writes, and it is replaced as a whole: who reads it sees the table before or after.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from workbench.tables.links import LINKS
from workbench.tables.shards.places import Place

MANIFEST = "shards.json"
FORMAT = 1


@dataclass(frozen=True)
class StoredFile:
    """A file of a shard: its name in the folder, its bytes and their sha256."""

    file: str
    bytes: int
    sha256: str

    def __post_init__(self) -> None:
        inside = isinstance(self.file, str) and self.file and not set(self.file) & set("/\\\0") and self.file[0] != "."
        if not (inside and isinstance(self.bytes, int) and isinstance(self.sha256, str)):
            raise ValueError(f"{self.file!r} is not a file of a shard")


@dataclass(frozen=True)
class Shard:
    """Some consecutive rows: their scores, and beside them labels, ids and attributes, where there are any.

    `arrays` names the file of each array, and where a file holds several, the tensor, column or columns.
    """

    rows: int
    files: tuple[StoredFile, ...]
    arrays: Mapping[str, tuple[str, str | tuple[str, ...] | None]]

    @property
    def key(self) -> str:
        """What tells this shard from others: the checksums of its files."""
        return " ".join(stored.sha256 for stored in self.files)

    @property
    def named(self) -> str:
        """The shard as errors call it: the file of its scores."""
        return self.arrays["scores"][0]

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Self:
        arrays = {
            name: (file, tuple(inside) if isinstance(inside, list) else inside)
            for name, (file, inside) in said["arrays"].items()
        }
        shard = cls(said["rows"], tuple(StoredFile(**each) for each in said["files"]), arrays)
        known = {each.file for each in shard.files}
        if not (isinstance(shard.rows, int) and shard.rows > 0 and "scores" in arrays):
            raise ValueError(f"a shard has at least one row, and scores; it says {said['rows']!r} rows")
        if unknown := [file for file, _ in arrays.values() if file not in known]:
            raise ValueError(f"shard {shard.named} uses {unknown[0]}, of which no checksum is given")
        return shard


@dataclass(frozen=True)
class Manifest:
    """What is known of a sharded table without reading a score."""

    classes: int
    dtype: str
    labels: str | None  # "one" or "many" a row
    link: str = "softmax"
    link_constant: float | None = None
    class_names: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    class_counts: tuple[int, ...] | None = None
    chose_model: bool = False
    note: str = ""
    shards: tuple[Shard, ...] = field(default=())

    @property
    def rows(self) -> int:
        """How many rows all shards have."""
        return sum(shard.rows for shard in self.shards)

    def about(self) -> dict[str, Any]:
        """What must be the same of rows that are appended."""
        return {name: value for name, value in vars(self).items() if name not in ("shards", "note", "chose_model")} | {
            "arrays": tuple(sorted(self.shards[0].arrays)) if self.shards else None
        }

    def written(self) -> bytes:
        """The manifest as it stands on disk."""
        facts = {"format": FORMAT, "rows": self.rows, **asdict(self)}
        return json.dumps(facts, indent=1, ensure_ascii=False, allow_nan=False).encode()

    def digest(self) -> str:
        """A sha256 of what the manifest says."""
        return hashlib.sha256(self.written()).hexdigest()


def read_manifest(place: Place) -> Manifest:
    """The manifest of a folder, or an error that says what is wrong with it."""
    where = f"{place.url}/{MANIFEST}"
    try:
        said = json.loads(place.read(MANIFEST).decode("utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{place.url} holds no {MANIFEST}, which says what its shards are: table.append_to(url) writes shards with it, "
            "workbench.tables.shards.adopt(url) describes those that are there"
        ) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where} is damaged: {error}") from None
    if not isinstance(said, Mapping) or said.get("format") != FORMAT:
        raise ValueError(f"{where} was written by another version; this one reads format {FORMAT}")
    try:
        return _checked(said)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is damaged: {error}") from None


def _checked(said: Mapping[str, Any]) -> Manifest:
    shards = tuple(Shard.from_json(shard) for shard in said["shards"])
    names: dict[str, Any] = {name: said[name] if said[name] is None else tuple(said[name]) for name in NAMES}
    rest: dict[str, Any] = {
        name: said[name] for name in ("classes", "labels", "link", "link_constant", "chose_model", "note")
    }
    manifest = Manifest(dtype=np.dtype(said["dtype"]).name, shards=shards, **rest, **names)
    constant = manifest.link_constant
    wrong = {
        "classes": not (isinstance(manifest.classes, int) and manifest.classes > 0),
        "dtype": manifest.dtype not in ("float16", "float32", "float64"),
        "labels": manifest.labels not in (None, "one", "many"),
        "link": manifest.link not in LINKS,
        "link_constant": not (constant is None or (isinstance(constant, float) and math.isfinite(constant))),
        "shards": not shards,
        "rows": said["rows"] != manifest.rows,
        **{name: _too_few(getattr(manifest, name), manifest.classes) for name in NAMES},
    }
    if damaged := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise ValueError(f"{', '.join(damaged)} cannot be what it says")
    return manifest


NAMES = ("class_names", "groups", "class_counts")


def _too_few(names: Sequence[Any] | None, classes: int) -> bool:
    return names is not None and len(names) != classes
