"""Agreement with crepes: p-values, Mondrian categories and class-conditional sets."""

from __future__ import annotations

import numpy as np
import pytest
from crepes import ConformalClassifier

import workbench as wb

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@pytest.fixture(scope="module")
def halves(shared_data) -> tuple[wb.LogitTable, wb.LogitTable]:
    real = shared_data("news20_cv_probs")
    p = np.exp(real["logp"].astype("float64"))
    organ = np.where(np.arange(len(p)) % 3 == 0, "bark", "leaf")
    table = wb.LogitTable.from_probabilities(p / p.sum(1, keepdims=True), real["y"], attributes={"organ": organ})
    return table.rows(slice(0, table.n // 2)), table.rows(slice(table.n // 2, None))


def hinge(table: wb.LogitTable) -> np.ndarray:
    return 1 - table.probabilities()


def of_labels(table: wb.LogitTable) -> np.ndarray:
    return hinge(table)[np.arange(table.n), table.labels]


def certain(table: wb.LogitTable, threshold: np.ndarray | float) -> np.ndarray:
    """Theirs rounds 1 − p, so a class within 1e-9 of its threshold may differ."""
    return np.abs(table.probabilities() - threshold) > 1e-9


@pytest.mark.parametrize("confidence", [0.8, 0.9])
def test_LAC_gives_the_sets_and_p_values_of_crepes(halves, confidence):
    val, test = halves
    theirs = ConformalClassifier().fit(of_labels(val))
    ours = wb.LAC(confidence).fit(val)
    same = certain(test, ours.threshold)
    expected = theirs.predict_set(hinge(test), confidence=confidence, smoothing=False).astype(bool)
    assert np.array_equal(ours.sets(test).matrix()[same], expected[same])
    clear = test.probabilities() > 1e-6  # below, 1 − p rounds to 1 and theirs ties
    difference = np.abs(ours.p_values(test) - theirs.predict_p(hinge(test), smoothing=False))
    assert np.mean(difference[clear] > 1e-9) < 0.01


def test_mondrian_sets_by_an_attribute_are_those_of_crepes(halves):
    # Where (n + 1)·confidence is whole, crepes lets one more score in (p ≥ 1 − confidence); this confidence avoids that.
    val, test = halves
    theirs = ConformalClassifier().fit(of_labels(val), bins=val.attributes["organ"])
    expected = theirs.predict_set(hinge(test), bins=test.attributes["organ"], confidence=0.8137, smoothing=False)
    ours = wb.Mondrian(0.8137, by="organ").fit(val)
    threshold = np.array([ours.threshold[group] for group in test.attributes["organ"]])[:, None]
    same = certain(test, threshold)
    assert np.array_equal(ours.sets(test).matrix()[same], expected.astype(bool)[same])
