"""A table on disk: a directory with `table.json` and one `.npy` per array. Data only; no pickle is ever loaded."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.table_checks import read_only
from workbench.tables import LogitTable

FORMAT = 1


def write_table(table: LogitTable, directory: Path) -> Path:
    """Write the table aside and rename it into place: the directory appears whole or not at all."""
    if directory.exists() and (foreign := {path.name for path in directory.iterdir()} - _files_of_a_table(directory)):
        raise FileExistsError(
            f"{directory} holds {min(foreign)}, which is not part of a table; give a new or empty directory"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        _write(table, aside)
        aside.chmod(0o755)  # mkdtemp makes a directory that only its owner may read
        if directory.exists():
            shutil.rmtree(directory)
        aside.rename(directory)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return directory


def _files_of_a_table(directory: Path) -> set[str]:
    """The files of the table that is there, the index that is kept beside it included; none where there is no table."""
    try:
        facts = json.loads((directory / "table.json").read_text(encoding="utf-8"))
        return {"table.json", "set_index.npz", *(f"{name}.npy" for name in facts["arrays"])}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def read_table(directory: Path) -> LogitTable:
    """The table that `write_table` wrote there."""
    try:
        facts = json.loads((directory / "table.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{directory} holds no table.json: it is not a table that LogitTable.save wrote"
        ) from None
    except ValueError as error:
        raise ValueError(f"{directory / 'table.json'} is damaged: {error}") from None
    if not isinstance(facts, Mapping) or facts.get("format") != FORMAT:
        raise ValueError(f"{directory} was written by another version; this one reads format {FORMAT}")
    arrays: dict[str, Any] = {name: _read_array(directory / f"{name}.npy") for name in facts["arrays"]}
    if arrays["scores"].shape != (facts["rows"], facts["classes"]):
        raise ValueError(f"{directory}: scores have shape {arrays['scores'].shape}, table.json says otherwise")
    if "labels" in arrays:
        arrays["labels"] = _labels(arrays["labels"], facts["classes"])
    if "posterior_index" in arrays:
        arrays["posterior"] = arrays["posterior"][arrays.pop("posterior_index")]
    if facts["attributes"] is not None:
        arrays["attributes"] = {
            name: _attribute(arrays.pop(f"attribute_{position}"), facts["words"].get(name))
            for position, name in enumerate(facts["attributes"])
        }
    # The values were checked when the table was made; reading them all again would defeat the memory map.
    fields = {name: facts[name] for name in ("link", "link_constant", "chose_model", "note")}
    fields |= {name: _names(facts[name]) for name in ("class_names", "groups")}
    return LogitTable.trusted(facts["key"], **fields, **arrays)


def _write(table: LogitTable, directory: Path) -> None:
    arrays = {name: getattr(table, name) for name in ("scores", *table.PER_ROW, "class_counts")}
    if table.labels is not None:
        arrays["labels"] = np.packbits(table.labels, axis=1) if table.many_labels else _compact(table.labels)
    if table.posterior is not None:
        arrays["posterior"], arrays["posterior_index"] = _distinct_rows(table.posterior)
    attributes = table.attributes or {}
    words: dict[str, list[str]] = {}
    for position, (name, values) in enumerate(attributes.items()):
        if values.dtype.kind == "U":  # a few words, over and over
            distinct, index = np.unique(values, return_inverse=True)
            values, words[name] = _compact(index), distinct.tolist()
        arrays[f"attribute_{position}"] = values
    for name, values in arrays.items():
        if values is not None:
            _write_array(directory / f"{name}.npy", values)
    facts = {
        "format": FORMAT,
        "key": table.key,
        "rows": table.n,
        "classes": table.n_classes,
        "link": table.link,
        "link_constant": table.link_constant,
        "class_names": table.class_names,
        "groups": table.groups,
        "attributes": None if table.attributes is None else list(attributes),
        "words": words,
        "chose_model": table.chose_model,
        "note": table.note,
        "arrays": sorted(name for name, values in arrays.items() if values is not None),
    }
    with open(directory / "table.json", "w", encoding="utf-8") as file:
        json.dump(facts, file, indent=1, ensure_ascii=False)
        file.flush()
        os.fsync(file.fileno())


def _write_array(path: Path, values: np.ndarray) -> None:
    with open(path, "wb") as file:
        np.save(file, values, allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def _distinct_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distinct rows, and which of them each row is: a known posterior takes only a few hundred values."""
    contiguous = np.ascontiguousarray(matrix)
    as_bytes = contiguous.view(np.dtype((np.void, contiguous.dtype.itemsize * contiguous.shape[1])))[:, 0]
    _, first, index = np.unique(as_bytes, return_index=True, return_inverse=True)
    return matrix[first], _compact(index)


def _compact(index: np.ndarray) -> np.ndarray:
    ends = index.min(initial=0), index.max(initial=0)  # -1 is a row without a label
    return index.astype(np.result_type(*(np.min_scalar_type(end) for end in ends)))


def _labels(written: np.ndarray, n_classes: int) -> np.ndarray:
    """Labels as a table holds them, from the smallest integers that do, or from a bit for every class.

    The first tables were written with a whole byte for every class.
    """
    if written.ndim == 1:
        return read_only(written.astype(np.int64))
    return written if written.dtype == bool else read_only(np.unpackbits(written, axis=1, count=n_classes).view(bool))


def _attribute(values: np.ndarray, words: Sequence[str] | None) -> np.ndarray:
    """The values of an attribute, or the words they count."""
    return values if words is None else read_only(np.array(words)[values])


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _read_array(path: Path) -> np.ndarray:
    try:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise ValueError(f"{path} is missing, truncated or not an array: {error}") from None
    # Small arrays are simply read: an open map for each would cost more than it saves.
    return mapped if mapped.nbytes > 2**20 else read_only(np.array(mapped))
