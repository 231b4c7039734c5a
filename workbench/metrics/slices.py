"""The worst slices of a table: groups of rows whose sets miss the label more often than luck explains.

Among many groups one is bad by chance alone. So all groups that are looked at are counted, and p-values and
intervals hold for all of them together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from workbench.metrics.intervals import normal_quantile, wilson_interval
from workbench.metrics.rows import RowFilter, likeliest_pairs
from workbench.metrics.significance import holm, hypergeometric_cdf
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.tables import LogitTable
from workbench.tables.groups import WITHOUT_LABEL, rows_by
from workbench.validation import whole_number

MIN_ROWS = 20  # labelled rows of a slice that is looked at
MOST_GROUPS = 200  # of an attribute whose groups are slices
SELECTION, NAMED, CLASS, PAIR = "selection", "slice", "true class", "two likeliest classes"


class Slice(NamedTuple):
    """Rows with a name: what they share (an attribute, the class, a pair of classes) and its value."""

    by: str
    value: str
    row_filter: RowFilter
    mask: np.ndarray  # (n,) bool


def candidate_slices(table: LogitTable, min_rows: int = MIN_ROWS) -> Iterator[Slice]:
    """The slices that are looked at: the groups of each attribute, of shots and of classes; classes; confused pairs.

    A pair are the rows whose two likeliest classes are these, in any order. Only slices of at least `min_rows` labelled
    rows, and not of all, are looked at.
    """
    labelled = table.labelled

    def enough(mask: np.ndarray) -> bool:
        return min_rows <= int((mask & labelled).sum()) < int(labelled.sum())

    for by in attributes(table):
        codes, names = rows_by(table, by)
        for code, name in enumerate(names):
            if name != WITHOUT_LABEL and len(names) <= MOST_GROUPS and enough(codes == code):
                yield Slice(by, name, RowFilter(groups=((by, name),)), codes == code)
    names = table.named_classes()
    rows, classes = table.positives()
    for label in np.flatnonzero(np.bincount(classes, minlength=table.n_classes) >= min_rows).tolist():
        mask = np.zeros(table.n, bool)
        mask[rows[classes == label]] = True
        if enough(mask):
            yield Slice(CLASS, names[label], RowFilter(label=label), mask)
    if table.n_classes > 2:
        pairs, codes = np.unique(likeliest_pairs(table), axis=0, return_inverse=True)
        codes = np.ravel(codes)
        for code in np.flatnonzero(np.bincount(codes) >= min_rows).tolist():
            first, second = pairs[code].tolist()
            if enough(codes == code):
                yield Slice(PAIR, f"{names[first]}, {names[second]}", RowFilter(pair=(first, second)), codes == code)


def attributes(table: LogitTable) -> list[str]:
    """The groupings of the rows of a table."""
    of_labels = {"shots": table.class_counts is not None, "groups": table.groups is not None}
    known = [name for name, there in of_labels.items() if there and not table.many_labels]
    return [*known, *(table.attributes or {})]


def worst_slices(
    sets: PredictionSets, most: int = 20, *, min_rows: int = MIN_ROWS, confidence: float = 0.95
) -> pd.DataFrame:
    r"""The slices whose sets miss the label most, those that are least likely to be luck first.

    Of N labelled rows with H correct sets, a slice of n rows that luck drew has hypergeometrically many correct ones, so

    $$p = P(\text{hits} \le h), \quad \text{hits} \sim \mathrm{Hypergeometric}(N, H, n).$$

    Args:
        sets: sets of rows with labels.
        most: number of slices.
        min_rows: labelled rows that a slice has at least.
        confidence: of all intervals together.

    Returns:
        A frame with `by` and `value` (what the rows share), `n` (labelled rows), `coverage` with `low` and `high` (Wilson's
        interval at 1 − (1 − confidence) / m for the m slices that were looked at), `rest` (coverage of all other rows), `p`
        and `p_corrected` (Holm). `frame.attrs["looked_at"]` is m.

    Raises:
        ValueError: if the table has no labels.

    Example:
        >>> from workbench.sets import TopK
        >>> organ = np.array(["leaf"] * 40 + ["bark"] * 40)
        >>> scores = np.tile([1.0, 0.0, -1.0], (80, 1))
        >>> labels = np.where(organ == "leaf", 0, np.arange(80) % 3)
        >>> table = LogitTable(scores, labels, attributes={"organ": organ})
        >>> frame = worst_slices(TopK(1).fit(table)(table), most=1, min_rows=30)
        >>> frame[["by", "value", "n"]].to_numpy().tolist(), round(float(frame["coverage"][0]), 3)
        ([['organ', 'bark', 40]], 0.325)
    """
    return ranked_slices(sets, most, min_rows=min_rows, confidence=confidence)[0]


def ranked_slices(
    sets: PredictionSets,
    most: int = 20,
    *,
    rows: Any = None,
    named: Mapping[str, RowFilter] | None = None,
    min_rows: int = MIN_ROWS,
    confidence: float = 0.95,
) -> tuple[pd.DataFrame, list[RowFilter]]:
    """The frame of `worst_slices`, and what asks for the rows of each.

    A selection of `rows`, and rows that are asked for under a name, are slices too, and come first.
    """
    table = checked_sets(sets).table
    table.checked_labels()
    of_name = ((name, asked, asked.rows(sets)) for name, asked in (named or {}).items())
    own = [Slice(NAMED, name, asked, np.isin(np.arange(table.n), found)) for name, asked, found in of_name]
    slices = [*own, *candidate_slices(table, min_rows)]
    if rows is not None:
        mask = np.zeros(table.n, bool)
        mask[rows] = True
        slices = [Slice(SELECTION, "", RowFilter(), mask), *slices]
    N, H = int(sets.labelled.sum()), int(sets.hits.sum())
    n = np.array([np.count_nonzero(each.mask & sets.labelled) for each in slices], int)
    h = np.array([np.count_nonzero(each.mask & sets.hits) for each in slices], int)
    m = len(slices)
    low, high = wilson_interval(h, n, normal_quantile(1 - (1 - confidence) / max(m, 1)))
    p = hypergeometric_cdf(h, N, H, n)
    columns = {"by": [each.by for each in slices], "value": [each.value for each in slices], "n": n}
    columns |= {"coverage": _share(h, n), "low": low, "high": high, "rest": _share(H - h, N - n)}
    frame = pd.DataFrame({**columns, "p": p, "p_corrected": holm(p)})
    chosen = frame["by"].map({SELECTION: 0, NAMED: 1}).fillna(2)
    order = np.lexsort((frame["coverage"], p, chosen))[: whole_number("most", most)]
    frame = frame.iloc[order].reset_index(drop=True)
    frame.attrs["looked_at"] = m
    return frame, [slices[place].row_filter for place in order]


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """A share; NaN of nothing."""
    share: np.ndarray = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return share
