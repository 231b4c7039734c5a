"""The band beside every promise, and the price of sets that are never empty."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import workbench as wb
from workbench.sets.coverage_band import promise_text

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def rows(n: int, seed: int) -> wb.LogitTable:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, 5)) * 3
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(1)
    organ = np.where(np.arange(n) % 4 == 0, "bark", "leaf")
    return wb.LogitTable(scores, labels, class_counts=[50, 40, 30, 20, 10], attributes={"organ": organ})


VAL, TEST = rows(200, 1), rows(300, 2)


def test_the_band_is_that_of_the_beta_distribution_and_narrows_with_more_rows():
    low, high = wb.coverage_band(200, 0.9)
    assert (low, high) == pytest.approx(stats.beta(181, 20).ppf([0.025, 0.975]))
    assert wb.coverage_band(2000, 0.9)[0] > low
    assert promise_text(10_000, 0.9) == "promised 90 %, with 10000 calibration rows expect 89.4–90.6 %"


def test_the_coverage_of_single_fits_lies_in_the_band_as_often_as_it_says():
    low, high = wb.coverage_band(200, 0.8, level=0.9)
    test = rows(4000, 10_000)
    inside = [low <= wb.LAC(0.8).fit(rows(200, 100 + seed)).sets(test).hits.mean() <= high for seed in range(150)]
    assert stats.binom(150, 0.9).cdf(sum(inside)) > 1e-3


def test_a_fitted_rule_prints_its_promise_with_its_band():
    assert repr(wb.LAC(0.9).fit(VAL)).endswith(", promised 90 %, with 200 calibration rows expect 86–94 %")
    assert "calibration rows" not in repr(wb.AverageK(2).fit(VAL))
    assert wb.InterpQ(0.9).fit(VAL).promise_text() == ""  # nothing is proven
    by_organ = wb.Mondrian(0.9, by="organ").fit(VAL)
    assert by_organ.calibration_rows() == {"bark": 50, "leaf": 150}
    assert "in each of 2 groups promised 90 %, with 50 calibration rows expect" in repr(by_organ)
    held_out = wb.Fuzzy(0.9, held_out=0.5).fit(VAL)
    assert 70 < held_out.calibration_rows()[""] < 130


def test_reports_state_the_promise_with_its_band_and_the_price_of_min_size():
    frame = wb.report(TEST, [wb.LAC(0.6), wb.LAC(0.6, min_size=2)], val=VAL, metrics=[wb.metrics.coverage])
    promise = "promised 60 %, with 200 calibration rows expect 53–67 %"
    notes = frame.attrs["notes"]
    assert notes[:2] == [f"LAC(confidence=0.6): {promise}", f"LAC(confidence=0.6, min_size=2): {promise}"]
    free, filled = (wb.LAC(0.6, min_size=least).fit(VAL).sets(TEST) for least in (0, 2))
    added = filled.sizes - free.sizes
    assert notes[2] == (
        f"LAC(confidence=0.6, min_size=2): min_size=2 adds {added.mean():.3g} classes a row "
        f"({100 * (added > 0).mean():.3g} % of the sets were smaller); "
        f"coverage {100 * free.hits.mean():.3g} → {100 * filled.hits.mean():.3g} %"
    )
    for text in (frame.to_markdown(), frame.to_latex(), frame._repr_html_(), filled.describe()):
        assert promise in text
        assert "min_size=2 adds" in text
