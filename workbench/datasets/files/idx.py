"""MNIST and Fashion-MNIST in their original files: the IDX format, gzipped or not."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from workbench.datasets.base import Dataset, Split
from workbench.datasets.files.base import OnDisk
from workbench.tables.formats import Room
from workbench.untrusted_files import open_regular

UNSIGNED_BYTE = 8  # the code of the only type that these files use
DIGITS = tuple("0123456789")
CLOTHES = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
# Both datasets bear the same file names; this is how the training labels of Fashion-MNIST begin.
FIRST_CLOTHES = (9, 0, 0, 3, 0, 2, 7, 2, 5, 5)


@dataclass(frozen=True)
class IdxFiles(OnDisk):
    """MNIST or Fashion-MNIST: 70 000 grey images of 28 × 28 pixels in 10 classes, 6 000 of the training ones for val.

    Y. LeCun, C. Cortes, C. Burges, The MNIST database; H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST, 2017.
    """

    looks_like = "MNIST's or Fashion-MNIST's files (train-images-idx3-ubyte, t10k-labels-idx1-ubyte, …; .gz or not)"

    @classmethod
    def lies_at(cls, path: Path) -> bool:
        return any(path.glob("train-images*idx3-ubyte*"))

    def dataset(self) -> Dataset:
        """The splits: val is a tenth of each class of the training images, test is the original one."""
        train, test = self._split("train"), self._split("t10k")
        names = CLOTHES if tuple(train.labels[: len(FIRST_CLOTHES)]) == FIRST_CLOTHES else DIGITS
        return self.from_two(train, test, names)

    def _split(self, prefix: str) -> Split:
        images, labels = self._array(f"{prefix}-images", n_axes=3), self._array(f"{prefix}-labels", n_axes=1)
        if len(images) != len(labels):
            raise ValueError(
                f"{self.path}: {len(images)} {prefix} images and {len(labels)} labels do not belong together"
            )
        return Split(images[..., None], labels.astype(np.int64))

    def _array(self, name: str, n_axes: int) -> np.ndarray:
        ending = f"idx{n_axes}-ubyte"
        found = [self.path / f"{name}{dot}{ending}{gz}" for dot in "-." for gz in ("", ".gz")]
        path = next((path for path in found if path.is_file()), None)
        if path is None:
            raise ValueError(f"{found[0]} is missing, and so is {found[1].name}")
        return _read(path, n_axes)


def _read(path: Path, n_axes: int) -> np.ndarray:
    """The array in an IDX file: four bytes (0, 0, type, axes), the length of each axis in four bytes, then the data."""
    start = 4 + 4 * n_axes
    with open_regular(path) as raw:
        file: IO[bytes] = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw  # type: ignore[assignment]
        try:
            head = file.read(start)
            if head[:4] != bytes([0, 0, UNSIGNED_BYTE, n_axes]) or len(head) < start:
                raise ValueError(f"{path} does not begin like an IDX file of bytes with {n_axes} axes; fetch it again")
            shape = np.frombuffer(head[4:], dtype=">u4").tolist()
            Room(path.stat().st_size).take(str(path), math.prod(shape))
            content = file.read(math.prod(shape) + 1)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(
                f"{path} cannot be unpacked ({error}); it is cut off or no gzip file: fetch it again"
            ) from error
    if len(content) != math.prod(shape):
        found = f"at least {start + len(content)}" if len(content) > math.prod(shape) else start + len(content)
        raise ValueError(
            f"{path} has {found} bytes, and its head says {start + math.prod(shape)}; it is cut off: fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)
