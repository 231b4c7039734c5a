"""Precomputed results of lesson 8, because training the twins takes seconds.

`make demo`, or `python -m workbench.teaching.shipped_twins`, measures it anew.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.figures.losses.twins import Twins, twins, twins_of

FILE = Path(__file__).with_name("twins.csv")
GIVEN: dict[str, Any] = {"photographs": 20, "details": 40, "steps": 500, "learning_rate": 0.1, "seed": 0}
SIZES = (5, 10, 20, 50, 100, 400)  # training photographs of each species
NEW, OF_NEW = "new photographs", ("favoured", "other", "sets")  # what is kept of other sizes than the usual one
DIGITS = 5  # of a probability


def shipped_twins() -> Twins:
    """The picture of the twins, as it ships."""
    frame = frames_by_size()
    return twins_of(frame[frame["size"] == GIVEN["photographs"]].drop(columns="size"), GIVEN)


@cache
def frames_by_size() -> pd.DataFrame:
    """The frame of the twins for every number of training photographs, which is the column `size`."""
    return pd.read_csv(FILE)


def measured(size: int) -> pd.DataFrame:
    """The frame of the twins for one number of training photographs."""
    frame = twins(**{**GIVEN, "photographs": size}).frame
    if size != GIVEN["photographs"]:
        frame = frame[(frame["photographs"] == NEW) & frame["line"].isin(OF_NEW)]
    return frame.round(DIGITS).assign(size=size)


if __name__ == "__main__":
    pd.concat([measured(size) for size in SIZES]).to_csv(FILE, index=False)
