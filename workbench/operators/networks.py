"""Comparator networks: which wires to compare, layer after layer, so that the k largest values end up sorted in front.

A network is a tuple of layers. A layer is an integer array (comparators, 2) of pairs of wires that are compared at the
same time; the larger value goes to the first wire of the pair, which always has the lower index. After the last layer
wire r carries the (r+1)-th largest value, for r < k. The depth of a network is its number of layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

Layer = np.ndarray  # (comparators, 2) of int64
KINDS = ("odd_even_transposition", "odd_even_merge", "bitonic", "splitter")


@lru_cache(maxsize=64)
def selection_network(n: int, k: int, kind: str = "splitter") -> tuple[Layer, ...]:
    """The layers of a network that sorts the `k` largest of `n` values to the first k wires. The `kind` of network:

    - `odd_even_transposition`: neighbours, n layers (what the difftopk package calls odd-even);
    - `odd_even_merge`, `bitonic`: sort blocks of 2^⌈log₂ k⌉ wires with Batcher's merge of that name, then merge pairs of
      blocks and keep the better half, ⌈log₂ n⌉ − ⌈log₂ k⌉ times;
    - `splitter`: the authors' own, fewest layers while k ≤ log₂ n.

    With k = n each kind but the last is its full sorting network. Comparators that cannot reach the first k wires are
    left out.

    >>> [len(selection_network(1024, k, "splitter")) for k in (1, 5)]
    [10, 22]
    >>> selection_network(4, 4, "odd_even_merge")[1].tolist()
    [[0, 2], [1, 3]]

    Paper: Petersen et al. 2022, Appendix B and Table 7 (the stride of a splitter of m wires is misprinted; it is
    2^(⌈log₂ m⌉ − 1)).
    """
    if kind not in _BUILDERS:
        raise ValueError(f"there is no network of kind {kind!r}; give one of {', '.join(KINDS)}")
    if not 1 <= k <= n:
        raise ValueError(f"k = {k} of n = {n} values; a selection network needs 1 ≤ k ≤ n")
    network = _reaching_front(_BUILDERS[kind](n, k), n, k)
    for layer in network:
        layer.setflags(write=False)
    return network


def _odd_even_transposition(n: int, k: int) -> list[Layer]:
    layers = []
    for t in range(n):
        first = np.arange((n - t) % 2, n - 1, 2)  # pairs are anchored at the last wire, as in difftopk
        layers.append(np.stack([first, first + 1], axis=1))
    return layers


def _merging(merge: Callable[[np.ndarray], list[Layer]]) -> Callable[[int, int], list[Layer]]:
    """Sort blocks by merging, then merge blocks and keep as many wires of each as k needs."""

    def build(n: int, k: int) -> list[Layer]:
        kept = _power_of_two_from(k)
        # n is padded to a power of two. Padding wires carry −∞ at the end, where no comparator would move it, so
        # comparators that touch them are left out.
        blocks = np.arange(_power_of_two_from(n))[:, None]  # one row per sorted block
        layers = []
        while len(blocks) > 1:
            pairs = np.concatenate([blocks[0::2], blocks[1::2]], axis=1)
            layers += merge(pairs)
            blocks = pairs[:, :kept]
        return [layer[layer[:, 1] < n] for layer in layers]

    return build


def _odd_even_merge(pairs: np.ndarray) -> list[Layer]:
    """Batcher's odd-even merge of the two sorted halves of each row of wires."""
    width = pairs.shape[1]
    positions = np.arange(width)
    layers = [_compared(pairs, positions[: width // 2], width // 2)]
    stride = width // 4
    while stride:
        odd = positions[(positions // stride) % 2 == 1]
        layers.append(_compared(pairs, odd[odd + stride < width], stride))
        stride //= 2
    return layers


def _bitonic_merge(pairs: np.ndarray) -> list[Layer]:
    """Batcher's bitonic merge: the first half against the mirrored second half, then ever finer halves."""
    width = pairs.shape[1]
    half = width // 2
    layers = [np.stack([pairs[:, :half].ravel(), pairs[:, : half - 1 : -1].ravel()], axis=1)]
    positions = np.arange(width)
    stride = width // 4
    while stride:
        layers.append(_compared(pairs, positions[positions // stride % 2 == 0], stride))
        stride //= 2
    return layers


def _splitter(n: int, k: int) -> list[Layer]:
    """Compare only wires of which nothing distinguishes their rank yet, until the first k ranks have one wire each."""
    free_from = np.zeros(n, dtype=np.int64)  # the first layer in which a wire is idle again
    layers: list[list[Layer]] = []
    for wires, _ in selecting_cascades(n, k):
        cascade = splitter_cascade(wires)
        start = int(free_from[wires].max())
        layers += [[] for _ in range(start + len(cascade) - len(layers))]
        for t, layer in enumerate(cascade, start):
            layers[t].append(layer)
        free_from[wires] = start + len(cascade)
    return [np.concatenate(parts) for parts in layers]


def selecting_cascades(n: int, k: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """The wires of each splitter cascade that selects the k largest of n values, and the minimum ranks (n,) after it.

    >>> [(wires.tolist(), ranks.tolist()) for wires, ranks in selecting_cascades(4, 2)]
    [([0, 1, 2, 3], [0, 1, 1, 3]), ([1, 2], [0, 1, 2, 3])]
    """
    minimum_rank = np.zeros(n, dtype=np.int64)  # so many values are known to be at least as large
    tied = True
    while tied:
        tied = False
        for rank in reversed(range(k)):
            wires = np.flatnonzero(minimum_rank == rank)
            if len(wires) < 2:
                continue
            tied = True
            minimum_rank[wires] += minimum_ranks(len(wires))
            yield wires, minimum_rank.copy()


def splitter_cascade(wires: np.ndarray) -> list[Layer]:
    """Halves against halves, then within each half, down to neighbours: ⌈log₂ m⌉ layers for m wires.

    >>> [layer.tolist() for layer in splitter_cascade(np.arange(4))]
    [[[0, 2], [1, 3]], [[0, 1], [2, 3]]]
    """
    layers = []
    stride = _power_of_two_from(len(wires)) // 2
    while stride:
        first = np.arange(len(wires) - stride)
        first = first[first & stride == 0]
        layers.append(np.stack([wires[first], wires[first + stride]], axis=1))
        stride //= 2
    return layers


def minimum_ranks(m: int) -> np.ndarray:
    """How many values are known to be at least as large as that on each of m wires after a splitter cascade.

    2^b − 1 for a wire whose index has b bits set (Petersen et al. 2022, Fig. 4).

    >>> minimum_ranks(8).tolist()
    [0, 1, 1, 3, 1, 3, 3, 7]
    """
    return 2 ** np.bitwise_count(np.arange(m)).astype(np.int64) - 1


def _compared(pairs: np.ndarray, positions: np.ndarray, stride: int) -> Layer:
    """In each row, the wire at each of these positions against the one `stride` further."""
    return np.stack([pairs[:, positions].ravel(), pairs[:, positions + stride].ravel()], axis=1)


def _reaching_front(layers: list[Layer], n: int, k: int) -> tuple[Layer, ...]:
    """The comparators that matter for the first k wires, seen from the end."""
    matters = np.arange(n) < k
    kept = []
    for layer in reversed(layers):
        reaching = layer[matters[layer].any(axis=1)]
        matters[reaching] = True
        if len(reaching):
            kept.append(reaching)
    return tuple(reversed(kept))


def _power_of_two_from(n: int) -> int:
    """The smallest power of two that is at least n."""
    return 1 << (n - 1).bit_length()


_BUILDERS: dict[str, Callable[[int, int], list[Layer]]] = {
    "odd_even_transposition": _odd_even_transposition,
    "odd_even_merge": _merging(_odd_even_merge),
    "bitonic": _merging(_bitonic_merge),
    "splitter": _splitter,
}
