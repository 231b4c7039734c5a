"""Rows without a label: unknown (−1) counts nowhere; "none of these" (all False) is a truth that a set cannot contain."""

from __future__ import annotations

import math

import numpy as np
import pytest

import workbench as wb
from workbench.calibration import of_one_class
from workbench.metrics import METRICS
from workbench.metrics.rows import RowFilter, listed
from workbench.tables.groups import rows_by
from workbench.training.scoring import validated

M = wb.metrics
rng = np.random.default_rng(3)
N, L = 240, 6
UNLABELLED = np.arange(N) % 4 == 1
FIELDS = {"class_counts": [3, 30, 300] * 2, "groups": list("aabbcc"), "attributes": {"organ": ["leaf", "fruit"] * 120}}


def one_label(without: np.ndarray = UNLABELLED) -> wb.LogitTable:
    scores = np.random.default_rng(0).normal(size=(N, L)) * 2
    labels = np.where(without, -1, (scores + np.random.default_rng(1).normal(size=(N, L))).argmax(1))
    return wb.LogitTable(scores, labels, **FIELDS)


def many_labels(without: np.ndarray = UNLABELLED) -> wb.LogitTable:
    scores = np.random.default_rng(0).normal(size=(N, L)) * 2
    labels = np.random.default_rng(1).random((N, L)) < 1 / (1 + np.exp(-scores))
    labels[labels.sum(1) == 0, 0] = True
    labels[without] = False
    return wb.LogitTable(scores, labels, link="sigmoid", **FIELDS)


KINDS = pytest.mark.parametrize("made", [one_label, many_labels])
NEED_LABELS = [metric for metric in METRICS if metric.labels != "none"]


def measured(metric: M.Metric, table: wb.LogitTable) -> dict[str, float]:
    sets = wb.AverageK(2).fit(one_label().with_link(table.link)).sets(table)
    subject = {"sets": (sets,), "table": (table,), "grouped sets": (sets, "organ")}[metric.subject]
    value = metric(*subject)
    return value if isinstance(value, dict) else {"": value}


@KINDS
@pytest.mark.parametrize("metric", NEED_LABELS, ids=lambda metric: metric.name)
def test_a_metric_that_needs_labels_is_that_of_the_rows_that_have_one(made, metric):
    table = made()
    if metric.applies(table):
        assert table.labelled.tolist() == (~UNLABELLED).tolist()
        rows = ~UNLABELLED if metric.rows == "labelled" else table.known
        assert measured(metric, table) == pytest.approx(measured(metric, table.rows(rows)), nan_ok=True)


@KINDS
@pytest.mark.parametrize("metric", NEED_LABELS, ids=lambda metric: metric.name)
def test_where_no_row_has_a_label_a_metric_that_needs_one_is_nan(made, metric):
    table = made(np.ones(N, bool))
    if metric.applies(table):
        values = measured(metric, table)
        assert values
        none_is_known = metric.rows == "known" and table.many_labels and metric is not M.recall
        assert none_is_known or all(math.isnan(value) for value in values.values())


NONE = wb.LogitTable.from_probabilities([[0.9, 0.1], [0.9, 0.9]], labels=[[True, False], [False, False]])
SETS_OF_NONE = wb.Threshold(0.5).fit(NONE).sets(NONE)  # {0} and {0, 1}


@pytest.mark.parametrize("average", ["micro", "macro"])
def test_a_row_that_shows_none_of_the_classes_counts_in_f1_as_in_scikit_learn(average):
    from sklearn.metrics import f1_score

    expected = f1_score(NONE.labels, SETS_OF_NONE.matrix(), average=average, zero_division=0)
    found = {"micro": M.micro_f1, "macro": M.macro_f1}[average](SETS_OF_NONE)
    assert found == pytest.approx(expected)
    assert M.micro_f1(SETS_OF_NONE) == 0.5


def test_the_empty_set_is_the_exact_answer_for_a_row_that_shows_none():
    table = wb.LogitTable.from_probabilities([[0.9, 0.1], [0.4, 0.1], [0.9, 0.1]], labels=[[1, 0], [0, 0], [0, 0]])
    assert M.exact_match(wb.Threshold(0.5).fit(table).sets(table)) == pytest.approx(2 / 3)
    assert M.cardinality(wb.Threshold(0.5).fit(table).sets(table)) == pytest.approx(1 / 3)


def test_a_row_that_shows_none_counts_in_the_brier_score_and_the_likelihood():
    from sklearn.metrics import log_loss

    assert M.brier_score(NONE) == pytest.approx(0.82)
    parts = M.brier_decomposition(NONE)
    assert sum(parts.values()) - 2 * parts["resolution"] == pytest.approx(0.82)
    expected = 2 * log_loss(NONE.labels.ravel(), NONE.probabilities().ravel())  # summed over the two classes
    assert M.negative_log_likelihood(NONE) == pytest.approx(expected)


def test_two_fair_coins_a_row_are_perfectly_calibrated():
    labels = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 10, bool)
    table = wb.LogitTable.from_probabilities(np.full((40, 2), 0.5), labels)
    for error in (M.expected_calibration_error, M.top_k_calibration_error, M.classwise_calibration_error):
        assert error(table) == pytest.approx(0)
    frame = wb.figures.reliability(table, K=2).frame
    assert frame["count"].sum() == 80
    assert frame.loc[frame["count"] > 0, "accuracy"].item() == pytest.approx(0.5)


def test_a_row_of_many_labels_that_has_none_counts_wherever_its_set_is_compared_with_it():
    figure = wb.figures.f1_against_threshold({"mine": NONE})
    at_half = figure.frame.set_index("threshold")["micro_f1"].loc[0.5]
    (line,) = wb.comparison.zero_and_many({"mine": NONE}).to_dict("records")
    frame = wb.report(NONE, [wb.Threshold(0.5)]).set_index("metric")
    assert at_half == line["micro_f1"] == frame.loc["micro_f1", "value"] == 0.5
    assert frame.loc["micro_f1", "n"] == 2
    assert frame.loc["accuracy", "n"] == 1


def test_a_resample_of_all_rows_has_some_of_the_labelled_ones():
    table = one_label()
    sets = wb.AverageK(2).fit(table).sets(table)
    weights = np.random.default_rng(0).multinomial(N, np.full(N, 1 / N), 5).T.astype(float)
    drawn = M.accuracy.parts(sets).resampled(weights)[""]
    labelled = weights * ~UNLABELLED[:, None]
    assert drawn == pytest.approx((labelled * sets.hits[:, None]).sum(0) / labelled.sum(0))


@KINDS
def test_hits_of_rows_without_a_label_are_false_and_labelled_says_which(made):
    table = made()
    sets = wb.AverageK(2).fit(table).sets(table)
    index = wb.SetIndex(table)
    at = index.K_values.tolist().index(2)
    assert not sets.hits[UNLABELLED].any()
    assert np.array_equal(sets.labelled, ~UNLABELLED)
    assert np.array_equal(index.hits(K=2), sets.hits)
    assert index.curve()["accuracy"][at] == pytest.approx(M.accuracy(sets))
    assert (index.label_ranks == 0).tolist() == UNLABELLED.tolist()
    assert index.efficiency()["average_k"][at] == pytest.approx(M.accuracy(sets))
    assert index.efficiency()["top_k"][at] == pytest.approx(M.top_k_accuracy(table, K=2))
    compact = index.compact()
    assert compact["accuracy"][at] == pytest.approx(M.accuracy(sets))
    assert compact["class_rows"].sum() == table.positives()[0].size


@KINDS
def test_sets_of_some_rows_are_those_sets(made):
    table = made()
    sets = wb.APS(0.8).fit(table.rows(~UNLABELLED)).sets(table)
    some = sets.rows(UNLABELLED)
    assert np.array_equal(some.matrix(), sets.matrix()[UNLABELLED])
    assert np.array_equal(some.sizes, sets.sizes[UNLABELLED])


@pytest.mark.parametrize("rule", [wb.LAC, wb.APS, wb.RAPS, wb.ClassConditionalLAC, wb.Mondrian, wb.SAPS, wb.RC3P])
@KINDS
def test_a_promise_is_fitted_on_rows_with_a_label_and_says_so(made, rule):
    table = made()
    with pytest.warns(UserWarning, match="60 of 240 rows have no label and were left out"):
        fitted = rule(confidence=0.7).fit(table)
    assert len(fitted.calibration.scores) in (180, table.positives()[0].size)
    assert np.array_equal(fitted.threshold, rule(confidence=0.7).fit(table.rows(~UNLABELLED)).threshold)


@KINDS
@pytest.mark.parametrize("scaling", [wb.TemperatureScaling(), wb.VectorScaling()])
def test_scores_are_scaled_for_the_rows_whose_truth_is_known(made, scaling):
    table = made()
    fitted, expected = scaling.fit(table), scaling.fit(table.rows(table.known))
    assert np.array_equal(fitted.scale, expected.scale)
    assert fitted.after == expected.after
    if not table.many_labels:
        with pytest.raises(ValueError, match="none of the 240 rows has a label"):
            scaling.fit(made(np.ones(N, bool)))


def test_softmax_promises_every_row_a_label_so_it_is_scaled_for_the_rows_that_have_one():
    table = many_labels().with_link("softmax")
    assert np.array_equal(wb.VectorScaling().fit(table).scale, wb.VectorScaling().fit(table.rows(~UNLABELLED)).scale)


@KINDS
def test_the_table_of_one_class_has_the_rows_whose_truth_is_known_and_all_of_them_count(made):
    table = made()
    one = of_one_class(table, 2)
    n = np.count_nonzero(table.known)
    assert one.n == n
    assert one.known.all()
    frame = M.reliability_bins(one, bins=5)
    assert frame["count"].sum() == n
    assert (frame["accuracy"] * frame["count"]).sum() == pytest.approx(one.labels.sum())


@KINDS
def test_training_history_judges_the_validation_rows_that_have_a_label(made):
    table = made()
    found, expected = validated(table, 2.0), validated(table.rows(~UNLABELLED), 2.0)
    assert found["val_accuracy"] == expected["val_accuracy"]
    assert found["val_mean_size"] == pytest.approx(2)
    assert math.isnan(validated(made(np.ones(N, bool)), 2.0)["val_accuracy"])


def test_rows_without_a_label_are_a_group_of_their_own_and_no_row_of_another_class():
    table = one_label()
    for by in ("shots", "groups", "label"):
        codes, names = rows_by(table, by)
        assert names[-1] == "without a label"
        assert (codes == len(names) - 1).tolist() == UNLABELLED.tolist()
    histograms = wb.SetIndex(table).size_histogram("shots", K=2)
    assert histograms["without a label"].sum() == 60


@KINDS
def test_a_row_without_a_label_is_neither_hit_nor_missed(made):
    table = made()
    sets = wb.AverageK(2).fit(table).sets(table)
    hit, missed = RowFilter(hit=True).rows(sets), RowFilter(hit=False).rows(sets)
    assert sorted([*hit, *missed]) == np.flatnonzero(~UNLABELLED).tolist()
    frame = listed(sets, np.arange(N))
    assert frame["hit"].isna().tolist() == UNLABELLED.tolist()
    assert (frame["label"] == "").tolist() == UNLABELLED.tolist()


@KINDS
def test_the_report_counts_rows_without_a_label_beside_the_others(made):
    table = made()
    sets = wb.AverageK(2).fit(table).sets(table)
    frame = wb.report(table, rules=[sets.rule], interval=0.9, resamples=50)
    found = frame.set_index(["metric", "group"])
    inside, outside = table.rows(~UNLABELLED), table.rows(UNLABELLED)
    expected = {
        ("accuracy", ""): (sets.hits[~UNLABELLED].mean(), 180),
        ("mean_size", ""): (sets.sizes[~UNLABELLED].mean(), 180),
        ("max_confidence", ""): (M.max_confidence(inside), 180),
        ("mean_size", "without a label"): (sets.sizes[UNLABELLED].mean(), 60),
        ("empty_share", "without a label"): ((sets.sizes[UNLABELLED] == 0).mean(), 60),
        ("max_confidence", "without a label"): (M.max_confidence(outside), 60),
        ("auroc", "with against without a label"): (M.auroc(inside, outside), 240),
    }
    for line, (value, n) in expected.items():
        assert found.loc[line, "value"] == pytest.approx(value)
        assert found.loc[line, "n"] == n
        assert found.loc[line, "low"] <= value <= found.loc[line, "high"]
    everywhere = made(np.zeros(N, bool))
    assert not wb.report(everywhere, rules=[wb.TopK(2)])["group"].str.contains("without").any()


@pytest.mark.parametrize("many", [True, False])
def test_one_report_has_the_columns_of_table_ii_of_liao_and_rows_without_a_label_are_neither_right_nor_wrong(many):
    one = one_label()
    labels = np.eye(L, dtype=bool)[np.maximum(one.labels, 0)] & one.labelled[:, None]
    table = wb.LogitTable(one.scores, labels if many else one.labels)
    found = wb.report(table, [wb.TopK(1)], val=table).set_index(["metric", "group"])["value"]
    inside, outside = table.rows(~UNLABELLED), table.rows(UNLABELLED)
    right = inside.scores.argmax(1) == one.labels[~UNLABELLED]
    assert found["accuracy", ""] == pytest.approx(right.mean())  # IN accuracy
    assert found["max_confidence", "without a label"] == pytest.approx(outside.probabilities().max(1).mean())  # OUT MMC
    confidences = [side.probabilities().max(1) for side in (inside, outside)]
    pairs = np.sign(np.subtract.outer(*confidences))
    assert found["auroc", "with against without a label"] == pytest.approx((pairs + 1).mean() / 2)  # both


def test_a_table_with_rows_without_a_label_is_saved_and_read(tmp_path):
    table = wb.LogitTable(np.zeros((3, 300)), [299, -1, 0])
    read = wb.LogitTable.load(table.save(tmp_path / "table"))
    assert read.labels.tolist() == [299, -1, 0]
    assert read.key == table.key


def test_none_of_these_tells_apart_rows_with_and_without_a_label():
    table = one_label()
    assert wb.figures.none_of_these(table).kinds.keys() == {"with a label", "without a label"}


def test_the_auroc_of_quasibinary_scores_is_one_number_whoever_tells_it():
    scores = rng.normal(size=(60, 3)) * 2
    labels = np.eye(3, dtype=bool)[scores.argmax(1)] & (np.arange(60) % 3 > 0)[:, None]
    table = wb.LogitTable(scores, labels, link="quasibinary", link_constant=0.0)
    told = wb.figures.none_of_these(table).subtitle.rpartition("AU-ROC ")[2]
    expected = M.auroc(table.rows(labels.any(1)), table.rows(~labels.any(1)))
    assert (M.confidences(table) > 1).mean() > 0.5  # which would tie if q were clipped
    assert told == f"{expected:.3f}"
    assert wb.comparison.zero_and_many({"q": table})["auroc"].item() == expected
    frame = wb.report(table, rules=[wb.TopK(1)], metrics=[M.auroc])
    assert frame["value"].tolist() == [expected]
