"""Passes over a table: a function of each part of its rows, computed here or on a cluster, and a merge in row order.

The rows of a table are parted in a way that depends on nothing but its shape. A function sees one part, a `LogitTable` of
its own with a few thousand rows, and what it returns is merged in the order of the parts. So not a bit depends on who
computed which part, on how many did, or on how the table lies in files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

if TYPE_CHECKING:
    from workbench.tables.table import LogitTable

T = TypeVar("T")
FEWEST, MOST = 16, 4096  # parts of a table, where it has enough rows
SCORES = 2**24  # of a part, where a table has that many

# Once a block of this size was freed, the allocator of Linux keeps what a pass gives back for the next rows. Before that
# every block of some megabytes goes to the system and comes back empty, which doubles the time of a pass in float64.
np.empty(28 * 2**20, np.uint8)


class Executor(Protocol):
    """Executor: computes `function(shared, *arguments)` of many arguments and yields the results in order."""

    def compute(self, function: Callable[..., T], shared: Any, tasks: Iterable[tuple[Any, ...]]) -> Iterator[T]: ...


_executor: ContextVar[Executor | None] = ContextVar("elsewhere", default=None)


@contextlib.contextmanager
def computed_by(executor: Executor) -> Iterator[None]:
    """While the block lasts, passes over tables are computed there."""
    token = _executor.set(executor)
    try:
        yield
    finally:
        _executor.reset(token)


def map_in_order(function: Callable[..., T], shared: Any, tasks: Iterable[tuple[Any, ...]]) -> Iterator[T]:
    """`function(shared, *arguments)` of each of the arguments, in their order: here, or where `computed_by` says.

    What is shared by all travels once.
    """
    executor = _executor.get()
    if executor is None:
        return (function(shared, *arguments) for arguments in tasks)
    return executor.compute(function, shared, tasks)


def parts_of(n: int, n_classes: int, span: int) -> list[slice]:
    """Consecutive rows that are looked at together by one worker; whole spans, and the same ones for all tables of a shape.

    >>> parts_of(1000, 10, 512)
    [slice(0, 512, None), slice(512, 1000, None)]
    """
    rows = max(min(SCORES // n_classes, n // FEWEST), n // MOST, 1)
    rows = -(-rows // span) * span
    return [slice(start, min(start + rows, n)) for start in range(0, n, rows)]


def over_parts(
    table: LogitTable,
    function: Callable[..., T],
    *given: Any,
    sliced: tuple[np.ndarray, ...] = (),
) -> Iterator[T]:
    """`function(part, first_row, *given, *slices)` of every part of a table, in their order.

    `part` is the table of some consecutive rows and `first_row` the place of the first of them. Of the arrays in `sliced`,
    which have one entry per row, the function gets the rows of its part. It must be a function of a module, or an object
    that Dask can send: it may be computed in another process.
    """
    tasks = (
        (table.part(rows), rows.start, tuple(values[rows] for values in sliced))
        for rows in parts_of(table.n, table.n_classes, table.span)
    )
    return map_in_order(_of_part, (function, given), tasks)


def _of_part(
    task: tuple[Callable[..., T], tuple[Any, ...]], part: LogitTable, first_row: int, slices: tuple[np.ndarray, ...]
) -> T:
    function, given = task
    return function(part, first_row, *given, *slices)


def row_values(table: LogitTable, function: Callable[..., np.ndarray], *given: Any) -> np.ndarray:
    """(n, …) what `function(part, first_row, *given)` says of each row, of all parts."""
    return np.concatenate(list(over_parts(table, function, *given)))
