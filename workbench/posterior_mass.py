"""Largest posterior mass that sets of a given mean size can contain."""

from __future__ import annotations

import numpy as np


def falling_entries(p: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return all entries of a posterior (n, L) in falling order, and the weight of the row of each."""
    order = np.argsort(-p.ravel(), kind="stable")
    return p.ravel()[order], np.repeat(weights, p.shape[1])[order]


def mass_at_mean_size(p: np.ndarray, weights: np.ndarray, K: float) -> float:
    """Return the largest mass of a posterior (n, L) in sets of mean size K; `weights` of rows sum to 1.

    Entries are added in falling order, each costs the weight of its row, and the last is added in part: the supremum
    over randomised sets.

    >>> mass_at_mean_size(np.array([[1.0, 0.0], [0.6, 0.4]]), np.array([0.5, 0.5]), K=1.5)
    1.0
    """
    entries, price = falling_entries(p, weights)
    room = np.clip(K - (np.cumsum(price) - price), 0, price)  # the share of each entry that still fits
    return float(entries @ room)
