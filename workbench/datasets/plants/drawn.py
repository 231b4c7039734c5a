"""Photographs are drawn once, kept on disk under the key of their recipe, and read from there afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np


def drawn_once(key: str, names: tuple[str, ...], draw: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Name → `draw(name)`, from the disk where the same key was drawn before.

    The arrays are memory-mapped, so that looking at ten photographs reads ten photographs. A folder that cannot be
    written costs only the time to draw again; a damaged file is drawn anew.
    """
    from workbench.store import Store, StoredRun, home  # loads pandas, which most users of datasets never need

    store = Store(home() / "datasets")
    kept = StoredRun(store.root / key)

    def mapped() -> dict[str, np.ndarray]:
        # Copy-on-write: the file stays as it is, whatever is done to the array.
        return {name: np.load(kept.verified(f"{name}.npy"), mmap_mode="c", allow_pickle=False) for name in names}

    if store.has(key):
        try:
            return mapped()
        except (OSError, ValueError) as error:
            warnings.warn(f"kept photographs are drawn anew: {error}", stacklevel=3)
    arrays = {name: draw(name) for name in names}
    try:
        with store.writing(key, replace=True) as directory:
            for name, array in arrays.items():
                np.save(directory / f"{name}.npy", array)
    except OSError as error:
        warnings.warn(f"drawn photographs are not kept and will be drawn again next time: {error}", stacklevel=3)
    return arrays
