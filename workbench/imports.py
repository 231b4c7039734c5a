"""Bring a table of logits into the store, so that the app and the command line find it like any run."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import Any

import numpy as np

from workbench.store import Store, StoredRun, chosen_store
from workbench.tables import LogitTable

SPLIT_NOTE = "One table was given: rules are fitted on a random half of its rows and judged on the other half."


def keep_tables(
    table: LogitTable, *, title: str, test: LogitTable | None = None, store: Store | None = None
) -> StoredRun:
    """Store a table as a run without a model: `val` to fit rules on, `test` to judge them.

    With one table the rows are split in halves (seed 0) and the run says so; with two, the first is `val`. The key is
    that of the content, so the same table under the same title is kept once however often it is brought.
    """
    if test is None and table.n < 2:
        raise ValueError(
            "the table has one row; give at least two, or two tables: one to fit rules on, one to judge them"
        )
    store = chosen_store(store)
    val, test, note = (*table.split(), SPLIT_NOTE) if test is None else (table, test, "")
    if val.n_classes != test.n_classes:
        raise ValueError(f"the tables have {val.n_classes} and {test.n_classes} classes; they must have the same ones")
    key = hashlib.sha256(json.dumps([title, _content(val), _content(test)]).encode()).hexdigest()
    if not store.has(key):
        about = {"title": title, "imported": True, "note": note, "finished": datetime.now(UTC).isoformat()}
        with store.writing(key) as directory:
            (directory / "run.json").write_text(json.dumps(about, indent=1, ensure_ascii=False), encoding="utf-8")
            val.save(directory / "val")
            test.save(directory / "test")
    return store.open(key)


def _content(table: LogitTable) -> list[Any]:
    """All that a table holds; what is long as its sha256."""
    arrays = {name: getattr(table, name) for name in (*table.PER_ROW, "class_counts")} | dict(table.attributes or {})
    long = {name: hashlib.sha256(_bytes(array)).hexdigest() for name, array in arrays.items() if array is not None}
    return [table.key, table.class_names, table.groups, long]


def _bytes(array: np.ndarray) -> bytes:
    return repr(array.tolist()).encode() if array.dtype == object else array.tobytes()
