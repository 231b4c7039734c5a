"""The quiz: every number that counts as right is the library's, whatever the data; and it travels to paper and to Moodle."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import plotly.graph_objects as go
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE

import workbench as wb
from workbench.cli.main import main
from workbench.figures.style import LIGHT
from workbench.losses import AverageKTwoHead, CalibratedTopKHinge, DifferentiableTopK, Quasibinary, TopKHinge
from workbench.operators import neural_sort
from workbench.sets.conformal import rows_needed
from workbench.teaching import quiz
from workbench.teaching.base import LazyFigures, Picture

few = settings(max_examples=8, deadline=None)
tenths = st.integers(-30, 30).map(lambda value: value / 10)


@pytest.fixture(scope="module")
def questions():
    return quiz.questions(LIGHT)


def test_what_moves_along_a_slider_is_known_after_one_drawing_of_each_position():
    drawn = []

    def draw(value):
        drawn.append(value)
        return go.Figure({"type": "bar", "x": [0], "y": [value]}, {"xaxis": {"title": {"text": f"at {value:g}"}}})

    moves = Picture(LazyFigures(draw, (1.0, 2.0)), "bars").moves
    assert drawn == [1.0, 2.0]
    assert [(move.trace, move.property) for move in moves] == [(0, "y"), (None, "xaxis.title.text")]


def test_there_are_twenty_half_of_them_moved_and_each_wrong_answer_is_explained(questions):
    assert len(questions) == 20
    assert sum(question.target is not None for question in questions) == 10
    assert len({question.text for question in questions}) == 20
    for question in questions:
        if question.target:
            places = question.picture.slider
            assert any(map(question.target.holds, places.values)), question.text
            assert not question.target.holds(places.values[places.start]), question.text
            assert len(question.picture.captions) == len(places.values)
            assert question.target.below
            assert question.target.above
        else:
            assert [choice.right for choice in question.choices].count(True) == 1
            assert all(choice.why for choice in question.choices)


def test_the_position_of_the_right_answer_gives_nothing_away(questions):
    clicked = [question.choices for question in questions if question.choices]
    positions = [[choice.right for choice in choices].index(True) for choices in clicked]
    assert all(positions.count(position) <= 5 for position in range(3))
    longest = sum(max(choices, key=lambda choice: len(choice.text)).right for choices in clicked)
    assert longest <= 5


def rows_of(seed: int, n: int, classes: int) -> np.ndarray:
    return np.random.default_rng(seed).dirichlet(np.ones(classes), n).round(3) + 1e-5 * np.arange(classes)


@few
@given(st.integers(0, 99), st.sampled_from([1.5, 2.0, 2.5]))
def test_the_threshold_is_that_of_average_k(seed, K):
    law = rows_of(seed, 4, 4)
    law /= law.sum(1, keepdims=True)
    target = quiz.threshold_of_average_k(LIGHT, law.tolist(), K).target
    table = wb.LogitTable.from_probabilities(law)
    assert target.holds(wb.AverageK(K).fit(table).threshold)
    for end in (target.low, target.high):
        assert (law >= end).sum() == K * 4


@few
@given(st.integers(10, 40), st.sampled_from([0.8, 0.9]))
def test_the_place_and_the_threshold_are_those_of_lac(n, confidence):
    values = np.random.default_rng(n).permutation(np.linspace(0.55, 0.99, n))
    table = wb.LogitTable.from_probabilities(np.column_stack([values, 1 - values]), labels=np.zeros(n, int))
    threshold = float(wb.LAC(confidence).fit(table).threshold)
    target = quiz.conformal_rank(LIGHT, n, confidence).target
    assert target.low == target.high == np.flatnonzero(np.isclose(np.sort(values)[::-1], threshold))[0] + 1
    assert quiz.lac_threshold(LIGHT, values.tolist(), confidence).target.holds(threshold)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_a_promise_needs_as_many_rows_as_the_library_says(confidence):
    target = quiz.rows_to_promise(LIGHT, confidence).target
    assert target.low == target.high == rows_needed(confidence)


@few
@given(st.lists(tenths, min_size=4, max_size=6, unique=True), st.integers(0, 3), st.integers(1, 2))
def test_hinges_are_those_of_the_library(scores, label, K):
    value = CalibratedTopKHinge(K=K)(torch.tensor([scores]), torch.tensor([label])).item()
    assert quiz.value_of_the_hinge(LIGHT, scores, label, K).target.holds(value)
    target = quiz.where_the_hinge_ends(LIGHT, scores, K).target
    at, before = (
        TopKHinge(K=K)(torch.tensor([[score, *scores]], dtype=torch.float64), torch.tensor([0])).item()
        for score in (target.high, target.low)
    )
    assert at == 0 < before


@few
@given(st.sampled_from([1.0, 2.0, 3.0, 4.0]), st.sampled_from([0.6, 0.7, 0.8, 0.9]))
def test_the_temperature_makes_the_softmax_as_sure_as_it_is_right(gap, confidence):
    target = quiz.temperature_for_a_confidence(LIGHT, gap, confidence).target
    temperature = (target.low + target.high) / 2
    probabilities = wb.LogitTable(np.array([[gap, 0.0]]) / temperature).probabilities()
    assert probabilities[0, 0] == pytest.approx(confidence)


@few
@given(st.lists(st.lists(tenths, min_size=3, max_size=3), min_size=2, max_size=3), st.integers(1, 4))
def test_the_constant_is_that_of_the_quasibinary_loss(scores, n_labels):
    labels = torch.zeros(len(scores), 3, dtype=torch.bool)
    labels.view(-1)[:n_labels] = True
    loss = Quasibinary()
    state = loss.state(n_rows=len(scores), n_classes=3)
    loss(torch.tensor(scores, dtype=torch.float64), labels, state=state)
    assert quiz.constant_of_quasibinary(LIGHT, scores, n_labels).target.holds(float(state.log_C.exp()))


@few
@given(st.lists(tenths, min_size=4, max_size=4, unique=True), st.sampled_from([(0.5, 0.5), (0.2, 0.0, 0.8), (1.0,)]))
def test_the_worth_of_soft_ranks_is_what_the_loss_takes_the_logarithm_of(scores, p_k):
    row = torch.tensor([scores], dtype=torch.float64)
    loss = DifferentiableTopK(p_k=p_k, operator="neural_sort", steepness=1.0, top1="sort", m=4)
    column = neural_sort(row[0], temperature=1.0)[:, 2].tolist()
    target = quiz.worth_of_soft_ranks(LIGHT, column, p_k).target
    assert target.holds(float(torch.exp(-loss(row, torch.tensor([2])))))


@few
@given(st.integers(2, 9), st.sampled_from([1.5, 2.0, 2.5, 3.0]))
def test_candidates_are_as_many_as_the_two_head_loss_takes(n, K):
    target = quiz.number_of_candidates(LIGHT, n, K).target
    assert target.low == target.high == AverageKTwoHead(K=K).n_candidates(n)


def test_the_bank_travels_to_paper_and_to_moodle(questions, capsys):
    assert main(["quiz", "--markdown"]) == 0
    page = capsys.readouterr().out
    assert main(["quiz", "--moodle"]) == 0
    bank = ET.fromstring(capsys.readouterr().out)
    assert [element.get("type") for element in bank] == ["multichoice", "numerical"] * 10
    for question, element in zip(questions, bank, strict=True):
        assert question.text in page
        assert element.findtext("questiontext/text") == question.text
        right = [answer for answer in element.findall("answer") if answer.get("fraction") == "100"]
        assert len(right) == 1
        if question.target:
            middle, reach = float(right[0].findtext("text")), float(right[0].findtext("tolerance"))
            assert (middle - reach, middle + reach) == pytest.approx((question.target.low, question.target.high))
        else:
            assert right[0].findtext("text") == next(choice.text for choice in question.choices if choice.right)
            assert all(choice.why in page for choice in question.choices)


@pytest.mark.browser
def test_the_page_of_the_quiz_keeps_the_score(questions, chromium: Any, tmp_path):
    out = tmp_path / "quiz.html"
    assert main(["quiz", "--html", "--output", str(out)]) == 0
    page = chromium.new_page(viewport={"width": 1024, "height": 768})
    page.set_default_timeout(1000 * PATIENCE)
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(out.as_uri())
    first, second = (page.locator(".wb-question").nth(number) for number in (0, 1))
    right = next(choice.text for choice in questions[0].choices if choice.right)
    first.get_by_role("button", name=right, exact=True).click()
    assert page.locator(".wb-score").inner_text().startswith("1 right of 1 answered")
    second.get_by_role("button", name="This is my answer").click()  # where the slider starts, which is wrong
    assert page.locator(".wb-score").inner_text().startswith("1 right of 2 answered")
    assert questions[1].target.above in second.inner_text() or questions[1].target.below in second.inner_text()
    page.get_by_role("button", name="Start again").click()
    assert page.locator(".wb-score").inner_text().startswith("0 right of 0 answered")
    assert page.locator(".wb-question").count() == 20
    page.close()
    assert errors == []
