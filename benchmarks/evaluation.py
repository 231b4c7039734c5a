"""What reports, comparisons, intervals and scaling cost, in passes over the scores.

    python benchmarks/evaluation.py [rows] [classes]

A pass is one exp-sum over all scores in one thread. All are measured in one run, the median of three after a first one.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable
from statistics import median

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import workbench as wb
from workbench.metrics.comparison import compare

ROWS, CLASSES, REPEATS = 31_112, 1_081, 3


def drawn_tables(n: int, n_classes: int) -> dict[str, wb.LogitTable]:
    """Three noisy views of the same scores, with labels drawn from the scores."""
    rng = np.random.default_rng(0)
    scores = 2 * rng.normal(size=(n, n_classes)).astype(np.float32)
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(1)
    counts = rng.integers(1, 200, n_classes)
    noise = (0.5 * rng.normal(size=scores.shape).astype(np.float32) for _ in range(3))
    return {f"run {i}": wb.LogitTable(scores + each, labels, class_counts=counts) for i, each in enumerate(noise)}


def fresh(tables: dict[str, wb.LogitTable]) -> dict[str, wb.LogitTable]:
    """The same tables without what earlier passes have left on them."""
    return {name: table.rows(slice(None)) for name, table in tables.items()}


def seconds(function: Callable[[], object], repeats: int = REPEATS) -> float:
    """Processor time of a call: the median after one that is not counted."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return median(times)


def main() -> None:
    """Print the cost of each in passes."""
    warnings.simplefilter("ignore")
    n, n_classes = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (ROWS, CLASSES)
    tables = drawn_tables(n, n_classes)
    first = tables["run 0"]
    one_pass = seconds(lambda: np.exp(first.scores).sum())
    rule, values = wb.AverageK(5), np.random.default_rng(1).random(n)
    naive = seconds(lambda: [values[np.random.default_rng(i).integers(n, size=n)].mean() for i in range(1000)], 1)
    costs = {
        "report": lambda: wb.report(fresh(tables)["run 0"], val=first),
        "report with intervals": lambda: wb.report(fresh(tables)["run 0"], val=first, interval=0.95),
        "compare three runs": lambda: compare(fresh(tables), rule, val=tables),
        "vector scaling": lambda: wb.VectorScaling().fit(first),
    }
    print(f"{n} rows, {n_classes} classes; a pass takes {1000 * one_pass:.1f} ms")
    for name, function in costs.items():
        print(f"{name:24} {seconds(function, 1) / one_pass:7.1f} passes")
    table = wb.metrics.base.mean(values)
    bootstrap = seconds(lambda: wb.metrics.base.resampled([table], 1000, int(time.process_time_ns() % 2**31)), 1)
    print(f"{'bootstrap of a mean':24} {bootstrap / naive:7.2f} × a naive one")


if __name__ == "__main__":
    main()
