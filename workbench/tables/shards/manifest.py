"""The manifest of a sharded table, `shards.json`: how many rows and classes, which files, and their checksums.

It is the last thing that an append writes, and it is replaced as a whole: who reads it sees the table before or after.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.tables.links import LINKS
from workbench.tables.shards.filesystem import Filesystem
from workbench.untrusted_files import LONGEST_JSON, parse_json

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

    @cached_property
    def text(self) -> str:
        """The shard as it stands in the manifest."""
        return json.dumps(
            {name: vars(self)[name] for name in ("rows", "files", "arrays")}, ensure_ascii=False, default=vars
        )

    @property
    def key(self) -> str:
        """Return the identity of this shard: the checksums of its files."""
        return " ".join(stored.sha256 for stored in self.files)

    @property
    def named(self) -> str:
        """The shard as errors call it: the file of its scores."""
        return self.arrays["scores"][0]

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        arrays = {
            name: (file, tuple(inside) if isinstance(inside, list) else inside)
            for name, (file, inside) in content["arrays"].items()
        }
        shard = cls(content["rows"], tuple(StoredFile(**each) for each in content["files"]), arrays)
        known = {each.file for each in shard.files}
        if not (isinstance(shard.rows, int) and shard.rows > 0 and "scores" in arrays):
            raise ValueError(f"a shard has at least one row, and scores; it says {content['rows']!r} rows")
        if unknown := [file for file, _ in arrays.values() if file not in known]:
            raise ValueError(f"shard {shard.named} uses {unknown[0]}, of which no checksum is given")
        return shard


@dataclass(frozen=True)
class Manifest:
    """Facts of a sharded table that are known without reading scores."""

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
        """Number of rows of all shards."""
        return sum(shard.rows for shard in self.shards)

    def about(self) -> dict[str, Any]:
        """Return the facts that appended rows must share."""
        return {name: value for name, value in vars(self).items() if name not in ("shards", "note", "chose_model")} | {
            "arrays": tuple(sorted(self.shards[0].arrays)) if self.shards else None
        }

    def to_bytes(self) -> bytes:
        """The manifest as it stands on disk; the texts of its shards are made once, so that an append copies them only."""
        facts = {"format": FORMAT, "rows": self.rows, **vars(self), "shards": []}
        about = json.dumps(facts, ensure_ascii=False, allow_nan=False).removesuffix("]}")
        return f"{about}{', '.join(shard.text for shard in self.shards)}]}}".encode()

    def digest(self) -> str:
        """A sha256 of what the manifest says."""
        return hashlib.sha256(self.to_bytes()).hexdigest()


_written: OrderedDict[str, tuple[bytes, Manifest]] = OrderedDict()  # by this process, of the last few folders


def write_manifest(place: Filesystem, manifest: Manifest) -> None:
    """Puts the manifest of a folder there, and remembers it: the next append need not read its shards again."""
    content = manifest.to_bytes()
    place.write(MANIFEST, content)
    _written[place.url] = content, manifest
    _written.move_to_end(place.url)
    if len(_written) > 4:
        _written.popitem(last=False)


def read_manifest(place: Filesystem) -> Manifest:
    """The manifest of a folder, or an error that says what is wrong with it."""
    where = f"{place.url}/{MANIFEST}"
    try:
        content = place.read(MANIFEST, 0, LONGEST_JSON)
        if place.url in _written and _written[place.url][0] == content:
            return _written[place.url][1]
        fields = parse_json(content)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{place.url} holds no {MANIFEST}, which says what its shards are: table.append_to(url) writes shards with it, "
            "workbench.tables.shards.adopt(url) describes those that are there"
        ) from None
    except ValueError as error:
        raise ValueError(f"{where} is damaged: {error}") from None
    if not isinstance(fields, Mapping) or fields.get("format") != FORMAT:
        raise ValueError(f"{where} was written by another version; this one reads format {FORMAT}")
    try:
        return _checked(fields)
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"{where} is damaged: {error}") from None


def _checked(content: Mapping[str, Any]) -> Manifest:
    shards = tuple(Shard.from_json(shard) for shard in content["shards"])
    names: dict[str, Any] = {name: content[name] if content[name] is None else tuple(content[name]) for name in NAMES}
    rest: dict[str, Any] = {
        name: content[name] for name in ("classes", "labels", "link", "link_constant", "chose_model", "note")
    }
    manifest = Manifest(dtype=np.dtype(content["dtype"]).name, shards=shards, **rest, **names)
    constant = manifest.link_constant
    wrong = {
        "classes": not (isinstance(manifest.classes, int) and manifest.classes > 0),
        "dtype": manifest.dtype not in ("float16", "float32", "float64"),
        "labels": manifest.labels not in (None, "one", "many"),
        "link": manifest.link not in LINKS,
        "link_constant": not (constant is None or (isinstance(constant, float) and math.isfinite(constant))),
        "shards": not shards,
        "chose_model": not isinstance(manifest.chose_model, bool),
        "note": not isinstance(manifest.note, str),
        "names": not all(isinstance(name, str) for field in ("class_names", "groups") for name in names[field] or ()),
        "counts": not all(isinstance(count, int) and count >= 0 for count in names["class_counts"] or ()),
        "rows": content["rows"] != manifest.rows,
        **{name: _too_few(getattr(manifest, name), manifest.classes) for name in NAMES},
    }
    if damaged := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise ValueError(f"{', '.join(damaged)} cannot be what it says")
    return manifest


NAMES = ("class_names", "groups", "class_counts")


def _too_few(names: Sequence[Any] | None, classes: int) -> bool:
    return names is not None and len(names) != classes
