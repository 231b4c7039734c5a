"""Exercises: the right answer passes, known mistakes are named, and nothing that is said gives the answer away."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import workbench as wb
from workbench.losses import AverageKTwoHead, CalibratedTopKHinge, Quasibinary
from workbench.teaching.exercises import EXERCISES

every_exercise = pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.number)


def test_there_are_twenty_at_least_two_to_a_notebook():
    numbers = [exercise.number for exercise in EXERCISES]
    assert len(set(numbers)) == len(numbers) == 20
    assert all(sum(number.startswith(f"{notebook}.") for number in numbers) >= 2 for notebook in range(9))


@every_exercise
def test_the_right_answer_passes_and_each_known_mistake_is_named(exercise):
    right = exercise.answer()
    assert wb.exercises.check(exercise.number, right)
    for words, wrong in exercise.mistakes():
        feedback = wb.exercises.check(exercise.number, wrong)
        assert not feedback, words
        assert feedback.words == words


@every_exercise
def test_nothing_that_is_said_gives_the_answer_away(exercise, capsys):
    right = exercise.answer()
    wb.exercises.show(exercise.number)
    said = capsys.readouterr().out + " ".join(words for words, _ in exercise.mistakes())
    guesses = [None, "?", float("nan"), [1, 2], -1.0, 0.123, 1e6]
    said += " ".join(wb.exercises.check(exercise.number, guess).words for guess in guesses)
    if np.shape(right) == () and not isinstance(right, frozenset) and not float(right).is_integer():
        assert f"{float(right):.3g}" not in re.findall(r"[\d.]*\d", said)


def test_answers_about_small_data_are_those_of_the_library():
    data = {exercise.number: (exercise.data, exercise.answer()) for exercise in EXERCISES}
    rows, threshold = data["3.1"]
    assert wb.AverageK(1.6).fit(wb.LogitTable.from_probabilities(rows["rows"])).threshold == pytest.approx(threshold)
    values, threshold = data["3.2"]
    two = np.column_stack([values["values"], 1 - values["values"]])
    fitted = wb.LAC(0.8).fit(wb.LogitTable.from_probabilities(two, labels=np.zeros(12, int)))
    assert fitted.threshold == pytest.approx(threshold)
    scores, loss = data["4.1"]
    row = torch.tensor(scores["scores"][None], requires_grad=True)
    assert CalibratedTopKHinge(K=2)(row, torch.tensor([2])).item() == pytest.approx(loss)
    (gradient,) = torch.autograd.grad(CalibratedTopKHinge(K=2)(row, torch.tensor([0])).sum(), row)
    assert int((gradient != 0).sum()) == data["4.2"][1]
    batch, candidates = data["5.1"]
    heads = torch.stack([torch.zeros(3, 4, dtype=torch.float64), torch.tensor(batch["scores"])], dim=1)
    chosen = AverageKTwoHead(K=2).candidates(heads, torch.tensor(batch["labels"]))
    assert frozenset(map(tuple, chosen.nonzero().tolist())) == candidates
    batch, constant = data["7.1"]
    state = Quasibinary().state(n_rows=4, n_classes=3)
    Quasibinary()(torch.tensor(batch["scores"]), torch.tensor(batch["labels"], dtype=torch.bool), state=state)
    assert state.log_C.exp().item() == pytest.approx(constant, rel=1e-5)
    scores, row_of_ranks = data["6.2"]
    np.testing.assert_allclose(wb.operators.soft_sort(torch.tensor(scores["scores"]), k=1)[0], row_of_ranks, atol=1e-6)


def test_the_constant_divided_by_rows_or_classes_is_recognised_as_wrong():
    scores = np.exp(next(each for each in EXERCISES if each.number == "7.1").data["scores"])
    for counted, n in (("rows", len(scores)), ("classes", scores.shape[1]), ("scores", scores.size)):
        assert f"number of {counted}" in wb.exercises.check("7.1", scores.sum() / n).words


def test_a_value_that_is_no_answer_is_refused():
    assert "one number" in wb.exercises.check("0.2", "many").words
    assert "share between 0 and 1" in wb.exercises.check("0.2", 100 * EXERCISES[1].answer()).words
    assert "pairs" in wb.exercises.check("5.1", 3).words
    assert repr(wb.exercises.check("4.2", 0)).startswith("✓")
    with pytest.raises(ValueError, match=r"there is no exercise '9.9'; there are 0.1, 0.2"):
        wb.exercises.check("9.9", 1)
