"""Confidence intervals: each kind of metric has the one that suits it.

- A share of rows, such as coverage, or a mean of shares over classes, such as macro-coverage: Wilson's interval, which
  needs no resamples, knows that 50 of 50 does not mean "always", and stays within [0, 1].
- A distance, such as a calibration error: few rows inflate it, for luck also makes a distance. The bootstrap shows by how
  much, and the low end takes it out.
- Everything else: the percentiles of the bootstrap.

Every interval holds its value and stays within the bounds of its metric. `benchmarks/intervals.py` measures how often
they hold the truth.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

Pair = tuple[float, float]
PSEUDO_ROWS = 2  # at the pooled share, that each class is given: one row of a rare class, always right, is no certainty


def normal_quantile(confidence: float) -> float:
    """Half-width of an interval in standard errors: 1.96 for 95 %."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence} of an interval must lie strictly between 0 and 1, such as 0.95")
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson_interval(hits: np.ndarray, n: np.ndarray, z: float = 1.96) -> tuple[np.ndarray, np.ndarray]:
    """Wilson interval of a share after `hits` of `n` trials, with 95 % confidence unless z says otherwise; NaN without a trial.

    >>> low, high = wilson_interval(np.array([5]), np.array([10]))
    >>> round(low.item(), 3), round(high.item(), 3)
    (0.237, 0.763)
    """
    n = np.where(n > 0, n, np.nan)
    share, spread = hits / n, z**2 / n
    centre = (share + spread / 2) / (1 + spread)
    reach = z / (1 + spread) * np.sqrt(share * (1 - share) / n + spread / (4 * n))
    # The interval holds the share itself, which rounding would leave just outside when it is 0 or 1.
    return np.clip(centre - reach, 0, share), np.clip(centre + reach, share, 1)


def mean_share_interval(hits: np.ndarray, n: np.ndarray, confidence: float) -> Pair:
    r"""Wilson's interval of the mean over cells (classes) of hits / n; of one cell it is the plain one.

    The mean is worth as much as one share of $\bar p (1 - \bar p) / \sum_c \frac{p_c (1 - p_c)}{C^2 n_c}$ rows, where
    each class is given two more rows at the share of all of them.

    >>> low, high = mean_share_interval(np.array([1.0, 90.0]), np.array([1.0, 100.0]), 0.95)
    >>> round(low, 2), round(high, 2)
    (0.51, 1.0)
    """
    z = normal_quantile(confidence)
    hits, n = hits[n > 0], n[n > 0]
    if not len(n):
        return float("nan"), float("nan")
    pooled = hits.sum() / n.sum()
    shares = (hits + PSEUDO_ROWS * pooled) / (n + PSEUDO_ROWS)
    scatter = shares * (1 - shares)
    if scatter.sum() == 0:  # all are right, or none is: what n counts does not depend on the share
        scatter = np.ones(len(n))
        centre_scatter = 1.0
    else:
        centre_scatter = shares.mean() * (1 - shares.mean())
    rows = centre_scatter * len(n) ** 2 / (scatter / n).sum()
    low, high = wilson_interval(np.mean(hits / n) * rows, rows, z)
    return float(low), float(high)


def bootstrap_interval(
    values: np.ndarray, estimate: float, confidence: float, bounds: Pair, inflated: str = ""
) -> Pair:
    """The interval from the values of resamples, stretched to the estimate if need be; NaN when one has no value.

    With q the quantiles of the values it is [q_low, q_high]. A metric that few rows inflate ("up") is a distance, whose
    luck adds up in squares: its low end is √(2·estimate² − q_high²), or 0, and its high end 2·estimate − q_low. Where few
    rows push it "down" from the upper bound, the same is done to its distance from there.
    """
    tail = (1 - confidence) / 2
    normal_quantile(confidence)  # refuses what is no confidence
    if np.isnan(values).any() or np.isnan(estimate):
        return float("nan"), float("nan")
    if inflated == "down":
        low, high = bootstrap_interval(bounds[1] - values, bounds[1] - estimate, confidence, bounds, "up")
        return bounds[1] - high, bounds[1] - low
    low, high = np.quantile(values, [tail, 1 - tail])
    if inflated == "up":
        low, high = np.sqrt(max(2 * estimate**2 - high**2, 0)), 2 * estimate - low
    low, high = np.clip([low, high], *bounds)
    return float(min(low, estimate)), float(max(high, estimate))


def paired_share_interval(better: float, worse: float, n: float, confidence: float) -> Pair:
    """Where the difference of two shares of the same n rows may lie, when `better` rows speak for the first and `worse`
    for the second: two more rows are counted, one for each (Bonett & Price 2012).

    >>> low, high = paired_share_interval(12, 4, 100, 0.95)
    >>> round(low, 3), round(high, 3)
    (-0.002, 0.159)
    """
    z = normal_quantile(confidence)
    if not n:
        return float("nan"), float("nan")
    first, second = (better + 1) / (n + 2), (worse + 1) / (n + 2)
    centre, reach = first - second, z * np.sqrt((first + second - (first - second) ** 2) / (n + 2))
    difference = (better - worse) / n
    return float(min(max(centre - reach, -1), difference)), float(max(min(centre + reach, 1), difference))


def over_seeds_interval(mean: np.ndarray, error: np.ndarray, reach: np.ndarray, bounds: Pair) -> tuple[np.ndarray, ...]:
    """mean ± reach·error on the scale where the bounds are out of reach: log-odds of a share, logarithm of a size.

    >>> low, high = over_seeds_interval(np.array([0.95]), np.array([0.02]), np.array([4.3]), (0, 1))
    >>> round(low.item(), 3), round(high.item(), 3)
    (0.757, 0.991)
    """
    if bounds not in ((0, 1), (0, np.inf)):
        return mean - reach * error, mean + reach * error
    slope = mean * (1 - mean) if bounds == (0, 1) else mean
    # Where the mean is a bound itself all seeds are, and the error is 0 (or NaN, of one seed).
    factor = np.exp(np.divide(reach * error, slope, out=reach * error, where=slope > 0))
    if bounds == (0, np.inf):
        return mean / factor, mean * factor
    return mean / (mean + (1 - mean) * factor), mean * factor / (mean * factor + 1 - mean)
