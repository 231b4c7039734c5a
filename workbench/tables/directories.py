"""A table on disk: a directory with `table.json` and one `.npy` per array. Data only; no pickle is ever loaded.

Scores in shards are not copied into it: `table.json` says which shards, with their checksums, and which of their rows.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.class_counts import checked_counts
from workbench.files.atomic import ASIDE, room_for, whole_folder
from workbench.tables.checks import check_values, checked_labels, checked_weights, lies_in_shards, read_only
from workbench.tables.links import LINKS
from workbench.tables.row_kinds import KINDS
from workbench.tables.shards import ShardedScores
from workbench.tables.shards.filesystem import check_address
from workbench.tables.table import LogitTable
from workbench.tables.texts import packed, unpacked
from workbench.untrusted_files import load_array, read_json

FORMAT = 1
MAPPED = 2**26  # bytes from which on an array stays on disk; the system ends a process whose mapped file is cut short


def write_table(table: LogitTable, directory: Path) -> Path:
    """Write the table as a whole: at every moment the directory holds the old table or the new one."""
    if directory.exists() and (foreign := _entries(directory) - _files_of_a_table(directory)):
        raise FileExistsError(
            f"{directory} holds {min(foreign)}, which is not part of a table; give a new or empty directory"
        )
    arrays, facts = _content(table)
    with whole_folder(directory, _n_bytes(arrays)) as aside:
        _fill(aside, arrays, facts)
    return directory


def fill_with_table(table: LogitTable, folder: Path) -> None:
    """Write a table inside something that is put into its place as a whole later on, such as the directory of a run."""
    arrays, facts = _content(table)
    with room_for(_n_bytes(arrays), folder):
        folder.mkdir(parents=True, exist_ok=True)
        _fill(folder, arrays, facts)


def _fill(folder: Path, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
    for name, values in arrays.items():
        with open(folder / f"{name}.npy", "wb") as file:
            np.save(file, values, allow_pickle=False)
    (folder / "table.json").write_text(json.dumps(facts, indent=1, ensure_ascii=False), encoding="utf-8")


def _n_bytes(arrays: Mapping[str, np.ndarray]) -> int:
    return sum(values.nbytes for values in arrays.values())


def _entries(directory: Path) -> set[str]:
    """Return the entries of a directory, without temporary files of writers that were killed."""
    if not directory.is_dir():
        raise FileExistsError(f"{directory} is a file; give a new or empty directory to save a table in")
    names = {path.name for path in directory.iterdir()}
    return {name for name in names if not ASIDE.fullmatch(name) and not name.startswith(".set_index.")}


def _files_of_a_table(directory: Path) -> set[str]:
    """The files of the table that is there, the index that is kept beside it included; none where there is no table."""
    try:
        facts = read_json(directory / "table.json")
        return {"table.json", "set_index.npz", *(f"{name}.npy" for name in facts["arrays"])}
    except (OSError, ValueError, LookupError, TypeError):
        return set()


def read_table(directory: Path, verify: bool = True, allow: Iterable[str] = ()) -> LogitTable:
    """The table that `write_table` wrote there; with `verify`, every score is looked at."""
    while True:
        with _directory_identity(directory) as found:
            try:
                table = _read(directory, allow)
                if verify:
                    check_values(table)
            except (OSError, ValueError):
                if _place(directory) == found:
                    raise
            except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
                raise ValueError(f"{directory / 'table.json'} is damaged: {type(error).__name__}: {error}") from None
            else:
                if _place(directory) == found:
                    return table
        # Another process has just put a new table there, and what was read may be of both.


Place = tuple[int, int] | None  # of a directory: its device and its number there


@contextlib.contextmanager
def _directory_identity(directory: Path) -> Iterator[Place]:
    """Identity of the directory with this name; it is kept open so that its inode is not reused."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:  # there is none, or this system opens no directories
        yield _place(directory)
        return
    try:
        yield _place(descriptor)
    finally:
        os.close(descriptor)


def _place(directory: Path | int) -> Place:
    """Identity (device, inode) of the directory with this name or descriptor; None if there is none."""
    try:
        status = os.stat(directory)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _read(directory: Path, allow: Iterable[str]) -> LogitTable:
    try:
        facts = read_json(directory / "table.json")
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{directory} holds no table.json: it is not a table that LogitTable.save wrote. A folder of arrays names them "
            "softmax.npy and labels.npy, or val_softmax.npy, val_labels.npy, test_softmax.npy, …"
        ) from None
    except ValueError as error:
        raise ValueError(f"{directory / 'table.json'} is damaged: {error}") from None
    if not isinstance(facts, Mapping) or facts.get("format") != FORMAT:
        raise ValueError(f"{directory} was written by another version; this one reads format {FORMAT}")
    arrays: dict[str, Any] = {name: _read_array(directory / f"{_checked_name(name)}.npy") for name in facts["arrays"]}
    if "shards" in facts:
        check_address(facts["shards"]["url"], allow)
        arrays["scores"] = ShardedScores.from_reference(facts["shards"], arrays.pop("score_rows", None))
    if arrays["scores"].shape != (facts["rows"], facts["classes"]) or arrays["scores"].dtype.kind != "f":
        kind = f"{arrays['scores'].dtype} of shape {arrays['scores'].shape}"
        raise ValueError(f"{directory}: scores are {kind}, table.json says otherwise")
    if "labels" in arrays:
        arrays["labels"] = _labels(arrays["labels"], facts["classes"])
    if "posterior_index" in arrays:
        arrays["posterior"] = arrays["posterior"][arrays.pop("posterior_index")]
    for name in LogitTable.TEXTS:
        if name in arrays:
            arrays[name] = unpacked(arrays[name], arrays.pop(f"{name}_ends"))
    if facts["attributes"] is not None:
        arrays["attributes"] = {
            name: _attribute(arrays.pop(f"attribute_{position}"), facts["words"].get(name))
            for position, name in enumerate(facts["attributes"])
        }
    for name in {"posterior", "votes"} & arrays.keys():
        arrays[name] = checked_weights(name, arrays[name], arrays["scores"].shape)
    if "class_counts" in arrays:
        arrays["class_counts"] = checked_counts(arrays["class_counts"])
    fields = {name: facts[name] for name in ("link", "link_constant", "chose_model", "note")}
    fields["row_kind"] = facts.get("row_kind", "")  # tables of the first versions do not say
    fields |= {name: _names(facts[name]) for name in ("class_names", "groups")}
    _check_facts(fields, facts["key"])
    return LogitTable.trusted(facts["key"], **fields, **arrays)


def _checked_name(name: str) -> str:
    """A name that an array of a table can have; it is part of a path."""
    known = (
        "scores",
        *LogitTable.PER_ROW,
        "class_counts",
        "posterior_index",
        "score_rows",
        *(f"{name}_ends" for name in LogitTable.TEXTS),
    )
    if name not in known and not re.fullmatch(r"attribute_\d+", name):
        raise ValueError(f"table.json is damaged: a table has no {name!r}")
    return name


def _check_facts(fields: Mapping[str, Any], key: Any) -> None:
    """Refuses what JSON can hold and a table cannot."""
    constant = fields["link_constant"]
    wrong = {
        "key": not isinstance(key, str),
        "link": fields["link"] not in LINKS,
        "link_constant": not (isinstance(constant, float) and math.isfinite(constant))
        and (constant is not None or fields["link"] == "quasibinary"),
        "chose_model": not isinstance(fields["chose_model"], bool),
        "note": not isinstance(fields["note"], str),
        "row_kind": fields["row_kind"] not in ("", *KINDS),
    }
    if damaged := [name for name, is_wrong in wrong.items() if is_wrong]:
        raise ValueError(f"table.json is damaged: {', '.join(damaged)} cannot be what it says")


def _content(table: LogitTable) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of a table by the names of their files, and what `table.json` says."""
    given = {name: getattr(table, name) for name in ("scores", *table.PER_ROW, "class_counts")}
    if table.labels is not None:
        given["labels"] = np.packbits(table.labels, axis=1) if table.many_labels else _compact(table.labels)
    if table.posterior is not None:
        given["posterior"], given["posterior_index"] = _distinct_rows(table.posterior)
    for name in table.TEXTS:
        if given[name] is not None:
            given[name], given[f"{name}_ends"] = packed(given[name])
    attributes = table.attributes or {}
    words: dict[str, list[str]] = {}
    for position, (name, values) in enumerate(attributes.items()):
        if values.dtype.kind == "U":  # a few words, over and over
            distinct, index = np.unique(values, return_inverse=True)
            values, words[name] = _compact(index), distinct.tolist()
        given[f"attribute_{position}"] = values
    about_scores: dict[str, Any] = {}
    if lies_in_shards(table.scores):  # they stay where they are, and the table says where
        scores: Any = given.pop("scores")
        about_scores["shards"], given["score_rows"] = scores.reference()
    arrays = {name: values for name, values in given.items() if values is not None}
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
        "row_kind": table.row_kind,
        "chose_model": table.chose_model,
        "note": table.note,
        "arrays": sorted(arrays),
        **about_scores,
    }
    return arrays, facts


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
    if written.dtype.kind not in "biu" or written.ndim not in (1, 2):
        raise ValueError(f"labels are {written.dtype} of shape {written.shape}; they are whole numbers, or bits")
    if written.ndim == 1:
        return checked_labels(written, len(written), n_classes)
    return written if written.dtype == bool else read_only(np.unpackbits(written, axis=1, count=n_classes).view(bool))


def _attribute(values: np.ndarray, words: Sequence[str] | None) -> np.ndarray:
    """The values of an attribute, or the words they count."""
    return values if words is None else read_only(np.array(words)[values])


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is not None and not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("table.json is damaged: names of classes and groups are a list of words")
    return None if names is None else tuple(names)


def _read_array(path: Path) -> np.ndarray:
    try:
        mapped = load_array(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is missing, truncated or not an array: {error}") from None
    return mapped if mapped.nbytes > MAPPED else read_only(np.array(mapped))
