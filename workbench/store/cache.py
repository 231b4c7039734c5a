"""What can be computed again and is kept beside the runs: each under a key of what decides it, whole or not there.

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
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from workbench.store.atomic import whole_folder
from workbench.store.checked import CheckedFolder, is_whole, write_checksums
from workbench.store.store import Store

T = TypeVar("T")


@dataclass(frozen=True)
class Cache:
    """One kind of things: the folder under the root of a store that holds them, and what is said of a damaged one."""

    folder: str
    anew: str

    def files(self, store: Store, key: str, names: Iterable[str]) -> dict[str, Path] | None:
        """Name → path of a file as it was written; None if nobody has computed them, or if they are damaged."""
        return self._read(store, key, names, lambda path: path)

    def arrays(self, store: Store, key: str, names: Iterable[str]) -> dict[str, np.ndarray] | None:
        """Name → array of `name.npy`, memory-mapped: looking at ten rows reads ten rows.

        Copy-on-write, so that a file stays as it is whatever is done to the array.
        """
        mapped = partial(np.load, mmap_mode="c", allow_pickle=False)
        kept = self._read(store, key, [f"{name}.npy" for name in names], mapped)
        return None if kept is None else {name.removesuffix(".npy"): array for name, array in kept.items()}

    @contextlib.contextmanager
    def writing(self, store: Store, key: str) -> Iterator[Path]:
        """A folder to fill; it takes its place when the block ends, and vanishes if the block fails."""
        with store.explained(), whole_folder(store.root / self.folder / key) as folder:
            yield folder
            write_checksums(folder)

    def _read(self, store: Store, key: str, names: Iterable[str], read: Callable[[Path], T]) -> dict[str, T] | None:
        kept = CheckedFolder(store.root / self.folder / key)
        if not is_whole(kept.path):
            return None
        try:
            return {name: read(kept.verified(name)) for name in names}
        except (OSError, ValueError) as error:
            warnings.warn(f"{self.anew}: {error}", stacklevel=4)
            return None


PHOTOGRAPHS = Cache("datasets", "kept photographs are drawn anew")  # of drawn datasets, under the key of their recipe
FEATURES = Cache(".features", "features are computed anew")  # of a dataset, under its key and that of a backbone
FEATURES_OF_RUNS = Cache(
    ".training_features", "features are computed anew"
)  # run → under which key those of its data lie
PLANES = Cache(".planes", "a plane is computed anew")  # through the weights of a run


def content_key(facts: Any) -> str:
    """The sha256 of facts that JSON can hold.

    >>> content_key(["garden", 0])[:12]
    'e2566f7137bb'
    """
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
