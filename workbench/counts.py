"""Counting: training images of each class and what follows from them, K·n in exact arithmetic, scores that a loss pulls at."""

from __future__ import annotations

import math
import numbers
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

if TYPE_CHECKING:
    from torch import Tensor

SHOTS = ("few", "medium", "many")
# The borders of Garcin et al. 2023, Table 2: few < 20 ≤ medium ≤ 100 < many training images.
FEW, MANY = 20, 100


def checked_counts(class_counts: ArrayLike) -> np.ndarray:
    """The counts as an int64 vector, or an error that says what is wrong with them."""
    counts = np.asarray(class_counts)
    if counts.ndim != 1 or counts.size == 0:
        raise ValueError(f"class_counts has shape {counts.shape}; give one number of training images per class")
    if not np.issubdtype(counts.dtype, np.number) or not np.all(np.isfinite(counts)) or np.any(counts < 0):
        raise ValueError("class_counts must be finite numbers ≥ 0, one per class")
    if np.any(counts != np.round(counts)):
        raise ValueError("class_counts must be whole numbers: they count training images")
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
        raise ValueError("every class has 0 training images: there is no Lorenz curve of nothing")
    share_of_classes = np.arange(counts.size + 1) / counts.size
    share_of_images = np.concatenate([[0], np.cumsum(counts)]) / counts.sum()
    return share_of_classes, share_of_images


def gini(class_counts: ArrayLike) -> float:
    """Twice the area between the diagonal and the Lorenz curve: 0 when balanced, near 1 when one class has all."""
    return float(1 - 2 * np.trapezoid(*reversed(lorenz_curve(class_counts))))


def shot_groups(class_counts: ArrayLike, few: int = FEW, many: int = MANY) -> np.ndarray:
    """The group of each class as a word: few < 20 ≤ medium ≤ 100 < many training images.

    >>> shot_groups([19, 20, 100, 101]).tolist()
    ['few', 'medium', 'medium', 'many']
    """
    if not 0 < few <= many:
        raise ValueError(f"shot groups need 0 < few ≤ many, not few = {few} and many = {many}")
    counts = checked_counts(class_counts)
    groups: np.ndarray = np.array(SHOTS)[(counts >= few).astype(int) + (counts > many)]
    return groups


def count_bins(class_counts: ArrayLike, edges: tuple[int, ...] = (10, 50, 500, 2000)) -> tuple[np.ndarray, list[str]]:
    """The bin of each class by its number of training images, and the bins in words (borders of the thesis, Table 3.1).

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


def spread_rows(n: int, most: int) -> np.ndarray:
    """At most that many of n rows, spread evenly over them: rows are often sorted by class, so the first are no sample.

    >>> spread_rows(9, 3).tolist(), spread_rows(2, 3).tolist()
    ([0, 4, 8], [0, 1])
    """
    return np.unique(np.linspace(0, n - 1, most).astype(int))


def exact(number: float) -> Fraction:
    """The decimal a number prints as: 0.1 is one tenth, not the nearest float.

    >>> exact(0.7) * 10 == 7, 0.7 * 3 == 2.1
    (True, False)
    """
    return Fraction(number) if isinstance(number, (int, Fraction)) else Fraction(repr(float(number)))


@lru_cache(maxsize=256)  # every step of a loss asks, and exact arithmetic takes as long as the sort that follows
def classes_of_rows(K: float, n: int) -> int:
    """How many classes n rows have together at K a row: K·n in exact arithmetic, halves rounded up.

    >>> classes_of_rows(1.1, 5), classes_of_rows(2.3, 10)
    (6, 23)
    """
    return math.floor(exact(K) * n + Fraction(1, 2))


def falling_entries(p: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All entries of a posterior (n, L) in falling order, and the weight of the row of each."""
    order = np.argsort(-p.ravel(), kind="stable")
    return p.ravel()[order], np.repeat(weights, p.shape[1])[order]


def mass_at_mean_size(p: np.ndarray, weights: np.ndarray, K: float) -> float:
    """The most mass of a posterior (n, L) that sets of mean size K can hold; rows weigh `weights`, which sum to 1.

    Entries enter as they fall, each at the price of its row, and the last in part: the supremum over randomised sets.

    >>> mass_at_mean_size(np.array([[1.0, 0.0], [0.6, 0.4]]), np.array([0.5, 0.5]), K=1.5)
    1.0
    """
    entries, price = falling_entries(p, weights)
    room = np.clip(K - (np.cumsum(price) - price), 0, price)  # how much of each entry still fits
    return float(entries @ room)


def whole(name: str, given: Any, least: int = 1) -> int:
    """The whole number that was given, or an error that says what was."""
    number = float(given) if isinstance(given, numbers.Real) and not isinstance(given, bool) else math.nan
    if not (number.is_integer() and number >= least):
        raise ValueError(f"{name} = {given!r}; give a whole number ≥ {least}")
    return int(number)


ROUNDING = 1e-9  # of the strongest pull on a row: what is weaker is rounding, such as that of exact smoothing


def scores_pulled(gradients: Tensor) -> Tensor:
    """How many scores of each row, in all heads, have a gradient: (n,) for gradients (n, L) or (n, heads, L).

    A gradient below a billionth of the row's largest is rounding and does not count. Counted where the gradients are: a
    training step on a GPU must not wait for them to come to the CPU.

    >>> import torch
    >>> scores_pulled(torch.tensor([[1.0, -1.0, 3e-14], [1e-12, -1e-12, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [2, 2, 0]
    """
    sizes = gradients.abs().flatten(1)
    return (sizes > ROUNDING * sizes.amax(1, keepdim=True)).sum(1)
