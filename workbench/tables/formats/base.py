"""What every format of a table gives: named arrays, or columns, and how much memory reading them may take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

# What an array or a column may be called. The first name is ours.
PROBABILITIES = ("probabilities", "probs", "proba", "prob", "predict_proba", "y_prob", "y_proba", "softmax")
LOGITS = ("scores", "logits", "score", "logit", "logp", "log_probabilities", "outputs", "output")
SCORES = (*LOGITS[:2], *PROBABILITIES, *LOGITS[2:], "predictions", "preds", "y_pred", "y_score")
LABELS = ("labels", "label", "y", "y_true", "target", "targets", "truth")
CLASS_NAMES = ("class_names", "classes", "names", "species")
IDS = ("ids", "id")
FURTHER = ("groups", "class_counts", "posterior", "votes", "features", "images")
LINK = ("link", "link_constant")

TIMES, SPARE = 10, 200 * 2**20  # reading a file may take ten times its size, and 200 MB


class Refused(ValueError):
    """A file that is whole, and is not read for a reason that is said."""


class Room:
    """The memory that reading a file may take: asked for before it is taken, so that a small file cannot fill a machine."""

    def __init__(self, file_bytes: int) -> None:
        self.file_bytes, self.free = file_bytes, TIMES * file_bytes + SPARE

    def holds(self, n_bytes: int) -> bool:
        return n_bytes <= self.free

    def take(self, what: str, n_bytes: int) -> None:
        """Set the memory aside, or refuse."""
        if not self.holds(n_bytes):
            raise Refused(
                f"{what} would take {n_bytes / 2**20:,.0f} MB of memory, out of a file of {self.file_bytes / 2**20:,.1f} MB; "
                f"at most {TIMES} times the file and {SPARE / 2**20:,.0f} MB are given. If that is right, save it uncompressed, "
                "or as .npy, which stays on disk"
            )
        self.free -= n_bytes


@dataclass(frozen=True)
class Stored:
    """An array in a file: what it is, before it is read."""

    shape: tuple[int, ...]
    dtype: np.dtype
    read: Callable[[], np.ndarray]

    @classmethod
    def of(cls, values: np.ndarray) -> Stored:
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
    """What a file holds: named arrays, or columns; texts about them; and what was noticed in reading."""

    arrays: dict[str, Stored] = field(default_factory=dict)
    columns: list[Column] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    said: tuple[str, ...] = ()


@dataclass(frozen=True)
class Format:
    """A kind of file: how its name ends, and how it is read. `asked` names columns that somebody wants as they are written."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, Room, tuple[str, ...]], Contents]
