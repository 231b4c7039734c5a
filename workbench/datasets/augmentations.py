"""Augmentations of training images: flips, crops, colours. The dataset itself does not change.

A `Run` takes them among its transforms, and its key and its `run.json` tell of them. An augmentation changes the training
images anew in every epoch; `Normalise` concerns the images of all splits. Images in arrays and in files are changed alike.

An augmentation draws for every training row before the epoch begins, so that what happens to a row depends on the seed,
the epoch and the row: not on the batch it is in, on the rank that computes it, or on whether training was interrupted.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from workbench.datasets.base import Dataset
from workbench.datasets.transforms import Transform
from workbench.knobs import knob


@dataclass(frozen=True)
class ImageTransform(Transform):
    """A change of training images, for `Run(transforms=…)`."""

    def changes(self, dataset: Dataset) -> dict[str, Any]:
        raise ValueError(
            f"{self!r} changes training images, and not {dataset.name}; give it to the run, "
            f"Run(…, transforms=({self!r},))"
        )

    def check(self, input_shape: tuple[int, ...]) -> None:
        """Refuses inputs that are not images."""
        if len(input_shape) != 3:
            raise ValueError(
                f"{self!r} changes images, and the inputs are rows of {input_shape[0]} numbers; leave it out of the transforms"
            )


@dataclass(frozen=True)
class Augmentation(ImageTransform):
    """A change of the training images that is drawn anew in every epoch; val and test stay as they are.

    One of your own says what is drawn for each row, and what becomes of an image with its draw.
    """

    @abstractmethod
    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return the random draws for n rows: an array whose first axis has that length."""

    @abstractmethod
    def augmented(self, images: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """The images, uint8 (n, H, W, 1 or 3), each changed by its draw, of the same shape."""


@dataclass(frozen=True)
class HorizontalFlip(Augmentation):
    """Left becomes right, with probability p.

    >>> HorizontalFlip(1.0).augmented(np.array([[[[1], [2], [3]]]], dtype=np.uint8), np.zeros(1)).ravel().tolist()
    [3, 2, 1]
    """

    probability: float = knob(0.5, low=0.0, high=1.0, symbol="p", meaning="probability that an image is flipped")

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.random(n)

    def augmented(self, images: np.ndarray, draws: np.ndarray) -> np.ndarray:
        turned, chosen = images.copy(), draws < self.probability
        turned[chosen] = turned[chosen][:, :, ::-1]
        return turned


@dataclass(frozen=True)
class PaddedCrop(Augmentation):
    """A black border is put around an image, and a square of its former size is cut out at a random place.

    He et al. 2016, section 4.2: four pixels on each side, with flips, is the usual augmentation of CIFAR. Images in files
    are cut at a random place of a larger image already (`ImageFiles`); this comes on top.

    >>> PaddedCrop(1).augmented(np.array([[[[1], [2]], [[3], [4]]]], dtype=np.uint8), np.array([[2, 0]]))[0, ..., 0].tolist()
    [[0, 3], [0, 0]]
    """

    padding: int = knob(4, low=1, high=16, maximum=1000, unit="pixels", meaning="width of the border around the image")

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(0, 2 * self.padding, size=(n, 2), endpoint=True)  # top and left of what is cut out

    def augmented(self, images: np.ndarray, draws: np.ndarray) -> np.ndarray:
        n, *shape = images.shape
        border = (self.padding, self.padding)
        padded = np.pad(images, ((0, 0), border, border, (0, 0)))
        places = np.lib.stride_tricks.sliding_window_view(padded, shape, axis=(1, 2, 3))  # (n, top, left, 1, H, W, C)
        cut: np.ndarray = places[np.arange(n), draws[:, 0], draws[:, 1], 0]
        return cut


@dataclass(frozen=True)
class Torchvision(Augmentation):
    """A transform of `torchvision.transforms.v2` by its name, with its options: RandAugment and what else is there.

    `Torchvision("RandAugment", {"num_ops": 2, "magnitude": 9})` calls `v2.RandAugment(num_ops=2, magnitude=9)` on one
    image (C, H, W) after the other. torchvision draws from torch's own generator, which is seeded for each image. What it
    returns must be a uint8 image of the same shape. It is imported when training begins; another release of it may draw
    otherwise.
    """

    name: str = "RandAugment"
    options: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.name, str) or not isinstance(self.options, Mapping):
            raise ValueError(
                f"{self!r}: give the name of a transform of torchvision and its options by name, such as "
                "Torchvision('RandAugment', {'magnitude': 9})"
            )
        object.__setattr__(self, "options", dict(self.options))

    def spec(self) -> dict[str, Any]:
        return {"transform": "Torchvision", "knobs": {"name": self.name, "options": self.options}}

    def check(self, input_shape: tuple[int, ...]) -> None:
        super().check(input_shape)
        self.augmented(np.zeros((1, *input_shape), dtype=np.uint8), np.zeros(1, dtype=np.int64))

    def draws(self, n: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(2**63 - 1, size=n)  # seeds

    def augmented(self, images: np.ndarray, draws: np.ndarray) -> np.ndarray:
        import torch

        transform, changed = self._transform(), np.empty_like(images)
        with torch.random.fork_rng(devices=[]):  # dropout draws from the same generator
            for image, seed, place in zip(images, draws.tolist(), changed, strict=True):
                torch.default_generator.manual_seed(seed)
                found = transform(torch.from_numpy(image).permute(2, 0, 1).contiguous())
                if found.dtype != torch.uint8 or found.shape != (image.shape[2], *image.shape[:2]):
                    raise ValueError(
                        f"{self!r} makes {found.dtype} of shape {tuple(found.shape)} of an image of shape {image.shape}; "
                        "take a transform that leaves images uint8 and of the same size"
                    )
                place[...] = found.permute(1, 2, 0).numpy()
        return changed

    def _transform(self) -> Any:
        try:
            from torchvision.transforms import v2
        except (ImportError, RuntimeError) as error:  # a torchvision that was built for another torch raises the latter
            raise ValueError(
                f"{self!r} needs torchvision, and that cannot be imported here ({error}); install the one that fits your "
                "torch, or leave it out of the transforms"
            ) from None
        kind = getattr(v2, self.name, None)
        if not (isinstance(kind, type) and issubclass(kind, v2.Transform)):
            raise ValueError(f"torchvision.transforms.v2 has no transform named {self.name!r}")
        try:
            return kind(**self.options)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{self!r}: torchvision does not take these options ({error})") from None


@dataclass(frozen=True)
class Normalise(ImageTransform):
    r"""Colours around zero, for all images: in training, in val and test, and wherever the trained model is used.

    $$ x_c \mapsto (x_c - \mu_c) / \sigma_c $$

    for each channel c of images in [0, 1]; as they stand, from −1 to 1. Mean and deviation are kept among the weights of
    the network, which goes on taking images as the dataset holds them.
    """

    mean: tuple[float, ...] = (0.5, 0.5, 0.5)
    std: tuple[float, ...] = (0.5, 0.5, 0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("mean", "std"):
            given = getattr(self, name)
            if not isinstance(given, (tuple, list)) or not all(_finite(value) for value in given):
                raise ValueError(f"Normalise: {name} = {given!r}; give a number for each channel, of images in [0, 1]")
            object.__setattr__(self, name, tuple(float(value) for value in given))
        if len(self.mean) != len(self.std) or min(self.std, default=0.0) <= 0:
            raise ValueError(f"{self!r}: give as many deviations, above 0, as means")

    def spec(self) -> dict[str, Any]:
        return {"transform": "Normalise", "knobs": {"mean": list(self.mean), "std": list(self.std)}}

    def check(self, input_shape: tuple[int, ...]) -> None:
        super().check(input_shape)
        if len(self.mean) != input_shape[2]:
            raise ValueError(f"{self!r} is for images of {len(self.mean)} channels, and these have {input_shape[2]}")


AUGMENTATIONS: tuple[type[ImageTransform], ...] = (HorizontalFlip, PaddedCrop, Normalise, Torchvision)


def _finite(value: Any) -> bool:
    return isinstance(value, numbers.Real) and math.isfinite(value)
