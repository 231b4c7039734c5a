"""The lessons say what the notebooks say, and their answers are computed from the runs that ship."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.lessons import LESSONS, Lesson
from workbench.losses.noised import largest_calibrated_epsilon
from workbench.store import DEMO, Store

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def words_of(notebook: str) -> str:
    """The running text of a notebook, on one line."""
    cells = json.loads((NOTEBOOKS / f"{notebook}.ipynb").read_text(encoding="utf-8"))["cells"]
    return " ".join(" ".join("".join(cell["source"]).split()) for cell in cells if cell["cell_type"] == "markdown")


def answered(lesson: Lesson) -> str:
    demo = {run.title: run.tables for run in Store(DEMO).runs()}
    return lesson.answer(*(demo[title] for title in lesson.runs))


@pytest.fixture(scope="module")
def garden() -> wb.LogitTable:
    return {run.title: run for run in Store(DEMO).runs()}["garden · cnn · CrossEntropy()"].tables["test"]


def test_there_are_four_lessons():
    assert len(LESSONS) == 4


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title)
def test_its_sentences_and_its_question_stand_in_its_notebooks(lesson):
    words = " ".join(words_of(notebook) for notebook in lesson.notebooks)
    for said in (*lesson.sentences, lesson.question):
        assert said in words


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.title)
def test_its_answer_is_words_around_numbers(lesson):
    said = answered(lesson)
    assert said.endswith(".")
    assert re.search(r"\d", said)
    assert "nan" not in said


def test_a_flower_alone_leaves_the_doubt_that_the_posterior_leaves(garden):
    flowers = garden.posterior[garden.attributes["organs"] == "flower"]
    assert f"right {flowers.max(1).mean():.0%} of the time" in answered(LESSONS[0])
    falling = -np.sort(-flowers, axis=1)
    needed = (np.cumsum(falling, axis=1) < 0.9 - 1e-6).sum(1) + 1  # how many species hold 90 %
    assert f"needs {needed.mean():.1f} species" in answered(LESSONS[0])


def test_the_largest_gap_is_that_of_the_posterior(garden):
    gaps = wb.bayes.top_k_against_average_k(garden, range(1, 21))
    best = gaps.loc[gaps["gap"].idxmax()]
    assert answered(LESSONS[1]).startswith(f"At K = {best['K']:g}: ")
    assert f"a gap of {100 * best['gap']:.1f} points" in answered(LESSONS[1])


def test_the_bound_on_the_noise_is_that_of_the_library():
    assert f"{largest_calibrated_epsilon(2):.2f}" in answered(LESSONS[2])


def test_the_two_head_loss_is_judged_by_its_sets_not_by_hope():
    demo = {run.title: run.tables for run in Store(DEMO).runs()}
    said = answered(LESSONS[3])
    for title in LESSONS[3].runs:
        sets = wb.AverageK(3.0).fit(demo[title]["val"]).sets(demo[title]["test"])
        assert f"{wb.metrics.accuracy(sets):.1%} with" in said
        assert f"{wb.metrics.shot_accuracy(sets)['few']:.1%} with" in said
    first, second = (LESSONS[3].answer(demo[title], demo[title]) for title in LESSONS[3].runs)
    assert first.startswith("Nobody can say")
    assert second.startswith("Nobody can say")
    worse, better = (demo[title] for title in reversed(LESSONS[3].runs))
    assert {said.split(",")[0], LESSONS[3].answer(worse, better).split(",")[0]} == {"No", "Yes"}
