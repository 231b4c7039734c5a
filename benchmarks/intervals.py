"""How often an interval of 95 % holds the truth: what is printed beside a number must be worth what it says.

    python benchmarks/intervals.py [repetitions]

Tables are drawn from laws whose truth is known (rows, labels and confidences), each metric gives its interval, and the
share of intervals that hold the truth stands beside how wide they are. Nominal is 95 %; above is cautious, below is a
promise not kept. "holds its value" must be 100 %.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

import workbench as wb
from workbench.metrics import Metric
from workbench.metrics.base import bootstrap_weights
from workbench.metrics.hierarchical import seeds_and_rows_interval
from workbench.metrics.seeds import mean_over_seeds

REPETITIONS, RESAMPLES = 200, 300
MANY_ROWS = 200_000  # that stand for all there are
Law = Callable[[np.random.Generator, int], wb.LogitTable]


def share_right(accuracy: float) -> Law:
    """Ten equally frequent classes; the most probable one is right with this probability."""

    def drawn(rng: np.random.Generator, n: int) -> wb.LogitTable:
        labels, wrong = rng.integers(10, size=n), rng.random(n) >= accuracy
        said = np.where(wrong, (labels + rng.integers(1, 10, size=n)) % 10, labels)
        return wb.LogitTable(4.0 * np.eye(10)[said], labels)

    return drawn


def rare_classes(accuracy: float) -> Law:
    """Fifty classes, the k-th one of k-th part as frequent as the first, each with an accuracy of its own around this."""
    frequency = 1 / np.arange(1, 51)
    of_class = np.clip(accuracy + 0.08 * np.random.default_rng(0).normal(size=50), 0.02, 0.995)

    def drawn(rng: np.random.Generator, n: int) -> wb.LogitTable:
        labels = rng.choice(50, size=n, p=frequency / frequency.sum())
        said = np.where(rng.random(n) < of_class[labels], labels, (labels + 1) % 50)
        return wb.LogitTable(6.0 * np.eye(50)[said], labels)

    return drawn


def tempered(sureness: float) -> Law:
    """Five classes, labels drawn from softmax(s), confidences from softmax(sureness · s): calibrated at 1."""

    def drawn(rng: np.random.Generator, n: int) -> wb.LogitTable:
        scores = 2 * rng.normal(size=(n, 5))
        p = np.exp(scores - scores.max(1, keepdims=True))
        labels = (p.cumsum(1) < rng.random((n, 1)) * p.sum(1, keepdims=True)).sum(1)
        return wb.LogitTable(sureness * scores, labels)

    return drawn


def coverage(metric: Metric, law: Law, n: int, truth: float, repetitions: int) -> tuple[float, float, float]:
    """The share of intervals that hold the truth, their mean width, and the share that hold their value."""
    found = []
    for seed in range(repetitions):
        table = law(np.random.default_rng([seed, n]), n)
        subject = table if metric.subject == "table" else wb.TopK(1).fit(table).sets(table)
        low, high = metric.interval(subject, resamples=RESAMPLES, seed=seed)
        found.append((low <= truth <= high, high - low, low <= metric(subject) <= high))
    return tuple(np.mean(found, axis=0))


def truth_of(metric: Metric, law: Law) -> float:
    """The metric of very many rows."""
    table = law(np.random.default_rng(10**6), MANY_ROWS)
    return float(metric(table if metric.subject == "table" else wb.TopK(1).fit(table).sets(table)))


def over_seeds(spread: float, seeds: int, repetitions: int) -> tuple[float, float, float]:
    """Accuracies of a few seeds, in log-odds around 0.95: how often the interval of their mean holds the mean of all."""
    import pandas as pd

    rng = np.random.default_rng(0)
    accuracies = 1 / (1 + np.exp(-(np.log(19) + spread * rng.normal(size=(repetitions, seeds)))))
    truth = float((1 / (1 + np.exp(-(np.log(19) + spread * rng.normal(size=10**6))))).mean())
    frame = pd.DataFrame(accuracies).melt(ignore_index=False).reset_index(names="trial")
    means = mean_over_seeds(frame.assign(split="test", metric="accuracy"), ["trial"])
    inside = (means["low"] <= truth) & (truth <= means["high"])
    return float(inside.mean()), float((means["high"] - means["low"]).mean()), 1.0


def over_seeds_and_rows(
    seeds: int, n: int, spread: float, repetitions: int, stretched: bool = True
) -> tuple[float, float, float, float]:
    """The truth, and as `coverage`: rows, seeds and their meetings decide what is hit; seeds differ by `spread` in log-odds."""

    def hits(rng: np.random.Generator, seeds: int, n: int) -> np.ndarray:
        logits = 1 + 1.5 * rng.normal(size=n) + spread * rng.normal(size=(seeds, 1)) + 0.5 * rng.normal(size=(seeds, n))
        return rng.uniform(size=n) < 1 / (1 + np.exp(-logits))

    truth = float(np.mean([hits(np.random.default_rng([1, seed]), 1, 2000).mean() for seed in range(500)]))
    found = []
    for seed in range(repetitions):
        rng = np.random.default_rng([2, seed])
        right = hits(rng, seeds, n)
        drawn = np.concatenate([right @ weights / n for weights in bootstrap_weights(n, RESAMPLES, seed)], axis=1)
        low, high = seeds_and_rows_interval(right.mean(axis=1), drawn, (0, 1), seed=seed)
        if not stretched:
            times = rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES).T
            low, high = np.quantile((times * drawn).mean(axis=0), [0.025, 0.975])
        found.append((low <= truth <= high, high - low, low <= right.mean() <= high))
    held, width, own = np.mean(found, axis=0)
    return truth, held, width, own


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else REPETITIONS
    M = wb.metrics
    cases: list[tuple[str, Metric, Law, float | None]] = [
        *((f"accuracy {share}", M.accuracy, share_right(share), share) for share in (0.5, 0.95, 1.0)),
        *(
            (f"macro-accuracy near {share}, rare classes", M.macro_accuracy, rare_classes(share), None)
            for share in (0.5, 0.95)
        ),
        ("coverage gap near 0.9, rare classes", M.coverage_gap, rare_classes(0.9), None),
        ("calibration error, calibrated", M.expected_calibration_error, tempered(1.0), 0.0),
        ("calibration error, a little too sure", M.expected_calibration_error, tempered(1.15), None),
        ("calibration error, far too sure", M.expected_calibration_error, tempered(3.0), None),
        ("negative log-likelihood", M.negative_log_likelihood, tempered(1.5), None),
    ]
    print(f"{'of 95 % intervals':45}{'rows':>6}{'truth':>8}{'hold it':>9}{'width':>8}{'hold their value':>18}")
    for name, metric, law, known in cases:
        truth = truth_of(metric, law) if known is None else known
        for n in (100, 1000):
            held, width, own = coverage(metric, law, n, truth, repetitions)
            print(f"{name:45}{n:6}{truth:8.3f}{held:9.1%}{width:8.3f}{own:18.0%}", flush=True)
    for seeds in (3, 10):
        held, width, own = over_seeds(0.4, seeds, 20 * repetitions)
        print(f"{'mean accuracy over seeds, near 0.95':45}{seeds:6}{0.95:8.3f}{held:9.1%}{width:8.3f}{own:18.0%}")
    for seeds, n, spread in ((3, 300, 0.3), (5, 600, 0.5), (5, 300, 0.0)):
        for stretched in (True, False):
            truth, held, width, own = over_seeds_and_rows(seeds, n, spread, 2 * repetitions, stretched)
            name = f"{seeds} seeds and rows, spread {spread}" + ("" if stretched else ", not stretched")
            print(f"{name:45}{n:6}{truth:8.3f}{held:9.1%}{width:8.3f}{own:18.0%}", flush=True)


if __name__ == "__main__":
    main()
