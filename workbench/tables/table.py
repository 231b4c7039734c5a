"""LogitTable: the scores and labels of one split, the only type that training and evaluation share."""

from __future__ import annotations

import dataclasses
import hashlib
import numbers
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from workbench.class_counts import checked_counts
from workbench.tables.checks import (
    BLOCK,
    array_of,
    check_sums,
    check_values,
    checked_labels,
    checked_names,
    checked_scores,
    checked_weights,
    labels_from,
    lies_in_shards,
    one_per_row,
    read_only,
    scores_of_frame,
    warn_of_probabilities,
)
from workbench.tables.links import LINKS, sparse_top
from workbench.tables.objects import split_rows
from workbench.tables.row_kinds import KINDS
from workbench.tables.texts import checked_texts

Span = slice  # in the class `slice` is a method
ALL_ROWS = slice(None)


def checked_table(given: Any) -> LogitTable:
    """The table, or an error for anything else that says how it becomes one."""
    if not isinstance(given, LogitTable):
        raise TypeError(
            f"expected a LogitTable, got {type(given).__name__}: LogitTable(scores, labels) makes one of arrays, "
            "import_table(path) of a file, and a trained run has some, run.tables['test']"
        )
    return given


@dataclass(frozen=True, eq=False, repr=False)
class LogitTable:
    """Scores of a model for n rows, and their labels.

    Probabilities are computed from the scores block by block and are held whole only on request. Whether a set contains the
    label is measured on the rows that have one (`labelled`), all else that needs the truth on the rows whose truth is known
    (`known`).

    Args:
        scores: (n, L) float16, float32 or float64, in memory, memory-mapped or in shards (`tables.shards`), or a DataFrame
            whose columns are the classes.
        labels: (n,) class indices, −1 for a row whose label is unknown, or (n, L) bool when a row may have none or many: a row
            of all False says "none of these". Also class names, lists of labels, 0/1 integers or pandas objects
            (`tables.checks.labels_from`).
        link: How scores become probabilities: "softmax", "sigmoid", "quasibinary", "sparsemax" or "identity".
        link_constant: log C of the quasibinary link.
        class_names: One name per class.
        groups: Genus or superclass of each class.
        class_counts: Training rows of each class.
        posterior: (n, L), the true P(y|x), where known.
        votes: (n, L), number of people who chose each class.
        attributes: {name: (n,)}, facts of a row to group by (organ, author, device).
        features: (n, d), features of the rows.
        ids: (n,), names of the rows; some rows of a table without ids carry their numbers in it.
        images: (n, height, width, channels), the rows as pictures.
        texts: (n,), the rows as texts.
        strokes: (n,), the rows as drawings, as `workbench.drawings` writes them.
        sounds: (n,), paths of `.wav` files, or their folder.
        row_kind: What a row is, "image", "drawing", "sound", "text" or "row", where the fields above do not show it.
        chose_model: Whether these rows stopped training or selected a checkpoint, so that a conformal promise fitted on them
            is void.
        note: Source of the table, in words.

    >>> table = LogitTable([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0]], labels=[0, 2])
    >>> table
    LogitTable(2 rows × 3 classes, softmax, float64; labels)
    >>> table.probabilities().round(3).tolist()
    [[0.787, 0.107, 0.107], [0.155, 0.422, 0.422]]
    """

    scores: np.ndarray
    labels: np.ndarray | None = None
    link: str = "softmax"
    link_constant: float | None = None
    class_names: tuple[str, ...] | None = None
    groups: tuple[str, ...] | None = None
    class_counts: np.ndarray | None = None
    posterior: np.ndarray | None = None
    votes: np.ndarray | None = None
    attributes: dict[str, np.ndarray] | None = None
    features: np.ndarray | None = None
    ids: np.ndarray | None = None
    images: np.ndarray | None = None
    texts: np.ndarray | None = None
    strokes: np.ndarray | None = None
    sounds: np.ndarray | None = None
    row_kind: str = ""
    chose_model: bool = False
    note: str = ""

    # Which fields have one entry per row, and which per class: `rows`, `save` and the checks all follow these lists.
    PER_ROW: ClassVar = ("labels", "posterior", "votes", "features", "ids", "images", "texts", "strokes", "sounds")
    TEXTS: ClassVar = ("texts", "strokes", "sounds")  # of those, the ones that are text of any length
    PER_CLASS: ClassVar = ("class_names", "groups", "class_counts")

    def __post_init__(self) -> None:
        if not isinstance(self.link, str) or self.link not in LINKS:
            raise ValueError(f"link = {self.link!r} is unknown; give one of {', '.join(LINKS)}")
        if self.row_kind not in ("", *KINDS):
            raise ValueError(f"row_kind = {self.row_kind!r} is unknown; give one of {', '.join(KINDS)}")
        constant = self.link_constant
        if self.link == "quasibinary" and not (isinstance(constant, numbers.Real) and np.isfinite(float(constant))):
            raise ValueError(
                f"link_constant = {constant!r}; the quasibinary link needs log C, a number that training estimates"
            )
        if isinstance(constant, numbers.Real):
            self._fill(link_constant=float(constant))  # JSON, and the key, know no other kind
        frame = hasattr(self.scores, "columns")  # of pandas, with one column per class
        if frame:
            columns, names = scores_of_frame(self.scores, self.class_names)
            self._fill(scores=columns, class_names=names)
        scores = checked_scores(self.scores)
        self._fill(scores=scores)
        for name in ("class_names", "groups"):
            if getattr(self, name) is not None:
                self._fill(**{name: checked_names(name, getattr(self, name))})
        if self.labels is not None:
            read = labels_from(self.labels, self.class_names, scores.shape[1], numbers_name=frame)
            note = "; ".join(filter(None, (self.note, read.reading)))
            labels = checked_labels(read.values, *scores.shape)
            self._fill(labels=labels, class_names=read.class_names, note=note)
        if self.class_counts is not None:
            self._fill(class_counts=checked_counts(array_of(self.class_counts)))
        for name in ("posterior", "votes"):
            if getattr(self, name) is not None:
                self._fill(**{name: checked_weights(name, getattr(self, name), scores.shape)})
        for name in ("features", "ids", "images"):
            if getattr(self, name) is not None:
                self._fill(**{name: read_only(np.atleast_1d(array_of(getattr(self, name))))})
        for name in self.TEXTS:
            if getattr(self, name) is not None:
                self._fill(**{name: checked_texts(name, getattr(self, name))})
        if self.attributes is not None:
            if not isinstance(self.attributes, Mapping):
                raise ValueError(f"attributes = {self.attributes!r}; give {{name: one value per row}}")
            self._fill(attributes={str(name): one_per_row(values) for name, values in self.attributes.items()})
        self._check_lengths()
        check_values(self)
        warn_of_probabilities(self)

    @classmethod
    def trusted(cls, key: str | None = None, **fields: Any) -> Self:
        """A table of values that were checked before (other rows of a table, a table read from disk): no second look."""
        table = object.__new__(cls)
        table._fill(**{field.name: field.default for field in dataclasses.fields(cls)} | fields)
        table._check_lengths()
        if key is not None:
            table.__dict__["key"] = key
        return table

    def _fill(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_lengths(self) -> None:
        per_row = {name: getattr(self, name) for name in self.PER_ROW} | (self.attributes or {})
        for name, values in per_row.items():
            if values is not None and len(values) != self.n:
                raise ValueError(f"{name} has {len(values)} entries and scores have {self.n} rows; give one per row")
        for name in self.PER_CLASS:
            values = getattr(self, name)
            if values is not None and len(values) != self.n_classes:
                raise ValueError(
                    f"{name} has {len(values)} entries and scores have {self.n_classes} classes; give one per class"
                )

    @classmethod
    def from_probabilities(cls, probabilities: Any, labels: Any = None, **fields: Any) -> Self:
        """A table of probabilities, such as `predict_proba` of scikit-learn gives: rows are checked to sum to 1.

        With (n, L) bool labels the classes are judged one by one and rows need not sum to 1.

        >>> LogitTable.from_probabilities([[0.7, 0.3]], labels=[0]).probabilities().tolist()
        [[0.7, 0.3]]
        """
        table = cls(probabilities, labels, link="identity", **fields)
        if not table.many_labels:
            for rows in table.spans():
                check_sums(table.scores[rows], rows.start)
        return table

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.scores)

    @property
    def n_classes(self) -> int:
        """Number of classes, L."""
        return int(self.scores.shape[1])

    @property
    def many_labels(self) -> bool:
        """Whether a row may have no label or several: labels are (n, L) bool."""
        return self.labels is not None and self.labels.ndim == 2

    @property
    def dtype(self) -> np.dtype:
        """The type of probabilities: float64 for float64 scores, float32 for all others."""
        return np.dtype(np.float64 if self.scores.dtype == np.float64 else np.float32)

    @cached_property
    def key(self) -> str:
        """sha256 of scores, labels and link: what makes two tables the same table.

        Of scores in shards, of the checksums of the shards: all scores are not read again to name them.
        """
        digest = hashlib.sha256()
        for name, values in (("scores", self.scores), ("labels", self.labels)):
            if lies_in_shards(values):
                digest.update(f"shards {values.key};".encode())  # type: ignore[union-attr]
            elif values is not None:
                digest.update(f"{name} {values.dtype.str} {values.shape};".encode())
                for start in range(0, len(values), BLOCK):
                    digest.update(np.ascontiguousarray(values[start : start + BLOCK]).data)
        digest.update(f"link {self.link} {self.link_constant!r}".encode())
        return digest.hexdigest()

    def named_classes(self) -> tuple[str, ...]:
        """The class names, or "class 0", "class 1", … where there are none. Equal ones are told apart by their number."""
        names = self.class_names or tuple(f"class {index}" for index in range(self.n_classes))
        times = Counter(names)
        if len(times) == len(names):
            return names
        return tuple(f"{name} ({j})" if times[name] > 1 else name for j, name in enumerate(names))

    def checked_labels(self) -> np.ndarray:
        """The labels, or an error for a table without."""
        if self.labels is None:
            raise ValueError("this table has no labels; give LogitTable(scores, labels) to measure what is right")
        return self.labels

    @cached_property
    def labelled(self) -> np.ndarray:
        """(n,) bool: which rows have a label that a set can contain.

        >>> LogitTable(np.zeros((2, 3)), labels=[2, -1]).labelled.tolist()
        [True, False]
        """
        if self.labels is None:
            return read_only(np.zeros(self.n, bool))
        if self.many_labels:
            return read_only(np.asarray(self.labels.any(axis=1)))
        return read_only(np.asarray(self.labels >= 0))

    @property
    def known(self) -> np.ndarray:
        """(n,) bool: which rows have a known truth. With (n, L) labels all of them: "none of these" is a truth; -1 is not.

        >>> table = LogitTable(np.zeros((2, 2)), labels=[[True, False], [False, False]])
        >>> table.known.tolist(), table.labelled.tolist()
        ([True, True], [True, False])
        """
        return read_only(np.ones(self.n, bool)) if self.many_labels else self.labelled

    def labelled_rows(self) -> Self:
        """The table of the rows that have a label: this very table if all have, an error if none has."""
        return self._rows_where(self.labelled)

    def known_rows(self) -> Self:
        """The table of the rows whose truth is known: this very table if it is of all, an error if of none."""
        return self._rows_where(self.known)

    def _rows_where(self, mask: np.ndarray) -> Self:
        self.checked_labels()
        if mask.all():
            return self
        if not mask.any():
            raise ValueError(f"none of the {self.n} rows has a label; give some that do")
        return self.rows(mask)

    def positives(self) -> tuple[np.ndarray, np.ndarray]:
        """(rows, classes) of every label: as many pairs as a row has labels, none for a row without."""
        labels = self.checked_labels()
        if self.many_labels:
            rows, classes = np.nonzero(labels)
            return rows, classes
        rows = np.flatnonzero(self.labelled)
        return rows, labels[rows]

    def of_kind(self, row_kind: str) -> Self:
        """The same rows, which are said to be images, texts, …"""
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return self.trusted(vars(self).get("key"), **fields | {"row_kind": row_kind})

    def with_link(self, link: str, link_constant: float | None = None) -> Self:
        """The same scores read through another link."""
        return dataclasses.replace(self, link=link, link_constant=link_constant)

    def with_n_labels(self, n_labels: Any = None) -> Self:
        """The prediction where the number of labels of every row is known: probabilities that sum to it, many of them 0 or 1.

        - `n_labels`: one number, or one for each row; by default how many labels the rows have.

        The scores are projected (sparse-top), which is what the loss `SparseTop` trains them for.

        >>> LogitTable([[3.0, 0.75, 0.5, -1.0]]).with_n_labels(2).probabilities().tolist()
        [[1.0, 0.625, 0.375, 0.0]]

        Paper: Garcin, thesis, section 6.2.7.
        """
        if n_labels is None:
            labels = self.checked_labels()
            n_labels = labels.sum(1) if self.many_labels else self.labelled.astype(int)
        scores = sparse_top(np.asarray(self.scores), array_of(n_labels))
        return dataclasses.replace(self, scores=scores, link="identity", link_constant=None)

    @property
    def row_ids(self) -> np.ndarray:
        """(n,) what each row is called: its id, or its number where the table has no ids."""
        return np.arange(self.n) if self.ids is None else self.ids

    def rows(self, index: Any) -> Self:
        """The table of some rows: a slice, indices or a mask. Their ids say which rows of this table they are.

        >>> LogitTable(np.zeros((4, 2))).rows([3, 1]).ids.tolist()
        [3, 1]
        """
        if not isinstance(index, slice):
            index = np.atleast_1d(array_of(index))
            index = index if index.size else slice(0)  # NumPy takes an empty list for floats
        if len(np.arange(self.n)[index]) == 0:
            raise ValueError("no row was chosen; a table has at least one row")
        per_row = {name: getattr(self, name) for name in self.PER_ROW}
        chosen: dict[str, Any] = {
            name: None if values is None else read_only(values[index]) for name, values in per_row.items()
        }
        chosen["scores"] = self._scores_of(index)
        chosen["ids"] = read_only(self.row_ids[index])
        if self.attributes is not None:
            chosen["attributes"] = {name: read_only(values[index]) for name, values in self.attributes.items()}
        kept = {
            name: getattr(self, name)
            for name in ("link", "link_constant", *self.PER_CLASS, "row_kind", "chose_model", "note")
        }
        return self.trusted(**kept, **chosen)

    def slice(self, rows: Any, name: str) -> Self:
        """Some rows as a table of its own that says what it is a slice of.

        Args:
            rows: a mask, row numbers or a slice.
            name: what the slice is called, such as "dark photographs".

        Returns:
            The table of these rows; its note begins with the name, its ids are those of the rows here.

        >>> table = LogitTable(np.zeros((4, 2)), attributes={"organ": ["leaf", "fruit", "leaf", "leaf"]})
        >>> table.slice(table.attributes["organ"] == "leaf", name="leaves").note
        'leaves (3 of 4 rows)'
        """
        chosen = self.rows(rows)
        note = "; ".join(filter(None, (f"{name} ({chosen.n} of {self.n} rows)", self.note)))
        chosen._fill(note=note)
        return chosen

    def part(self, rows: Span) -> Self:
        """The scores, labels and link of consecutive rows, and nothing else: what a pass over the table looks at."""
        labels = None if self.labels is None else self.labels[rows]
        return self.trusted(
            scores=self._scores_of(rows), labels=labels, link=self.link, link_constant=self.link_constant
        )

    def _scores_of(self, index: Any) -> Any:
        """The scores of some rows; those of shards are not read."""
        sharded: Any = self.scores
        return sharded.of_rows(index) if lies_in_shards(sharded) else read_only(sharded[index])

    def split(self, fraction: float = 0.5, seed: int = 0) -> tuple[Self, Self]:
        """Two tables of different rows, drawn at random, the first with that fraction of them; each keeps the row order,
        and its ids say which rows of this table it has.

        Fit on one, measure on the other: the clean way to a promise about rows that chose nothing. Rows of one object (an
        attribute such as `object` or `plant_id`, or ids that repeat) stay together; the fraction is of objects then.

        >>> table = LogitTable(np.zeros((4, 2)), attributes={"plant_id": [7, 7, 8, 8]})
        >>> [half.attributes["plant_id"].tolist() for half in table.split()]
        [[7, 7], [8, 8]]
        """
        if not (isinstance(fraction, numbers.Real) and 0 < fraction < 1):
            raise ValueError(f"fraction = {fraction!r}; give a number between 0 and 1")
        first, second = split_rows(self, float(fraction), seed)
        return self.rows(first), self.rows(second)

    def probabilities(self, rows: Any = ALL_ROWS) -> np.ndarray:
        """(rows, L) after the link, float32 or float64. All rows at once take n·L numbers of memory: prefer `blocks`."""
        scores = self.scores[rows] if isinstance(rows, slice) else self.scores[np.atleast_1d(array_of(rows))]
        link = LINKS[self.link]
        if len(scores) <= BLOCK:
            return link(np.ascontiguousarray(scores, dtype=self.dtype), self.link_constant)
        probabilities = np.empty(scores.shape, self.dtype)
        for start in range(0, len(scores), BLOCK):
            block = np.ascontiguousarray(scores[start : start + BLOCK], dtype=self.dtype)
            probabilities[start : start + BLOCK] = link(block, self.link_constant)
        return probabilities

    def blocks(self, rows: int = BLOCK) -> Iterator[np.ndarray]:
        """The probabilities, that many rows at a time. Not a bit depends on how many.

        >>> [block.shape for block in LogitTable(np.zeros((5, 3))).blocks(rows=2)]
        [(2, 3), (2, 3), (1, 3)]
        """
        return (self.probabilities(span) for span in self.spans(rows))

    def spans(self, rows: int | None = None) -> Iterator[Span]:
        """Consecutive slices that cover all rows; by default as many rows as a processor's cache likes."""
        if rows is None:
            rows = self.span
        if rows < 1:
            raise ValueError(f"a block has at least one row, not {rows}")
        return (slice(start, min(start + rows, self.n)) for start in range(0, self.n, rows))

    @property
    def span(self) -> int:
        """As many rows as a processor's cache likes."""
        return min(BLOCK, max(1, 2**18 // self.n_classes))

    def save(self, directory: str | os.PathLike[str]) -> Path:
        """Write `table.json` and one `.npy` per array; the directory appears whole or not at all."""
        from workbench.tables.directories import write_table

        return write_table(self, Path(directory))

    @classmethod
    def load(cls, directory: str | os.PathLike[str], verify: bool = True, *, allow: Iterable[str] = ()) -> LogitTable:
        """Read what `save` or `append_to` wrote. Large arrays stay on disk, memory-mapped; nothing is unpickled.

        Shards are read from any address that fsspec knows (`s3://…`), a few rows at a time.

        Args:
            directory: A folder, or the address of shards.
            verify: Read every score once: shards are compared with their checksums, other scores must be finite.
            allow: Addresses (or their beginnings) that a saved table may refer to for its scores. A file that names an
                address is no reason to ask it.
        """
        from workbench.tables.directories import read_table
        from workbench.tables.shards import holds_shards, load_shards

        if holds_shards(directory):
            return load_shards(os.fspath(directory), verify)
        return read_table(Path(directory), verify, allow)

    def append_to(self, url: str | os.PathLike[str], ending: str = ".npy") -> None:
        """Add these rows to the sharded table at an address, or begin one: there afterwards as a whole, or not at all.

        A table grows this way while a network scores. `ending` is `.npy`, `.safetensors` or `.parquet`; reading is
        quickest from `.npy`. Rows keep their labels, ids and attributes.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for scores in (2 * np.eye(3), 3 * np.eye(3)):
        ...         LogitTable(scores, labels=[0, 1, 2]).append_to(f"{folder}/grows")
        ...     LogitTable.load(f"{folder}/grows")
        LogitTable(6 rows × 3 classes, softmax, float64; labels)
        """
        from workbench.tables.shards import append_shard

        append_shard(self, url, ending)

    def save_shards(self, url: str | os.PathLike[str], rows: int | None = None, ending: str = ".npy") -> None:
        """Write the table in shards of so many rows (by default of 256 MB) to an address where none is."""
        from workbench.tables.shards import save_shards

        save_shards(self, url, rows, ending)

    def __repr__(self) -> str:
        optional = ("link_constant", *self.PER_ROW, "attributes", *self.PER_CLASS)
        present = [name for name in optional if getattr(self, name) is not None]
        extras = f"; {', '.join(present)}" if present else ""
        return f"LogitTable({self.n} rows × {self.n_classes} classes, {self.link}, {self.scores.dtype}{extras})"

    def _repr_html_(self) -> str:
        from workbench.html_repr import table_card

        return table_card(self)
