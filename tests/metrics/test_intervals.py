"""Intervals: each holds its value, stays in the bounds of its metric, and holds the truth about as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.metrics import METRICS
from workbench.metrics.intervals import mean_share_interval, paired_share_interval, wilson_interval
from workbench.metrics.seeds import mean_over_seeds

M = wb.metrics


def random_table(seed: int, many: bool, link: str = "") -> wb.LogitTable:
    """Few rows, rare classes, sometimes always right, sometimes badly calibrated: where intervals go wrong."""
    rng = np.random.default_rng(seed)
    n, n_classes = int(rng.integers(8, 60)), int(rng.integers(2, 9))
    scores = rng.normal(size=(n, n_classes)) * rng.choice([0.3, 1.0, 5.0])
    labels = scores.argmax(1) if seed % 3 == 0 else rng.integers(0, n_classes, n)
    if many:
        labels = (rng.random((n, n_classes)) < 0.4) | (np.arange(n_classes) == labels[:, None])
    fields = {"class_counts": rng.integers(1, 300, n_classes), "groups": [str(j // 2) for j in range(n_classes)]}
    link = link or ("sigmoid" if many else "softmax")
    return wb.LogitTable(scores, labels, link=link, link_constant=1.0, **fields)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("many", [False, True], ids=["one label", "many labels"])
def test_every_interval_holds_its_value_and_stays_in_bounds(seed, many):
    table = random_table(seed, many, link="quasibinary" if seed == 5 else "")
    other = wb.LogitTable(table.scores[::-1].copy(), table.labels, link=table.link, link_constant=1.0)
    sets = wb.AverageK(min(1.5, table.n_classes)).fit(table).sets(table)
    subjects = {
        "sets": (sets,),
        "table": (table,),
        "tables": (table, other),
        "grouped sets": (sets, np.arange(table.n) % 3),
    }
    for metric in METRICS:
        if metric.applies(table):
            values, found = metric(*subjects[metric.subject]), metric.interval(*subjects[metric.subject], resamples=40)
            values, found = (each if isinstance(each, dict) else {"": each} for each in (values, found))
            for name, (low, high) in found.items():
                if not math.isnan(low):
                    assert low <= values[name] <= high, metric
                    assert metric.bounds[0] <= low, metric
                    assert high <= metric.bounds[1], metric


@pytest.mark.parametrize("seed", range(6))
def test_every_paired_difference_lies_in_its_interval(seed):
    table = random_table(seed, many=False)
    noise = np.random.default_rng(seed).normal(size=table.scores.shape)
    other = wb.LogitTable(table.scores + noise, table.labels, class_counts=table.class_counts)
    first = wb.LogitTable(table.scores, table.labels, class_counts=table.class_counts)
    frame = wb.comparison.compare({"one": first, "other": other}, wb.TopK(1), resamples=40).dropna()
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["value"] <= frame["high"]).all()
    assert (frame["difference_low"] <= frame["difference"]).all()
    assert (frame["difference"] <= frame["difference_high"]).all()


def test_always_right_on_fifty_rows_is_no_certainty():
    table = wb.LogitTable(9 * np.eye(5)[np.arange(50) % 5], np.arange(50) % 5)
    assert M.top_k_accuracy.interval(table) == pytest.approx((50 / (50 + 1.959964**2), 1.0))
    low, high = M.macro_accuracy.interval(wb.TopK(1).fit(table).sets(table))
    assert (round(low, 3), high) == (0.929, 1.0)


def test_the_interval_of_one_share_is_wilsons_and_classes_without_rows_do_not_count():
    expected = tuple(float(end) for end in wilson_interval(np.array(30.0), np.array(40.0), z=1.959964))
    assert mean_share_interval(np.array([30.0]), np.array([40.0]), 0.95) == pytest.approx(expected)
    assert mean_share_interval(np.array([30.0, 0.0]), np.array([40.0, 0.0]), 0.95) == pytest.approx(expected)
    assert all(math.isnan(end) for end in mean_share_interval(np.array([0.0]), np.array([0.0]), 0.95))


def test_a_calibrated_network_may_have_a_calibration_error_of_zero():
    rng = np.random.default_rng(0)
    holds = []
    for _ in range(20):
        scores = rng.normal(size=(200, 4)) * 2
        p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        table = wb.LogitTable(scores, (p.cumsum(1) < rng.random((200, 1))).sum(1))
        low, _ = M.expected_calibration_error.interval(table, resamples=100)
        holds.append(low == 0)
    assert np.mean(holds) > 0.8  # the basic bootstrap: about half


def test_the_interval_of_a_paired_difference_counts_the_rows_that_only_one_gets():
    low, high = paired_share_interval(0, 0, 100, 0.95)  # no row tells the two apart, and yet some other may
    assert low == -high
    assert 0 < high < 0.05
    assert paired_share_interval(10, 10, 100, 0.95)[1] > paired_share_interval(2, 2, 100, 0.95)[1]


def test_the_interval_over_seeds_of_a_share_stays_a_share():
    values = {"accuracy": [0.9, 0.97, 0.999], "mean_size": [1.0, 1.1, 6.0], "empty_share": [0.0, 0.0, 0.0]}
    frame = pd.DataFrame(
        [("test", name, v) for name, each in values.items() for v in each], columns=["split", "metric", "value"]
    )
    found = mean_over_seeds(frame, []).set_index("metric")
    assert found.loc["accuracy", ["low", "high"]].between(0, 1).all()
    assert found.loc["mean_size", "low"] > 0
    assert found.loc["empty_share", ["low", "high"]].tolist() == [0, 0]
    assert (found["low"] <= found["mean"]).all()
    assert (found["mean"] <= found["high"]).all()
