"""Validation of the arguments of a table: arrays of many kinds, checked once, with errors that say what to do."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workbench.warning_capture import warn

if TYPE_CHECKING:
    from workbench.tables.table import LogitTable

BLOCK = 512  # rows looked at together
SUM_TOLERANCE = 1e-3  # allowed distance from 1 of the sum of a row of rounded probabilities
NO_LABEL = -1
MISSING = ("NAType", "NaTType")  # what pandas writes for a missing entry


def array_of(values: Any) -> np.ndarray:
    """Anything array-like as a NumPy array; torch tensors come from any device, bfloat16 as float32."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    array: np.ndarray = np.asanyarray(values)  # a memory map stays one
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError("masked arrays are not supported; fill the missing entries or drop those rows")
    if isinstance(array, np.matrix):
        array = np.asarray(array)
    if array.dtype == object:
        array = array.astype(str)
    return array


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def lies_in_shards(scores: Any) -> bool:
    """Whether scores are those of shards (`tables.shards.ShardedScores`), which are read on first use."""
    return hasattr(scores, "of_rows")


def checked_scores(given: Any) -> np.ndarray:
    if lies_in_shards(given):
        sharded: np.ndarray = given  # it is used like one
        return sharded
    scores = array_of(given)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"scores have shape {scores.shape}; give (n, L): one row per example, one column per class")
    if scores.dtype.kind in "iu":
        scores = scores.astype(np.float64)
    if scores.dtype.kind != "f":
        raise ValueError(f"scores are {scores.dtype}; give floating-point numbers")
    if scores.dtype.itemsize > 8 or not scores.dtype.isnative:
        scores = scores.astype(np.float64 if scores.dtype.itemsize > 4 else scores.dtype.newbyteorder("="))
    return read_only(scores)


def checked_names(field: str, given: Any) -> tuple[str, ...]:
    """The names of classes, or of their groups, from any sequence or array of them."""
    if isinstance(given, (str, bytes)) or np.ndim(given) != 1:
        raise ValueError(f"{field} = {str(given)[:60]!r}; give one name per class, such as ['oak', 'elm']")
    return tuple(name.decode("utf-8") if isinstance(name, bytes) else str(name) for name in given)


def scores_of_frame(frame: Any, class_names: Any) -> tuple[np.ndarray, Any]:
    """The numbers of a pandas frame with one column per class, and its column names, unless classes have others."""
    columns = tuple(str(column) for column in frame.columns)
    numbers = [dtype.kind for dtype in frame.dtypes]
    if not set(numbers) <= set("iuf"):
        wrong = columns[next(j for j, kind in enumerate(numbers) if kind not in "iuf")]
        raise ValueError(
            f"column {wrong} of the frame holds no numbers; give one column of scores per class "
            "(import_table(frame) finds labels and attributes among the columns)"
        )
    floats = all(isinstance(dtype, np.dtype) for dtype in frame.dtypes)
    scores = frame.to_numpy() if floats else frame.to_numpy(dtype=np.float64, na_value=np.nan)
    named = columns != tuple(str(place) for place in range(len(columns)))
    if class_names is None:
        return scores, columns if named else None
    names = checked_names("class_names", class_names)
    if named and names != columns and sorted(names) == sorted(columns):
        raise ValueError(
            f"class_names are {listed(names)} and the columns of the scores {listed(columns)}; give the same order"
        )
    return scores, names


def checked_labels(given: Any, n: int, n_classes: int) -> np.ndarray:
    labels = array_of(given)
    if labels.ndim == 2:
        if labels.shape != (n, n_classes):
            raise ValueError(f"labels have shape {labels.shape} and scores ({n}, {n_classes}); give one mark per class")
        if labels.dtype != bool and not (labels.dtype.kind in "iuf" and np.isin(labels, (0, 1)).all()):
            raise ValueError("labels of shape (n, L) must be true or false (or 1 and 0)")
        return read_only(labels.astype(bool))
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"labels are {labels.dtype} of shape {labels.shape}; give {n} class indices, or ({n}, {n_classes}) bool"
        )
    if len(labels) and not (-1 <= int(labels.min()) and labels.max() < n_classes):
        raise ValueError(
            f"labels go from {labels.min()} to {labels.max()}; with {n_classes} classes give 0 to {n_classes - 1}, "
            "or -1 for a row without a label"
        )
    return read_only(labels.astype(np.int64))


class Labels(NamedTuple):
    """Labels as tables and datasets hold them, the names of the classes they are of, and how they were read."""

    values: np.ndarray  # (n,) int64, -1 for a row without a label, or (n, L) bool
    class_names: tuple[str, ...] | None
    reading: str  # in words, where labels could have been read in another way


def labels_from(
    given: Any, class_names: Sequence[str] | None = None, n_classes: int | None = None, *, numbers_name: bool = False
) -> Labels:
    """Labels as people have them, read into class indices (n,) or marks (n, L).

    `given` holds class indices, class names, lists of either (a row has none or many), or a 0/1 matrix with one column
    per class; arrays, lists, tensors and pandas objects alike. -1, None, NaN and an empty text mean "no label". Names
    without `class_names` number the classes in sorted order, as scikit-learn does. Whole numbers are indices; with
    `numbers_name`, as in a file or a frame, they are names if all of them are.

    >>> labels_from(["oak", "elm", None]).values.tolist(), labels_from(["oak", "elm"]).class_names
    ([1, 0, -1], ('elm', 'oak'))
    >>> labels_from([["elm"], [], ["elm", "oak"]], class_names=("oak", "elm")).values.astype(int).tolist()
    [[0, 1], [0, 0], [1, 1]]
    """
    names = None if class_names is None else tuple(class_names)
    n_classes = len(names) if n_classes is None and names is not None else n_classes
    if hasattr(given, "columns") and hasattr(given, "to_numpy"):  # a pandas frame: one column of marks per class
        if len(given.columns) > 1:
            given, names = _marks_of_frame(given, names)
        else:
            given = given.iloc[:, 0]
    if hasattr(given, "isna") and hasattr(given, "array"):  # a pandas series
        plain = given.dtype.kind in "biuf" and isinstance(given.dtype, np.dtype)
        given = given.to_numpy() if plain else given.astype(object).to_numpy()
    if hasattr(given, "detach") or isinstance(given, np.ma.MaskedArray):
        given = array_of(given)
    lists = _lists_of_labels(given, n_classes)
    if lists is not None:
        return _marks_of_lists(lists, names, n_classes, numbers_name)
    mixed = isinstance(given, (list, tuple)) and any(entry is None or isinstance(entry, str) for entry in given)
    array = np.asarray(given, dtype=object if mixed else None)  # NumPy would write NaN among words as the word nan
    if array.ndim == 2 and array.shape[1] == 1 != n_classes:
        array = array[:, 0]
    if array.ndim == 2:
        return Labels(_marks(array, n_classes), names, "")
    if array.ndim == 1 and array.dtype.kind in "OUST":
        words = [_word(entry) for entry in array.tolist()]
        if any(isinstance(word, str) for word in words):
            return _named(words, names, n_classes)
        array = np.array([np.nan if word is None else word for word in words], dtype=np.float64)
    if array.ndim == 1 and array.dtype.kind == "f":
        array = _whole(array)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"labels are {array.dtype} of shape {array.shape}; give one class index or name per row, lists of them, or "
            "marks of shape (n, L), true or false"
        )
    return _numbered(array, names, n_classes, numbers_name)


def _marks_of_frame(frame: Any, class_names: tuple[str, ...] | None) -> tuple[np.ndarray, tuple[str, ...] | None]:
    """The marks of a frame, its columns in the order of the class names where they are named so."""
    marks, columns = frame.to_numpy(), tuple(str(column) for column in frame.columns)
    if columns == tuple(str(place) for place in range(len(columns))):  # unnamed columns
        return marks, class_names
    if class_names is None or columns == class_names:
        return marks, columns
    if sorted(columns) != sorted(class_names) or len(set(columns)) < len(columns):
        raise ValueError(
            f"the labels have columns {listed(columns)} and the classes are {listed(class_names)}; give the same names"
        )
    place = {column: j for j, column in enumerate(columns)}
    return marks[:, [place[name] for name in class_names]], class_names


def _lists_of_labels(given: Any, n_classes: int | None) -> list[list[Any]] | None:
    """The lists, if that is what the rows are, and not one entry, or one mark per class, in each."""
    if not (isinstance(given, (list, tuple)) or (isinstance(given, np.ndarray) and given.dtype == object)):
        return None
    is_list = [_is_list(row) for row in given]
    if not any(is_list):
        return None
    if not all(known or _word(row) is None for known, row in zip(is_list, given, strict=True)):
        raise ValueError("some rows of the labels are lists and others are not; give a list for every row, or for none")
    lists = [list(row) if known else [] for known, row in zip(is_list, given, strict=True)]
    entries = [entry for row in lists for entry in row]
    if any(isinstance(entry, (str, bytes)) for entry in entries):
        return lists
    widths = {len(row) for row in lists}
    marks = bool(entries) and all(isinstance(entry, (bool, np.bool_)) for entry in entries)
    marks |= len(widths) == 1 and n_classes is None and all(entry in (0, 1) for entry in entries)
    return None if len(widths) == 1 and (marks or widths == {n_classes}) else lists


def _is_list(row: Any) -> bool:
    return row.ndim == 1 if isinstance(row, np.ndarray) else isinstance(row, (list, tuple, set, frozenset))


def _marks_of_lists(
    lists: list[list[Any]], names: tuple[str, ...] | None, n_classes: int | None, numbers_name: bool
) -> Labels:
    flat = [label for row in lists for label in row]
    read = labels_from(flat, names, n_classes, numbers_name=numbers_name)
    width = n_classes or len(read.class_names or ()) or int(read.values.max(initial=0)) + 1
    classes = checked_labels(read.values, len(flat), width)
    rows = np.repeat(np.arange(len(lists)), [len(row) for row in lists])
    marks = np.zeros((len(lists), width), dtype=bool)
    marks[rows[classes >= 0], classes[classes >= 0]] = True
    return read._replace(values=marks)


def _marks(array: np.ndarray, n_classes: int | None) -> np.ndarray:
    if n_classes is not None and array.shape[1] != n_classes:
        raise ValueError(
            f"labels have shape {array.shape} for {n_classes} classes; give one mark per class, or one label per row"
        )
    if array.dtype.kind not in "biufO" or not np.isin(array, (0, 1)).all():
        raise ValueError("labels of shape (n, L) must be true or false (or 1 and 0)")
    return array.astype(bool)


def _word(entry: Any) -> Any:
    """An entry of a list of labels: a number, a text, or None where there is no label."""
    if isinstance(entry, bytes):
        entry = entry.decode("utf-8")
    if isinstance(entry, str):
        return entry if entry.strip() else None
    if entry is None or type(entry).__name__ in MISSING or entry != entry:  # NaN is not itself
        return None
    return entry


def _whole(array: np.ndarray) -> np.ndarray:
    missing = np.isnan(array)
    whole = np.where(missing, NO_LABEL, array)
    allowed = (np.abs(whole) < 2**31) & (whole == np.round(whole))  # NaN and infinity are neither
    if not allowed.all():
        wrong = whole[~allowed][0]
        raise ValueError(f"labels hold {wrong:g}, which is none of the class indices; give whole numbers from 0")
    return whole.astype(np.int64)


def _named(words: list[Any], names: tuple[str, ...] | None, n_classes: int | None) -> Labels:
    reading = ""
    texts = [word if word is None else str(word) for word in words]
    used = {text for text in texts if text is not None}
    if names is None:
        names = tuple(sorted(used - {str(NO_LABEL)}))
        if n_classes is not None:
            if all(name.lstrip("-").isdecimal() for name in names):
                raise ValueError(
                    f"labels are texts such as {names[0]!r}: names of classes, or their numbers? add class_names in the "
                    "order of the columns, or give whole numbers from 0"
                )
            if len(names) != n_classes:
                raise ValueError(
                    f"labels name {len(names)} of {n_classes} classes ({listed(names)}), so which column is which cannot be "
                    "known; add class_names in the order of the columns"
                )
            reading = "classes named by the labels in sorted order"
    position: dict[str | None, int] = {name: j for j, name in enumerate(names)}
    unknown = sorted(used - position.keys() - {str(NO_LABEL)})
    if unknown:
        raise ValueError(
            f"labels {listed(unknown)} are not among the classes ({listed(names)}); an empty text is a row without a label"
        )
    twice = sorted(used & {name for name, times in Counter(names).items() if times > 1})
    if twice:
        raise ValueError(f"labels name {listed(twice)}, and several classes are called so; give class indices instead")
    position = {None: NO_LABEL, str(NO_LABEL): NO_LABEL} | position
    return Labels(np.array([position[text] for text in texts], dtype=np.int64), names, reading)


def _numbered(array: np.ndarray, names: tuple[str, ...] | None, n_classes: int | None, numbers_name: bool) -> Labels:
    """Whole numbers: class indices, unless they are names (101, 102, …) that cannot be indices, or need not be."""
    if names is None or not len(array):
        return Labels(array.astype(np.int64), names, "")
    place = {name: j for j, name in enumerate(names)}
    numbers = [number for number in np.unique(array).tolist() if number != NO_LABEL or str(NO_LABEL) in place]
    are_names = all(str(number) in place for number in numbers)
    are_indices = all(0 <= number < len(names) for number in numbers)
    differ = any(place.get(str(number), number) != number for number in numbers)
    if are_names and (numbers_name or not are_indices):
        texts = [str(label) for label in array.tolist()]
        reading = "labels are names of classes, not positions from 0" if are_indices and differ else ""
        return _named(texts, names, n_classes)._replace(reading=reading)
    reading = "labels are positions from 0, not names of classes" if numbers_name and differ else ""
    return Labels(array.astype(np.int64), names, reading)


def listed(names: Iterable[Any], most: int = 5) -> str:
    """The first few of many names, each cut to a length that can be read."""
    words = [str(name) for name in names]
    shown = [word if len(word) <= 60 else f"{word[:59]}…" for word in words[:most]]
    return ", ".join(shown) + (", …" if len(words) > most else "")


def checked_weights(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    weights = array_of(given)
    if weights.shape != shape or weights.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} is {weights.dtype} of shape {weights.shape}; give numbers of shape {shape}, as scores"
        )
    return read_only(weights)


def one_per_row(given: Any) -> np.ndarray:
    values = array_of(given)
    if values.ndim != 1:
        raise ValueError(f"an attribute has one entry per row, not shape {values.shape}")
    return read_only(values)


def check_values(table: LogitTable) -> None:
    """Refuse NaN and infinity, and probabilities that are none."""
    checked = lies_in_shards(table.scores) and table.link != "identity"  # when the shards were written
    for rows in () if checked else table.spans():
        block = table.scores[rows]
        finite = np.isfinite(block)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise ValueError(
                f"scores[{rows.start + row}, {column}] is {block[row, column]}; scores must be finite "
                "(use a large negative number for a class that is ruled out)"
            )
        if table.link == "identity" and (block.min() < 0 or block.max() > 1 + _tolerance(block)):
            raise ValueError(
                f"probabilities go from {block.min():g} to {block.max():g}; they must lie in [0, 1] "
                "(LogitTable(scores) takes scores that are not probabilities)"
            )
    for name in ("posterior", "votes"):
        weights = getattr(table, name)
        if weights is not None and not (np.isfinite(weights).all() and weights.min() >= 0):
            raise ValueError(f"{name} must be finite and ≥ 0")
    if table.posterior is not None:
        _check_posterior(table.posterior, one_label=table.labels is not None and not table.many_labels)


def warn_of_probabilities(table: LogitTable) -> None:
    """Warn where scores look like probabilities."""
    first = table.scores[:BLOCK]
    if table.link == "softmax" and table.n_classes > 1 and first.min() >= 0:
        sums = first.sum(1, dtype=np.float64)
        if np.all(np.abs(sums - 1) <= _tolerance(first)):
            warn(
                "the scores are ≥ 0 and every row sums to 1: they look like probabilities, and softmax will flatten them; "
                "use LogitTable.from_probabilities",
                stacklevel=4,
            )


def _check_posterior(posterior: np.ndarray, one_label: bool) -> None:
    if posterior.max() > 1 + SUM_TOLERANCE:
        raise ValueError(
            f"posterior goes up to {posterior.max():g}; it holds probabilities (counts of people are votes)"
        )
    if one_label and (wrong := np.abs(posterior.sum(1, dtype=np.float64) - 1) > SUM_TOLERANCE).any():
        row = int(np.argmax(wrong))
        raise ValueError(f"row {row} of the posterior sums to {posterior[row].sum():.6g}; with one label a row give 1")


def _tolerance(block: np.ndarray) -> float:
    """Tolerance of the sum of a row of rounded probabilities."""
    return max(1e-6, 4 * float(np.finfo(block.dtype).eps) * math.sqrt(block.shape[1]))


def check_sums(block: np.ndarray, first_row: int) -> None:
    sums = block.sum(1, dtype=np.float64)
    wrong = np.abs(sums - 1) > max(SUM_TOLERANCE, _tolerance(block))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"row {first_row + row} of the probabilities sums to {sums[row]:.6g}, not 1; give LogitTable(scores) for scores"
        )
