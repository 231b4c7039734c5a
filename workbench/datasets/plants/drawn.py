"""Photographs are drawn once, kept on disk under the key of their recipe, and read from there afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np


def drawn_once(key: str, names: tuple[str, ...], draw: Callable[[str], np.ndarray]) -> dict[str, np.ndarray]:
    """Name → `draw(name)`, from the disk where the same key was drawn before.

    A folder that cannot be written costs only the time to draw again; a damaged file is drawn anew.
    """
    from workbench.store import Store  # loads pandas, which most users of datasets never need
    from workbench.store.cache import PHOTOGRAPHS

    store = Store()
    if (kept := PHOTOGRAPHS.arrays(store, key, names)) is not None:
        return kept
    arrays = {name: draw(name) for name in names}
    try:
        with PHOTOGRAPHS.writing(store, key) as folder:
            for name, array in arrays.items():
                np.save(folder / f"{name}.npy", array)
    except OSError as error:
        warnings.warn(f"drawn photographs are not kept and will be drawn again next time: {error}", stacklevel=3)
    return arrays
