"""Files people bring: a good one becomes a run, a broken one gives a message, and the app lives on."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import click, numbers, pressed, reads

import workbench as wb
from workbench.imports import SPLIT_NOTE

pytestmark = pytest.mark.browser


def bring(page, path):
    click(page.get_by_text("Open a file of logits"))
    page.locator("input[type=file]").set_input_files(path)


def test_a_broken_file_gives_a_message_and_the_app_lives_on(opened, tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 this is no archive")
    page = opened(K=4)
    bring(page, broken)
    message = page.get_by_role("alert")
    message.wait_for()
    assert "broken.npz could not be read" in message.inner_text()
    assert "Traceback" not in page.content()
    before = numbers(page)
    pressed(page, "K", "ArrowRight", 3)
    assert numbers(page)["Target K"] == "4.30" != before["Target K"]


def test_a_good_file_becomes_a_run_split_in_halves_and_says_so(opened, store, tmp_path):
    random = np.random.default_rng(3)
    labels = random.integers(0, 8, 200)
    scores = random.normal(size=(200, 8)) + 2 * np.eye(8)[labels]
    np.savez(tmp_path / "mine.npz", scores=scores, labels=labels)
    page = opened()
    bring(page, tmp_path / "mine.npz")
    page.get_by_text(SPLIT_NOTE).wait_for()
    assert page.get_by_text("200 rows × 8 classes").is_visible()
    click(page.get_by_role("button", name="Show it"))
    val, test = wb.import_table(tmp_path / "mine.npz").split()
    sets = wb.AverageK(5.0).fit(val).sets(test)
    reads(page, {"Accuracy": f"{wb.metrics.accuracy(sets):.1%}", "Mean size": f"{wb.metrics.mean_size(sets):.2f}"})


def test_a_file_that_leaves_something_open_is_read_once_it_is_said(opened, tmp_path):
    random = np.random.default_rng(3)
    np.savez(tmp_path / "mine.npz", X=random.normal(size=(2, 40, 5)), y=np.arange(40) % 5)
    page = opened()
    bring(page, tmp_path / "mine.npz")
    page.get_by_role("alert").filter(has_text="which array holds the scores?").wait_for()
    click(page.get_by_role("button", name="Say what it holds"))
    field = page.get_by_role("textbox", name="Scores are called")
    field.fill("X[1]")
    field.press("Enter")
    page.get_by_text("40 rows × 5 classes").wait_for()
