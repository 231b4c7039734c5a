"""The numbers of any sets at every place of a slider are those that the library gives at each of them."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.metrics.along_slider import at_places, of_few_rows

random = np.random.default_rng(0)
LABELS = np.minimum(random.geometric(0.4, 200) - 1, 6)
SCORES = random.normal(size=(200, 7)) + 2 * np.eye(7)[LABELS]
COUNTED = wb.LogitTable(SCORES, LABELS, class_counts=[400, 200, 100, 50, 15, 10, 5])
MANY = wb.LogitTable(SCORES, random.random((200, 7)) < 0.25, link="sigmoid")
UNLABELLED = wb.LogitTable(SCORES, attributes={"organ": np.arange(200) % 3})

pytestmark = pytest.mark.filterwarnings("ignore:.* sets are empty")


@pytest.mark.parametrize(("table", "by"), [(COUNTED, None), (MANY, None), (UNLABELLED, None), (UNLABELLED, "organ")])
def test_of_one_threshold_they_are_those_of_the_index(table, by):
    index = wb.SetIndex(table)
    thresholds = [0.05, 0.3, 0.9]
    expected = index.compact(thresholds, by=by)
    found = at_places([wb.Threshold(threshold).fit(table)(table) for threshold in thresholds], by)
    assert found.keys() == expected.keys() - {"K", "thresholds"}
    for name, values in found.items():
        if isinstance(values, dict):
            assert values.keys() == expected[name].keys()
            for group in values:
                np.testing.assert_allclose(values[group], expected[name][group])
        else:
            np.testing.assert_allclose(values, expected[name])


@pytest.mark.parametrize("table", [COUNTED, MANY, UNLABELLED])
def test_of_few_rows_they_need_no_index(table):
    part, thresholds = table.rows([3, 150, 7]), [0.9, 0.05, 0.3, 0.0]
    index = wb.SetIndex(part)
    sizes, hits = of_few_rows(part, thresholds)
    np.testing.assert_array_equal(sizes, [index.sizes(threshold=threshold) for threshold in thresholds])
    if table.labels is None:
        assert hits is None
    else:
        np.testing.assert_array_equal(hits, [index.hits(threshold=threshold) for threshold in thresholds])


def test_of_another_rule_they_are_the_metrics_of_its_sets():
    rules = [wb.RAPS(confidence=confidence) for confidence in (0.6, 0.8, 0.95)]
    sets = [rule.fit(COUNTED)(COUNTED) for rule in rules]
    found = at_places(sets)
    for place, each in enumerate(sets):
        assert found["mean_size"][place] == wb.metrics.mean_size(each)
        assert found["macro_accuracy"][place] == wb.metrics.macro_accuracy(each)
        assert {shot: values[place] for shot, values in found["shot_accuracy"].items()} == pytest.approx(
            wb.metrics.shot_accuracy(each), nan_ok=True
        )
        np.testing.assert_allclose(
            found["class_hits"][place] / found["class_rows"], wb.metrics.class_accuracy(each), equal_nan=True
        )
