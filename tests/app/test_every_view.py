"""What is true of every view: a file that a person brings is shown by all of them."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import click, figure, reads, settled
from test_bringing_files import bring

import workbench as wb

pytestmark = pytest.mark.browser


def confidence_of(page):
    """The name of the picture of confidences: it holds the key of the run."""
    return "confidence-" + page.evaluate("new URL(location).searchParams.get('run')")


def test_every_view_shows_a_file_that_was_brought(opened, tmp_path):
    random = np.random.default_rng(5)
    labels = random.integers(0, 7, 240)
    np.savez(tmp_path / "brought.npz", scores=random.normal(size=(240, 7)) + 2 * np.eye(7)[labels], labels=labels)
    val, test = wb.import_table(tmp_path / "brought.npz").split()
    page = opened(view="classes", K=3)
    bring(page, tmp_path / "brought.npz")
    click(page.get_by_role("button", name="Show it"))
    sets = wb.AverageK(3.0).fit(val).sets(test)
    reads(page, {"Accuracy": f"{wb.metrics.accuracy(sets):.1%}"})
    settled(page)
    shown = np.concatenate([trace["y"] for trace in figure(page, "classes")["data"]])
    np.testing.assert_allclose(np.sort(shown), np.sort(wb.metrics.class_accuracy(sets)), atol=1e-6)

    click(page.get_by_role("link", name="Calibration"))
    page.wait_for_selector(".st-key-figure-after .wb-drawing[data-drawn]")
    settled(page)
    points = wb.figures.reliability(test).points()
    np.testing.assert_allclose(figure(page, "before")["data"][2]["y"], points["accuracy"], atol=1e-6)

    click(page.get_by_role("link", name="Compare"))
    page.get_by_text("No other run was measured on these test rows").wait_for()

    click(page.get_by_role("link", name="Labels"))
    page.get_by_text("Every row here has exactly one label").wait_for()
    settled(page)
    (shown,) = [trace["y"] for trace in figure(page, confidence_of(page))["data"][:1]]
    np.testing.assert_allclose(shown, wb.figures.none_of_these(test).plot().data[0].y)
