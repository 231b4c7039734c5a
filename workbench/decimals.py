"""Numbers as people write them: arithmetic on the decimal one prints as (3 · 0.7 is 2.1, not 2.0999…96), whole ones."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from typing import Any


def exact(number: float) -> Fraction:
    """The decimal a number prints as: 0.1 is one tenth, not the nearest float.

    >>> exact(0.7) * 10 == 7, 0.7 * 3 == 2.1
    (True, False)
    """
    return Fraction(number) if isinstance(number, (int, Fraction)) else Fraction(repr(float(number)))


def classes_of_rows(K: float, n: int) -> int:
    """How many classes n rows have together at K a row: K·n in exact arithmetic, halves rounded up.

    >>> classes_of_rows(1.1, 5), classes_of_rows(2.3, 10)
    (6, 23)
    """
    return math.floor(exact(K) * n + Fraction(1, 2))


def whole(name: str, given: Any, least: int = 1) -> int:
    """The whole number that was given, or an error that says what was."""
    number = float(given) if isinstance(given, numbers.Real) and not isinstance(given, bool) else math.nan
    if not (number.is_integer() and number >= least):
        raise ValueError(f"{name} = {given!r}; give a whole number ≥ {least}")
    return int(number)
