"""Tables that people bring: `.npz .npy .csv .parquet .safetensors`, or a directory that `LogitTable.save` wrote.

Files are data: nothing is ever unpickled. What was understood is in the table's `note`.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from workbench.table_checks import BLOCK, SUM_TOLERANCE, checked_scores
from workbench.tables import LogitTable

# What an array or a column may be called. The first name is ours.
SCORES = (
    "scores",
    "logits",
    "probabilities",
    "probs",
    "proba",
    "predict_proba",
    "logp",
    "log_probabilities",
    "outputs",
)
LABELS = ("labels", "label", "y", "y_true", "target", "targets", "truth")
CLASS_NAMES = ("class_names", "classes", "names", "species")
IDS = ("ids", "id")
ROUNDED = "probabilities, divided by their sum"  # which rounding has moved away from 1
FURTHER = ("groups", "class_counts", "posterior", "votes", "features", "images")


def import_table(path: str | os.PathLike[str]) -> LogitTable:
    """Read scores or probabilities, and labels where there are any, from a file.

    - `.npz`, `.safetensors`: arrays named `scores` (or `logits`, `probabilities`, …) and `labels` (or `y`, …); also
      `class_names`, `groups`, `class_counts`, `posterior`, `votes`, `features`, `ids`, `images`. Any other array with
      one entry per row becomes a row attribute.
    - `.npy`: the scores alone, memory-mapped.
    - `.csv` (also with semicolons or tabs), `.parquet`: one numeric column per class (its name is the class name), or a
      parquet column of lists; a column `label` with class names or indices, and further columns as row attributes.

    Labels are indices, names, one mark in each row, or several marks. Rows that are ≥ 0 and sum to 1 are taken for
    probabilities, as `predict_proba` of scikit-learn gives them; anything else for scores to be put through softmax
    (through sigmoid when labels are many). `table.note` says what was understood, and `table.with_link` changes it.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", logits=np.eye(3, dtype=np.float32) * 5, y=[0, 1, 2])
    ...     table = import_table(f"{folder}/mine.npz")
    >>> print(table.note)
    mine.npz: 3 rows × 3 classes; logits (float32) read as scores, softmax; labels from y
    """
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"give the path of a file, not {type(path).__name__}; LogitTable(scores, labels) takes arrays")
    path = Path(path)
    if path.is_dir():
        return LogitTable.load(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    if path.suffix.lower() not in READERS:
        raise ValueError(
            f"{path.name}: files ending in {path.suffix or '(nothing)'} are not read; give one of {', '.join(READERS)} "
            "(pickles, .pt and .pkl among them, can run code and are never opened: save arrays with numpy.savez)"
        )
    try:
        arrays = READERS[path.suffix.lower()](path)
    except MemoryError:
        raise
    except Exception as error:  # each format has its own errors for a damaged file, and some have many
        reason = str(error).strip().split("\n")[0]
        if "allow_pickle" in reason or "Python objects" in reason:
            reason = "it holds pickled Python objects, which are never loaded; save plain numbers and strings"
        raise ValueError(
            f"{path.name} could not be read as {path.suffix}: it is damaged, incomplete or something else ({reason})"
        ) from error
    try:
        return _understood(path.name, arrays)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    if not zipfile.is_zipfile(path):
        raise ValueError("not a zip archive")
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def _read_npy(path: Path) -> dict[str, np.ndarray]:
    return {"scores": np.load(path, mmap_mode="r", allow_pickle=False)}


def _read_safetensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors import deserialize

    kinds = {"F16": "<f2", "F32": "<f4", "F64": "<f8", "BOOL": "?", "U8": "u1", "I8": "i1"}
    kinds |= {f"{sign}{bits}": f"<{sign.lower()}{bits // 8}" for sign in "IU" for bits in (16, 32, 64)}
    arrays = {}
    for name, tensor in deserialize(path.read_bytes()):
        if tensor["dtype"] == "BF16":  # the upper half of a float32
            values = (np.frombuffer(tensor["data"], "<u2").astype(np.uint32) << 16).view(np.float32)
        elif tensor["dtype"] in kinds:
            values = np.frombuffer(tensor["data"], kinds[tensor["dtype"]])
        else:
            raise ValueError(f"{name} is {tensor['dtype']}, which is not read")
        arrays[name] = values.reshape(tensor["shape"])
    return arrays


def _read_csv(path: Path) -> dict[str, np.ndarray]:
    import pandas as pd

    with path.open(encoding="utf-8", errors="replace") as file:
        lines = [file.readline(), file.readline()]
    separator = max(",;\t", key=lines[0].count)
    decimal = "," if separator != "," and "," in lines[1] and "." not in lines[1] else "."
    as_written: dict[str, Any] = {"sep": separator, "decimal": decimal}
    first = pd.read_csv(path, header=None, nrows=1, dtype=str, **as_written).iloc[0].str.replace(decimal, ".").tolist()
    numbered = [str(place) for place in range(len(first))]  # how pandas names columns that have no names
    without_header = first != numbered and all(_is_number(cell) for cell in first)
    return _columns(pd.read_csv(path, header=None if without_header else 0, **as_written))


def _read_parquet(path: Path) -> dict[str, np.ndarray]:
    import pandas as pd

    frame = pd.read_parquet(path)
    matrices = [name for name in frame if len(frame) and isinstance(frame[name].iloc[0], (list, np.ndarray))]
    if not matrices:
        return _columns(frame)
    arrays = {str(name): np.stack(frame[name].tolist()) for name in matrices}
    return arrays | {str(name): _plain(frame[name]) for name in frame if name not in matrices}


READERS: dict[str, Callable[[Path], dict[str, np.ndarray]]] = {
    ".npz": _read_npz,
    ".npy": _read_npy,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
    ".safetensors": _read_safetensors,
}


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _columns(frame: Any) -> dict[str, np.ndarray]:
    """The columns of a frame as arrays: floating-point ones are classes, the others say something about the row.

    Whole numbers are of a class as well if its name is a label, or if they stand among floating-point columns. When no
    column is floating-point, every number that is neither label nor id is a class.
    """
    reserved = {name for name in frame.columns if str(name).lower() in (*LABELS, *IDS)}
    rest = [name for name in frame.columns if name not in reserved]
    kinds = {name: frame[name].dtype.kind for name in rest}
    labels = {str(value) for name in reserved if str(name).lower() in LABELS for value in frame[name].unique()}
    floating = [place for place, name in enumerate(rest) if kinds[name] == "f"]
    among = range(floating[0], floating[-1]) if floating else range(len(rest))
    classes = [
        name
        for place, name in enumerate(rest)
        if kinds[name] == "f" or (kinds[name] in "iu" and (place in among or str(name) in labels))
    ]
    if not classes:
        raise ValueError("no column holds numbers; give one numeric column per class")
    arrays = {str(name): _plain(frame[name]) for name in frame.columns if name not in classes}
    scores = frame[classes].to_numpy()
    return {"scores": scores, "class_names": np.array([str(name) for name in classes]), **arrays}


def _plain(column: Any) -> np.ndarray:
    values = column.to_numpy()
    return values if values.dtype.kind in "iufb" else column.astype(str).to_numpy().astype(str)


def _understood(file: str, arrays: dict[str, np.ndarray]) -> LogitTable:
    """A table from named arrays, with a note of what each was taken for."""
    remaining = {
        name: np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values for name, values in arrays.items()
    }
    scores_name = _named(remaining, SCORES) or _only_matrix(remaining)
    scores = remaining.pop(scores_name)
    if scores.ndim != 2:
        raise ValueError(
            f"{scores_name} has shape {scores.shape}; a table has one row per example and one column per class "
            "(save one network or split per file)"
        )
    checked_scores(scores)  # before anything is read into numbers that are none
    n, n_classes = scores.shape
    fields: dict[str, Any] = {}
    said = []
    for field, known in (("class_names", CLASS_NAMES), ("ids", IDS), *((name, (name,)) for name in FURTHER)):
        name = _named(remaining, known)
        expected = n_classes if field in LogitTable.PER_CLASS else n
        if name is not None and remaining[name].shape[:1] == (expected,):
            fields[field] = remaining.pop(name)
            said.append(f"{field} from {name}" if name != field else field)
    labels_name = _named(remaining, LABELS) or _names_of_classes(remaining, fields.get("class_names"))
    if labels_name is not None:
        labels = remaining.pop(labels_name)
        fields["labels"] = _labels(labels, fields.get("class_names"), n_classes)
        marks = "one mark a row of " if labels.shape == scores.shape and fields["labels"].ndim == 1 else ""
        said.insert(0, f"labels from {marks}{labels_name}")
    else:
        said.insert(0, "no labels: if it holds some, call them label")
    attributes = {name: values for name, values in remaining.items() if values.shape == (n,)}
    ignored = [name for name in remaining if name not in attributes]
    if attributes:
        fields["attributes"] = attributes
        said.append(f"row attributes {', '.join(attributes)}")
    if ignored:
        said.append(f"ignored: {', '.join(ignored)}")
    many_labels = "labels" in fields and fields["labels"].ndim == 2
    link, meaning = _link(scores, many_labels)
    if meaning == ROUNDED:
        scores = scores / scores.sum(axis=1, keepdims=True)
    note = (
        f"{file}: {n} rows × {n_classes} classes; {scores_name} ({scores.dtype}) read as {meaning}; {'; '.join(said)}"
    )
    if link == "identity":
        return LogitTable.from_probabilities(scores, note=note, **fields)
    return LogitTable(scores, link=link, note=note, **fields)


def _named(arrays: dict[str, np.ndarray], known: tuple[str, ...]) -> str | None:
    """The name of the array that has one of the known names, whatever its case."""
    by_lower = {name.lower(): name for name in arrays}
    return next((by_lower[name] for name in known if name in by_lower), None)


def _names_of_classes(arrays: dict[str, np.ndarray], class_names: np.ndarray | None) -> str | None:
    """The only array of words that are all names of classes, whatever it is called."""
    if class_names is None:
        return None
    known = {str(name) for name in class_names}
    found = [name for name, words in arrays.items() if words.dtype.kind == "U" and set(words.flat) <= known]
    return found[0] if len(found) == 1 else None


def _only_matrix(arrays: dict[str, np.ndarray]) -> str:
    matrices = [name for name, values in arrays.items() if values.ndim == 2 and values.dtype.kind == "f"]
    if len(matrices) == 1:
        return matrices[0]
    found = ", ".join(f"{name} {values.shape}" for name, values in arrays.items()) or "nothing"
    raise ValueError(f"which array holds the scores? It has {found}; call one of them scores, logits or probabilities")


def _labels(given: np.ndarray, class_names: np.ndarray | None, n_classes: int) -> np.ndarray:
    """Class indices from indices, from whole floats, from class names, or from one mark in each row."""
    if given.ndim == 2 and given.shape[1] == 1 < n_classes:
        given = given[:, 0]
    if given.ndim == 2 and given.shape[1] == n_classes:
        marks = given.astype(bool)
        if np.array_equal(marks, given) and (marks.sum(axis=1) == 1).all():
            return marks.argmax(axis=1)
    if given.ndim == 2 or given.dtype.kind in "iu":
        if given.ndim == 1 and class_names is not None:  # names that happen to be numbers, such as 101, or indices
            are_names = set(given.astype(str).tolist()) <= {str(name) for name in class_names}
            if are_names or not (0 <= given.min() and given.max() < n_classes):
                return _positions(given.astype(str), class_names)
        return given
    if given.dtype.kind == "f":
        if not np.all(given == np.round(given)):
            raise ValueError(
                "labels hold numbers that are no class indices, such as 0.5 or NaN; give whole ones from 0"
            )
        return given.astype(np.int64)
    if class_names is None:
        raise ValueError("labels are names, but the classes have none; add class_names, or give indices from 0")
    return _positions(given.astype(str), class_names)


def _positions(labels: np.ndarray, class_names: np.ndarray) -> np.ndarray:
    position = {str(name): index for index, name in enumerate(class_names)}
    unknown = sorted(set(labels.tolist()) - set(position))
    if unknown:
        known = ", ".join(list(position)[:5])
        raise ValueError(f"labels {', '.join(unknown[:5])} are not among the classes ({known}, …)")
    return np.array([position[label] for label in labels.tolist()])


def _link(scores: np.ndarray, many_labels: bool) -> tuple[str, str]:
    """The link the numbers call for, and what they were taken for."""
    first = np.asarray(scores[:BLOCK], dtype=np.float64)
    if first.size and first.min() >= 0 and first.max() <= 1 + 1e-3:
        missing = np.abs(first.sum(1) - 1)
        if np.all(missing < 1e-2):
            return "identity", "probabilities" if np.all(missing < SUM_TOLERANCE) else ROUNDED
        if many_labels:
            return "identity", "probabilities of each class"
    return ("sigmoid", "scores, sigmoid") if many_labels else ("softmax", "scores, softmax")
