"""`.safetensors`: a header of JSON, then plain numbers, which stay on disk. Words may stand in its metadata."""

from __future__ import annotations

import json
import math
from functools import partial
from pathlib import Path

import numpy as np

from workbench.tables.formats.base import Contents, Format, Room, StoredArray

KINDS = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BOOL": "?", "U8": "u1", "I8": "i1", "BF16": "<u2"}
KINDS |= {f"{sign}{bits}": f"<{sign.lower()}{bits // 8}" for sign in "IU" for bits in (16, 32, 64)}


def read_safetensors(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = 8 + int.from_bytes(file.read(8), "little")
        if size < 8 or start > size:
            raise ValueError(f"the header should be {start - 8} bytes long, and the file has {size}")
        header = json.loads(file.read(start - 8))
    facts = header.pop("__metadata__", {})
    arrays, held = {}, 0
    for name, tensor in header.items():
        shape, (begin, end) = tuple(tensor["shape"]), tensor["data_offsets"]
        if tensor["dtype"] not in KINDS:  # eight bits and less, or complex: nothing that a table needs
            arrays[name] = StoredArray(shape, np.dtype("V1"), partial(_unread, name, tensor["dtype"]))
        else:
            dtype = np.dtype(KINDS[tensor["dtype"]])
            promised = math.prod(shape) * dtype.itemsize
            if not all(isinstance(side, int) and side >= 0 for side in shape) or promised != end - begin or begin < 0:
                raise ValueError(
                    f"the header says {name} is {tensor['dtype']} {shape}, and gives it {end - begin} bytes"
                )
            brain = tensor["dtype"] == "BF16"
            read = partial(_mapped, path, start + begin, shape, dtype, brain, room)
            arrays[name] = StoredArray(shape, np.dtype(np.float32) if brain else dtype, read)
        held += end - begin
    if held != size - start:
        raise ValueError(f"the header gives the arrays {held} bytes, and {size - start} follow it")
    return Contents(arrays, facts=facts)


def _mapped(path: Path, offset: int, shape: tuple[int, ...], dtype: np.dtype, brain: bool, room: Room) -> np.ndarray:
    if not math.prod(shape):
        return np.empty(shape, dtype)
    values = np.memmap(path, dtype, mode="r", offset=offset, shape=shape or (1,)).reshape(shape)
    if not brain:
        return values
    room.take("bfloat16 as float32", 8 * values.size)
    return (values.astype(np.uint32) << 16).view(np.float32)  # bfloat16 is the upper half of a float32


def _unread(name: str, kind: str) -> np.ndarray:
    raise ValueError(f"{name} is {kind}, which is not read")


SAFETENSORS = Format((".safetensors",), read_safetensors)
