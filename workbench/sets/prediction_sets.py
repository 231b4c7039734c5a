"""The sets that a rule, or a person, gives: one set of classes per row of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from workbench.tables import LogitTable
from workbench.tables.passes import over_parts


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets:
    """One set of classes per row, sparse: the classes of row i are `classes[offsets[i]:offsets[i + 1]]`.

    - `table`: the rows the sets are of.
    - `rule`: the fitted rule that made them.
    - `marks`: probabilities and rows of a block → (rows, L) true where a class is in the set.

    Within a row classes stand by falling probability, equal ones by falling score. Sizes and hits cost one pass
    over the table; the classes of all rows, and an (n, L) matrix, are made only on demand.

    >>> from workbench.sets import Threshold
    >>> table = LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]], labels=[0, 0])
    >>> sets = Threshold(0.25).fit(table)(table)
    >>> sets.sizes.tolist(), sets.hits.tolist()
    ([2, 1], [True, False])
    >>> sets.members(0)
    (array([0, 1], dtype=int32), array([0.6, 0.3]))
    """

    table: LogitTable
    rule: Any  # the fitted rule that gave them, or None for sets that come from people
    marks: Callable[[np.ndarray, slice], np.ndarray]  # members of a block: (probabilities, rows) → bool, same shape

    @classmethod
    def from_matrix(cls, table: LogitTable, matrix: np.ndarray, rule: Any = None) -> PredictionSets:
        """Sets someone else chose (a botanist, a vote), given as (n, L) bool."""
        matrix = np.asarray(matrix, dtype=bool)
        if matrix.shape != table.scores.shape:
            raise ValueError(f"the sets have shape {matrix.shape}; give (n, L) = {table.scores.shape}")
        return cls(table, rule, lambda _, rows: matrix[rows].copy())

    def blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(rows, probabilities, members) a block of rows at a time; members is bool of the shape of probabilities."""
        for rows in self.table.spans():
            probabilities = self.table.probabilities(rows)
            yield rows, probabilities, self.marks(probabilities, rows)

    @cached_property
    def _counts(self) -> tuple[np.ndarray, np.ndarray | None]:
        """(n,) sizes and (n,) labels that are in the set, in one pass."""
        sizes, recalled = zip(*over_parts(self.table, counted, self._sent), strict=True)
        return np.concatenate(sizes), None if self.table.labels is None else np.concatenate(recalled)

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of all sets, row by row, and their probabilities; made when first asked for."""
        classes, probabilities = zip(*over_parts(self.table, listed, self._sent), strict=True)
        return np.concatenate(classes), np.concatenate(probabilities)

    @property
    def _sent(self) -> Any:
        """What knows the members, without the table, which parts are sent of."""
        return self.marks.without_table() if hasattr(self.marks, "without_table") else self.marks

    @property
    def sizes(self) -> np.ndarray:
        """(n,) number of classes in each set."""
        return self._counts[0]

    @property
    def recalled(self) -> np.ndarray:
        """(n,) how many of the labels of a row are in its set."""
        self.table.checked_labels()
        return cast(np.ndarray, self._counts[1])

    @property
    def labelled(self) -> np.ndarray:
        """(n,) bool: which rows have a label, and so can be hit or missed."""
        return self.table.labelled

    @cached_property
    def hits(self) -> np.ndarray:
        """(n,) bool: every label of the row is in its set. False for a row without a label: `labelled` says which."""
        hits: np.ndarray
        if self.table.many_labels:
            hits = self.labelled & (self.recalled == self.table.checked_labels().sum(1))
        else:
            hits = self.recalled == 1
        return hits

    @cached_property
    def offsets(self) -> np.ndarray:
        """(n + 1,) where the classes of each row begin in `classes`."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def classes(self) -> np.ndarray:
        """(offsets[-1],) the classes of all sets, row by row, by falling probability."""
        return self._members[0]

    @property
    def probabilities(self) -> np.ndarray:
        """(offsets[-1],) the probabilities of `classes`."""
        return self._members[1]

    def members(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """The classes in the set of row i by falling probability, and their probabilities."""
        if not -self.table.n <= i < self.table.n:
            raise IndexError(f"row {i} does not exist; this table has {self.table.n} rows")
        row = slice(i % self.table.n, i % self.table.n + 1)
        probabilities = self.table.probabilities(row)
        return _in_order(probabilities, self.table.scores[row], self.marks(probabilities, row))

    def rows(self, index: Any) -> PredictionSets:
        """The sets of some rows: a slice, indices or a mask."""
        of_rows = np.arange(self.table.n)[index]

        def marks(probabilities: np.ndarray, span: slice) -> np.ndarray:
            chosen = of_rows[span]
            sizes = self.sizes[chosen]
            place = np.repeat(np.arange(len(chosen)), sizes)
            first = np.repeat(self.offsets[chosen] - (np.cumsum(sizes) - sizes), sizes)  # where a set begins
            mask = np.zeros(probabilities.shape, bool)
            mask[place, self.classes[first + np.arange(len(place))]] = True
            return mask

        return ChosenSets(self.table.rows(of_rows), self.rule, marks, self, of_rows)

    def matrix(self) -> np.ndarray:
        """(n, L) bool."""
        return np.concatenate([mask for _, _, mask in self.blocks()])

    def to_frame(self) -> pd.DataFrame:
        """One line per row, for a spreadsheet or a data base; a row whose set is empty has its line too.

        Columns: `id` (that of the table, else the number of the row), with labels `label` (its name, None for a row
        without; of many a list, `labels`) and `hit` (missing for a row without), `size`, and the lists `classes` (names
        by falling probability) and `probabilities`. `frame.explode(["classes", "probabilities"])` gives one line per
        row and class.

        >>> from workbench.sets import Threshold
        >>> p = [[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]]
        >>> table = LogitTable.from_probabilities(p, labels=[0, 0], class_names=["oak", "elm", "fir"])
        >>> frame = Threshold(0.25).fit(table)(table).to_frame()
        >>> frame
           id label    hit  size     classes probabilities
        0   0   oak   True     2  [oak, elm]    [0.6, 0.3]
        1   1   oak  False     1       [fir]         [0.7]
        >>> frame.explode(["classes", "probabilities"])[["id", "classes", "probabilities"]].to_numpy().tolist()
        [[0, 'oak', 0.6], [0, 'elm', 0.3], [1, 'fir', 0.7]]
        """
        table, names = self.table, np.array(self.table.named_classes(), dtype=object)
        columns: dict[str, Any] = {"id": np.arange(table.n) if table.ids is None else table.ids}
        if table.labels is not None:
            of_rows, classes = table.positives()
            labels = np.split(names[classes], np.searchsorted(of_rows, np.arange(1, table.n)))
            labelled = np.array([len(of_row) > 0 for of_row in labels])
            if table.many_labels:
                columns["labels"] = [of_row.tolist() for of_row in labels]
            else:
                columns["label"] = [of_row[0] if len(of_row) else None for of_row in labels]
            hits = pd.array(self.hits, dtype="boolean")
            hits[~labelled] = pd.NA
            columns["hit"] = self.hits if labelled.all() else hits
        cuts = self.offsets[1:-1]
        return pd.DataFrame(
            columns
            | {
                "size": self.sizes,
                "classes": [members.tolist() for members in np.split(names[self.classes], cuts)],
                "probabilities": [values.tolist() for values in np.split(self.probabilities, cuts)],
            }
        )

    def __len__(self) -> int:
        return self.table.n

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(np.split(self.classes, self.offsets[1:-1]))

    def __repr__(self) -> str:
        return f"PredictionSets({self.table.n} rows, mean size {self.sizes.mean():.3g}; {self.rule!r})"

    def _repr_html_(self) -> str:
        from workbench.cards import sets_card

        return sets_card(self)


@dataclass(frozen=True, eq=False, repr=False)
class ChosenSets(PredictionSets):
    """The sets of some rows of others: what was counted of those is not counted again."""

    whole: PredictionSets
    of_rows: np.ndarray

    @cached_property
    def _counts(self) -> tuple[np.ndarray, np.ndarray | None]:
        sizes, recalled = self.whole._counts
        return sizes[self.of_rows], None if recalled is None else recalled[self.of_rows]


def _of_part(marks: Any, part: LogitTable, first_row: int) -> PredictionSets:
    """The sets of some consecutive rows, as sets of their own."""
    if hasattr(marks, "of_part"):
        return PredictionSets(part, None, marks.of_part(part, first_row))
    return PredictionSets(
        part, None, lambda block, rows: marks(block, slice(first_row + rows.start, first_row + rows.stop))
    )


def counted(part: LogitTable, first_row: int, marks: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the sets of some rows, and how many labels are in each; 0 without labels."""
    sizes, recalled = np.empty(part.n, np.int64), np.zeros(part.n, np.int64)
    for rows, _, mask in _of_part(marks, part, first_row).blocks():
        sizes[rows] = np.count_nonzero(mask, axis=1)
        if part.labels is not None:
            recalled[rows] = _recalled(mask, part.labels[rows])
    return sizes, recalled


def listed(part: LogitTable, first_row: int, marks: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes of the sets of some rows, and their probabilities."""
    blocks = _of_part(marks, part, first_row).blocks()
    parts = [_in_order(probabilities, part.scores[rows], mask) for rows, probabilities, mask in blocks]
    classes, probabilities = zip(*parts, strict=True)
    return np.concatenate(classes), np.concatenate(probabilities)


def _in_order(probabilities: np.ndarray, scores: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    row, member = np.nonzero(mask)
    value = probabilities[row, member]
    falling = np.lexsort((-scores[row, member], -value, row))  # stable: what is equal stays by class index
    return member[falling].astype(np.int32), value[falling]


def _recalled(mask: np.ndarray, labels: np.ndarray) -> np.ndarray:
    recalled: np.ndarray
    if labels.ndim == 2:
        recalled = np.count_nonzero(mask & labels, axis=1)
    else:
        recalled = (mask[np.arange(len(labels)), labels] & (labels >= 0)).astype(np.int64)  # -1 is no label
    return recalled


def checked_sets(given: Any) -> PredictionSets:
    """The sets, or an error for anything else that says how it becomes some."""
    if not isinstance(given, PredictionSets):
        raise ValueError(
            f"PredictionSets are wanted here, not {type(given).__name__}: a rule makes them of a table, "
            "such as AverageK(3).fit(val)(test)"
        )
    return given
