"""A lesson that is handed out is one file: it opens without a server, asks, moves, and fetches nothing."""

from __future__ import annotations

from typing import Any

import pytest
from waiting import PATIENCE

from workbench.cli.main import main
from workbench.teaching.lessons import LESSONS, a_threshold_without_labels


def test_lessons_are_listed_and_read_in_a_terminal(capsys):
    assert main(["lesson"]) == 0
    assert all(lesson.title in capsys.readouterr().out for lesson in LESSONS[:1])
    assert main(["lesson", "3"]) == 0
    assert "No label was used." in capsys.readouterr().out
    assert main(["lesson", "0"]) == 2
    assert f"from 1 to {len(LESSONS)}" in capsys.readouterr().err


@pytest.mark.browser
def test_a_handout_opens_from_a_file_and_its_slider_moves_the_picture(chromium: Any, tmp_path):
    out = tmp_path / "handout.html"
    assert main(["lesson", "3", "--html", "--output", str(out)]) == 0
    assert out.stat().st_size < 3_000_000, "plotly.js is there once"
    page = chromium.new_page(viewport={"width": 1024, "height": 768})
    page.set_default_timeout(1000 * PATIENCE)
    errors: list[str] = []
    fetched: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(out.as_uri())
    page.locator(".wb-plot .main-svg").first.wait_for()
    slider = page.locator(".wb-moved input")
    slider.fill("9")  # the tenth value
    threshold = page.locator(".wb-moved output").inner_text()
    page.wait_for_function("() => document.querySelector('.wb-seen').dataset.place === '9'")
    inside = page.locator(".wb-seen .wb-plot").evaluate("plot => plot._fullData[0].x.length")
    assert inside == sum(value >= float(threshold) for row in a_threshold_without_labels.ROWS for value in row)
    page.get_by_role("button", name="This is my answer").click()
    page.locator(".wb-answer").wait_for()
    page.get_by_role("button", name="Try again").click()
    assert page.locator(".wb-answer").count() == 0
    page.get_by_role("button", name="This is my answer").click()
    page.locator(".wb-answer").wait_for()
    page.get_by_role("button", name="Large type").click()
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    page.close()
    assert errors == []
    assert all(url.startswith(("file:", "data:", "blob:")) for url in fetched)
