"""Pages that figures write, opened in a real browser: they are alive, and they fetch nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from waiting import PATIENCE, eventually, next_frame

import workbench as wb
from workbench.figures.browser import FILM
from workbench.figures.film import encoded

RUDE = ["<b>bold</b>", "$x$", "&amp;", "{0}", "%{x}", "*star*"]

pytestmark = pytest.mark.browser


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    page = chromium.new_page(viewport={"width": 1000, "height": 700})
    page.set_default_timeout(1000 * PATIENCE)
    yield page
    page.close()


@pytest.fixture
def opened(page, tmp_path):
    """Opens the page of a figure and watches it: no error, no request beyond the file itself."""
    errors: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))

    def open_figure(figure: wb.figures.Figure, written: str = "") -> Any:
        path = tmp_path / "figure.html"
        path.write_text(written or figure.page(), encoding="utf-8")
        page.goto(path.as_uri())
        page.wait_for_selector(".main-svg")
        return page

    yield open_figure
    assert not errors
    assert all(url.startswith(("file:", "data:", "blob:")) for url in requests)


def table() -> wb.LogitTable:
    scores = np.random.default_rng(0).normal(size=(300, 6))
    return wb.LogitTable(
        2 * scores, (scores + np.random.default_rng(1).normal(size=scores.shape)).argmax(1), class_names=RUDE
    )


def shows(page: Any, trace: int, axis: str, expected: Sequence[float]) -> None:
    """Wait until Plotly has drawn these numbers."""
    page.wait_for_function(
        """([trace, axis, expected]) => {
            const drawn = document.querySelector(".js-plotly-plot").calcdata[trace].map((point) => point[axis]);
            return drawn.length === expected.length && drawn.every((value, i) => Math.abs(value - expected[i]) < 1e-4);
        }""",
        arg=[trace, axis, list(expected)],
    )


def test_the_explorer_follows_its_slider_without_a_kernel(opened):
    figure = wb.figures.explore(*table().split(), K_max=4, step=0.5)
    page = opened(figure)
    shows(page, 1, "s", figure.shares()[-1])  # opens at the K nearest to 5

    def slid_to_the_left():
        rail = page.locator(".slider-rail-touch-rect").bounding_box()
        page.mouse.click(rail["x"] + 2, rail["y"] + rail["height"] / 2)
        next_frame(page)
        assert page.locator(".slider-label").first.text_content().startswith("K = 1 ")

    eventually(page, slid_to_the_left)
    shows(page, 1, "s", figure.shares()[0])
    shows(page, 3, "y", figure.frame["accuracy"].iloc[:1])


@pytest.mark.parametrize("dark", [False, True])
def test_the_dashboard_as_a_page_moves_all_its_pictures_with_any_of_its_sliders(opened, dark):
    figure = wb.figures.explore(*table().split(), K_max=4, step=0.5)
    page = opened(figure, figure.to_html(dark))
    page.locator(".main-svg").nth(3).wait_for()
    page.get_by_role("slider", name="Promised coverage").fill("10")
    place = figure.linked.first("confidence") + 10
    drawn = f"() => [...document.querySelectorAll('.wb-picture-of-panel')].every((each) => each.dataset.place === '{place}')"
    page.wait_for_function(drawn)
    sizes = figure.sets_at(place).sizes
    assert page.locator(".wb-numbers dd").first.text_content() == f"{sizes.mean():.2f}"
    shown = page.locator(".js-plotly-plot").first.evaluate(
        "(picture) => Array.from(picture.calcdata[0], (bar) => bar.s)"
    )
    np.testing.assert_allclose(shown, np.bincount(sizes, minlength=len(shown)) / len(sizes), atol=1e-5)


def test_the_pointer_reads_the_exact_loss_off_the_triangle(opened):
    figure = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=21)
    page = opened(figure)
    box, beside = page.locator(".nsewdrag").bounding_box(), itertools.cycle((0, 1))

    def told_by_the_pointer():
        page.mouse.move(box["x"] + box["width"] / 2 + next(beside), box["y"] + box["height"] / 2)
        next_frame(page)
        told = page.locator(".hovertext").all_text_contents()
        assert len(told) == 1, "the picture does not see the pointer"
        return told[0]

    told = eventually(page, told_by_the_pointer)
    s2, value = float(told.split(",")[2].split(")")[0]), float(told.split()[-1])
    near = figure.frame[np.isclose(figure.frame["s2"], s2, atol=0.006)]
    assert np.isclose(near["value"], value, atol=6e-4).any()


def test_rude_class_names_are_shown_as_they_are(opened):
    sets = wb.AverageK(2).fit(table())(table())
    page = opened(wb.figures.per_class(sets))
    assert sorted(page.locator(".xtick text").all_text_contents()) == sorted(RUDE)


def test_a_browser_reads_the_numbers_that_python_wrote_at_every_place(page):
    random = np.random.default_rng(0)
    slow = random.integers(0, 100, (1, 3, 4)) + np.cumsum(random.random((50, 3, 4)) < 0.02, axis=0)
    boxes = np.where(random.random((40, 90)) < 0.5, np.nan, 3.5).astype(np.float32)
    boxes = np.maximum.accumulate(np.nan_to_num(boxes, nan=-1.0), axis=0)
    boxes[boxes < 0] = np.nan
    matrices = {
        "whole numbers that change slowly": slow,
        "below zero": slow - 300,
        "large": slow * 10_000,
        "noise": random.random((6, 7)),
        "boxes with gaps": boxes,
        "one line": slow[:1],
        "lines of any length": [slow[0, 0], slow[1, 1, :2], slow[2, 0, :0]],
    }
    page.goto("about:blank")
    page.add_script_tag(content=FILM.read_text(encoding="utf-8").replace("export ", ""))
    for name, values in matrices.items():
        sent = encoded(values)
        assert ("changed" in sent) == (name not in ("noise", "one line", "lines of any length"))
        read = page.evaluate(
            """([sent, n]) => {
                const at = reader(sent);
                const number = (value) => (Number.isNaN(value) ? null : value);
                const plain = (value) => (typeof value === "number" ? number(value) : Array.from(value, plain));
                return Array.from({ length: n }, (_, place) => plain(at(n - 1 - place))).reverse();
            }""",
            [sent, len(values)],
        )
        expected = [np.asarray(each, np.float32 if each.dtype.kind == "f" else None) for each in values]
        for here, there in zip(expected, read, strict=True):
            np.testing.assert_array_equal(here, np.array(there, float).reshape(here.shape))
