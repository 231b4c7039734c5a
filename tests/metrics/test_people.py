"""People beside a model: no answer is lost, the last one counts, and the model is judged at the same mean size."""

from __future__ import annotations

import multiprocessing
import os
import signal

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.metrics.people import figure_frame, labels_by_vote, people_against_model
from workbench.store.set_answers import SetAnswers

TABLE = wb.LogitTable.from_probabilities(
    [[0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.1, 0.2, 0.7], [0.4, 0.35, 0.25]],
    labels=[0, 1, 2, 2],
    class_names=["oak", "elm", "fir"],
)


@pytest.fixture
def answers(tmp_path):
    return SetAnswers(tmp_path / "answers.jsonl")


def killed_after(path, n):
    """A process that gives n answers and is killed at once."""
    for row in range(n):
        SetAnswers(path).add("ann", row, ["oak"])
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_process_loses_no_answer_and_the_person_goes_on(answers):
    process = multiprocessing.get_context("spawn").Process(target=killed_after, args=(answers.path, 5))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert answers.rows_of("ann") == set(range(5))
    with open(answers.path, "ab") as file:
        file.write(b'{"person": "ann", "ro')  # a line that was cut short
    answers.add("ann", 9, ["elm", "fir"])
    assert answers.rows_of("ann") == {*range(5), 9}


def test_the_last_answer_counts_and_csv_brings_all_back(answers, tmp_path):
    answers.add("ann", 1, ["oak"])
    answers.add("bob", 1, ["elm"])
    answers.add("ann", 1, ["oak", "elm"])
    assert answers.frame()["classes"].tolist() == [("oak", "elm"), ("elm",)]
    other = SetAnswers(tmp_path / "other.jsonl")
    (tmp_path / "answers.csv").write_text(answers.to_csv(), encoding="utf-8")
    assert other.add_frame(pd.read_csv(tmp_path / "answers.csv")) == 2
    assert other.frame().equals(answers.frame())
    with pytest.raises(ValueError, match="lack the column classes"):
        other.add_frame(pd.DataFrame({"person": ["ann"], "row": [1]}))
    with pytest.raises(ValueError, match="give a name"):
        other.add(" ", 1, ["oak"])


def test_figure_3_7_judges_the_model_at_the_mean_size_of_the_person():
    """Two classes for each of four rows: the model may return eight, its eight largest probabilities."""
    answers = pd.DataFrame({"person": "ann", "row": [0, 1, 2, 3], "classes": [("oak", "elm")] * 4})
    person, model = people_against_model(answers, TABLE).to_dict("records")
    assert (person["n"], person["mean_size"], person["error"]) == (4, 2.0, 0.5)
    largest = np.sort(TABLE.probabilities().ravel())[::-1]
    threshold = (largest[7] + largest[8]) / 2
    expected = (TABLE.probabilities()[np.arange(4), TABLE.labels] < threshold).mean()
    assert model["error"] == expected
    assert person["low"] < person["error"] < person["high"]
    drawn = wb.figures.with_intervals(figure_frame(people_against_model(answers, TABLE)), y="error rate")
    assert "ann (2.0 classes)" in drawn.text


def test_answers_of_one_class_vote_for_labels_as_in_the_thesis():
    """Equation of Sec. 3.8.1 with b0 = 1: a newcomer weighs 1, so two of them outvote one and pass a threshold of 1.5."""
    answers = pd.DataFrame(
        [("ann", 0, ("oak",)), ("bob", 0, ("oak",)), ("cy", 0, ("elm",)), ("cy", 1, ("elm", "fir"))],
        columns=["person", "row", "classes"],
    )
    labels = labels_by_vote(answers, threshold=1.5).labels
    assert labels[["item", "label", "weight", "valid"]].to_dict("records") == [
        {"item": 0, "label": "oak", "weight": 2.0, "valid": True}
    ]
