"""Are new rows like those a rule was fitted on? Tests to read before a promise is believed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from workbench.metrics.probability_metrics import confidences
from workbench.tables import LogitTable


class ShiftTest(NamedTuple):
    """The result of a test: the statistic, and how often exchangeable rows give one as large."""

    statistic: float
    p_value: float


def permutation_test(val: LogitTable, test: LogitTable, permutations: int = 999, seed: int = 0) -> ShiftTest:
    """Test whether two tables are rows of one distribution, by the confidences of their rows.

    The statistic is the largest distance between the two distributions of the largest probability (Kolmogorov and Smirnov);
    its p-value comes from random divisions of all rows. No labels are needed.

    Args:
        val: the rows that a rule is fitted on.
        test: new rows.
        permutations: random divisions; the p-value is at least 1 / (permutations + 1).
        seed: of the divisions.

    Returns:
        The statistic and its p-value: small where the promise should not be believed.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> val, same, sharper = (LogitTable(rng.normal(size=(300, 5)) * scale) for scale in (1, 1, 3))
        >>> permutation_test(val, same).p_value > 0.05, permutation_test(val, sharper).p_value
        (True, 0.001)
    """
    pooled = np.concatenate([confidences(val), confidences(test)])
    ranks = np.argsort(np.argsort(pooled, kind="stable"), kind="stable")
    rng = np.random.default_rng(seed)
    observed = _distance(ranks, val.n)
    drawn = [_distance(rng.permutation(ranks), val.n) for _ in range(permutations)]
    larger = int(np.count_nonzero(np.array(drawn) >= observed - 1e-12))
    return ShiftTest(observed, (1 + larger) / (1 + permutations))


def _distance(ranks: np.ndarray, n: int) -> float:
    inside = np.zeros(len(ranks))
    inside[ranks[:n]] = 1
    first, second = np.cumsum(inside) / n, np.cumsum(1 - inside) / (len(ranks) - n)
    return float(np.abs(first - second).max())


def martingale(p_values: np.ndarray) -> np.ndarray:
    r"""(n,) a test martingale over rows in order: by chance it ever exceeds $1/\alpha$ with probability at most α.

    $$M_t = \int_0^1 \prod_{i \le t} \epsilon\, p_i^{\epsilon - 1} \, d\epsilon$$

    Args:
        p_values: conformal p-values of the labels of rows in the order they came (`fitted.p_values(table)`), which are
            uniform while rows are exchangeable.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> bool(martingale(rng.random(500)).max() < 100), bool(martingale(rng.random(500) ** 3)[-1] > 1e6)
        (True, True)

    Vovk, Nouretdinov & Gammerman 2003 (the simple mixture).
    """
    p = np.clip(np.asarray(p_values, dtype=np.float64), 1e-12, 1)
    epsilon = (np.arange(1000) + 0.5) / 1000
    logs, counts = np.cumsum(np.log(p)), np.arange(1, len(p) + 1)
    exponents = counts[:, None] * np.log(epsilon) + (epsilon - 1) * logs[:, None]
    values: np.ndarray = np.exp(np.logaddexp.reduce(exponents, axis=1) - np.log(len(epsilon)))
    return values
