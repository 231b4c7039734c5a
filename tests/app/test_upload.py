"""Files people bring: a good one becomes a run that every view shows, a broken one gives a message, the app lives on."""

from __future__ import annotations

import json

import numpy as np
import pytest
from browsing import KEYS, RUDE_FILE, choose, click, figure, go, in_address, numbers, pressed, reads, says, settled

import workbench as wb
from workbench.store.imported_tables import SPLIT_NOTE

pytestmark = pytest.mark.browser


def about_run(page):
    click(page.get_by_role("button", name="About this run, and other files"))
    return page.get_by_test_id("stPopoverBody")


def bring(page, path):
    about_run(page).locator("input[type=file]").set_input_files(path)


def labelled_scores(path, *, rows, classes):
    """A file of scores that mostly favour the label."""
    random = np.random.default_rng(3)
    labels = random.integers(0, classes, rows)
    np.savez(path, scores=random.normal(size=(rows, classes)) + 2 * np.eye(classes)[labels], labels=labels)
    return path


def test_a_broken_file_gives_a_message_and_the_app_lives_on(opened, tmp_path):
    broken = tmp_path / "broken.npz"
    broken.write_bytes(b"PK\x03\x04 this is not an archive")
    page = opened(K=4)
    bring(page, broken)
    says(page.get_by_role("alert"), "broken.npz could not be read")
    assert "Traceback" not in page.content()
    before = numbers(page)
    pressed(page, "K", "ArrowRight", 3)
    assert numbers(page)["K"] == "4.30" != before["K"]


@pytest.mark.writes
def test_a_good_file_becomes_a_run_that_every_view_shows_and_is_kept_when_asked(opened, store, tmp_path):
    path = labelled_scores(tmp_path / f"mine {RUDE_FILE}.npz", rows=240, classes=7)
    val, test = wb.import_table(path).split()
    page = opened(view="classes", K=3)
    bring(page, path)
    says(page, SPLIT_NOTE)
    assert page.get_by_text("240 rows × 7 classes").is_visible()
    click(page.get_by_role("button", name="Show it"))
    sets = wb.AverageK(3.0).fit(val).sets(test)
    expected = {"Correct": f"{wb.metrics.accuracy(sets):.1%}", "Mean size": f"{wb.metrics.mean_size(sets):.2f}"}
    reads(page, expected)
    settled(page)
    shown = np.concatenate([trace["y"] for trace in figure(page, "classes")["data"]])
    np.testing.assert_allclose(np.sort(shown), np.sort(wb.metrics.class_accuracy(sets)), atol=1e-6)

    for view in ("Sets", "Samples"):
        go(page, view)
        reads(page, expected)
    says(page, "120 of 120 rows")

    go(page, "Calibration")
    page.wait_for_selector(".st-key-figure-after")
    settled(page)
    points = wb.figures.reliability(test).points()
    np.testing.assert_allclose(figure(page, "before")["data"][2]["y"], points["accuracy"], atol=1e-6)

    go(page, "Compare")
    says(page, "No other run has the same test rows")

    go(page, "Labels")
    says(page, "Every row here has exactly one label")
    settled(page)
    (key,) = in_address(page)["run"]
    assert not [run for run in store.runs() if run.short == key]  # it is kept only on request
    page.reload()
    says(page, "Every row here has exactly one label")  # but it is still here
    about_run(page)
    click(page.get_by_role("button", name="Keep this run"))
    page.get_by_role("button", name="Keep this run").wait_for(state="detached")
    assert [run.title for run in store.runs() if run.short == key] == [f"mine {RUDE_FILE}"]
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
    says(page, "45 of 45 rows")
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


def test_listed_classes_are_shown_as_bounds_and_sets_made_elsewhere_beside_ours(opened, tmp_path):
    random = np.random.default_rng(3)
    best = np.sort(random.dirichlet(np.ones(5), 60))[:, :2:-1]
    answers = [dict(zip("abcd"[2 * (i % 2) :], p, strict=False)) for i, p in enumerate(best.tolist())]
    lines = [{"truth": "abcde"[i % 5], "answer": answer} for i, answer in enumerate(answers)]
    (tmp_path / "answers.jsonl").write_text("\n".join(map(json.dumps, lines)))
    page = opened(K=4)
    bring(page, tmp_path / "answers.jsonl")
    says(page, "answers.jsonl: scores of some classes")
    click(page.get_by_role("button", name="Show it"))
    says(page.get_by_test_id("stDialog"), "Coverage that is known")
    rows = "\n".join(f"{row},class 0;class 1" for row in range(40))
    (tmp_path / "theirs.csv").write_text(f"id,classes\n{rows}\n")
    page = opened("no labels", view="labels", wait_for=".st-key-headline")
    bring(page, tmp_path / "theirs.csv")
    click(page.get_by_role("button", name="Show it"))
    says(page.get_by_test_id("stDialog"), "sets: 40, 2 classes on average, 0 empty")
    says(page.get_by_test_id("stDialog"), "No comparison with the run in sight")


def test_what_is_no_file_of_scores_is_refused_in_words(opened, tmp_path):
    (tmp_path / "people.csv").write_text("name,age\nanna,31\nbert,25\n")
    (tmp_path / "plant.png").write_bytes(b"no scores")
    page = opened(K=4)
    bring(page, tmp_path / "people.csv")
    says(page.get_by_role("alert"), "a table of scores has one column for each class")
    page.locator("input[type=file]").set_input_files(tmp_path / "plant.png")
    says(page.get_by_role("alert"), "plant.png is not a file of scores. Give one of .npz")


@pytest.mark.writes
def test_of_several_arrays_one_is_chosen(opened, tmp_path):
    np.savez(tmp_path / "two.npz", first=np.eye(30), second=np.eye(30) * 2, y=np.arange(30))
    page = opened(K=4)
    bring(page, tmp_path / "two.npz")
    choose(page, "two.npz has several arrays. Which holds the scores?", "second")
    says(page, "second (float64) read as scores")
