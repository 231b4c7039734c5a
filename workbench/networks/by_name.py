"""Backbones by the name that a run and the command line use; no torch is loaded until one is made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from workbench.networks.backbones import (
    cnn,
    densenet40_40,
    efficientnet_lite0,
    linear,
    mlp,
    mlp_narrow,
    resnet18,
    resnet18_small,
    resnet34,
    resnet50,
    symbols_mlp,
    vgg5,
    vgg5_narrow,
    vgg16,
)
from workbench.networks.base import RANDOM, TORCHVISION, Backbone
from workbench.trusted_imports import resolve

if TYPE_CHECKING:
    from torch import nn

BACKBONES: dict[str, Backbone] = {
    each.name: each
    for each in (
        linear,
        mlp,
        cnn,
        vgg5,
        resnet18_small,
        densenet40_40,
        vgg16,
        resnet18,
        resnet34,
        resnet50,
        efficientnet_lite0,
        symbols_mlp,
        mlp_narrow,
        vgg5_narrow,
    )
}


def is_module(model: Any) -> bool:
    """Whether something is a torch Module. Where torch is not loaded, nothing is."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def foreign(model: str | nn.Module) -> bool:
    """Whether a model is the user's own (a Module or `module:factory`), which may be a whole classifier."""
    return not isinstance(model, str) or not (model in BACKBONES or model.startswith(TORCHVISION))


def has_scores(model: str | nn.Module) -> bool:
    """Whether a model may be a whole classifier: the user's own, or a built-in one that ends in scores."""
    return foreign(model) or (model in BACKBONES and BACKBONES[str(model)].classifier)


def backbone_named(name: str, *, allowed: Iterable[str] | None = None) -> Callable[[tuple[int, ...]], nn.Module]:
    """The function that makes a backbone for an input shape.

    `torchvision:name` is a network of torchvision, and `module:factory` finds a function that lives elsewhere, in one of
    the `allowed` modules if the name is only data (`trusted_imports.resolve`).
    """
    if name.startswith(TORCHVISION):
        from workbench.networks.pretrained import from_torchvision

        return from_torchvision(name)
    others = ", torchvision:name; or give module:factory or a torch Module"
    factory: Callable[[tuple[int, ...]], nn.Module] = resolve(name, BACKBONES, "model", others=others, allowed=allowed)
    if not callable(factory):
        raise ValueError(f"{name!r} is not a function that takes an input shape and returns a torch Module")
    return factory


def random_weights(name: str) -> bool:
    """Whether the backbone of this name has weights that know nothing yet. `linear` has none at all."""
    if name.startswith(TORCHVISION):
        return ":" not in name.removeprefix(TORCHVISION)
    return name in BACKBONES and BACKBONES[name].weights == RANDOM
