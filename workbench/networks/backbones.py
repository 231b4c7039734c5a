"""Backbones: each is a function of the input shape, channels first, that makes a module. Torch is loaded when it is called.

The module turns images (n, channels, height, width) in [0, 1], or rows of numbers, into features (n, d).

>>> import torch
>>> resnet50((3, 64, 64))(torch.zeros(2, 3, 64, 64)).shape
torch.Size([2, 2048])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.networks.base import DRAWINGS, IMAGES, NONE, TRAINED, backbone

if TYPE_CHECKING:
    from torch import nn


@backbone("Linear", weights=NONE)
def linear(input_shape: tuple[int, ...]) -> nn.Module:
    """No layer at all: the features are the inputs, so the network is its head."""
    from torch import nn

    return nn.Flatten()


@backbone("MLP")
def mlp(input_shape: tuple[int, ...], width: int = 256) -> nn.Module:
    """Two hidden layers."""
    import torch
    from torch import nn

    n_inputs = torch.Size(input_shape).numel()
    return nn.Sequential(nn.Flatten(), nn.Linear(n_inputs, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())


@backbone("Narrow MLP")
def mlp_narrow(input_shape: tuple[int, ...]) -> nn.Module:
    """Two hidden layers of eight units, too few to memorise."""
    return mlp(input_shape, width=8)


@backbone("CNN", inputs=IMAGES)
def cnn(input_shape: tuple[int, ...], width: int = 48) -> nn.Module:
    """Four convolutions for photographs of 28 to 64 pixels, quick enough for one CPU core."""
    from torch import nn

    from workbench.networks.layers import activated

    return nn.Sequential(
        activated(input_shape[0], width // 4, size=5, stride=2),
        activated(width // 4, width // 2),
        nn.MaxPool2d(2),
        activated(width // 2, width),
        nn.MaxPool2d(2),
        activated(width, width),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
    )


@backbone("VGG5", inputs=IMAGES)
def vgg5(input_shape: tuple[int, ...], width: int = 16) -> nn.Module:
    """Five 3 × 3 convolutions with batch normalisation for images of 16 to 32 pixels; it can memorise some thousand of them."""
    from torch import nn

    from workbench.networks.layers import activated

    return nn.Sequential(
        activated(input_shape[0], width),
        nn.MaxPool2d(2),
        activated(width, 2 * width),
        nn.MaxPool2d(2),
        activated(2 * width, 4 * width),
        activated(4 * width, 4 * width),
        nn.MaxPool2d(2),
        activated(4 * width, 8 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


@backbone("Narrow VGG5", inputs=IMAGES)
def vgg5_narrow(input_shape: tuple[int, ...]) -> nn.Module:
    """VGG5 with a quarter of its channels, too few to memorise."""
    return vgg5(input_shape, width=4)


@backbone("Small ResNet-18", inputs=IMAGES)
def resnet18_small(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-18 for small images: a 3 × 3 stem that keeps the resolution, as is usual on CIFAR."""
    from workbench.networks.layers import BasicBlock, ResNet

    return ResNet(input_shape[0], BasicBlock, (2, 2, 2, 2), small=True)


@backbone("ResNet-18", inputs=IMAGES)
def resnet18(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-18 for photographs of about 224 pixels."""
    from workbench.networks.layers import BasicBlock, ResNet

    return ResNet(input_shape[0], BasicBlock, (2, 2, 2, 2))


@backbone("ResNet-34", inputs=IMAGES)
def resnet34(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-34 for photographs of about 224 pixels."""
    from workbench.networks.layers import BasicBlock, ResNet

    return ResNet(input_shape[0], BasicBlock, (3, 4, 6, 3))


@backbone("ResNet-50", inputs=IMAGES)
def resnet50(input_shape: tuple[int, ...]) -> nn.Module:
    """ResNet-50 for photographs of about 224 pixels."""
    from workbench.networks.layers import Bottleneck, ResNet

    return ResNet(input_shape[0], Bottleneck, (3, 4, 6, 3))


@backbone("DenseNet 40-40", inputs=IMAGES)
def densenet40_40(input_shape: tuple[int, ...], growth: int = 40) -> nn.Module:
    """DenseNet of depth 40 and growth 40, the CIFAR network of Garcin et al. (Huang et al. 2017, without bottlenecks)."""
    from torch import nn

    from workbench.networks.layers import DenseLayer, convolution, preactivated

    width, layers_of_a_block = 16, 12
    layers: list[nn.Module] = [convolution(input_shape[0], width)]
    for block in range(3):
        if block > 0:  # a transition halves the resolution
            layers += [*preactivated(width, width, size=1), nn.AvgPool2d(2)]
        for _ in range(layers_of_a_block):
            layers.append(DenseLayer(width, growth))
            width += growth
    return nn.Sequential(*layers, nn.BatchNorm2d(width), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


@backbone("VGG16", inputs=IMAGES)
def vgg16(input_shape: tuple[int, ...]) -> nn.Module:
    """VGG16 for small images: thirteen convolutions with batch normalisation, and no hidden layers behind them.

    Column D of Simonyan and Zisserman 2015, as is usual on CIFAR. The one for photographs of 224 pixels, with its hidden
    layers and its weights for ImageNet, is `torchvision:vgg16:DEFAULT` where torchvision is installed.
    """
    from torch import nn

    from workbench.networks.layers import activated

    n_in, layers = input_shape[0], list[nn.Module]()
    for stage, (width, n_convolutions) in enumerate(((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))):
        if stage > 0:
            layers.append(nn.MaxPool2d(2))
        for _ in range(n_convolutions):
            layers.append(activated(n_in, width))
            n_in = width
    return nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten())


@backbone("EfficientNet-Lite0", inputs=IMAGES, weights=TRAINED)
def efficientnet_lite0(input_shape: tuple[int, ...]) -> nn.Module:
    """EfficientNet-Lite0 with its weights for ImageNet: 1 280 features (Tan and Le 2019; Apache licence).

    Architecture and weights come in two packages, so nothing is downloaded. Images with a side of less than 128 pixels
    are enlarged.
    """
    from workbench.networks.pretrained import efficientnet

    return efficientnet(input_shape)


@backbone("Published MLP", inputs=DRAWINGS, weights=TRAINED, classifier=True)
def symbols_mlp(input_shape: tuple[int, ...]) -> nn.Module:
    """The published network of the drawing pad with its weights: two layers of 500 sigmoids, 378 symbols.

    M. Thoma, hwrt 0.2.1 (MIT licence, beside the weights in `workbench/drawings`). On data of these 378 classes its last layer
    is the head of a run; on others its scores are features.
    """
    import torch
    from torch import nn

    from workbench.drawings.network import layers

    modules: list[nn.Module] = [nn.Flatten()]
    for matrix, bias in layers():
        linear = nn.Linear(*matrix.shape)
        linear.weight.data, linear.bias.data = torch.from_numpy(matrix.T).float(), torch.from_numpy(bias).float()
        modules += [linear, nn.Sigmoid()]
    return nn.Sequential(*modules[:-1])  # the last layer gives scores
