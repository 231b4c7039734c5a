"""Metrics of prediction sets: coverage, size, and both by class and group.

Whether a set contains the label is measured on the rows that have one (`metric` sees to it), and is NaN where none has.
Agreement with many labels (F1, exact match) counts rows that show none of the classes: any class there is a wrong one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from workbench.class_counts import FEW, MANY, count_bins
from workbench.metrics.base import Parts, mean, metric, ratio
from workbench.metrics.row_facts import remembered
from workbench.sets import PredictionSets
from workbench.tables import groups


@metric(title="Coverage", direction="higher", name="accuracy")
def coverage(sets: PredictionSets) -> Parts:
    """The share of rows with a label whose set contains it (all of them, where a row has many).

    Coverage of conformal sets; for average-K sets it is called average-K accuracy (Garcin et al. 2023, Eq. 16–17).

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return mean(sets.hits)


accuracy = coverage  # the papers' word, and its name in reports


@metric(title="Utility (u65)", direction="higher")
def utility(sets: PredictionSets) -> Parts:
    r"""The mean worth of a set: 0 without the label, else $1.6 / |S| - 0.6 / |S|^2$, so that a small set is worth more.

    A set of one class is worth 1 and one of two .65, more than a guess between them. Of several rules the one with the most
    utility answers with sets that are neither too small nor too large (Zaffalon, Corani & Mauá 2012).

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return mean(utility_of_rows(sets))


@metric(title="Macro-coverage", direction="higher")
def macro_accuracy(sets: PredictionSets) -> Parts:
    """The mean over classes of the share of their rows whose set contains them; classes without rows do not count.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return _per_class(sets, groups.mean_of_present, shares=lambda sums: (sums[:, 1], sums[:, 0]))


@metric(title="Coverage by shots", direction="higher", needs=("class_counts",))
def shot_accuracy(sets: PredictionSets, few: int = FEW, many: int = MANY) -> Parts:
    """The mean accuracy of classes with few (< 20), medium and many (> 100) training rows; NaN for an empty group.

    Garcin et al. 2023, Table 2.

    Args:
        sets: The sets of some rows, as a fitted rule returns them.
        few: Classes with fewer training rows are "few".
        many: Classes with more training rows are "many".
    """
    return _by_group_of_class(sets, *groups.classes_by(sets.table, "shots", few, many))


@metric(title="Coverage by number of training rows", direction="higher", needs=("class_counts",))
def count_bin_accuracy(sets: PredictionSets, edges: tuple[int, ...] = (10, 50, 500, 2000)) -> Parts:
    """The mean accuracy of the classes in each bin of training rows (Garcin, thesis, Table 3.1).

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        edges: The numbers of training rows at which a new bin begins.
    """
    return _by_group_of_class(sets, *count_bins(groups.known_class_counts(sets.table), edges))


@metric(title="Group coverage", direction="higher", labels="one", needs=("groups",))
def group_accuracy(sets: PredictionSets) -> Parts:
    """The share of rows whose set contains a class of the label's group (its genus or superclass).

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    codes, _ = groups.classes_by(sets.table, "groups")
    rows = np.repeat(np.arange(sets.table.n), sets.sizes)
    related = codes[sets.classes] == codes[sets.table.checked_labels()][rows]
    return mean(np.bincount(rows[related], minlength=sets.table.n) > 0)


@metric(title="Mean size", direction="lower", bounds=(0, np.inf), labels="none")
def mean_size(sets: PredictionSets) -> Parts:
    """The mean number of classes in a set.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return mean(sets.sizes)


@metric(title="Mean number of nodes", direction="lower", bounds=(0, np.inf), labels="none", needs=("groups",))
def mean_nodes(sets: PredictionSets) -> Parts:
    """The mean number of names that write a set, where a whole group (genus, superclass) is one name, and every class is.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return mean(sets.node_counts)


@metric(title="Quantiles of size", direction="lower", bounds=(0, np.inf), labels="none")
def size_quantiles(sets: PredictionSets, quantiles: Sequence[float] = (0.05, 0.5, 0.95)) -> Parts:
    """The smallest size that a given share of the sets does not exceed.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        quantiles: The shares, in [0, 1].
    """

    def formula(sums: np.ndarray) -> dict[str, np.ndarray]:
        reached = np.cumsum(sums[..., 0], axis=-1)
        return {f"{100 * q:g}%": np.argmax(reached >= q * reached[..., -1:] - 1e-9, axis=-1) for q in quantiles}

    return Parts(sets.table.n, np.ones((sets.table.n, 1)), formula, sets.sizes, int(sets.sizes.max()) + 1)


@metric(title="Empty sets", direction="lower", labels="none")
def empty_share(sets: PredictionSets) -> Parts:
    """The share of sets without a single class.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return mean(sets.sizes == 0)


@metric(title="Coverage by size of the set", direction="higher")
def accuracy_by_size(sets: PredictionSets, edges: tuple[int, ...] = (0, 1, 2, 4, 11, 101)) -> Parts:
    """The accuracy among sets of size 0, 1, 2–3, 4–10, 11–100 and more: a promise should not be kept by large sets only.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        edges: The first size of each group.
    """
    parts = _by_size(sets, edges, lambda shares, names: {name: shares[..., i] for i, name in enumerate(names)})
    return replace(parts, shares=_shares_of(_size_names(edges)))


@metric(title="Size-stratified coverage", direction="higher", inflated="down")
def size_stratified_coverage(sets: PredictionSets, edges: tuple[int, ...] = (0, 1, 2, 4, 11, 101)) -> Parts:
    """The accuracy of the worst size group (sizes 0, 1, 2–3, 4–10, 11–100, more) among those that occur.

    Angelopoulos et al. 2021.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        edges: The first size of each group.
    """
    return _by_size(sets, edges, lambda shares, _: np.min(np.where(np.isnan(shares), np.inf, shares), axis=-1))


@metric(title="Coverage gap per class", direction="lower", inflated="up")
def coverage_gap(sets: PredictionSets, confidence: float | None = None) -> Parts:
    """The mean over classes of |accuracy of the class − promised confidence|.

    The promise is the rule's `confidence`, or the overall accuracy when the rule promises none. Ding et al. 2023. Few rows
    inflate it; with a handful a class it is mostly luck, more than its interval can tell.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    promised = getattr(getattr(sets.rule, "rule", None), "confidence", None) if confidence is None else confidence
    if promised is None:
        promised = float(sets.hits.mean())
    return _per_class(sets, lambda shares: groups.mean_of_present(np.abs(shares - promised)))


@metric(title="Coverage by group of rows", direction="higher", subject="grouped sets")
def accuracy_by(sets: PredictionSets, by: Any) -> Parts:
    """The accuracy in each group of rows: by any row attribute (organ), "groups", "shots", "label", or an array.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        by: The name of a row attribute, "groups", "shots", "label", or an array with one entry per row.
    """
    return _by_rows(sets, sets.hits, by, among=sets.labelled)


@metric(
    title="Mean size by group of rows", direction="lower", bounds=(0, np.inf), subject="grouped sets", labels="none"
)
def size_by(sets: PredictionSets, by: Any) -> Parts:
    """The mean size in each group of rows: by any row attribute (organ), "groups", "shots", "label", or an array.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
        by: The name of a row attribute, "groups", "shots", "label", or an array with one entry per row.
    """
    return _by_rows(sets, sets.sizes, by)


@metric(title="Recall", direction="higher", labels="many", rows="known")
def recall(sets: PredictionSets) -> Parts:
    """The share of all labels that are in the set of their row.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    columns = np.column_stack([sets.recalled, sets.table.checked_labels().sum(1)])
    return Parts(sets.table.n, columns, lambda sums: ratio(sums[..., 0, 0], sums[..., 0, 1]))


@metric(title="Micro F1", direction="higher", labels="many", rows="known")
def micro_f1(sets: PredictionSets) -> Parts:
    """2·TP / (2·TP + FP + FN) over all rows and classes: sets against label sets.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    columns = np.column_stack([sets.recalled, sets.sizes + sets.table.checked_labels().sum(1)])
    return Parts(sets.table.n, columns, lambda sums: ratio(2 * sums[..., 0, 0], sums[..., 0, 1]))


@metric(title="Macro F1", direction="higher", labels="many", rows="known")
def macro_f1(sets: PredictionSets) -> Parts:
    """The mean over classes of 2·TP / (2·TP + FP + FN); 0 for a class that is in no set though it is a label.

    Classes that are neither predicted nor present do not count.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    table = sets.table
    row, label = table.positives()
    member_row = np.repeat(np.arange(table.n), sets.sizes)
    right = table.checked_labels()[member_row, sets.classes]
    columns = np.concatenate(
        [
            np.column_stack([2.0 * right, np.ones(len(member_row))]),
            np.column_stack([np.zeros(len(row)), np.ones(len(row))]),
        ]
    )
    return Parts(
        table.n,
        columns,
        lambda sums: groups.mean_of_present(ratio(sums[..., 0], sums[..., 1])),
        cells=np.concatenate([sets.classes, label]),
        n_cells=table.n_classes,
        rows=np.concatenate([member_row, row]),
    )


@metric(title="Exact match", direction="higher", labels="many", rows="known")
def exact_match(sets: PredictionSets) -> Parts:
    """The share of rows whose set is exactly the set of labels; of a row that shows none of the classes the empty set.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    n_labels = sets.table.checked_labels().sum(1)
    return mean((sets.recalled == n_labels) & (sets.sizes == n_labels))


@metric(title="Excess cardinality", direction="none", bounds=(-np.inf, np.inf), labels="many", rows="known")
def cardinality(sets: PredictionSets) -> Parts:
    """The mean size of the sets minus the mean number of labels: 0 when sets are as large as what they answer.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    return mean(sets.sizes - sets.table.checked_labels().sum(1))


def utility_of_rows(sets: PredictionSets) -> np.ndarray:
    """(n,) the utility of each set (`utility`); 0 for a row without a label.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    sizes = np.maximum(sets.sizes, 1)
    worth: np.ndarray = sets.hits * (1.6 / sizes - 0.6 / sizes**2)
    return worth


def class_accuracy(sets: PredictionSets) -> np.ndarray:
    """(L,) the share of the rows with that label whose set contains it; NaN for a class without rows.

    Args:
        sets: The sets of some rows, what a fitted rule returns.
    """
    rows, classes = sets.table.positives()
    return groups.means(_membership(sets, rows, classes), classes, sets.table.n_classes)


def _membership(sets: PredictionSets, rows: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Of every label: is it in the set of its row?"""
    if not sets.table.many_labels:
        hits: np.ndarray = sets.hits[rows]
        return hits
    n_classes = sets.table.n_classes
    members = np.repeat(np.arange(sets.table.n), sets.sizes) * n_classes + sets.classes
    return np.isin(rows * n_classes + classes, members, assume_unique=True)


def _per_class(sets: PredictionSets, formula: Any, shares: Any = None) -> Parts:
    """A formula on the accuracies (..., L) of the classes."""

    def columns_of_labels() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rows, classes = sets.table.positives()
        return rows, classes, np.column_stack([np.ones(len(rows)), _membership(sets, rows, classes)])

    rows, classes, columns = remembered(sets, "labels", columns_of_labels)
    return Parts(
        sets.table.n,
        columns,
        formula,
        cells=classes,
        n_cells=sets.table.n_classes,
        rows=rows if sets.table.many_labels else None,
        shares=shares,
        of_sums=_hit_share,
    )


def _by_group_of_class(sets: PredictionSets, codes: np.ndarray, names: Sequence[str]) -> Parts:
    inside = {name: codes == code for code, name in enumerate(names)}
    return _per_class(
        sets,
        lambda shares: {name: groups.mean_of_present(shares[..., classes]) for name, classes in inside.items()},
        shares=lambda sums: {name: (sums[classes, 1], sums[classes, 0]) for name, classes in inside.items()},
    )


def _by_rows(sets: PredictionSets, values: np.ndarray, by: Any, among: np.ndarray | None = None) -> Parts:
    codes, names = groups.rows_by(sets.table, by)

    def formula(sums: np.ndarray) -> dict[str, np.ndarray]:
        shares = ratio(sums[..., 1], sums[..., 0])
        return {name: shares[..., code] for code, name in enumerate(names)}

    counted = np.ones(sets.table.n) if among is None else among
    shares = _shares_of(names) if values.dtype == bool else None
    return Parts(sets.table.n, np.column_stack([counted, values]), formula, codes, len(names), shares=shares)


def _shares_of(names: Sequence[str]) -> Any:
    """One cell for each name."""
    return lambda sums: {name: (sums[[cell], 1], sums[[cell], 0]) for cell, name in enumerate(names)}


def _size_names(edges: tuple[int, ...]) -> list[str]:
    return [f"{low}" if high == low + 1 else f"{low}–{high - 1}" for low, high in pairwise(edges)] + [f"≥ {edges[-1]}"]


def _by_size(sets: PredictionSets, edges: tuple[int, ...], formula: Any) -> Parts:
    """A formula on the accuracies (..., strata) of sets by size, and the strata in words."""
    if list(edges) != sorted(set(edges)) or edges[:1] != (0,):
        raise ValueError(f"edges = {edges} must rise strictly from 0")
    names = _size_names(edges)

    def columns_and_strata() -> tuple[np.ndarray, np.ndarray]:
        return np.column_stack([np.ones(sets.table.n), sets.hits]), np.searchsorted(edges, sets.sizes, side="right") - 1

    columns, strata = remembered(sets, ("sizes", edges), columns_and_strata)
    return Parts(sets.table.n, columns, lambda shares: formula(shares, names), strata, len(names), of_sums=_hit_share)


def _hit_share(sums: np.ndarray) -> np.ndarray:
    """(..., cells) the share of hits in each cell."""
    return ratio(sums[..., 1], sums[..., 0])
