"""What sets, thresholds and the index cost on 31 112 × 1 081 probabilities, the test split of Pl@ntNet-300K.

    python benchmarks/sets.py            everything but the large table
    python benchmarks/sets.py --large    also 50 000 × 10 450 float16 from a memory map (writes 1 GB to a temporary folder)
    python benchmarks/sets.py --only-large [--rows 10000]
    python benchmarks/sets.py --no-peers without MAPIE, crepes, scikit-learn and netcal
    python benchmarks/sets.py --torchcp FOLDER   also against TorchCP (see torchcp_package.py)

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
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import workbench as wb
from workbench.sets import RULES
from workbench.sets.thresholds import threshold_at_mean_size

N, L = 31_112, 1_081
LARGE = 50_000, 10_450
SOME = 1_000  # test rows against crepes and TorchCP, some of which take minutes for all


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


def known_of_rows(n: int, n_classes: int) -> dict[str, Any]:
    """All that some rule may want to know of a table, but votes."""
    return {
        "class_counts": np.linspace(1, 2000, n_classes).astype(int),
        "groups": [f"genus {j // 4}" for j in range(n_classes)],
        "attributes": {"weight": np.linspace(0.5, 2, n), "object": np.arange(n), "organ": np.arange(n) % 3},
    }


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--large", action="store_true")
    arguments.add_argument("--only-large", action="store_true")
    arguments.add_argument("--rows", type=int, default=LARGE[0], help="rows of the large table")
    arguments.add_argument("--no-peers", dest="peers", action="store_false")
    arguments.add_argument("--torchcp", metavar="FOLDER", help="where TorchCP is installed")
    options = arguments.parse_args()
    warnings.simplefilter("ignore")
    if options.only_large:
        large(options.rows)
        return

    scores, labels = scores_of_a_network(N, L, np.random.default_rng(0))
    known = {**known_of_rows(N, L), "votes": np.eye(L, dtype=np.int8)[labels]}
    table = wb.LogitTable(scores, labels, **known)
    probabilities = table.probabilities()
    plain = wb.LogitTable.from_probabilities(probabilities, labels, **known)
    halves = plain.split()
    flat = probabilities.ravel()
    read = seconds(lambda: probabilities.sum(), 9)
    print(
        f"{N} × {L} float32, top-1 accuracy {wb.metrics.top_k_accuracy(plain, K=1):.3f}; one read {1000 * read:.1f} ms\n"
    )

    def line(name: str, took: float, bound: str = "") -> None:
        print(f"{name:58}{1000 * took:10.1f} ms{took / read:9.1f} reads   {bound}", flush=True)

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
    for rule in (kind() for kind in RULES if not kind().missing(plain)):
        line(f"{type(rule).__name__} fit on half, sets of half", fit_and_predict(rule, halves))
    line("expected calibration error", seconds(lambda: wb.metrics.expected_calibration_error(fresh(plain)), 3))

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
    some = halves[0], halves[1].rows(slice(0, SOME))
    if options.peers:
        against_crepes(some, line)
    if options.torchcp:
        against_torchcp(some, options.torchcp, line)
    if options.large:
        large(options.rows)


def fresh(table: wb.LogitTable) -> wb.LogitTable:
    """The same table, of which nothing is remembered."""
    return replace(table, labels=np.array(table.labels))


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
    mine = seconds(lambda: wb.metrics.top_k_accuracy(fresh(table), K=5), 1)
    line("scikit-learn top-5 accuracy", theirs, f"we are {theirs / mine:.0f} × faster")
    theirs = seconds(lambda: ECE(15).measure(p, y), 1)
    mine = seconds(lambda: wb.metrics.expected_calibration_error(fresh(table)), 1)
    line("netcal ECE", theirs, f"we are {theirs / mine:.1f} × faster")


def against_crepes(halves: tuple[wb.LogitTable, wb.LogitTable], line: Callable) -> None:
    """LAC and Mondrian by an attribute; theirs gives p-values of all classes first."""
    from crepes import ConformalClassifier

    val, test = halves
    own, organs = (np.arange(val.n), val.labels), [table.attributes["organ"] for table in halves]

    def plain() -> None:
        fitted = ConformalClassifier().fit(1 - val.probabilities()[own])
        fitted.predict_set(1 - test.probabilities(), confidence=0.9, smoothing=False)

    def mondrian() -> None:
        fitted = ConformalClassifier().fit(1 - val.probabilities()[own], bins=organs[0])
        fitted.predict_set(1 - test.probabilities(), bins=organs[1], confidence=0.9, smoothing=False)

    for name, theirs, ours in (("LAC", plain, wb.LAC(0.9)), ("Mondrian", mondrian, wb.Mondrian(0.9, by="organ"))):
        took = seconds(theirs, 1)
        line(f"crepes {name}", took, f"we are {took / fit_and_predict(ours, halves):.0f} × faster")


def against_torchcp(halves: tuple[wb.LogitTable, wb.LogitTable], folder: str, line: Callable) -> None:
    """Every rule that TorchCP has, from scores whose softmax the probabilities are."""
    import torch
    from torchcp_package import load

    torch.set_num_threads(1)
    predictor, score = load(folder)
    (val, labels), (test, _) = (
        (torch.from_numpy(np.log(np.maximum(half.probabilities(), 1e-30))), torch.from_numpy(np.asarray(half.labels)))
        for half in halves
    )
    print(f"\nTorchCP on the same probabilities, sets of {SOME} rows", flush=True)
    for ours, made in (
        (wb.LAC(0.9), lambda: predictor.SplitPredictor(score.LAC(), alpha=0.1)),
        (wb.APS(0.9), lambda: predictor.SplitPredictor(score.APS(), alpha=0.1)),
        (wb.RAPS(0.9), lambda: predictor.SplitPredictor(score.RAPS(penalty=0.01, kreg=5), alpha=0.1)),
        (wb.SAPS(0.9), lambda: predictor.SplitPredictor(score.SAPS(weight=0.2), alpha=0.1)),
        (wb.Margin(0.9), lambda: predictor.SplitPredictor(score.Margin(), alpha=0.1)),
        (wb.Rank(0.9), lambda: predictor.SplitPredictor(score.TOPK(), alpha=0.1)),
        (wb.ClassConditionalLAC(0.9), lambda: predictor.ClassConditionalPredictor(score.LAC(), alpha=0.1)),
        (wb.Clustered(0.9), lambda: predictor.ClusteredPredictor(score.LAC(), alpha=0.1)),
        (wb.RC3P(0.9), lambda: predictor.RC3PPredictor(score.LAC(), alpha=0.1)),
    ):

        def run(made: Callable = made) -> None:
            fitted = made()
            fitted.num_classes = L  # RC3P asks for it
            fitted.calculate_threshold(val.clone(), labels, 0.1)
            step = 16 if type(fitted).__name__ == "RC3PPredictor" else test.shape[0]  # it compares rows × L × L
            for start in range(0, test.shape[0], step):
                fitted.predict_with_logits(test[start : start + step].clone()).sum(1)

        took = seconds(run, 1)
        name = f"{type(made()).__name__} {type(made().score_function).__name__}"
        line(f"TorchCP {name}", took, f"we are {took / fit_and_predict(ours, halves):.1f} × faster")


LARGE_RUN = """
import resource, sys, time, warnings
import workbench as wb
from workbench.sets import RULES
warnings.simplefilter("ignore")
resource.setrlimit(resource.RLIMIT_DATA, (2 * 10**9, 2 * 10**9))
table = wb.LogitTable.load(sys.argv[1])
read = time.process_time(); sum(float(block.sum()) for block in table.blocks()); read = time.process_time() - read
def line(name, action):
    start = time.process_time()
    action()
    took = time.process_time() - start
    peak = int(dict(line.split(":", 1) for line in open("/proc/self/status"))["VmHWM"].split()[0]) / 1e6
    print(f"{name:58}{took:9.1f} s {took / read:11.1f} passes of softmax   peak {peak:.2f} GB", flush=True)
line("softmax + average-5 threshold", lambda: wb.AverageK(5).fit(table))
line("SetIndex and all-K arrays", lambda: wb.SetIndex(table).compact())
for kind in RULES:
    if kind().missing(table):
        print(f"{kind.__name__:58} needs {', '.join(kind().missing(table))}", flush=True)
        continue
    line(f"{kind.__name__} fit and sets", lambda: kind().fit(table).sets(table).sizes)
line("top-5 accuracy", lambda: wb.metrics.top_k_accuracy(table, K=5))
line("expected calibration error", lambda: wb.metrics.expected_calibration_error(table))
print("peak: the largest resident memory so far, with the mapped file; the process may allocate 2 GB of its own")
"""


def large(n: int) -> None:
    """Everything again from a memory map, in a process that may not allocate more than 2 GB."""
    n_classes = LARGE[1]
    print(f"\n{n} × {n_classes} float16, memory-mapped", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.npy"
        mapped = np.lib.format.open_memmap(path, "w+", np.float16, (n, n_classes))
        labels = np.empty(n, np.int64)
        generator = np.random.default_rng(0)
        for start in range(0, n, 1000):
            rows = slice(start, min(start + 1000, n))
            mapped[rows], labels[rows] = scores_of_a_network(rows.stop - start, n_classes, generator)
        mapped.flush()
        wb.LogitTable(np.load(path, mmap_mode="r"), labels, **known_of_rows(n, n_classes)).save(Path(folder) / "table")
        path.unlink()
        subprocess.run([sys.executable, "-c", LARGE_RUN, str(Path(folder) / "table")], check=True)


if __name__ == "__main__":
    main()
