"""`.csv`, also with semicolons or tabs, and with decimal commas: read by Arrow, which takes no word for nothing."""

from __future__ import annotations

import csv
import mmap
import re
from pathlib import Path
from typing import Any

from workbench.formats.base import Column, Contents, Format, Room
from workbench.formats.frames import column_of
from workbench.formats.names import IDS, LABELS, LINK

AS_WRITTEN = {*LABELS, *IDS, *LINK, "split"}  # texts, whatever they look like: 001 is not 1
SAMPLE, SAMPLE_BYTES = 50, 2**20  # lines that tell the separator
AT_ONCE = 20_000  # columns: Arrow takes some kilobytes for each
NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


def read_csv(path: Path, room: Room, asked: tuple[str, ...]) -> Contents:
    import pyarrow as pa

    with path.open("rb") as file:
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    lines = _first_lines(content)
    separator = max(",;\t", key=lambda candidate: _fitness(lines, candidate))
    (first, n_lines), *others = _records(lines, separator)
    has_header, said = _header(first, [record for record, _ in others])
    start = sum(map(len, lines[:n_lines])) if has_header else 0
    names = first if has_header else [""] * len(first)
    as_text = [str(place) for place, name in enumerate(names) if name.lower() in AS_WRITTEN or name in asked]
    body = pa.py_buffer(content).slice(start + _byte_order_mark(lines[0]) * (start == 0))
    columns = _columns(body, names, separator, ".", as_text)
    if separator != "," and any(_has_decimal_commas(column) for column in columns):
        columns = _columns(body, names, separator, ",", as_text)
    return Contents(columns=columns, said=said)


def _first_lines(content: mmap.mmap) -> list[bytes]:
    """Some lines from the beginning: two at least, where there are two."""
    lines: list[bytes] = []
    while (
        len(lines) < SAMPLE and (len(lines) < 2 or sum(map(len, lines)) < SAMPLE_BYTES) and (line := content.readline())
    ):
        lines.append(line)
    return lines


def _byte_order_mark(line: bytes) -> int:
    return 3 * line.startswith(b"\xef\xbb\xbf")


def _records(lines: list[bytes], separator: str) -> list[tuple[list[str], int]]:
    """The cells of each record, and how many lines were read by its end."""
    try:
        texts = [line.decode("utf-8-sig" if number == 0 else "utf-8") for number, line in enumerate(lines)]
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8 ({error.reason}); save it as CSV UTF-8") from None
    reader = csv.reader(texts, delimiter=separator)
    records: list[tuple[list[str], int]] = []
    try:
        for record in reader:
            if record:
                records.append(([cell.strip() for cell in record], reader.line_num))
    except csv.Error as error:  # a cell too long for a look at the beginning
        if not records:
            raise ValueError(f"the first line cannot be read: {error}") from None
    if not records:
        raise ValueError("it has no line that holds anything")
    return records


def _fitness(lines: list[bytes], separator: str) -> tuple[bool, int, int]:
    """How well a separator fits: records of one width, then many numbers, then many cells."""
    records = [record for record, _ in _records(lines, separator)]
    widths = {len(record) for record in records[: max(2, len(records) - 1)]}  # the last may be cut
    numbers = sum(_is_number(cell) and (separator != "," or "," not in cell) for row in records[1:] for cell in row)
    return len(widths) == 1, numbers, len(records[0])


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def _header(first: list[str], others: list[list[str]]) -> tuple[bool, tuple[str, ...]]:
    """Whether the first record names the columns, and what to say where that was in doubt."""
    if not all(_is_number(cell) for cell in first) or first == [str(place) for place in range(len(first))]:
        return True, ()
    whole = all(cell.isdecimal() for cell in first) and len(set(first)) == len(first)
    padded = any(cell != str(int(cell)) for cell in first) if whole else False
    if whole and (padded or not any(all(cell.isdecimal() for cell in record) for record in others)):
        return True, ("its first line read as names of classes",)
    return False, ("no names of classes: its first line read as scores",)


def _columns(body: Any, names: list[str], separator: str, decimal: str, as_text: list[str]) -> list[Column]:
    places = [str(place) for place in range(len(names))]
    columns: list[Column] = []
    for start in range(0, len(places), AT_ONCE):
        some = places[start : start + AT_ONCE]
        columns += [
            column_of(names[int(place)], values)
            for place, values in zip(some, _arrow(body, places, some, separator, decimal, as_text), strict=True)
        ]
    return columns


def _arrow(
    body: Any, places: list[str], some: list[str], separator: str, decimal: str, as_text: list[str]
) -> list[Any]:
    """Some of the columns, as Arrow reads them."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    parse = arrow.ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = arrow.ConvertOptions(
        include_columns=some,
        column_types=dict.fromkeys(as_text, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        true_values=[],
        false_values=[],
        decimal_point=decimal,
    )
    for block in (max(2**20, body.size // 8), body.size + 1):  # a line that is longer than a block cannot be read
        read = arrow.ReadOptions(column_names=places, block_size=min(block, 2**31 - 1))
        try:
            return arrow.read_csv(pa.BufferReader(body), read, parse, convert).columns
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block > body.size:
                raise
    raise AssertionError


def _has_decimal_commas(column: Column) -> bool:
    return column.kind == "text" and any(word and DECIMAL_COMMA.fullmatch(word) for word in set(column.values))


CSV = Format((".csv",), read_csv)
