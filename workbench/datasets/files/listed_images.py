"""Base of all lists of images; some of the listed images may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.datasets.base import Split
from workbench.datasets.files.image_folders import ImagesOnDisk
from workbench.knobs import knob


@dataclass(frozen=True)
class ListedImages(ImagesOnDisk):
    """Images that a file lists, relative to a folder that is found by looking for them."""

    drop_missing: bool = knob(False, meaning="choice to leave out images that are listed and are not there")

    def listed(
        self,
        table: Path,
        folders: Sequence[Path],
        files: Sequence[str],
        labels: np.ndarray,
        attributes: Mapping[str, np.ndarray] | None = None,
    ) -> Split:
        """The images that a table lists, below the first of the folders that has any of them."""
        if not files:
            raise ValueError(f"{table} lists no image")
        root = next((folder for folder in folders if any((folder / file).is_file() for file in files)), None)
        if root is None:
            places = ", ".join(str(folder) for folder in folders)
            raise ValueError(
                f"{table} lists {files[0]} and others, and none of them is in {places}; put the images there"
            )
        there = np.array([(root / file).is_file() for file in files])
        if not (self.drop_missing or there.all()):
            first = files[int(np.flatnonzero(~there)[0])]
            raise ValueError(
                f"{np.sum(~there)} of the {len(files)} images that {table} lists are not in {root}, such as {first}; fetch "
                "them, or leave them out with drop_missing=True"
            )
        return Split(self.images(root, files), labels, attributes=attributes).rows(there)


@dataclass(frozen=True)
class TaggedImages(ListedImages):
    """Listed images with several labels each, or none."""

    drop_unlabelled: bool = knob(False, meaning="choice to leave out images without a label, as many papers do")

    def listed(
        self,
        table: Path,
        folders: Sequence[Path],
        files: Sequence[str],
        labels: np.ndarray,
        attributes: Mapping[str, np.ndarray] | None = None,
    ) -> Split:
        split = super().listed(table, folders, files, labels, attributes)
        return split.rows(split.labels.any(axis=1)) if self.drop_unlabelled else split
