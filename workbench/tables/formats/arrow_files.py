"""`.feather` and `.arrow`: what each batch takes in memory is read from its head before it is unpacked."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from workbench.tables.formats.base import Contents, Format, Room
from workbench.tables.formats.frames import column_of

BEGINS = b"ARROW1\0\0"  # then messages, as in a stream of Arrow
DICTIONARY, BATCH = 2, 3  # kinds of messages that hold arrays


def read_feather(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    """The columns of a Feather file (version 2, which is Arrow's own)."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        content = source.read_buffer()
        if content[: len(BEGINS)].to_pybytes() != BEGINS:
            raise ValueError("it does not begin as a file of Arrow")
        messages = content.slice(len(BEGINS))
        schema = pa.ipc.read_schema(messages)
        room.take_columns(schema.names)
        for number, message in enumerate(pa.ipc.MessageReader.open_stream(messages)):
            room.take(f"part {number}", unpacked_bytes(message))
        table = pa.ipc.open_stream(messages).read_all()
    return Contents(columns=[column_of(name, values) for name, values in zip(schema.names, table.columns, strict=True)])


def unpacked_bytes(message: Any) -> int:
    """The bytes of the arrays in a message of Arrow's format, unpacked: before each packed one stands its size."""
    head, body = message.metadata.to_pybytes(), message.body
    start = _at(head, 0, "I")
    if body is None or (kind := _at(head, _field(head, start, 1) or start, "B")) not in (DICTIONARY, BATCH):
        return 0
    batch = _table(head, start, 2)
    batch = _table(head, batch, 1) if kind == DICTIONARY else batch
    packed, buffers = _field(head, batch, 3), _table(head, batch, 2)
    if not packed:
        return int(body.size)
    sizes = [struct.unpack_from("<qq", head, buffers + 4 + 16 * each) for each in range(_at(head, buffers, "I"))]
    content = memoryview(body)
    return sum(max(_at(content, place, "q"), length) for place, length in sizes if length)


def _table(head: bytes, table: int, number: int) -> int:
    """Where the table, or the list, in a field of a flatbuffer table begins."""
    place = _field(head, table, number)
    return place + _at(head, place, "I")


def _field(head: bytes, table: int, number: int) -> int:
    """Where a field of a flatbuffer table stands; 0 if it is left out."""
    names = table - _at(head, table, "i")
    place = 4 + 2 * number
    offset = _at(head, names + place, "H") if place < _at(head, names, "H") else 0
    return table + offset if offset else 0


def _at(content: Any, place: int, kind: str) -> int:
    found: int = struct.unpack_from(f"<{kind}", content, place)[0]
    return found


FEATHER = Format((".feather", ".arrow"), read_feather)
