"""`.npz` and `.npy`: headers are read first, arrays when they are wanted, pickles never."""

from __future__ import annotations

import math
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from workbench.tables.formats.base import Contents, Format, Room, Stored


def read_npy(path: Path, room: Room, asked: tuple[str, ...]) -> Contents:
    with path.open("rb") as file:
        shape, dtype, _ = _header(file, path.stat().st_size, "the array")
    return Contents({"scores": Stored(shape, dtype, lambda: np.load(path, mmap_mode="r", allow_pickle=False))})


def read_npz(path: Path, room: Room, asked: tuple[str, ...]) -> Contents:
    if not zipfile.is_zipfile(path):
        raise ValueError("not a zip archive")
    arrays: dict[str, Stored] = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.filename.endswith(".npy"):
                continue
            name = member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"it holds two arrays called {name}")
            with archive.open(member) as file:
                shape, dtype, n_bytes = _header(file, member.file_size, name)
            arrays[name] = Stored(shape, dtype, partial(_member, path, member.filename, n_bytes, room))
    return Contents(arrays)


def _member(path: Path, filename: str, n_bytes: int, room: Room) -> np.ndarray:
    room.take(filename.removesuffix(".npy"), n_bytes)
    with zipfile.ZipFile(path) as archive, archive.open(filename) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _header(file: IO[bytes], n_bytes: int, name: str) -> tuple[tuple[int, ...], np.dtype, int]:
    """Shape, type and bytes of an array, which must be all that follows its header."""
    version = np.lib.format.read_magic(file)
    readers: dict[Any, Any] = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in readers:
        raise ValueError(f"{name} is written in version {version} of the format, which is for records and is not read")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects, which are never loaded; save plain numbers and strings")
    promised, held = math.prod(shape) * dtype.itemsize, n_bytes - file.tell()
    if any(side < 0 or isinstance(side, bool) for side in shape) or promised != held:
        raise ValueError(f"the header of {name} says {shape} {dtype}, {promised} bytes, and {held} bytes follow it")
    return shape, dtype, promised


NPZ = Format((".npz",), read_npz)
NPY = Format((".npy",), read_npy)
