"""Exact decimal arithmetic for K·n and for ranks of conformal quantiles, where floats round to the wrong integer."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache


def exact(number: float) -> Fraction:
    """Return the decimal that a number prints as: 0.1 is one tenth, not the nearest float.

    >>> exact(0.7) * 10 == 7, 0.7 * 3 == 2.1
    (True, False)
    """
    return Fraction(number) if isinstance(number, (int, Fraction)) else Fraction(repr(float(number)))


@lru_cache(maxsize=256)  # called in every training step; exact arithmetic takes as long as the sort that follows
def classes_of_rows(K: float, n: int) -> int:
    """Return the total number of classes in n sets of mean size K: K·n in exact arithmetic, halves rounded up.

    >>> classes_of_rows(1.1, 5), classes_of_rows(2.3, 10)
    (6, 23)
    """
    return math.floor(exact(K) * n + Fraction(1, 2))


@lru_cache(maxsize=256)
def conformal_rank(n: int, confidence: float) -> int:
    """Return ⌈(n + 1)·confidence⌉, the rank of a conformal threshold among n calibration rows, in exact arithmetic.

    >>> conformal_rank(19, 0.9), conformal_rank(9, 0.7)
    (18, 7)
    """
    return math.ceil((n + 1) * exact(confidence))
