"""Lists of images and their classes, as those of ImageNet-LT: a path and a number on every line."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from workbench.datasets.base import Dataset
from workbench.datasets.files.listed_images import ListedImages
from workbench.untrusted_files import open_regular

LONGEST_LINE = 2**12  # characters of a line that is looked at to tell a list
LINE = re.compile(r"(\S.*?)[ \t]+(\d{1,9})\s*")
OTHER_LISTS = ("_val.txt", "_test.txt")


@dataclass(frozen=True)
class ImageLists(ListedImages):
    """Lists beside a folder of images: `ImageNet_LT_train.txt`, `ImageNet_LT_val.txt`, `ImageNet_LT_test.txt`.

        train/n01440764/n01440764_190.JPEG 0
        val/n01440764/ILSVRC2012_val_00000293.JPEG 0

    Every line is a path and the number of its class, from 0. Paths begin in the folder of the lists or in one of the folders
    inside it. A class is called as the folder that all its training images share, where each has one of its own. Places-LT
    and iNaturalist are published so, too. If there is only one list beside that of training, it is the test, and ⌈0.1·n_j⌉
    training images of each class are val. Of several datasets in one folder, give the path of a training list.

    Z. Liu et al., Large-Scale Long-Tailed Recognition in an Open World, 2019.
    """

    looks_like = "lists of images and class numbers (ImageNet_LT_train.txt, …_val.txt, …_test.txt) beside the images"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        tables = [path] if path.is_file() else sorted(path.glob("*_train.txt"))
        return any(table.name.endswith("_train.txt") and _begins_like_a_list(table) for table in tables)

    def dataset(self) -> Dataset:
        """The splits, as far as there are lists of them; the images stay in their files."""
        table = self._training_list()
        files, labels = _lines(table)
        n_classes = int(labels.max()) + 1
        if n_classes > len(files):
            raise ValueError(f"{table} has class {n_classes - 1} and lists {len(files)} images; number classes from 0")
        folders = [table.parent, *sorted(entry for entry in table.parent.iterdir() if entry.is_dir())]
        train = self.listed(table, folders, files, labels)
        others = []
        for ending in OTHER_LISTS:
            other = table.with_name(table.name.removesuffix("_train.txt") + ending)
            if other.is_file():
                found, of_other = _lines(other)
                if of_other.max() >= n_classes:
                    raise ValueError(f"{other} has class {of_other.max()}, and {table.name} has 0 to {n_classes - 1}")
                others.append(self.listed(other, folders, found, of_other))
        names = _names(files, labels, n_classes)
        if len(others) == 2:
            val, test = others
            return Dataset(self.path.name, train, val, test, names, spec=self.spec)
        if len(others) == 1:
            return self.from_two(train, others[0], names)
        return Dataset.from_rows(
            train, names, seed=self.seed, drop_small=self.drop_small, name=self.path.name, spec=self.spec
        )

    def _training_list(self) -> Path:
        if self.path.is_file():
            return self.path
        found = sorted(table for table in self.path.glob("*_train.txt") if _begins_like_a_list(table))
        if len(found) > 1:
            raise ValueError(
                f"{self.path} has {' and '.join(table.name for table in found)}; give the path of one of them"
            )
        return found[0]


def _begins_like_a_list(table: Path) -> bool:
    try:
        with io.TextIOWrapper(open_regular(table), encoding="utf-8") as file:
            return LINE.fullmatch(file.readline(LONGEST_LINE)) is not None
    except (OSError, ValueError):
        return False


def _lines(table: Path) -> tuple[list[str], np.ndarray]:
    """The path and the class of every line."""
    files, labels = [], []
    with table.open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            found = LINE.fullmatch(line)
            if found is None:
                raise ValueError(
                    f"{table}, line {number}: {line.strip()[:80]!r}; give a path and the number of its class"
                )
            files.append(found.group(1))
            labels.append(int(found.group(2)))
    if not files:
        raise ValueError(f"{table} lists no image")
    return files, np.array(labels, dtype=np.int64)


def _names(files: list[str], labels: np.ndarray, n_classes: int) -> tuple[str, ...]:
    """The folder of each class, if each has one of its own; otherwise its number."""
    folders: list[set[str]] = [set() for _ in range(n_classes)]
    for file, label in zip(files, labels.tolist(), strict=True):
        folders[label].add(PurePosixPath(file).parent.name)
    names = [next(iter(found)) if len(found) == 1 else "" for found in folders]
    if all(names) and len(set(names)) == n_classes:
        return tuple(names)
    return tuple(f"class {j}" for j in range(n_classes))
