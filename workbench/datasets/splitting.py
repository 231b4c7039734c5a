"""Which rows are held out: the rule of Pl@ntNet-300K, ⌈0.1·n_j⌉ of the n_j rows of class j to each split but training."""

from __future__ import annotations

import numpy as np


def divided(labels: np.ndarray, n_classes: int, seed: int, held_out: int = 2) -> list[np.ndarray]:
    """Row numbers of training, then of each of the `held_out` other splits, at random from the seed.

    Rows with many labels have no class to be divided by: ⌈0.1·n⌉ of all rows go to each held-out split.

    >>> [part.tolist() for part in divided(np.zeros(10, dtype=int), n_classes=1, seed=0)]
    [[0, 1, 2, 3, 5, 7, 8, 9], [4], [6]]

    Garcin, thesis, section 3.2.2.
    """
    shuffled = np.random.default_rng(seed).permutation(len(labels))
    if labels.ndim == 2:
        by_class, counts = shuffled, np.array([len(labels)])
    else:
        by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
        counts = np.bincount(labels, minlength=n_classes)
    first = np.cumsum(counts) - counts
    place = np.arange(len(labels)) - np.repeat(first, counts)  # 0, 1, … inside each class
    tenth = place // np.repeat(-(-counts // 10), counts)  # which tenth of its class a row is in
    which = np.where(tenth < held_out, tenth + 1, 0)
    return [np.sort(by_class[which == part]) for part in range(1 + held_out)]
