"""Roles of the columns of a table: classes, labels and attributes of rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from workbench.tables.checks import listed
from workbench.tables.formats.base import IDS, LABELS, LINK, SCORES, Column, StoredArray
from workbench.tables.objects import OBJECTS


class Roles(NamedTuple):
    """Roles of the columns of a table, as named arrays."""

    arrays: dict[str, StoredArray]
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
    chosen = None if not scores else _matching_columns(names, scores)
    selected = set(chosen or ())
    columns = [
        _as_numbers(column) if place in selected or (column.name != labels and _are_scores(column, names)) else column
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
    arrays = {key: StoredArray.of(matrix)}
    taken = set(classes)
    for place, column in enumerate(columns):
        if place not in taken and column.kind != "empty":
            name = column.name or (IDS[0] if place == 0 else "")
            arrays[name if name not in arrays else f"{name} ({place})"] = StoredArray.of(column.values)
    label_name = (
        None if label is None else next(name for name, array in arrays.items() if array.read() is columns[label].values)
    )
    empty = tuple(
        column.name for place, column in enumerate(columns) if column.kind == "empty" and column.name and place != label
    )
    return Roles(arrays, key, label_name, class_names, empty)


def _matching_columns(names: list[str], patterns: Sequence[str]) -> list[int]:
    """Positions of the selected columns; `*` stands for any letters."""
    places: dict[int, None] = {}
    for pattern in patterns:
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
        return None if word is None or "_" in word else float(word.replace(",", "."))  # Python reads 1_0 as 10
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
    among = range(*_widened(fractions, free, columns)) if fractions else range(len(columns))
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
    if label is not None and words:
        _check_apart(columns, classes, words)
    _check_sums([columns[place] for place in classes])
    return classes


def _check_apart(columns: list[Column], classes: list[int], words: set[str]) -> None:
    """Refuse numbers that other columns part from the classes that labels name, and that no label names: no class, perhaps."""
    blocks: list[list[int]] = []
    for before, place in zip([-2, *classes], classes, strict=False):
        if place == before + 1:
            blocks[-1].append(place)
        else:
            blocks.append([place])
    numbered = not words & {columns[place].name for place in classes}
    named = {place for at, place in enumerate(classes) if str(at) in words} if numbered else set[int]()
    named |= {place for place in classes if columns[place].name in words}
    apart = [place for block in blocks if named and not named.intersection(block) for place in block]
    if apart and all(columns[place].name for place in classes):
        raise ValueError(
            f"{listed(columns[place].name for place in apart)} beside the classes: no label is of it, and other columns stand "
            "between. Is it a class? Name the columns of all classes: scores=[…] (--scores …)"
        )


def _check_sums(classes: list[Column]) -> None:
    """Refuse a number at an end, such as a confidence, without which every row adds up to 1: it would be read as a class."""
    if len(classes) < 3 or not classes[0].name or any(column.kind == "text" for column in classes):
        return
    first, *_, last = (column.values for column in classes)
    total = sum((column.values for column in classes), np.zeros(len(first)))
    for end, left in ((classes[-1], total - last), (classes[0], total - first)):
        if end.values.any() and np.allclose(left, 1, atol=1e-3):
            raise ValueError(
                f"column {end.name} beside the classes: without it every row adds up to 1. Is it a class? Name the columns of "
                "all classes: scores=[…] (--scores …)"
            )


def _widened(fractions: list[int], free: list[int], columns: list[Column]) -> tuple[int, int]:
    """The places from the first class to behind the last: whole numbers at an end that are called as the others are, too.

    Nothing but zeros beside the classes is a class that no row expects, or something else: which one cannot be known.
    """
    first, last = fractions[0], fractions[-1]
    series = {_series(columns[place].name) for place in fractions}
    for step in (-1, 1):
        place = (first if step < 0 else last) + step
        while place in free and columns[place].kind == "whole":
            column = columns[place]
            if column.name and len(fractions) > 1 and series == {_series(column.name)}:
                first, last = min(first, place), max(last, place)
            elif column.name and not column.values.any():
                raise ValueError(
                    f"column {column.name} beside the classes holds only 0: is it one? Name the columns of all classes: "
                    "scores=[…] (--scores …)"
                )
            place += step
    return first, last + 1


def _series(name: str) -> str:
    """Return the common prefix of a series of columns: `p_` of p_oak and p_elm, `class` of class1 and class2."""
    return f"{name.rpartition('_')[0]}_" if "_" in name else name.rstrip("0123456789")


def _check_before(columns: list[Column]) -> None:
    """Labels that are positions mean other classes if a column before the classes is one. Numbers of rows are none."""
    for column in columns:
        if len(np.unique(column.values)) < len(column.values):
            raise ValueError(
                f"column {column.name} holds whole numbers and stands before the classes: is it one? Labels are positions, so "
                "name the columns of all classes: scores=[…] (--scores …)"
            )


def _says_something_else(column: Column, place: int) -> bool:
    """Ids, objects, the link and the split, by their names, and row numbers in a first column without a name."""
    row_numbers = place == 0 and not column.name and column.kind == "text"
    return (
        row_numbers
        or column.name.lower() in (*LINK, *OBJECTS, "split")
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
    """Refuse a column of a class with a cell that is not a number: without it the classes behind it would move up."""
    readable = [_number(word) is not None for word in column.values]
    if column.kind == "text" and not is_class and not any(readable):
        return  # words, not scores, between the classes
    row = readable.index(False)
    raise ValueError(
        f"column {column.name}, row {row + 1}: {column.values[row] or ''!r} is not a number; mend it or leave out the row (or "
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
