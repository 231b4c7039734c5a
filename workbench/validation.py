"""Checks of arguments shared by all modules."""

from __future__ import annotations

import math
import numbers
from typing import Any


def whole_number(name: str, given: Any, least: int = 1) -> int:
    """Return the argument as an int; raise ValueError unless it is a whole number of at least `least`."""
    number = float(given) if isinstance(given, numbers.Real) and not isinstance(given, bool) else math.nan
    if not (number.is_integer() and number >= least):
        raise ValueError(f"{name} = {given!r}; give a whole number ≥ {least}")
    return int(number)
