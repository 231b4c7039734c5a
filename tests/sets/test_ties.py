"""Equal probabilities and exact zeros: classes go by probability, then by score, then by index; zeros stay out of sets."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.exact_arithmetic import classes_of_rows
from workbench.sets import RULES, ConformalRule
from workbench.sets.label_ranks import label_ranks
from workbench.sets.thresholds import cut_at_mean_size, threshold_at_mean_size
from workbench.tables.ordering import falling_order, likeliest, most_probable
from workbench.training.scoring import validated

rng = np.random.default_rng(0)
LINKS = ("softmax", "sigmoid", "quasibinary", "identity", "sparsemax")


@st.composite
def tables(draw, links: tuple[str, ...] = LINKS, labels: bool = True) -> wb.LogitTable:
    """Small tables in which probabilities often tie, and often are exactly 0, whatever the link and the type."""
    n, n_classes, link = draw(st.integers(1, 10)), draw(st.integers(2, 7)), draw(st.sampled_from(links))
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    scores = generator.integers(-3, 3, (n, n_classes)) * draw(st.sampled_from([0.01, 1.0, 40.0, 1000.0]))
    if link == "quasibinary":
        scores = np.clip(scores, -1000, 50)  # a q of 10^300 is no mass that can be summed
    if link == "identity":
        scores = generator.multinomial(4, np.full(n_classes, 1 / n_classes), n) / 4
    many = link in ("sigmoid", "quasibinary") and labels
    several = generator.random((n, n_classes)) < 0.3
    several[0, 0] = True  # a promise needs a label
    return wb.LogitTable(
        scores.astype(draw(st.sampled_from(["float16", "float32", "float64"]))),
        several if many else generator.integers(0, n_classes, n),
        link=link,
        link_constant=0.5 if link == "quasibinary" else None,
    )


def order(table: wb.LogitTable) -> list[list[int]]:
    """The classes of each row by the definition."""
    p, s = table.probabilities(), table.scores
    return [sorted(range(table.n_classes), key=lambda j, i=i: (-p[i, j], -s[i, j], j)) for i in range(table.n)]


def quiet_fit(rule, table: wb.LogitTable):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rule.fit(table)


def test_top_k_of_sparsemax_goes_by_score_where_probabilities_are_zero():
    table = wb.LogitTable([[5, 0, 1, 2, 4.9]], [3], link="sparsemax")
    assert wb.TopK(3).fit(table)(table).members(0)[0].tolist() == [0, 4, 3]
    assert wb.metrics.top_k_accuracy(table, K=3) == 1
    assert wb.metrics.top_k_accuracy(table, K=2) == 0


def test_average_k_of_sparsemax_leaves_zeros_out_and_says_how_large_the_sets_are():
    scores = rng.normal(size=(200, 26)) * 3
    table = wb.LogitTable(scores, scores.argmax(1), link="sparsemax")
    n_positive = np.count_nonzero(table.probabilities())
    assert n_positive < 2 * table.n
    with pytest.warns(
        UserWarning, match=rf"sets hold {n_positive / 200:.4g} classes .* not K = 2: .*with_link\('softmax'\)"
    ):
        fitted = wb.AverageK(2).fit(table)
    sets = fitted.sets(table)
    assert sets.sizes.sum() == n_positive
    assert fitted.threshold == table.probabilities()[table.probabilities() > 0].min()


def test_scores_that_make_softmax_underflow_give_no_sets_of_all_classes_and_say_what_to_do():
    table = wb.LogitTable((rng.normal(size=(50, 100)) * 1000).astype("float32"), rng.integers(0, 100, 50))
    with pytest.warns(UserWarning, match=r"not K = 5: only .* above 0.*TemperatureScaling.*float64"):
        sets = wb.AverageK(5).fit(table).sets(table)
    assert sets.sizes.max() < 5
    with pytest.warns(
        UserWarning, match=r"the label has probability 0 in \d+ of 50 rows, more than the promise lets sets miss"
    ):
        assert wb.LAC(0.9).fit(table).sets(table).hits.all()  # the promise is kept, at the price of every class


def test_sigmoids_that_saturate_at_one_enter_together_and_say_so():
    table = wb.LogitTable(np.full((10, 4), 60.0), rng.random((10, 4)) < 0.5, link="sigmoid")
    with pytest.warns(UserWarning, match=r"sets hold 4 classes on average, not K = 2: .* round to 0 or 1"):
        wb.AverageK(2).fit(table)


def test_the_monitor_of_training_does_not_take_zeros_for_hits():
    scores = rng.normal(size=(300, 26)).astype("float32") * 3
    val = wb.LogitTable(scores, rng.integers(0, 26, 300), link="sparsemax")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # an epoch says its mean size in the history, not in a warning
        found = validated(val, 5)
    assert found["val_mean_size"] == np.count_nonzero(val.probabilities()) / 300
    assert found["val_average_K_accuracy"] == (val.probabilities()[np.arange(300), val.labels] > 0).mean()


def test_the_likeliest_class_of_saturated_sigmoids_is_that_of_the_highest_score():
    val = wb.LogitTable(np.array([[90.0, 95.0, 99.0]]), [2], link="sigmoid")
    assert validated(val, 1)["val_accuracy"] == 1
    assert wb.metrics.top_k_accuracy(val) == 1
    assert wb.metrics.expected_calibration_error(val) == 0


def test_of_equal_probabilities_and_scores_the_first_class_is_taken():
    equal = np.array([[0.25, 0.25, 0.25, 0.25]])
    assert most_probable(equal, equal, 2).tolist() == [[True, True, False, False]]
    p = np.array([[0.1, 0.2], [0.3, 0.3]])
    assert most_probable(p, p, np.array([0, 1])).tolist() == [[False] * 2, [True, False]]
    assert most_probable(p, np.array([[1.0, 2.0], [1.0, 2.0]]), np.array([0, 1])).tolist() == [
        [False] * 2,
        [False, True],
    ]


@settings(max_examples=80, deadline=None)
@given(table=tables())
def test_every_consumer_orders_classes_by_probability_then_score_then_index(table):
    expected, p = order(table), table.probabilities()
    assert falling_order(p, table.scores).tolist() == expected
    assert likeliest(p, table.scores, table.link).tolist() == [row[0] for row in expected]
    ranks = [
        max((row.index(j) + 1 for j in np.flatnonzero(labels)), default=0) if np.ndim(labels) else row.index(labels) + 1
        for row, labels in zip(expected, table.labels, strict=True)
    ]
    assert label_ranks(p, table.scores, table.labels).tolist() == ranks
    for K_max in (1, 20):
        assert wb.SetIndex(table, K_max=K_max).label_ranks.tolist() == ranks
    for K in range(1, table.n_classes + 1):
        sets = quiet_fit(wb.TopK(K), table).sets(table)
        assert [members.tolist() for members in sets] == [row[:K] for row in expected]
        assert [sets.members(i)[0].tolist() for i in range(table.n)] == [row[:K] for row in expected]
        assert sets.hits.tolist() == [0 < rank <= K for rank in ranks]  # 0: a row without a label
        of_labelled = [rank <= K for rank in ranks if rank > 0]
        share = np.mean(of_labelled) if of_labelled else np.nan
        assert wb.metrics.top_k_accuracy(table, K=K) == pytest.approx(share, nan_ok=True)
    filled = quiet_fit(wb.Threshold(2.0, min_size=3), table).sets(table)
    at_least = [max(np.count_nonzero(row >= 2), min(3, table.n_classes)) for row in p]
    assert [members.tolist() for members in filled] == [row[:k] for row, k in zip(expected, at_least, strict=True)]


@settings(max_examples=120, deadline=None)
@given(table=tables(), K=st.floats(1, 7).map(lambda K: round(K, 1)))
def test_the_index_is_the_rule_for_any_K_and_no_zero_enters_by_a_tie(table, K):
    p = table.probabilities()
    m = min(classes_of_rows(K, table.n), p.size)
    fitted = quiet_fit(wb.AverageK(K), table)
    sets = fitted.sets(table)
    falling = np.sort(p.ravel())[::-1]
    if m == p.size:
        assert fitted.threshold == 0
    else:
        assert not (sets.matrix() & (p == 0)).any()
        assert (
            sets.sizes.sum()
            == np.count_nonzero(falling >= falling[m - 1]) - np.count_nonzero(falling[m - 1] == 0) * (p == 0).sum()
        )
    assert cut_at_mean_size(table, K) == (fitted.threshold, sets.sizes.sum())
    for K_max in (1, 2.5, 20):
        index = wb.SetIndex(table, K_max=K_max, step=0.5)
        assert index.threshold(K) == fitted.threshold
        assert index.mean_size(fitted.threshold) == sets.sizes.mean()
        assert np.array_equal(index.sizes(K=K), sets.sizes)
        assert np.array_equal(index.hits(K=K), sets.hits)
        assert np.array_equal(index.size_histogram(K=K), np.bincount(sets.sizes))
        assert np.array_equal(index.class_accuracy(K=K), wb.metrics.class_accuracy(sets), equal_nan=True)
    index = wb.SetIndex(table, step=0.5)
    compact, curve, efficiency = index.compact(), index.curve(), index.efficiency()
    for place, K in enumerate(index.K_values):
        sets = quiet_fit(wb.AverageK(K), table).sets(table)
        assert compact["mean_size"][place] == curve["mean_size"][place] == sets.sizes.mean()
        accuracy = pytest.approx(wb.metrics.accuracy(sets), nan_ok=True)
        assert compact["accuracy"][place] == accuracy
        assert curve["accuracy"][place] == accuracy
        assert efficiency["average_k"][place] == accuracy
        assert np.array_equal(
            compact["size_histogram"][place][: table.n_classes + 1].nonzero()[0], np.unique(sets.sizes)
        )


@settings(max_examples=80, deadline=None)
@given(table=tables(), K=st.floats(1, 6).map(lambda K: round(K, 1)))
def test_a_fit_whose_mean_size_misses_K_by_ties_says_so_and_no_other(table, K):
    if K >= table.n_classes:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sets = wb.AverageK(K).fit(table).sets(table)
    missed = abs(sets.sizes.sum() - classes_of_rows(K, table.n)) * 100 > table.n
    assert len(caught) == missed
    assert all(f"hold {sets.sizes.mean():.4g} classes on average, not K = {K:g}" in str(one.message) for one in caught)


PLAIN = wb.LogitTable([[0.0, 1.0]], [1])
ANY_TABLE = [kind for kind in RULES if kind is not wb.TopK and not kind().missing(PLAIN)]


@settings(max_examples=80, deadline=None)
@given(table=tables(), kind=st.sampled_from(ANY_TABLE))
@example(table=wb.LogitTable(np.array([[2000, 0]], np.float16), [0]), kind=wb.Backward)
def test_a_class_of_probability_zero_is_in_a_set_only_where_a_promise_is_kept_by_nothing_else(table, kind):
    fitted = quiet_fit(kind(), table)
    inside = fitted.sets(table).matrix() & (table.probabilities() == 0)
    everything = fitted.threshold is not None and np.isin(fitted.threshold, (0, np.inf))
    if kind in (wb.AverageK, wb.Backward):  # as many classes as there are, or more
        everything = kind().K >= table.n_classes or everything
    else:
        assert issubclass(kind, (ConformalRule, wb.RiskControl)) or not np.any(everything)
    assert not (inside & ~np.asarray(everything)).any()


def test_an_explicit_threshold_of_zero_holds_every_class():
    table = wb.LogitTable([[5.0, 0.0, 1.0]], [1], link="sparsemax")
    assert wb.Threshold(0).fit(table)(table).sizes.tolist() == [3]
    assert wb.SetIndex(table).sizes(threshold=0).tolist() == [3]


@pytest.mark.parametrize("link", ["sparsemax", "softmax"])
def test_thresholds_that_are_counted_in_several_passes_leave_zeros_out_too(link, monkeypatch):
    table = wb.LogitTable((rng.normal(size=(40, 12)) * 200).astype("float32"), link=link)
    expected = [cut_at_mean_size(table, K) for K in (1, 1.4, 2, 6, 11)]
    monkeypatch.setattr("workbench.sets.order_statistics.EXACT", 0)
    monkeypatch.setattr("workbench.sets.order_statistics.BINS", 16)
    assert [cut_at_mean_size(table, K) for K in (1, 1.4, 2, 6, 11)] == expected
    assert expected[-1][1] == np.count_nonzero(table.probabilities())


def test_a_table_of_nothing_but_zeros_has_empty_sets_only():
    table = wb.LogitTable(np.zeros((5, 4), np.float32), np.zeros((5, 4), bool), link="identity")
    threshold = threshold_at_mean_size(table, 2)
    assert 0 < threshold < 1e-40
    assert wb.SetIndex(table).threshold(2) == threshold
    assert (wb.SetIndex(table).sizes(K=2) == 0).all()


def test_mass_that_no_class_adds_to_is_not_looked_for_among_zeros():
    table = wb.LogitTable(np.array([[-900.0, -1.0, -900.0]]), link="sigmoid")
    assert wb.PointwiseError(0.9).fit(table)(table).members(0)[0].tolist() == [1]


@pytest.mark.parametrize("kind", [wb.APS, wb.RAPS, wb.LAC])
def test_adaptive_sets_leave_zeros_out_where_the_labels_never_were_one(kind):
    val = wb.LogitTable.from_probabilities([[0.5, 0.5] + [0.0] * 8] * 9, [1] * 9)
    knobs = {} if kind is wb.LAC else {"randomized": False}
    fitted = kind(confidence=0.5, **knobs).fit(val)  # APS: the mass up to the label is 1, and so is that up to any zero
    assert fitted(val).sizes.tolist() == [2] * 9


@pytest.mark.parametrize("kind", [wb.LAC, wb.APS, wb.RAPS, wb.ClassConditionalLAC])
def test_a_promise_holds_where_labels_have_probability_zero(kind):
    scores = rng.normal(size=(4000, 3)) * 2
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(1)
    val, test = wb.LogitTable(scores, labels, link="sparsemax").split()
    assert (val.probabilities()[np.arange(val.n), val.labels] == 0).mean() > 0.02
    for confidence in (0.8, 0.99):
        sets = quiet_fit(kind(confidence=confidence), val).sets(test)
        assert sets.hits.mean() > confidence - 0.03
    with pytest.warns(UserWarning, match=r"the label has probability 0 in \d+ of 2000 rows"):
        kind(confidence=0.99).fit(val)


@pytest.mark.parametrize("kind", [wb.LAC, wb.APS, wb.RAPS])
def test_rows_without_a_label_are_not_taken_for_labels_of_probability_zero(kind):
    labels = np.zeros((100, 4), bool)
    labels[:5, 0] = True
    table = wb.LogitTable(rng.normal(size=(100, 4)), labels, link="sigmoid")
    with pytest.warns(UserWarning, match="have no label and were left out") as said:
        kind(confidence=0.5).fit(table)
    assert len(said) == 1


def test_the_bayes_sets_of_a_posterior_with_zeros_do_not_hold_them():
    table = wb.LogitTable(np.zeros((2, 4)), posterior=[[0.5, 0.5, 0, 0], [1, 0, 0, 0]])
    for rule in (wb.LAC(1.0), wb.PointwiseError(1.0)):
        assert wb.bayes.sets(table, rule).sizes.tolist() == [2, 1]
    assert wb.bayes.top_k_against_average_k(table, [3])["heterogeneity"].tolist() == [0.5]
    with pytest.warns(UserWarning, match="sets hold 1.5 classes on average, not K = 3"):
        assert wb.bayes.sets(table, wb.AverageK(3)).sizes.tolist() == [2, 1]
