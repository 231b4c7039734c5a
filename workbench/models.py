"""Networks: a backbone that turns inputs into features, and the head or heads that the loss asks for.

A backbone sees images as float (n, channels, height, width) in [0, 1], and rows of numbers standardised with the mean
and deviation of the training split. It returns features (n, d); the head turns them into scores (n, L), or (n, 2, L).

>>> from workbench.losses import CrossEntropy
>>> network = build_network("mlp", CrossEntropy(), input_shape=(16,), n_classes=26)
>>> network(torch.zeros(5, 16)).shape
torch.Size([5, 26])
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Mapping

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.backbones import UNTRAINED, Backbone
from workbench.lookup import imported
from workbench.losses import Loss
from workbench.pretrained import PRETRAINED, TORCHVISION, from_torchvision

BACKBONES: dict[str, Backbone] = UNTRAINED | PRETRAINED


class CosineHead(nn.Module):
    """Cosines between the features and one direction per class; the loss multiplies them by its scale."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_classes, n_features))

    def forward(self, features: Tensor) -> Tensor:  # (n, d) → (n, L)
        return F.linear(F.normalize(features, dim=-1), F.normalize(self.weight, dim=-1))


class TwoHeads(nn.Module):
    """Two heads on shared features: the first predicts, the second proposes candidates."""

    def __init__(self, predicting: nn.Module, candidates: nn.Module) -> None:
        super().__init__()
        self.predicting = predicting
        self.candidates = candidates

    def forward(self, features: Tensor) -> Tensor:  # (n, d) → (n, 2, L)
        return torch.stack([self.predicting(features), self.candidates(features)], dim=1)


HEADS: dict[str, Callable[[int, int], nn.Module]] = {"linear": nn.Linear, "cosine": CosineHead}


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
        """Takes mean and deviation from the rows of the training split. Photographs are left in [0, 1]."""
        if not self.images:
            self.mean.copy_(inputs.mean(0))
            deviation = inputs.std(0, correction=0)
            self.deviation.copy_(deviation.where(deviation > 0, 1.0))  # a constant column stays as it is

    def features(self, inputs: Tensor) -> Tensor:  # (n, height, width, channels) uint8 or (n, d) → (n, width)
        if self.prepared:
            return self.backbone(inputs)
        if self.images:
            return self.backbone(inputs.permute(0, 3, 1, 2).float() / 255)
        return self.backbone((inputs - self.mean).div_(self.deviation))

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.features(inputs))


def build_network(
    model: str | nn.Module, loss: Loss, *, input_shape: tuple[int, ...], n_classes: int, seed: int = 0
) -> Network:
    """The network that `model` and the loss describe, with initial weights that depend on the seed only.

    `input_shape` is that of one input as datasets hold it: (height, width, channels) or (columns,).
    """
    channels_first = (input_shape[2], *input_shape[:2]) if len(input_shape) == 3 else tuple(input_shape)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        backbone = copy.deepcopy(model) if isinstance(model, nn.Module) else _made(model, channels_first)
        head = _head(loss, _feature_width(backbone, channels_first), n_classes)
    return Network(backbone, head, tuple(input_shape))


def backbone_named(name: str, *, allowed: Iterable[str] | None = None) -> Backbone:
    """The function that makes a backbone for an input shape.

    `torchvision:name` is a network of torchvision, and `module:factory` finds a function that lives elsewhere, in one of
    the `allowed` modules if the name is only data (`lookup.imported`).
    """
    if name in BACKBONES:
        return BACKBONES[name]
    if name.startswith(TORCHVISION):
        return from_torchvision(name)
    if ":" not in name:
        raise ValueError(
            f"there is no model named {name!r}; known: {', '.join(BACKBONES)}, torchvision:name; or give module:factory "
            "or a torch Module"
        )
    factory = imported(name, "model", allowed=allowed)
    if not callable(factory):
        raise ValueError(f"{name!r} is not a function that takes an input shape and returns a torch Module")
    return factory


def _made(name: str, channels_first: tuple[int, ...]) -> nn.Module:
    factory = backbone_named(name)
    try:
        return factory(channels_first)
    except TypeError as error:
        raise ValueError(
            f"{name!r} does not make a model: it is called with the input shape, {channels_first} ({error})"
        ) from error


def random_weights(name: str) -> bool:
    """Whether the backbone of this name has weights that know nothing yet. `linear` has none at all."""
    if name.startswith(TORCHVISION):
        return ":" not in name.removeprefix(TORCHVISION)
    return name in UNTRAINED and name != "linear"


def weights_digest(module: nn.Module) -> str:
    """sha256 of all weights of a module."""
    return hashlib.sha256(safetensors.torch.save(copied(module.state_dict()))).hexdigest()


def copied(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """A copy of some weights, on the CPU and row by row, as files hold them."""
    row_by_row = torch.contiguous_format
    return {name: value.detach().cpu().clone(memory_format=row_by_row) for name, value in weights.items()}


def _head(loss: Loss, n_features: int, n_classes: int) -> nn.Module:
    make = HEADS[loss.head]
    if loss.heads == 2:
        return TwoHeads(make(n_features, n_classes), make(n_features, n_classes))
    return make(n_features, n_classes)


def _feature_width(backbone: nn.Module, input_shape: tuple[int, ...]) -> int:
    """How many features the backbone returns, found by showing it two blank inputs."""
    if not isinstance(backbone, nn.Module):
        raise ValueError(f"a model must be a torch Module that returns features, not {type(backbone).__name__}")
    training = backbone.training
    backbone.eval()
    with torch.no_grad():
        try:
            features = backbone(torch.zeros(2, *input_shape))
        except (RuntimeError, AssertionError) as error:
            raise ValueError(f"the model does not take inputs of shape {input_shape}: {error}") from error
    backbone.train(training)
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"for 2 inputs the model returns {shape}; it must return features of shape (2, d)")
    return features.shape[1]
