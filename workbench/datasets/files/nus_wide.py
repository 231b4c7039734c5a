"""NUS-WIDE: photographs of Flickr with 81 concepts, one file of zeros and ones for each of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.datasets.base import Dataset, Split
from workbench.datasets.files.base import listed
from workbench.datasets.files.listed_images import TaggedImages

SPACES = b" \t\r\n"


@dataclass(frozen=True)
class NusWide(TaggedImages):
    """NUS-WIDE as it is distributed: `Groundtruth/`, `ImageList/`, and the images in `Flickr/` or `images/`.

    `ImageList/TrainImagelist.txt` and `TestImagelist.txt` name an image a line (actor\\0001_2124494179.jpg), and
    `Groundtruth/TrainTestLabels/Labels_<concept>_Train.txt` says 1 or 0 for each of them; a tenth of the training images,
    from `seed`, is val. Where there are only `ImageList/Imagelist.txt` and `Groundtruth/AllLabels/Labels_<concept>.txt`, all
    is split as `Dataset.from_arrays` says. Many of the images are no longer on Flickr (`drop_missing`), and about a quarter
    have none of the concepts (`drop_unlabelled`; Liao et al. leave both out).

    T.-S. Chua et al., NUS-WIDE: a real-world web image database, 2009; Liao et al., section V.C.
    """

    looks_like = "NUS-WIDE (ImageList/, Groundtruth/TrainTestLabels/ or Groundtruth/AllLabels/, and the images)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return _inside(path, "Groundtruth") is not None and _inside(path, "ImageList") is not None

    def dataset(self) -> Dataset:
        """The splits; the images stay in their files."""
        truth = _inside(self.path, "Groundtruth") or self.path
        if (parts := _inside(truth, "TrainTestLabels")) is not None:
            concepts = _concepts(parts, "_Train.txt")
            train = self._split("TrainImagelist.txt", parts, concepts, "_Train.txt")
            test = self._split("TestImagelist.txt", parts, concepts, "_Test.txt")
            return self.from_two(train, test, concepts)
        if (everything := _inside(truth, "AllLabels")) is None:
            raise ValueError(f"{truth} holds {listed(truth)}; it must hold TrainTestLabels/ or AllLabels/")
        concepts = _concepts(everything, ".txt")
        rows = self._split("Imagelist.txt", everything, concepts, ".txt")
        return Dataset.from_rows(rows, concepts, seed=self.seed, name=self.path.name, spec=self.spec)

    def _split(self, name: str, labels_folder: Path, concepts: tuple[str, ...], ending: str) -> Split:
        lists = _inside(self.path, "ImageList") or self.path
        table = _inside(lists, name)
        if table is None:
            raise ValueError(f"{lists} holds {listed(lists)}; {name} is missing")
        files = [
            line.strip().replace("\\", "/") for line in table.read_text(encoding="utf-8").splitlines() if line.strip()
        ]
        labels = np.zeros((len(files), len(concepts)), dtype=bool)
        for column, concept in enumerate(concepts):
            labels[:, column] = _marks(labels_folder / f"Labels_{concept}{ending}", len(files), table)
        folders = [folder for folder in (_inside(self.path, "Flickr"), _inside(self.path, "images")) if folder]
        return self.listed(table, [*folders, self.path], files, labels)


def _inside(folder: Path, name: str) -> Path | None:
    """Return the entry of a folder by name, ignoring case: copies of the data differ in capital letters."""
    entries = folder.iterdir() if folder.is_dir() else ()
    return next((entry for entry in sorted(entries) if entry.name.lower() == name.lower()), None)


def _concepts(folder: Path, ending: str) -> tuple[str, ...]:
    """The concepts that have a file of labels, by name."""
    found = sorted(file.name for file in folder.glob(f"Labels_*{ending}"))
    if len(found) < 2:
        raise ValueError(f"{folder} holds {listed(folder)}; it must hold Labels_<concept>{ending} for each concept")
    return tuple(name.removeprefix("Labels_").removesuffix(ending) for name in found)


def _marks(path: Path, n: int, table: Path) -> np.ndarray:
    """(n,) bool: the zeros and ones of a file."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; there must be one for each concept")
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    marks = content[~np.isin(content, np.frombuffer(SPACES, dtype=np.uint8))]
    if len(marks) != n or not np.isin(marks, np.frombuffer(b"01", dtype=np.uint8)).all():
        raise ValueError(f"{path} does not hold {n} zeros and ones, one for each image of {table}; fetch it again")
    ones: np.ndarray = marks == ord("1")
    return ones
