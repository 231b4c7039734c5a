"""`.npz` and `.npy`: headers are read first, arrays on first use, pickles never."""

from __future__ import annotations

import math
import re
import zipfile
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from workbench.tables.formats.base import LABELS, SCORES, Contents, Format, RefusedFile, Room, StoredArray
from workbench.untrusted_files import open_regular

MOST_ARRAYS = 256  # of an .npz
SPLITS = {"train": "train", "val": "val", "valid": "val", "cal": "val", "calib": "val", "test": "test"}
NAMED_ARRAY = re.compile(rf"(?:(?:.*[-_])?({'|'.join(SPLITS)})[-_])?({'|'.join((*SCORES, *LABELS))})")


def read_npy(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    with open_regular(path) as file:
        shape, dtype, _ = _header(file, path.stat().st_size, "the array")
    return Contents({"scores": StoredArray(shape, dtype, lambda: np.load(path, mmap_mode="r", allow_pickle=False))})


def holds_arrays(folder: Path) -> bool:
    """Whether a folder holds scores as an array: `softmax.npy`, or of a split, `…_val_softmax.npy`, `…_test_softmax.npy`."""
    found = [match for path in folder.glob("*.npy") if (match := NAMED_ARRAY.fullmatch(path.stem.lower()))]
    return any(match[2] in SCORES and match[1] != "train" for match in found)


def read_array_folder(folder: Path) -> Contents:
    """The arrays of a folder by split and kind, such as `val_softmax`: how papers on long tails publish their scores."""
    arrays: dict[str, StoredArray] = {}
    for path in sorted(folder.glob("*.npy")):
        if (name := _named(path.stem)) == path.stem and not NAMED_ARRAY.fullmatch(name):
            continue
        if name in arrays:
            raise ValueError(f"two files of {folder.name} hold {name}; leave one of them in the folder: {path.name}")
        arrays[name] = read_npy(path, Room(path.stat().st_size), ()).arrays["scores"]
    return Contents(_of_one_split(arrays))


def _named(stem: str) -> str:
    """The split and the kind of an array: `val_softmax` of `best-plantnet-model_val_softmax`; other names as they are."""
    match = NAMED_ARRAY.fullmatch(stem.lower())
    if match is None:
        return stem
    kind = "labels" if match[2] in LABELS else match[2]
    return kind if match[1] is None else f"{SPLITS[match[1]]}_{kind}"


def _of_one_split(arrays: dict[str, StoredArray]) -> dict[str, StoredArray]:
    """The arrays without the name of their split where only one split has scores."""
    splits = {name.split("_")[0] for name in arrays if name.startswith(("val_", "test_"))}
    if len(splits) != 1:
        return arrays
    (split,) = splits
    if doubled := sorted(name for name in arrays if f"{split}_{name}" in arrays):
        raise ValueError(f"there are {doubled[0]} and {split}_{doubled[0]}; leave one of them")
    return {name.removeprefix(f"{split}_"): array for name, array in arrays.items()}


def read_npz(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    if not zipfile.is_zipfile(path):
        raise ValueError("not a zip archive")
    arrays: dict[str, StoredArray] = {}
    with zipfile.ZipFile(path) as archive:
        if len(archive.infolist()) > MOST_ARRAYS:
            raise RefusedFile(f"it holds {len(archive.infolist())} arrays; at most {MOST_ARRAYS} are read")
        for member in archive.infolist():
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise RefusedFile(
                    f"{member.filename} is compressed as NumPy never does; save it with numpy.savez_compressed"
                )
            if not member.filename.endswith(".npy"):
                continue
            name = _named(Path(member.filename).stem) if path.suffix == ".zip" else member.filename.removesuffix(".npy")
            if name in arrays:
                raise ValueError(f"it holds two arrays called {name}")
            with archive.open(member) as file:
                shape, dtype, n_bytes = _header(file, member.file_size, name)
            arrays[name] = StoredArray(shape, dtype, partial(_member, path, member.filename, n_bytes, room))
    return Contents(_of_one_split(arrays) if path.suffix == ".zip" else arrays)


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
    try:
        shape, _, dtype = readers[version](file)
    except Exception as error:  # it is read as Python text, and a damaged byte raises many kinds
        raise ValueError(f"the header of {name} cannot be read ({error})") from None
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects, which are never loaded; save plain numbers and strings")
    promised, held = math.prod(shape) * dtype.itemsize, n_bytes - file.tell()
    if any(side < 0 or isinstance(side, bool) for side in shape) or promised != held:
        raise ValueError(f"the header of {name} says {shape} {dtype}, {promised} bytes, and {held} bytes follow it")
    return shape, dtype, promised


NPZ = Format((".npz", ".zip"), read_npz)
NPY = Format((".npy",), read_npy)
