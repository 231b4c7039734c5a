"""Seeds and rows together: intervals hold the truth as often as they say, tests agree with scipy, and many are corrected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench import metrics
from workbench.metrics.base import bootstrap_weights, mean
from workbench.metrics.hierarchical import (
    differences,
    interval_of,
    multiplicity,
    repeated,
    seeds_and_rows_interval,
)
from workbench.metrics.significance import holm, paired_t_test


def hits(rng, n_seeds, n, *, seeds=0.3, both=0.5, shift=0.0):
    """Whether each row is hit with each seed: rows, seeds and their meetings all matter."""
    logits = 1 + shift + 1.5 * rng.normal(size=n) + seeds * rng.normal(size=(n_seeds, 1))
    return rng.uniform(size=n) < 1 / (1 + np.exp(-logits - both * rng.normal(size=(n_seeds, n))))


def share(**knobs):
    """The share of hits of all seeds on all rows."""
    rng = np.random.default_rng(99)
    return np.mean([hits(rng, 1, 2000, **knobs).mean() for _ in range(200)])


@pytest.mark.parametrize(
    ("n_seeds", "n", "knobs"),
    [(3, 300, {}), (5, 300, {"seeds": 0.05}), (5, 600, {"seeds": 0.5}), (5, 150, {"seeds": 0.0, "both": 0.0})],
)
def test_an_interval_over_seeds_and_rows_holds_the_truth_in_95_of_100_worlds(n_seeds, n, knobs):
    rng, truth, held, worlds = np.random.default_rng(3), share(**knobs), [], 250
    (weights,) = bootstrap_weights(n, 300, seed=5)
    for world in range(worlds):
        found = hits(rng, n_seeds, n, **knobs)
        low, high = seeds_and_rows_interval(found.mean(axis=1), found @ weights / n, (0, 1), seed=world)
        held.append(low <= truth <= high)
    assert stats.binomtest(sum(held), worlds, 0.95, alternative="less").pvalue > 0.01
    assert np.mean(held) < 1


def test_the_interval_is_students_where_rows_do_not_matter_and_the_bootstrap_of_rows_where_seeds_do_not():
    values = np.random.default_rng(0).normal(size=12)
    low, high = seeds_and_rows_interval(values, np.repeat(values[:, None], 20_000, axis=1))
    expected = stats.t.interval(0.95, 11, values.mean(), stats.sem(values))
    assert (low, high) == pytest.approx(expected, abs=0.1 * (expected[1] - expected[0]))
    rows = np.random.default_rng(1).normal(size=1000)
    same = seeds_and_rows_interval(np.zeros(4), np.tile(rows, (4, 1)))
    assert same == pytest.approx(tuple(np.quantile(rows, [0.025, 0.975])))


def settings_of(rng, shifts, n_seeds=5, n=400):
    """A metric of several settings, of which the seeds and the rows are shared."""
    state = rng.bit_generator.state
    found = {}
    for name, shift in shifts.items():
        rng.bit_generator.state = state  # the same rows, the same seeds: only the shift differs
        drawn = hits(rng, n_seeds, n, shift=shift)
        found[name] = {seed: mean(one) for seed, one in enumerate(drawn)}
    return found


def test_a_difference_is_paired_by_seeds_and_rows_and_so_known_better_than_its_values():
    found = repeated(settings_of(np.random.default_rng(0), {"a": 0.4, "b": 0.0}))
    (line,) = differences(metrics.accuracy, found, [("a", "b")]).to_dict("records")
    assert line["difference"] == pytest.approx((found["a"].found - found["b"].found).mean())
    assert 0 < line["low"] <= line["difference"] <= line["high"]
    alone = interval_of(metrics.accuracy, found["a"])
    assert line["high"] - line["low"] < alone[1] - alone[0]
    assert (line["seeds"], line["n"], line["comparisons"]) == (5, 400, 1)


def test_the_p_value_is_that_of_scipys_paired_t_test_and_is_corrected_for_all_comparisons():
    found = repeated(settings_of(np.random.default_rng(1), {"a": 0.4, "b": 0.3, "c": 0.0}), resamples=50)
    frame = differences(metrics.accuracy, found, [("a", "b"), ("a", "c"), ("b", "c")])
    for line in frame.to_dict("records"):
        expected = stats.ttest_rel(found[line["first"]].found, found[line["second"]].found)
        assert (line["t"], line["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    assert frame["p_holm"].tolist() == holm(frame["p"].to_numpy()).tolist()
    assert (frame["p_holm"] >= frame["p"]).all()
    assert "p_holm is corrected for all 3 comparisons that were made (Holm's method)" in multiplicity(frame)
    assert "one comparison was made" in multiplicity(differences(metrics.accuracy, found, [("a", "b")]))


@pytest.mark.parametrize("seed", range(20))
def test_the_paired_t_test_agrees_with_scipy(seed):
    rng = np.random.default_rng(seed)
    first, second = rng.normal(size=(2, 2 + seed))
    expected = stats.ttest_rel(first, second)
    assert paired_t_test(first, second) == pytest.approx((expected.statistic, expected.pvalue))


def test_one_seed_has_an_interval_of_its_rows_and_no_p_value():
    found = repeated(settings_of(np.random.default_rng(0), {"a": 0.4, "b": 0.0}, n_seeds=1))
    (line,) = (frame := differences(metrics.accuracy, found, [("a", "b")])).to_dict("records")
    assert line["low"] <= line["difference"] <= line["high"]
    assert np.isnan([line["t"], line["p"], line["p_holm"]]).all()
    assert "one seed has no p-value" in multiplicity(frame)
    assert np.isnan(paired_t_test(np.array([1.0]), np.array([2.0]))).all()


def test_settings_that_agree_in_every_row_and_seed_differ_by_nothing():
    found = repeated(settings_of(np.random.default_rng(0), {"a": 0.2, "b": 0.2}))
    (line,) = differences(metrics.accuracy, found, [("a", "b")]).to_dict("records")
    assert [line[name] for name in ("difference", "low", "high", "t", "p", "p_holm")] == [0, 0, 0, 0, 1, 1]
    assert paired_t_test(np.array([0.5, 0.75]), np.array([0.25, 0.5])) == (np.inf, 0.0)


def test_only_the_seeds_that_both_settings_have_are_compared_and_without_one_it_is_said():
    settings = settings_of(np.random.default_rng(0), {"a": 0.2, "b": 0.0})
    del settings["a"][0]
    (line,) = differences(metrics.accuracy, repeated(settings), [("a", "b")]).to_dict("records")
    assert line["seeds"] == 4
    settings["b"] = {0: settings["b"][0]}
    with pytest.raises(
        ValueError, match="a and b share no seed, so nothing pairs them; train both with the same seeds"
    ):
        differences(metrics.accuracy, repeated(settings), [("a", "b")])


def test_a_group_of_a_metric_has_its_interval_too():
    rng, labels = np.random.default_rng(0), np.arange(200) % 4
    scores = rng.normal(size=(3, 200, 4)) + np.eye(4)[labels]
    tables = [wb.LogitTable(one, labels, class_counts=[5, 8, 200, 300]) for one in scores]
    sets = [wb.TopK(2).fit(table)(table) for table in tables]
    settings = {"one": {seed: metrics.shot_accuracy.parts(one) for seed, one in enumerate(sets)}}
    for group in ("few", "many"):
        one = repeated(settings, group)["one"]
        assert one.found == pytest.approx([metrics.shot_accuracy(each)[group] for each in sets])
        low, high = interval_of(metrics.shot_accuracy, one)
        assert 0 <= low < one.found.mean() < high <= 1
