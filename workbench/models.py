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
import importlib
from collections.abc import Callable

import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.losses import Loss

Backbone = Callable[[tuple[int, ...]], nn.Module]  # input shape, channels first → module that returns features


def linear(input_shape: tuple[int, ...]) -> nn.Module:
    """No layer at all: the features are the inputs, so the network is its head."""
    return nn.Flatten()


def mlp(input_shape: tuple[int, ...], width: int = 256) -> nn.Module:
    """Two hidden layers."""
    n_inputs = torch.Size(input_shape).numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())


def cnn(input_shape: tuple[int, ...], width: int = 48) -> nn.Module:
    """Four convolutions for photographs of 28 to 64 pixels, quick enough for one CPU core."""
    channels = _channels(input_shape, "cnn")
    return nn.Sequential(
        _convolution(channels, width // 4, size=5, stride=2),
        _convolution(width // 4, width // 2),
        nn.MaxPool2d(2),
        _convolution(width // 2, width),
        nn.MaxPool2d(2),
        _convolution(width, width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )


def resnet18_small(input_shape: tuple[int, ...], width: int = 64) -> nn.Module:
    """ResNet-18 for small images: a 3 × 3 stem that keeps the resolution, as is usual on CIFAR."""
    layers: list[nn.Module] = [_convolution(_channels(input_shape, "resnet18-small"), width)]
    n_in = width
    for stage in range(4):
        n_out = width * 2**stage
        layers += [_ResidualBlock(n_in, n_out, stride=1 if stage == 0 else 2), _ResidualBlock(n_out, n_out)]
        n_in = n_out
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


def densenet40_40(input_shape: tuple[int, ...], growth: int = 40) -> nn.Module:
    """DenseNet of depth 40 and growth 40, the CIFAR network of Garcin et al. (Huang et al. 2017, without bottlenecks)."""
    width, layers_of_a_block = 16, 12
    layers: list[nn.Module] = [nn.Conv2d(_channels(input_shape, "densenet40-40"), width, 3, padding=1, bias=False)]
    for block in range(3):
        if block > 0:  # a transition halves the resolution
            layers += [*_activated_convolution(width, width, size=1), nn.AvgPool2d(2)]
        for _ in range(layers_of_a_block):
            layers.append(_DenseLayer(width, growth))
            width += growth
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


BACKBONES: dict[str, Backbone] = {
    "linear": linear,
    "mlp": mlp,
    "cnn": cnn,
    "resnet18-small": resnet18_small,
    "densenet40-40": densenet40_40,
}


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

    def __init__(self, backbone: nn.Module, head: nn.Module, input_shape: tuple[int, ...]) -> None:
        super().__init__()
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
        if self.images:
            return self.backbone(inputs.permute(0, 3, 1, 2).float() / 255)
        return self.backbone((inputs - self.mean) / self.deviation)

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
        backbone = copy.deepcopy(model) if isinstance(model, nn.Module) else backbone_named(model)(channels_first)
        head = _head(loss, _feature_width(backbone, channels_first), n_classes)
    return Network(backbone, head, tuple(input_shape))


def backbone_named(name: str) -> Backbone:
    """The function that makes a backbone for an input shape; `module:factory` finds one that lives elsewhere."""
    if name in BACKBONES:
        return BACKBONES[name]
    module_name, colon, factory_name = name.partition(":")
    if not colon:
        raise ValueError(
            f"there is no model named {name!r}; known: {', '.join(BACKBONES)}; or give module:factory or a torch Module"
        )
    try:
        factory = getattr(importlib.import_module(module_name), factory_name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{name!r} does not name a model: {error}") from None
    if not callable(factory):
        raise ValueError(f"{name!r} is not a function that takes an input shape and returns a torch Module")
    return factory


def weights_digest(module: nn.Module) -> str:
    """sha256 of all weights of a module."""
    weights = {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}
    return hashlib.sha256(safetensors.torch.save(weights)).hexdigest()


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
        except RuntimeError as error:
            raise ValueError(f"the model does not take inputs of shape {input_shape}: {error}") from error
    backbone.train(training)
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
        shape = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise ValueError(f"for 2 inputs the model returns {shape}; it must return features of shape (2, d)")
    return features.shape[1]


def _channels(input_shape: tuple[int, ...], name: str) -> int:
    if len(input_shape) != 3:
        raise ValueError(f"{name} looks at images, the inputs have shape {input_shape}; use 'mlp' or 'linear'")
    return input_shape[0]


def _convolution(n_in: int, n_out: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, size, stride=stride, padding=size // 2, bias=False), nn.BatchNorm2d(n_out), nn.ReLU()
    )


def _activated_convolution(n_in: int, n_out: int, size: int) -> tuple[nn.Module, ...]:
    return nn.BatchNorm2d(n_in), nn.ReLU(), nn.Conv2d(n_in, n_out, size, padding=size // 2, bias=False)


class _DenseLayer(nn.Module):
    """Adds `growth` channels to those that come in."""

    def __init__(self, n_in: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_activated_convolution(n_in, growth, size=3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], dim=1)


class _ResidualBlock(nn.Module):
    def __init__(self, n_in: int, n_out: int, stride: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(
            _convolution(n_in, n_out, stride=stride),
            nn.Conv2d(n_out, n_out, 3, padding=1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride=stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.body(x) + self.shortcut(x))
