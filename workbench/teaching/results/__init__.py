"""Measured results that took long to compute; notebooks and lessons read the same tables wherever they run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

HERE = Path(__file__).parent


def table(name: str) -> pd.DataFrame:
    """A table of results: "curves", "differences" and "tried" of `notebooks/plateau.py`, "epsilon" of `docs/epsilon.md`.

    >>> table("differences").columns.tolist()[:4]
    ['data', 'loss', 'metric', 'group']
    """
    import pandas as pd

    return pd.read_csv(HERE / f"{name}.csv", keep_default_na=False)
