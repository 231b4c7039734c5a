"""What lesson 8 shows, measured before: training the twins takes seconds, and a lesson should be there at once.

`make demo`, or `python -m workbench.teaching.shipped_twins`, measures it anew.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from workbench.figures.of_losses.twins import Twins, twins, twins_of

FILE = Path(__file__).with_name("twins.csv")
GIVEN: dict[str, Any] = {"photographs": 20, "details": 40, "steps": 500, "learning_rate": 0.1, "seed": 0}
DIGITS = 5  # of a probability


def shipped_twins() -> Twins:
    """The picture of the twins, as it ships."""
    return twins_of(pd.read_csv(FILE), GIVEN)


if __name__ == "__main__":
    twins(**GIVEN).frame.round(DIGITS).to_csv(FILE, index=False)
