"""A person labels rows as sets; a killed browser loses no answer, and the person goes on where they left."""

from __future__ import annotations

import pytest
from browsing import RUDE_FILE, settled
from waiting import eventually

from workbench.store.set_answers import SetAnswers

pytestmark = [pytest.mark.browser, pytest.mark.writes]
NAME = f"ann {RUDE_FILE}"


def begin(page):
    page.get_by_text("Label rows as sets").click()
    page.get_by_role("textbox", name="Your name").fill(NAME)
    page.get_by_role("textbox", name="Your name").press("Enter")
    page.get_by_text(f"rows answered by {NAME}").wait_for()
    settled(page)


def search(page, text, found):
    """Type into the list of classes, and again if the page was drawn anew meanwhile and the letters went nowhere."""
    classes = page.get_by_role("combobox", name="It may be")

    def typed():
        if classes.input_value() != text:
            classes.click()
            classes.fill(text)
        assert page.locator("[role=option][data-focused=true]").get_by_text(found, exact=True).is_visible()

    eventually(page, typed)


def test_answers_of_a_session_that_ends_at_once_are_there_when_the_person_comes_back(opened, store):
    page = opened(view="samples", wait_for=".wb-wall")
    begin(page)
    search(page, "dubia", found="Brumalia dubia")  # Enter chooses a class, not every class
    page.keyboard.press("Enter")
    page.locator("[data-testid=stMultiSelect]").get_by_text("Brumalia dubia", exact=True).wait_for()
    page.locator("button:enabled", has_text="Save and next").wait_for()  # an open list hides all else from its role
    page.keyboard.press("Control+S")  # while the list is open, where Enter would choose a further class
    page.get_by_text(f"1 of 50 rows answered by {NAME}").wait_for()
    page.goto("about:blank")  # the browser is gone without a word
    answers = SetAnswers.of_run(store, "a" * 64)
    assert answers.frame()["classes"].tolist() == [("Brumalia dubia",)]
    page = opened(view="samples", wait_for=".wb-wall")
    begin(page)
    page.get_by_text(f"1 of 50 rows answered by {NAME}").wait_for()
    page.get_by_text("People beside the model").first.wait_for()
