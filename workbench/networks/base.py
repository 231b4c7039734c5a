"""The shape of a backbone: a function of the input shape that makes a module, with a name and what it looks at."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

ANY, IMAGES = "any", "images"  # what a backbone looks at: rows of numbers as well, or images only
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

    def __call__(self, input_shape: tuple[int, ...], **sizes: Any) -> nn.Module:
        if self.inputs == IMAGES:
            check_images(self.name, input_shape)
        return self.make(input_shape, **sizes)


def backbone(title: str, *, inputs: str = ANY, weights: str = RANDOM) -> Callable[[Callable[..., nn.Module]], Backbone]:
    """Makes a backbone of a function: its name is that of the function, what it is the first line of the docstring."""

    def declared(make: Callable[..., nn.Module]) -> Backbone:
        about = (inspect.getdoc(make) or "").split("\n")[0]
        return Backbone(make.__name__.replace("_", "-"), title, about, make, inputs, weights)

    return declared


def check_images(name: str, input_shape: tuple[int, ...]) -> None:
    """An error for rows of numbers."""
    if len(input_shape) != 3:
        raise ValueError(f"{name} looks at images, the inputs have shape {input_shape}; use 'mlp' or 'linear'")
