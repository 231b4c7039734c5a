"""Files people bring: a good one becomes a run that every view shows, a broken one gives a message, the app lives on."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import KEYS, click, figure, go, in_address, numbers, pressed, reads, says, settled

import workbench as wb
from workbench.store.imported import SPLIT_NOTE

pytestmark = pytest.mark.browser


def bring(page, path):
    click(page.get_by_text("Open a file of logits"))
    page.locator("input[type=file]").set_input_files(path)


def labelled_scores(path, *, rows, classes):
    """A file of scores that mostly favour the label."""
    random = np.random.default_rng(3)
    labels = random.integers(0, classes, rows)
    np.savez(path, scores=random.normal(size=(rows, classes)) + 2 * np.eye(classes)[labels], labels=labels)
    return path


def test_a_broken_file_gives_a_message_and_the_app_lives_on(opened, tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 this is no archive")
    page = opened(K=4)
    bring(page, broken)
    says(page.get_by_role("alert"), "broken.npz could not be read")
    assert "Traceback" not in page.content()
    before = numbers(page)
    pressed(page, "K", "ArrowRight", 3)
    assert numbers(page)["Target K"] == "4.30" != before["Target K"]


@pytest.mark.writes
def test_a_good_file_becomes_a_run_that_every_view_shows_and_is_kept_when_asked(opened, store, tmp_path):
    path = labelled_scores(tmp_path / "mine.npz", rows=240, classes=7)
    val, test = wb.import_table(path).split()
    page = opened(view="classes", K=3)
    bring(page, path)
    says(page, SPLIT_NOTE)
    assert page.get_by_text("240 rows × 7 classes").is_visible()
    click(page.get_by_role("button", name="Show it"))
    sets = wb.AverageK(3.0).fit(val).sets(test)
    expected = {"Accuracy": f"{wb.metrics.accuracy(sets):.1%}", "Mean size": f"{wb.metrics.mean_size(sets):.2f}"}
    reads(page, expected)
    settled(page)
    shown = np.concatenate([trace["y"] for trace in figure(page, "classes")["data"]])
    np.testing.assert_allclose(np.sort(shown), np.sort(wb.metrics.class_accuracy(sets)), atol=1e-6)

    for view in ("Sets", "Samples"):
        go(page, view)
        reads(page, expected)
    says(page, "120 of 120 test rows")

    go(page, "Calibration")
    page.wait_for_selector(".st-key-figure-after")
    settled(page)
    points = wb.figures.reliability(test).points()
    np.testing.assert_allclose(figure(page, "before")["data"][2]["y"], points["accuracy"], atol=1e-6)

    go(page, "Compare")
    says(page, "No other run was measured on these test rows")

    go(page, "Labels")
    says(page, "Every row here has exactly one label")
    settled(page)
    (key,) = in_address(page)["run"]
    assert not [run for run in store.runs() if run.short == key]  # nobody asked to keep it
    page.reload()
    says(page, "Every row here has exactly one label")  # but it is still here
    click(page.get_by_role("button", name="Keep this run"))
    page.get_by_role("button", name="Keep this run").wait_for(state="detached")
    assert [run.title for run in store.runs() if run.short == key] == ["mine"]
    settled(page)
    shown = figure(page, f"confidence-{key}")["data"][0]["y"]
    np.testing.assert_allclose(shown, wb.figures.none_of_these(test).plot().data[0].y)


@pytest.mark.writes
def test_the_address_is_that_of_the_run_in_sight_however_soon_another_control_is_moved(opened, tmp_path):
    page = opened("no labels", view="samples", wait_for=".wb-wall", K=2)
    bring(page, labelled_scores(tmp_path / "soon.npz", rows=90, classes=4))
    page.get_by_role("button", name="Show it").wait_for()
    settled(page)
    page.evaluate(
        """() => {
            const named = (name) => [...document.querySelectorAll("button")].find((b) => b.textContent.includes(name));
            named("Show it").click();
            document.querySelector(".stNumberInput [data-testid=stNumberInputStepUp]").click();
        }"""
    )
    says(page, "45 of 45 test rows")
    settled(page)
    assert in_address(page)["run"] != [KEYS["no labels"][:12]]


@pytest.mark.writes
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
