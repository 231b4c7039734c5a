"""Target size of a set, by the knobs of a loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench import schedules

USUAL_K = 5.0  # classes in a set, for a loss that does not ask for a number


def target_K(loss_knobs: Mapping[str, Any], n_classes: float) -> float:
    """Target size of a set: the K of the loss, or 5, or as many as there can be.

    >>> target_K({"K": 3}, n_classes=10), target_K({}, n_classes=10), target_K({}, n_classes=4)
    (3.0, 5.0, 3.0)
    """
    K = schedules.end_of(loss_knobs.get("K", USUAL_K))
    numeric = isinstance(K, (int, float)) and not isinstance(K, bool)
    return float(min(max(K if numeric else USUAL_K, 1), n_classes - 1))
