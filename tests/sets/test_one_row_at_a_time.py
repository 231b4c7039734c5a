"""A row has one set: alone, in any batch, in any order, in any type of number, under any order of the columns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import workbench as wb
from workbench.sets.base import Block
from workbench.sets.row_draws import row_draws
from workbench.sets.scores import Mass, Position, Share, SortedMass, rounding

pytestmark = pytest.mark.filterwarnings("ignore:.*sets are empty")
RANDOMISED = (wb.APS(0.9, seed=25), wb.RAPS(0.9, penalty=0.05, free_rank=2, seed=25))


def table(n: int, seed: int = 0, n_classes: int = 12) -> wb.LogitTable:
    """Rows whose labels are drawn from the softmax of their scores."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, n_classes)).astype("float32") * 2
    names = tuple(f"species {j}" for j in range(n_classes))
    return wb.LogitTable(scores, (scores + rng.gumbel(size=scores.shape)).argmax(1), class_names=names)


@pytest.mark.parametrize("rule", RANDOMISED, ids=lambda rule: type(rule).__name__)
def test_the_promise_holds_for_single_rows_batches_of_seven_and_whole_tables(rule):
    val, test = table(2000, 1), table(3000, 2)
    fitted = rule.fit(val)
    whole = fitted.sets(test)
    of_sevens = [fitted.sets(test.rows(slice(start, start + 7))).matrix() for start in range(0, 700, 7)]
    alone = [fitted.sets(test.rows([row])).matrix() for row in range(300)]
    assert np.array_equal(np.concatenate(of_sevens), whole.matrix()[:700])
    assert np.array_equal(np.concatenate(alone), whole.matrix()[:300])
    low, high = stats.betabinom(test.n, 1801, 200).ppf([1e-4, 1 - 1e-4]) / test.n
    assert low <= whole.hits.mean() <= high


@pytest.mark.parametrize("rule", RANDOMISED, ids=lambda rule: type(rule).__name__)
def test_over_fresh_splits_rows_scored_one_at_a_time_are_covered_as_promised(rule):
    hits = []
    for seed in range(500):
        both = table(60, 1000 + seed, n_classes=5)
        hits.append(rule.fit(both.rows(slice(59))).sets(both.rows([59])).hits[0])
    assert stats.binomtest(sum(hits), 500, 54 / 60).pvalue > 1e-3


@pytest.mark.parametrize("rule", RANDOMISED, ids=lambda rule: type(rule).__name__)
def test_equal_rows_keep_the_promise_too(rule):
    """A constant network draws one share for all rows; fitting and predicting draw the same one."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(12))
    val, test = (wb.LogitTable(np.tile(np.log(p), (n, 1)), rng.choice(12, n, p=p)) for n in (500, 2000))
    assert rule.fit(val).sets(test).hits.mean() > 0.88


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2, 7, 60, 300]), st.sampled_from([0.5, 3.0, 30.0]), st.booleans())
def test_sets_that_float32_decides_are_those_of_float64(seed, n_classes, scale, tied):
    """Also where values tie in float32 and not in float64, or lie on the limit."""
    rng = np.random.default_rng(seed)
    scores = (rng.normal(size=(40, n_classes)) * scale).astype("float32")
    if tied:
        scores[:, : n_classes // 2] = np.nextafter(scores[:, [0]], np.inf)
        scores[::2] = np.round(scores[::2])
    block = Block(wb.LogitTable(scores))
    for score in (Mass(Share(True, seed)), Mass(Share(False, 0), 0.05, 2)):
        of_classes = score.of_classes(block)
        for limit in (rng.uniform(0, 1.2), rng.choice(of_classes.ravel()), rng.choice(of_classes.ravel(), (40, 1))):
            share, reach = score.share(block), np.broadcast_to(np.ravel(limit) + rounding(block), 40)
            precise = block.precise > score._outsiders(block.precise, share, reach)[0][:, None]
            assert np.array_equal(score.mask(block, limit), precise)


@pytest.mark.parametrize(
    "score", [SortedMass(Share(True, 1), 0.1), SortedMass(Share(False, 1), 0), Position(Share(True, 1))]
)
@pytest.mark.parametrize("tied", [False, True])
def test_sets_by_rank_hold_the_classes_whose_score_is_at_most_the_limit(score, tied):
    scores = np.random.default_rng(0).normal(size=(50, 90)) * 3
    block = Block(wb.LogitTable(np.round(scores) if tied else scores * 20))  # in float64 some are 0
    of_classes = score.of_classes(block)
    for limit in (-1.0, 0.7, 1.5, 40.2, np.inf, np.linspace(0, 30, 50)[:, None]):
        assert np.array_equal(score.mask(block, limit), of_classes <= limit)


@settings(max_examples=30)
@given(st.integers(0, 99), st.sampled_from(["float16", "float32", "float64"]))
def test_a_draw_depends_on_seed_and_scores_and_on_nothing_else(seed, dtype):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(40, 9)).astype("float16")
    draws = row_draws(scores, seed)
    assert np.array_equal(row_draws(scores.astype(dtype), seed), draws)
    assert np.array_equal(row_draws(scores[::-1], seed), draws[::-1])
    assert np.array_equal(row_draws(scores[:, rng.permutation(9)], seed), draws)
    assert not np.isin(row_draws(scores, seed + 1), draws).any()
    assert len(np.unique(draws)) == 40


def test_draws_are_uniform_and_see_every_bit_of_a_score():
    scores = np.random.default_rng(0).normal(size=(20_000, 3))
    draws = row_draws(scores, 0)
    assert stats.kstest(draws, "uniform").pvalue > 1e-3
    nudged = scores.copy()
    nudged[:, 1] = np.nextafter(nudged[:, 1], 9)
    moved = row_draws(nudged, 0)
    assert np.mean(moved == draws) < 0.01
    assert abs(np.corrcoef(draws, moved)[0, 1]) < 0.03


def test_without_randomness_APS_includes_the_class_that_crosses_so_no_set_is_empty():
    """U = 1 of Romano et al.: the first class enters at score 0."""
    val, test = table(2000, 1, 30), table(2000, 2, 30)
    fitted = wb.APS(0.9, randomized=False).fit(val)
    sets = fitted.sets(test)
    assert sets.sizes.min() >= 1
    falling = -np.sort(-test.probabilities().astype("float64"), axis=1)
    crossing = np.count_nonzero(np.cumsum(falling, axis=1) - falling <= fitted.threshold, axis=1)
    assert np.mean(sets.sizes == crossing) > 0.999
    assert abs(sets.hits.mean() - 0.9) < 0.03
    assert sets.sizes.mean() < 1.2 * wb.APS(0.9).fit(val).sets(test).sizes.mean() + 1


@pytest.mark.parametrize("rule", [wb.APS(0.9, randomized=False), *RANDOMISED], ids=lambda rule: rule.short())
def test_the_same_logits_in_another_type_give_the_same_adaptive_sets(rule, shared_data):
    real = shared_data("cifar100_resnets_logits")
    scores, labels = real["logits"][0], real["y"]
    assert scores.dtype == np.float16
    expected = None
    for dtype in ("float16", "float32", "float64"):
        val, test = wb.LogitTable(scores.astype(dtype), labels).split()
        matrix = rule.fit(val).sets(test).matrix()
        expected = matrix if expected is None else expected
        assert np.array_equal(matrix, expected)


PER_CLASS = (wb.ClassConditionalLAC(0.9),)


def in_another_order(test: wb.LogitTable, order: np.ndarray) -> wb.LogitTable:
    names = tuple(test.class_names[j] for j in order)
    return wb.LogitTable(test.scores[:, order], np.argsort(order)[test.labels], class_names=names)


@pytest.mark.parametrize("rule", PER_CLASS, ids=lambda rule: type(rule).__name__)
def test_what_is_fitted_per_class_follows_the_names_of_the_columns(rule):
    val, test = table(2000, 1), table(500, 2)
    order = np.random.default_rng(3).permutation(12)
    fitted = rule.fit(val)
    assert np.array_equal(fitted.sets(in_another_order(test, order)).matrix(), fitted.sets(test).matrix()[:, order])


@pytest.mark.parametrize("rule", PER_CLASS, ids=lambda rule: type(rule).__name__)
def test_other_classes_than_those_fitted_are_refused(rule):
    val, test = table(2000, 1), table(50, 2)
    others = wb.LogitTable(test.scores, test.labels, class_names=("oak", *test.class_names[1:]))
    with pytest.raises(ValueError, match="other classes than those of this table: oak is on one side only"):
        rule.fit(val).sets(others)


def test_vector_scaling_follows_the_names_of_the_columns():
    val, test = table(1000, 1, 5), table(200, 2, 5)
    order = np.array([3, 1, 4, 0, 2])
    fitted = wb.VectorScaling().fit(val)
    assert np.array_equal(fitted(in_another_order(test, order)).scores, fitted(test).scores[:, order])
    others = wb.LogitTable(test.scores, test.labels, class_names=("oak", *test.class_names[1:]))
    with pytest.raises(ValueError, match="other classes"):
        fitted(others)
