"""Labels as people have them: numbers, names, marks of 0 and 1, lists, pandas objects, sparse matrices."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

NO_LABEL = -1
SEVERAL = (list, tuple, set, frozenset, np.ndarray)  # what holds the labels of one row


def read_labels(y: Any, class_names: Iterable[Any] | None = None) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as (n,) int64, −1 where a row has none, or as (n, L) bool marks; and the names of the classes.

    Whole numbers are class indices and text is names; −1, None, NaN and "" mean no label. Marks are a matrix of 0 and 1
    with a column for each class; the columns of a DataFrame name the classes. A list for each row holds its labels.
    Without `class_names`, text names the classes in its sorted order.

    >>> read_labels(["moss", "fern", ""])
    (array([ 1,  0, -1]), ('fern', 'moss'))
    >>> read_labels([["b"], [], ["a", "b"]])[0].astype(int).tolist()
    [[0, 1], [0, 0], [1, 1]]
    """
    names = None if class_names is None else checked_names(class_names)
    if hasattr(y, "columns"):  # a DataFrame
        y, names = _by_column(y, names)
    y = plain(y)
    if _lists_of_labels(y):
        return _marks_of_lists(y, names)
    array = np.asarray(y)
    if array.ndim == 2:
        return _marks(array, names)
    if array.ndim != 1:
        raise ValueError(f"y has shape {array.shape}; give one label a row, (n,), or marks of 0 and 1, (n, L)")
    return _one_a_row(array, names)


def joined_labels(parts: Sequence[Any]) -> Any:
    """The labels of several splits as those of one."""
    if all(hasattr(part, "columns") for part in parts):
        import pandas as pd  # it is loaded already: these are its frames

        if any(list(part.columns) != list(parts[0].columns) for part in parts):
            raise ValueError("the parts of y have other columns or another order of them; give the same for all")
        return pd.concat(parts)
    arrays = [plain(part) for part in parts]
    if all(isinstance(array, np.ndarray) for array in arrays) and len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    return [row for array in arrays for row in array]


def n_rows(y: Any) -> int:
    """How many rows have labels here; a sparse matrix has no length."""
    return y.shape[0] if hasattr(y, "shape") else len(y)


def plain(y: Any) -> Any:
    """An array or a list in place of a sparse matrix, a tensor or a pandas object; missing values are None."""
    if hasattr(y, "toarray"):
        return y.toarray()
    if hasattr(y, "detach"):
        return y.detach().cpu().numpy()
    if hasattr(y, "isna") and not hasattr(y, "columns") and not np.issubdtype(np.asarray(y).dtype, np.number):
        values = np.array(y.astype(object), dtype=object)
        values[np.asarray(y.isna())] = None
        return values
    return y


def checked_names(class_names: Iterable[Any]) -> tuple[str, ...]:
    """The names of the classes as a tuple of text."""
    if isinstance(class_names, str) or not isinstance(class_names, Iterable):
        raise ValueError(f"class_names = {class_names!r}; give a list with one name for each class")
    return tuple(str(name) for name in class_names)


def _by_column(frame: Any, names: tuple[str, ...] | None) -> tuple[Any, tuple[str, ...] | None]:
    """The marks of a DataFrame and the names of its columns, in the order of the names that were given."""
    if frame.shape[1] == 1:
        return frame.iloc[:, 0], names
    columns = checked_names(frame.columns)
    if names is None or columns == names:
        return frame.to_numpy(), columns
    if sorted(columns) == sorted(names) and len(set(names)) == len(names):
        return frame.iloc[:, [columns.index(name) for name in names]].to_numpy(), names
    if columns == tuple(str(j) for j in range(len(columns))):  # nobody named them
        return frame.to_numpy(), names
    raise ValueError(
        f"the columns of y are {_some(columns)} and class_names {_some(names)}; give the same ones, or none"
    )


def _lists_of_labels(y: Any) -> bool:
    """Whether every row has a list of its own, and not a row of marks."""
    if isinstance(y, np.ndarray) and y.dtype != object:
        return y.ndim == 2 and y.dtype.kind in "US"  # lists of names, each as long as the others
    if not isinstance(y, (list, tuple, np.ndarray)) or not any(isinstance(row, SEVERAL) for row in y):
        return False
    if not all(isinstance(row, SEVERAL) for row in y) or len({len(row) for row in y}) > 1 or len(y[0]) == 1:
        return True
    return not all(isinstance(entry, (numbers.Real, np.bool_)) and entry in (0, 1) for row in y for entry in row)


def _marks(array: np.ndarray, names: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    if array.dtype.kind not in "biufO" or not np.isin(array, (0, 1)).all():
        raise ValueError(
            f"y is {array.dtype} of shape {array.shape}; a matrix of labels has a column for each class and holds 0 and 1 "
            "only (or give a list of labels for each row)"
        )
    if array.shape[1] == 1:
        raise ValueError(f"y has shape {array.shape}, a single column; give y[:, 0], one label a row")
    found = tuple(f"class {j}" for j in range(array.shape[1])) if names is None else names
    if len(found) != array.shape[1]:
        raise ValueError(f"y: labels have {array.shape[1]} columns for {len(found)} classes")
    return array.astype(bool), found


def _one_a_row(array: np.ndarray, names: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    if array.dtype.kind == "S":
        array = np.char.decode(array, "utf-8")
    labelled = ~_missing(array)
    numbers_of_labels, found = _numbered(array[labelled], names)
    labels = np.full(len(array), NO_LABEL, dtype=np.int64)
    labels[labelled] = numbers_of_labels
    return labels, found


def _marks_of_lists(rows: Sequence[Any], names: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    lists = [list(row) if isinstance(row, SEVERAL) else [row] for row in rows]
    values = np.empty(sum(map(len, lists)), dtype=object)
    values[:] = [value for row in lists for value in row]
    of_rows, labelled = np.repeat(np.arange(len(lists)), list(map(len, lists))), ~_missing(values)
    labels, found = _numbered(values[labelled], names)
    marks = np.zeros((len(lists), len(found)), dtype=bool)
    marks[of_rows[labelled], labels] = True
    return marks, found


def _numbered(values: np.ndarray, names: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    """The class of each value, where all are names or all are indices; and the names of the classes."""
    if values.dtype.kind == "U" or (values.dtype == object and all(isinstance(value, str) for value in values)):
        return _numbers_of_names(values.tolist(), names)
    if values.dtype == object and all(_number(value) for value in values):
        values = values.astype(np.float64)
    if values.dtype.kind not in "iuf":
        odd = next((value for value in values if not isinstance(value, str) and not _number(value)), values[0])
        raise ValueError(
            f"y holds {odd!r} among its labels; give class indices for all rows, or names for all (np.where(y, 'yes', 'no') "
            "names what is true or false)"
        )
    if not (values == np.round(values)).all():
        raise ValueError(f"y is {values.dtype} and holds numbers that are not whole; give class indices or names")
    labels = values.astype(np.int64)
    found = tuple(f"class {j}" for j in range(labels.max(initial=-1) + 1)) if names is None else names
    _refuse_two_readings(labels, found)
    if labels.size and not 0 <= labels.min() <= labels.max() < len(found):
        raise ValueError(
            f"y: labels go from {labels.min()} to {labels.max()}; with {len(found)} classes give 0 to {len(found) - 1}, "
            "and −1 where there is none"
        )
    return labels, found


def _numbers_of_names(values: list[str], names: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...]]:
    found = tuple(sorted(set(values))) if names is None else names
    number_of = {name: j for j, name in enumerate(found)}
    if len(number_of) < len(found):
        twice = next(name for j, name in enumerate(found) if number_of[name] != j)
        raise ValueError(f"two classes are called {twice!r}, so that a label cannot name one; give each its own name")
    if unknown := sorted(set(values) - set(found)):
        raise ValueError(f"y holds labels that are no class: {_some(unknown)}; class_names must hold every label")
    return np.array([number_of[value] for value in values], dtype=np.int64), found


def _refuse_two_readings(labels: np.ndarray, names: tuple[str, ...]) -> None:
    """Refuses numbers that may be places of classes as well as their names, and would mean other classes."""
    given = np.unique(labels).tolist()
    if {str(label) for label in given} <= set(names) and any(names[j] != str(j) for j in given if 0 <= j < len(names)):
        raise ValueError(
            f"y holds numbers, and classes are called by numbers too ({_some(names)}): is {given[0]} the class of that name "
            "or the one at that place, counted from 0? Give text for names, np.asarray(y).astype(str), or other class_names"
        )


def _missing(values: np.ndarray) -> np.ndarray:
    """(n,) bool: the values that say that there is no label."""
    if values.dtype.kind in "iuf":
        return np.isnan(values) | (values == NO_LABEL)
    return np.array([_says_nothing(value) for value in values.tolist()], dtype=bool)


def _says_nothing(value: Any) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (_number(value) and (value != value or value == NO_LABEL))


def _number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (", …" if len(names) > most else "")
