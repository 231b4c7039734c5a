"""The rows of a step, and the randomness of an epoch."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator

import torch
from torch import Tensor


def generator(seed: int, epoch: int, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
    """The source of one kind of randomness in one epoch: it owes nothing to what was drawn before."""
    return torch.Generator(device).manual_seed(seed_of(seed, epoch, purpose))


def seed_of(seed: int, epoch: int, purpose: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed} {epoch} {purpose}".encode()).digest()[:8], "big") >> 1


class Batches:
    """Slices of a split as (inputs, labels, rows); in-memory data needs no DataLoader.

    Batches differ by at most one row in size, so that none is too small for batch statistics.
    """

    def __init__(self, inputs: Tensor, labels: Tensor, batch_size: int, order: Tensor | None = None) -> None:
        self.inputs, self.labels = inputs, labels
        order = torch.arange(len(inputs)) if order is None else order
        self.rows = order.tensor_split(math.ceil(len(inputs) / batch_size))

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        for rows in self.rows:
            yield self.inputs[rows], self.labels[rows], rows
