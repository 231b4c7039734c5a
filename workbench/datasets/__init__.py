"""Datasets: three named splits, class names, groups, counts, and P(y|x) where it is known.

load_dataset("garden")        plants drawn by a program, with an exactly known posterior
load_dataset("meadow")        their many-label sister
load_dataset("letters")       UCI Letter Recognition, 26 confusable classes
load_dataset("digits")        handwritten digits of scikit-learn
Dataset.from_arrays(X, y)     your own arrays
load_dataset("path/to/data")  your own files:

    train/<class>/…, val/<class>/…, test/<class>/…        images; also <class>/… alone
    labels.csv: file,label                                images with one label, several (a;b;c) or none
    plantnet300K_species_id_2_name.json, images/, …       Pl@ntNet-300K
    annotations/instances_train2017.json, train2017/, …   COCO, many labels
    Groundtruth/TrainTestLabels/, ImageList/, Flickr/     NUS-WIDE, many labels
    ImageNet_LT_train.txt: path label, …                  lists of images, as those of ImageNet-LT
    data_batch_1.bin, …  or  train.bin, test.bin, …       CIFAR-10 and CIFAR-100, binary version
    train-images-idx3-ubyte.gz, …                         MNIST and Fashion-MNIST

data.transformed(LabelNoise(0.2), LongTail(100), ZeroLabels(2)) changes a dataset, and its key, name and spec tell so;
Run(data, transforms=(HorizontalFlip(), PaddedCrop(4), Normalise())) changes images on their way into the network;
data.with_groups([…]) gives its classes groups, within which labels get noisy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from workbench.datasets import transforms
from workbench.datasets.augmentations import (
    AUGMENTATIONS,
    Augmentation,
    HorizontalFlip,
    ImageTransform,
    Normalise,
    PaddedCrop,
    Torchvision,
)
from workbench.datasets.base import Dataset, Split
from workbench.datasets.bundled import Digits, Letters
from workbench.datasets.files import kind_at
from workbench.datasets.files.base import OnDisk
from workbench.datasets.image_files import ImageFiles
from workbench.datasets.plants.garden import Garden
from workbench.datasets.plants.meadow import Meadow
from workbench.datasets.transforms import TRANSFORMS, Groups, LabelNoise, LongTail, ParetoTail, Transform, ZeroLabels

__all__ = [
    "AUGMENTATIONS",
    "DATASETS",
    "TRANSFORMS",
    "Augmentation",
    "Dataset",
    "Digits",
    "Garden",
    "Groups",
    "HorizontalFlip",
    "ImageFiles",
    "ImageTransform",
    "LabelNoise",
    "Letters",
    "LongTail",
    "Meadow",
    "Normalise",
    "PaddedCrop",
    "ParetoTail",
    "Split",
    "Torchvision",
    "Transform",
    "ZeroLabels",
    "load_dataset",
    "load_spec",
    "recipe_class",
]

# Name → the frozen dataclass of its knobs; `.dataset()` makes it.
DATASETS: dict[str, type[Garden] | type[Meadow] | type[Letters] | type[Digits]] = {
    "garden": Garden,
    "meadow": Meadow,
    "letters": Letters,
    "digits": Digits,
}


def load_dataset(name_or_path: str | Path, **knobs: Any) -> Dataset:
    """A dataset by its name or its path, with its knobs set: `seed`, and others that `recipe_class(name).knobs()` tells.

    - `name_or_path`: which dataset.

    Names are garden, meadow, letters and digits; a path is a folder or lists of images, a CSV of labels, Pl@ntNet-300K,
    COCO, NUS-WIDE, CIFAR's binary version or MNIST's files, as the module says. A knob that is not there lists those that
    are.

    >>> load_dataset("letters")
    Dataset('letters': 15 974 / 2 013 / 2 013 rows of 16, 26 classes)
    >>> load_dataset("letter")
    Traceback (most recent call last):
        ...
    ValueError: there is no dataset 'letter' and no such path; there are garden, meadow, letters, digits, and Dataset.from_arrays
    """
    recipe = recipe_class(name_or_path)
    if unknown := [knob for knob in knobs if knob not in recipe.knobs()]:
        raise ValueError(f"{name_or_path} has no knob {', '.join(unknown)}; it has {', '.join(recipe.knobs())}")
    if issubclass(recipe, OnDisk):
        return recipe(Path(name_or_path), **knobs).dataset()
    return recipe(**knobs).dataset()


def recipe_class(name_or_path: str | Path) -> type[Garden] | type[Meadow] | type[Letters] | type[Digits] | type[OnDisk]:
    """The class that makes the dataset of this name or path; its `knobs()` are what `load_dataset` takes."""
    if not isinstance(name_or_path, (str, os.PathLike)):
        raise ValueError(
            f"give the name or the path of a dataset, not {name_or_path!r}; Dataset.from_arrays takes arrays"
        )
    if (name := str(name_or_path)) in DATASETS:
        return DATASETS[name]
    if name and (path := Path(name_or_path).expanduser()).exists():
        return kind_at(path)
    raise ValueError(
        f"there is no dataset {name!r} and no such path; there are {', '.join(DATASETS)}, and Dataset.from_arrays"
    )


def load_spec(spec: Mapping[str, Any], *, allowed: Iterable[str] = ()) -> Dataset:
    """The dataset that `dataset.spec` describes, transforms included: foreign ones of the `allowed` modules.

    >>> noisy = load_dataset("garden", n_train=500, n_val=100, n_test=100).transformed(LabelNoise(0.2))
    >>> load_spec(noisy.spec).key == noisy.key
    True
    """
    changes = [transforms.from_spec(transform, allowed=allowed) for transform in spec.get("transforms", ())]
    return load_dataset(spec["name"], **spec["knobs"]).transformed(*changes)
