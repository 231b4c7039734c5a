"""Maps of the test rows of runs that took long to compute, kept beside the runs; those of the demo runs ship with them."""

from __future__ import annotations

import numpy as np

from workbench.files.cache import MAPS, content_key
from workbench.store.runs import StoredRun
from workbench.store.store import DEMO, Store

POSITIONS = "positions"


def known(run: StoredRun, projection: str, store: Store | None = None) -> np.ndarray | None:
    """(n, 2) positions in [0, 1] of the test rows of a run; None if they are not computed yet."""
    for place in (Store(DEMO), store or Store()):
        if (kept := MAPS.arrays(place, _key(run, projection), [POSITIONS])) is not None:
            return kept[POSITIONS]
    return None


def keep(run: StoredRun, projection: str, positions: np.ndarray, store: Store | None = None) -> None:
    """Keep the positions of the test rows of a run."""
    with MAPS.writing(store or Store(), _key(run, projection)) as folder:
        np.save(folder / f"{POSITIONS}.npy", positions)


def _key(run: StoredRun, projection: str) -> str:
    return content_key([run.key, projection])
