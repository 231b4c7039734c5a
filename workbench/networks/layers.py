"""Layers of the backbones: residual and dense blocks, and a convolution with its normalisation."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class BasicBlock(nn.Module):
    """Two convolutions beside a shortcut."""

    expansion = 1

    def __init__(self, n_in: int, width: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = convolution(n_in, width, stride=stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width), nn.BatchNorm2d(width)
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
        self.conv1, self.bn1 = convolution(n_in, width, size=1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, stride=stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = convolution(width, n_out, size=1), nn.BatchNorm2d(n_out)
        self.downsample = _shortcut(n_in, n_out, stride)

    def forward(self, x: Tensor) -> Tensor:
        inside = F.relu(self.bn1(self.conv1(x)))
        inside = F.relu(self.bn2(self.conv2(inside)))
        return F.relu(self.bn3(self.conv3(inside)) + self.downsample(x))


class ResNet(nn.Module):
    """Residual network without its last layer (He et al. 2016).

    Parameters have the names under which weights for ImageNet are published, so that those can be loaded.

    Why not torchvision's, which is `torchvision:resnet50` here where it is installed? It is not a dependency: its releases each
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
        self.conv1 = convolution(channels, 64) if small else convolution(channels, 64, size=7, stride=2)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.Identity() if small else nn.MaxPool2d(3, stride=2, padding=1)
        n_in = 64
        for stage, n_blocks in enumerate(blocks):
            width, layers = 64 * 2**stage, []
            for block_number in range(n_blocks):
                layers.append(block(n_in, width, stride=2 if stage > 0 and block_number == 0 else 1))
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


class DenseLayer(nn.Module):
    """Adds `growth` channels to those that come in."""

    def __init__(self, n_in: int, growth: int) -> None:
        super().__init__()
        self.body = nn.Sequential(*preactivated(n_in, growth, size=3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.body(x)], dim=1)


def convolution(n_in: int, n_out: int, size: int = 3, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(n_in, n_out, size, stride=stride, padding=size // 2, bias=False)


def activated(n_in: int, n_out: int, size: int = 3, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(convolution(n_in, n_out, size, stride), nn.BatchNorm2d(n_out), nn.ReLU())


def preactivated(n_in: int, n_out: int, size: int) -> tuple[nn.Module, ...]:
    return nn.BatchNorm2d(n_in), nn.ReLU(), convolution(n_in, n_out, size)


def _shortcut(n_in: int, n_out: int, stride: int) -> nn.Module:
    if stride == 1 and n_in == n_out:
        return nn.Identity()
    return nn.Sequential(convolution(n_in, n_out, size=1, stride=stride), nn.BatchNorm2d(n_out))
