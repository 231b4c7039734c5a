"""A CSV of labels beside the images it is about: rows with one label, with many, or with none."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.datasets.base import SPLITS, Dataset, Split
from workbench.datasets.files.image_folders import ImagesOnDisk
from workbench.tables.formats import Room


@dataclass(frozen=True)
class LabelFile(ImagesOnDisk):
    """Images whose labels are in a CSV file: any `.csv` by its own path, or `labels.csv` in a folder.

        file,label,split,place
        photos/1.jpg,oak;moss,train,wood
        photos/2.jpg,,val,meadow

    `file` is relative to the folder of the CSV. `label` (or `labels`) holds one class, several with `;` between them, or
    none; a file on several lines has the labels of them all. If every file has exactly one label the dataset has one
    label per row, else many. `split` is train, val or test; without that column ⌈0.1·n_j⌉ images of each class (of many
    labels: ⌈0.1·n⌉ of all) go to val and to test. Every other column is an attribute of the rows.
    """

    looks_like = "a CSV file with columns file and label (several labels as a;b;c), or a folder with such a labels.csv"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return path.suffix.lower() == ".csv" if path.is_file() else (path / "labels.csv").is_file()

    def dataset(self) -> Dataset:
        """The splits; the images stay in their files."""
        table = self.path / "labels.csv" if self.path.is_dir() else self.path
        lines = _lines(table)
        labels_of: dict[str, set[str]] = {line["file"]: set() for line in lines}
        for line in lines:
            labels_of[line["file"]] |= {name.strip() for name in line["label"].split(";")} - {""}
        names = tuple(sorted(set.union(*labels_of.values())))
        if len(names) < 2:
            raise ValueError(f"{table} names {len(names)} classes ({', '.join(names)}); a dataset needs two or more")
        number_of = {name: j for j, name in enumerate(names)}
        Room(table.stat().st_size).take(f"{table}: labels", len(labels_of) * len(names))
        labels = np.zeros((len(labels_of), len(names)), dtype=bool)
        for row, found in enumerate(labels_of.values()):
            labels[row, [number_of[name] for name in found]] = True
        if (labels.sum(axis=1) == 1).all():
            labels = labels.argmax(axis=1)

        facts = {line["file"]: line for line in reversed(lines)}  # of several lines of a file the first one counts
        attributes = {
            column: np.array([facts[file][column] for file in labels_of])
            for column in lines[0]
            if column not in ("file", "label", "split")
        }
        everything = Split(self.images(table.parent, list(labels_of)), labels, attributes=attributes or None)
        if "split" not in lines[0]:
            return Dataset.from_rows(
                everything, names, seed=self.seed, drop_small=self.drop_small, name=self.path.stem, spec=self.spec
            )
        split_of = np.array([facts[file]["split"] for file in labels_of])
        train, val, test = (everything.rows(np.flatnonzero(split_of == split)) for split in SPLITS)
        return Dataset(self.path.stem, train, val, test, names, spec=self.spec)


def _lines(table: Path) -> list[dict[str, str]]:
    """The lines of the table by column, checked; `labels` is called `label`."""
    try:
        with open(table, newline="", encoding="utf-8-sig") as file:
            header, *lines = list(csv.reader(file)) or [[]]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{table} is not a CSV file in UTF-8 ({error})") from error
    columns = ["label" if name.strip() == "labels" else name.strip() for name in header]
    if not {"file", "label"} <= set(columns) or len(set(columns)) < len(columns):
        raise ValueError(f"{table} has the columns {', '.join(header) or 'none'}; it needs file and label, each once")
    found: list[dict[str, str]] = []
    split_of: dict[str, str] = {}
    for number, line in enumerate(lines, start=2):
        if not line:
            continue
        if len(line) != len(columns):
            raise ValueError(f"{table}, line {number}: {len(line)} values for {len(columns)} columns")
        values = dict(zip(columns, (value.strip() for value in line), strict=True))
        if not (table.parent / values["file"]).is_file():
            raise ValueError(f"{table}, line {number}: there is no file {values['file']!r} in {table.parent}")
        split = values.get("split", "train")
        if split not in SPLITS or split_of.setdefault(values["file"], split) != split:
            before = split_of.get(values["file"])
            also = f", and {values['file']} was in {before} before" if before else ""
            raise ValueError(f"{table}, line {number}: split is {split!r}{also}; give one of {', '.join(SPLITS)}")
        found.append(values)
    if not found:
        raise ValueError(f"{table} has a header and no line below it")
    return found
