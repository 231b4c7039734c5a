"""The shape of a backbone: a function of the input shape that makes a module, with a name and what it looks at."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

TORCHVISION = "torchvision:"  # what the name of a network of torchvision begins with
ANY, IMAGES, DRAWINGS = "any", "images", "drawings"  # inputs of a backbone: rows of numbers as well, or one kind only
OF_A_DRAWING = 167  # numbers
NONE, RANDOM, TRAINED = "none", "random", "trained"  # the weights that it has when it is made


@dataclass(frozen=True)
class Backbone:
    """A function of the input shape, channels first, that makes a module; the module turns inputs into features (n, d)."""

    name: str
    title: str  # for people: ResNet-18
    about: str
    make: Callable[..., nn.Module]
    inputs: str = ANY
    weights: str = RANDOM
    classifier: bool = False  # the module ends in a linear layer with the scores of its own classes

    def __call__(self, input_shape: tuple[int, ...], **sizes: Any) -> nn.Module:
        if self.inputs == IMAGES:
            check_images(self.name, input_shape)
        if self.inputs == DRAWINGS:
            check_drawings(self.name, input_shape)
        return self.make(input_shape, **sizes)


def backbone(
    title: str, *, inputs: str = ANY, weights: str = RANDOM, classifier: bool = False
) -> Callable[[Callable[..., nn.Module]], Backbone]:
    """Makes a backbone of a function: its name is that of the function, what it is the first line of the docstring."""

    def declared(make: Callable[..., nn.Module]) -> Backbone:
        about = (inspect.getdoc(make) or "").split("\n")[0]
        return Backbone(make.__name__.replace("_", "-"), title, about, make, inputs, weights, classifier)

    return declared


def check_images(name: str, input_shape: tuple[int, ...]) -> None:
    """An error for rows of numbers."""
    if len(input_shape) != 3:
        raise ValueError(f"{name} looks at images, the inputs have shape {input_shape}; use 'mlp' or 'linear'")


def check_drawings(name: str, input_shape: tuple[int, ...]) -> None:
    """An error for anything but the numbers that `workbench.drawings.inputs` computes of a drawing."""
    if input_shape != (OF_A_DRAWING,):
        raise ValueError(
            f"{name} reads the {OF_A_DRAWING} numbers of a drawing (wb.drawings.inputs), the inputs have shape {input_shape}; "
            "use 'mlp' or 'linear'"
        )
