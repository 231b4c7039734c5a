"""Files that list some classes of each row, with or without probabilities: the best few of a service, sets made elsewhere."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from workbench.tables.formats import Column, Contents, RefusedFile, Room
from workbench.tables.formats.base import CLASS_NAMES, IDS, LABELS, PROBABILITIES, StoredArray, decoded
from workbench.tables.formats.frames import contents_of_frame
from workbench.tables.formats.json_files import JSON, json_rows, scores_by_name
from workbench.tables.formats.opening import contents_at, damaged, format_of

LISTS = ("classes", "set", "sets", "prediction_set", "prediction_sets", "predicted_set", "candidates", "indices")
ONE_CLASS = ("class", "class_name", "predicted", "prediction", "species", "category", "name")
VALUES = (*PROBABILITIES, "values", "scores", "score", "probability", "confidence", "confidences")
IN_CELL = ";|"  # what stands between the classes of a cell
NUMBERED = re.compile(r"(.*?)[_ -]?(\d+)")  # class_1, score_1, class_2, …


@dataclass(frozen=True)
class ListedClasses:
    """The classes that each row of a file lists: {class: probability}, or {class: NaN} of sets without probabilities."""

    rows: list[dict[Any, float]]
    labels: list[Any] | None = None
    ids: list[Any] | None = None
    attributes: dict[str, list[Any]] = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None
    n_classes: int | None = None
    cut: float | None = None
    are_sets: bool = False  # answers as they were given, not what is left of all scores

    @property
    def with_probabilities(self) -> bool:
        """Whether every listed class has its probability."""
        return not any(value != value for row in self.rows for value in row.values())


def read_listed(source: Any) -> ListedClasses | None:
    """The classes that the rows of a file, or of a DataFrame, list; None if it is a file of something else.

    Raises:
        ValueError: the file cannot be read.
    """
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return of_columns(contents_of_frame(source).columns or [])
    path = Path(source)
    return of_json(path) if format_of(path) is JSON else of_contents(contents_at(path))


def of_contents(contents: Contents) -> ListedClasses | None:
    """The listed classes of a file that was read."""
    return of_arrays(contents.arrays) if contents.columns is None else of_columns(contents.columns)


def of_json(path: Path) -> ListedClasses | None:
    """The answers of a service: each names some classes and their scores, or only classes."""
    try:
        return _of_answers(json_rows(path, Room(path.stat().st_size)))
    except RefusedFile as error:
        raise ValueError(f"{path.name}: {error}") from None
    except OSError:
        raise
    except Exception as error:  # of a damaged file
        raise ValueError(damaged(path, error)) from error


def _of_answers(rows: Sequence[Mapping[str, Any]]) -> ListedClasses | None:
    listed, others = [], []
    for row in rows:
        answers = {name: scores for name, value in row.items() if (scores := scores_by_name(value)) is not None}
        name = next(iter(answers), None) or next((key for key in row if _is_list_of_names(key, row[key])), None)
        if name is None:
            return None
        given = dict.fromkeys(row[name], np.nan) if name not in answers else answers[name]
        values = next((row[key] for key in VALUES if key in row and key != name and isinstance(row[key], list)), None)
        listed.append(dict(zip(given, values, strict=True)) if values is not None and name not in answers else given)
        others.append({key: value for key, value in row.items() if key not in (name, *VALUES)})
    names = dict.fromkeys(key for row in others for key in row)
    columns = [Column(key, np.array([_cell(row.get(key)) for row in others], dtype=object), "text") for key in names]
    return _described(listed, columns)


def _is_list_of_names(key: str, value: Any) -> bool:
    return (
        key.lower() in LISTS and isinstance(value, list) and not any(isinstance(each, (list, dict)) for each in value)
    )


def _cell(value: Any) -> Any:
    return None if isinstance(value, (list, dict)) else value


def of_columns(columns: Sequence[Column]) -> ListedClasses | None:
    """Lists in one cell of a row, a line for each row and class, or columns such as class_1, score_1, class_2, …"""
    by_name = {column.name.lower(): column for column in columns}
    cells = next((by_name[name] for name in LISTS if name in by_name and _holds_lists(by_name[name])), None)
    if cells is not None and sum(column.kind == "numbers" for column in columns) < 2:
        values = next((by_name[name] for name in VALUES if name in by_name and by_name[name].kind != "numbers"), None)
        rows = _rows_of_cells(cells, values)
        return _described(rows, [each for each in columns if each is not cells and each is not values])
    return _pairs_of_columns(columns) or _line_a_class(columns, by_name)


def _holds_lists(column: Column) -> bool:
    return column.kind in ("lists", "text", "matrix")


def _rows_of_cells(cells: Column, values: Column | None) -> list[dict[Any, float]]:
    rows: list[dict[Any, float]] = []
    for number, cell in enumerate(cells.values):
        names = _entries(cell)
        given = (
            [float(each) for each in _entries(values.values[number])] if values is not None else [np.nan] * len(names)
        )
        if len(given) != len(names):
            raise ValueError(f"row {number + 1} lists {len(names)} classes and {len(given)} probabilities")
        rows.append(dict(zip(names, given, strict=True)))
    return rows


def _entries(cell: Any) -> list[Any]:
    """The entries of a cell: a list, or a text such as oak;elm or ['oak', 'elm']."""
    if cell is None or (isinstance(cell, float) and np.isnan(cell)):
        return []
    if not isinstance(cell, str):
        return [each.item() if isinstance(each, np.generic) else each for each in cell]
    inside = cell.strip()
    if inside[:1] in "[({" and inside[-1:] in "])}":
        parts = [part.strip().strip("'\"") for part in inside[1:-1].split(",")]
    else:
        parts = [part.strip() for part in re.split(f"[{IN_CELL}]", inside)]
    return [part for part in parts if part]


def _pairs_of_columns(columns: Sequence[Column]) -> ListedClasses | None:
    """Columns of a name and a number: those of classes hold words or whole numbers, those of scores fractions."""
    series: dict[str, dict[int, Column]] = {}
    for column in columns:
        if match := NUMBERED.fullmatch(column.name.lower()):
            series.setdefault(match[1], {})[int(match[2])] = column
    classes = next((each for each in series.values() if len(each) > 1 and _all(each, "text")), None)
    scores = next((each for each in series.values() if len(each) > 1 and _all(each, "numbers", "whole")), None)
    if classes is None or scores is None or sorted(classes) != sorted(scores):
        return None
    rows: list[dict[Any, float]] = []
    for number in range(len(columns[0].values)):
        pairs = [(classes[place].values[number], scores[place].values[number]) for place in sorted(classes)]
        rows.append({name: float(value) for name, value in pairs if name is not None and value == value})
    taken = {id(column) for each in (classes, scores) for column in each.values()}
    return _described(rows, [column for column in columns if id(column) not in taken])


def _all(series: dict[int, Column], *kinds: str) -> bool:
    return all(column.kind in kinds for column in series.values())


def _line_a_class(columns: Sequence[Column], by_name: dict[str, Column]) -> ListedClasses | None:
    """A line for each row and class: the id of the row, the class and its score."""
    row = next((by_name[name] for name in (*IDS, "row", "item", "task") if name in by_name), None)
    kind = next((by_name[name] for name in ONE_CLASS if name in by_name and by_name[name].kind != "numbers"), None)
    score = next((by_name[name] for name in VALUES if name in by_name and by_name[name].kind == "numbers"), None)
    if row is None or kind is None or score is None or len(set(row.values.tolist())) == len(row.values):
        return None
    first = {name: number for number, name in reversed(list(enumerate(row.values.tolist())))}
    rows: dict[Any, dict[Any, float]] = {name: {} for name in dict.fromkeys(row.values.tolist())}
    for name, each, value in zip(row.values.tolist(), kind.values.tolist(), score.values.tolist(), strict=True):
        if each is not None and value == value:
            rows[name][each] = float(value)
    at = [first[name] for name in rows]
    others = [
        Column(each.name, each.values[at], each.kind) for each in columns if each is not kind and each is not score
    ]
    return _described(list(rows.values()), others)


def of_arrays(arrays: Mapping[str, StoredArray]) -> ListedClasses | None:
    """Arrays of `torch.topk`, indices and values of shape (n, m), or sets as a Boolean (n, L) matrix."""
    by_name = {name.lower(): stored for name, stored in arrays.items()}
    values = next((by_name[name] for name in VALUES if name in by_name and len(by_name[name].shape) == 2), None)
    for name in ("indices", *LISTS, "top_classes", "topk_indices"):
        stored = by_name.get(name)
        if stored is None or len(stored.shape) != 2:
            continue
        if stored.dtype.kind == "b" and (values is None or values.shape != stored.shape):
            rows = [dict.fromkeys(np.flatnonzero(mask).tolist(), np.nan) for mask in stored.read()]
            facts = {**_facts(by_name), "n_classes": stored.shape[1]}
            return _described(rows, _others(by_name, stored.shape[0]), **facts)
        if stored.dtype.kind in "iu" and values is not None and values.shape == stored.shape:
            pairs = zip(stored.read().tolist(), values.read().tolist(), strict=True)
            rows = [dict(zip(names, given, strict=True)) for names, given in pairs]
            return _described(rows, _others(by_name, stored.shape[0]), **_facts(by_name))
    return None


def _facts(arrays: Mapping[str, StoredArray]) -> dict[str, Any]:
    """The names of the classes, how many there are, and the cut, where a file says so."""
    names = next((arrays[name] for name in CLASS_NAMES if name in arrays and len(arrays[name].shape) == 1), None)
    one = {name: arrays[name].read().reshape(-1)[0].item() for name in ("n_classes", "cut") if name in arrays}
    words = None if names is None else tuple(str(name) for name in decoded(names.read()).tolist())
    return {"class_names": words, **one}


def _others(arrays: Mapping[str, StoredArray], n: int) -> list[Column]:
    return [
        Column(name, decoded(stored.read()), "text")
        for name, stored in arrays.items()
        if stored.shape == (n,) and name not in CLASS_NAMES
    ]


def _described(rows: list[dict[Any, float]], columns: Sequence[Column], **facts: Any) -> ListedClasses:
    """The listed classes with their labels, ids and attributes."""
    by_name = {column.name.lower(): column.values.tolist() for column in columns if column.kind != "empty"}
    labels = next((by_name.pop(name) for name in LABELS if name in by_name), None)
    ids = next((by_name.pop(name) for name in IDS if name in by_name), None)
    beside = [by_name.pop(name, None) for name in ("hit", "size")]  # what `workbench sets` writes
    flat = {name: values for name, values in by_name.items() if not any(isinstance(each, list) for each in values)}
    return ListedClasses(rows, _numbers(labels, rows), ids, flat, are_sets=any(beside), **facts)


def _numbers(labels: list[Any] | None, rows: list[dict[Any, float]]) -> list[Any] | None:
    """Labels as numbers where the classes are numbers: a .csv keeps labels as texts."""
    if labels is None or any(isinstance(name, str) for row in rows for name in row):
        return labels
    return [
        int(label) if isinstance(label, str) and label.strip().lstrip("-").isdecimal() else label for label in labels
    ]
