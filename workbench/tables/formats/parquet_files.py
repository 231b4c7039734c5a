"""`.parquet`: what a column will take is known from the metadata before it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.tables.formats.base import Column, Contents, Format, Room
from workbench.tables.formats.frames import column_of

WIDTHS = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8}  # bytes of a number


def read_parquet(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        facts = {_text(key): _text(text) for key, text in (file.schema_arrow.metadata or {}).items()}
        indices = (file.schema_arrow.pandas_metadata or {}).get("index_columns", [])
        left_out = {name for name in indices if isinstance(name, str)}
        fields = [field for field in file.schema_arrow if field.name not in left_out]
        room.take_columns([field.name for field in fields])
        needed = decoded_bytes(file.metadata)
        for field in fields:
            room.take(f"column {field.name}", needed.get(field.name, 0))
    texts = [field.name for field in fields if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)]
    columns: list[Column] = []
    # A text that stands in many rows is written once; so it stays in memory.
    with pq.ParquetFile(path, read_dictionary=texts) as file:
        for field in fields:
            read = file.read([field.name]).column(0)
            if len(read) != file.metadata.num_rows:
                raise ValueError(
                    f"column {field.name} has {len(read)} rows, and the file says {file.metadata.num_rows}"
                )
            columns.append(column_of(field.name, read))
    return Contents(columns=columns, facts=facts)


def decoded_bytes(metadata: Any) -> dict[str, int]:
    """Size of each column in memory: equal values are written once, so its bytes on disk say little."""
    needed: dict[str, int] = {}
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows += group.num_rows
        for place in range(group.num_columns):
            column = group.column(place)
            flat = "." not in column.path_in_schema
            if flat and column.num_values != group.num_rows:
                raise ValueError(
                    f"column {column.path_in_schema} has {column.num_values} values for {group.num_rows} rows"
                )
            name, kind = column.path_in_schema.split(".")[0], column.physical_type
            texts = 0 if kind in WIDTHS else 2 * column.total_uncompressed_size
            # As it is read, and in the matrix that columns are copied to.
            needed[name] = needed.get(name, 0) + column.num_values * (WIDTHS.get(kind, 8) + 8) + texts
    if rows != metadata.num_rows:
        raise ValueError(f"it says it has {metadata.num_rows} rows, and its parts have {rows}")
    return needed


def _text(written: bytes) -> str:
    return written.decode("utf-8", errors="replace")


PARQUET = Format((".parquet",), read_parquet)
