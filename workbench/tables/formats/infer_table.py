"""From named arrays to a table: which holds the scores, which the labels, and through which link scores are read.

Metadata in the file is used; the rest is inferred where only one reading is possible, and stated in the note; what
would be a guess is refused, with the words that say it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.tables import LogitTable
from workbench.tables.checks import (
    NO_LABEL,
    Labels,
    checked_names,
    checked_scores,
    labels_from,
    listed,
)
from workbench.tables.formats.base import (
    CLASS_NAMES,
    FURTHER,
    GROUPS,
    IDS,
    LABELS,
    SCORES,
    TEXTS,
    TRAINING_LABELS,
    AmbiguousScores,
    Contents,
    Room,
    StoredArray,
    decoded,
)
from workbench.tables.formats.columns import roles
from workbench.tables.formats.link_reading import ROUNDED, divided_by_sums, link_of_file, link_of_numbers
from workbench.tables.listed_classes import of_contents

LONGEST_NAME = 1000  # characters of the name of a class
ALL = ...  # of an array
PART = re.compile(r"(.+?)\[(.+)\]")  # logits[0], logits[:, 1] or logits[resnet32]


def table_of(
    file: str,
    contents: Contents,
    room: Room,
    *,
    scores: str | Sequence[str] | None = None,
    labels: str | None = None,
    link: str | None = None,
    link_constant: float | None = None,
) -> LogitTable:
    """A table from what a file holds, with a note of what each part was taken for."""
    arrays, facts, notes = joined_splits(dict(contents.arrays), room), dict(contents.facts), list(contents.notes)
    if scores is None and of_contents(contents) is not None:
        raise ValueError(
            "it lists some classes of each row, not the scores of all: wb.import_partial(path) reads their probabilities, "
            "wb.import_sets(path) sets made elsewhere, workbench evaluate FILE judges either"
        )
    training = arrays.pop(_array_named(arrays, TRAINING_LABELS) or "", None)
    if contents.columns is not None:
        found = roles(contents.columns, (scores,) if isinstance(scores, str) else tuple(scores or ()), labels)
        arrays, of_scores, of_labels = found.arrays, (found.scores, ALL), (found.labels, ALL)
        if found.class_names is not None:
            facts["class_names"] = found.class_names
        if found.empty:
            notes.append(f"ignored, for they are empty: {listed(found.empty)}")
    else:
        of_scores = (_scores_name(arrays), ALL) if scores is None else _named_part(arrays, scores)
        of_labels = (_array_named(arrays, LABELS), ALL) if labels is None else _named_part(arrays, labels)
    scores_name, part = of_scores
    matrix = _numbers(arrays.pop(scores_name), scores_name, part, room)
    n, n_classes = matrix.shape
    if n_classes == 1 and scores is None:
        raise ValueError(f"{_only_column(contents, scores_name)}; a table of scores has one column for each class")
    labels_name, labels_part = of_labels
    stored = None if labels_name is None else arrays.pop(labels_name, None)
    fields, of_fields = _fields(arrays, facts, n, n_classes, room)
    notes += of_fields
    names = fields.get("class_names")
    if training is not None:
        fields["class_counts"] = _counts(training.read(), names, n_classes)
        notes.append("class_counts from the training labels")
    if stored is None and (labels_name := _named_by_words(arrays, names, n)):
        stored = arrays.pop(labels_name)
    if stored is None:
        notes.insert(0, "no labels: if it holds some, call them label")
    else:
        given = _part(stored.read(), labels_part, labels_name)
        fields["labels"], fields["class_names"], how = _labels(given, names, n_classes, labels_name)
        notes.insert(0, how)
    link, link_constant, from_file = link_of_file(arrays, facts, link, link_constant)
    attributes, ignored = _attributes(arrays, n, room)
    if "groups" not in fields and (name := _groups_name(attributes, fields.get("labels"), n_classes)):
        fields["groups"] = _groups_of_classes(attributes.pop(name), fields["labels"], n_classes)
        notes.append(f"groups from {name}")
    if attributes:
        fields["attributes"] = attributes
        notes.append(f"row attributes {listed(attributes, 20)}")
    if ignored:
        notes.append(f"ignored: {listed(ignored, 20)}")
    many = "labels" in fields and fields["labels"].ndim == 2
    if link is None:
        link, meaning = link_of_numbers(matrix, many, scores_name)
    else:
        meaning = "probabilities" if link == "identity" else f"scores, {link}{from_file}"
    if meaning == ROUNDED:
        matrix = divided_by_sums(matrix)
    shown = scores_name if part is ALL else scores
    note = f"{file}: {n} rows × {n_classes} classes; {shown} ({matrix.dtype}) read as {meaning}; {'; '.join(notes)}"
    fields.setdefault("ids", np.arange(n))  # so that rows of it are known by their number in the file
    return LogitTable(matrix, link=link, link_constant=link_constant, note=note, **fields)


def _counts(labels: np.ndarray, names: tuple[str, ...] | None, n_classes: int) -> np.ndarray:
    """Training rows of each class."""
    values = labels_from(decoded(labels), names, n_classes, numbers_name=True).values
    if values.ndim != 1 or values.max(initial=0) >= n_classes:
        raise ValueError(
            f"training labels of shape {np.shape(labels)} go up to {values.max(initial=0)}, and scores have {n_classes} "
            "classes; give one label a row, of these classes"
        )
    return np.bincount(values[values >= 0], minlength=n_classes)


def _only_column(contents: Contents, name: str) -> str:
    """The single column of numbers that a file has, in words."""
    if contents.columns is None:
        return f"{name} has one column"
    numeric = [column.name for column in contents.columns if column.kind in ("numbers", "whole")]
    return f"only one column holds numbers that can be scores ({listed(numeric or [name])})"


def joined_splits(arrays: dict[str, StoredArray], room: Room) -> dict[str, StoredArray]:
    """Arrays such as val_logits and test_logits, val_y and test_y, one below the other, with a split for each row."""
    ends = {
        name[4:]: (name, f"test_{name[4:]}")
        for name in arrays
        if name.startswith("val_") and f"test_{name[4:]}" in arrays
    }
    scores = _array_named({end: arrays[pair[0]] for end, pair in ends.items()}, SCORES)
    if scores is None or _array_named(arrays, SCORES) is not None:
        return arrays
    rows = [arrays[name].shape[0] for name in ends[scores]]
    joined = {name: array for name, array in arrays.items() if not any(name in pair for pair in ends.values())}
    for end, pair in ends.items():
        both = [arrays[name].read() for name in pair]
        room.take(end, sum(each.nbytes for each in both))
        joined[end] = StoredArray.of(np.concatenate(both))
    return {**joined, "split": StoredArray.of(np.repeat(["val", "test"], rows))}


def _array_named(arrays: dict[str, StoredArray], known: Sequence[str]) -> str | None:
    """The array that has one of the known names, whatever its case."""
    by_lower = {name.lower(): name for name in reversed(arrays)}
    return next((by_lower[name] for name in known if name in by_lower), None)


def _named_part(arrays: dict[str, StoredArray], name: Any) -> tuple[str, Any]:
    """The array of that name, and which part of it: all, or `[0]` of a stacked one."""
    if not isinstance(name, str):
        raise ValueError(f"{name!r} does not name one array; it has {_overview(arrays)}")
    if name in arrays:
        return name, ALL
    if (parts := PART.fullmatch(name)) and parts[1] in arrays:
        index = [part.strip() for part in parts[2].split(",")]
        if (named := _position(arrays, parts[1], parts[2].strip())) is not None:
            return parts[1], (named,)
        if all(part == ":" or part.lstrip("-").isdecimal() for part in index):
            return parts[1], tuple(slice(None) if part == ":" else int(part) for part in index)
    raise ValueError(f"there is no array {name}; it has {_overview(arrays)} (write logits[0] for the first of several)")


def _position(arrays: dict[str, StoredArray], stacked: str, name: str) -> int | None:
    """Position of a network among the stacked ones, if another array names them."""
    for array in arrays.values():
        if array.shape == arrays[stacked].shape[:1] and array.dtype.kind in "USO":
            names = [str(each) for each in decoded(array.read()).tolist()]
            if name in names:
                return names.index(name)
    return None


def _overview(arrays: dict[str, StoredArray]) -> str:
    return listed((f"{name} {array}" for name, array in arrays.items()), 20) or "nothing"


def _scores_name(arrays: dict[str, StoredArray]) -> str:
    known = _array_named(arrays, SCORES)
    if known is not None:
        return known
    if len(arrays) == 1 and next(iter(arrays)).lower() not in ("x", "features", "data", "inputs"):
        return next(iter(arrays))
    raise AmbiguousScores(
        f"which array holds the scores? It has {_overview(arrays)}; say so, scores='NAME' (--scores NAME), and labels='NAME' "
        "(--labels NAME), or call them scores and labels",
        tuple(name for name, array in arrays.items() if len(array.shape) == 2),
    )


def _part(values: np.ndarray, part: Any, name: str | None) -> np.ndarray:
    try:
        chosen: np.ndarray = values[part]
    except IndexError:
        raise ValueError(f"{name} has shape {values.shape} and no such part; give an index that it has") from None
    return chosen


def _numbers(stored: StoredArray, name: str, part: Any, room: Room) -> np.ndarray:
    """The scores as floating-point numbers, (n, L)."""
    values = _part(stored.read(), part, name)
    if values.ndim != 2:
        example = f"{name}[0]" if values.ndim == 3 else name
        raise ValueError(
            f"{name} has shape {values.shape}; a table has one row per example and one column per class (of several stacked "
            f"ones take one: scores='{example}', --scores '{example}')"
        )
    if values.dtype.kind in "iu":
        room.take(f"{name} as floating-point numbers", 8 * values.size)
    return checked_scores(values)


def _fields(
    arrays: dict[str, StoredArray], facts: dict[str, Any], n: int, n_classes: int, room: Room
) -> tuple[dict[str, Any], list[str]]:
    """Names, groups and counts of classes, and what else of a table is stored beside its scores; taken out of `arrays`."""
    fields: dict[str, Any] = {}
    notes = []
    for field, known in (
        ("class_names", CLASS_NAMES),
        ("groups", GROUPS),
        ("ids", IDS),
        *((name, (name,)) for name in FURTHER),
    ):
        if field in facts and field in LogitTable.PER_CLASS:
            fields[field] = _from_text(field, facts[field])
            notes.append(field)
            continue
        name = _array_named(arrays, known)
        if name is None:
            continue
        expected = n_classes if field in LogitTable.PER_CLASS else n
        if arrays[name].shape[:1] == (expected,):
            values = _texts(arrays.pop(name).read(), room)
            if values is None:
                notes.append(f"ignored: {name} (long texts)")
                continue
            fields[field] = values
            notes.append(f"{field} from {name}" if name != field else field)
        elif name == field and field in LogitTable.PER_CLASS and arrays[name].shape != (n,):
            raise ValueError(
                f"{name} has shape {arrays[name].shape}, and scores have {n_classes} classes; give one per class"
            )
    for field, known in TEXTS.items():
        name = _array_named(arrays, known)
        if name is not None and arrays[name].shape == (n,) and arrays[name].dtype.kind in "OUST":
            fields[field] = ["" if text is None else text for text in decoded(arrays.pop(name).read()).tolist()]
            notes.append(f"{field} from {name}" if name != field else field)
    if "class_names" in fields:
        names = fields["class_names"] = checked_names("class_names", fields["class_names"])
        longest = max(names, key=len, default="")
        if len(longest) > LONGEST_NAME:
            raise ValueError(
                f"a class is called by {len(longest)} characters, {longest[:40]!r}…; give at most {LONGEST_NAME}"
            )
        if len(set(names)) < len(names):
            twice = {name for name in names if names.count(name) > 1} if len(names) < 10_000 else set()
            notes.append(f"several classes are called {listed(sorted(twice)) or 'the same'}")
    return fields, notes


def _groups_name(attributes: dict[str, np.ndarray], labels: np.ndarray | None, n_classes: int) -> str | None:
    """The attribute of rows that tells the group of each class: called so, one label a row, the same in all its rows."""
    name = _array_named({name: StoredArray.of(values) for name, values in attributes.items()}, GROUPS)
    if name is None or labels is None or labels.ndim == 2 or len(np.unique(labels[labels >= 0])) < n_classes:
        return None
    pairs = np.unique(
        np.column_stack([labels, np.unique(attributes[name], return_inverse=True)[1]])[labels >= 0], axis=0
    )
    return name if len(pairs) == n_classes else None


def _groups_of_classes(values: np.ndarray, labels: np.ndarray, n_classes: int) -> tuple[str, ...]:
    first = np.zeros(n_classes, np.int64)
    first[labels[labels >= 0][::-1]] = np.flatnonzero(labels >= 0)[::-1]
    return tuple(str(value) for value in values[first])


def _from_text(field: str, text: Any) -> Any:
    """Names or counts of classes from the metadata of a file: a list in JSON."""
    if not isinstance(text, str):
        return text
    try:
        values = json.loads(text)
    except ValueError:
        values = None
    if not isinstance(values, list):
        raise ValueError(f"{field} in its metadata is {text[:40]!r}; write a list in JSON, one entry per class")
    return values


def _named_by_words(arrays: dict[str, StoredArray], class_names: tuple[str, ...] | None, n: int) -> str | None:
    """The only array of words that are all names of classes, whatever it is called."""
    known = set(class_names or ())
    found = []
    for name, array in arrays.items():
        if class_names is not None and array.shape == (n,) and array.dtype.kind in "UO":
            words = {word for word in array.read().tolist() if not isinstance(word, list)} - {None, ""}
            found += [name] if words and words <= known else []
    return found[0] if len(found) == 1 else None


def _labels(
    given: np.ndarray, names: tuple[str, ...] | None, n_classes: int, called: str | None
) -> tuple[np.ndarray, tuple[str, ...] | None, str]:
    """Labels as a table takes them, the names of the classes, and how they were read."""
    given = decoded(given)
    if given.ndim != 1 and given.ndim != 2:
        raise ValueError(f"labels are {given.dtype} of shape {given.shape}; give one per row, or marks of shape (n, L)")
    if given.ndim == 1 and given.dtype.kind in "OU":
        read = _labels_from_text(given.tolist(), names, n_classes)
    else:
        read = labels_from(given, names, n_classes, numbers_name=True)
    values, how = read.values, f"labels from {called}"
    if np.ndim(given) == 2 and values.ndim == 2 and (values.sum(axis=1) == 1).all():
        values, how = values.argmax(axis=1), f"labels from one mark a row of {called}"
    facts = [read.reading]
    if values.ndim == 1:
        without = int((values == NO_LABEL).sum())
        present = len(np.unique(values[values != NO_LABEL]))
        facts.append(f"{without} rows without a label" if without else "")
        facts.append(f"{present} of the {n_classes} classes occur" if present < n_classes else "")
    about = "; ".join(filter(None, facts))
    return values, read.class_names, f"{how} ({about})" if about else how


def _labels_from_text(cells: list[Any], names: tuple[str, ...] | None, n_classes: int) -> Labels:
    """Labels that stand as text: several as a;b, whole numbers as such. What stands in many rows is read once."""
    if isinstance(next((cell for cell in cells if cell is not None), None), (list, np.ndarray)):
        return labels_from(cells, names, n_classes, numbers_name=True)
    known = set(names or ())
    place = {cell: at for at, cell in enumerate(dict.fromkeys(cells))}
    words = [cell.strip() if isinstance(cell, str) else cell for cell in place]
    if any(";" in word and word not in known for word in words if word):
        lists = [[part.strip() for part in (word or "").split(";") if part.strip()] for word in words]
        numbers = _whole_numbers({part for row in lists for part in row}, known)
        distinct: list[Any] = [[numbers.get(part, part) for part in row] for row in lists]
    else:
        numbers = _whole_numbers({word for word in words if word}, known)
        distinct = [numbers.get(word, word) for word in words]
    read = labels_from(distinct, names, n_classes, numbers_name=True)
    return read._replace(values=read.values[[place[cell] for cell in cells]])


def _whole_numbers(words: set[str], known: set[str]) -> dict[str | None, int]:
    """The numbers that words stand for, if every one is a whole number (2 or 2.0, not 02), and 2.0 is no class."""
    matches = [re.fullmatch(r"(-?(?:0|[1-9]\d{0,17}))(?:\.0*)?", word) for word in words]
    if not all(matches) or (words <= known and any("." in word for word in words)):
        return {}
    return {match[0]: int(match[1]) for match in matches if match}


def _attributes(arrays: dict[str, StoredArray], n: int, room: Room) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return the attributes of rows, and the names of arrays left out: other shapes, or texts too long to group by."""
    attributes, ignored = {}, []
    for name, array in arrays.items():
        if array.shape != (n,) or array.dtype.kind not in "biufUSO":
            ignored.append(name)
            continue
        values = _texts(array.read(), room)
        if values is None:
            ignored.append(f"{name} (long texts)")
        else:
            attributes[name] = values
    return attributes, ignored


def _texts(values: np.ndarray, room: Room) -> np.ndarray | None:
    """An array of texts as NumPy holds them, all as long as the longest; None where that would take too much."""
    if values.dtype != object:
        return decoded(values)
    words = ["" if word is None else str(word) for word in values.tolist()]
    n_bytes = 4 * len(words) * max(map(len, words))
    if not room.holds(n_bytes):
        return None
    room.take("texts", n_bytes)
    return np.array(words)
