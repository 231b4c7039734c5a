"""How the cost of an operation grows: its exponent in the number of rows, of classes, of runs and of shards.

    python benchmarks/growth.py [part of a name …]

Each operation is timed at growing sizes, the sizes in turn so that a busy machine slows all of them; the exponent is the
slope of log time against log size. Those above 1.1 are marked: cost grows faster than what is stored. `REASONS` says why
where it must.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import workbench as wb
from workbench.figures.sets.neighbours import ranked_pairs
from workbench.metrics.comparison import compare
from workbench.store import Store
from workbench.store.imported_tables import keep_tables

LIMIT, ROUNDS = 1.1, 3
SIZES = {
    "rows": (4_000, 16_000, 64_000),
    "classes": (1_000, 4_000, 16_000),
    "shards": (100, 200, 400),
    "runs": (50, 100, 200),
}
REASONS: dict[tuple[str, str], str] = {
    ("append", "shards"): "the manifest is replaced as a whole, so each append writes again what it says of the others",
    ("fit", "shards"): "256 shards stay open; of more, each pass opens every file again",
}

Operations = dict[str, Callable[[], object]]


def random_table(n: int, n_classes: int) -> wb.LogitTable:
    """A table of random scores, whose labels are above the others as a rule."""
    rng = np.random.default_rng(0)
    scores = 2 * rng.standard_normal((n, n_classes), dtype=np.float32)
    labels = rng.integers(n_classes, size=n)
    scores[np.arange(n), labels] += 8
    return wb.LogitTable(scores, labels, class_counts=np.bincount(labels, minlength=n_classes) + 1)


def of_tables(table: wb.LogitTable) -> Operations:
    """What is done with a table."""
    other = wb.LogitTable(table.scores[::-1].copy(), table.labels)
    conditional = wb.ClassConditionalLAC(0.9).fit(table)
    few = wb.AverageK(5).fit(table).sets(table)
    rules = (
        wb.AverageK(5),
        wb.LAC(0.9),
        wb.APS(0.9),
        wb.ClassConditionalLAC(0.9),
        wb.RC3P(0.9),
        wb.InterpQ(0.9),
        wb.Clustered(0.9),
        wb.Fuzzy(0.9),
    )
    fits: Operations = {f"fit {type(rule).__name__}": lambda rule=rule: rule.fit(table) for rule in rules}
    return fits | {
        "another confidence, class-conditional": lambda: conditional.at(0.8),
        "sizes of APS sets": lambda: wb.APS(0.9).fit(table.rows(slice(0, 1000))).sets(table).sizes,
        "sizes of point-wise sets": lambda: wb.PointwiseError(0.9).fit(table).sets(table).sizes,
        "members of average-K sets": lambda: wb.AverageK(5).fit(table).sets(table).classes,
        "classes that share sets": lambda: ranked_pairs(few),
        "index": lambda: wb.SetIndex(table),
        "report": lambda: wb.report(table.rows(slice(None)), [wb.TopK(5)]),
        "report with intervals": lambda: wb.report(table.rows(slice(None)), [wb.TopK(5)], interval=0.95, resamples=100),
        "compare two": lambda: compare(
            {"a": table.rows(slice(None)), "b": other.rows(slice(None))}, wb.TopK(5), resamples=100
        ),
    }


@contextmanager
def of_rows(n: int) -> Iterator[Operations]:
    yield of_tables(random_table(n, 100))


@contextmanager
def of_classes(n_classes: int) -> Iterator[Operations]:
    yield of_tables(random_table(1_000, n_classes))


@contextmanager
def of_shards(n_shards: int) -> Iterator[Operations]:
    """A table that grows shard by shard, and one that is read; without waiting for the disk."""
    part = random_table(8, 4)

    def append(folder: str) -> str:
        for _ in range(n_shards):
            part.append_to(f"{folder}/grows")
        return f"{folder}/grows"

    def fresh() -> None:
        with tempfile.TemporaryDirectory() as folder:
            append(folder)

    with tempfile.TemporaryDirectory() as folder:
        url = append(folder)
        yield {
            "append": fresh,
            "open": lambda: wb.LogitTable.load(url),
            "fit": lambda: wb.AverageK(2).fit(wb.LogitTable.load(url)),
        }


@contextmanager
def of_runs(n_runs: int) -> Iterator[Operations]:
    """A store of that many runs."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        for number in range(n_runs):
            keep_tables(random_table(8, 4), title=f"run {number}", store=store)
        yield {"list": lambda: Store(store.root).runs(), "open by title": lambda: Store(store.root).open("run 7")}


KINDS: dict[str, Callable[[int], Any]] = {"rows": of_rows, "classes": of_classes, "shards": of_shards, "runs": of_runs}


def seconds(function: Callable[[], object]) -> float:
    """Processor time of a call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def exponent(sizes: tuple[int, ...], times: np.ndarray) -> float:
    """The slope of log time against log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(times, 1e-7)), 1)[0])


def measured(kind: str, parts: list[str]) -> Iterator[tuple[str, float, float]]:
    """Each operation, its exponent, and its seconds at the largest size."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        tables = [stack.enter_context(KINDS[kind](size)) for size in SIZES[kind]]
        for name in tables[0]:
            if not parts or any(part in f"{name} {kind}" for part in parts):
                times = np.array([[seconds(each[name]) for each in tables] for _ in range(ROUNDS)]).min(axis=0)
                yield name, exponent(SIZES[kind], times), float(times[-1])


def main() -> None:
    """Print the exponent of each operation, and mark those above the limit."""
    warnings.simplefilter("ignore")
    above = []
    for kind, sizes in SIZES.items():
        print(f"{kind} {', '.join(map(str, sizes))}: exponent, seconds at {sizes[-1]}")
        for name, slope, took in measured(kind, sys.argv[1:]):
            mark = "  above" if slope > LIMIT else ""
            above += [f"{name} in {kind}: {REASONS.get((name, kind), 'no reason known')}"] if mark else []
            print(f"    {name:40}{slope:6.2f}{took:9.3f}{mark}", flush=True)
    print("\n".join([f"above {LIMIT}:", *(above or ["none"])]))


if __name__ == "__main__":
    main()
