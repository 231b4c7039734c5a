"""The scores of a sharded table: an array-like of shape (n, L) that reads rows on demand."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.tables.shards.file_arrays import ShardArray, kept_open
from workbench.tables.shards.manifest import Shard


class ShardedScores:
    """The scores of all shards, or of some of their rows, in order.

    Indexing reads: `scores[rows]` is a NumPy array, whatever NumPy's indexing by rows, or by rows and classes, would give.
    `scores.of_rows(index)` chooses rows and reads nothing. Only the shards that are needed travel to another process.
    """

    ndim = 2

    def __init__(
        self, url: str, shards: Sequence[Shard], n_classes: int, dtype: Any, rows: range | np.ndarray | None = None
    ) -> None:
        self.url, self.shards, self.dtype = url, tuple(shards), np.dtype(dtype)
        self._ends = np.cumsum([shard.rows for shard in self.shards])
        self._rows = range(int(self._ends[-1])) if rows is None else rows  # of all shards, those that are meant
        self.shape: tuple[int, int] = (len(self._rows), n_classes)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def size(self) -> int:
        """Number of scores."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Size of the scores in bytes."""
        return self.size * int(self.dtype.itemsize)

    @cached_property
    def key(self) -> str:
        """sha256 of the checksums of the shards and of which rows are meant: what stands for reading all scores."""
        digest = hashlib.sha256(f"{self.dtype.str} {self.shape};".encode())
        for shard in self.shards:
            digest.update(f"{shard.rows} {shard.key};".encode())
        if isinstance(self._rows, range):
            digest.update(f"{self._rows!r}".encode())
        else:
            digest.update(np.ascontiguousarray(self._rows).data)
        return digest.hexdigest()

    def reference(self) -> tuple[dict[str, Any], np.ndarray | None]:
        """Return a reference to these scores: facts for a JSON file, and the rows where they are no range."""
        facts = {
            "url": self.url,
            "classes": self.shape[1],
            "dtype": self.dtype.name,
            "shards": [asdict(shard) for shard in self.shards],
        }
        if isinstance(self._rows, range):
            return facts | {"range": [self._rows.start, self._rows.stop, self._rows.step]}, None
        return facts, np.asarray(self._rows)

    @classmethod
    def from_reference(cls, facts: Mapping[str, Any], rows: np.ndarray | None) -> Self:
        """The scores that `reference` was of; the shards are looked at when rows are asked for."""
        chosen = range(*facts["range"]) if rows is None else rows
        shards = [Shard.from_json(shard) for shard in facts["shards"]]
        scores = cls(facts["url"], shards, facts["classes"], facts["dtype"], chosen)
        if len(chosen) and not 0 <= min(chosen[0], chosen[-1]) <= max(chosen[0], chosen[-1]) < scores._ends[-1]:
            raise ValueError("rows are meant that the shards do not have")
        return scores

    def of_rows(self, index: Any) -> ShardedScores:
        """Some of the rows, chosen by a slice, a mask or indices; nothing is read."""
        if isinstance(index, slice) and isinstance(self._rows, range):
            return self._narrow(self._rows[index])
        return self._narrow(np.asarray(self._rows)[index])

    def _narrow(self, rows: range | np.ndarray) -> ShardedScores:
        """The same rows of no more shards than they lie in."""
        if not len(rows):
            return type(self)(self.url, self.shards[:1], self.shape[1], self.dtype, range(0))
        ends = (rows[0], rows[-1]) if isinstance(rows, range) else (rows.min(), rows.max())
        first, last = np.searchsorted(self._ends, (min(ends), max(ends)), side="right")
        before = int(self._ends[first - 1]) if first else 0
        rows = range(rows.start - before, rows.stop - before, rows.step) if isinstance(rows, range) else rows - before
        return type(self)(self.url, self.shards[first : last + 1], self.shape[1], self.dtype, rows)

    def __getitem__(self, key: Any) -> np.ndarray:
        if not isinstance(key, tuple):
            if isinstance(key, (int, np.integer)):
                row: np.ndarray = self._read(np.array([range(len(self))[key]]))[0]
                return row
            return self._read(key)
        rows, classes = key
        if isinstance(rows, (int, np.integer)):
            return self[rows][classes]
        if isinstance(rows, slice) or isinstance(classes, slice):
            return self._read(rows)[:, classes]
        rows = np.arange(len(self))[np.asarray(rows)]
        unique_rows, place = np.unique(rows, return_inverse=True)
        picked = np.empty(np.broadcast_shapes(rows.shape, np.shape(classes)), self.dtype)
        classes = np.broadcast_to(classes, picked.shape)
        for start in range(0, len(unique_rows), BATCH):  # single scores of many rows: never all of those rows at once
            inside = (start <= place) & (place < start + BATCH)
            picked[inside] = self._read(unique_rows[start : start + BATCH])[place[inside] - start, classes[inside]]
        return picked

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._read(slice(None)), dtype)

    def _read(self, index: Any) -> np.ndarray:
        """The scores of some rows, read shard by shard."""
        chosen = self.of_rows(index)
        rows = chosen._rows
        if isinstance(rows, range) and rows.step == 1 and len(rows):
            return chosen._span(rows.start, rows.stop)
        rows = np.asarray(rows)
        scores = np.empty(chosen.shape, self.dtype)
        of_shard = np.searchsorted(chosen._ends, rows, side="right")
        for number in np.unique(of_shard):
            first = int(chosen._ends[number - 1]) if number else 0
            inside = np.flatnonzero(of_shard == number)
            scores[inside] = chosen._read_rows(int(number), rows[inside] - first)
        return scores

    def _span(self, start: int, stop: int) -> np.ndarray:
        """Consecutive rows."""
        parts = []
        for number, end in enumerate(self._ends):
            first = int(end) - self.shards[number].rows
            if first < stop and end > start:
                parts.append(self._rows_of(number, max(start - first, 0), min(stop, int(end)) - first))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _read_rows(self, number: int, rows: np.ndarray) -> np.ndarray:
        """Some rows of a shard, in any order: out of the span they lie in, or one by one where they are few."""
        first, last = int(rows.min()), int(rows.max()) + 1
        if last - first <= SPARSE * len(rows):
            selected: np.ndarray = self._rows_of(number, first, last)[rows - first]
            return selected
        return np.concatenate([self._rows_of(number, row, row + 1) for row in rows.tolist()])

    def _rows_of(self, number: int, start: int, stop: int) -> np.ndarray:
        """Consecutive rows of a shard."""
        array = self._shard(number)
        try:
            return array.read(start, stop)
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.url}: shard {self.shards[number].named} is missing") from None
        except (OSError, ValueError) as error:
            raise ValueError(f"{self.url}: shard {self.shards[number].named} cannot be read: {error}") from None

    def _shard(self, number: int) -> ShardArray:
        """The scores of a shard, after a look at what its file says of itself."""
        shard = self.shards[number]
        array = kept_open(self.url, shard.key, *shard.arrays["scores"])
        if array.shape != (shard.rows, self.shape[1]) or array.dtype != self.dtype:
            raise ValueError(
                f"{self.url}: shard {shard.named} is {array.dtype} of shape {array.shape}, and the table is {self.dtype} with "
                f"{self.shape[1]} classes, {shard.rows} of whose rows it should hold"
            )
        return array

    def __repr__(self) -> str:
        return (
            f"ShardedScores({self.shape[0]} × {self.shape[1]} {self.dtype} in {len(self.shards)} shards of {self.url})"
        )


BATCH = 512  # rows that are read together where single scores are asked for
SPARSE = 8  # if fewer than one row in this many is requested, rows are read one by one
