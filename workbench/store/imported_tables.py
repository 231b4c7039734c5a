"""Imported tables: a table of scores stored as a run without a model."""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeVar

import numpy as np

from workbench.files.cache import content_key
from workbench.store.record import RunRecord
from workbench.store.runs import StoredRun
from workbench.store.store import Store, chosen_store, write_record
from workbench.tables import LogitTable
from workbench.tables.checks import NO_LABEL, lies_in_shards, listed
from workbench.tables.links import check_same_link
from workbench.tables.objects import n_shared_objects, objects_of_rows
from workbench.tables.partial import PartialTable

Rows = TypeVar("Rows", LogitTable, PartialTable)  # a table whose rows can be split
SPLIT_NOTE = "One table was given: rules are fitted on a random half of its rows and evaluated on the other half."
VAL = ("val", "valid", "validation", "dev", "cal", "calibration")  # what rows are called that rules are fitted on


def val_and_test(table: Rows) -> tuple[Rows, Rows, str]:
    """Rows to fit rules on, rows to judge them, and how they were chosen: as the attribute `split` says, else in halves.

    >>> table = LogitTable(-np.eye(3), [0, 1, 2], attributes={"split": ["train", "val", "test"]})
    >>> val, test, note = val_and_test(table)
    >>> val.labels.tolist(), test.labels.tolist(), note
    ([1], [2], 'Rules are fitted on the 1 rows of split val and evaluated on the 1 rows of split test; 1 others are left out.')
    """
    named = next((values for name, values in (table.attributes or {}).items() if name.lower() == "split"), None)
    if named is not None:
        words: np.ndarray = np.char.lower(np.char.strip(named.astype(str)))
        fit, judge = np.isin(words, VAL), words == "test"
        if fit.any() and judge.any():
            note = f"Rules are fitted on the {fit.sum()} rows of split val and evaluated on the {judge.sum()} rows of split test"
            left_out = int((~fit & ~judge).sum())
            note = f"{note}; {left_out} others are left out." if left_out else f"{note}."
            val, test = table.rows(fit), table.rows(judge)
            return val, test, " ".join(filter(None, (note, note_of_shared_objects(val, test))))
        if (words == "train").any() and not (words == "train").all():
            table = table.rows(words != "train")
            return *table.split(), f"{split_note(table)} Rows of split train are left out."
    return *table.split(), split_note(table)


def split_note(table: Rows) -> str:
    """How one table is split in halves."""
    objects = objects_of_rows(table)
    if objects is None:
        return SPLIT_NOTE
    return (
        f"One table was given: rules are fitted on the rows of a random half of its {objects.n_objects} objects "
        f"({objects.by}) and evaluated on those of the other half."
    )


def note_of_shared_objects(val: Rows, test: Rows) -> str:
    """A warning about objects with rows to fit on and rows to judge on; "" if there are none."""
    if not (n_shared := n_shared_objects(val, test)):
        return ""
    return f"{n_shared} objects have rows to fit on and rows to judge on, which flatters the rules."


def keep_tables(
    table: LogitTable, *, title: str, test: LogitTable | None = None, store: Store | None = None
) -> StoredRun:
    """Store a table as a run without a model: `val` to fit rules on, `test` to judge them.

    With one table the rows are split as its attribute `split` says, or in halves (seed 0), and the run says so; with two,
    the first is `val`, and classes of the second that stand in another order are put into the order of the first. The key
    is that of the content, so the same table under the same title is stored once however often it is imported.
    """
    if test is None and table.n < 2:
        raise ValueError(
            "the table has one row; give at least two, or two tables: one to fit rules on, one to judge them"
        )
    store = chosen_store(store)
    val, test, note = val_and_test(table) if test is None else _two_tables(table, test)
    key = content_key([title, _content(val), _content(test)])
    if not store.has(key):
        record = RunRecord(title=title, imported=True, note=note, finished=datetime.now(UTC).isoformat())
        with store.writing(key) as directory:
            write_record(directory, record)
            val.save(directory / "val")
            test.save(directory / "test")
    return store.open(key)


def _two_tables(val: LogitTable, test: LogitTable) -> tuple[LogitTable, LogitTable, str]:
    """Rows to fit rules on and rows to judge them, and what was noted; an error if the ones hold the others."""
    test, note = with_classes_of(val, test)
    check_same_link(val, test)
    n_shared = min(val.n, test.n) if val.key == test.key else _shared_rows(val, test)
    if n_shared == min(val.n, test.n):
        raise ValueError(
            "both tables hold the same scores and labels: rules would be fitted and evaluated on the same rows; give one table, "
            "which is split in halves, or other rows to judge on"
        )
    shared = (
        f"{n_shared} of the {test.n} rows to judge on are rows to fit on, too: they have the same scores and label."
    )
    notes = (note, shared if n_shared else "", note_of_shared_objects(val, test))
    return val, test, " ".join(filter(None, notes))


def _shared_rows(val: LogitTable, test: LogitTable) -> int:
    """How many rows of both tables have scores and a label that no other row of their table has."""
    if lies_in_shards(val.scores) or lies_in_shards(test.scores):
        return 0  # too many to be read only for this
    times = [Counter(_row_digests(each)) for each in (val, test)]
    return sum(times[0][row] == 1 == n for row, n in times[1].items())


def _row_digests(table: LogitTable) -> Iterator[bytes]:
    for rows in table.spans():
        labels = np.zeros(table.n, bool)[rows] if table.labels is None else table.labels[rows]
        for scores, label in zip(table.scores[rows], labels, strict=True):
            yield hashlib.blake2b(scores.tobytes() + label.tobytes(), digest_size=16).digest()


def with_classes_of(table: LogitTable, other: LogitTable) -> tuple[LogitTable, str]:
    """The other table with its classes in the order of the first, by their names, and what was done; else an error."""
    if table.n_classes != other.n_classes:
        raise ValueError(
            f"the tables have {table.n_classes} and {other.n_classes} classes; they must have the same ones"
        )
    names, others = table.class_names, other.class_names
    if (names is None and others is None) or names == others:
        return other, ""
    if names is None or others is None:
        return other, "Only one of the two tables names its classes: those of the other are taken in the same order."
    place = {name: j for j, name in enumerate(others)}
    missing = [name for name in names if name not in place]
    if missing or len(place) < len(others):
        raise ValueError(
            f"the tables have other classes: {listed(missing or names)} of the first, {listed(others)} of the second; give the "
            "same names, each once"
        )
    order = np.array([place[name] for name in names])
    back = np.append(np.argsort(order), NO_LABEL)  # where each class goes; the last entry is for rows without a label
    columns = ("posterior", "votes", *(["labels"] if other.many_labels else []))
    changed: dict[str, Any] = {
        name: getattr(other, name)[:, order] for name in columns if getattr(other, name) is not None
    }
    if other.labels is not None and not other.many_labels:
        changed["labels"] = back[other.labels]
    for name in ("groups", "class_counts"):
        if getattr(other, name) is not None:
            changed[name] = [getattr(other, name)[j] for j in order]
    reordered = dataclasses.replace(other, scores=other.scores[:, order], class_names=names, **changed)
    return reordered, "The classes of the second table stood in another order and were put into that of the first."


def _content(table: LogitTable) -> list[Any]:
    """All that a table holds; what is long as its sha256."""
    arrays = {name: getattr(table, name) for name in (*table.PER_ROW, "class_counts")} | dict(table.attributes or {})
    long = {name: hashlib.sha256(_bytes(array)).hexdigest() for name, array in arrays.items() if array is not None}
    return [table.key, table.class_names, table.groups, long]


def _bytes(array: np.ndarray) -> bytes:
    return repr(array.tolist()).encode() if array.dtype.kind in "OT" else array.tobytes()
