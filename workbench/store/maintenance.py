"""Upkeep of a store: compare every file with its checksum, quarantine damaged runs, free unused space."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.files.atomic import remove, remove_leftovers
from workbench.store.runs import StoredRun
from workbench.store.store import LOCKS, TRASH, Store


def verify(store: Store) -> dict[str, str]:
    """Key → the first fault, of every run of the store whose files are not what was written. Reads every byte.

    Unlike `Store.unreadable`, which looks at sizes and headers and is quick.
    """
    damaged = {key: why for key, why in store.unreadable().items() if os.path.lexists(store.root / key)}
    for run in _own(store):
        if run.key not in damaged and (why := _fault(run)):
            damaged[run.key] = why
    return damaged


def repair(store: Store) -> dict[str, str]:
    """Move every damaged run into the trash and remove what killed writers left. Returns what `verify` found."""
    damaged = verify(store)
    for key in damaged:
        store.trash(key)
    remove_leftovers(store.root)
    return damaged


def prune(store: Store) -> int:
    """Delete the trash, what killed writers left and checkpoints of finished runs. Returns how many bytes that frees."""
    before = _n_bytes(store.root)
    with store.changing():
        remove_leftovers(store.root)
        for folder in [store.inside(name) for name in (TRASH, ".unfinished", ".marks") if (store.root / name).is_dir()]:
            remove_leftovers(folder)
        if store.inside(TRASH).is_dir():
            for key in {entry.name for entry in store.inside(TRASH).iterdir()} - {*store.stored_keys()}:
                for left in (store.unfinished(key), store.diverged(key), store.marks / f"{key}.json"):
                    left.unlink(missing_ok=True)
            remove(store.inside(TRASH))
        for checkpoint in store.inside(".unfinished").glob("*.*"):
            if checkpoint.suffix != ".turn" and store.has(checkpoint.stem):
                checkpoint.unlink(missing_ok=True)
    return before - _n_bytes(store.root)


def _own(store: Store) -> list[StoredRun]:
    return [run for run in store.runs() if run.path.parent == store.root]


def _fault(run: StoredRun) -> str:
    """The first fault of a run; "" if every file matches its checksum and every table opens."""
    try:
        for name in run.checksums:
            run.verified(name)
        for table in run.tables:
            run.tables[table]
    except ValueError as error:
        return str(error)
    return ""


def _n_bytes(root: Path) -> int:
    """Bytes of all files under a root, without the lock that is held; links are not followed."""
    total = 0
    for folder, names, files in os.walk(root):
        names[:] = [name for name in names if name != LOCKS]
        total += sum(os.lstat(os.path.join(folder, file)).st_size for file in files)
    return total
