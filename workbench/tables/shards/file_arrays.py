"""The arrays inside shards, read some rows at a time."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from workbench.tables.formats.safetensors_files import KINDS
from workbench.tables.shards.filesystem import Filesystem, filesystem_at
from workbench.untrusted_files import LONGEST_HEADER, array_header, parse_json

ENDINGS = (".npy", ".safetensors", ".parquet")


@dataclass(frozen=True)
class ShardArray:
    """An array of a shard: what it is, and `read(start, stop)` for some of its rows."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[int, int], np.ndarray]


@lru_cache(maxsize=256)
def kept_open(url: str, sha256: str, file: str, name: str | tuple[str, ...] | None = None) -> ShardArray:
    """An array of a file of that content, which never changes: it is opened once."""
    return opened(url, file, name)


def opened(url: str, file: str, name: str | tuple[str, ...] | None = None) -> ShardArray:
    """An array of a file. `name` is that of a tensor or column, or those of the columns that are its classes."""
    place = filesystem_at(url)
    try:
        if file.endswith(".npy"):
            return _npy(place, file)
        if file.endswith(".safetensors"):
            return _safetensors(place, file, str(name or "scores"))
        if file.endswith(".parquet"):
            return _parquet(place, file, name or "scores")
    except FileNotFoundError:
        raise FileNotFoundError(f"{place.url}: shard {file} is missing") from None
    except Exception as error:  # every format has its own errors for a damaged file
        raise ValueError(f"{place.url}: shard {file} cannot be read: {error}") from None
    raise ValueError(f"{place.url}: shard {file} is none of {', '.join(ENDINGS)}")


def _npy(place: Filesystem, file: str) -> ShardArray:
    header = array_header(place.read(file, 0, LONGEST_HEADER))
    if header.by_columns and len(header.shape) > 1:
        raise ValueError("its array is stored column by column; save it row by row (C order)")
    return _plain(place, file, header.offset, place.size(file), header.shape, header.dtype)


def _safetensors(place: Filesystem, file: str, name: str) -> ShardArray:
    length = int.from_bytes(place.read(file, 0, 8), "little")
    size = place.size(file)
    if size < 8 + length:
        raise ValueError(f"the header should be {length} bytes long, and the file has {size}")
    header = parse_json(place.read(file, 8, 8 + length))
    if name not in header:
        raise ValueError(f"it has no {name}, but {', '.join(key for key in header if key != '__metadata__')}")
    about = header[name]
    begin, end = (8 + length + offset for offset in about["data_offsets"])
    if about["dtype"] not in KINDS:
        raise ValueError(f"{name} is {about['dtype']}, which is not read")
    stored = _plain(place, file, begin, end, tuple(about["shape"]), np.dtype(KINDS[about["dtype"]]))
    if end > size:
        raise ValueError(f"{name} ends at byte {end}, and the file has {size}")
    if about["dtype"] != "BF16":
        return stored
    return ShardArray(
        stored.shape,
        np.dtype(np.float32),
        lambda start, stop: (stored.read(start, stop).astype(np.uint32) << 16).view(np.float32),
    )


def _plain(place: Filesystem, file: str, begin: int, end: int, shape: tuple[int, ...], dtype: np.dtype) -> ShardArray:
    """Rows that lie one after the other between two bytes of a file."""
    promised = math.prod(shape) * dtype.itemsize
    if promised != end - begin:
        raise ValueError(f"the header says {shape} {dtype}, {promised} bytes, and {end - begin} bytes follow it")
    return ShardArray(shape, dtype, partial(_range, place, file, begin, shape, dtype))


def _range(
    place: Filesystem, file: str, begin: int, shape: tuple[int, ...], dtype: np.dtype, start: int, stop: int
) -> np.ndarray:
    row_bytes = math.prod(shape[1:]) * dtype.itemsize
    if place.local(file) is not None:
        # Not mapped: what a worker has mapped counts as its memory, and Dask ends those that seem to take too much.
        with place.open(file) as opened_file:
            count = (stop - start) * math.prod(shape[1:])
            values = np.fromfile(opened_file, dtype, count, offset=begin + start * row_bytes)
        return values.reshape(stop - start, *shape[1:])
    content = place.read(file, begin + start * row_bytes, begin + stop * row_bytes)
    return np.frombuffer(content, dtype).reshape(stop - start, *shape[1:])


def _parquet(place: Filesystem, file: str, name: str | tuple[str, ...]) -> ShardArray:
    import pyarrow.parquet as pq

    source = place.open(file)
    stored = pq.ParquetFile(source)
    weakref.finalize(stored, source.close)  # the array that is returned keeps the file open
    ends = np.cumsum([stored.metadata.row_group(group).num_rows for group in range(stored.metadata.num_row_groups)])
    columns = [name] if isinstance(name, str) else list(name)
    if missing := [column for column in columns if column not in stored.schema_arrow.names]:
        raise ValueError(f"it has no column {missing[0]}")

    @lru_cache(maxsize=2)  # the group that is read, and the one that a span reaches into
    def group(number: int) -> np.ndarray:
        read = stored.read_row_group(number, columns=columns)
        if isinstance(name, tuple):
            return np.column_stack([read.column(column).to_numpy() for column in columns])
        return _column(read.column(name).combine_chunks())

    def rows(start: int, stop: int) -> np.ndarray:
        parts = [group(0)[:0]]
        first_group, last_group = np.searchsorted(ends, (start, stop - 1), side="right")
        for number in range(first_group, last_group + 1 if start < stop else first_group):
            first = int(ends[number - 1]) if number else 0
            parts.append(group(number)[max(start - first, 0) : stop - first])
        return np.concatenate(parts)

    first = group(0)
    return ShardArray((int(ends[-1]), *first.shape[1:]), first.dtype, rows)


def _column(values: Any) -> np.ndarray:
    """A column of numbers, or of lists that are all equally long."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(values.type) or pa.types.is_list(values.type) or pa.types.is_large_list(values.type):
        flat = values.flatten().to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(flat).reshape(len(values), -1)
    column: np.ndarray = values.to_numpy(zero_copy_only=False)
    return column
