"""What is true of every metric, and each metric against its definition written out."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pytest

import workbench as wb
from workbench.metrics import METRICS
from workbench.metrics.base import bootstrap_weights
from workbench.metrics.probability_metrics import equal_mass_bins, equal_width_bins
from workbench.metrics.reporting import FORMATS
from workbench.tables.links import softmax

M = wb.metrics
rng = np.random.default_rng(0)


def one_label(n: int = 300, n_classes: int = 12, link: str = "softmax") -> wb.LogitTable:
    scores = rng.normal(size=(n, n_classes)) * 2
    labels = rng.integers(0, n_classes - 1, n)  # the last class is absent
    scores[np.arange(n), labels] += 2
    return wb.LogitTable(
        scores,
        labels,
        link=link,
        link_constant=4.0,
        posterior=softmax(scores),
        class_counts=[3, 30, 300] * (n_classes // 3),
        groups=[f"genus {j // 3}" for j in range(n_classes)],
        attributes={"organ": rng.choice(["leaf", "fruit"], n)},
    )


def many_labels(n: int = 200, n_classes: int = 6) -> wb.LogitTable:
    scores = rng.normal(size=(n, n_classes)) * 2
    labels = rng.random((n, n_classes)) < 1 / (1 + np.exp(-scores))
    labels[:20] = False
    return wb.LogitTable(scores, labels, link="sigmoid", class_counts=np.arange(n_classes) * 30 + 1)


ONE, MANY = one_label(), many_labels()
SETS = {"one": wb.AverageK(2).fit(ONE).sets(ONE), "many": wb.Threshold(0.5).fit(MANY).sets(MANY)}


WITHOUT_INTERVAL = (
    "classwise_calibration_error",
    "brier_decomposition",
    "confidence_decomposition",
    "worst_slab_coverage",
)


def subjects(metric: M.Metric, table: wb.LogitTable, sets: wb.PredictionSets) -> tuple:
    return {
        "sets": (sets,),
        "table": (table,),
        "tables": (table, table),
        "grouped sets": (sets, np.arange(table.n) % 2),
    }[metric.subject]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_is_declared_in_full_and_stays_in_its_bounds(metric):
    assert getattr(M, metric.name) is metric
    assert metric.title
    assert metric.definition.endswith((".", ")", "$"))
    assert metric.direction in ("higher", "lower", "none")
    applied = 0
    for table, sets in ((ONE, SETS["one"]), (MANY, SETS["many"]), (one_label(link="quasibinary"), None)):
        if not metric.applies(table):
            continue
        applied += 1
        sets = wb.TopK(2).fit(table).sets(table) if sets is None else sets
        value = metric(*subjects(metric, table, sets))
        values = list(value.values()) if isinstance(value, dict) else [value]
        assert all(isinstance(number, float) for number in values)
        low, high = metric.bounds
        assert all(math.isnan(number) or low <= number <= high + 1e-12 for number in values)
    assert applied


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_every_metric_gives_an_interval_or_says_that_it_cannot(metric):
    table, sets = (MANY, SETS["many"]) if metric.labels == "many" else (ONE, SETS["one"])
    if not metric.applies(table):
        table = one_label(link="quasibinary")
    chosen = subjects(metric, table, sets)
    found = metric.interval(*chosen, resamples=60, seed=1)
    pairs = list(found.values()) if isinstance(found, dict) else [found]
    assert repr(found) == repr(metric.interval(*chosen, resamples=60, seed=1))  # the same seed, the same interval
    assert all(math.isnan(low) or low <= high for low, high in pairs)
    if metric.name in WITHOUT_INTERVAL:
        assert all(math.isnan(low) for low, _ in pairs)


# Some have no interval; gaps compare with the accuracy of the whole table; AU-ROC and the like take two tables; the share
# above 1 is for another link; along a risk-coverage curve copies of a row count at once; regret is against the best sets of
# the whole table.
NOT_RESAMPLED = {
    *(*WITHOUT_INTERVAL, "share_above_one"),
    *("coverage_gap", "classes_left_behind", "size_stratified_violation", "risk_coverage_area", "regret"),
}
RESAMPLED = [metric for metric in METRICS if metric.subject != "tables" and metric.name not in NOT_RESAMPLED]


@pytest.mark.parametrize("metric", RESAMPLED, ids=lambda metric: metric.name)
def test_a_resample_is_the_metric_of_the_table_with_rows_repeated(metric):
    table, sets = (MANY, SETS["many"]) if metric.labels == "many" else (ONE, SETS["one"])
    drawn = rng.integers(0, table.n, table.n)
    weights = np.bincount(drawn, minlength=table.n)[:, None].astype(float)
    repeated = table.rows(np.sort(drawn))
    their_sets = wb.PredictionSets.from_matrix(repeated, sets.matrix()[np.sort(drawn)], sets.rule)
    resampled = metric.parts(*subjects(metric, table, sets)).resampled(weights)
    if metric.subject == "grouped sets":
        expected = metric(their_sets, (np.arange(table.n) % 2)[np.sort(drawn)])
    else:
        expected = metric(their_sets if metric.subject == "sets" else repeated)
    expected = expected if isinstance(expected, dict) else {"": expected}
    assert {name: value[0] for name, value in resampled.items()} == pytest.approx(expected, nan_ok=True)


def test_bootstrap_weights_count_n_draws_and_come_in_chunks(monkeypatch):
    monkeypatch.setattr("workbench.metrics.base.CHUNK", 100)
    chunks = list(bootstrap_weights(30, 7, seed=0))
    assert [chunk.shape for chunk in chunks] == [(30, 3), (30, 3), (30, 1)]
    assert (np.hstack(chunks).sum(0) == 30).all()


def test_the_interval_of_a_mean_is_as_wide_as_theory_says():
    sets = SETS["one"]
    low, high = M.accuracy.interval(sets, resamples=2000)
    share = M.accuracy(sets)
    expected = 2 * 1.96 * math.sqrt(share * (1 - share) / sets.table.n)
    assert high - low == pytest.approx(expected, rel=0.1)
    assert (low + high) / 2 == pytest.approx(share, abs=0.01)


def test_accuracy_macro_and_shots_by_their_definitions():
    sets = SETS["one"]
    shares = np.array([sets.hits[ONE.labels == j].mean() if (ONE.labels == j).any() else np.nan for j in range(12)])
    assert M.accuracy(sets) == sets.hits.mean()
    assert np.allclose(M.class_accuracy(sets), shares, equal_nan=True)
    assert M.macro_accuracy(sets) == pytest.approx(np.nanmean(shares))
    assert M.shot_accuracy(sets) == pytest.approx(
        {"few": np.nanmean(shares[0::3]), "medium": np.nanmean(shares[1::3]), "many": np.nanmean(shares[2::3])}
    )
    assert math.isnan(M.shot_accuracy(sets, few=1, many=1000)["few"])  # an empty group
    assert M.count_bin_accuracy(sets)["10–49"] == pytest.approx(np.nanmean(shares[1::3]))


def test_group_accuracy_asks_for_a_relative_of_the_label():
    table = wb.LogitTable(np.eye(4)[[1, 2, 0]] * 9, [0, 0, 3], groups=["a", "a", "b", "b"])
    sets = wb.TopK(1).fit(table).sets(table)
    assert M.group_accuracy(sets) == pytest.approx(
        1 / 3
    )  # only the first answer, class 1, is of the genus of its label


def test_sizes_by_their_definitions():
    sets = SETS["one"]
    assert M.mean_size(sets) == sets.sizes.mean()
    quantiles = np.quantile(sets.sizes, [0.05, 0.5, 0.95], method="inverted_cdf")
    assert M.size_quantiles(sets) == dict(zip(("5%", "50%", "95%"), quantiles, strict=True))
    assert list(M.size_quantiles(sets, (0.07, 0.5, 0.995, 0.999, 1.0))) == ["7%", "50%", "99.5%", "99.9%", "100%"]
    assert M.empty_share(sets) == (sets.sizes == 0).mean()
    by_size = M.accuracy_by_size(sets)
    assert list(by_size) == ["0", "1", "2–3", "4–10", "11–100", "≥ 101"]
    assert by_size["2–3"] == pytest.approx(sets.hits[(sets.sizes == 2) | (sets.sizes == 3)].mean())
    assert M.size_stratified_coverage(sets) == pytest.approx(np.nanmin(list(by_size.values())))


def test_coverage_gap_takes_the_promise_of_the_rule():
    sets = wb.LAC(0.8).fit(ONE).sets(ONE)
    shares = M.class_accuracy(sets)
    assert M.coverage_gap(sets) == pytest.approx(np.nanmean(np.abs(shares - 0.8)))
    assert M.coverage_gap(sets, confidence=0.5) == pytest.approx(np.nanmean(np.abs(shares - 0.5)))
    plain = SETS["one"]
    assert M.coverage_gap(plain) == pytest.approx(np.nanmean(np.abs(M.class_accuracy(plain) - plain.hits.mean())))


def test_accuracy_and_size_by_any_row_attribute():
    sets = SETS["one"]
    leaves = ONE.attributes["organ"] == "leaf"
    assert M.accuracy_by(sets, "organ")["leaf"] == pytest.approx(sets.hits[leaves].mean())
    assert M.size_by(sets, "organ")["fruit"] == pytest.approx(sets.sizes[~leaves].mean())
    assert set(M.accuracy_by(sets, "groups")) == {f"genus {j}" for j in range(4)}


def test_many_label_metrics_by_their_definitions():
    sets = SETS["many"]
    predicted, truth = sets.matrix(), MANY.labels
    both, either = (predicted & truth).sum(0), predicted.sum(0) + truth.sum(0)
    assert M.micro_f1(sets) == pytest.approx(2 * both.sum() / either.sum())
    assert M.macro_f1(sets) == pytest.approx(np.mean(2 * both / either))
    assert M.recall(sets) == pytest.approx(both.sum() / truth.sum())
    assert M.exact_match(sets) == (predicted == truth).all(1).mean()
    assert M.cardinality(sets) == pytest.approx(predicted.sum(1).mean() - truth.sum(1).mean())
    assert M.macro_accuracy(sets) == pytest.approx(np.mean(both / truth.sum(0)))


def test_calibration_errors_by_their_definitions():
    p = ONE.probabilities()
    confidence, right = p.max(1), p.argmax(1) == ONE.labels
    gaps, weights = [], []
    for a in np.arange(15) / 15:
        inside = (confidence > a) & (confidence <= a + 1 / 15)
        if inside.any():
            gaps.append(abs(confidence[inside].mean() - right[inside].mean()))
            weights.append(inside.mean())
    assert M.expected_calibration_error(ONE) == pytest.approx(np.dot(gaps, weights))
    assert M.maximum_calibration_error(ONE) == pytest.approx(max(gaps))
    order = np.argsort(confidence, kind="stable").reshape(10, -1)
    equal_mass = np.mean([abs(confidence[rows].mean() - right[rows].mean()) for rows in order])
    assert M.expected_calibration_error(ONE, bins=10, equal_mass=True) == pytest.approx(equal_mass)


def test_top_label_error_bins_within_the_predicted_class():
    table = wb.LogitTable.from_probabilities([[0.7, 0.3]] * 2 + [[0.3, 0.7]] * 2, labels=[0, 0, 0, 0])
    assert M.expected_calibration_error(table) == pytest.approx(0.2)  # half are right, at confidence 0.7
    assert M.top_label_calibration_error(table) == pytest.approx(0.5)  # class 0: |1 − 0.7|; class 1: |0 − 0.7|


def test_classwise_error_and_brier_parts_by_their_definitions():
    p, truth = ONE.probabilities(), np.eye(12)[ONE.labels]
    errors = []
    for j in range(12):
        bins = equal_width_bins(p[:, j], 15)
        errors.append(sum(abs((p[:, j] - truth[:, j])[bins == b].sum()) for b in range(15)) / ONE.n)
    assert M.classwise_calibration_error(ONE) == pytest.approx(np.mean(errors))
    assert M.brier_score(ONE) == pytest.approx(((p - truth) ** 2).sum(1).mean())
    parts = M.brier_decomposition(ONE)
    assert parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within"] == pytest.approx(
        M.brier_score(ONE)
    )
    base = truth.mean(0)
    assert parts["uncertainty"] == pytest.approx((base * (1 - base)).sum())
    constant = wb.LogitTable.from_probabilities(np.tile(base, (ONE.n, 1)), ONE.labels)
    known = M.brier_decomposition(constant)
    assert [known[name] for name in ("reliability", "resolution", "within")] == pytest.approx([0, 0, 0], abs=1e-9)


@pytest.mark.parametrize(
    "metric", [M.negative_log_likelihood, M.brier_score, M.brier_decomposition, M.classwise_calibration_error]
)
def test_sums_in_single_precision_are_those_of_double_precision_to_a_millionth(metric):
    scores = 3 * np.random.default_rng(4).normal(size=(3000, 40)).astype(np.float32)
    labels = (scores + np.random.default_rng(5).gumbel(size=scores.shape)).argmax(1)
    single, double = (metric(wb.LogitTable(each, labels)) for each in (scores, scores.astype(float)))
    assert single == pytest.approx(double, rel=1e-6, abs=3e-7)


def test_log_likelihood_comes_from_scores_and_does_not_underflow():
    table = wb.LogitTable(np.array([[0.0, 1000.0], [3.0, 3.0]], dtype="float32"), [0, 1])
    assert M.negative_log_likelihood(table) == pytest.approx((1000 + math.log(2)) / 2)
    p = 1 / (1 + np.exp(-MANY.scores))
    expected = -np.where(MANY.labels, np.log(p), np.log(1 - p)).sum(1).mean()
    assert M.negative_log_likelihood(MANY) == pytest.approx(expected)
    as_probabilities = wb.LogitTable.from_probabilities(ONE.probabilities(), ONE.labels)
    assert M.negative_log_likelihood(as_probabilities) == pytest.approx(M.negative_log_likelihood(ONE))
    with pytest.raises(ValueError, match="needs softmax"):
        M.negative_log_likelihood(ONE.with_link("sigmoid"))
    with pytest.raises(ValueError, match="needs sigmoid"):
        M.negative_log_likelihood(MANY.with_link("softmax"))


def test_top_k_reliability_pools_the_most_probable_classes_of_many_labels():
    table = wb.LogitTable.from_probabilities([[0.9, 0.8, 0.1]], labels=[[True, False, False]])
    # (0.9, right) and (0.8, wrong): bins (0.8, 0.9] and (0.7, 0.8], gaps 0.1 and 0.8, half of the pairs each.
    assert M.top_k_calibration_error(table, K=2) == pytest.approx((0.1 + 0.8) / 2)
    assert M.top_k_calibration_error(ONE, K=1, bins=15) == pytest.approx(M.expected_calibration_error(ONE))


def test_share_above_one_looks_at_the_unclipped_q():
    table = wb.LogitTable(np.log([[2.0, 0.5, 0.1], [0.9, 0.8, 0.1]]), link="quasibinary", link_constant=0.0)
    assert M.share_above_one(table, K=2) == pytest.approx(1 / 4)
    assert M.max_confidence(table) == pytest.approx((1 + 0.9) / 2)  # a confidence is at most 1


def test_auroc_and_false_positives_by_their_definitions():
    inside, outside = rng.normal(1, 1, 80).round(1), rng.normal(0, 1, 60).round(1)  # rounded, so that some tie
    wins = (inside[:, None] > outside) + 0.5 * (inside[:, None] == outside)
    assert M.auroc(inside, outside) == pytest.approx(wins.mean())
    threshold = np.sort(inside)[::-1][math.ceil(0.95 * 80) - 1]
    assert M.fpr_at_95(inside, outside) == pytest.approx((outside >= threshold).mean())
    confident = wb.LogitTable(np.eye(3)[[0, 1]] * 9)
    unsure = wb.LogitTable(np.zeros((4, 3)))
    assert M.auroc(confident, unsure) == 1
    assert M.fpr_at_95(confident, unsure) == 0
    assert M.auroc(unsure, unsure) == 0.5
    with pytest.raises(ValueError, match="one finite confidence per row"):
        M.auroc(inside, np.array([np.nan]))


def test_bins_are_open_below_and_closed_above():
    assert equal_width_bins(np.array([0, 1 / 15, 1 / 15 + 1e-9, 1.0, 1.7]), 15).tolist() == [0, 0, 1, 14, 14]
    assert np.bincount(equal_mass_bins(rng.random(100), 7)).tolist() == [15, 14, 14, 15, 14, 14, 14]
    with pytest.raises(ValueError, match="bins = 0; give a whole number ≥ 1"):
        equal_width_bins(np.zeros(3), 0)


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (M.expected_calibration_error, {"bins": 15}),
        (M.expected_calibration_error, {"bins": 15, "equal_mass": True}),
        (M.maximum_calibration_error, {"bins": 15}),
        (M.top_label_calibration_error, {"bins": 15}),
        (M.classwise_calibration_error, {"bins": 15}),
        (M.brier_decomposition, {"bins": 15}),
        (M.top_k_calibration_error, {"K": 2, "bins": 10}),
        (lambda *table, **options: M.reliability_bins(*table, **options).to_csv(), {"K": 2, "bins": 10}),
        (lambda *table, **options: wb.figures.reliability(*table, **options).text, {"K": 2, "bins": 10}),
    ],
)
def test_whole_numbers_of_any_type_count_bins_and_classes(measure, options):
    floats = {name: float(value) if name != "equal_mass" else value for name, value in options.items()}
    assert measure(ONE, **floats) == measure(ONE, **options)


def test_the_reliability_frame_holds_counts_and_bands_that_a_calibrated_table_obeys():
    scores = rng.normal(size=(5000, 4)) * 2
    p = softmax(scores)
    labels = (p.cumsum(1) < rng.random((5000, 1))).sum(1)
    table = wb.LogitTable(scores, labels)
    for equal_mass in (False, True):
        frame = M.reliability_bins(table, bins=10, equal_mass=equal_mass)
        assert frame["count"].sum() == 5000
        inside = frame[frame["count"] > 0]
        assert inside["confidence"].between(inside["low"], inside["high"]).all()
        assert inside["accuracy"].between(inside["band_low"], inside["band_high"]).mean() >= 0.6
        ece = (frame["count"] * (frame["confidence"] - frame["accuracy"]).abs()).sum() / 5000
        assert ece == pytest.approx(M.expected_calibration_error(table, bins=10, equal_mass=equal_mass))
    wrong = M.reliability_bins(wb.LogitTable(scores * 3, labels), bins=10)
    crowded = wrong[wrong["count"] >= 200]
    assert len(crowded) >= 4
    assert not crowded["accuracy"].between(crowded["band_low"], crowded["band_high"]).any()
    assert M.reliability_bins(MANY, bins=10, K=4)["count"].sum() == 4 * MANY.n


def test_metrics_that_need_labels_or_counts_say_so():
    bare = wb.LogitTable(rng.normal(size=(5, 3)))
    sets = wb.TopK(1).fit(bare).sets(bare)
    for metric in (M.accuracy, M.macro_accuracy, M.shot_accuracy):
        with pytest.raises(ValueError, match=r"no labels|training rows"):
            metric(sets)
    for metric in (M.expected_calibration_error, M.negative_log_likelihood, M.top_k_accuracy, M.brier_score):
        with pytest.raises(ValueError, match="no labels"):
            metric(bare)
    labelled = wb.LogitTable(bare.scores, [0, 1, 2, 0, 1])
    sets = wb.TopK(1).fit(labelled).sets(labelled)
    with pytest.raises(ValueError, match="class_counts"):
        M.shot_accuracy(sets)
    with pytest.raises(ValueError, match="groups"):
        M.group_accuracy(sets)
    with pytest.raises(ValueError, match="whole number"):
        M.top_k_accuracy(labelled, K=1.5)


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.subject != "tables"], ids=repr)
def test_a_metric_given_something_else_says_what_it_is_measured_on(metric):
    of_sets = "sets" in metric.subject
    wanted = "expected PredictionSets, got" if of_sets else "expected a LogitTable, got"
    for other in (ONE if of_sets else SETS["one"], ONE.scores, "val", None):
        with pytest.raises(TypeError, match=f"{wanted} {type(other).__name__}"):
            metric(other)
    if metric.labels == "many":
        with pytest.raises(ValueError, match=f"{metric.name} is for rows with many labels"):
            metric.interval(SETS["one"] if of_sets else ONE)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": ONE.scores}, "expected a LogitTable, got ndarray"),
        ({"rules": [wb.TopK]}, "give a rule such as AverageK"),
        ({"metrics": ["accuracy"]}, "'accuracy' is not a metric"),
        ({"metrics": 5}, "5 is not a metric"),
        ({"val": "val.npz"}, "expected a LogitTable, got str"),
    ],
)
def test_a_report_of_something_else_is_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        wb.report(**{"table": ONE, "rules": [wb.TopK(2)], **options})


def test_the_report_is_one_line_per_rule_metric_and_group():
    val, test = ONE.split()
    frame = wb.report(test, rules=[wb.TopK(2), wb.LAC(0.8).fit(val)], interval=0.9, val=val, resamples=30)
    assert list(frame.columns) == ["rule", "metric", "K", "group", "value", "low", "high", "n"]
    sets = wb.LAC(0.8).fit(val).sets(test)
    line = frame[(frame["rule"] == "LAC(confidence=0.8, min_size=0)") & (frame["metric"] == "shot_accuracy")]
    assert dict(zip(line["group"], line["value"], strict=True)) == M.shot_accuracy(sets)
    ece = frame[(frame["rule"] == "") & (frame["metric"] == "expected_calibration_error")].iloc[0]
    assert (ece["value"], ece["n"]) == (M.expected_calibration_error(test), test.n)
    assert (ece["low"], ece["high"]) == M.expected_calibration_error.interval(test, confidence=0.9, resamples=30)
    assert not frame.duplicated(["rule", "metric", "group"]).any()


def test_without_val_the_report_splits_the_table_and_says_so():
    with pytest.warns(UserWarning, match="evaluated on the other 150"):
        frame = wb.report(ONE)
    assert (frame["n"] == 150).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (wb.report(ONE, rules=[wb.TopK(1)])["n"] == 300).all()  # nothing to fit, nothing to split


def test_the_report_takes_a_metric_of_yours():
    @M.metric(title="Singletons", direction="higher", labels="none")
    def singletons(sets: wb.PredictionSets) -> M.Parts:
        """The share of sets with exactly one class."""
        return M.mean(sets.sizes == 1)

    frame = wb.report(ONE, rules=[wb.TopK(1)], metrics=(*METRICS, singletons))
    assert frame[frame["metric"] == "singletons"]["value"].item() == 1


@pytest.mark.parametrize("table", [MANY, wb.LogitTable(rng.normal(size=(40, 3)))], ids=["many labels", "no labels"])
def test_the_report_takes_any_table(table):
    frame = wb.report(table, rules=[wb.TopK(2)])
    assert set(frame["metric"]) >= {"mean_size", "max_confidence"}
    assert frame["value"].notna().mean() > 0.8


def test_the_report_can_be_written_in_every_format():
    frame = wb.report(ONE, rules=[wb.TopK(1)], metrics=[M.accuracy, M.shot_accuracy])
    assert len(json.loads(FORMATS["json"](frame))) == len(frame)
    assert FORMATS["csv"](frame).count("\n") == len(frame) + 1
    assert frame.to_markdown().startswith("| metric | TopK(K=1) |\n| --- | ---: |\n| accuracy |")
    assert frame.to_markdown() == FORMATS["markdown"](frame)
    assert frame.to_markdown().count("|\n") == len(frame) + 2
    assert "shot_accuracy" in FORMATS["text"](frame)


def test_a_report_for_a_paper_is_a_booktabs_table_with_every_text_escaped():
    table = wb.LogitTable(ONE.scores, ONE.labels, groups=["50 % of R&D_"] * 12, attributes={"organ": ["leaf"] * ONE.n})
    frame = wb.report(table, rules=[wb.TopK(1), wb.TopK(3)], metrics=[M.accuracy, M.size_quantiles], interval=0.9)
    told = frame.assign(group=frame["group"].replace("5%", "5% & {a_b} \\ ^~#$ ≥ 3"))
    text = FORMATS["latex"](told)
    assert frame.to_latex() == FORMATS["latex"](frame)
    lines = text.splitlines()
    assert lines[0].startswith(r"\begin{tabular}{lrr}")
    assert [line.strip() for line in lines if "rule" in line] == [r"\toprule", r"\midrule", r"\bottomrule"]
    assert lines[2] == r"    metric & TopK(K=1) & TopK(K=3) \\"
    assert r"5\% \& \{a\_b\} \textbackslash{} \textasciicircum{}\textasciitilde{}\#\$ $\geq$ 3" in text
    assert all(line.count(" & ") == 2 for line in lines[2:-2] if "&" in line and r"\&" not in line)


def test_every_number_of_a_report_says_its_K():
    wanted = [M.top_k_accuracy, M.top_k_calibration_error, M.accuracy, M.brier_score]
    frame = wb.report(ONE, rules=[wb.TopK(2), wb.Threshold(0.5)], metrics=wanted)
    assert list(zip(frame["metric"], frame["K"], strict=True)) == [
        ("accuracy", 2),  # of the rule
        ("accuracy", pytest.approx(np.nan, nan_ok=True)),
        ("top_k_accuracy@K=1", 1),
        ("top_k_calibration_error@K=4", 4),
        ("brier_score", pytest.approx(np.nan, nan_ok=True)),
    ]
    compared = wb.comparison.compare({"one": ONE, "two": ONE}, wb.TopK(2), wanted[:3], resamples=20)
    assert dict(zip(compared["metric"], compared["K"], strict=True)) == {
        "top_k_accuracy@K=1": 1,
        "top_k_calibration_error@K=4": 4,
        "accuracy": 2,
    }
    told = wb.report(ONE, rules=[wb.TopK(1)], metrics=[M.top_k_accuracy.at(K=3)])
    assert told["metric"].tolist() == ["top_k_accuracy@K=3"]


def test_the_brier_score_of_the_confidence_is_miscalibration_minus_discrimination_plus_uncertainty():
    for table in (ONE, MANY):
        parts = M.confidence_decomposition(table)
        classes = table.probabilities().argmax(1)
        right = table.labels[np.arange(table.n), classes] if table.many_labels else classes == table.labels
        confidence = table.probabilities().max(1)
        assert parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"] == pytest.approx(
            np.mean((confidence - right) ** 2)
        )
        assert parts["uncertainty"] == pytest.approx(right.mean() * (1 - right.mean()))


def test_of_confidences_that_are_right_next_to_nothing_is_miscalibrated():
    generator = np.random.default_rng(5)
    scores = generator.normal(size=(4000, 4))
    labels = (scores + generator.gumbel(size=scores.shape)).argmax(1)
    right, bent = wb.LogitTable(scores, labels), wb.LogitTable(4 * scores, labels)
    assert M.confidence_decomposition(right)["miscalibration"] < 0.005
    assert M.confidence_decomposition(bent)["miscalibration"] > 0.05
    apart = M.likelihood_decomposition(bent)
    assert apart["calibration"] + apart["refinement"] == pytest.approx(M.negative_log_likelihood(bent), rel=1e-6)
    assert apart["refinement"] == pytest.approx(M.negative_log_likelihood(right), abs=0.01)
    assert M.likelihood_decomposition(right)["calibration"] < 0.001


def test_the_reliability_curve_is_the_isotonic_regression_and_its_band_holds_it_when_confidences_are_right():
    generator = np.random.default_rng(6)
    scores = 2 * generator.normal(size=(3000, 3))
    labels = (scores + generator.gumbel(size=scores.shape)).argmax(1)
    curve = M.reliability_curve(wb.LogitTable(scores, labels)).dropna()
    assert (np.diff(curve["accuracy"]) >= 0).all()
    inside = curve["accuracy"].between(curve["band_low"], curve["band_high"])
    assert inside.mean() > 0.75
    too_sure = M.reliability_curve(wb.LogitTable(3 * scores, labels))
    assert np.trapezoid(too_sure["density"], too_sure["confidence"]) == pytest.approx(1, abs=0.02)
    outside = too_sure.dropna()
    assert (outside["accuracy"] < outside["band_low"]).mean() > 0.5
    with pytest.raises(ValueError, match="strictly between 0 and 1"):
        M.reliability_curve(wb.LogitTable(scores, labels), band=1)
