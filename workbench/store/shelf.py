"""The shelf: the most recent live heads and uploads, kept until newer ones push them off, or for good if somebody asks."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.store.atomic import remove
from workbench.store.checked import CHECKSUMS
from workbench.store.runs import StoredRun
from workbench.store.store import Store, copy_run

SIZE = 96  # runs that fit on the shelf: four sliders of a loss with all their values


class Shelf(Store):
    """A small store beside another one: it forgets the runs that were used least recently.

    Moving a slider trains a run for every value it rests at. Nobody wants all of them in the store, and nobody wants to
    wait for the same value twice. What the other store has, the shelf has too.
    """

    def __init__(self, store: Store | None = None, size: int = SIZE, folder: str = "live") -> None:
        self.store = Store() if store is None else store
        self.size = size
        super().__init__(self.store.root / folder)

    def runs(self) -> list[StoredRun]:
        """Every readable run of the shelf, then those of the store; one that is on both is listed once."""
        return list({run.key: run for run in [*super().runs(), *self.store.runs()]}.values())

    def unreadable(self) -> dict[str, str]:
        """Key → what is wrong, of every run of the shelf or of the store that cannot be read."""
        return self.store.unreadable() | super().unreadable()

    def found(self, described: Mapping[str, Any]) -> StoredRun | None:
        """A run, of the shelf or of the store, whose `run.json` says all that `described` says; it counts as used now.

        Unlike the key of a `Run` this needs no torch.
        """
        (run,) = self.all_found([described])
        if run is not None:
            self.touch(run.key)
        return run

    def all_found(self, described: Sequence[Mapping[str, Any]]) -> list[StoredRun | None]:
        """The run of each description, or None; all are looked for in one pass, and none counts as used."""
        wanted: list[dict[str, Any]] = json.loads(json.dumps(described))  # as JSON has it: tuples become lists
        runs = self.runs()
        return [next((run for run in runs if run.record.says(each)), None) for each in wanted]

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
            with self.store.writing(key) as directory:  # which writes the checksums itself
                copy_run(self.open(key), directory)
        return self.store.open(key)

    @property
    def _place(self) -> Path:
        return self.store.root

    def _directory(self, key: str) -> Path | None:
        return super()._directory(key) or self.store._directory(key)
