"""Networks: backbones, pretrained weights, and the heads that losses ask for.

`BACKBONES` lists the backbones. One more is a function of the input shape under `@backbone(...)` (`base.py`) and a place in
the tuple: the command line, the errors and the contract tests take it up.
"""

from workbench.networks.backbones import (
    cnn,
    densenet40_40,
    linear,
    mlp,
    resnet18,
    resnet18_small,
    resnet34,
    resnet50,
    vgg16,
)
from workbench.networks.base import Backbone
from workbench.networks.pretrained import efficientnet_lite0

# By the name that a run and the command line use.
BACKBONES: dict[str, Backbone] = {
    each.name: each
    for each in (
        linear,
        mlp,
        cnn,
        resnet18_small,
        densenet40_40,
        vgg16,
        resnet18,
        resnet34,
        resnet50,
        efficientnet_lite0,
    )
}

__all__ = ["BACKBONES", "Backbone"]
