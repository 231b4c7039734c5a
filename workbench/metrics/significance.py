"""Whether a difference may be luck: tests over seeds, and what many tests at once are worth."""

from __future__ import annotations

from typing import Any

import numpy as np


def paired_t_test(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    r"""Student's t of the paired differences of two settings, of seeds or of rows, and its two-sided p-value.

    $$ t = \bar d \,\sqrt S / s_d $$

    of the S differences d, with S − 1 degrees of freedom. One pair has no scatter to compare with (NaN); two settings that
    agree in every pair differ by nothing (t = 0, p = 1).

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


def hypergeometric_cdf(h: np.ndarray, N: int, H: int, n: np.ndarray) -> np.ndarray:
    r"""The probability that of n rows drawn from N, of which H are hits, at most h are hits.

    $$ P(\text{hits} \le h) = \sum_{k \le h} \binom{H}{k} \binom{N - H}{n - k} \Big/ \binom{N}{n} $$

    It is the p-value of Fisher's exact test against too few hits.

    >>> hypergeometric_cdf(np.array([0, 1, 2]), 4, 2, np.array([2, 2, 2])).round(4).tolist()
    [0.1667, 0.8333, 1.0]
    """
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, N + 1)))])

    def log_choose(whole: Any, part: Any) -> Any:
        return log_factorial[whole] - log_factorial[part] - log_factorial[whole - part]

    found = []
    for most, drawn in zip(h.tolist(), n.tolist(), strict=True):
        k = np.arange(max(0, drawn - (N - H)), most + 1)
        logs = log_choose(H, k) + log_choose(N - H, drawn - k) - log_choose(N, drawn)
        found.append(min(float(np.exp(logs).sum()), 1.0))
    return np.array(found)
