"""What the documents for teachers say is so: numbers of the solutions are computed, exercises and commands exist."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import torch

import workbench as wb
from workbench.losses import CalibratedTopKHinge, Quasibinary, TopKHinge
from workbench.losses.noised import largest_calibrated_epsilon
from workbench.sets.conformal import rows_needed
from workbench.teaching import page, published_numbers, results
from workbench.teaching.exercises import EXERCISES
from workbench.teaching.lessons import LESSONS

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDE = (DOCS / "teaching.md").read_text(encoding="utf-8")
PROBLEMS, KEY = (DOCS / "teaching_solutions.md").read_text(encoding="utf-8").split("# Key to the transfer questions")


def bold(number: int, solutions: str = PROBLEMS) -> list[float]:
    """The numbers in bold of one solution."""
    part = re.split(r"^\d+\. ", solutions, flags=re.MULTILINE)[number]
    return [float(value) for value in re.findall(r"\*\*([\d.]+)\*\*", part)]


def agrees(number: int, *expected: float) -> None:
    np.testing.assert_allclose(bold(number), expected, atol=5e-5)


def agrees_in_the_key(number: int, *expected: float) -> None:
    np.testing.assert_allclose(bold(number, KEY), expected, atol=5e-5)


def test_there_are_ten_problems_with_ten_solutions_in_a_file_of_their_own():
    problems = GUIDE.split("## Ten problems")[1].split("## Eight transfer")[0]
    for text in (problems, PROBLEMS):
        assert re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE) == [str(number) for number in range(1, 11)]


def test_eight_transfer_questions_have_a_key_that_no_lesson_holds():
    asked = GUIDE.split("## Eight transfer questions")[1].split("## Notes")[0]
    for text in (asked, KEY):
        assert re.findall(r"^(\d+)\. ", text, flags=re.MULTILINE) == [str(number) for number in range(1, 9)]
    assert {int(lesson) for lesson in re.findall(r"\d+", " ".join(re.findall(r"\(lessons? ([\d, ]+)\)", asked)))} == {
        *range(1, len(LESSONS) + 1)
    }


def test_numbers_of_the_key_are_those_of_the_library():
    parcels = np.array([[0.99, 0.004, 0.003, 0.003]] * 900 + [[0.25] * 4] * 100)
    agrees_in_the_key(1, wb.bayes.average_k_accuracy(parcels, 1.2), wb.bayes.top_k_accuracy(parcels, 1))
    assert rows_needed(0.95) == 19
    agrees_in_the_key(3, 100 * (2 * 0.9 - 0.99), 19, 19)
    agrees_in_the_key(4, 5 + 1, round(largest_calibrated_epsilon(5), 2))
    tie = torch.zeros(1, 2, requires_grad=True)
    (push,) = torch.autograd.grad(wb.losses.CrossEntropy()(tie, torch.tensor([[True, True]])).sum(), tie)
    agrees_in_the_key(6, push.abs().max().item())
    within = np.cumsum([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    agrees_in_the_key(7, -np.log(0.2 * within[0] + 0.8 * within[4]))
    exponentials = np.array([9.0, 6.0, 1.0])
    agrees_in_the_key(8, *exponentials / exponentials.sum(), *exponentials / 4 / 10)


def test_the_timetable_adds_up_to_ninety_minutes_and_names_panels_of_its_lessons():
    table = GUIDE.split("## Ninety minutes")[1].split("**Before.**")[0]
    lines = re.findall(r"^\| (\d+)–(\d+) \|[^|]*\|([^|]*)\|", table, flags=re.MULTILINE)
    starts, ends = ([int(line[side]) for line in lines] for side in (0, 1))
    assert starts == [0, *ends[:-1]]
    assert ends[-1] == 90
    lessons = [(int(number), line) for *_, line in lines for number in re.findall(r"lesson (\d+)", line)]
    assert len(lessons) == 5
    for number, line in lessons:
        for panel in re.findall(r"\*([^*]+)\*", line):
            assert f"{panel}." in page.text(LESSONS[number - 1])


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


def test_tables_that_ship_are_those_of_the_documents():
    document = (ROOT / "docs" / "epsilon.md").read_text(encoding="utf-8").split("## Garden")[1].split("## ")[0]
    lines = [
        [cell.strip(" *") for cell in line.strip("|").split("|")]
        for line in document.splitlines()
        if line.startswith("|")
    ]
    shipped = results.table("epsilon")
    assert [list(shipped.columns), *shipped.astype(str).to_numpy().tolist()] == [lines[0], *lines[2:]]


def test_no_notebook_reads_a_file_beside_it():
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code":
                assert not re.search(r"read_\w+\(\"(?!http)|Path\(\"|open\(\"", source), f"{path.name}: {source}"


def test_notebook_7_names_the_claim_that_finds_otherwise():
    claim = json.loads((DOCS / "claims" / "18.json").read_text(encoding="utf-8"))
    of = "points of top-4 calibration error of quasibinary over sigmoids, meadow"
    (found,) = (each for each in claim["expectations"] if each["what"] == of)
    notebook = (ROOT / "notebooks" / "07_zero_and_many_labels.ipynb").read_text(encoding="utf-8")
    assert f"by {-found['value']:.2f} points ({-found['high']:.2f} to {-found['low']:.2f}; [claim 18]" in notebook


def test_lesson_8_and_notebook_5_state_one_number():
    two_heads = published_numbers.of_two_heads()
    notebook = (ROOT / "notebooks" / "05_training_for_sets.ipynb").read_text(encoding="utf-8")
    assert f"two heads  accuracy  all rows        {two_heads.value}" in notebook
    assert str(two_heads) in page.text(LESSONS[7])
