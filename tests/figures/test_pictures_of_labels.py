"""Pictures of rows with no label and with many, and of differences between runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.figures.runs.comparisons import better, in_words
from workbench.figures.sets.agreement import THRESHOLDS
from workbench.figures.style import LIGHT
from workbench.metrics.comparison import zero_and_many


def meadow(n: int = 600, n_classes: int = 7, seed: int = 0, link: str = "sigmoid") -> wb.LogitTable:
    """Rows with none to several labels, and scores that know most of them."""
    rng = np.random.default_rng(seed)
    labels = rng.random((n, n_classes)) < 0.2
    scores = (rng.normal(size=labels.shape) + 3 * labels - 2).astype(np.float32)
    return wb.LogitTable(scores, labels, link=link)


@pytest.fixture(scope="module")
def table() -> wb.LogitTable:
    return meadow()


@pytest.mark.parametrize("threshold", [0.0, 0.3, 0.5, 0.87, 1.0])
def test_a_row_gets_an_answer_when_its_set_is_not_empty(table, threshold):
    sets = wb.Threshold(threshold).fit(table).sets(table)
    labelled = table.labels.any(axis=1)
    answered = wb.figures.none_of_these(table, threshold).answered(threshold)
    assert answered["with a label"] == pytest.approx((sets.sizes[labelled] > 0).mean())
    assert answered["without a label"] == pytest.approx((sets.sizes[~labelled] > 0).mean())


def test_the_histograms_count_every_row_and_the_words_hold_the_metrics(table):
    figure = wb.figures.none_of_these(table, threshold=0.4)
    labelled = table.labels.any(axis=1)
    counts = figure.frame.groupby("rows")["count"].sum()
    assert counts.to_dict() == {"with a label": labelled.sum(), "without a label": (~labelled).sum()}
    inside, outside = table.rows(labelled), table.rows(~labelled)
    assert f"with a label, MMC {wb.metrics.max_confidence(inside):.1%}" in figure.subtitle
    assert f"without a label, MMC {wb.metrics.max_confidence(outside):.1%}" in figure.subtitle
    assert f"AU-ROC {wb.metrics.auroc(inside, outside):.3f}" in figure.subtitle
    told = 1 - figure.answered(0.4)["without a label"]
    assert f"{told:.1%} of the rows without a label are told “none of these”" in figure.text
    line = figure.plot().layout.shapes[0]
    assert (line.x0, line.x1) == (0.4, 0.4)


def test_a_table_of_one_label_a_row_has_one_kind_of_rows():
    rng = np.random.default_rng(1)
    table = wb.LogitTable(rng.normal(size=(40, 5)), rng.integers(0, 5, 40))
    figure = wb.figures.none_of_these(table)
    assert set(figure.frame["rows"]) == {"all rows"}
    assert "AU-ROC" not in figure.text
    every_row_labelled = wb.LogitTable(rng.normal(size=(4, 2)), np.ones((4, 2), bool), link="sigmoid")
    assert set(wb.figures.none_of_these(every_row_labelled).frame["rows"]) == {"with a label"}


@pytest.mark.parametrize("link", ["sigmoid", "softmax"])
def test_f1_is_that_of_the_sets_at_every_threshold(link):
    table = meadow(link=link)
    figure = wb.figures.f1_against_threshold({"mine": table})
    expected = [wb.metrics.micro_f1(wb.Threshold(float(at)).fit(table).sets(table)) for at in THRESHOLDS]
    np.testing.assert_allclose(figure.frame["micro_f1"], expected)
    threshold, f1 = figure.best["mine"]
    assert f1 == pytest.approx(max(expected))
    assert THRESHOLDS[int(np.argmax(expected))] == threshold


@pytest.mark.parametrize("threshold", [0.3, 0.7])  # one below its nearest float32, one above
def test_a_float32_beside_the_threshold_counts_as_it_does_in_a_set(threshold):
    probabilities = np.array([[threshold, 0.0]], np.float32)
    table = wb.LogitTable.from_probabilities(probabilities, labels=[[True, False]])
    sets = wb.Threshold(threshold).fit(table).sets(table)
    curve = wb.figures.f1_against_threshold({"mine": table}).frame.set_index("threshold")["micro_f1"]
    assert sets.sizes[0] == (threshold == 0.3)
    assert curve[threshold] == wb.metrics.micro_f1(sets)
    assert wb.figures.none_of_these(table).answered(threshold) == {"with a label": sets.sizes[0]}


def test_f1_needs_a_table():
    with pytest.raises(ValueError, match="no table"):
        wb.figures.f1_against_threshold({})


def test_zero_and_many_holds_the_metrics_of_each_kind_of_rows(table):
    other = table.with_link("softmax")
    frame = zero_and_many({"sigmoid": table, "softmax": other}, threshold=0.3).set_index("table")
    labelled = table.labels.any(axis=1)
    for name, each in (("sigmoid", table), ("softmax", other)):
        inside, outside = each.rows(labelled), each.rows(~labelled)
        sets = wb.Threshold(0.3).fit(each).sets(each)
        expected = {
            "in_accuracy": np.mean(
                [labels[row.argmax()] for row, labels in zip(inside.scores, inside.labels, strict=True)]
            ),
            "mmc_with": wb.metrics.max_confidence(inside),
            "mmc_without": wb.metrics.max_confidence(outside),
            "auroc": wb.metrics.auroc(inside, outside),
            "fpr_at_95": wb.metrics.fpr_at_95(inside, outside),
            "micro_f1": wb.metrics.micro_f1(sets),
            "macro_f1": wb.metrics.macro_f1(sets),
            "exact_match": wb.metrics.exact_match(sets),
            "calibration_error": wb.metrics.top_k_calibration_error(each),
        }
        assert frame.loc[name, list(expected)].to_dict() == pytest.approx(expected)
    assert frame["link"].tolist() == ["sigmoid", "softmax"]


def test_zero_and_many_leaves_out_what_cannot_be_known_and_refuses_one_label_a_row(table):
    labelled = table.rows(table.labels.any(axis=1))
    (line,) = zero_and_many({"labelled": labelled}).to_dict("records")
    assert np.isnan(line["mmc_without"])
    assert np.isnan(line["auroc"])
    assert line["micro_f1"] > 0
    with pytest.raises(ValueError, match="one label a row"):
        zero_and_many({"mine": wb.LogitTable(2 * np.eye(2), [0, 1])})


def test_paired_differences_are_those_of_the_comparison_and_say_what_is_clear(table):
    blurred = wb.LogitTable(table.scores / 3 - 1, table.labels, link="sigmoid")
    tables = {"mine": table, "blurred": blurred, "again": table}
    metrics = (wb.metrics.accuracy, wb.metrics.mean_size, wb.metrics.expected_calibration_error)
    compared = wb.comparison.compare(tables, wb.Threshold(0.5), metrics, resamples=100)
    figure = wb.figures.paired_differences(compared)
    assert set(figure.frame["metric"]) == {"accuracy", "expected_calibration_error"}  # a size is not a share
    assert set(figure.frame["table"]) == {"blurred", "again"}
    merged = figure.frame.merge(compared, on=["metric", "table"], suffixes=("", "_of_compare"))
    np.testing.assert_array_equal(merged["difference"], merged["difference_of_compare"])
    np.testing.assert_array_equal(merged["low"], merged["difference_low"])
    assert (figure.frame[figure.frame["table"] == "again"]["better"] == "open").all()
    worse = figure.frame[(figure.frame["table"] == "blurred") & (figure.frame["metric"] == "accuracy")]
    assert worse["better"].item() == "no"
    error = figure.frame[
        (figure.frame["table"] == "blurred") & (figure.frame["metric"] == "expected_calibration_error")
    ]
    assert error["better"].item() == ("yes" if error["difference"].item() < 0 else "no")
    dots = dict(zip(("blurred", "again"), figure.plot().data, strict=True))
    assert dots["again"].selectedpoints == ()  # what is not clear of 0 is not filled
    assert dots["again"].unselected.marker.color == LIGHT.paper
    clear = figure.frame[figure.frame["table"] == "blurred"]["clear"]
    assert dots["blurred"].selectedpoints == tuple(np.flatnonzero(clear))
    of_accuracy, of_error = (100 * each["difference"].item() for each in (worse, error))
    np.testing.assert_allclose(dots["blurred"].x, [of_accuracy, -of_error])  # in points; of an error less is better


def test_right_is_better_whatever_the_metric_and_the_hover_says_the_difference_itself(table):
    surer = wb.LogitTable(3 * table.scores, table.labels, link="sigmoid")
    metrics = (wb.metrics.expected_calibration_error, wb.metrics.mean_size)
    compared = wb.comparison.compare({"A": table, "B": surer}, wb.Threshold(0.5), metrics, resamples=100)
    figure = wb.figures.paired_differences(compared)
    (error,) = figure.frame.to_dict("records")
    (dot,) = figure.plot().data
    ends = dot.x[0] - dot.error_x.arrayminus[0], dot.x[0] + dot.error_x.array[0]
    assert error["difference"] < 0 < dot.x[0] == pytest.approx(-100 * error["difference"])
    assert ends == pytest.approx((-100 * error["high"], -100 * error["low"]))
    assert dot.customdata[0][1] == f"{100 * error['difference']:+.2f} points"
    scatter = wb.figures.on_two_metrics(compared, "mean_size", "expected_calibration_error").plot().layout
    for axis in (scatter.xaxis, scatter.yaxis):
        assert axis.range[0] > axis.range[1]  # to the right, and up, is less
        assert axis.title.text.endswith("(less is better)")


def test_a_comparison_says_its_direction_and_marks_what_is_better_of_errors_too(table):
    surer = wb.LogitTable(3 * table.scores, table.labels, link="sigmoid")
    metrics = (wb.metrics.accuracy, wb.metrics.expected_calibration_error, wb.metrics.negative_log_likelihood)
    compared = wb.comparison.compare({"A": table, "B": surer}, wb.Threshold(0.5), metrics, resamples=100)
    figure = wb.figures.paired_differences(compared)
    assert figure.title == "From A to B"
    (error,) = figure.frame[figure.frame["metric"] == "expected_calibration_error"].to_dict("records")
    assert error["high"] < 0
    assert error["better"] == "yes"
    assert f"expected calibration error by {100 * error['difference']:+.1f} points (better)" in figure.text
    symbols = dict(zip(figure.frame["metric"], figure.plot().data[0].marker.symbol, strict=True))
    assert symbols["expected_calibration_error"] == "triangle-up"
    likelihood = compared[(compared["metric"] == "negative_log_likelihood") & (compared["table"] == "B")]
    assert better(likelihood).tolist() == ["yes"]  # no share, and marked as well
    three = wb.comparison.compare({"A": table, "B": surer, "C": table}, wb.Threshold(0.5), metrics, resamples=5)
    assert wb.figures.paired_differences(three).title == "From A to each other run"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("top_k_accuracy@K=5", "Top-5 accuracy"),
        ("top_k_calibration_error@K=4", "Top-4 calibration error"),
        ("shot_accuracy (few)", "Coverage by shots: few"),
    ],
)
def test_a_metric_in_words_names_its_K(name, words):
    assert in_words(name) == words


def test_differences_are_asked_for_by_every_name_a_metric_has_in_the_comparison(table):
    tables = {"mine": table, "blurred": wb.LogitTable(table.scores / 3 - 1, table.labels, link="sigmoid")}
    top_k = (wb.metrics.top_k_accuracy.at(K=1), wb.metrics.top_k_accuracy.at(K=3))
    metrics = (wb.metrics.accuracy, wb.metrics.mean_size, wb.metrics.accuracy_by_size, *top_k)
    compared = wb.comparison.compare(tables, wb.Threshold(0.3), metrics, resamples=20)

    def drawn(*names: str) -> list[str]:
        return wb.figures.paired_differences(compared, names).frame["metric"].tolist()

    assert drawn("top_k_accuracy@K=3") == ["top_k_accuracy@K=3"]
    assert drawn("top_k_accuracy") == ["top_k_accuracy@K=1", "top_k_accuracy@K=3"]
    assert drawn("accuracy_by_size (1)") == ["accuracy_by_size (1)"]
    assert drawn("accuracy", "mean_size", "macro_f1") == [
        "accuracy"
    ]  # a size is not a share, and of F1 nothing is known
    with pytest.raises(
        ValueError, match="'acuracy' is not the name of a metric; this comparison has accuracy, mean_size"
    ):
        drawn("accuracy", "acuracy")


@pytest.mark.parametrize(("interval", "words"), [(0.5, "lines are 50 % intervals"), (0.95, "lines are 95 % intervals")])
def test_the_level_of_the_intervals_is_that_of_the_comparison(table, interval, words):
    metrics = [wb.metrics.accuracy, wb.metrics.macro_accuracy]
    tables, rule = {"a": table, "b": table}, wb.Threshold(0.5)
    compared = wb.comparison.compare(tables, rule, metrics, interval=interval, resamples=5)
    for draw in (wb.figures.paired_differences, wb.figures.on_two_metrics):
        assert words in draw(compared).subtitle
        assert "lines are intervals" in draw(pd.DataFrame(compared.to_dict("list"))).subtitle  # it does not say


def test_one_run_alone_has_no_differences(table):
    alone = wb.comparison.compare({"a": table, "b": table}, wb.Threshold(0.5), [wb.metrics.mean_size], resamples=5)
    with pytest.raises(ValueError, match="no difference to draw"):
        wb.figures.paired_differences(alone)


def test_below_a_photograph_many_labels_fill_lines_and_none_is_said_in_words():
    names = ["Dulcimera", "Glimmera", "Iridelle", "an apple of a very long name"]
    labels = np.array([[True, True, True, False], [False] * 4])
    table = wb.LogitTable(np.array([[-1.0, -1, -1, 2], [-3] * 4]), labels, link="sigmoid", class_names=names)
    sets = wb.Threshold(0.5).fit(table).sets(table)
    first, second = wb.figures.samples(sets, np.zeros((2, 8, 8, 3), np.uint8)).cells(LIGHT)
    assert (first.heading, first.lines) == (
        ["✗ Dulcimera, Glimmera,", "Iridelle"],
        [("an apple of a very… 88%", False)],
    )
    assert (second.heading, second.lines) == (["no label"], [("no class", False)])


def test_two_metrics_are_named_as_in_a_sentence():
    tables = {"a": meadow(50), "b": meadow(50, seed=0, link="softmax")}
    compared = wb.comparison.compare(tables, wb.Threshold(0.5), [wb.metrics.micro_f1, wb.metrics.accuracy], resamples=5)
    assert wb.figures.on_two_metrics(compared, "micro_f1", "accuracy").title == "Coverage against micro F1"
