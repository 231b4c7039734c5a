"""Training images per class: validation, Lorenz curve and Gini index, shot groups (few, medium, many), bins."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

SHOTS = ("few", "medium", "many")
# The borders of Garcin et al. 2023, Table 2: few < 20 ≤ medium ≤ 100 < many training images.
FEW, MANY = 20, 100


def checked_counts(class_counts: ArrayLike) -> np.ndarray:
    """Return the counts as an int64 vector; raise ValueError if they are not counts, one per class."""
    counts = np.asarray(class_counts)
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError(f"class_counts has shape {counts.shape}; give one number of training rows per class")
    if not np.issubdtype(counts.dtype, np.number) or not np.all(np.isfinite(counts)) or np.any(counts < 0):
        raise ValueError("class_counts must be finite numbers ≥ 0, one per class")
    if np.any(counts != np.round(counts)):
        raise ValueError("class_counts must be whole numbers: they count training rows")
    return counts.astype(np.int64)


def lorenz_curve(class_counts: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Share of classes, rarest first, against the share of images they hold; both start at 0 and end at 1.

    Pl@ntNet-300K passes near (0.80, 0.11): the rarest 80 % of the species hold 11 % of the images.

    >>> share_of_classes, share_of_images = lorenz_curve([1, 1, 2])
    >>> share_of_images.tolist()
    [0.0, 0.25, 0.5, 1.0]
    """
    counts = np.sort(checked_counts(class_counts))
    if counts.sum() == 0:
        raise ValueError("every class has 0 training rows: there is no Lorenz curve of nothing")
    share_of_classes = np.arange(counts.size + 1) / counts.size
    share_of_images = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    return share_of_classes, share_of_images


def gini(class_counts: ArrayLike) -> float:
    """Twice the area between the diagonal and the Lorenz curve: 0 when balanced, near 1 when one class has all."""
    return float(1 - 2 * np.trapezoid(*reversed(lorenz_curve(class_counts))))


def shot_groups(class_counts: ArrayLike, few: int = FEW, many: int = MANY) -> np.ndarray:
    """Return the shot group of each class: few < 20 ≤ medium ≤ 100 < many training rows.

    >>> shot_groups([19, 20, 100, 101]).tolist()
    ['few', 'medium', 'medium', 'many']
    """
    if not 0 < few <= many:
        raise ValueError(f"shot groups need 0 < few ≤ many, not few = {few} and many = {many}")
    counts = checked_counts(class_counts)
    groups: np.ndarray = np.array(SHOTS)[(counts >= few).astype(int) + (counts > many)]
    return groups


def count_bins(class_counts: ArrayLike, edges: tuple[int, ...] = (10, 50, 500, 2000)) -> tuple[np.ndarray, list[str]]:
    """Return the bin of each class by its number of training rows, and the labels of the bins.

    The default edges are those of the thesis, Table 3.1.

    >>> bins, names = count_bins([3, 10, 700], edges=(10, 500))
    >>> bins.tolist(), names
    ([0, 1, 2], ['< 10', '10–499', '≥ 500'])
    """
    if list(edges) != sorted(set(edges)) or not edges:
        raise ValueError(f"edges must rise strictly, not {edges}")
    names = [f"< {edges[0]}"]
    names += [f"{low}–{high - 1}" for low, high in pairwise(edges)]
    names += [f"≥ {edges[-1]}"]
    return np.searchsorted(np.asarray(edges), checked_counts(class_counts), side="right"), names
