"""COCO: photographs labelled with the objects outlined in them."""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from workbench.datasets.base import Dataset, Split
from workbench.datasets.files.json_lists import elements
from workbench.datasets.files.listed_images import TaggedImages
from workbench.tables.formats import Room

FILE = re.compile(r"instances_(\w+?)(\d*)\.json")  # the split and the year
Categories = dict[int, tuple[str, str]]  # id → name and group


@dataclass(frozen=True)
class Coco(TaggedImages):
    """COCO, or what is written like it: `annotations/instances_train2017.json`, …val2017.json, `train2017/`, `val2017/`.

    The labels of an image are the categories of its annotations, also of those that outline a crowd (`iscrowd`), whose
    number in each image is the attribute `crowds`. An image without an annotation has no label. Classes are the categories
    in the order of their ids, groups the supercategories. Papers test on COCO's val, and so does this: a tenth of the
    training images, from `seed`, is val. A file of annotations alone, given by its own path, is split as
    `Dataset.from_arrays` says. Of two years in one folder, give the path of a file.

    Files are read element by element: the outlines, which are nearly all of their half a gigabyte, are never in memory.

    T.-Y. Lin et al., Microsoft COCO: Common Objects in Context, 2014; Liao et al., section V.C.
    """

    looks_like = "COCO's annotations beside its images (annotations/instances_train2017.json, train2017/, …)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        if path.is_file():
            return FILE.fullmatch(path.name) is not None
        return any((path / "annotations").glob("instances_*.json"))

    def dataset(self) -> Dataset:
        """The splits; the images stay in their files."""
        table, root = self._training_file(), self.path
        if self.path.is_file():
            root = table.parent.parent if table.parent.name == "annotations" else table.parent
        train, categories = self._read(table, root)
        names, groups = (tuple(facts[place] for facts in categories.values()) for place in range(2))
        other = table.with_name(table.name.replace("instances_train", "instances_val"))
        if other == table or not other.is_file():
            return Dataset.from_rows(train, names, groups, seed=self.seed, name=self.path.name, spec=self.spec)
        test, found = self._read(other, root)
        if found != categories:
            raise ValueError(f"{table} and {other.name} have other categories; they do not belong together")
        return self.from_two(train, test, names, groups)

    def _training_file(self) -> Path:
        if self.path.is_file():
            return self.path
        found = sorted((self.path / "annotations").glob("instances_train*.json"))
        if not found:
            raise ValueError(
                f"{self.path / 'annotations'} has no instances_train….json; give the path of the file to be split"
            )
        if len(found) > 1:
            raise ValueError(
                f"{self.path / 'annotations'} has {' and '.join(file.name for file in found)}; give the path of one of them"
            )
        return found[0]

    def _read(self, table: Path, root: Path) -> tuple[Split, Categories]:
        """The images of a file of annotations, and its categories."""
        row_of: dict[Any, int] = {}  # by the id of the image
        files: list[str] = []
        of_image, of_category, crowds = array("q"), array("q"), array("b")  # of each annotation
        categories: Categories = {}
        for kind, facts in elements(table):
            try:
                if kind == "images":
                    row_of[facts["id"]] = len(files)
                    files.append(str(facts["file_name"]))
                elif kind == "annotations":
                    of_image.append(facts["image_id"])
                    of_category.append(facts["category_id"])
                    crowds.append(bool(facts.get("iscrowd", 0)))
                elif kind == "categories":
                    if type(facts["id"]) is not int:
                        raise TypeError("the id of a category is a whole number")
                    categories[facts["id"]] = (str(facts["name"]), str(facts.get("supercategory") or facts["name"]))
            except (KeyError, TypeError, OverflowError) as error:
                raise ValueError(
                    f"{table}: one of its {kind} is {str(facts)[:80]}, which is not as COCO writes it ({error})"
                ) from None
        if lacking := [kind for kind, n in (("images", len(files)), ("categories", len(categories))) if not n]:
            raise ValueError(f"{table} has no {' and no '.join(lacking)}; it is not a file of COCO's instances")
        categories = dict(sorted(categories.items()))
        column_of = {category: column for column, category in enumerate(categories)}
        try:
            rows = np.array([row_of[image] for image in of_image], dtype=np.int64)
            columns = np.array([column_of[category] for category in of_category], dtype=np.int64)
        except KeyError as error:
            raise ValueError(
                f"{table}: an annotation is of {error.args[0]}, which is not an id of an image or a category"
            ) from None
        Room(table.stat().st_size).take(f"{table}: labels", len(files) * len(categories))
        labels = np.zeros((len(files), len(categories)), dtype=bool)
        labels[rows, columns] = True
        crowded = np.bincount(rows, weights=np.array(crowds), minlength=len(files)).astype(np.int64)
        split, year = FILE.fullmatch(table.name).groups()  # type: ignore[union-attr]
        folders = [root / f"{split}{year}", root / "images" / f"{split}{year}", root / "images", root]
        return self.listed(table, folders, files, labels, {"crowds": crowded}), categories
