"""Rows worth looking at: which rows of a table one asks for, and in which order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from workbench.metrics import confidences
from workbench.metrics.against_bayes import QUADRANTS, sizes_against_bayes
from workbench.sets import PredictionSets
from workbench.tables import LogitTable
from workbench.tables.groups import rows_by
from workbench.tables.map_reduce import row_values
from workbench.tables.ordering import likeliest

# How two models disagree on a row: the first is the one whose rows are selected.
ONLY_THIS, ONLY_OTHER, OTHER_SETS = "only this run hits", "only the other hits", "the sets differ"
DISAGREEMENTS = (ONLY_THIS, ONLY_OTHER, OTHER_SETS)
OF_SETS = {"sizes", "hit", "holds", "disagreement", "exactly", "two_of", "quadrant"}  # fields of a filter


@dataclass(frozen=True, repr=False)
class RowFilter:
    """Filter of rows: those for which all given conditions hold.

    `sizes` are the smallest and the largest set; `hit` whether the set contains the label (every label of many; rows
    without one are neither hit nor missed);
    `label` the class that is a label of the row, `n_labels` the fewest and the most labels it has ((0, 0): it shows none of
    the classes) and `holds` classes that are in its set, by their numbers; `groups` are pairs such as `("organ", "leaf")`
    or `("shots", "few")`, in the words of `size_histogram(by=)`; `sure` are the bounds of the largest probability of the
    row, in (low, high] as the bins of a reliability diagram, where more than 1 counts as 1; `disagreement` is one of
    `DISAGREEMENTS`; `text` is a part of the text of the row, in upper or lower case; `exactly` are the classes of the set, no
    more and no fewer; `two_of` are classes of which the set holds at least two; `pair` are the two likeliest classes of the
    row, in any order; `quadrant` is one of `workbench.metrics.against_bayes.QUADRANTS`.

    >>> table = LogitTable.from_probabilities([[0.6, 0.4], [0.9, 0.1], [0.2, 0.8]], labels=[1, 1, 1])
    >>> from workbench.sets import Threshold
    >>> sets = Threshold(0.3).fit(table)(table)
    >>> RowFilter(sizes=(1, 1)).rows(sets).tolist(), RowFilter(hit=False).rows(sets).tolist()
    ([1, 2], [1])
    >>> RowFilter(hit=False, label=1)
    RowFilter(hit=False, label=1)
    """

    sizes: tuple[int, int] | None = None
    hit: bool | None = None
    label: int | None = None
    n_labels: tuple[int, int] | None = None
    holds: tuple[int, ...] = ()
    groups: tuple[tuple[str, str], ...] = ()
    sure: tuple[float, float] | None = None
    disagreement: str | None = None
    text: str | None = None
    exactly: tuple[int, ...] | None = None
    two_of: tuple[int, ...] | None = None
    pair: tuple[int, int] | None = None
    quadrant: str | None = None

    def rows(self, sets: PredictionSets, other: PredictionSets | None = None) -> np.ndarray:
        """The rows, in the order of the table. `other` are the sets of another model, for a disagreement."""
        table, selected = sets.table, np.ones(len(sets), bool)
        if self.sizes is not None:
            low, high = self.sizes
            selected &= (low <= sets.sizes) & (sets.sizes <= high)
        if self.hit is not None:
            selected &= sets.labelled & (sets.hits == self.hit)
        if self.label is not None:
            rows, classes = table.positives()
            selected &= np.isin(np.arange(table.n), rows[classes == self.label])
        if self.n_labels is not None:
            fewest, most = self.n_labels
            n_labels = np.bincount(table.positives()[0], minlength=table.n)
            selected &= (fewest <= n_labels) & (n_labels <= most)
        for member in self.holds:
            selected &= _holds(sets, member)
        for by, name in self.groups:
            codes, names = rows_by(table, by)
            if name not in names:
                raise ValueError(f"there is no {name!r} among the groups by {by!r}; there are {', '.join(names)}")
            selected &= codes == names.index(name)
        if self.sure is not None:
            confidence = np.minimum(confidences(table), 1)
            selected &= (self.sure[0] < confidence) & (confidence <= self.sure[1])
        if self.text is not None:
            selected &= contains(table, self.text)
        if self.disagreement is not None:
            selected &= disagree(sets, other, self.disagreement)
        if self.exactly is not None:
            selected &= sets.sizes == len(self.exactly)
            for member in self.exactly:
                selected &= _holds(sets, member)
        if self.two_of is not None:
            row = np.repeat(np.arange(len(sets)), sets.sizes)
            selected &= np.bincount(row[np.isin(sets.classes, self.two_of)], minlength=len(sets)) >= 2
        if self.pair is not None:
            selected &= (likeliest_pairs(table) == sorted(self.pair)).all(axis=1)
        if self.quadrant is not None:
            selected &= in_quadrant(sets, self.quadrant)
        return np.flatnonzero(selected)

    def given(self) -> dict[str, object]:
        """Name → value of the given conditions."""
        return {each.name: value for each in fields(self) if (value := getattr(self, each.name)) != each.default}

    def within(self, wider: RowFilter) -> RowFilter:
        """The filter of the rows that this one and a wider one select; a ValueError where one filter cannot say it.

        >>> RowFilter(sizes=(1, 1), sure=(0.2, 0.6)).within(RowFilter(label=3, sure=(0.5, 1)))
        RowFilter(sizes=(1, 1), label=3, sure=(0.5, 0.6))
        """
        both: dict[str, Any] = {**wider.given(), **self.given()}
        if self.sure is not None and wider.sure is not None:
            both["sure"] = (max(self.sure[0], wider.sure[0]), min(self.sure[1], wider.sure[1]))
        for name in (self.given().keys() & wider.given().keys()) - {"sure"}:
            if getattr(self, name) != getattr(wider, name):
                raise ValueError(
                    f"{name} cannot be {getattr(self, name)!r} and {getattr(wider, name)!r} in one filter; leave one out"
                )
        return RowFilter(**both)

    @property
    def needs_sets(self) -> bool:
        """Whether other sets of the same table select other rows."""
        return bool(self.given().keys() & OF_SETS)

    def __repr__(self) -> str:
        return f"RowFilter({', '.join(f'{name}={value!r}' for name, value in self.given().items())})"


def in_quadrant(sets: PredictionSets, quadrant: str) -> np.ndarray:
    """(n,) bool: the rows whose set and Bayes set are small or large in that way, one of `QUADRANTS`."""
    if quadrant not in QUADRANTS:
        raise ValueError(f"quadrant = {quadrant!r}; give one of {', '.join(QUADRANTS)}")
    found: np.ndarray = sizes_against_bayes(sets).quadrants() == list(QUADRANTS).index(quadrant)
    return found


def contains(table: LogitTable, text: str) -> np.ndarray:
    """(n,) bool: the rows whose text contains this one, in upper or lower case."""
    if table.texts is None:
        raise ValueError("this table has no texts to search; give LogitTable(..., texts=...)")
    query = text.casefold()
    return np.array([query in each.casefold() for each in table.texts.tolist()])


def _holds(sets: PredictionSets, member: int) -> np.ndarray:
    of_row = np.repeat(np.arange(len(sets)), sets.sizes)
    return np.isin(np.arange(len(sets)), of_row[sets.classes == member])


def disagree(sets: PredictionSets, other: PredictionSets | None, how: str) -> np.ndarray:
    """(n,) bool: the rows on which two models disagree in that way, one of `DISAGREEMENTS`."""
    if how not in DISAGREEMENTS:
        raise ValueError(f"how = {how!r}; give one of {', '.join(DISAGREEMENTS)}")
    if other is None or other.table.scores.shape != sets.table.scores.shape:
        raise ValueError(
            "a disagreement is of two models on the same rows and classes; give other= the second one's sets"
        )
    if how == OTHER_SETS:
        pairs = zip(sets.blocks(), other.blocks(), strict=True)
        return np.concatenate([(one != two).any(axis=1) for (_, _, one), (_, _, two) in pairs])
    chosen: np.ndarray = sets.hits & ~other.hits if how == ONLY_THIS else ~sets.hits & other.hits
    return chosen


def likeliest_pairs(table: LogitTable) -> np.ndarray:
    """(n, 2) the two likeliest classes of each row, by rising number.

    >>> likeliest_pairs(LogitTable([[0.0, 2.0, 1.0]])).tolist()
    [[1, 2]]
    """
    return row_values(table, pairs_of_rows)


def pairs_of_rows(part: LogitTable, first_row: int) -> np.ndarray:
    """The two likeliest classes of some rows."""
    found = [np.argpartition(-part.probabilities(rows), 1, axis=1)[:, :2] for rows in part.spans()]
    return np.sort(np.concatenate(found), axis=1)


def ambiguity(table: LogitTable) -> np.ndarray:
    r"""(n,) the entropy of each row in nats: how evenly its probabilities are spread.

    $$H(x) = -\sum_j p_j(x) \log p_j(x)$$

    >>> ambiguity(LogitTable.from_probabilities([[0.5, 0.5], [0.9, 0.1]])).round(3).tolist()
    [0.693, 0.325]
    """
    return row_values(table, entropies)


def entropies(part: LogitTable, first_row: int) -> np.ndarray:
    """The entropies of some rows."""
    return np.concatenate([_entropy(part.probabilities(rows).astype(np.float64)) for rows in part.spans()])


def _entropy(probabilities: np.ndarray) -> np.ndarray:
    logarithms = np.log(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    entropies: np.ndarray = -(probabilities * logarithms).sum(axis=1)
    return entropies


def label_probability(table: LogitTable) -> np.ndarray:
    """(n,) the probability of the label of each row; of many the smallest, of none 1."""
    return row_values(table, label_probabilities)


def label_probabilities(part: LogitTable, first_row: int) -> np.ndarray:
    """The smallest probability of a label of some rows."""
    rows, classes = part.positives()
    smallest = np.ones(part.n)
    for span in part.spans():
        inside = slice(*np.searchsorted(rows, (span.start, span.stop)))
        found = part.probabilities(span)[rows[inside] - span.start, classes[inside]]
        np.minimum.at(smallest, rows[inside], found)
    return smallest


# Name → what grows along the rows in that order.
ORDERS: dict[str, Callable[[PredictionSets], np.ndarray]] = {
    "as in the table": lambda sets: np.zeros(len(sets)),
    "largest sets": lambda sets: -sets.sizes,
    "most ambiguous": lambda sets: -ambiguity(sets.table),
    "least sure": lambda sets: confidences(sets.table),
    "surest": lambda sets: -confidences(sets.table),
    "truth least likely": lambda sets: label_probability(sets.table),
}
OF_LABELS = ("truth least likely",)  # orders that need labels


def in_order(sets: PredictionSets, rows: np.ndarray, order: str) -> np.ndarray:
    """The rows in one of `ORDERS`; equal ones stay as in the table."""
    if order not in ORDERS:
        raise ValueError(f"order = {order!r}; give one of {', '.join(ORDERS)}")
    return rows[np.argsort(ORDERS[order](sets)[rows], kind="stable")]


def listed(sets: PredictionSets, rows: np.ndarray) -> pd.DataFrame:
    """One line for each of the rows: `row` (its number in the table), `id`, `size`, the most probable class and its
    probability, and with labels `label` (many are parted by a semicolon) and `hit`.
    """
    table, names = sets.table.rows(rows), np.array(sets.table.named_classes(), dtype=object)
    probabilities = table.probabilities()
    columns = {
        "row": rows,
        "id": table.row_ids if sets.table.ids is not None else rows,
        "size": sets.sizes[rows],
        "most_probable": names[likeliest(probabilities, table.scores, table.link)],
    }
    columns["probability"] = probabilities.max(axis=1)
    if table.labels is not None:
        of_rows, classes = table.positives()
        parts = np.split(names[classes], np.searchsorted(of_rows, np.arange(1, len(rows))))
        hits = pd.Series(sets.hits[rows], dtype="boolean").mask(~table.labelled)  # neither hit nor missed: no label
        columns |= {"label": ["; ".join(part) for part in parts], "hit": hits if hits.isna().any() else sets.hits[rows]}
    return pd.DataFrame(columns)


def suggestions(sets: PredictionSets, row: int, most: int = 12) -> pd.DataFrame:
    """Return the classes suggested for a row: its set by falling probability, then the labels it misses.

    Columns: `class`, `name`, `probability`, `in_set`, `is_label`, and where they are known `posterior`, the exact
    probability, and `votes`, the share of the people who chose the class. Of a large set only the first `most` are listed.

    >>> from workbench.sets import Threshold
    >>> table = LogitTable.from_probabilities([[0.6, 0.3, 0.1]], labels=[2], posterior=[[0.5, 0.0, 0.5]])
    >>> suggestions(Threshold(0.25).fit(table)(table), 0)[["class", "in_set", "is_label", "posterior"]]
       class  in_set  is_label  posterior
    0      0    True     False        0.5
    1      1    True     False        0.0
    2      2   False      True        0.5
    """
    table = sets.table
    members = sets.members(row)[0]
    labels = np.array([], int) if table.labels is None else table.rows([row]).positives()[1]
    listed = np.concatenate([members[:most], labels[~np.isin(labels, members[:most])]]).astype(int)
    names = table.named_classes()
    columns = {
        "class": listed,
        "name": [names[member] for member in listed],
        "probability": table.probabilities([row])[0, listed],
        "in_set": np.isin(listed, members),
        "is_label": np.isin(listed, labels),
    }
    if table.posterior is not None:
        columns["posterior"] = table.posterior[row, listed]
    if table.votes is not None:
        columns["votes"] = table.votes[row, listed] / max(table.votes[row].sum(), 1)
    return pd.DataFrame(columns)
