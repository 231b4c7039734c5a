"""Batches of an epoch, their augmentations and their random generators."""

from __future__ import annotations

import hashlib
import math
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from workbench.datasets import Augmentation, ImageFiles
from workbench.datasets.image_files import BATCHES_AHEAD
from workbench.training.ranks import collectives as parallel


def generator(seed: int, epoch: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """The source of one kind of randomness in one epoch: it owes nothing to what was drawn before."""
    return torch.Generator(device).manual_seed(seed_of(seed, epoch, purpose))


def seed_of(seed: int, epoch: int, purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {epoch} {purpose}".encode()).digest()[:8], "big") >> 1


class EpochAugmentations:
    """The augmentations of one epoch, drawn for every row before the epoch begins."""

    def __init__(self, augmentations: Sequence[Augmentation], n: int, seed: int, epoch: int) -> None:
        self.steps = [
            (each, each.draws(n, np.random.default_rng(seed_of(seed, epoch, f"{type(each).__name__} {place}"))))
            for place, each in enumerate(augmentations)
        ]

    def __call__(self, inputs: Tensor, rows: Tensor) -> Tensor:
        """The inputs of these rows, changed."""
        for each, draws in self.steps:
            inputs = torch.from_numpy(each.augmented(inputs.numpy(), draws[rows.numpy()]))
        return inputs


Batch = tuple[Tensor, Tensor, Tensor, float]  # inputs, labels, rows, share


class Batches:
    """Slices of a split as (inputs, labels, rows, share). Arrays need no DataLoader, images in files bring their threads.

    Batches differ by at most one row in size, so that none is too small for batch statistics. With `parts` each comes in
    that many pieces, and `share` is how much of its batch a piece is. On several ranks the inputs are those of this
    rank's part of the rows; labels and rows are those of all. `places` (n, 2) says where a square is cut out of each
    image in a file; without it, from the middle. `augmented` changes the inputs of some rows. With `pinned` a batch lies in
    memory that a GPU reads by itself, and a thread augments and copies the next ones meanwhile.
    """

    def __init__(
        self,
        inputs: Tensor | ImageFiles,
        labels: Tensor,
        batch_size: int,
        order: Tensor | None = None,
        places: Tensor | None = None,
        parts: int = 1,
        augmented: Callable[[Tensor, Tensor], Tensor] | None = None,
        *,
        pinned: bool = False,
    ) -> None:
        self.pinned = pinned
        self.inputs, self.labels, self.places, self.augmented = inputs, labels, places, augmented
        order = torch.arange(len(inputs)) if order is None else order
        batches = order.tensor_split(math.ceil(len(inputs) / batch_size))
        pieces = [(rows, len(rows) / len(batch)) for batch in batches for rows in batch.tensor_split(parts)]
        self.rows, self.shares = zip(*pieces, strict=True)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Batch]:
        return ahead(self._batches()) if self.pinned else self._batches()

    def _batches(self) -> Iterator[Batch]:
        of_this_rank = [parallel.part(rows) for rows in self.rows]
        ready = in_turn(self.inputs, of_this_rank, self.places)
        for inputs, mine, rows, share in zip(ready, of_this_rank, self.rows, self.shares, strict=True):
            inputs = inputs if self.augmented is None else self.augmented(inputs, mine)
            labels = self.labels[rows]
            yield (*(ready_for_gpu(each) if self.pinned else each for each in (inputs, labels, rows)), share)


def ahead(batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches; a thread makes the next ones while the caller works on one."""
    with ThreadPoolExecutor(1, thread_name_prefix="batches") as thread:
        coming = deque(thread.submit(next, batches, None) for _ in range(BATCHES_AHEAD))
        while (batch := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, batches, None))
            yield batch


def in_turn(inputs: Tensor | ImageFiles, batches: Sequence[Tensor], places: Tensor | None = None) -> Iterator[Tensor]:
    """The inputs of each batch of rows; images in files are decoded ahead of their turn."""
    if isinstance(inputs, Tensor):
        return (inputs[rows] for rows in batches)
    blocks = (rows.numpy() for rows in batches)
    return map(torch.from_numpy, inputs.batches(blocks, None if places is None else places.numpy()))


def ready_for_gpu(tensor: Tensor) -> Tensor:
    """A copy in memory that the system never moves, so that a GPU can fetch it without waiting."""
    return tensor.pin_memory()


def readable(inputs: np.ndarray | ImageFiles) -> Tensor | ImageFiles:
    """The inputs of a split as a tensor, unless they are images in files."""
    return tensor_of(inputs) if isinstance(inputs, np.ndarray) else inputs


def tensor_of(array: np.ndarray) -> Tensor:
    """The array as a tensor that shares its memory, also when it is read-only: training only reads."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
