"""Folders of images, one folder per class, and Pl@ntNet-300K, which is one with files about its species and images."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from workbench.datasets.base import Dataset, Split
from workbench.datasets.files.base import OnDisk, listed
from workbench.datasets.image_files import ImageFiles
from workbench.knobs import knob
from workbench.untrusted_files import read_json

SUFFIXES = {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm"}
# What the folder of a split may be called; Pl@ntNet-300K has been published under the last of each.
SPLIT_FOLDERS = {
    "train": ("train", "images_train"),
    "val": ("val", "valid", "validation", "images_val"),
    "test": ("test", "images_test"),
}
FACTS = ("organ", "author", "license")  # that Pl@ntNet-300K knows of an image


@dataclass(frozen=True)
class ImagesOnDisk(OnDisk):
    """Base of images in files: side after resizing, and side of the central square that is cropped."""

    size: int = knob(224, low=32, high=512, minimum=1, maximum=4096, meaning="side of the square cut out, in pixels")
    resize: int = knob(256, low=32, high=512, minimum=1, maximum=4096, meaning="shorter side of the resized image")
    drop_small: bool = knob(
        False, meaning="choice to leave out classes of fewer than 4 images where they are split here"
    )

    def images(self, root: Path, files: Sequence[str]) -> ImageFiles:
        """The files below a folder, as images."""
        return ImageFiles(root, np.array(files, dtype=object), self.size, self.resize)


@dataclass(frozen=True)
class ImageFolder(ImagesOnDisk):
    """A folder of images: `train/<class>/…`, `val/<class>/…` and `test/<class>/…`, or just `<class>/…`.

    Without splits, ⌈0.1·n_j⌉ images of each class go to val and to test. If there is only one folder beside that of
    training, it is the test, and ⌈0.1·n_j⌉ training images of each class are val. (Of ImageNet only `train` and `val`
    have labels, and papers test on `val`.) The classes are the folders of training, sorted by name; images in folders
    deeper inside belong to them.
    """

    looks_like = "a folder of images (train/<class>/…, val/<class>/…, test/<class>/…, or <class>/… alone)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return path.is_dir() and any(True for folder in _folders(path) for _ in _images(folder, path))

    def dataset(self) -> Dataset:
        """The splits, as far as they are there; the images stay in their files."""
        folders = self._split_folders()
        train_folder = folders.pop("train", self.path)
        classes = [folder.name for folder in _folders(train_folder)]
        if len(classes) < 2:
            raise ValueError(
                f"{train_folder} holds {listed(train_folder)}; it must hold two folders or more, one for each class"
            )
        names, groups = self.named(classes)
        train, *others = (self._split(folder, classes) for folder in (train_folder, *folders.values()))
        if len(others) == 2:
            val, test = others
            return Dataset(self.path.name, train, val, test, names, groups, spec=self.spec)
        if len(others) == 1:
            return self.from_two(train, others[0], names, groups)
        return Dataset.from_rows(
            train, names, groups, seed=self.seed, drop_small=self.drop_small, name=self.path.name, spec=self.spec
        )

    def named(self, classes: list[str]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        """The name of each class, and its group if it has one, from the names of their folders."""
        return tuple(classes), None

    def attributes(self, files: list[str]) -> dict[str, np.ndarray] | None:
        """Return the attributes of each image besides its class."""
        return None

    def _split_folders(self) -> dict[str, Path]:
        """Split → its folder, in the order train, val, test; empty if the path has no training folder."""
        for base in (self.path, self.path / "images"):
            found = {
                split: base / name for split, names in SPLIT_FOLDERS.items() for name in names if (base / name).is_dir()
            }
            if "train" in found:
                return found
            if found:
                raise ValueError(f"{base} holds {listed(base)}; there is no train/ to learn from")
        return {}

    def _split(self, folder: Path, classes: list[str]) -> Split:
        unknown = [found.name for found in _folders(folder) if found.name not in classes]
        if unknown:
            raise ValueError(f"{folder} has classes that training lacks: {', '.join(unknown[:5])}; move or remove them")
        files: list[str] = []
        labels: list[int] = []
        for label, name in enumerate(classes):
            inside = sorted(_images(folder / name, self.path))
            files += inside
            labels += [label] * len(inside)
        if not files:
            raise ValueError(f"{folder} holds {listed(folder)}; it must hold images in one folder for each class")
        return Split(self.images(self.path, files), np.array(labels), attributes=self.attributes(files))


@dataclass(frozen=True)
class PlantNet300K(ImageFolder):
    """Pl@ntNet-300K: 306 146 photographs of 1 081 species, as published (doi:10.5281/zenodo.5645731).

    The folders of images are named by species ids, `plantnet300K_species_id_2_name.json` gives the names, whose first
    word is the genus: the group. `plantnet300K_metadata.json`, where it is there, says for each image which organ it
    shows, who took it and under which license it may be used: the attributes.

    Garcin, thesis, chapter 3.
    """

    looks_like = "Pl@ntNet-300K (plantnet300K_species_id_2_name.json beside the folders of images)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return (path / "plantnet300K_species_id_2_name.json").is_file()

    def named(self, classes: list[str]) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
        path = self.path / "plantnet300K_species_id_2_name.json"
        name_of = _json(path)
        if unknown := [species for species in classes if species not in name_of]:
            raise ValueError(f"{path} does not name the species {', '.join(unknown[:5])}, which have folders of images")
        for species in classes:
            if not isinstance(name_of[species], str) or not name_of[species].strip():
                raise ValueError(f"{path} gives species {species} the name {name_of[species]!r}; give it one in words")
        names = tuple(name_of[species] for species in classes)
        return names, tuple(name.split()[0] for name in names)

    def attributes(self, files: list[str]) -> dict[str, np.ndarray] | None:
        if not self.metadata:
            return None
        rows = [self._known_of(PurePosixPath(file).stem) for file in files]
        return {fact: np.array([str(row.get(fact) or "unknown") for row in rows]) for fact in FACTS}

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """Id of an image, which is the name of its file → what is known of it; empty without the file of metadata."""
        return _json(self._metadata_file) if self._metadata_file.is_file() else {}

    @property
    def _metadata_file(self) -> Path:
        return self.path / "plantnet300K_metadata.json"

    def _known_of(self, image: str) -> dict[str, Any]:
        known = self.metadata.get(image, {})
        if not isinstance(known, dict):
            raise ValueError(f"{self._metadata_file} says {known!r} of image {image}; give {', '.join(FACTS)} by name")
        return known


def _folders(path: Path) -> list[Path]:
    """The folders inside a folder, sorted by name, without hidden ones."""
    return sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))


def _images(folder: Path, root: Path) -> Iterator[str]:
    """The images anywhere inside a folder, relative to the root; hidden files and those of other kinds are passed over."""
    for place, _, names in os.walk(folder):
        inside = Path(place).relative_to(root).as_posix()
        for name in names:
            if os.path.splitext(name)[1].lower() in SUFFIXES and not name.startswith("."):
                yield f"{inside}/{name}"


def images_inside(folder: Path) -> Iterator[str]:
    """The images anywhere inside a folder, relative to it."""
    return (name.removeprefix("./") for name in _images(folder, folder))


def _json(path: Path) -> dict[str, Any]:
    try:
        content = read_json(path)
    except ValueError as error:
        raise ValueError(f"{path} is not JSON ({error}); fetch it again") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds a {type(content).__name__}, not one entry per id; fetch it again")
    return content
