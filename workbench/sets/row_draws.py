"""One uniform number per row, from a seed and the row's own scores.

Randomised rules need a random share for every row. It depends on nothing but the seed and the scores of the row, so the set
of a row is the same alone, in any batch, in any order and on any worker. Equal scores give equal numbers in every type that
holds them, and in every order of the classes.
"""

from __future__ import annotations

import numpy as np

MIX = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)  # odd: products lose no information


def row_draws(scores: np.ndarray, seed: int) -> np.ndarray:
    """(rows,) numbers in [0, 1), one per row of scores.

    >>> draws = row_draws(np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 3.0]]), seed=0)
    >>> bool(draws[0] == draws[1]), bool(draws[0] == draws[2])
    (True, False)
    """
    return (_scrambled(row_hashes(scores), seed) >> np.uint64(11)) * 2.0**-53


def row_hashes(scores: np.ndarray) -> np.ndarray:
    """(rows,) uint64: a sum over the classes of scrambled bits of their scores."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.asarray(scores, dtype=np.float32) + np.float32(0)  # -0 is 0
        hashes = np.zeros(len(scores), np.uint64)
        if scores.dtype == np.float64:  # what float32 does not hold; exact zeros add nothing
            rest = (scores - rounded + 0.0).view(np.uint64)
            hashes += _summed((rest ^ (rest >> np.uint64(32))).astype(np.uint32), MIX[2])
        hashes += _summed(rounded.view(np.uint32), MIX[1])
    return hashes


def _summed(bits: np.ndarray, factor: np.uint32) -> np.ndarray:
    bits *= MIX[0]
    bits ^= bits >> np.uint32(15)
    bits *= factor
    bits ^= bits >> np.uint32(13)
    summed: np.ndarray = bits.sum(axis=1, dtype=np.uint64)
    return summed


def _scrambled(hashes: np.ndarray, seed: int) -> np.ndarray:
    """The finaliser of SplitMix64 (Steele, Lea & Flood 2014)."""
    bits = hashes + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return bits ^ (bits >> np.uint64(31))
