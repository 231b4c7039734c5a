"""For whom a promise is kept, against definitions written out; and tests of exchangeability."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench.metrics.exchangeability import martingale, permutation_test

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
M = wb.metrics


def rows(n: int, seed: int, scale: float = 2.0) -> wb.LogitTable:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 7)) * scale
    return wb.LogitTable(scores, (scores + rng.gumbel(size=scores.shape)).argmax(1))


VAL, TEST = rows(500, 1), rows(600, 2)
SETS = wb.LAC(0.8).fit(VAL).sets(TEST)


def test_classes_left_behind_are_covered_less_than_half_as_often_as_promised():
    matrix = np.zeros((TEST.n, 7), bool)
    matrix[:, :5] = True  # two of the seven classes are in no set
    some = wb.PredictionSets.from_matrix(TEST, matrix)
    assert M.classes_left_behind(some, confidence=0.9) == pytest.approx(2 / 7)
    low, high = M.classes_left_behind.interval(some, confidence=0.9)
    assert low <= 2 / 7 <= high


def test_the_size_stratified_violation_is_the_largest_gap_of_a_stratum():
    strata = np.searchsorted((0, 1, 2, 4, 11, 101), SETS.sizes, side="right")
    gaps = [abs(SETS.hits[strata == stratum].mean() - 0.8) for stratum in np.unique(strata)]
    assert M.size_stratified_violation(SETS) == pytest.approx(max(gaps))


def test_the_worst_slab_finds_a_region_that_is_never_covered():
    matrix = np.ones((TEST.n, 7), bool)
    matrix[TEST.scores[:, 0] > 1] = False
    low = M.worst_slab_coverage(wb.PredictionSets.from_matrix(TEST, matrix))
    assert low < 0.5 < matrix.all(1).mean()


def test_the_area_under_the_risk_coverage_curve_is_the_mean_error_of_the_most_confident():
    p = TEST.probabilities()
    wrong = (p.argmax(1) != TEST.labels)[np.argsort(-p.max(1), kind="stable")]
    expected = np.mean(np.cumsum(wrong) / np.arange(1, TEST.n + 1))
    assert M.risk_coverage_area(TEST) == pytest.approx(expected)
    low, high = M.risk_coverage_area.interval(TEST)
    assert low < expected < high


def test_a_permutation_test_sees_a_shift_and_is_uniform_without_one():
    assert permutation_test(VAL, rows(300, 3, scale=4.0), permutations=199).p_value == 1 / 200
    p = [permutation_test(rows(60, 10 + s), rows(60, 500 + s), permutations=99).p_value for s in range(60)]
    assert stats.kstest(p, "uniform").pvalue > 1e-3


def test_a_martingale_of_conformal_p_values_grows_only_when_rows_change():
    fitted = wb.LAC(0.8).fit(VAL)
    same = fitted.p_values(TEST)[np.arange(TEST.n), TEST.labels]
    rng = np.random.default_rng(0)
    noisy = wb.LogitTable(TEST.scores, rng.integers(0, 7, TEST.n))
    changed = fitted.p_values(noisy)[np.arange(TEST.n), noisy.labels]
    assert martingale(same).max() < 1000 < martingale(changed)[-1]


def test_backward_sets_have_K_classes_and_miss_the_label_no_more_than_they_say():
    fitted = wb.Backward(K=2).fit(VAL)
    sets, promises = fitted.sets(TEST), fitted.promises(TEST)
    assert (sets.sizes == 2).all()
    assert sets.hits.mean() > promises.mean() - 0.03
    misses = ~sets.hits / np.maximum(1 - promises, 1e-12)
    assert misses.mean() < 1.15  # E[1{y outside} / α̃] ≤ 1


def test_importance_weighted_coverage_is_the_weighted_mean_of_the_classes():
    importance = np.arange(1.0, TEST.n_classes + 1)
    sets = wb.LAC(0.8).fit(VAL).sets(TEST)
    shares = M.class_accuracy(sets)
    present = ~np.isnan(shares)
    expected = (importance * shares)[present].sum() / importance[present].sum()
    assert M.weighted_coverage(sets, importance) == pytest.approx(expected)
    assert M.weighted_coverage(sets, np.ones(TEST.n_classes)) == pytest.approx(M.macro_accuracy(sets))
    assert np.isnan(M.weighted_coverage(sets))  # neither the rule nor the call has an importance
    low, high = M.weighted_coverage.interval(sets, importance=importance)
    assert low <= expected <= high
    with pytest.raises(ValueError, match="above 0 for each of the"):
        M.weighted_coverage(sets, [1, 2])
