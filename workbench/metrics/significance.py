"""Whether a difference may be luck: tests over seeds, and what many tests at once are worth."""

from __future__ import annotations

import numpy as np


def paired_t_test(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    r"""Student's t of the differences of two settings, seed by seed, and its two-sided p-value.

    $$ t = \bar d \,\sqrt S / s_d $$

    of the S differences d, with S − 1 degrees of freedom. One seed has no scatter to compare with (NaN); two settings that
    agree in every seed differ by nothing (t = 0, p = 1).

    >>> t, p = paired_t_test(np.array([0.62, 0.60, 0.64]), np.array([0.58, 0.57, 0.59]))
    >>> round(t, 2), round(p, 3)
    (6.93, 0.02)
    """
    from scipy import stats  # only here: it takes long to load

    differences = np.asarray(first, dtype=float) - np.asarray(second, dtype=float)
    seeds = len(differences)
    if seeds < 2 or np.isnan(differences).any():
        return float("nan"), float("nan")
    if not differences.any():
        return 0.0, 1.0
    with np.errstate(divide="ignore"):  # the same difference in every seed: t is infinite and p = 0
        t = differences.mean() * np.sqrt(seeds) / differences.std(ddof=1)
    return float(t), float(2 * stats.t.sf(abs(t), seeds - 1))


def holm(p_values: np.ndarray) -> np.ndarray:
    """p-values that hold for all comparisons together (Holm 1979): the smallest times m, the next times m − 1, …

    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    rising = np.argsort(p_values)  # NaN last
    corrected = np.maximum.accumulate(
        p_values[rising] * (np.count_nonzero(~np.isnan(p_values)) - np.arange(len(rising)))
    )
    found = np.empty_like(p_values)
    found[rising] = np.minimum(corrected, 1)
    return found
