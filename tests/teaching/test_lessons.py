"""Every lesson asks before it tells, and what it tells is what the library and its documents say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.figures.style import LIGHT
from workbench.losses.noised import largest_calibrated_epsilon
from workbench.teaching import published_numbers
from workbench.teaching.demo_tables import tables, truth
from workbench.teaching.lessons import (
    LESSONS,
    a_promise_and_its_price,
    a_threshold_without_labels,
    none_and_many,
    soft_ranks,
    top_k_or_average_k,
    what_a_network_can_learn_from,
    what_a_set_is,
    what_calibrated_means,
    what_epsilon_does,
)
from workbench.teaching.shipped_twins import DIGITS, GIVEN, shipped_twins

ROOT = Path(__file__).resolve().parents[2]
every_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


@pytest.fixture(scope="module")
def stories():
    """Everything that every lesson tells, computed once."""
    return {lesson.name: lesson.tell(LIGHT) for lesson in LESSONS}


def text_of(stories, name: str) -> str:
    """All words of a lesson."""
    story = stories[name]
    question = story.question
    target = [question.target.within] if question.target else []
    whys = [words for choice in question.choices for words in (choice.text, choice.why)]
    captions = question.picture.captions if question.picture else ()
    return " ".join([*story.words, question.text, *whys, *target, *captions, *story.answer])


@every_lesson
def test_it_asks_first_has_one_right_answer_and_explains_the_wrong_ones(stories, lesson):
    question = stories[lesson.name].question
    assert lesson.sight.startswith("You will see ")
    assert lesson.sight.count(". ") == 0, "one sentence"
    assert (ROOT / "notebooks" / f"{lesson.notebook}.ipynb").is_file()
    assert bool(question.choices) != bool(question.target), "a click or a move"
    if question.choices:
        assert [choice.right for choice in question.choices].count(True) == 1
        assert all(choice.why for choice in question.choices)
    else:
        right = [value for value in question.picture.slider.values if question.target.holds(value)]
        assert right, "the slider reaches the answer"
        assert not question.target.holds(question.picture.slider.values[question.picture.slider.start])


@every_lesson
def test_its_picture_moves_and_every_place_has_its_caption(stories, lesson):
    picture = stories[lesson.name].question.picture
    places = len(picture.slider.values)
    assert len(picture.figures) == len(picture.captions) == len(picture.slider.texts) == places
    assert picture.moves, "something moves"
    assert len(set(picture.captions)) > places / 2
    assert set(picture.secret) <= {trace.name for trace in picture.figures[0].data}
    assert all(len(move.values) == places for move in picture.moves)


@every_lesson
def test_its_words_are_whole(stories, lesson):
    words = text_of(stories, lesson.name)
    assert not {"nan", "inf"} & set(re.findall(r"\w+", words))
    assert not re.search(r"[{}]", words)
    story = stories[lesson.name]
    text = " ".join([*story.words, story.question.text, *story.answer])
    assert len(re.findall(r"[A-Za-z]{2,}[\w-]*", text)) <= 250, "two minutes"


def test_numbers_that_took_hours_are_those_of_the_documents():
    table = (ROOT / "docs" / "epsilon.md").read_text(encoding="utf-8").split("## Letters")[0]
    assert f"| *always the same* | {published_numbers.ALWAYS_THE_SAME} |" in table
    for loss, found in published_numbers.TOP_5.items():
        assert f"| {loss} | {found.value:.1f} [{found.low:.1f}, {found.high:.1f}] |" in table
    for loss, share in published_numbers.SAME_SET.items():
        line = next(each for each in table.splitlines() if each.startswith(f"| {loss} |"))
        assert line.endswith(f"| {share.value:.1f} [{share.low:.1f}, {share.high:.1f}] |")
    letters = (ROOT / "docs" / "epsilon.md").read_text(encoding="utf-8").split("## Letters with a tail of 20")[1]
    for loss, found in published_numbers.LETTERS.items():
        assert f"| {loss} | {found.value:.1f} [{found.low:.1f}, {found.high:.1f}] |" in letters
    clouds = json.loads((ROOT / "docs" / "claims" / "21.json").read_text(encoding="utf-8"))["lines"]
    for n_classes, accuracies in published_numbers.TOP_1_OF_CLASSES.items():
        found = {line["series"]: round(line["value"], 1) for line in clouds if line["x"] == n_classes}
        assert found == accuracies
    for number, claims in published_numbers.CLAIMS.items():
        kept = json.loads((ROOT / "docs" / "claims" / f"{number:0>2}.json").read_text(encoding="utf-8"))
        expected = {each["what"]: each for each in kept["expectations"]}
        for what, found in claims.items():
            for name, value in found._asdict().items():
                assert float(f"{expected[what][name]:.3g}") == value, what


# Lesson, what it says, notebook, what it printed, and the factor from the second to the first.
TWICE = [
    ("top_k_or_average_k", r"its average-3 sets for ([\d.]+) %", "00_start_here", r"label in the set ([\d.]+)%", 1),
    ("top_k_or_average_k", r"\+([\d.]+) points", "02_top_k_or_average_k", r"'gap': ([\d.]+)", 100),
    ("what_epsilon_does", r"([\d.]+) for K = 5", "04_losses_as_landscapes", r"calibrated below ε = ([\d.]+)", 1),
    ("what_calibrated_means", r"off by ([\d.]+) % against", "05_training_for_sets", r"calibrated loss +([\d.]+)", 100),
    (
        "what_calibrated_means",
        r"for only ([\d.]+) %\.",
        "05_training_for_sets",
        r"frequencies only +[\d.]+ +([\d.]+)",
        100,
    ),
    ("twins_and_two_heads", r"one twin gets (\d+) %", "05_training_for_sets", r"the favoured twin has ([\d.]+)", 100),
    ("twins_and_two_heads", r"but only (\d+) % of them", "05_training_for_sets", r"and ([\d.]+)% of their sets", 1),
]


@pytest.mark.parametrize(("lesson", "in_lesson", "notebook", "in_notebook", "factor"), TWICE)
def test_what_a_lesson_and_a_notebook_both_state_is_one_number(
    stories, lesson, in_lesson, notebook, in_notebook, factor
):
    (stated,) = set(re.findall(in_lesson, " ".join(stories[lesson].answer)))
    page = (ROOT / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8")
    digits = len(stated.partition(".")[2])
    assert round(factor * float(re.search(in_notebook, page)[1]), digits) == float(stated)


def test_the_answer_about_the_flower_is_that_of_the_posterior(stories):
    posterior = what_a_set_is.photograph_of_a_flower()[2]
    needed = wb.PointwiseError(confidence=0.9).fit(table := wb.LogitTable.from_probabilities(posterior[None]))(table)
    assert stories["what_a_set_is"].question.target.holds(int(needed.sizes[0]))
    assert not stories["what_a_set_is"].question.target.holds(int(needed.sizes[0]) - 1)


def test_two_rows_by_hand_are_what_the_rules_give():
    rows = (top_k_or_average_k.CLEAR, top_k_or_average_k.BLURRED)
    table = wb.LogitTable.from_probabilities(np.array(rows), posterior=np.array(rows))
    expected = [wb.bayes.expected_accuracy(rule.fit(table)(table)) for rule in (wb.TopK(2), wb.AverageK(2))]
    assert top_k_or_average_k.by_hand(rows, 2) == pytest.approx(expected)


def test_the_threshold_by_hand_is_that_of_the_library(stories):
    rows = a_threshold_without_labels.ROWS
    low, high = sorted(a_threshold_without_labels.cut(rows, 2))
    fitted = wb.AverageK(2).fit(wb.LogitTable.from_probabilities(np.array(rows)))
    assert fitted.threshold == pytest.approx((low + high) / 2)
    assert stories["a_threshold_without_labels"].question.target.holds(fitted.threshold)


def test_the_promise_is_kept_on_average_and_broken_on_bark_by_the_rule_that_is_smaller():
    lac, aps = (a_promise_and_its_price.by_organ(rule(0.9)) for rule in (wb.LAC, wb.APS))
    for found in (lac, aps):
        assert found["all"][0] == pytest.approx(0.9, abs=0.02)
    assert lac["flower"][0] > 0.93
    assert lac["bark"][0] < 0.8
    assert abs(aps["flower"][0] - aps["bark"][0]) < 0.03
    assert aps["bark"][1] > 2 * lac["bark"][1]
    assert a_promise_and_its_price.shifted() < 0.8
    val, test = truth()
    shown = test.attributes["organs"] == "bark"
    assert wb.LAC(0.9).fit(val)(test).hits[shown].mean() == pytest.approx(lac["bark"][0], abs=0.05)


def test_leaving_out_the_one_breaks_the_promise():
    without, right = a_promise_and_its_price.coverage_without_the_one(10, 0.9)
    assert without < 0.9 <= right
    random = np.random.default_rng(0).random((20_000, 11))  # ten calibration scores and the new one
    tenth = np.sort(random[:, :10], axis=1)
    assert (random[:, 10] <= tenth[:, 9]).mean() == pytest.approx(right, abs=0.01)
    assert (random[:, 10] <= tenth[:, 8]).mean() == pytest.approx(without, abs=0.01)


def test_the_plain_hinge_prefers_a_tie_and_the_calibrated_one_the_best_set():
    found = what_a_network_can_learn_from.risks(what_a_network_can_learn_from.BLURRED, 2)
    assert found["plain"][0] < found["plain"][1]
    assert found["calibrated"][1] < found["calibrated"][0]


def test_without_noise_nothing_moves_and_with_it_the_moat_is_crossed(stories):
    assert np.abs(what_epsilon_does.pulls(0.0)).max() == 0
    pull = what_epsilon_does.pulls(1.0)
    assert pull[what_epsilon_does.LABEL] > 0.5
    assert pull[: what_epsilon_does.K].sum() < -0.1
    assert f"ε = {largest_calibrated_epsilon(3):.2f} for K = 3" in text_of(stories, "what_epsilon_does")


def test_each_meaning_of_calibrated_can_hold_without_the_other():
    test = tables("garden", "CrossEntropy").test
    usual, noised = (
        what_calibrated_means.judged(tables("garden", loss).test) for loss in ("CrossEntropy", "NoisedTopK")
    )
    frequencies = what_calibrated_means.judged(what_calibrated_means.always_the_frequencies(test))
    assert noised[1] == pytest.approx(usual[1], abs=0.02)
    assert noised[0] > 3 * usual[0]
    assert frequencies[0] < usual[0]
    assert frequencies[1] < usual[1] - 0.3


def test_soft_ranks_are_probabilities_of_classes_and_of_ranks(stories):
    matrix = soft_ranks.soft_permutation(0.5)
    np.testing.assert_allclose(matrix.sum(0), 1)
    np.testing.assert_allclose(matrix.sum(1), 1)
    assert f"{-np.log(0.5 * matrix[0, 0] + 0.5 * matrix[:2, 0].sum()):.2f}. All" in text_of(stories, "soft_ranks")


def test_rounded_numbers_of_soft_ranks_add_up_as_they_stand(stories):
    text = text_of(stories, "soft_ranks")
    number = r"(\d(?:\.\d+)?(?:e-\d+)?)"
    losses = re.findall(rf"−log\(½ · {number} \+ ½ · {number}\) = {number}", text)
    assert len(losses) == 18, "one of each place of the slider, and one in the answer"
    for first, two, loss in losses:
        assert f"{-np.log(0.5 * float(first) + 0.5 * float(two)):.2f}" == loss
    ranks, sums = (
        [float(each) for each in re.search(rf"{before} ((?:\d\.\d\d(?:, )?){{4}})", text)[1].split(", ")]
        for before in ("each rank:", "first k entries:")
    )
    np.testing.assert_allclose(np.cumsum(ranks), sums)


def test_only_a_softmax_answers_none_and_three_alike():
    for name, loss in none_and_many.RUNS.items():
        none, three = (none_and_many.empty_share(tables("meadow", loss).test, n) for n in (0, 3))
        assert none > 0.95, "every link can leave a set empty"
        assert (three > 0.5) == (name == "softmax")


def test_a_hard_step_is_drawn_where_the_rank_jumps(stories):
    step = next(
        trace for trace in stories["soft_ranks"].question.picture.figures[0].data if "hard" in (trace.name or "")
    )
    jump = {x for x, y, before in zip(step.x[1:], step.y[1:], step.y, strict=False) if y != before}
    assert jump == {sorted(soft_ranks.OTHERS)[-2]}
    error = next(
        trace
        for trace in stories["what_a_network_can_learn_from"].question.picture.figures[0].data
        if trace.name == "top-2 error"
    )
    before = np.flatnonzero(np.diff(error.y))
    assert error.x[before] == error.x[before + 1] == sorted(what_a_network_can_learn_from.OTHERS)[-2]


def test_coverage_over_calibration_draws_keeps_every_promise():
    n = tables("garden", "CrossEntropy").val.n
    for confidence in (0.5, 0.7, 0.9):  # equal probabilities enter together, so coverage may exceed the promise
        covered = a_promise_and_its_price.by_organ(wb.LAC(confidence))["all"][0]
        assert covered > a_promise_and_its_price.coverage_band(n, confidence, level=0.95)[0]


def test_what_lesson_8_ships_is_what_the_twins_give():
    shipped = shipped_twins()
    first = wb.figures.twins(**GIVEN | {"steps": 30}).frame  # the first steps of the same training
    both = shipped.frame.merge(first, on=["loss", "photographs", "step", "line"])
    assert len(both) >= 100
    np.testing.assert_allclose(both["value_x"], both["value_y"], atol=10**-DIGITS)
    assert shipped.frame["step"].max() == GIVEN["steps"]
