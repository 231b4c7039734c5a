"""LRU store for temporary runs (live heads, uploads); `keep` copies one to the permanent store."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from workbench.files.atomic import remove
from workbench.files.checksums import CHECKSUMS
from workbench.runs.run import Run
from workbench.store.runs import StoredRun
from workbench.store.store import Store, copy_run
from workbench.trusted_imports import check_writable

SIZE = 96  # runs that fit in the LRU store: four sliders of a loss with all their values


class LRUStore(Store):
    """A small store beside another one: it forgets the runs that were used least recently.

    Moving a slider trains a run for every value it rests at. The store should not fill with them, and no user wants to
    wait for the same value twice. What the other store has, this one has too.
    """

    def __init__(self, store: Store | None = None, size: int = SIZE, folder: str = "live") -> None:
        self.store = Store() if store is None else store
        self.size = size
        super().__init__(self.store.inside(folder))

    def runs(self) -> list[StoredRun]:
        """Every readable run of the LRU store, then those of the store; one that is on both is listed once."""
        return list({run.key: run for run in [*super().runs(), *self.store.runs()]}.values())

    def unreadable(self) -> dict[str, str]:
        """Key → what is wrong, of every run of the LRU store or of the store that cannot be read."""
        return self.store.unreadable() | super().unreadable()

    def find(self, run: Run) -> StoredRun | None:
        """The stored run of a `Run`, in the LRU store or in the store; it counts as used now. The data are not loaded."""
        (stored,) = self.find_all([run])
        if stored is not None:
            self.touch(stored.key)
        return stored

    def find_all(self, runs: Sequence[Run]) -> list[StoredRun | None]:
        """The stored run of each `Run`, or None; all are looked for in one pass, and none counts as used."""
        stored = self.runs()
        descriptions = [run.description() for run in runs]
        return [next((each for each in stored if each.record.matches(one)), None) for one in descriptions]

    def touch(self, key: str) -> None:
        """Says that a run was used just now."""
        if (self.root / key).is_dir():
            os.utime(self.root / key)

    def forget(self) -> None:
        """Removes the runs that were used least recently, if there are more than fit, and what diverging ones left."""
        for leftover in self.root.glob(".unfinished/*.safetensors"):
            leftover.unlink(missing_ok=True)
        used = []
        for checksums in self.root.glob("[!.]*/" + CHECKSUMS):
            with contextlib.suppress(FileNotFoundError):  # another process forgot it just now
                used.append((checksums.parent.stat().st_mtime, checksums.parent))
        for _, path in sorted(used, reverse=True)[self.size :]:
            with contextlib.suppress(OSError):
                remove(path)

    def keep(self, key: str) -> StoredRun:
        """The run of this key in the store, where it stays: copied there, unless it is there already."""
        if not self.store.has(key):
            check_writable("no run is kept")
            with self.store.writing(key) as directory:  # which writes the checksums itself
                copy_run(self.open(key), directory)
        return self.store.open(key)

    @property
    def _place(self) -> Path:
        return self.store.root

    def _directory(self, key: str) -> Path | None:
        return super()._directory(key) or self.store._directory(key)
