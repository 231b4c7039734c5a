"""Planes through trained weights: losses at the points computed so far, readable without torch while more are added.

`workbench.training.weight_planes` computes them point by point, from coarse to fine, in a worker process.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import product

import pandas as pd

from workbench.files.cache import PLANES, content_key
from workbench.store.runs import StoredRun
from workbench.store.store import DEMO, Store

FILE = "points.csv"
COLUMNS = ["a", "b", "loss", "accuracy", "threshold", "K", "n"]
Point = tuple[float, float]


@dataclass(frozen=True)
class Plane:
    """Key of a plane: the run whose weights it contains, K, reach, number of rows, and the
    seed of its two directions.
    """

    run: str
    K: float
    reach: float
    rows: int
    seed: int

    @classmethod
    def through(
        cls, run: StoredRun, *, K: float | None = None, reach: float = 1.0, rows: int = 1000, seed: int = 0
    ) -> Plane:
        """The plane of a run. K is that of its loss, or 5, if it is not given, or as many as there can be."""
        if not run.has_weights:
            raise ValueError(f"{run.title} has scores but no weights, so nothing can be moved; choose a trained run")
        most = (run.record.n_classes or 1) - 1
        if K is None:
            K = run.record.K
        elif isinstance(K, bool) or not isinstance(K, numbers.Real) or not 1 <= float(K) <= most:
            raise ValueError(
                f"K = {K!r}; sets of {most + 1} classes hold 1 to {most} on average: give a number in between"
            )
        return cls(run.key, float(K), reach, rows, seed)

    @property
    def key(self) -> str:
        """Under which its points are kept. Planes of the first rows, as they once were, have other keys."""
        return content_key({**asdict(self), "chosen": "spread evenly"})

    def points(self, store: Store) -> dict[Point, list[float]]:
        """(a, b) → its line, of all points that are known, here or with the demo runs of the package."""
        return {point: line for place in (Store(DEMO), store) for point, line in self._stored_points(place).items()}

    def _stored_points(self, store: Store) -> dict[Point, list[float]]:
        if (files := PLANES.files(store, self.key, [FILE])) is None:
            return {}
        try:
            lines = pd.read_csv(files[FILE], dtype=str)[COLUMNS].astype(float).to_numpy().tolist()
        except (OSError, ValueError, KeyError):  # not written by this version: its points are computed again
            return {}
        return {(line[0], line[1]): [*line[:-1], int(line[-1])] for line in lines}

    def keep(self, known: dict[Point, list[float]], store: Store) -> None:
        """Keeps the points that are known."""
        with PLANES.writing(store, self.key) as folder:
            pd.DataFrame(known.values(), columns=COLUMNS).to_csv(folder / FILE, index=False)

    def so_far(self, steps: int, store: Store | None = None) -> tuple[pd.DataFrame, float]:
        """The finest lattice that is known as a whole (no rows if none is), and the share of all points that is known."""
        store = store or Store()
        known, whole = self.points(store), list(lattices(steps, self.reach))
        finest = next((lattice for lattice in reversed(whole) if known.keys() >= set(lattice)), [])
        return lines(known, finest), len(known.keys() & set(whole[-1])) / len(whole[-1])


def lattices(steps: int, reach: float) -> Iterator[list[Point]]:
    """The points of a plane in ever finer lattices, each halving the stride of the one before.

    >>> [len(lattice) for lattice in lattices(5, reach=1.0)]
    [4, 9, 25]
    """
    stride = steps - 1 & 1 - steps  # the largest power of two that divides the number of gaps
    while stride:
        along = [round(reach * (2 * step / (steps - 1) - 1), 12) for step in range(0, steps, stride)]
        yield list(product(along, along))
        stride //= 2


def lines(known: dict[Point, list[float]], points: Iterable[Point]) -> pd.DataFrame:
    """The known points as a frame, sorted."""
    return pd.DataFrame([known[point] for point in sorted(points)], columns=COLUMNS)
