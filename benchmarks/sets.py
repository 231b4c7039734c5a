"""What sets, thresholds and the index cost on 31 112 × 1 081 probabilities, the test split of Pl@ntNet-300K.

    python benchmarks/sets.py            everything but the large table
    python benchmarks/sets.py --large    also 50 000 × 10 450 float16 from a memory map (writes 1 GB to a temporary folder)
    python benchmarks/sets.py --no-peers without MAPIE, scikit-learn and netcal

Processor time of one thread, the best of a few, as multiples of one read of the matrix (`numpy.sum` of it) in the same
run; peers are run beside us on the same probabilities.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import subprocess
import sys
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.sets.selection import threshold_at_mean_size

N, L = 31_112, 1_081
LARGE = 50_000, 10_450


def seconds(action: Callable[[], Any], times: int = 5) -> float:
    """Processor time of the quickest of a few calls."""
    found = []
    for _ in range(times):
        start = time.process_time()
        action()
        found.append(time.process_time() - start)
    return min(found)


def extra_megabytes(action: Callable[[], Any]) -> float:
    """The most memory that was allocated at one time while an action ran."""
    tracemalloc.start()
    action()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def scores_of_a_network(n: int, n_classes: int, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose top-1 accuracy is about .75 and whose sets have a few classes, as on Pl@ntNet-300K."""
    scores = generator.standard_normal((n, n_classes), dtype=np.float32) * 2
    labels = generator.integers(0, n_classes, n)
    scores[np.arange(n), labels] += generator.normal(10, 4, n).astype(np.float32)
    return scores, labels


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--large", action="store_true")
    arguments.add_argument("--no-peers", dest="peers", action="store_false")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")

    scores, labels = scores_of_a_network(N, L, np.random.default_rng(0))
    table = wb.LogitTable(scores, labels, class_counts=np.linspace(1, 2000, L).astype(int))
    probabilities = table.probabilities()
    plain = wb.LogitTable.from_probabilities(probabilities, labels)
    halves = plain.split()
    flat = probabilities.ravel()
    read = seconds(lambda: probabilities.sum(), 9)
    print(
        f"{N} × {L} float32, top-1 accuracy {wb.metrics.top_k_accuracy(plain, K=1):.3f}; one read {1000 * read:.1f} ms\n"
    )

    def line(name: str, took: float, bound: str = "") -> None:
        print(f"{name:58}{1000 * took:10.1f} ms{took / read:9.1f} reads   {bound}")

    line("softmax + average-5 threshold", seconds(lambda: threshold_at_mean_size(table, 5)), "≤ 16")
    line("average-5 threshold of probabilities", seconds(lambda: threshold_at_mean_size(plain, 5)), "≤ 5")
    line("   by numpy.partition", seconds(lambda: np.partition(flat, flat.size - 5 * N), 1))
    line("   by numpy.sort", seconds(lambda: np.sort(flat), 1))
    line("SetIndex(table), K to 20", seconds(lambda: wb.SetIndex(table)), "≤ 50")
    line("top-K and average-K accuracy of every K", seconds(lambda: wb.SetIndex(plain).efficiency()), "≤ 6")
    index = wb.SetIndex(table)
    questions = np.random.default_rng(1).uniform(1, 20, 50)
    for name, ask in {
        "threshold": lambda K: index.threshold(K),
        "sizes": lambda K: index.sizes(K=K),
        "hits": lambda K: index.hits(K=K),
        "size histogram by shots": lambda K: index.size_histogram("shots", K=K),
        "accuracy per class": lambda K: index.class_accuracy(K=K),
    }.items():
        slowest = max(seconds(lambda K=K, ask=ask: ask(K), 3) for K in questions)
        print(f"   a new K: {name:46}{1000 * slowest:10.2f} ms (slowest of 50)   ≤ 2 ms")
    line("all-K arrays for a browser (compact)", seconds(index.compact, 3))
    sets = wb.AverageK(5).fit(table).sets(table)
    line("accuracy with 1 000 resamples", seconds(lambda: wb.metrics.accuracy.interval(sets), 1))
    line("macro-accuracy with 1 000 resamples", seconds(lambda: wb.metrics.macro_accuracy.interval(sets), 1))
    for rule in (wb.TopK(5), wb.AverageK(5), wb.LAC(0.9), wb.APS(0.9), wb.RAPS(0.9), wb.PointwiseError(0.9)):
        line(f"{type(rule).__name__} fit on half, sets of half", fit_and_predict(rule, halves))
    line("expected calibration error", seconds(lambda: wb.metrics.expected_calibration_error(plain), 3))

    print("\nextra memory beyond the table (MB, ≤ 50)")
    for name, action in {
        "softmax + threshold": lambda: threshold_at_mean_size(table, 5),
        "SetIndex": lambda: wb.SetIndex(table),
        "APS fit and sizes": lambda: wb.APS(0.9).fit(table).sets(table).sizes,
        "compact": index.compact,
    }.items():
        print(f"{name:58}{extra_megabytes(action):10.1f}")
    if options.peers:
        against_peers(plain, halves, line)
    if options.large:
        large()


def fit_and_predict(rule: Any, halves: tuple[wb.LogitTable, wb.LogitTable]) -> float:
    return seconds(lambda: rule.fit(halves[0]).sets(halves[1]).sizes, 3)


def against_peers(table: wb.LogitTable, halves: tuple[wb.LogitTable, wb.LogitTable], line: Callable) -> None:
    from mapie.classification import SplitConformalClassifier
    from netcal.metrics import ECE
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.metrics import top_k_accuracy_score

    class Looked(ClassifierMixin, BaseEstimator):
        """A fitted classifier whose input is the number of a row."""

        def __init__(self, probabilities: np.ndarray) -> None:
            self.probabilities, self.classes_ = probabilities, np.arange(probabilities.shape[1])
            self.n_features_in_, self.is_fitted_ = 1, True

        def fit(self, X: Any, y: Any) -> Looked:
            return self

        def predict_proba(self, X: Any) -> np.ndarray:
            return self.probabilities[np.asarray(X)[:, 0].astype(int)]

        def predict(self, X: Any) -> np.ndarray:
            return self.predict_proba(X).argmax(1)

    val, test = halves
    both = np.concatenate([val.probabilities(), test.probabilities()])
    rows = np.arange(table.n)[:, None]

    def mapie(score: str) -> float:
        def run() -> None:
            rule = SplitConformalClassifier(Looked(both), 0.9, score, prefit=True, random_state=0)
            rule.conformalize(rows[: val.n], val.labels).predict_set(rows[val.n :])

        return seconds(run, 1)

    print("\npeers on the same probabilities")
    for ours, score in ((wb.LAC(0.9), "lac"), (wb.APS(0.9), "aps"), (wb.RAPS(0.9), "raps")):
        theirs = mapie(score)
        line(f"MAPIE {score}", theirs, f"we are {theirs / fit_and_predict(ours, halves):.0f} × faster")
    p, y = table.probabilities(), np.asarray(table.labels)
    theirs = seconds(lambda: top_k_accuracy_score(y, p, k=5, labels=np.arange(L)), 1)
    mine = seconds(lambda: wb.metrics.top_k_accuracy(table, K=5), 1)
    line("scikit-learn top-5 accuracy", theirs, f"we are {theirs / mine:.0f} × faster")
    theirs = seconds(lambda: ECE(15).measure(p, y), 1)
    mine = seconds(lambda: wb.metrics.expected_calibration_error(table), 1)
    line("netcal ECE", theirs, f"we are {theirs / mine:.1f} × faster")


LARGE_RUN = """
import resource, sys, time, warnings
import workbench as wb
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_DATA, (2 * 10**9, 2 * 10**9))
table = wb.LogitTable.load(sys.argv[1])
read = time.process_time(); sum(float(block.sum()) for block in table.blocks()); read = time.process_time() - read
def line(name, action):
    start = time.process_time()
    action()
    took = time.process_time() - start
    print(f"{name:58}{took:9.1f} s {took / read:11.1f} passes of softmax")
line("softmax + average-5 threshold", lambda: wb.AverageK(5).fit(table))
line("SetIndex and all-K arrays", lambda: wb.SetIndex(table).compact())
line("LAC fit and sets", lambda: wb.LAC(0.9).fit(table).sets(table).sizes)
line("APS fit and sets", lambda: wb.APS(0.9).fit(table).sets(table).sizes)
line("RAPS fit and sets", lambda: wb.RAPS(0.9).fit(table).sets(table).sizes)
line("top-5 accuracy", lambda: wb.metrics.top_k_accuracy(table, K=5))
line("expected calibration error", lambda: wb.metrics.expected_calibration_error(table))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1e6  # getrusage would count the parent as well
print(f"peak resident memory {peak:.2f} GB (the mapped file counts), limit of own memory 2 GB")
"""


def large() -> None:
    """Everything again from a memory map, in a process that may not allocate more than 2 GB."""
    n, n_classes = LARGE
    print(f"\n{n} × {n_classes} float16, memory-mapped", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npy"
        mapped = np.lib.format.open_memmap(path, "w+", np.float16, (n, n_classes))
        labels = np.empty(n, np.int64)
        generator = np.random.default_rng(0)
        for start in range(0, n, 1000):
            block, labels[start : start + 1000] = scores_of_a_network(1000, n_classes, generator)
            mapped[start : start + 1000] = block
        mapped.flush()
        wb.LogitTable(np.load(path, mmap_mode="r"), labels).save(Path(folder) / "table")
        path.unlink()
        subprocess.run([sys.executable, "-c", LARGE_RUN, str(Path(folder) / "table")], check=True)


if __name__ == "__main__":
    main()
