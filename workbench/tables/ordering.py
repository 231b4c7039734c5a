"""The order of the classes of a row: by probability, then by score, then by index.

A link may round different scores to one probability (a softmax underflows, a sigmoid saturates, sparsemax gives most
classes exactly 0); their scores still tell them apart.
"""

from __future__ import annotations

import numpy as np

# Links whose rounding never makes another class more probable than that of the highest score.
KEEPS_THE_FIRST = ("softmax", "sparsemax", "identity")
BLOCK = 16  # classes whose maximum stands for them


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
    places = np.maximum(sizes, 1)
    if len(places) and (places == places[0]).all():
        last = kth_largest(probabilities, int(places[0]))  # smallest that may enter
    else:
        last = np.sort(probabilities, axis=1)[np.arange(n), n_classes - places]
    mask: np.ndarray = probabilities >= last[:, None]
    mask[sizes == 0] = False
    tied = np.flatnonzero(marked_in_rows(mask) > sizes)  # at the border
    if len(tied):
        enters = np.empty((len(tied), n_classes), bool)
        order = falling_order(probabilities[tied], scores[tied])
        np.put_along_axis(enters, order, np.arange(n_classes) < sizes[tied, None], axis=1)
        mask[tied] = enters
    return mask


def kth_largest(values: np.ndarray, k: int) -> np.ndarray:
    """(rows,) the k-th largest value of each row.

    >>> kth_largest(np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]]), 2).tolist()
    [0.3, 0.0]
    """
    if k == 1:
        largest: np.ndarray = values.max(1)
        return largest
    return _parted(contenders(values, k)[0] if values.shape[1] >= 4 * BLOCK * k else values, k)


def _parted(values: np.ndarray, k: int) -> np.ndarray:
    place = values.shape[1] - k
    return np.asarray(np.partition(values, place, axis=1)[:, place])


def contenders(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(rows, m) the largest values of each row, at least k, and their classes by index; then -inf and class 0.

    Of many classes blocks of sixteen are looked at: the k-th largest of their maxima is a bound that few values reach, and
    finding those takes a twentieth of the time of a partition.

    >>> contenders(np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2]]), 1)[1].tolist()
    [[1, 0], [0, 1]]
    """
    n, n_classes = values.shape
    best, n_blocks = values, n_classes // BLOCK
    if n_blocks >= 4 * k:
        best = values[:, : BLOCK * n_blocks]
        while best.shape[1] > n_blocks:  # folded over: a quarter of the time of a maximum along an axis
            half = best.shape[1] // 2
            best = np.maximum(best[:, :half], best[:, half:])
    reached = values >= _parted(best, k)[:, None]
    counts = marked_in_rows(reached)
    places = np.flatnonzero(reached)
    filled = np.arange(counts.max(initial=k)) < counts[:, None]
    held, classes = np.full(filled.shape, -np.inf, values.dtype), np.zeros(filled.shape, np.int64)
    held[filled] = values.ravel()[places]
    classes[filled] = places - np.repeat(np.arange(n) * n_classes, counts)
    return held, classes


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
    """Number of True entries of each row; eight at a time, which NumPy's own count along an axis is not."""
    counts: np.ndarray = np.bitwise_count(np.packbits(mask, axis=1)).sum(1, dtype=np.int64)
    return counts


def marked_places(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The row and the class of every True, row by row; many times quicker than `nonzero` of a matrix.

    >>> [places.tolist() for places in marked_places(np.array([[True, False], [True, True]]))]
    [[0, 1, 1], [0, 0, 1]]
    """
    n, n_classes = mask.shape
    rows = np.repeat(np.arange(n), marked_in_rows(mask))
    return rows, np.flatnonzero(mask) - rows * n_classes


def column_order(fitted: tuple[str, ...], given: tuple[str, ...]) -> np.ndarray:
    """Position of each of the given classes among the fitted ones.

    >>> column_order(("oak", "elm", "fir"), ("fir", "oak", "elm")).tolist()
    [2, 0, 1]
    """
    position = {name: j for j, name in enumerate(fitted)}
    if set(given) != set(fitted) or len(position) < len(fitted):
        others = [name for name in given if name not in position] or [name for name in fitted if name not in given]
        twice = f"{some(others)} {'is' if len(others) == 1 else 'are'} on one side only" if others else "names repeat"
        raise ValueError(
            f"it was fitted per class, on other classes than those of this table: {twice}; "
            "give a table of the same classes, in any order"
        )
    return np.array([position[name] for name in given])


def some(names: list[str], most: int = 3) -> str:
    """The first few of some names."""
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
