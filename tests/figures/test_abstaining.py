"""The reject option: its curve, its area, and what sets for every row are worth beside it."""

import numpy as np
import pytest

import workbench as wb


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    labels = rng.integers(6, size=300)
    scores = rng.normal(size=(300, 6)) + 1.5 * np.eye(6)[labels]
    return wb.LogitTable(scores, labels)


def test_the_risk_is_the_error_of_the_rows_that_the_network_is_most_confident_of(table):
    curve = wb.figures.risk_against_coverage(table).curve()
    probabilities = table.probabilities()
    wrong = probabilities.argmax(1) != table.labels
    order = np.argsort(-probabilities.max(1))
    for n in (1, 30, 150, 300):
        at = curve[np.isclose(curve["coverage"], n / 300)]
        assert at["risk"].item() == pytest.approx(wrong[order[:n]].mean())
    assert curve["risk"].mean() == pytest.approx(wb.metrics.risk_coverage_area(table))


def test_sets_answer_every_row_and_their_error_is_that_of_average_k(table):
    figure = wb.figures.risk_against_coverage(table, K=(2, 3, 50))
    errors = {K: 1 - wb.metrics.accuracy(wb.AverageK(K, min_size=0).fit(table).sets(table)) for K in (2, 3)}
    assert figure.sets() == [(f"average-{K} sets", pytest.approx(error)) for K, error in errors.items()]


def test_rows_without_a_label_are_left_out_and_many_labels_are_refused(table):
    some = table.labels.copy()
    some[:100] = -1
    part = wb.figures.risk_against_coverage(wb.LogitTable(table.scores, some))
    assert part.frame.equals(wb.figures.risk_against_coverage(table.rows(np.arange(100, 300))).frame)
    many = wb.LogitTable(table.scores, np.eye(6, dtype=bool)[table.labels], link="sigmoid")
    with pytest.raises(ValueError, match="answers with one class, and these rows have many labels"):
        wb.figures.risk_against_coverage(many)
