"""A temperature for a large table, in one run: how often it is read, and what that costs as a multiple of one read.

One read is `numpy.sum` of every block of the table in one thread, in the precision that the operation computes in. Time is
that of the processor, so that a busy machine disturbs little. Peak memory is that of the process above what it had before.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import workbench as wb

READS = 10  # of the table, at most, for a temperature


def table_on_disk(folder: Path, n: int, n_classes: int) -> wb.LogitTable:
    """Half-precision scores in a memory-mapped file, three times as sure as they should be."""
    rng = np.random.default_rng(0)
    scores = np.lib.format.open_memmap(folder / "scores.npy", mode="w+", dtype=np.float16, shape=(n, n_classes))
    labels = np.empty(n, int)
    for start in range(0, n, 500):
        block = rng.normal(size=(min(500, n - start), n_classes)) * 2
        labels[start : start + len(block)] = (block + rng.gumbel(size=block.shape)).argmax(1)
        scores[start : start + len(block)] = 3 * block
    scores.flush()
    return wb.LogitTable(np.load(folder / "scores.npy", mmap_mode="r"), labels)


def seconds(work: Callable[[], object]) -> float:
    """Of the processor."""
    started = time.process_time()
    work()
    return time.process_time() - started


def one_read(table: wb.LogitTable) -> float:
    """Every block once, as float32."""
    return sum(float(table.scores[rows].astype(np.float32).sum()) for rows in table.spans())


def temperature(table: wb.LogitTable) -> None:
    """Reads of the table that temperature scaling takes, beside their limit, and its time as a multiple of a read."""
    rows, spans = 0, wb.LogitTable.spans

    def counted(self: wb.LogitTable, *given: int) -> object:
        nonlocal rows
        for span in spans(self, *given):
            rows += span.stop - span.start
            yield span

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    of_read = seconds(lambda: one_read(table))
    wb.LogitTable.spans = counted  # type: ignore[method-assign, assignment]
    try:
        fitted: list[float] = []
        took = seconds(lambda: fitted.append(wb.TemperatureScaling().fit(table).temperature))
    finally:
        wb.LogitTable.spans = spans  # type: ignore[method-assign]
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"temperature {fitted[0]:.6f}: {rows / table.n:.2f} reads (limit {READS}), {took:.1f} s of the processor,")
    print(f"{took / of_read:.1f} times one read ({of_read:.2f} s); peak memory {peak:.0f} MB above")


def main() -> None:
    """One table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=20_000)
    options.add_argument("--classes", type=int, default=10_450)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        table = table_on_disk(Path(folder), given.rows, given.classes)
        print(f"{table.n} × {table.n_classes} in half precision")
        temperature(table)


if __name__ == "__main__":
    main()
