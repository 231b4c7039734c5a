"""How many scores a loss pulls at: the one count behind the figures and the history of a run."""

from __future__ import annotations

import numpy as np

ROUNDING = 1e-9  # of the strongest pull on a row: what is weaker is rounding, such as that of exact smoothing


def scores_pulled(gradients: np.ndarray) -> np.ndarray:
    """How many scores of each row, in all heads, have a gradient: (n,) for gradients (n, L) or (n, heads, L).

    A gradient below a billionth of the row's largest is rounding and does not count.

    >>> scores_pulled(np.array([[1.0, -1.0, 3e-14], [1e-12, -1e-12, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [2, 2, 0]
    """
    sizes = np.abs(gradients).reshape(len(gradients), -1)
    return np.count_nonzero(sizes > ROUNDING * sizes.max(axis=1, keepdims=True), axis=1)
