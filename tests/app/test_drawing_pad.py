"""The pad on Start and below a lesson: what a room draws opens in every view."""

from __future__ import annotations

import pytest
from browsing import click, says, settled

pytestmark = pytest.mark.browser


@pytest.mark.writes
def test_drawings_of_a_room_open_as_a_run_with_their_strokes(opened):
    page = opened(view="start", wait_for=".wb-pad[data-ready]")
    for name in ("Circle", "Cross", "Bar", "Sum"):
        page.get_by_role("button", name=name, exact=True).click()
        page.locator(".wb-pad-set button").first.click()
    page.get_by_role("button", name="Open in every view").click()
    page.wait_for_selector(".wb-wall")
    settled(page)
    assert "/sets?run=" in page.url
    click(page.get_by_role("button", name="About this run, and other files"))
    says(page, "Drawings of this room: 2 validation and 2 test rows, 378 classes")


def test_the_pad_stands_below_the_lesson_about_promises(opened):
    page = opened(view="lessons", wait_for=".wb-pad[data-ready]", lesson=4)
    page.get_by_role("button", name="Cross", exact=True).click()
    assert page.locator(".wb-pad-set .wb-in code").all_inner_texts()[:2] == [r"\times", "x"]
