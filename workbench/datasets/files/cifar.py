"""CIFAR-10 and CIFAR-100 in their binary version: records of labels and pixels, no pickle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.datasets.base import Dataset, Split
from workbench.datasets.files.base import OnDisk
from workbench.untrusted_files import open_regular

PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Cifar10(OnDisk):
    """CIFAR-10: 60 000 photographs of 32 × 32 pixels in 10 classes, 5 000 of the training ones held out for val.

    A record of `data_batch_1.bin`, …, `test_batch.bin` is one byte for the class and 1024 each for red, green and blue.

    A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """

    looks_like = "CIFAR-10's binary version (data_batch_1.bin, …, test_batch.bin, batches.meta.txt)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return (path / "test_batch.bin").is_file()

    def dataset(self) -> Dataset:
        """The splits: val is a tenth of each class of the training images, test is the original one."""
        names = _names(self.path / "batches.meta.txt")
        batches = sorted(self.path.glob("data_batch_*.bin"))
        if not batches:
            raise ValueError(f"{self.path} has test_batch.bin but no data_batch_1.bin to train with")
        train = np.concatenate([_records(batch, n_labels=1) for batch in batches])
        test = _records(self.path / "test_batch.bin", n_labels=1)
        return self.from_two(_split(train), _split(test), names)


@dataclass(frozen=True)
class Cifar100(OnDisk):
    """CIFAR-100: 60 000 photographs of 32 × 32 pixels, 100 classes in 20 superclasses, 5 000 images held out for val.

    A record of `train.bin` and `test.bin` is one byte for the superclass, one for the class and 1024 each for red, green
    and blue. The superclasses are the groups.

    A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """

    looks_like = "CIFAR-100's binary version (train.bin, test.bin, fine_label_names.txt, coarse_label_names.txt)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return (path / "train.bin").is_file() and (path / "test.bin").is_file()

    def dataset(self) -> Dataset:
        """The splits: val is a tenth of each class of the training images, test is the original one."""
        names, superclasses = _names(self.path / "fine_label_names.txt"), _names(self.path / "coarse_label_names.txt")
        train, test = (_records(self.path / name, n_labels=2) for name in ("train.bin", "test.bin"))
        pairs = np.unique(np.concatenate([train[:, :2], test[:, :2]]), axis=0)  # (superclass, class)
        if len(pairs) != len(names) or pairs[:, 1].max() >= len(names) or pairs[:, 0].max() >= len(superclasses):
            raise ValueError(
                f"{self.path}: {len(pairs)} pairs of superclass and class for {len(names)} classes in "
                f"{len(superclasses)} superclasses; the .bin and the .txt files do not belong together"
            )
        superclass_of = dict(zip(pairs[:, 1].tolist(), pairs[:, 0].tolist(), strict=True))
        groups = tuple(superclasses[superclass_of[j]] for j in range(len(names)))
        return self.from_two(_split(train), _split(test), names, groups)


def refuse_pickle(path: Path) -> None:
    """An error for CIFAR's Python version: loading a pickle runs whatever code is in it."""
    for number, names in (("10", ("data_batch_1", "batches.meta")), ("100", ("train", "test", "meta"))):
        if all((path / name).is_file() for name in names):
            raise ValueError(
                f"{path} is the Python version of CIFAR-{number}, which is pickle and never loaded here; fetch "
                f"https://www.cs.toronto.edu/~kriz/cifar-{number}-binary.tar.gz, unpack it and give its folder instead"
            )


def _names(path: Path) -> tuple[str, ...]:
    if not path.is_file():
        raise ValueError(f"{path} is missing: it names the classes")
    return tuple(path.read_text(encoding="utf-8").split())


def _records(path: Path, n_labels: int) -> np.ndarray:
    """(n, n_labels + PIXELS) uint8."""
    with open_regular(path) as file:
        content = np.fromfile(file, dtype=np.uint8)
    length = n_labels + PIXELS
    if len(content) == 0 or len(content) % length:
        raise ValueError(
            f"{path} has {len(content)} bytes, no multiple of the {length} of one record; "
            "it is cut off or no CIFAR file: fetch it again"
        )
    return content.reshape(-1, length)


def _split(records: np.ndarray) -> Split:
    planes = records[:, -PIXELS:].reshape(-1, 3, 32, 32)
    labels = records[:, -PIXELS - 1].astype(np.int64)  # the last label of a record is that of the class
    return Split(np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), labels)
