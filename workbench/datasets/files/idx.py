"""MNIST and Fashion-MNIST in their original files: the IDX format, gzipped or not."""

from __future__ import annotations

import gzip
import math
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from workbench.datasets.base import Dataset, Split
from workbench.datasets.files.base import OnDisk

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
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(
            f"{path} cannot be unpacked ({error}); it is cut off or no gzip file: fetch it again"
        ) from error
    start = 4 + 4 * n_axes
    if content[:4] != bytes([0, 0, UNSIGNED_BYTE, n_axes]) or len(content) < start:
        raise ValueError(f"{path} does not begin like an IDX file of bytes with {n_axes} axes; fetch it again")
    shape = np.frombuffer(content[4:start], dtype=">u4").tolist()
    expected = start + math.prod(shape)
    if len(content) != expected:
        raise ValueError(
            f"{path} has {len(content)} bytes, and its head says {expected}; it is cut off: fetch it again"
        )
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)
