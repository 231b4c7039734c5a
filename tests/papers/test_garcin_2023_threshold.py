"""Garcin et al. 2023: the threshold of Algorithm 1 and the accuracies of Eq. 16–17 and Table 2."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb

rng = np.random.default_rng(0)


def split(n: int, n_classes: int = 20) -> wb.LogitTable:
    scores = rng.normal(size=(n, n_classes)).astype("float32") * 2
    labels = rng.integers(0, n_classes, n)
    scores[np.arange(n), labels] += 3
    return wb.LogitTable(scores, labels, class_counts=np.linspace(5, 200, n_classes).astype(int))


def algorithm_1(table: wb.LogitTable, K: int, batch_size: int) -> float:
    """Line by line: softmax of each batch, concatenated, flattened, sorted in decreasing order, midpoint."""
    P = np.concatenate(
        [table.probabilities(slice(start, start + batch_size)) for start in range(0, table.n, batch_size)]
    )
    P = np.sort(P.ravel())[::-1].astype(np.float64)
    return (P[K * table.n - 1] + P[K * table.n]) / 2


@pytest.mark.parametrize("K", [1, 2, 5, 10])
def test_algorithm_1_gives_the_threshold_of_average_k(K):
    val = split(500)
    threshold = wb.AverageK(K).fit(val).threshold
    exact = algorithm_1(val, K, batch_size=64)
    assert exact <= threshold <= np.nextafter(np.float32(exact), np.float32(1))  # rounded up to float32
    assert np.count_nonzero(val.probabilities() >= threshold) == K * val.n


def test_algorithm_1_does_not_depend_on_the_batch_size():
    val = split(100)
    assert algorithm_1(val, 3, 7) == algorithm_1(val, 3, 100)


def test_equations_16_and_17_use_the_threshold_of_validation_on_both_splits():
    val, test = split(400), split(600)
    fitted = wb.AverageK(3).fit(val)
    for table in (val, test):
        own = table.probabilities()[np.arange(table.n), table.labels]
        assert wb.metrics.accuracy(fitted.sets(table)) == (own >= fitted.threshold).mean()


def test_table_2_averages_the_accuracy_of_the_classes_of_each_shot_group():
    test = split(800)
    sets = wb.AverageK(3).fit(test).sets(test)
    per_class = np.array([sets.hits[test.labels == j].mean() for j in range(20)])
    counts = test.class_counts
    expected = {
        "few": per_class[counts < 20].mean(),
        "medium": per_class[(counts >= 20) & (counts <= 100)].mean(),
        "many": per_class[counts > 100].mean(),
    }
    assert wb.metrics.shot_accuracy(sets) == pytest.approx(expected)


def test_on_real_networks_average_5_accuracy_exceeds_top_5_accuracy(shared_data):
    real = shared_data("cifar100_resnets_logits")
    n = len(real["y"])
    chance = 5e-4 if n == 10_000 else 3 * (0.953 * 0.047 / n) ** 0.5  # of a part of the rows: three standard errors
    for logits, average in zip(real["logits"], (0.953, 0.952), strict=True):
        table = wb.LogitTable(logits, real["y"])
        sets = wb.AverageK(5).fit(table).sets(table)
        assert wb.metrics.accuracy(sets) == pytest.approx(average, abs=chance)
        assert wb.metrics.accuracy(sets) > wb.metrics.top_k_accuracy(table, K=5)
