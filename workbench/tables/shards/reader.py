"""Open a sharded table: compare its files with the manifest and leave its scores on disk."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.tables.checks import checked_labels, read_only
from workbench.tables.map_reduce import map_in_order
from workbench.tables.shards.file_arrays import opened
from workbench.tables.shards.filesystem import filesystem_at, is_url
from workbench.tables.shards.manifest import MANIFEST, Manifest, Shard, read_manifest
from workbench.tables.shards.sharded_scores import ShardedScores
from workbench.tables.table import LogitTable

ATTRIBUTE = "attribute:"  # begins the names of arrays that are attributes of rows
# (address, file, sha256) of what was compared before: files of shards never change, so once is enough.
_compared: set[tuple[str, str, str]] = set()


def holds_shards(given: str | os.PathLike[str]) -> bool:
    """Whether this is the address of a sharded table, or a folder of this machine that holds one."""
    if is_url(given) and not str(given).startswith("file://"):
        return True
    return (Path(str(given).removeprefix("file://")) / MANIFEST).is_file()


def load_shards(url: str, verify: bool = True) -> LogitTable:
    """The table of the shards at an address.

    Scores are read when they are needed; labels, ids and attributes now. With `verify` every file is compared with its
    size and its sha256, once in a process, on the cluster where there is one; without, what is wrong with a file is
    told when it is read.
    """
    place = filesystem_at(url)
    manifest, url = read_manifest(place), place.url
    if verify:
        new = [shard for shard in manifest.shards if not _known(url, shard)]
        for shard in map_in_order(compare, (url, manifest.classes, manifest.dtype), [(shard,) for shard in new]):
            _compared.update((url, stored.file, stored.sha256) for stored in shard.files)
    return table_of(url, manifest)


def _known(url: str, shard: Shard) -> bool:
    return all((url, stored.file, stored.sha256) in _compared for stored in shard.files)


def compare(of: tuple[str, int, str], shard: Shard) -> Shard:
    """The shard, after comparing its files with what the manifest says of them; an error names the one that differs."""
    url, n_classes, dtype = of
    place = filesystem_at(url)
    for stored in shard.files:
        try:
            size = place.size(stored.file)
        except FileNotFoundError:
            raise FileNotFoundError(f"{url}: shard {stored.file} is missing") from None
        if size != stored.bytes:
            raise ValueError(
                f"{url}: shard {stored.file} has {size} bytes, and {stored.bytes} were written: it is truncated or was changed"
            )
        if place.sha256(stored.file) != stored.sha256:
            raise ValueError(f"{url}: shard {stored.file} does not match its checksum: it is damaged or was changed")
    ShardedScores(url, [shard], n_classes, dtype)[:1]  # looks at the shape and the type
    return shard


def table_of(url: str, manifest: Manifest) -> LogitTable:
    """The table that a manifest describes."""
    arrays = manifest.shards[0].arrays
    per_row: dict[str, Any] = {name: _joined(url, manifest.shards, name) for name in arrays if name != "scores"}
    fields: dict[str, Any] = {"scores": ShardedScores(url, manifest.shards, manifest.classes, manifest.dtype)}
    if manifest.labels is not None:
        fields["labels"] = _labels(url, per_row.pop("labels"), manifest)
    if "ids" in per_row:
        fields["ids"] = per_row.pop("ids")
    if per_row:
        fields["attributes"] = {name.removeprefix(ATTRIBUTE): values for name, values in per_row.items()}
    fields |= {
        name: getattr(manifest, name)
        for name in ("link", "link_constant", "class_names", "groups", "chose_model", "note")
    }
    if manifest.class_counts is not None:
        fields["class_counts"] = read_only(np.array(manifest.class_counts, np.int64))
    return LogitTable.trusted(**fields)


def _joined(url: str, shards: Sequence[Shard], name: str) -> np.ndarray:
    """Join an array that accompanies the scores over all shards; check that it has one entry per row."""
    parts = []
    for shard in shards:
        if name not in shard.arrays:
            raise ValueError(f"{url}: shard {shard.named} has no {name}, which others have")
        array = opened(url, *shard.arrays[name])
        if array.shape[:1] != (shard.rows,):
            raise ValueError(
                f"{url}: shard {shard.arrays[name][0]} holds {name} of shape {array.shape} for {shard.rows} rows"
            )
        parts.append(array.read(0, shard.rows))
    return read_only(np.concatenate(parts))


def _labels(url: str, written: np.ndarray, manifest: Manifest) -> np.ndarray:
    try:
        if manifest.labels == "many" and written.dtype == np.uint8:
            written = np.unpackbits(written, axis=1, count=manifest.classes).view(bool)
        return checked_labels(written, manifest.rows, manifest.classes)
    except ValueError as error:
        raise ValueError(f"{url}: {error}") from None
