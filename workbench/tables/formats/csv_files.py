"""`.csv`, also with semicolons or tabs, and with decimal commas: read by Arrow, which takes no word for nothing."""

from __future__ import annotations

import csv
import gzip
import io
import mmap
import re
from pathlib import Path
from typing import Any

import numpy as np

from workbench.tables.formats.base import IDS, LABELS, LINK, Column, Contents, Format, RefusedFile, Room
from workbench.tables.formats.frames import column_of

AS_WRITTEN = {*LABELS, *IDS, *LINK, "split"}  # texts, whatever they look like: 001 is not 1
SAMPLE, SAMPLE_BYTES = 50, 2**20  # lines that tell the separator
WIDE = 20_000  # columns; Arrow takes some kilobytes, and a tenth of a millisecond, for each
NUMBER = re.compile(r"[-+]?(\d+[.,]?\d*|[.,]\d+)([eE][-+]?\d+)?")
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*")


def read_csv(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    import pyarrow as pa

    content = _content(path, room)
    lines = _first_lines(io.BytesIO(content) if isinstance(content, bytes) else content)
    separator = max(",;\t", key=lambda candidate: _fitness(lines, candidate))
    (first, n_lines), *others = _records(lines, separator)
    has_header, note = _header(first, [record for record, _ in others])
    start = sum(map(len, lines[:n_lines])) if has_header else 0
    names = first if has_header else [""] * len(first)
    room.take_columns(names, distinct=False)
    as_text = [str(place) for place, name in enumerate(names) if name.lower() in AS_WRITTEN or name in text_columns]
    body = pa.py_buffer(content).slice(start + _byte_order_mark(lines[0]) * (start == 0))
    columns = _columns(body, names, separator, ".", as_text)
    if separator != "," and len(names) <= WIDE and any(_has_decimal_commas(column) for column in columns):
        columns = _columns(body, names, separator, ",", as_text)
    return Contents(columns=columns, notes=note)


def _content(path: Path, room: Room) -> bytes | mmap.mmap:
    """The text of the file: mapped, or out of a `.gz` as far as there is room."""
    if path.suffix.lower() != ".gz":
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with gzip.open(path) as packed:
        content = packed.read(room.free + 1)
    room.take("the text in it", len(content))
    return content


def _first_lines(content: mmap.mmap | io.BytesIO) -> list[bytes]:
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
        raise RefusedFile(f"it is not text in UTF-8 ({error.reason}); save it as CSV UTF-8") from None
    reader = csv.reader(texts, delimiter=separator)
    records: list[tuple[list[str], int]] = []
    try:
        for record in reader:
            if record:
                records.append(([cell.strip() for cell in record], reader.line_num))
    except csv.Error as error:  # such as a text too long for a name
        if not records:
            raise RefusedFile(f"its first line does not name columns ({error})") from None
    if not records:
        raise RefusedFile("it has no line that holds anything")
    return records


def _fitness(lines: list[bytes], separator: str) -> tuple[bool, bool, int]:
    """Fitness of a separator: whether it parts the first record and most others, then all as the first, then into numbers."""
    try:
        (first, *others) = [record for record, _ in _records(lines, separator)]
    except RefusedFile:
        return False, False, 0
    whole = others[: max(1, len(others) - 1)]  # the last one may be cut
    parted = sum(len(record) > 1 for record in whole)
    numbers = sum(_is_number(cell) and (separator != "," or "," not in cell) for row in others for cell in row)
    fits = len(first) > 1 and 2 * parted >= len(whole)
    return fits, all(len(record) == len(first) for record in whole), numbers


def _is_number(cell: str) -> bool:
    return NUMBER.fullmatch(cell) is not None


def _header(first: list[str], others: list[list[str]]) -> tuple[bool, tuple[str, ...]]:
    """Whether the first record names the columns, and what to say where that was in doubt."""
    numbers = [cell for cell in first if _is_number(cell)]
    words = {cell.lower() for cell in first if cell and not _is_number(cell)}
    if (
        words
        and not words & AS_WRITTEN
        and (len(set(numbers)) < len(numbers) or not all(cell.isdecimal() for cell in numbers))
    ):
        raise RefusedFile(
            f"its first line is {', '.join(first[:6])[:80]}: names of columns, or scores? Add a first line that names them"
        )
    if not all(_is_number(cell) for cell in first) or first == [str(place) for place in range(len(first))]:
        return True, ()
    whole = all(cell.isdecimal() for cell in first) and len(set(first)) == len(first)
    padded = any(cell != str(int(cell)) for cell in first) if whole else False
    if whole and (padded or not any(all(cell.isdecimal() for cell in record) for record in others)):
        return True, ("its first line read as names of classes",)
    return False, ("no names of classes: its first line read as scores",)


def _columns(body: Any, names: list[str], separator: str, decimal: str, as_text: list[str]) -> list[Column]:
    import pyarrow as pa
    from pyarrow import csv as arrow

    if len(names) > WIDE:
        return _wide_columns(body, names, separator, {int(place) for place in as_text})
    parse = arrow.ParseOptions(delimiter=separator, newlines_in_values=True)
    convert = arrow.ConvertOptions(
        column_types=dict.fromkeys(as_text, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        true_values=[],
        false_values=[],
        decimal_point=decimal,
    )
    places = [str(place) for place in range(len(names))]  # names may be equal
    for block in (2**20, max(2**20, body.size) + 1):  # a line that is longer than a block cannot be read
        read = arrow.ReadOptions(column_names=places, block_size=min(block, 2**31 - 1), use_threads=False)
        try:
            table = arrow.read_csv(pa.BufferReader(body), read, parse, convert)
            return [column_of(name, values) for name, values in zip(names, table.columns, strict=True)]
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error) or block > 2**20:
                raise
    raise AssertionError


def _wide_columns(body: Any, names: list[str], separator: str, as_text: set[int]) -> list[Column]:
    """More columns than Arrow is made for, row by row: one that begins with a number holds numbers."""
    records = csv.reader(io.TextIOWrapper(io.BytesIO(body), "utf-8", newline=""), delimiter=separator)
    texts: list[list[str]] = []
    rows: list[np.ndarray] = []
    words: list[int] = []
    for record in filter(None, records):
        if len(record) != len(names):
            raise RefusedFile(f"row {len(rows) + 1} has {len(record)} cells for {len(names)} columns")
        if not rows:
            words = [at for at, cell in enumerate(record) if at in as_text or not _is_number(cell.strip())]
        texts.append([record[at].strip() for at in words])
        for at in words:
            record[at] = "0"
        cells = record if separator == "," else [cell.replace(",", ".") for cell in record]
        try:
            rows.append(np.array(cells, dtype=np.float64))
        except ValueError:
            at = next(at for at, cell in enumerate(record) if not _is_number(cell.strip()))
            raise RefusedFile(f"column {names[at]}, row {len(rows) + 1}: {record[at][:40]!r} is not a number") from None
    if not rows:
        raise RefusedFile("it has a first line and no row below it")
    matrix = np.stack(rows)
    whole = (matrix % 1 == 0).all(axis=0)
    columns = [Column(name, matrix[:, at], "whole" if whole[at] else "numbers") for at, name in enumerate(names)]
    for at, column in zip(words, zip(*texts, strict=True), strict=True):
        entries = np.array([cell or None for cell in column], dtype=object)
        columns[at] = Column(names[at], entries, "text" if any(column) else "empty")
    return columns


def _has_decimal_commas(column: Column) -> bool:
    return column.kind == "text" and any(word and DECIMAL_COMMA.fullmatch(word) for word in set(column.values))


CSV = Format((".csv", ".tsv", ".csv.gz", ".tsv.gz"), read_csv)
