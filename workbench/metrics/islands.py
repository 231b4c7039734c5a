"""Islands of a map of rows: places where rows lie close together, named by what sets them apart from all other rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from workbench.metrics.row_map import NONE
from workbench.tables import LogitTable
from workbench.tables.groups import rows_by

CELLS = 48  # of the map, on each side
BLUR = 1.5  # cells
NEAR = 4  # cells between two peaks of the density
FEWEST = 0.01  # of all rows, on an island
TYPICAL = 0.6  # of the rows of an island share what it is called by
APART = 1.5  # times as often as all rows
UPPER = 0.97  # of the rows of an island lie below its name


class Island(NamedTuple):
    """Rows that lie close together, the value that most of them share and few others have, and where to write it."""

    name: str
    x: float  # the middle of its largest part
    y: float  # the upper end of that part
    rows: np.ndarray


def islands(table: LogitTable, positions: np.ndarray, most: int = 20) -> list[Island]:
    """The islands of a map, largest first; places without a common value have no name and are left out.

    The peaks of the blurred density are the islands, and each row belongs to the nearest. An island is called by a value of an
    attribute, a group of classes or a class that at least 60 % of its rows have, at least 1.5 times as often as all rows:
    of several, the one with the largest share × log of that ratio. Islands of one name are one, at the place of the largest.

    Args:
        positions: (n, 2) in [0, 1], as `workbench.metrics.row_map.PROJECTIONS` gives them.
        most: islands that are named.

    Example:
        >>> table = LogitTable(np.zeros((4, 2)), attributes={"organ": ["leaf", "leaf", "bark", "bark"]})
        >>> found = islands(table, np.array([[0.1, 0.1], [0.12, 0.1], [0.9, 0.9], [0.9, 0.88]]))
        >>> sorted((island.name, island.rows.tolist()) for island in found)
        [('organ: bark', [2, 3]), ('organ: leaf', [0, 1])]
    """
    known = list(_facts(table))
    if not known or table.n == 0:
        return []
    peaks = _peaks(positions)
    nearest = _nearest(positions, peaks)
    found: dict[str, list[np.ndarray]] = {}
    for number in range(len(peaks)):
        rows = np.flatnonzero(nearest == number)
        if len(rows) >= FEWEST * table.n and (name := _name(known, rows)) is not None:
            found.setdefault(name, []).append(rows)
    named = []
    for name, parts in found.items():
        x, y = positions[max(parts, key=len)].T
        place = float(np.median(x)), float(np.quantile(y, UPPER))
        named.append(Island(name, *place, np.sort(np.concatenate(parts))))
    return sorted(named, key=lambda island: -len(island.rows))[:most]


def _facts(table: LogitTable) -> Iterator[tuple[np.ndarray, Sequence[str]]]:
    """(n,) code of each row (−1: it says nothing) and the names of the codes, of everything known about the rows."""
    for attribute in table.attributes or {}:
        codes, values = rows_by(table, attribute)
        silent = np.array([value in NONE for value in values])
        yield np.where(silent[codes], -1, codes), [f"{attribute}: {value}" for value in values]
    if table.labels is None or table.many_labels:
        return
    labels = np.asarray(table.labels)
    yield labels, table.named_classes()
    if table.groups is not None:
        names = sorted({*table.groups})
        of_class = np.array([names.index(group) for group in table.groups])
        yield np.where(labels < 0, -1, of_class[labels]), names


def _peaks(positions: np.ndarray) -> np.ndarray:
    """(m, 2) centres of the cells in which the blurred density is largest far and wide."""
    cells = np.minimum((positions * CELLS).astype(int), CELLS - 1)
    density = np.bincount(cells[:, 0] * CELLS + cells[:, 1], minlength=CELLS**2).reshape(CELLS, CELLS).astype(float)
    steps = np.arange(CELLS)
    blur = np.exp(-(((steps[:, None] - steps) / BLUR) ** 2) / 2)
    density = blur @ density @ blur
    padded = np.pad(density, NEAR, constant_values=-1.0)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * NEAR + 1, 2 * NEAR + 1))
    highest = (density == windows.max(axis=(2, 3))) & (density > density.max() / 100)
    peaks: np.ndarray = (np.argwhere(highest) + 0.5) / CELLS
    return peaks


def _nearest(positions: np.ndarray, peaks: np.ndarray) -> np.ndarray:
    """(n,) the peak that is nearest to each position."""
    nearest, least = np.zeros(len(positions), int), np.full(len(positions), np.inf)
    for number, peak in enumerate(peaks):
        distance = ((positions - peak) ** 2).sum(axis=1)
        closer = distance < least
        nearest[closer], least[closer] = number, distance[closer]
    return nearest


def _name(known: list[tuple[np.ndarray, Sequence[str]]], rows: np.ndarray) -> str | None:
    """What most of these rows have and few others do; None if there is no such value."""
    best, name = 0.0, None
    for codes, names in known:
        all_rows = np.bincount(codes[codes >= 0], minlength=len(names)) / len(codes)
        here = np.bincount(codes[rows][codes[rows] >= 0], minlength=len(names)) / len(rows)
        value = int(here.argmax())
        if here[value] < TYPICAL or here[value] < APART * all_rows[value]:
            continue
        worth = here[value] * np.log(here[value] / all_rows[value])
        if worth > best:
            best, name = worth, names[value]
    return name
