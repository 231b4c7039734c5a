"""Datasets: three named splits, class names, groups, counts, and P(y|x) where it is known.

load_dataset("garden")        plants drawn by a program, with an exactly known posterior
load_dataset("meadow")        their many-label sister
load_dataset("letters")       UCI Letter Recognition, 26 confusable classes
load_dataset("digits")        handwritten digits of scikit-learn
load_dataset("symbols")       symbols drawn by a program, as strokes
load_dataset("names")         countries and languages in 308 languages, with an exactly known posterior
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
Run(data, transforms=(HorizontalFlip(), PaddedCrop(4), Normalise())) changes training images;
data.with_groups([…]) gives its classes groups, within which labels get noisy.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

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
from workbench.datasets.names import Names
from workbench.datasets.plants.garden import Garden
from workbench.datasets.plants.meadow import Meadow
from workbench.datasets.sampled_ambiguity import ambiguity_of_samples
from workbench.datasets.symbols import Symbols
from workbench.datasets.transforms import (
    TRANSFORMS,
    Groups,
    LabelNoise,
    LongTail,
    ParetoTail,
    SampledClasses,
    SampledGroups,
    SampledRows,
    Transform,
    ZeroLabels,
)

__all__ = [
    "AUGMENTATIONS",
    "DATASETS",
    "TRANSFORMS",
    "Augmentation",
    "Dataset",
    "DatasetSpec",
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
    "Names",
    "Normalise",
    "PaddedCrop",
    "ParetoTail",
    "SampledClasses",
    "SampledGroups",
    "SampledRows",
    "Split",
    "Symbols",
    "Torchvision",
    "Transform",
    "ZeroLabels",
    "ambiguity_of_samples",
    "load_dataset",
    "load_spec",
    "recipe_class",
]

# Name → the frozen dataclass of its knobs; `.dataset()` makes it.
Named = Garden | Meadow | Letters | Digits | Symbols | Names
DATASETS: dict[str, type[Named]] = {
    "garden": Garden,
    "meadow": Meadow,
    "letters": Letters,
    "digits": Digits,
    "symbols": Symbols,
    "names": Names,
}


def load_dataset(name_or_path: str | Path, **knobs: Any) -> Dataset:
    """A dataset by its name or its path, with its knobs set: `seed`, and others that `recipe_class(name).knobs()` tells.

    Args:
        name_or_path: Which dataset.

    Names are those of `DATASETS`; a path is a folder or lists of images, a CSV of labels, Pl@ntNet-300K,
    COCO, NUS-WIDE, CIFAR's binary version or MNIST's files, as the module says. A knob that is not there lists those that
    are.

    >>> load_dataset("letters")
    Dataset('letters': 15 974 / 2 013 / 2 013 rows of 16, 26 classes)
    >>> load_dataset("letter")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    ValueError: there is no dataset 'letter' and no such path; there are garden, meadow, letters, digits, ...
    """
    return _recipe(name_or_path, knobs).dataset()


def _recipe(name_or_path: str | Path, knobs: Mapping[str, Any]) -> Named | OnDisk:
    """The recipe of a dataset with its knobs set; `dataset()` loads it."""
    recipe = recipe_class(name_or_path)
    if unknown := [knob for knob in knobs if knob not in recipe.knobs()]:
        raise ValueError(f"{name_or_path} has no knob {', '.join(unknown)}; it has {', '.join(recipe.knobs())}")
    return recipe(Path(name_or_path), **knobs) if issubclass(recipe, OnDisk) else recipe(**knobs)


def recipe_class(name_or_path: str | Path) -> type[Named] | type[OnDisk]:
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
    return DatasetSpec.from_json(spec, allowed=allowed).load()


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset that is described and not loaded: a `Run` may hold one in place of the data.

    Args:
        name: Name or path of the dataset.
        knobs: Knobs of the dataset; others stand at their defaults.
        transforms: Transforms of the dataset, in their order.
        key: Key of its content, transforms included; None if it is not known.

    Raises:
        ValueError: There is no such dataset, or it has no such knob.

    >>> DatasetSpec("digits").to_json()
    {'name': 'digits', 'knobs': {'seed': 0}}
    """

    name: str
    knobs: Mapping[str, Any] = field(default_factory=dict, hash=False)
    transforms: tuple[Transform, ...] = ()
    key: str | None = None

    def __post_init__(self) -> None:
        recipe = _recipe(self.name, self.knobs)
        object.__setattr__(self, "name", str(recipe.path) if isinstance(recipe, OnDisk) else self.name)
        object.__setattr__(self, "knobs", recipe.settings())

    @classmethod
    def from_json(cls, spec: Mapping[str, Any], *, key: str | None = None, allowed: Iterable[str] = ()) -> Self:
        """The spec that `to_json` and `Dataset.spec` write; transforms of yours must live in `allowed` modules."""
        changes = tuple(transforms.from_spec(each, allowed=allowed) for each in spec.get("transforms", ()))
        return cls(spec["name"], spec.get("knobs", {}), changes, key)

    def to_json(self) -> dict[str, Any]:
        """The spec as JSON types: what `Dataset.spec` is once it is loaded."""
        changes = {"transforms": [each.spec() for each in self.transforms]} if self.transforms else {}
        return {"name": self.name, "knobs": dict(self.knobs), **changes}

    def load(self) -> Dataset:
        """Load the dataset, with its transforms.

        Raises:
            ValueError: Its content has changed since `key` was written.
        """
        data = load_dataset(self.name, **self.knobs).transformed(*self.transforms)
        if self.key not in (None, data.key):
            raise ValueError(f"{data.name} is not the data this run was trained on: its content has changed since")
        return data
