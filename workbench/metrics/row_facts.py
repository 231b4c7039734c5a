"""Facts of every row that metrics need, computed in one pass over the probabilities for all metrics.

A fact is a function of a block of rows. A metric names the facts it reads; a report gathers those of all its metrics, and
the sizes of all its sets, from probabilities that are computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from workbench.sets.base import Block
from workbench.sets.prediction_sets import ChosenSets, PredictionSets, counted_in, mask_of_part
from workbench.tables import LogitTable
from workbench.tables.checks import read_only
from workbench.tables.map_reduce import over_parts

T = TypeVar("T")


class Fact(NamedTuple):
    """A function of a block, and what it is given beside: arrays with one entry per row, or sums that are added up."""

    of_block: Callable[..., tuple[np.ndarray, ...]]
    given: tuple[Any, ...] = ()
    added: bool = False

    def merged(self, found: Iterable[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
        """The arrays of consecutive rows as one: in their order, for sums of floats depend on it."""
        together: Callable[[Any], np.ndarray] = sum if self.added else np.concatenate  # type: ignore[assignment]
        return tuple(together(arrays) for arrays in zip(*found, strict=True))


def passes_of(subject: LogitTable | PredictionSets) -> dict[Any, Any]:
    """Cache of results of passes over a table or its sets, which are immutable."""
    passes: dict[Any, Any] = subject.__dict__.setdefault("_passes", {})
    return passes


def remembered(subject: LogitTable | PredictionSets, key: Any, compute: Callable[[], T]) -> T:
    """The result of a pass over a table or its sets, computed once: the metrics of a report share it."""
    passes = passes_of(subject)
    if key not in passes:
        passes[key] = compute()
    found: T = passes[key]
    return found


def known(table: LogitTable, fact: Fact) -> tuple[np.ndarray, ...]:
    """The arrays of a fact, of all rows."""
    gather(table, [fact])
    found: tuple[np.ndarray, ...] = passes_of(table)[fact]
    return found


def gather(table: LogitTable, facts: Iterable[Fact], sets: Iterable[PredictionSets] = ()) -> None:
    """Computes facts of a table, and the sizes and hits of its sets, in one pass; what is known already is left out."""
    passes = passes_of(table)
    missing = tuple(fact for fact in dict.fromkeys(facts) if fact not in passes)
    uncounted = [
        each for each in sets if each.table is table and "_counts" not in vars(each) and type(each) is not ChosenSets
    ]
    if not missing and not uncounted:
        return
    marks = tuple(each.mask_to_send for each in uncounted)
    parts = list(over_parts(table, facts_of_part, missing, marks))
    for place, fact in enumerate(missing):
        passes[fact] = tuple(read_only(array) for array in fact.merged(part[0][place] for part in parts))
    for place, each in enumerate(uncounted):
        each.keep_counts([part[1][place] for part in parts])


def facts_of_part(
    part: LogitTable, first_row: int, facts: tuple[Fact, ...], marks: tuple[Any, ...]
) -> tuple[list[tuple[np.ndarray, ...]], list[tuple[np.ndarray, np.ndarray]]]:
    """Facts of some rows, and the sizes and hits of some sets of them."""
    of_facts: list[list[tuple[np.ndarray, ...]]] = [[] for _ in facts]
    of_sets: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in marks]
    masks = [mask_of_part(each, part, first_row) for each in marks]
    for rows in part.spans():
        block = Block(part, rows)
        for fact, found in zip(facts, of_facts, strict=True):
            found.append(fact.of_block(block, *fact.given))
        for mask, counts in zip(masks, of_sets, strict=True):
            counts.append(counted_in(mask(block.probabilities, rows), block.labels))
    merged = [fact.merged(found) for fact, found in zip(facts, of_facts, strict=True)]
    return merged, [tuple(map(np.concatenate, zip(*counts, strict=True))) for counts in of_sets]  # type: ignore[misc]
