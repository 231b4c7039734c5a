"""Which columns of a table are classes, which one holds the labels, and what the others say about a row."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from workbench.tables.checks import listed
from workbench.tables.formats.base import IDS, LABELS, LINK, SCORES, Column, Stored


class Roles(NamedTuple):
    """What the columns of a table are, as named arrays."""

    arrays: dict[str, Stored]
    scores: str  # which of the arrays holds the scores
    labels: str | None
    class_names: tuple[str, ...] | None
    empty: tuple[str, ...]  # columns that hold nothing


def roles(columns: list[Column], scores: Sequence[str], labels: str | None) -> Roles:
    """The columns of classes side by side, the labels, and all others by their names.

    Columns with fractions are classes, and whole numbers that stand among them or are named by a label. If there are no
    fractions, all numbers that are neither labels nor ids are classes.
    """
    names = [column.name for column in columns]
    if labels is not None and labels not in names:
        raise ValueError(f"there is no column {labels}; it has {listed(names, 20)}")
    chosen = None if not scores else _chosen(names, scores)
    asked = set(chosen or ())
    columns = [
        _as_numbers(column) if place in asked or (column.name != labels and _are_scores(column, names)) else column
        for place, column in enumerate(columns)
    ]
    one = _scores_in_one_column(columns, chosen)
    label = names.index(labels) if labels is not None else _labels(columns, chosen, one)
    if one is not None:
        classes, matrix, class_names = [one], _matrix(columns[one]), None
    else:
        classes = _classes(columns, label) if chosen is None else chosen
        matrix = _side_by_side([columns[place] for place in classes])
        class_names = tuple(names[place] for place in classes) if any(names) else None
    key = "scores" if one is None else names[one]
    arrays = {key: Stored.of(matrix)}
    taken = set(classes)
    for place, column in enumerate(columns):
        if place not in taken and column.kind != "empty":
            name = column.name or (IDS[0] if place == 0 else "")
            arrays[name if name not in arrays else f"{name} ({place})"] = Stored.of(column.values)
    label_name = (
        None if label is None else next(name for name, array in arrays.items() if array.read() is columns[label].values)
    )
    empty = tuple(
        column.name for place, column in enumerate(columns) if column.kind == "empty" and column.name and place != label
    )
    return Roles(arrays, key, label_name, class_names, empty)


def _chosen(names: list[str], asked: Sequence[str]) -> list[int]:
    """The places of the columns that were asked for; `*` stands for any letters."""
    places: dict[int, None] = {}
    for pattern in asked:
        found = [place for place, name in enumerate(names) if name == pattern]
        if not found and "*" in pattern:
            expression = re.compile(".*".join(map(re.escape, pattern.split("*"))))
            found = [place for place, name in enumerate(names) if expression.fullmatch(name)]
        if not found:
            raise ValueError(f"there is no column {pattern}; it has {listed(names, 20)}")
        places |= dict.fromkeys(found)
    return list(places)


def _number(word: str | None) -> float | None:
    try:
        return None if word is None else float(word.replace(",", "."))
    except ValueError:
        return None


def _as_numbers(column: Column) -> Column:
    """A column of texts that are all numbers, as numbers; any other as it is."""
    if column.kind != "text":
        return column
    numbers = [np.nan if word is None else _number(word) for word in column.values]
    return column if None in numbers else Column(column.name, np.array(numbers, dtype=np.float64), "numbers")


def _are_scores(column: Column, names: Collection[str]) -> bool:
    """Whether a column that is called as labels or ids are holds fractions, unless these are names of classes."""
    if column.name.lower() not in (*LABELS, *IDS):
        return False
    if column.kind == "numbers":
        return bool(np.any(column.values % 1 > 0))
    words = set(column.values) if column.kind == "text" else set()
    numbers = [_number(word) for word in words - {None}]
    return not words - {None} <= set(names) and None not in numbers and any(number % 1 for number in numbers if number)


def _scores_in_one_column(columns: list[Column], chosen: list[int] | None) -> int | None:
    """The column whose every cell holds the scores of all classes: a list, or numbers with semicolons between them."""
    in_one = {place: column for place, column in enumerate(columns) if column.kind in ("matrix", "lists", "text")}
    if chosen is not None:
        return chosen[0] if len(chosen) == 1 and chosen[0] in in_one else None
    named = {column.name.lower(): place for place, column in in_one.items()}
    known = next((named[name] for name in SCORES if name in named), None)
    fractions = [
        place for place, column in in_one.items() if column.kind == "matrix" and column.values.dtype.kind == "f"
    ]
    return known if known is not None or len(fractions) != 1 else fractions[0]


def _matrix(column: Column) -> np.ndarray:
    if column.kind == "matrix":
        return column.values
    rows = [
        re.split(r"[;,\s]+", cell.strip("[]() \n")) if isinstance(cell, str) else list(cell or ())
        for cell in column.values
    ]
    widths = sorted({len(row) for row in rows})
    if len(widths) != 1:
        raise ValueError(f"column {column.name} holds {widths[0]} to {widths[-1]} numbers a row; give one per class")
    try:
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        example = str(column.values[0])[:60]
        raise ValueError(
            f"column {column.name} holds {example!r}; give the scores of all classes, such as 1.5;0.2"
        ) from None


def _labels(columns: list[Column], chosen: list[int] | None, one: int | None) -> int | None:
    """The column that is called label, or otherwise so."""
    called = {column.name.lower(): place for place, column in reversed(list(enumerate(columns)))}
    found = [called[name] for name in LABELS if name in called and called[name] not in (chosen or ())]
    found = [place for place in found if place != one and not _are_scores(columns[place], ())]
    if not found:
        return None
    place, fractions = found[0], [at for at, column in enumerate(columns) if column.kind == "numbers"]
    between = bool(fractions) and fractions[0] < place < fractions[-1]
    if between and chosen is None and one is None and columns[place].name.lower() not in LABELS[:2]:
        name = columns[place].name
        raise ValueError(
            f"column {name} stands among the classes: is it one, or the labels? Say labels={name!r} (--labels {name}), "
            "or scores=[…] (--scores …) with the names of all classes"
        )
    return place


def _classes(columns: list[Column], label: int | None) -> list[int]:
    """The places of the columns that hold the scores of a class each."""
    words = set() if label is None or columns[label].kind in ("matrix", "lists") else _words(columns[label])
    free = [place for place, column in enumerate(columns) if place != label and not _says_something_else(column, place)]
    spoilt = {place for place in free if columns[place].kind == "text" and _mostly_fractions(columns[place])}
    fractions = [place for place in free if columns[place].kind == "numbers" or place in spoilt]
    among = range(fractions[0], fractions[-1]) if fractions else range(len(columns))
    classes = []
    for place in free:
        column, expected = columns[place], place in among or columns[place].name in words
        if column.kind == "numbers" or (column.kind == "whole" and expected):
            classes.append(place)
        elif column.kind in ("text", "empty") and fractions and (expected or place in spoilt):
            _check_readable(column, is_class=column.name in words)
    others = sorted({place for place in free if columns[place].kind == "whole"} - set(classes))
    if others and not any(column.name for column in columns):
        raise ValueError(
            f"column {others[0] + 1} holds whole numbers: labels, or scores? Add a first line that names the columns"
        )
    if not classes:
        raise ValueError("no column holds numbers; give one numeric column per class")
    if (
        words
        and all(word.lstrip("-").isdecimal() for word in words)
        and not words <= {column.name for column in columns}
    ):
        _check_before([columns[place] for place in others if place < classes[0]])
    return classes


def _check_before(columns: list[Column]) -> None:
    """Labels that are positions mean other classes if a column before the classes is one. Numbers of rows are none."""
    for column in columns:
        if len(np.unique(column.values)) < len(column.values):
            raise ValueError(
                f"column {column.name} holds whole numbers and stands before the classes: is it one? Labels are positions, so "
                "name the columns of all classes: scores=[…] (--scores …)"
            )


def _says_something_else(column: Column, place: int) -> bool:
    """Ids, the link and the split, by their names, and row numbers in a first column without a name."""
    row_numbers = place == 0 and not column.name and column.kind == "text"
    return (
        row_numbers
        or column.name.lower() in (*LINK, "split")
        or (column.name.lower() in IDS and column.kind != "numbers")
    )


def _words(column: Column) -> set[str]:
    return {str(word) for word in set(column.values.tolist()) if word is not None}


def _mostly_fractions(column: Column) -> bool:
    """Whether a column of text is one of numbers with a few cells that are none."""
    number = {word: _number(word) for word in set(column.values.tolist())}
    if not any(value % 1 for value in number.values() if value is not None):
        return False
    return sum(number[word] is not None for word in column.values.tolist()) * 2 > len(column.values)


def _check_readable(column: Column, is_class: bool) -> None:
    """Refuse a column of a class with a cell that is no number: without it the classes behind it would move up."""
    readable = [_number(word) is not None for word in column.values]
    if column.kind == "text" and not is_class and not any(readable):
        return  # words, not scores, between the classes
    row = readable.index(False)
    raise ValueError(
        f"column {column.name}, row {row + 1}: {column.values[row] or ''!r} is no number; mend it or leave out the row (or "
        "name the columns of classes: scores=[…], --scores …)"
    )


def _side_by_side(columns: list[Column]) -> np.ndarray:
    """One matrix of the columns, in their order."""
    for column in columns:
        if column.kind not in ("numbers", "whole"):
            _check_readable(column, is_class=True)
    kinds = {column.values.dtype for column in columns}
    floats = all(kind.kind == "f" for kind in kinds)
    matrix = np.empty((len(columns[0].values), len(columns)), np.result_type(*kinds) if floats else np.float64)
    for place, column in enumerate(columns):
        matrix[:, place] = column.values
    if (missing := np.isnan(matrix)).any():
        row, place = np.argwhere(missing)[0]
        raise ValueError(
            f"column {columns[place].name}, row {row + 1} is empty or NaN; scores must be finite: fill it, or leave out the row"
        )
    return matrix
