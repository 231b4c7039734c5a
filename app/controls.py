"""A knob drawn as a control: the only file that knows both."""

from __future__ import annotations

import numpy as np

from live import Slider
from workbench.knobs import Knob


def slider(name: str, knob: Knob, values: np.ndarray, *, first_row: int, at_rows: np.ndarray, digits: str) -> Slider:
    """A linked slider for a knob.

    `values` can be chosen and own the rows from `first_row` on; `at_rows` is the value of the knob at every row of the
    page, written with the format `digits`.
    """
    own = np.arange(len(values))
    nearest = np.abs(at_rows[:, None] - values[None, :]).argmin(axis=1)
    nearest[first_row + own] = own
    return Slider(
        name=name,
        label=f"{knob.symbol}, {knob.meaning}",
        help=f"{name}: {knob.accepts()}",
        values=values.tolist(),
        rows=(first_row + own).tolist(),
        places=nearest.tolist(),
        texts=[format(value, digits) for value in at_rows.tolist()],
    )
