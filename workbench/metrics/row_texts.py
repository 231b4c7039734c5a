"""Rows in words: the text of a row, or the numbers of a line of a table that stand out most."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

SHOWN = 5  # numbers of a line


def largest_features(inputs: np.ndarray, rows: Sequence[int], columns: Sequence[str] | None = None) -> list[str]:
    """For each of some rows, the numbers farthest from the mean of their column, in standard deviations.

    Args:
        inputs: (n, d) numbers, one line for each row.
        rows: The rows to describe.
        columns: Names of the d columns; x0, x1, … where there are none.

    Returns:
        One text for each row, such as "x1 = 9 (+1.4 sd)".

    Example:
        >>> largest_features(np.array([[0.0, 9], [1, 0], [2, 0]]), [0], ["width", "height"])
        ['height = 9 (+1.4 sd), width = 0 (−1.2 sd)']
    """
    names = columns or [f"x{j}" for j in range(inputs.shape[1])]
    deviation = inputs.std(axis=0)
    scores = (inputs[list(rows)] - inputs.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return [
        ", ".join(
            _written(names[j], inputs[row, j], score[j]) for j in np.argsort(-np.abs(score), kind="stable")[:SHOWN]
        )
        for row, score in zip(rows, scores, strict=True)
    ]


def _written(name: str, value: float, deviations: float) -> str:
    return f"{name} = {value:.3g} ({'−' if deviations < 0 else '+'}{abs(deviations):.1f} sd)"
