"""The order of the classes of a row: by probability, then by score, then by index.

A link may round different scores to one probability (a softmax underflows, a sigmoid saturates, sparsemax gives most
classes exactly 0); their scores still tell them apart.
"""

from __future__ import annotations

import numpy as np

# Links whose rounding never makes another class more probable than that of the highest score.
KEEPS_THE_FIRST = ("softmax", "sparsemax", "identity")


def falling_order(probabilities: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """(rows, L) the classes of each row in their order.

    >>> falling_order(np.array([[0.0, 0.5, 0.0, 0.5]]), np.array([[-9.0, 1.0, -2.0, 1.0]])).tolist()
    [[1, 3, 2, 0]]
    """
    return np.lexsort((-scores, -probabilities), axis=1)  # stable: what is equal stays by index


def most_probable(probabilities: np.ndarray, scores: np.ndarray, sizes: int | np.ndarray) -> np.ndarray:
    """Marks the first `sizes` classes of each row.

    >>> most_probable(np.array([[0.0, 0.4, 0.6, 0.0]]), np.array([[-9.0, 1.0, 1.2, -2.0]]), 3).tolist()
    [[False, True, True, True]]
    """
    n, n_classes = probabilities.shape
    sizes = np.broadcast_to(np.minimum(sizes, n_classes), n)
    rising = np.sort(probabilities, axis=1)
    last = rising[np.arange(n), np.minimum(n_classes - sizes, n_classes - 1)][:, None]  # smallest that may enter
    mask: np.ndarray = probabilities >= last
    mask[sizes == 0] = False
    tied = np.flatnonzero(np.count_nonzero(mask, axis=1) > sizes)  # at the border
    if len(tied):
        enters = np.empty((len(tied), n_classes), bool)
        places = falling_order(probabilities[tied], scores[tied])
        np.put_along_axis(enters, places, np.arange(n_classes) < sizes[tied, None], axis=1)
        mask[tied] = enters
    return mask


def likeliest(probabilities: np.ndarray, scores: np.ndarray, link: str) -> np.ndarray:
    """(rows,) the first class of each row.

    >>> likeliest(np.array([[0.0, 1.0, 1.0]]), np.array([[-3.0, 40.0, 50.0]]), "sigmoid").tolist()
    [2]
    """
    if link in KEEPS_THE_FIRST and scores.dtype != np.float16:  # in which NumPy is slow
        of_scores: np.ndarray = scores.argmax(1)
        return of_scores
    first: np.ndarray = probabilities.argmax(1)
    largest = probabilities == probabilities[np.arange(len(first)), first][:, None]
    if np.count_nonzero(largest) > len(first):  # one count of all is quicker than one of each row
        tied = marked_in_rows(largest) > 1
        first[tied] = falling_order(probabilities[tied], scores[tied])[:, 0]
    return first


def marked_in_rows(mask: np.ndarray) -> np.ndarray:
    """How many entries of each row are True; eight at a time, which NumPy's own count along an axis is not."""
    counts: np.ndarray = np.bitwise_count(np.packbits(mask, axis=1)).sum(1, dtype=np.int64)
    return counts
