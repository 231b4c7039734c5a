"""Distribution of the coverage of a fitted conformal rule around its confidence."""

from __future__ import annotations

import math

from workbench.exact_arithmetic import exact


def coverage_band(n: int, confidence: float, level: float = 0.95) -> tuple[float, float]:
    r"""Band of the coverage of a split conformal rule that was fitted on n rows.

    The promise is an average over calibration sets. Given one of them, the coverage of new rows is random:
    $\mathrm{Beta}(k, n + 1 - k)$ with $k = \lceil (n + 1) \cdot \mathrm{confidence} \rceil$, for scores without ties.

    Args:
        n: Number of calibration rows.
        confidence: Promised coverage 1 − α.
        level: Probability of the band.

    Returns:
        The lower and the upper end; (1, 1) where so few rows can promise so much only by every class.

    Example:
        >>> [round(end, 3) for end in coverage_band(1000, 0.9)]
        [0.881, 0.918]
    """
    from scipy.special import betaincinv

    k = math.ceil((n + 1) * exact(confidence))
    if k > n:
        return 1.0, 1.0
    return float(betaincinv(k, n + 1 - k, (1 - level) / 2)), float(betaincinv(k, n + 1 - k, (1 + level) / 2))


def promise_text(n: int, confidence: float, level: float = 0.95) -> str:
    """The promise of a rule fitted on n rows, with its band, in words.

    >>> promise_text(200, 0.9)
    'promised 90 %, with 200 calibration rows expect 86–94 %'
    >>> promise_text(5, 0.9)
    'promised 90 %, with 5 calibration rows kept only by every class'
    """
    low, high = coverage_band(n, confidence, level)
    rows = f"promised {100 * confidence:g} %, with {n} calibration row{'s' * (n != 1)}"
    if low == 1:
        return f"{rows} kept only by every class"
    digits = 0 if high - low >= 0.03 else 1
    return f"{rows} expect {100 * low:.{digits}f}–{100 * high:.{digits}f} %"
