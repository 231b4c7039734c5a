"""The static site: opened from a file and from a plain server, its sliders move, and it fetches nothing from elsewhere."""

from __future__ import annotations

import http.server
import re
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import PATIENCE

import workbench as wb
from workbench.cli.main import main
from workbench.figures.style import LIGHT
from workbench.losses import LOSSES
from workbench.teaching import demo_tables, panels, site
from workbench.teaching.lessons import LESSONS

SOME = ("index", "lesson_2", "lesson_3", "sets", "loss_CalibratedTopKHinge", "words")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    assert main(["site", str(folder), "--only", *SOME]) == 0
    return folder


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_site_has_every_lesson_every_loss_and_every_part():
    names = [page.name for page in site.pages()]
    assert {f"lesson_{number}" for number in range(1, len(LESSONS) + 1)} <= {*names}
    assert {f"loss_{kind.__name__}" for kind in LOSSES} <= {*names}
    assert set(site.PARTS) <= {*names}
    assert len(names) == len({*names})


def test_a_page_that_is_not_there_is_refused_by_name(tmp_path, capsys):
    assert main(["site", str(tmp_path), "--only", "lesson_0"]) == 2
    assert "no page ['lesson_0']" in capsys.readouterr().err


def test_the_first_page_is_below_300_kB_with_all_it_loads(folder):
    assert (folder / "index.html").stat().st_size + (folder / "assets/page.css").stat().st_size < 300_000


@pytest.mark.parametrize("name", ["NoisedTopK", "SmoothTopKHinge", "CrossEntropy"])
def test_a_grid_of_knobs_has_one_position_for_every_setting(name):
    axes = panels.knob_axes(getattr(wb.losses, name))
    sliders = panels.knob_sliders(getattr(wb.losses, name).knobs(), axes)
    count = int(np.prod([len(values) for values in axes.values()]))
    for slider, values in zip(sliders, axes.values(), strict=True):
        assert len(slider.texts) == count
        for place in range(count - slider.stride):
            if slider.nearest[place] < len(values) - 1:
                assert slider.nearest[place + slider.stride] == slider.nearest[place] + 1


@pytest.mark.browser
@pytest.mark.parametrize("way", ["file", "server"])
def test_the_site_is_alive_from_a_file_and_from_a_server(chromium: Any, folder, request, way):
    start = folder.as_uri() if way == "file" else request.getfixturevalue("served")
    page = chromium.new_page(viewport={"width": 1024, "height": 768})
    page.set_default_timeout(1000 * PATIENCE)
    errors: list[str] = []
    fetched: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda asked: fetched.append(asked.url))
    page.goto(f"{start}/index.html")
    page.get_by_role("link", name=LESSONS[2].title).click()
    page.locator(".wb-plot .main-svg").first.wait_for()
    page.goto(f"{start}/sets.html")
    page.locator(".wb-plot .main-svg").nth(3).wait_for()
    slider = page.get_by_role("slider", name="Average size K")
    before = page.locator(".wb-numbers dd").first.inner_text()
    slider.fill("10")
    page.wait_for_function("() => document.querySelector('.wb-picture-of-panel').dataset.place === '10'")
    assert page.locator(".wb-numbers dd").first.inner_text() != before
    K = wb.SetIndex(demo_tables.tables("garden", "CrossEntropy").val, step=panels.POSITIONS["step"]).K_values[10]
    assert float(page.locator(".wb-moved output").first.inner_text()) == pytest.approx(K)
    line = page.locator(".wb-embed code").first.text_content()
    assert line.startswith("<iframe src=")
    page.set_content(f"<body>{line}</body>")
    alone = page.frame_locator("iframe")
    if way == "server":  # a page without an address may not show a file
        alone.locator(".wb-plot .main-svg").first.wait_for()
        assert alone.locator(".wb-plot").count() == 1
        assert not alone.locator("header").is_visible()
    page.goto(f"{start}/loss_CalibratedTopKHinge.html")
    page.locator(".wb-plot .main-svg").first.wait_for()
    page.get_by_role("slider", name="K").fill("0")
    page.wait_for_function("() => document.querySelector('.wb-subtitle').textContent.includes('K = 1')")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
    page.close()
    assert errors == []
    assert all(url.startswith((start, "file:", "data:", "blob:", "about:")) for url in fetched)


@pytest.mark.browser
def test_a_lecture_is_given_from_a_file(chromium: Any, folder):
    page = chromium.new_page(viewport={"width": 1024, "height": 768})
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{folder.as_uri()}/lesson_2.html")
    page.get_by_role("link", name="Present").click()
    story = LESSONS[1].tell(LIGHT)
    screens = len(story.words) + 2 + len(story.answer) + len(story.panels)
    for screen in range(1, screens + 1):
        page.get_by_text(f"{screen} / {screens}", exact=True).wait_for()
        page.wait_for_function("() => document.documentElement.scrollHeight <= innerHeight")
        page.keyboard.press("PageDown")
    page.wait_for_url("**/lesson_3.html?present")
    page.get_by_text("1 / ").wait_for()
    for _ in LESSONS[2].tell(LIGHT).words:
        page.keyboard.press("PageDown")
    page.locator(".wb-lesson[data-screen=question] .wb-plot .main-svg").first.wait_for()
    page.wait_for_function("""() => document.querySelector(".wb-seen .wb-plot").clientHeight >= innerHeight / 2
        && document.querySelector(".wb-moved").getBoundingClientRect().bottom <= innerHeight""")
    page.keyboard.press("Escape")
    page.wait_for_url("**/lesson_3.html")
    page.close()


@pytest.mark.browser
def test_tokens_are_placed_by_hand_and_then_by_one_threshold(chromium: Any, folder):
    page = chromium.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{folder.as_uri()}/lesson_2.html#tokens")
    bars, said = page.locator(".wb-token"), page.locator(".wb-left")
    for at in range(12):
        bars.nth(at).click()
    assert said.inner_text() == "All 12 tokens are placed."
    assert bars.nth(12).is_disabled()
    page.get_by_role("button", name="One threshold").click()
    yours, line = (float(each) for each in re.findall(r"([\d.]+) %", said.inner_text()))
    assert yours < line
    assert page.locator(".wb-above").count() == 12
    page.get_by_role("button", name="Again").click()
    assert said.inner_text() == "12 of 12 tokens left"
    page.close()


@pytest.mark.long
def test_the_whole_site_is_below_20_MB(tmp_path):
    site.write(tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 20_000_000
