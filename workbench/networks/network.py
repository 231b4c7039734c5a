"""Networks: a backbone that turns inputs into features, and the head or heads that the loss asks for.

A backbone sees images as float (n, channels, height, width) in [0, 1], and rows of numbers standardised with the mean
and deviation of the training split. It returns features (n, d); the head turns them into scores (n, L), or (n, 2, L).
A custom network that already ends in a linear layer with L scores is taken apart: that layer is the head.

>>> from workbench.losses import CrossEntropy
>>> network = build_network("mlp", CrossEntropy(), input_shape=(16,), n_classes=26)
>>> network(torch.zeros(5, 16)).shape
torch.Size([5, 26])
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping

import numpy as np
import safetensors.torch
import torch
from torch import Tensor, nn

from workbench.losses import Loss
from workbench.networks.by_name import backbone_named, has_scores
from workbench.networks.heads import with_head

ROWS_OF_A_BLOCK = 4096  # whose deviations are held in float64 at a time


class Network(nn.Module):
    """A backbone and a head, behind the preparation that inputs need: uint8 photographs or rows of numbers go in."""

    mean: Tensor
    deviation: Tensor

    def __init__(
        self, backbone: nn.Module, head: nn.Module, input_shape: tuple[int, ...], *, prepared: bool = False
    ) -> None:
        super().__init__()
        self.prepared = prepared  # inputs are features already, and go in as they are
        self.backbone = backbone
        self.head = head
        self.images = len(input_shape) == 3
        statistics_shape = () if self.images else input_shape
        self.register_buffer("mean", torch.zeros(statistics_shape))
        self.register_buffer("deviation", torch.ones(statistics_shape))

    def standardise(self, inputs: Tensor) -> None:
        """Takes mean and deviation from the rows of the training split. Photographs are left in [0, 1].

        NumPy adds row after row; torch shares the sum among its threads, and their number would show in the last bits.
        """
        if not self.images:
            rows = inputs.numpy()
            mean = rows.mean(0, dtype=np.float64)
            blocks = (rows[start : start + ROWS_OF_A_BLOCK] for start in range(0, len(rows), ROWS_OF_A_BLOCK))
            deviation = np.sqrt(sum(np.square(block - mean).sum(0) for block in blocks) / len(rows))
            self.mean.copy_(torch.from_numpy(mean))
            self.deviation.copy_(torch.from_numpy(deviation))
            self.deviation[self.deviation == 0] = 1.0  # a constant column stays as it is

    def normalise(self, mean: Tensor, deviation: Tensor) -> None:
        """Gives each channel of photographs in [0, 1] this mean and deviation, or takes over those of stored weights."""
        self.mean, self.deviation = mean, deviation

    def features(self, inputs: Tensor) -> Tensor:  # (n, height, width, channels) uint8 or (n, d) → (n, width)
        if self.images and not self.prepared:
            inputs = inputs.permute(0, 3, 1, 2).float() / 255
            if self.mean.ndim:  # a number for each channel; without `normalise` there is none to subtract
                inputs = (inputs - self.mean[:, None, None]).div_(self.deviation[:, None, None])
        elif not self.prepared:
            inputs = (inputs - self.mean).div_(self.deviation)
        features: Tensor = self.backbone(inputs)
        return features

    def forward(self, inputs: Tensor) -> Tensor:
        scores: Tensor = self.head(self.features(inputs))
        return scores


def build_network(
    model: str | nn.Module,
    loss: Loss,
    *,
    input_shape: tuple[int, ...],
    n_classes: int,
    seed: int = 0,
    head: str = "auto",
) -> Network:
    """The network that `model` and the loss describe, with initial weights that depend on the seed only.

    `input_shape` is that of one input as datasets hold it: (height, width, channels) or (columns,). `head` says what a
    model of one's own returns: "new", features, to which the head of the loss is added; "own", the scores themselves;
    "auto" finds out. A model whose outputs are the L scores of its last linear layer is a whole classifier: that layer
    is the head, or makes way for the heads that the loss asks for, if those are others.

    >>> from workbench.losses import CrossEntropy
    >>> mine = nn.Sequential(nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 26))
    >>> network = build_network(mine, CrossEntropy(), input_shape=(16,), n_classes=26)
    >>> network.head, network.features(torch.zeros(5, 16)).shape
    (Linear(in_features=8, out_features=26, bias=True), torch.Size([5, 8]))
    """
    channels_first = (input_shape[2], *input_shape[:2]) if len(input_shape) == 3 else tuple(input_shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        backbone = copy.deepcopy(model) if isinstance(model, nn.Module) else _build(model, channels_first)
        given = head if has_scores(model) else "new"
        backbone, last = with_head(backbone, loss, channels_first, n_classes, given)
    return Network(backbone, last, tuple(input_shape))


def _build(name: str, channels_first: tuple[int, ...]) -> nn.Module:
    factory = backbone_named(name)
    try:
        return factory(channels_first)
    except TypeError as error:
        raise ValueError(
            f"{name!r} does not make a model: it is called with the input shape, {channels_first} ({error})"
        ) from error


def weights_digest(module: nn.Module) -> str:
    """sha256 of all weights of a module."""
    return hashlib.sha256(safetensors.torch.save(copied(module.state_dict()))).hexdigest()


def copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of some weights, on the CPU and row by row, as files hold them."""
    row_by_row = torch.contiguous_format
    return {name: value.detach().cpu().clone(memory_format=row_by_row) for name, value in weights.items()}
