"""Backbones with random weights: each is a function of the input shape, channels first, that makes a module.

The module turns images (n, channels, height, width) in [0, 1], or rows of numbers, into features (n, d).

>>> resnet50((3, 64, 64))(torch.zeros(2, 3, 64, 64)).shape
torch.Size([2, 2048])
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.networks.base import IMAGES, NONE, backbone


@backbone("Linear", weights=NONE)
def linear(input_shape: tuple[int, ...]) -> nn.Module:
    """No layer at all: the features are the inputs, so the network is its head."""
    return nn.Flatten()


@backbone("MLP")
def mlp(input_shape: tuple[int, ...], width: int = 256) -> nn.Module:
    """Two hidden layers."""
    n_inputs = torch.Size(input_shape).numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())


@backbone("CNN", inputs=IMAGES)
def cnn(input_shape: tuple[int, ...], width: int = 48) -> nn.Module:
    """Four convolutions for photographs of 28 to 64 pixels, quick enough for one CPU core."""
    return nn.Sequential(
        _activated(input_shape[0], width // 4, size=5, stride=2),
        _activated(width // 4, width // 2),
        nn.MaxPool2d(2),
        _activated(width // 2, width),
        nn.MaxPool2d(2),
        _activated(width, width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )


@backbone("Small ResNet-18", inputs=IMAGES)
def resnet18_small(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-18 for small images: a 3 × 3 stem that keeps the resolution, as is usual on CIFAR."""
    return ResNet(input_shape[0], BasicBlock, (2, 2, 2, 2), small=True)


@backbone("ResNet-18", inputs=IMAGES)
def resnet18(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-18 for photographs of about 224 pixels."""
    return ResNet(input_shape[0], BasicBlock, (2, 2, 2, 2))


@backbone("ResNet-34", inputs=IMAGES)
def resnet34(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-34 for photographs of about 224 pixels."""
    return ResNet(input_shape[0], BasicBlock, (3, 4, 6, 3))


@backbone("ResNet-50", inputs=IMAGES)
def resnet50(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-50 for photographs of about 224 pixels."""
    return ResNet(input_shape[0], Bottleneck, (3, 4, 6, 3))


@backbone("DenseNet 40-40", inputs=IMAGES)
def densenet40_40(input_shape: tuple[int, ...], growth: int = 40) -> nn.Module:
    """DenseNet of depth 40 and growth 40, the CIFAR network of Garcin et al. (Huang et al. 2017, without bottlenecks)."""
    width, layers_of_a_block = 16, 12
    layers: list[nn.Module] = [_convolution(input_shape[0], width)]
    for block in range(3):
        if block > 0:  # a transition halves the resolution
            layers += [*_preactivated(width, width, size=1), nn.AvgPool2d(2)]
        for _ in range(layers_of_a_block):
            layers.append(_DenseLayer(width, growth))
            width += growth
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


@backbone("VGG16", inputs=IMAGES)
def vgg16(input_shape: tuple[int, ...]) -> nn.Module:
    """VGG16 for small images: thirteen convolutions with batch normalisation, and no hidden layers behind them.

    Column D of Simonyan and Zisserman 2015, as is usual on CIFAR. The one for photographs of 224 pixels, with its hidden
    layers and its weights for ImageNet, is `torchvision:vgg16:DEFAULT` where torchvision is installed.
    """
    n_in, layers = input_shape[0], list[nn.Module]()
    for stage, (width, n_convolutions) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        if stage > 0:
            layers.append(nn.MaxPool2d(2))
        for _ in range(n_convolutions):
            layers.append(_activated(n_in, width))
            n_in = width
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten())


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = _convolution(n_in, width, stride=stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _convolution(width, width), nn.BatchNorm2d(width)
        self.downsample = _shortcut(n_in, width, stride)

    def forward(self, x: Tensor) -> Tensor:
        inside = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(inside)) + self.downsample(x))


class Bottleneck(nn.Module):
    """Three convolutions beside a shortcut, the middle one on a quarter of the channels.

    It is the middle one that halves the resolution, as in the weights everybody uses; He et al. 2016 let the first do it.
    """

    expansion = 4

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        n_out = width * self.expansion
        self.conv1, self.bn1 = _convolution(n_in, width, size=1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = _convolution(width, width, stride=stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = _convolution(width, n_out, size=1), nn.BatchNorm2d(n_out)
        self.downsample = _shortcut(n_in, n_out, stride)

    def forward(self, x: Tensor) -> Tensor:
        inside = F.relu(self.bn1(self.conv1(x)))
        inside = F.relu(self.bn2(self.conv2(inside)))
        return F.relu(self.bn3(self.conv3(inside)) + self.downsample(x))


class ResNet(nn.Module):
    """Residual network without its last layer (He et al. 2016).

    Parameters have the names under which weights for ImageNet are published, so that those can be loaded.

    Why not torchvision's, which is `torchvision:resnet50` here where it is installed? It is no dependency: its releases each
    go with one of torch, and a run by the name `resnet18` must be the same run on a machine without it. And its ResNets have
    neither the small stem of CIFAR nor images of one channel, which would be as many lines again around them.
    """

    def __init__(
        self,
        channels: int,
        block: type[BasicBlock] | type[Bottleneck],
        blocks: Sequence[int],  # of each stage
        *,
        small: bool = False,  # images: the stem keeps their resolution
    ) -> None:
        super().__init__()
        self.conv1 = _convolution(channels, 64) if small else _convolution(channels, 64, size=7, stride=2)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        n_in = 64
        for stage, n_blocks in enumerate(blocks):
            width, layers = 64 * 2**stage, []
            for place in range(n_blocks):
                layers.append(block(n_in, width, stride=2 if stage > 0 and place == 0 else 1))
                n_in = width * block.expansion
            self.add_module(f"layer{stage + 1}", nn.Sequential(*layers))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        x = self.maxpool(F.relu(self.bn1(self.conv1(images))))
        for name, stage in self.named_children():
            if name.startswith("layer"):
                x = stage(x)
        features: Tensor = x.mean((2, 3))
        return features


class _DenseLayer(nn.Module):
    """Adds `growth` channels to those that come in."""

    def __init__(self, n_in: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*_preactivated(n_in, growth, size=3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], dim=1)


def _convolution(n_in: int, n_out: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, size, stride=stride, padding=size // 2, bias=False)


def _activated(n_in: int, n_out: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(_convolution(n_in, n_out, size, stride), nn.BatchNorm2d(n_out), nn.ReLU())


def _preactivated(n_in: int, n_out: int, size: int) -> tuple[nn.Module, ...]:
    return nn.BatchNorm2d(n_in), nn.ReLU(), _convolution(n_in, n_out, size)


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Module:
    if stride == 1 and n_in == n_out:
        return nn.Identity()
    return nn.Sequential(_convolution(n_in, n_out, size=1, stride=stride), nn.BatchNorm2d(n_out))
