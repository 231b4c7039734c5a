"""Base of table formats: named arrays or columns, and a limit on memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# What an array or a column may be called. The first name is ours.
PROBABILITIES = ("probabilities", "probs", "proba", "prob", "predict_proba", "y_prob", "y_proba", "softmax")
LOGITS = ("scores", "logits", "score", "logit", "logp", "log_probabilities", "outputs", "output")
SCORES = (*LOGITS[:2], *PROBABILITIES, *LOGITS[2:], "predictions", "preds", "y_pred", "y_score")
LABELS = ("labels", "label", "y", "y_true", "target", "targets", "truth", "ground_truth", "gt")
CLASS_NAMES = ("class_names", "classes", "names", "species")
IDS = ("ids", "id", "image_id", "image", "file", "filename")
TRAINING_LABELS = ("train_labels", "train_y", "y_train", "training_labels", "train_targets")
GROUPS = ("groups", "superclass", "superclasses", "genus")
TEXTS = {
    "texts": ("texts", "text", "sentence", "document"),
    "strokes": ("strokes",),
    "sounds": ("sounds", "sound", "wav"),
}
FURTHER = ("class_counts", "posterior", "votes", "features", "images")
LINK = ("link", "link_constant")

TIMES, SPARE = 10, 200 * 2**20  # reading a file may take ten times its size, and 200 MB
COLUMN = 2000  # bytes that a column takes while it is read, beside its values


class RefusedFile(ValueError):
    """Error for an intact file that is refused; the message says why."""


class AmbiguousScores(ValueError):
    """A file with several arrays that may hold the scores; `arrays` names those with two dimensions."""

    def __init__(self, message: str, arrays: tuple[str, ...]) -> None:
        super().__init__(message)
        self.arrays = arrays


class Room:
    """The memory that reading a file may take: reserved before it is allocated, so that a small file cannot fill a machine."""

    def __init__(self, file_bytes: int) -> None:
        self.file_bytes, self.free = file_bytes, TIMES * file_bytes + SPARE

    def holds(self, n_bytes: int) -> bool:
        return n_bytes <= self.free

    def take(self, what: str, n_bytes: int) -> None:
        """Set the memory aside, or refuse."""
        if not self.holds(n_bytes):
            raise RefusedFile(
                f"{what} would take {n_bytes / 2**20:,.0f} MB of memory, out of a file of {self.file_bytes / 2**20:,.1f} MB; "
                f"at most {TIMES} times the file and {SPARE / 2**20:,.0f} MB are given. If that is right, save it uncompressed, "
                "or as .npy, which stays on disk"
            )
        self.free -= n_bytes

    def take_columns(self, names: Sequence[str], *, distinct: bool = True) -> None:
        """Set aside what columns take beside their values; names that must be `distinct` are refused if two are equal."""
        self.take(f"its {len(names):,} columns", COLUMN * len(names))
        if distinct and len(set(names)) < len(names):
            raise RefusedFile(f"it holds two columns called {Counter(names).most_common(1)[0][0]}; rename one of them")


@dataclass(frozen=True)
class StoredArray:
    """An array in a file: what it is, before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], np.ndarray]

    @classmethod
    def of(cls, values: np.ndarray) -> StoredArray:
        """An array that is in memory already."""
        return cls(values.shape, values.dtype, lambda: values)

    def __str__(self) -> str:
        return f"{self.shape} {self.dtype}"


def decoded(values: np.ndarray) -> np.ndarray:
    """Bytes as text; any other array as it is."""
    return np.char.decode(values, "utf-8") if values.dtype.kind == "S" else values


@dataclass(frozen=True)
class Column:
    """A column of a table, by what it holds: "numbers", "whole" ones, "text", "lists", a "matrix" of them, or "empty"."""

    name: str
    values: np.ndarray  # floats (NaN where empty), integers, or objects: texts (None where empty), lists
    kind: str


@dataclass(frozen=True)
class Contents:
    """Content of a file: named arrays or columns, texts about them, and remarks from reading."""

    arrays: dict[str, StoredArray] = field(default_factory=dict)
    columns: list[Column] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A file format: suffixes and a reader of (path, memory budget, columns to keep as text)."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, Room, tuple[str, ...]], Contents]
