"""Odd tables: every number is right, or an error says why there is none."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

import workbench as wb

QUIET = pytest.mark.filterwarnings("error::RuntimeWarning")


def test_group_accuracy_of_rows_with_many_labels_is_refused_in_words():
    table = wb.LogitTable(np.eye(3), np.eye(3, dtype=bool), link="sigmoid", groups=["a", "a", "b"])
    with pytest.raises(ValueError, match="group_accuracy is for rows with one label"):
        wb.metrics.group_accuracy(wb.TopK(1).fit(table)(table))


@QUIET
@pytest.mark.parametrize("link", ["softmax", "sigmoid", "quasibinary"])
@pytest.mark.parametrize("scale", [1e3, 1e30, 1e300])
@pytest.mark.parametrize(
    "rule", [wb.AverageK(1.5), wb.LAC(0.5), wb.APS(0.5), wb.RAPS(0.5)], ids=lambda rule: type(rule).__name__
)
def test_enormous_scores_warn_of_no_overflow(link, scale, rule):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(9, 4)) * scale
    table = wb.LogitTable(
        scores, rng.integers(0, 4, 9), link=link, link_constant=0.3 if link == "quasibinary" else None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sets = rule.fit(table)(table)
    assert (sets.sizes <= 4).all()


@QUIET
@pytest.mark.parametrize("scale", [1e30, 1e300])
def test_a_temperature_is_found_for_enormous_scores_and_written_as_people_write_numbers(scale):
    rng = np.random.default_rng(0)
    table = wb.LogitTable(rng.normal(size=(40, 3)) * scale, rng.random((40, 3)) < 0.4, link="sigmoid")
    assert np.isfinite(wb.TemperatureScaling().fit(table).temperature)


@pytest.mark.parametrize("scale", [3e5, 1e-3, 10.0])
@pytest.mark.parametrize("right", [False, True], ids=["random labels", "the label on top"])
def test_a_caption_writes_no_temperature_and_no_loss_with_an_exponent(scale, right):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(60, 3)) * scale
    figure = wb.figures.temperatures(
        *wb.LogitTable(scores, scores.argmax(1) if right else rng.integers(0, 3, 60)).split()
    )
    assert not re.search(r"\de[+-]?\d", figure.subtitle + figure.text)


def test_the_brier_score_of_a_quasibinary_table_is_what_its_parts_add_up_to():
    rng = np.random.default_rng(0)
    table = wb.LogitTable(rng.normal(size=(30, 3)), rng.integers(0, 3, 30), link="quasibinary", link_constant=0.3)
    parts = wb.metrics.brier_decomposition(table)
    whole = parts["reliability"] - parts["resolution"] + parts["uncertainty"] + parts["within"]
    assert wb.metrics.brier_score(table) == pytest.approx(whole)
    p = np.minimum(table.probabilities(), 1)  # a quasi-probability above 1 is as sure as can be
    assert whole == pytest.approx(np.mean(((p - np.eye(3)[table.labels]) ** 2).sum(1)))
