"""Write shards: append rows atomically, and write a manifest for shards of other programs."""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import io
import os
import re
from typing import Any

import numpy as np

from workbench.tables.shards.file_arrays import ENDINGS, opened
from workbench.tables.shards.filesystem import filesystem_at
from workbench.tables.shards.manifest import Manifest, Shard, StoredFile, read_manifest, write_manifest
from workbench.tables.shards.reader import ATTRIBUTE, table_of
from workbench.tables.table import LogitTable

OURS = re.compile(r"(\d{6,})-[0-9a-f]{16}\.\w+\.(npy|safetensors|parquet)")  # number of the shard, checksum, array
SHARD = 2**28  # default bytes of a shard
GROUP = 2**24  # scores of a row group of a .parquet, so that reading some rows decodes no more


def append_shard(table: LogitTable, url: str | os.PathLike[str], ending: str = ".npy") -> None:
    """Adds the rows of a table to those at an address, as one more shard; the first one makes the sharded table.

    Files of the shard are written and synced first, then the manifest changes as a whole: a writer that is killed in between
    leaves the table as it was, and the next one removes what is left over.
    """
    place = filesystem_at(os.fspath(url))
    if ending not in ENDINGS:
        raise ValueError(f"ending = {ending!r}; shards are written as {', '.join(ENDINGS)}")
    if beside := [name for name in ("posterior", "votes", "features", "images") if getattr(table, name) is not None]:
        raise ValueError(
            f"shards keep scores, labels, ids and attributes, not {', '.join(beside)}; leave them out: "
            f"dataclasses.replace(table, {', '.join(f'{name}=None' for name in beside)})"
        )
    with place.appending():
        try:
            manifest: Manifest | None = read_manifest(place)
        except FileNotFoundError:
            manifest = None
        before = () if manifest is None else manifest.shards
        place.remove_leftovers(OURS, {stored.file for shard in before for stored in shard.files})
        contents = _contents(table, len(before), ending)
        files = {file: StoredFile(file, len(content), _sha256(content)) for file, content in contents.values()}
        arrays = {name: (file, None) for name, (file, _) in contents.items()}
        shard = Shard(table.n, tuple(files.values()), arrays)
        grown = dataclasses.replace(_described(table), shards=(*before, shard))
        if manifest is not None:
            _check_same(place.url, manifest, dataclasses.replace(grown, shards=(shard,)))
            grown = dataclasses.replace(manifest, shards=grown.shards)
        for file, content in contents.values():
            place.write(file, content)
        write_manifest(place, grown)


def save_shards(table: LogitTable, url: str | os.PathLike[str], rows: int | None = None, ending: str = ".npy") -> None:
    """Writes a table in shards of so many rows each (by default of 256 MB), to an address where none is."""
    rows = rows or max(1, SHARD // (table.n_classes * table.scores.dtype.itemsize))
    place = filesystem_at(os.fspath(url))
    try:
        n = read_manifest(place).rows
    except FileNotFoundError:
        for span in table.spans(rows):
            append_shard(table.rows(span), url, ending)
        return
    raise FileExistsError(f"{place.url} holds a table of {n} rows already; give another folder, or append_to(url)")


def adopt(
    url: str | os.PathLike[str],
    scores: str = "*",
    labels: str | None = None,
    *,
    name: str | list[str] | None = None,
    labels_name: str | None = None,
    **about: Any,
) -> LogitTable:
    """Write the manifest of shards that another program wrote. Nothing is copied.

    Args:
        url: Folder of the shards.
        scores: Pattern of the files of scores, read in the order of their names, such as "scores-*.npy".
        labels: Pattern of the files of labels, such as "labels-*.npy"; None if there are none, or if `labels_name` is given.
        name: Tensor or column of the scores, or the columns of the classes, in `.safetensors` and `.parquet` (default:
            `scores`).
        labels_name: Tensor or column of the labels in the files of scores.
        about: link, link_constant, class_names, groups, class_counts, note.
    """
    place = filesystem_at(os.fspath(url))
    names = [file for file in place.names() if file.endswith(ENDINGS)]
    of_labels = [] if labels is None else fnmatch.filter(names, labels)
    of_scores = [file for file in fnmatch.filter(names, scores) if file not in of_labels]
    if not of_scores:
        raise FileNotFoundError(f"{place.url} holds no {scores} that ends in {', '.join(ENDINGS)}")
    if labels is not None and len(of_labels) != len(of_scores):
        raise ValueError(f"{place.url} has {len(of_scores)} files of scores and {len(of_labels)} of labels ({labels})")
    inside = tuple(name) if isinstance(name, list) else name
    first = opened(place.url, of_scores[0], inside)
    if len(first.shape) != 2 or first.dtype.kind != "f":
        raise ValueError(
            f"{place.url}: shard {of_scores[0]} is {first.dtype} of shape {first.shape}; give (rows, classes) floats"
        )
    shards = []
    for number, file in enumerate(of_scores):
        array = opened(place.url, file, inside)
        if array.shape[1:] != first.shape[1:] or array.dtype != first.dtype:
            raise ValueError(
                f"{place.url}: shard {file} is {array.dtype} with {array.shape[1]} classes, and {of_scores[0]} is {first.dtype} "
                f"with {first.shape[1]}; all shards of a table have the same"
            )
        arrays: dict[str, tuple[str, Any]] = {"scores": (file, inside)}
        if labels is not None:
            arrays["labels"] = (of_labels[number], None)
        elif labels_name is not None:
            arrays["labels"] = (file, labels_name)
        files = tuple(
            StoredFile(each, place.size(each), place.sha256(each)) for each in {a[0]: 0 for a in arrays.values()}
        )
        shards.append(Shard(array.shape[0], files, arrays))
    many = None
    if "labels" in shards[0].arrays:
        many = "many" if len(opened(place.url, *shards[0].arrays["labels"]).shape) == 2 else "one"
    described: dict[str, Any] = {
        key: tuple(value) if isinstance(value, (list, np.ndarray)) else value for key, value in about.items()
    }
    manifest = Manifest(int(first.shape[1]), first.dtype.name, many, shards=tuple(shards), **described)
    table = table_of(place.url, manifest)
    for rows in table.spans():
        if not np.isfinite(table.scores[rows]).all():
            raise ValueError(f"{place.url}: a score among rows {rows.start} to {rows.stop - 1} is not finite")
    write_manifest(place, manifest)
    return table


def _described(table: LogitTable) -> Manifest:
    counts = None if table.class_counts is None else tuple(int(count) for count in table.class_counts)
    labels = None if table.labels is None else ("many" if table.many_labels else "one")
    return Manifest(
        table.n_classes,
        table.scores.dtype.name,
        labels,
        table.link,
        table.link_constant,
        table.class_names,
        table.groups,
        counts,
        table.chose_model,
        table.note,
    )


def _check_same(url: str, old: Manifest, new: Manifest) -> None:
    """Refuses rows that are not like those that are there."""
    there, given = old.about(), new.about()
    if differ := [name for name in there if there[name] != given[name]]:
        name = differ[0]
        raise ValueError(
            f"{url} is a table with {name} = {_short(there[name])}, and rows with {name} = {_short(given[name])} were to be "
            "appended; give the same"
        )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _contents(table: LogitTable, number: int, ending: str) -> dict[str, tuple[str, bytes]]:
    """Array → the name of its file, which tells its content, and the bytes of it."""
    per_row: dict[str, np.ndarray] = {}
    if table.labels is not None:
        per_row["labels"] = np.packbits(table.labels, axis=1) if table.many_labels else table.labels
    if table.ids is not None:
        per_row["ids"] = table.ids
    per_row |= {f"{ATTRIBUTE}{name}": values for name, values in (table.attributes or {}).items()}
    contents = {"scores": _bytes(np.ascontiguousarray(table.scores), ending)}
    contents |= {name: _bytes(values, ".npy") for name, values in per_row.items()}
    named = {}
    for place, (name, content) in enumerate(contents.items()):
        kind = name if ":" not in name else f"attribute{place}"
        form = ending if name == "scores" else ".npy"
        named[name] = f"{number:06d}-{_sha256(content)[:16]}.{kind}{form}", content
    return named


def _bytes(values: np.ndarray, ending: str) -> bytes:
    if ending == ".safetensors":
        from safetensors.numpy import save

        return bytes(save({"scores": values}))
    file = io.BytesIO()
    if ending == ".npy":
        np.save(file, values, allow_pickle=False)
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        lists = pa.FixedSizeListArray.from_arrays(pa.array(values.ravel()), values.shape[1])
        pq.write_table(pa.table({"scores": lists}), file, row_group_size=max(1, GROUP // values.shape[1]))
    return file.getvalue()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
