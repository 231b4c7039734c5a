"""The Lessons view in a real browser: a lecture can be given with it, and it asks before it tells."""

from __future__ import annotations

import pytest
from browsing import at_rest, click, serious_violations, too_wide
from waiting import eventually

from workbench.figures.style import LIGHT
from workbench.teaching.lessons import LESSONS, a_threshold_without_labels
from workbench.teaching.quiz import questions

pytestmark = pytest.mark.browser


def heading(page, number: int) -> None:
    page.get_by_role("heading", name=f"{number} · {LESSONS[number - 1].title}").first.wait_for()
    at_rest(page)


def test_a_lesson_tells_nothing_before_the_slider_was_moved_to_an_answer(opened):
    page = opened(view="lessons", lesson=3, embed="true", wait_for=".wb-plot .main-svg")
    heading(page, 3)
    assert serious_violations(page) == []
    assert not page.locator("[data-testid=stSidebar]").is_visible()
    told = a_threshold_without_labels.LESSON.tell(LIGHT)
    assert page.locator(".wb-answer").count() == 0
    assert page.locator(".wb-caption").inner_text() == ""

    slider = page.locator(".wb-moved input")
    slider.focus()
    places = told.question.picture.slider
    right = max(at for at, value in enumerate(places.values) if told.question.target.holds(value))
    for _ in range(places.start - right):
        page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == places.texts[right]
    click(page.get_by_role("button", name="This is my answer"))
    page.locator(".wb-answer").wait_for()
    assert page.locator(".wb-verdict-of-lesson").inner_text().startswith("✓ Right.")
    assert page.locator(".wb-caption").inner_text() == told.question.picture.captions[right]
    dots = page.locator(".wb-seen .wb-plot").evaluate("plot => plot._fullData[0].x.length")
    assert dots == a_threshold_without_labels.K * len(a_threshold_without_labels.ROWS)


def test_a_lecture_is_given_with_a_clicker_one_idea_a_screen(opened):
    page = opened(view="lessons", lesson=2, width=683, scheme="dark", wait_for=".wb-choice")
    page.set_viewport_size({"width": 683, "height": 512})  # 1024 × 768 at 150 %
    heading(page, 2)
    click(page.get_by_text("Present", exact=True))
    page.locator(".wb-lesson[data-screen=story]").wait_for()
    at_rest(page)
    assert serious_violations(page) == []
    assert not page.locator("[data-testid=stSidebar]").is_visible()
    letters = page.locator(".wb-sight").evaluate("words => parseFloat(getComputedStyle(words).fontSize)")
    assert letters >= 28
    words = len(LESSONS[1].tell(LIGHT).words)
    for _ in range(words):
        page.keyboard.press("PageDown")
    page.locator(".wb-lesson[data-screen=question]").wait_for()
    assert page.locator(".wb-plot").count() == 0, "the picture would tell"
    page.keyboard.press("r")
    page.locator(".wb-lesson[data-screen=picture] .wb-plot .main-svg").first.wait_for()
    assert page.locator(".wb-seen .wb-plot").evaluate("plot => plot.clientHeight / innerHeight") >= 0.5
    page.keyboard.press("PageUp")
    wrong, right = page.locator(".wb-choice.wb-is-wrong").count(), page.locator(".wb-choice.wb-is-right").count()
    assert (wrong, right) == (2, 1)
    page.keyboard.press("PageDown")
    page.keyboard.press("PageDown")
    page.locator(".wb-lesson[data-screen=answer] .wb-answer").wait_for()
    assert too_wide(page) == 0
    for _ in LESSONS[1].tell(LIGHT).answer:
        page.keyboard.press("PageDown")
    assert LESSONS[1].tell(LIGHT).panels
    for _ in LESSONS[1].tell(LIGHT).panels:  # what there is to play with has a screen of its own
        page.locator(".wb-lesson[data-screen=panel] .wb-panel").first.wait_for()
        assert too_wide(page) == 0
        page.keyboard.press("PageDown")
    heading(page, 3)
    eventually(page, lambda: page.wait_for_url("**lesson=3**"))
    page.keyboard.press("PageUp")
    heading(page, 2)


def test_the_quiz_keeps_its_score_in_sight_and_explains_what_was_moved_and_clicked(opened):
    page = opened(view="lessons", lessons="Quiz", wait_for=".wb-question .wb-plot .main-svg")
    asked = questions(LIGHT)
    first, second = (page.locator(".wb-question").nth(number) for number in (0, 1))
    click(first.get_by_role("button", name=next(each.text for each in asked[0].choices if not each.right), exact=True))
    for choice in asked[0].choices:
        assert choice.why in first.inner_text()
    places = asked[1].picture.slider
    right = min(at for at, value in enumerate(places.values) if asked[1].target.holds(value))
    slider = second.locator("input")
    slider.focus()
    for _ in range(places.start - right):
        page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == places.texts[right]
    click(second.get_by_role("button", name="This is my answer"))
    assert asked[1].target.within in second.inner_text()
    score = page.locator(".wb-score")
    assert score.inner_text() == "1 right of 2 answered; 20 questions"
    page.locator(".wb-question").nth(19).scroll_into_view_if_needed()
    assert score.evaluate("score => score.contains(document.elementFromPoint(score.getBoundingClientRect().x + 5, "
                          "score.getBoundingClientRect().y + 5))")  # fmt: skip
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    click(page.get_by_role("radio", name="Lessons"))
    heading(page, 1)
    click(page.get_by_role("radio", name="Quiz"))
    page.get_by_text("1 right of 2 answered; 20 questions").wait_for()  # what was answered stays answered
