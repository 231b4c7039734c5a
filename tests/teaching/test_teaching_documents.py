"""What the documents for teachers say is so: numbers of the solutions are computed, exercises and commands exist."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import torch

import workbench as wb
from workbench.losses import CalibratedTopKHinge, Quasibinary, TopKHinge
from workbench.sets.conformal import rows_needed
from workbench.teaching.exercises import EXERCISES

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = (DOCS / "teaching.md").read_text(encoding="utf-8")
SOLUTIONS = (DOCS / "teaching_solutions.md").read_text(encoding="utf-8")


def bold(number: int) -> list[float]:
    """The numbers in bold of one solution."""
    part = re.split(r"^\d+\. ", SOLUTIONS, flags=re.MULTILINE)[number]
    return [float(value) for value in re.findall(r"\*\*([\d.]+)\*\*", part)]


def agrees(number: int, *expected: float) -> None:
    np.testing.assert_allclose(bold(number), expected, atol=5e-5)


def test_there_are_ten_problems_with_ten_solutions_in_a_file_of_their_own():
    problems = GUIDE.split("## Ten problems")[1].split("## Notes")[0]
    for text in (problems, SOLUTIONS):
        assert re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE) == [str(number) for number in range(1, 11)]


def test_every_exercise_stands_beside_its_notebook():
    listed = re.findall(r"\b\d\.\d\b", GUIDE.split("## What each notebook")[1].split("## Exercises")[0])
    assert listed == [exercise.number for exercise in EXERCISES]


def test_sets_by_hand_are_those_of_the_library():
    law = np.array([[0.9, 0.05, 0.05], [0.5, 0.3, 0.2], [0.4, 0.35, 0.25]])
    of = wb.bayes
    agrees(
        1,
        of.top_k_accuracy(law, 1),
        of.average_k_accuracy(law, 1),
        of.top_k_accuracy(law, 2),
        of.average_k_accuracy(law, 2),
    )
    tied = np.array([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.5, 0.4, 0.1], [0.34, 0.33, 0.33]])
    table = wb.LogitTable.from_probabilities(tied)
    sets = wb.Threshold(0.33).fit(table)(table)
    agrees(3, 0.33, sets.sizes.mean())
    assert sets.sizes.tolist() == [1, 1, 2, 3]


def test_the_promise_by_hand_is_that_of_the_library():
    agrees(4, 9)
    assert rows_needed(0.9) == 9 > 8
    coin = np.array([[1.0, 0.0]] * 50 + [[0.5, 0.5]] * 50)
    table = wb.LogitTable.from_probabilities(coin, labels=np.tile([0, 0], 50))
    for confidence in (0.75, 0.8):
        fitted = wb.LAC(confidence).fit(table)
        agrees(5, fitted.threshold, fitted(table).hits.mean())


def test_losses_by_hand_are_those_of_the_library():
    def moved(label: int, scores: list[float]) -> int:
        row = torch.tensor([scores], requires_grad=True)
        (gradient,) = torch.autograd.grad(CalibratedTopKHinge(K=1)(row, torch.tensor([label])).sum(), row)
        return int((gradient != 0).sum())

    falling = [6.0, 4.0, 3.0, 2.5, 2.0, 1.0, 0.0]
    agrees(6, moved(0, falling), moved(1, falling), moved(5, falling))
    law, labels = torch.tensor([0.4, 0.3, 0.3]), torch.arange(3)

    def mean(loss: wb.losses.Loss, scores: list[float]) -> float:
        return float((law * loss(torch.tensor([scores] * 3), labels)).sum())

    plain, calibrated = TopKHinge(K=1), CalibratedTopKHinge(K=1)
    tie, best = [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]
    agrees(7, mean(plain, tie), mean(plain, best), mean(calibrated, tie), mean(calibrated, best))
    agrees(8, torch.softmax(torch.zeros(2), 0)[0].item())
    within = np.cumsum([0.1, 0.4, 0.3, 0.2])
    agrees(9, *(-np.log([within[0], within[1], within[:2].mean(), within[3]])))
    scores = torch.tensor([[1.0, 0.0], [-1.0, 2.0], [0.0, 0.0]])
    labels = torch.tensor([[True, False], [False, True], [False, False]])
    state = Quasibinary().state(n_rows=3, n_classes=2)
    Quasibinary()(scores, labels, state=state)
    constant = state.log_C.exp()
    agrees(10, scores.exp().sum().item(), constant.item(), *(scores.exp() / constant).flatten().tolist())
