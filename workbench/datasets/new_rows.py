"""New rows for a network that is trained: read the way its training rows were, from arrays, tables or images."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.datasets.files.image_folders import SUFFIXES, images_inside
from workbench.datasets.image_files import ImageFiles
from workbench.datasets.inputs import Inputs, read_inputs

ID = "id"  # a column that names the rows


@dataclass(frozen=True)
class InputFormat:
    """Expected form of new rows: their shape in training and, where known, more.

    Args:
        input_shape: Of one row, (columns,) or (height, width, channels).
        columns: The names of the numbers in a row.
        resize: The shorter side of images in files, before the square in the middle is cut out.

    >>> InputFormat((2,), columns=("width", "height")).read(pd.DataFrame({"height": [3.0], "width": [5.0]}))[0].tolist()
    [[5.0, 3.0]]
    """

    input_shape: tuple[int, ...]
    columns: tuple[str, ...] | None = None
    resize: int | None = None

    @property
    def images(self) -> bool:
        return len(self.input_shape) == 3

    def read(self, given: Any) -> tuple[Inputs, np.ndarray | None]:
        """The rows as a network takes them, and what names them, if anything does."""
        if isinstance(given, (str, os.PathLike)):
            inputs, ids = self._at(Path(given).expanduser())
        elif _paths(given):
            inputs, ids = self._files([Path(path).expanduser() for path in given])
        elif hasattr(given, "columns"):
            inputs, ids = self._table(given, "the table")
        else:
            inputs, ids = given, None
        inputs = read_inputs(inputs)
        if inputs.shape[1:] != self.input_shape:
            raise ValueError(
                f"the inputs have shape {inputs.shape}; the network was trained on rows of shape {self.input_shape}, so "
                f"give {('n', *self.input_shape)}".replace("'", "")
            )
        if len(inputs) == 0:
            raise ValueError("there are no rows to predict")
        return inputs, ids

    def _at(self, path: Path) -> tuple[Any, np.ndarray | None]:
        """Read the rows at a path."""
        if not path.exists():
            raise FileNotFoundError(f"there is no file and no folder {path}; give {self._allowed()}")
        ending = path.suffix.lower()
        if path.is_dir() and self.images:
            names = sorted(images_inside(path))
            if not names:
                raise ValueError(f"{path} holds no image; files that end in {', '.join(sorted(SUFFIXES))} are read")
            return self._squares(path, names), np.array(names)
        if ending in SUFFIXES and self.images:
            return self._files([path])
        if ending == ".npy":
            return _npy(path), None
        if ending == ".csv" and not self.images:
            return self._table(_csv(path), str(path))
        raise ValueError(f"{path} is not what the network was trained on; give {self._allowed()}")

    def _allowed(self) -> str:
        shape = " × ".join(map(str, self.input_shape))
        if self.images:
            return f"images, a folder of images, or a .npy file of images of {shape} as uint8"
        return f"a .csv or .npy file with {shape} columns of numbers"

    def _files(self, paths: list[Path]) -> tuple[ImageFiles, np.ndarray]:
        if not self.images:
            raise ValueError(f"the network was trained on rows of numbers, not on images; give {self._allowed()}")
        if missing := [path for path in paths if not path.is_file()]:
            rest = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
            raise FileNotFoundError(f"there is no file {missing[0]}{rest}; give paths of images")
        names = [str(path) for path in paths]
        return self._squares(Path(), names), np.array(names)

    def _squares(self, root: Path, names: list[str]) -> ImageFiles:
        """Images in files, cut as in training; for a network that was trained on arrays, the middle made as small as those."""
        height, width, channels = self.input_shape
        if channels != 3 or height != width:
            raise ValueError(
                f"the network was trained on arrays of shape {self.input_shape}, and files are read as squares in colour; "
                "give an array like those"
            )
        return ImageFiles(root, np.array(names, dtype=object), size=height, resize=self.resize or height)

    def _table(self, frame: Any, where: str) -> tuple[Any, np.ndarray | None]:
        """The columns of training, in their order; `id` beside them names the rows."""
        if self.images:
            raise ValueError(f"the network was trained on images, and {where} holds columns; give {self._allowed()}")
        frame = frame.rename(columns=str)
        ids = None
        if ID in frame.columns and ID not in (self.columns or ()):
            ids, frame = frame[ID].to_numpy(), frame.drop(columns=ID)
        if self.columns is not None:
            if missing := [name for name in self.columns if name not in frame.columns]:
                raise ValueError(
                    f"{where} lacks the columns {', '.join(missing[:5])}{', …' * (len(missing) > 5)}, which the network was "
                    f"trained on; it has {', '.join(map(str, frame.columns[:5]))}{', …' * (frame.shape[1] > 5)}"
                )
            frame = frame[list(self.columns)]
        elif (frame.shape[1],) != self.input_shape:
            raise ValueError(
                f"{where} has {frame.shape[1]} columns; the network was trained on {self.input_shape[0]} numbers a row, "
                f"without names: give those, in the same order, and nothing else but a column {ID!r}"
            )
        return frame, ids


def _paths(given: Any) -> bool:
    """Whether something is a list of paths."""
    return (
        isinstance(given, (list, tuple))
        and len(given) > 0
        and all(isinstance(each, (str, os.PathLike)) for each in given)
    )


def _npy(path: Path) -> np.ndarray:
    try:
        array: np.ndarray = np.load(path, mmap_mode="r")
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a .npy file ({error})") from None
    return array


def _csv(path: Path) -> pd.DataFrame:
    """The columns of a CSV file; the first line names them, unless it is numbers too."""
    try:
        frame = pd.read_csv(path)
        if all(_number(name.strip()) for name in frame.columns):
            frame = pd.read_csv(path, header=None)
    except (ValueError, UnicodeDecodeError) as error:  # those of pandas are ValueErrors
        raise ValueError(f"{path} cannot be read as a CSV file ({error})") from None
    if len(frame) == 0:
        raise ValueError(f"{path} has no row below its header")
    return frame


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
