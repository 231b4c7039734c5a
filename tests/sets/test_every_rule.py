"""What is true of every rule, and the promises of the conformal ones."""

from __future__ import annotations

import dataclasses
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import workbench as wb
from workbench.exact_arithmetic import exact
from workbench.sets import RULES, ConformalRule
from workbench.sets.conformal import rows_needed
from workbench.sets.row_draws import row_draws
from workbench.sets.scores import UNIT

PROMISING = tuple(rule for rule in RULES if issubclass(rule, ConformalRule))
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

rng = np.random.default_rng(0)


def tables(
    n: int = 400, n_classes: int = 8, seed: int = 0, dtype: str = "float64"
) -> tuple[wb.LogitTable, wb.LogitTable]:
    """Rows to fit on and rows to judge, from one law: labels are drawn from the softmax of the scores."""
    generator = np.random.default_rng(seed)
    scores = generator.normal(size=(2 * n, n_classes)) * 2
    p = np.exp(scores)
    p /= p.sum(1, keepdims=True)
    labels = (p.cumsum(1) < generator.random((2 * n, 1))).sum(1)
    both = wb.LogitTable(scores.astype(dtype), labels, **known(2 * n, n_classes))
    return both.rows(slice(n)), both.rows(slice(n, None))


def known(n: int, n_classes: int) -> dict:
    """All that some rule may want to know of a table."""
    generator = np.random.default_rng(1)
    return {
        "class_counts": np.arange(1, n_classes + 1) * 10,
        "groups": [f"genus {j // 2}" for j in range(n_classes)],
        "attributes": {"weight": np.ones(n), "ratio": generator.uniform(0.5, 2, n), "object": np.arange(n)},
        "votes": generator.multinomial(5, np.ones(n_classes) / n_classes, n),
    }


def with_all(table: wb.LogitTable) -> wb.LogitTable:
    """The table with all that some rule may want to know."""
    return dataclasses.replace(table, **known(table.n, table.n_classes))


def many_label_tables() -> tuple[wb.LogitTable, wb.LogitTable]:
    scores = rng.normal(size=(300, 6)) * 2
    labels = rng.random((300, 6)) < 1 / (1 + np.exp(-scores))
    labels[::10] = False  # rows without a label
    both = wb.LogitTable(scores, labels, link="sigmoid", **known(300, 6))
    return both.rows(slice(150)), both.rows(slice(150, None))


def threshold(fitted) -> np.ndarray:
    """What a rule learned, as an array to compare; 0 for a rule that learns nothing."""
    return np.asarray(0 if fitted.threshold is None else fitted.threshold, dtype=float)


def at_every_end(rule: type) -> list:
    """The rule with each knob at its ends, the others at their defaults."""
    return [rule(), *(rule(**{name: end}) for name, knob in rule.knobs().items() for end in knob.ends())]


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_gives_valid_sets_at_both_ends_of_every_knob(kind):
    val, test = tables()
    for rule in at_every_end(kind):
        sets = rule.fit(val)(test)
        assert sets.rule.rule == rule
        assert sets.sizes.min() >= min(rule.min_size, test.n_classes)
        assert sets.sizes.max() <= test.n_classes
        matrix = sets.matrix()
        assert np.array_equal(matrix.sum(1), sets.sizes)
        assert np.array_equal(matrix[np.arange(test.n), test.labels], sets.hits)


@pytest.mark.parametrize("kind", RULES)
def test_no_bit_of_a_set_depends_on_the_block_size(kind, monkeypatch):
    val, test = tables(dtype="float32")
    expected_fit = kind().fit(val)
    expected = expected_fit(test).matrix()
    for rows in (1, 7, 333):
        monkeypatch.setattr(wb.LogitTable, "spans", lambda self, _=None, rows=rows: _spans(self.n, rows))
        fitted = kind().fit(val)
        assert np.array_equal(threshold(fitted), threshold(expected_fit))
        assert np.array_equal(fitted(test).matrix(), expected)


def _spans(n: int, rows: int):
    return (slice(start, min(start + rows, n)) for start in range(0, n, rows))


@pytest.mark.parametrize("kind", RULES)
def test_rules_do_not_care_about_the_order_of_the_rows(kind):
    val, test = tables()
    order = rng.permutation(test.n)
    fitted, shuffled = kind().fit(val), kind().fit(val.rows(rng.permutation(val.n)))
    assert np.array_equal(threshold(fitted), threshold(shuffled))
    assert np.array_equal(fitted(test).matrix()[order], fitted(test.rows(order)).matrix())


@pytest.mark.parametrize("kind", RULES)
def test_renaming_the_classes_renames_the_sets(kind):
    val, test = tables()
    order = rng.permutation(test.n_classes)
    place = np.argsort(order)

    def renamed(table: wb.LogitTable) -> wb.LogitTable:
        given = known(table.n, table.n_classes)
        given |= {"class_counts": given["class_counts"][order], "groups": [given["groups"][j] for j in order]}
        return wb.LogitTable(table.scores[:, order], place[table.labels], **given | {"votes": table.votes[:, order]})

    # A sum of eight exponentials may round differently in another order, so compare thresholds loosely and sets exactly.
    one, other = kind().fit(val), kind().fit(renamed(val))
    expected = threshold(one)[order] if threshold(one).ndim else threshold(one)
    assert kind is wb.VoteCalibrated or np.allclose(expected, threshold(other), atol=1e-12)
    disagreeing = one(test).matrix()[:, order] != other(renamed(test)).matrix()
    if kind is not wb.VoteCalibrated:  # votes are drawn in the order of the classes
        assert np.count_nonzero(disagreeing) <= 1  # a class exactly on the threshold


@pytest.mark.parametrize("kind", RULES)
@pytest.mark.parametrize(
    "table",
    [
        wb.LogitTable(np.array([[0.0, 2.0, 1.0]]), [1]),  # one row
        wb.LogitTable(np.zeros((3, 1)), [0, 0, 0]),  # one class
        wb.LogitTable(np.zeros((4, 5)), [0, 1, 2, 3]),  # all ties, one class absent
        wb.LogitTable(rng.normal(size=(7, 4)).astype("float16"), [0, 0, 0, 0, 0, 0, 1]),  # absent classes, float16
        wb.LogitTable(rng.normal(size=(6, 4)) * 1e4, [3, 3, 0, 0, 1, 1]),  # probabilities of exactly 0 and 1
    ],
    ids=["one row", "one class", "all ties", "absent classes", "certain"],
)
def test_odd_tables_pass_through_every_rule(kind, table):
    table = with_all(table)
    sets = kind(min_size=1).fit(table)(table)
    assert (sets.sizes >= 1).all()
    assert (sets.sizes <= table.n_classes).all()
    assert len(sets.hits) == table.n


@pytest.mark.filterwarnings("ignore:.*have no label")
@pytest.mark.parametrize("kind", RULES)
def test_many_labels_and_rows_without_a_label_pass_through_every_rule(kind):
    val, test = many_label_tables()
    sets = kind().fit(val)(test)
    matrix = sets.matrix()
    assert np.array_equal(sets.labelled, test.labels.any(1))
    assert np.array_equal(sets.hits, (matrix | ~test.labels).all(1) & sets.labelled)
    assert np.array_equal(sets.recalled, (matrix & test.labels).sum(1))


@pytest.mark.parametrize("kind", RULES)
def test_a_rule_is_fitted_on_a_table_and_gives_the_sets_of_one(kind):
    val, _ = tables()
    fitted = kind().fit(val)
    for other in (val.scores, "val.npz", None):
        with pytest.raises(TypeError, match="expected a LogitTable"):
            kind().fit(other)
        with pytest.raises(TypeError, match="expected a LogitTable"):
            fitted(other)


@pytest.mark.parametrize("kind", PROMISING)
def test_a_promise_needs_labels(kind):
    val, _ = tables()
    with pytest.raises(ValueError, match="no labels"):
        kind().fit(wb.LogitTable(val.scores, **known(val.n, val.n_classes)))


@pytest.mark.parametrize("kind", PROMISING)
def test_a_promise_fitted_on_rows_that_chose_the_model_warns(kind):
    val, test = tables()
    stopped = dataclasses.replace(val, chose_model=True)
    with pytest.warns(UserWarning, match="chose nothing"):
        kind().fit(stopped)
    with pytest.warns(UserWarning, match="chose nothing"):
        kind().fit(stopped.split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wb.LAC().fit(test)


@pytest.mark.parametrize("kind", PROMISING)
def test_other_confidences_follow_from_one_fit(kind):
    val, test = tables()
    for confidence in (0.6, 0.9, 0.95):
        once, again = kind(confidence=0.8).fit(val).at(confidence), kind(confidence=confidence).fit(val)
        assert once.rule == again.rule
        assert np.array_equal(once.threshold, again.threshold)
        assert np.array_equal(once(test).matrix(), again(test).matrix())


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), confidence=st.floats(0.05, 0.95).map(lambda c: round(c, 2)), more=st.floats(0, 0.04))
def test_sets_are_nested_in_the_confidence(seed, confidence, more):
    val, test = tables(40, 5, seed)
    for kind in (wb.LAC, wb.APS, wb.RAPS, wb.ClassConditionalLAC, wb.PointwiseError):
        small = kind(confidence=confidence).fit(val).sets(test).matrix()
        large = kind(confidence=confidence + more).fit(val).sets(test).matrix()
        assert not (small & ~large).any()


def test_the_threshold_of_LAC_is_the_kth_largest_probability_of_the_label():
    val, _ = tables(99)
    falling = np.sort(val.probabilities()[np.arange(99), val.labels])[::-1]
    assert math.ceil(100 * 0.55) == 56  # in floating point: one row too many
    for confidence in np.arange(1, 99) / 100:
        k = math.ceil(100 * exact(confidence))
        assert wb.LAC(confidence).fit(val).threshold == falling[k - 1]


def test_the_confidence_at_a_threshold_is_the_largest_that_it_keeps():
    val, _ = tables(dtype="float32")
    fitted = wb.LAC().fit(val)
    labels = val.probabilities()[np.arange(val.n), val.labels]
    for threshold in (0.01, 0.2, float(labels[7]), 0.9):
        kept = fitted.confidence_at(threshold)
        assert kept == np.count_nonzero(labels >= threshold) / (val.n + 1)
        assert fitted.at(kept - 1e-9).threshold >= threshold > fitted.at(kept + 1e-9).threshold
    for confidence in (0.5, 0.9, 0.99):
        assert fitted.confidence_at(fitted.at(confidence).threshold) >= confidence
    with pytest.raises(ValueError, match="fit LAC"):
        wb.APS().fit(val).confidence_at(0.5)


@pytest.mark.parametrize("kind", [wb.LAC, wb.APS, wb.RAPS])
def test_too_few_rows_for_the_promise_give_every_class_and_a_warning(kind):
    val, test = tables(8)
    with pytest.warns(UserWarning, match="needs 9 rows to fit on and there are 8"):
        fitted = kind(confidence=0.9).fit(val)
    assert (fitted(test).sizes == test.n_classes).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kind(confidence=0.9).fit(tables(9)[0])


def test_rare_classes_are_in_every_class_conditional_set_and_a_warning_names_them():
    labels = np.array([0] * 30 + [1] * 5)
    val = wb.LogitTable(rng.normal(size=(35, 3)), labels, class_names=["oak", "elm", "fir"])
    with pytest.warns(UserWarning, match=r"2 of 3 classes \(elm, fir\) have fewer than 9 rows"):
        fitted = wb.ClassConditionalLAC(0.9).fit(val)
    assert fitted.threshold.shape == (3,)
    assert fitted.threshold[0] > 0
    assert fitted.threshold[1:].tolist() == [0, 0]
    assert wb.ClassConditionalLAC(0.9).fit(val).sets(val).matrix()[:, 1:].all()


def test_rows_needed_is_the_smallest_number_that_can_keep_the_promise():
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.99):
        needed = rows_needed(confidence)
        assert math.ceil((needed + 1) * exact(confidence)) <= needed
        assert math.ceil(needed * exact(confidence)) > needed - 1


def shares(rule, table: wb.LogitTable) -> np.ndarray:
    """The share of every row: drawn from its scores, or 1."""
    return row_draws(table.scores, rule.seed) if rule.randomized else np.ones(table.n)


def brute_force_scores(rule, probabilities: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The score of every class by its definition."""
    at_least = probabilities[:, None, :] >= probabilities[:, :, None]  # (n, class, other)
    tied = probabilities[:, None, :] == probabilities[:, :, None]
    scores = ((at_least - draws[:, None, None] * tied) * probabilities[:, None, :]).sum(-1)
    if isinstance(rule, wb.RAPS):
        scores = scores + rule.penalty * np.maximum(at_least.sum(-1) - rule.free_rank, 0)
    return scores


@pytest.mark.parametrize(
    "rule",
    [
        wb.APS(0.8, randomized=False),
        wb.APS(0.8, seed=3),
        wb.RAPS(0.8, penalty=0.05, free_rank=2, randomized=False),
        wb.RAPS(0.8, penalty=0.2, free_rank=1, seed=5),
    ],
)
@pytest.mark.parametrize("ties", [False, True])
def test_adaptive_sets_are_those_of_the_definition(rule, ties):
    val, test = tables(150, 90)  # more classes than are looked at first
    if ties:
        val, test = (wb.LogitTable(np.round(table.scores), table.labels) for table in (val, test))
    scores = brute_force_scores(rule, val.probabilities(), shares(rule, val))
    k = math.ceil((val.n + 1) * exact(rule.confidence))
    worst = np.sort(scores[np.arange(val.n), val.labels])[k - 1]
    fitted = rule.fit(val)
    assert fitted.threshold == pytest.approx(worst, abs=200 * UNIT)
    expected = brute_force_scores(rule, test.probabilities(), shares(rule, test))
    certain = np.abs(expected - worst) > 1e-8
    assert np.array_equal(fitted(test).matrix()[certain], (expected <= worst)[certain])


def test_a_row_that_set_the_threshold_has_its_own_label_in_its_set():
    # Fitting and predicting sum the same masses in different orders; whole units make the sums equal to the bit.
    val, _ = tables(200, 300, dtype="float32")
    for confidence in (0.5, 0.8, 0.95):
        fitted = wb.APS(confidence).fit(val)
        assert fitted.sets(val).hits.sum() == math.ceil(201 * exact(confidence))


@pytest.mark.parametrize("rule", [wb.LAC(0.8), wb.APS(0.8), wb.RAPS(0.8, penalty=0.02, free_rank=1)])
def test_conformal_coverage_follows_its_exact_beta_binomial_law(rule):
    """Over fresh splits the number of covered rows is Beta-Binomial(n_test, k, n + 1 − k) when scores do not tie."""
    n_fit, n_judge, n_splits = 30, 40, 400
    covered = []
    for seed in range(n_splits):
        val, test = tables(max(n_fit, n_judge), 5, 10_000 + seed)
        covered.append(rule.fit(val.rows(slice(n_fit))).sets(test.rows(slice(n_judge))).hits.sum())
    k = math.ceil((n_fit + 1) * exact(rule.confidence))
    law = stats.betabinom(n_judge, k, n_fit + 1 - k)
    edges = law.ppf([0, 0.2, 0.4, 0.6, 0.8, 1]).astype(int)
    observed = np.histogram(covered, [edges[0], *(edges[1:-1] + 1), n_judge + 1])[0]
    expected = np.diff([0, *law.cdf(edges[1:-1]), 1]) * n_splits
    assert stats.chisquare(observed, expected).pvalue > 1e-3
    assert abs(np.mean(covered) / n_judge - k / (n_fit + 1)) < 0.015


def test_class_conditional_sets_keep_the_promise_for_every_class():
    val, test = tables(6000, 4)
    sets = wb.ClassConditionalLAC(0.9).fit(val)(test)
    assert (np.abs(wb.metrics.class_accuracy(sets) - 0.9) < 0.03).all()


def test_pointwise_error_gives_the_smallest_set_with_the_mass():
    _, test = tables(60, 7)
    falling = -np.sort(-test.probabilities(), axis=1)
    for confidence in (0.5, 0.9, 0.99):
        sets = wb.PointwiseError(confidence).fit(test)(test)
        mass = np.cumsum(falling, axis=1)
        assert np.array_equal(sets.sizes, 1 + (mass < confidence).sum(1))
        assert (sets.matrix() * test.probabilities()).sum(1).min() >= confidence
    exactly = wb.LogitTable.from_probabilities([[0.5, 0.4, 0.1], [0.25] * 2 + [0.5]])
    assert wb.PointwiseError(0.9).fit(exactly)(exactly).sizes.tolist() == [2, 3]
    assert wb.PointwiseError(1).fit(exactly)(exactly).sizes.tolist() == [3, 3]


def test_of_all_one_threshold_rules_LAC_has_the_smallest_sets_that_keep_the_promise():
    val, test = tables(4000, 10)
    sizes = {kind: kind(confidence=0.9).fit(val)(test).sizes.mean() for kind in (wb.LAC, wb.APS)}
    assert sizes[wb.LAC] < sizes[wb.APS]


@pytest.mark.parametrize("kind", RULES)
def test_every_knob_says_what_is_allowed(kind):
    for name, knob in kind.knobs().items():
        if knob.kind == "switch":
            continue
        with pytest.raises(ValueError if knob.numeric else TypeError, match=f"{kind.__name__}: {name}"):
            kind(**{name: -1})


@pytest.mark.parametrize("kind", RULES)
def test_every_rule_names_its_formulation(kind):
    errors = {"point-wise error", "average error", "macro error", "average risk"}
    assert kind.formulation in {"point-wise size", "average size", *errors}
    assert kind.title
    assert kind.__doc__
    assert next(iter(kind.knobs())) in ("K", "threshold", "confidence", "level")


def test_confidence_1_is_every_class_whatever_the_rows():
    table = wb.LogitTable(rng.normal(size=(50, 4)), rng.integers(0, 4, 50))
    with pytest.warns(UserWarning, match="confidence 1 is kept by no number of rows"):
        assert (wb.LAC(1.0).fit(table).sets(table).sizes == 4).all()


def test_at_a_threshold_of_one_APS_returns_all_classes_whatever_rounding_says():
    val = wb.LogitTable(np.tile([50.0] + [0.0] * 9, (9, 1)), [1] * 9)
    rule = wb.APS(confidence=0.5, randomized=False).fit(val)
    assert rule.threshold == pytest.approx(1)
    p = np.random.default_rng(0).dirichlet(np.ones(10), 2000)
    for dtype in (np.float32, np.float64):
        test = wb.LogitTable(np.log(p).astype(dtype))
        assert (rule.sets(test).sizes == 10).all()
