"""Files that anybody may have written: regular files of bounded size, and headers whose every fault is a `ValueError`.

A path in a folder of unknown origin may be a pipe, a device, a link to one of them, or a file that claims more than it
holds. Nothing here waits for a writer, reads without a limit, or lets an error of a parser through.
"""

from __future__ import annotations

import io
import json
import math
import os
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

import numpy as np

LONGEST_JSON = 2**28  # bytes of a JSON file; class names and shards of the largest tables take some megabytes
LONGEST_HEADER = 2**16  # bytes of the header of an array
USUAL_HEADER = 2**12  # bytes in which the header of one of our arrays lies


def open_regular(path: str | os.PathLike[str]) -> IO[bytes]:
    """Open a regular file to read its bytes; a pipe, a device or a folder is a `ValueError`, and is not waited for.

    >>> open_regular("/dev/zero")
    Traceback (most recent call last):
        ...
    ValueError: not a regular file
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("not a regular file")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes."""
    with open_regular(path) as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"longer than {limit} bytes")
    return content


def read_json(path: str | os.PathLike[str], limit: int = LONGEST_JSON) -> Any:
    """The value of a JSON file, as JSON defines it: no NaN, no infinity, no nesting deeper than Python's stack."""
    return parse_json(read_bytes(path, limit))


def parse_json(content: bytes) -> Any:
    """The value of a JSON text.

    >>> parse_json(b'{"a": NaN}')
    Traceback (most recent call last):
        ...
    ValueError: NaN is not a number
    """
    try:
        return json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a number")


@dataclass(frozen=True)
class ArrayHeader:
    """The header of a `.npy` file: where the array begins, its shape, its dtype, and whether it is stored by columns."""

    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
    by_columns: bool

    @property
    def size(self) -> int:
        """Bytes of the whole file, if it holds the whole array."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize


def array_header(content: bytes) -> ArrayHeader:
    """The header at the beginning of a `.npy` file; `ValueError` for anything else.

    NumPy reads it as Python text: a single damaged byte raises errors of the tokenizer, the parser or the codec.

    >>> array_header(b"no array")
    Traceback (most recent call last):
        ...
    ValueError: it does not begin with the header of an array
    """
    width = 2 if content[6:7] == b"\1" else 4  # bytes that tell the length of the header
    length = 8 + width + int.from_bytes(content[8 : 8 + width], "little")
    return _parsed_header(content[: min(length, LONGEST_HEADER)])


@lru_cache(maxsize=1024)  # arrays of a shape are many in a store
def _parsed_header(content: bytes) -> ArrayHeader:
    file = io.BytesIO(content)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        shape, by_columns, dtype = readers[np.lib.format.read_magic(file)](file)
    except (
        Exception
    ):  # TokenError, SyntaxError, KeyError, TypeError, UnicodeDecodeError, MemoryError, … by which byte it is
        raise ValueError("it does not begin with the header of an array") from None
    if dtype.hasobject:
        raise ValueError("it holds pickled Python objects, which are never loaded")
    if any(not isinstance(side, int) or side < 0 for side in shape):
        raise ValueError(f"an array has no shape {shape}")
    return ArrayHeader(file.tell(), shape, dtype, by_columns)


def read_array_header(path: str | os.PathLike[str]) -> ArrayHeader:
    """The header of a `.npy` file on disk, after comparing what it promises with the size of the file."""
    with open_regular(path) as file:
        header, size = array_header(file.read(USUAL_HEADER)), os.fstat(file.fileno()).st_size
    if header.size != size:
        raise ValueError(f"its header promises {header.size} bytes, and it has {size}")
    return header


def load_array(path: Path) -> np.ndarray:
    """The array of a `.npy` file, memory-mapped, after a look at its header."""
    header = read_array_header(path)
    if not math.prod(header.shape):
        return np.empty(header.shape, header.dtype)
    order: Any = "F" if header.by_columns else "C"
    return np.memmap(path, header.dtype, "r", header.offset, header.shape, order)
