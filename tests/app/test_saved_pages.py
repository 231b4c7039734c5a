"""A page is saved as one file whose pictures are alive where there is no server and no network."""

from __future__ import annotations

from typing import Any

import pytest
from waiting import PATIENCE

pytestmark = pytest.mark.browser


def test_the_pictures_of_a_page_are_alive_in_its_file_with_their_numbers_and_code(opened, chromium: Any, tmp_path):
    page = opened(view="sets")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save this page").click()
    out = tmp_path / "sets.html"
    saved.value.save_as(out)
    context = chromium.new_context(offline=True)
    file = context.new_page()
    file.set_default_timeout(1000 * PATIENCE)
    errors: list[str] = []
    file.on("pageerror", lambda error: errors.append(str(error)))
    file.goto(out.as_uri())
    file.wait_for_function("document.querySelectorAll('.main-svg').length >= 4")
    assert file.locator("section").count() >= 4
    assert (
        "wb.figures" in file.locator("pre").first.inner_text(timeout=1000 * PATIENCE) or file.locator("details").count()
    )
    assert file.locator("table").count() == file.locator("section").count()
    context.close()
    assert errors == []
    assert out.read_text(encoding="utf-8").count("plotly.js v") == 1
