"""The sets that a rule, or a person, gives: one set of classes per row of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
import pandas as pd

from workbench.tables import LogitTable
from workbench.tables.groups import GroupedColumns, classes_by
from workbench.tables.map_reduce import over_parts
from workbench.tables.ordering import marked_in_rows, marked_places

MOST_BITS = np.uint32(2**31 - 1)  # of a float32 ≥ 0, which rise with it


@dataclass(frozen=True, eq=False, repr=False)
class PredictionSets:
    """One set of classes per row, sparse: the classes of row i are `classes[offsets[i]:offsets[i + 1]]`.

    - `table`: the rows the sets are of.
    - `rule`: the fitted rule that made them.
    - `source`: who chose sets that no rule made: people, or the file that they were read from.
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
    source: str = field(default="people", kw_only=True)  # of sets without a rule

    @classmethod
    def from_matrix(
        cls, table: LogitTable, matrix: np.ndarray, rule: Any = None, source: str = "people"
    ) -> PredictionSets:
        """Sets that people or another system chose, given as (n, L) bool."""
        matrix = np.asarray(matrix, dtype=bool)
        if matrix.shape != table.scores.shape:
            raise ValueError(f"the sets have shape {matrix.shape}; give (n, L) = {table.scores.shape}")
        return cls(table, rule, lambda _, rows: matrix[rows].copy(), source=source)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """(rows, probabilities, members) a block of rows at a time; members is bool of the shape of probabilities."""
        for rows in self.table.spans():
            probabilities = self.table.probabilities(rows)
            yield rows, probabilities, self.marks(probabilities, rows)

    @cached_property
    def _counts(self) -> tuple[np.ndarray, np.ndarray | None]:
        """(n,) sizes and (n,) labels that are in the set, in one pass."""
        return self._counts_of(over_parts(self.table, counted, self.mask_to_send))

    def _counts_of(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray | None]:
        sizes, recalled = map(np.concatenate, zip(*parts, strict=True))
        return sizes, None if self.table.labels is None else recalled

    def keep_counts(self, parts: Iterable[tuple[np.ndarray, np.ndarray]]) -> None:
        """Takes sizes and hits that a pass for other purposes has counted, part by part."""
        vars(self)["_counts"] = self._counts_of(parts)

    @cached_property
    def _members(self) -> tuple[np.ndarray, np.ndarray]:
        """The classes of all sets, row by row, and their probabilities; computed on first use."""
        classes, probabilities = zip(*over_parts(self.table, listed, self.mask_to_send), strict=True)
        return np.concatenate(classes), np.concatenate(probabilities)

    @property
    def mask_to_send(self) -> Any:
        """The function that knows the members, without the table, of which parts are sent."""
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

    @property
    def class_groups(self) -> tuple[np.ndarray, tuple[str, ...]]:
        """The group of each class, as a code, and the names of the groups: those the rule was fitted with, or the table's."""
        return classes_by(self.table, "groups") if self.rule is None else self.rule.class_groups(self.table)

    @cached_property
    def node_counts(self) -> np.ndarray:
        """(n,) how few names write each set: every class, a whole group, or a single class count one."""
        columns = GroupedColumns.of(self.class_groups[0])
        return np.concatenate(list(over_parts(self.table, nodes_counted, self.mask_to_send, columns)))

    def nodes(self, i: int) -> list[str]:
        """The names that write the set of row i: groups that are in it as a whole, and single classes, most probable first."""
        codes, group_names = self.class_groups
        members, class_names = self.members(i)[0], self.table.named_classes()
        if len(members) == self.table.n_classes:
            return ["every class"]
        whole = np.bincount(codes[members], minlength=len(group_names)) == np.bincount(codes)
        names = [group_names[codes[j]] if whole[codes[j]] and several(codes, j) else class_names[j] for j in members]
        return list(dict.fromkeys(names))

    def describe(self) -> str:
        """The rule, what the sets cost and hold, the promise with its band, and the price of `min_size`: a line each.

        >>> from workbench.sets import LAC
        >>> p = [[0.9, 0.1], [0.5, 0.5], [0.6, 0.4]] * 10
        >>> table = LogitTable.from_probabilities(p, labels=[0, 0, 1] * 10)
        >>> print(LAC(0.6, min_size=2).fit(table)(table).describe())
        LAC(confidence=0.6, min_size=2) at 0.5: mean size 2 of 2 classes, coverage 100 % of 30 rows
        promised 60 %, with 30 calibration rows expect 44–77 %
        min_size=2 adds 0.667 classes a row (66.7 % of the sets were smaller); coverage 66.7 → 100 %
        """
        name = self.source if self.rule is None else self.rule.name
        held = f", coverage {percent(coverage(self))} of {self.labelled.sum()} rows" if self.labelled.any() else ""
        first = f"{name}: mean size {self.sizes.mean():.3g} of {self.table.n_classes} classes{held}"
        return "\n".join([first, *self.notes()])

    def notes(self) -> list[str]:
        """The promise with its band, and the price of `min_size`, in words; those that there are."""
        promise = self.rule.promise_text() if self.rule is not None else ""
        return [note for note in (promise, self.min_size_price()) if note]

    def min_size_price(self) -> str:
        """How many classes `min_size` adds and what coverage it buys, in words; "" for a rule without."""
        least = getattr(getattr(self.rule, "rule", None), "min_size", 0)
        if not least:
            return ""
        free = replace(self.rule, rule=replace(self.rule.rule, min_size=0)).sets(self.table)
        added = self.sizes - free.sizes
        price = f"min_size={least} adds {added.mean():.3g} classes a row ({percent((added > 0).mean())} of the sets were smaller)"
        if not self.labelled.any():
            return price
        return f"{price}; coverage {percent(coverage(free)).removesuffix(' %')} → {percent(coverage(self))}"

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

        return ChosenSets(self.table.rows(of_rows), self.rule, marks, self, of_rows, source=self.source)

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
        columns: dict[str, Any] = {"id": table.row_ids}
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
        chosen_by = self.source if self.rule is None else repr(self.rule)
        return f"PredictionSets({self.table.n} rows, mean size {self.sizes.mean():.3g}; {chosen_by})"

    def _repr_html_(self) -> str:
        from workbench.html_repr import sets_card

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


def mask_of_part(marks: Any, part: LogitTable, first_row: int) -> Any:
    """The function that knows the members of some consecutive rows, which count from the first of them."""
    if hasattr(marks, "of_part"):
        return marks.of_part(part, first_row)
    return lambda block, rows: marks(block, slice(first_row + rows.start, first_row + rows.stop))


def _of_part(marks: Any, part: LogitTable, first_row: int) -> PredictionSets:
    """The sets of some consecutive rows, as sets of their own."""
    return PredictionSets(part, None, mask_of_part(marks, part, first_row))


def counted(part: LogitTable, first_row: int, marks: Any) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the sets of some rows, and how many labels are in each; 0 without labels."""
    counts = [
        counted_in(mask, None if part.labels is None else part.labels[rows])
        for rows, _, mask in _of_part(marks, part, first_row).blocks()
    ]
    sizes, recalled = map(np.concatenate, zip(*counts, strict=True))
    return sizes, recalled


def counted_in(mask: np.ndarray, labels: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the sets of a block, and how many labels are in each; 0 without labels."""
    return marked_in_rows(mask), np.zeros(len(mask), np.int64) if labels is None else _recalled(mask, labels)


def coverage(sets: PredictionSets) -> float:
    """The share of the rows with a label whose set contains it."""
    return float(sets.hits[sets.labelled].mean())


def percent(share: float) -> str:
    """A share in percent, with three digits.

    >>> percent(1.0), percent(0.6666)
    ('100 %', '66.7 %')
    """
    return f"{100 * share:.3g} %"


def several(codes: np.ndarray, j: int) -> bool:
    """Whether the group of a class has other classes."""
    return bool(np.count_nonzero(codes == codes[j]) > 1)


def nodes_counted(part: LogitTable, first_row: int, marks: Any, columns: GroupedColumns) -> np.ndarray:
    """(rows,) the number of names that write the sets of some rows."""
    counts = np.empty(part.n, np.int64)
    for rows, _, mask in _of_part(marks, part, first_row).blocks():
        inside = columns.reduced(np.add, mask.astype(np.int64))
        of_groups = np.where(inside == columns.sizes, 1, inside).sum(1)
        counts[rows] = np.where(inside.sum(1) == part.n_classes, 1, of_groups)
    return counts


def listed(part: LogitTable, first_row: int, marks: Any) -> tuple[np.ndarray, np.ndarray]:
    """The classes of the sets of some rows, and their probabilities."""
    blocks = _of_part(marks, part, first_row).blocks()
    parts = [_in_order(probabilities, part.scores[rows], mask) for rows, probabilities, mask in blocks]
    classes, probabilities = zip(*parts, strict=True)
    return np.concatenate(classes), np.concatenate(probabilities)


def _in_order(probabilities: np.ndarray, scores: np.ndarray, mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The members of a block, row by row: by falling probability, equal ones by falling score, then by index."""
    row, member = marked_places(mask)
    value = probabilities[row, member]
    if value.dtype != np.float32 or value.min(initial=0) < 0:
        falling = np.lexsort((-scores[row, member], -value, row))  # stable: what is equal stays by class index
        return member[falling].astype(np.int32), value[falling]
    keys = ((MOST_BITS - (value + np.float32(0)).view(np.uint32)).astype(np.uint64) << np.uint64(32)) | member.astype(
        np.uint64
    )
    _sort_rows(keys, marked_in_rows(mask))
    member, value = (
        keys.astype(np.uint32).view(np.int32),
        (MOST_BITS - (keys >> np.uint64(32)).astype(np.uint32)).view(np.float32),
    )
    same = (value[1:] == value[:-1]) & (row[1:] == row[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        by_score = np.lexsort((member[tied], -scores[row[tied], member[tied]], -value[tied], row[tied]))
        member[tied] = member[tied][by_score]
    return member, value


def _sort_rows(keys: np.ndarray, sizes: np.ndarray) -> None:
    """Sorts the keys of each row, which stand one row after the other, in place.

    Rows of about one size are sorted together as a matrix: several times quicker than one long sort.
    """
    doublings = np.frexp(np.maximum(sizes - 1, 0))[1]
    for group in (doublings == doubling for doubling in np.unique(doublings[sizes > 1])):
        places, of_group = np.flatnonzero(np.repeat(group, sizes)), sizes[group]
        filled = np.arange(of_group.max()) < of_group[:, None]
        rows = np.full(filled.shape, np.iinfo(keys.dtype).max, keys.dtype)
        rows[filled] = keys[places]
        rows.sort(axis=1)
        keys[places] = rows[filled]


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
        raise TypeError(
            f"expected PredictionSets, got {type(given).__name__}: a rule makes them of a table, "
            "such as AverageK(3).fit(val)(test)"
        )
    return given
