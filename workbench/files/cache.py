"""Cache of recomputable results beside the runs: each under a key of its inputs, written completely or not at all.

    if (kept := FEATURES.arrays(store, key, SPLITS)) is None:
        with FEATURES.writing(store, key) as folder:
            ...

A file is compared with its checksum before it is believed; a damaged one counts as not there, with a warning. The keys say
what was put in, so nothing here ever gets old, and anything may be removed at any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from workbench.files.atomic import whole_folder
from workbench.files.checksums import CheckedFolder, is_whole, write_checksums
from workbench.files.home import Home
from workbench.warning_capture import warn

T = TypeVar("T")


@dataclass(frozen=True)
class Cache:
    """A kind of cached results: its folder in a store, and the message for a damaged entry."""

    folder: str
    anew: str

    def files(self, home: Home, key: str, names: Iterable[str]) -> dict[str, Path] | None:
        """Name → path of a file as it was written; None if they are missing or damaged."""
        return self._read(home, key, names, lambda path: path)

    def arrays(self, home: Home, key: str, names: Iterable[str]) -> dict[str, np.ndarray] | None:
        """Name → array of `name.npy`, memory-mapped: looking at ten rows reads ten rows.

        Copy-on-write, so that a file stays as it is whatever is done to the array.
        """
        mapped = partial(np.load, mmap_mode="c", allow_pickle=False)
        kept = self._read(home, key, [f"{name}.npy" for name in names], mapped)
        return None if kept is None else {name.removesuffix(".npy"): array for name, array in kept.items()}

    @contextlib.contextmanager
    def writing(self, home: Home, key: str) -> Iterator[Path]:
        """A folder to fill; it takes its place when the block ends, and vanishes if the block fails."""
        with home.explained(), whole_folder(home.inside(self.folder) / key) as folder:
            yield folder
            write_checksums(folder)

    def _read(self, home: Home, key: str, names: Iterable[str], read: Callable[[Path], T]) -> dict[str, T] | None:
        kept = CheckedFolder(home.root / self.folder / key)
        if not is_whole(kept.path):
            return None
        try:
            return {name: read(kept.verified(name)) for name in names}
        except (OSError, ValueError) as error:
            warn(f"{self.anew}: {error}", stacklevel=4)
            return None


PHOTOGRAPHS = Cache("datasets", "kept photographs are drawn anew")  # of drawn datasets, under the key of their recipe
FEATURES = Cache(".features", "features are computed anew")  # of a dataset, under its key and that of a backbone
FEATURES_OF_RUNS = Cache(
    ".training_features", "features are computed anew"
)  # run → under which key those of its data lie
PLANES = Cache(".planes", "a plane is computed anew")  # through the weights of a run
MAPS = Cache(".maps", "a map is computed anew")  # of the test rows of a run


def content_key(facts: Any) -> str:
    """The sha256 of facts that JSON can hold.

    >>> content_key(["garden", 0])[:12]
    'e2566f7137bb'
    """
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
