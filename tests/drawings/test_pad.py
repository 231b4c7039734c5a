"""The pad in a real browser: the same scores as in Python, drawn with a mouse or a finger, and a promise from a room."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import beta
from waiting import PATIENCE, eventually

import workbench as wb
from workbench.cli.main import main
from workbench.drawings import drawing_from_text, pad, scores

pytestmark = pytest.mark.browser
SIZES = {"width": 1024, "height": 1400}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("pad") / "draw.html"
    assert main(["draw", "--output", str(out)]) == 0
    return out


@pytest.fixture
def opened(chromium: Any, written: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    context = chromium.new_context(viewport=SIZES, **getattr(request, "param", {}))
    page = context.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: complaints.append(asked.url) if asked.url.startswith("http") else None)
    page.goto(written.as_uri())
    page.wait_for_selector(".wb-pad[data-ready]")
    yield page
    context.close()
    assert complaints == []


def box(page: Any) -> dict[str, float]:
    return page.locator(".wb-pad-surface").bounding_box()


def drag(page: Any, *points: tuple[float, float]) -> None:
    """A stroke with the mouse, in shares of the pad."""
    at = box(page)
    place = [(at["x"] + x * at["width"], at["y"] + y * at["height"]) for x, y in points]
    page.mouse.move(*place[0])
    page.mouse.down()
    for x, y in place[1:]:
        page.mouse.move(x, y, steps=5)
    page.mouse.up()


def members(page: Any) -> list[str]:
    return page.locator(".wb-pad-set .wb-in code").all_inner_texts()


def fill_room(page: Any, n: int) -> None:
    """So many drawings, each with the first or second symbol of its set as the one that was meant."""
    for i in range(n):
        page.get_by_role("button", name=("Circle", "Cross", "Bar", "Sum")[i % 4], exact=True).click()
        page.locator(".wb-pad-set button").nth(i % 2).click()


def test_fifty_drawings_have_the_same_scores_in_the_browser_and_in_python(opened):
    with np.load("tests/data/drawn_symbols.npz", allow_pickle=False) as kept:
        texts = kept["strokes"].tolist()
    script = pad.script().replace("</script>", "")
    found = opened.evaluate(
        """async ([script, weights, drawings]) => {
            const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
            const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0)).buffer;
            const layers = module.layersOf(bytes);
            return drawings.map((text) => Array.from(module.scores(layers, JSON.parse(text))));
        }""",
        [script, base64.b64encode(pad.WEIGHTS.read_bytes()).decode(), texts],
    )
    assert len(found) == 50
    assert np.abs(np.array(found) - scores([drawing_from_text(text) for text in texts])).max() < 1e-5


def test_every_stroke_is_answered_and_k_and_the_threshold_move_the_set(opened):
    drag(opened, (0.2, 0.5), (0.8, 0.5))
    eventually(opened, lambda: _holds(members(opened)[0] in ("-", r"\frac{}{}")))
    drag(opened, (0.5, 0.2), (0.5, 0.8))
    eventually(opened, lambda: _holds(members(opened) == ["+"]))
    opened.locator("input[name=K]").fill("7")
    assert len(members(opened)) == 7
    opened.locator("input[name=threshold]").fill("90")
    assert "the set is empty" in opened.locator(".wb-pad-answer").inner_text() or members(opened) == ["+"]
    opened.get_by_role("button", name="Undo stroke").click()
    opened.get_by_role("button", name="Clear").click()
    assert opened.locator(".wb-pad-set li").count() == 0


def _holds(truth: bool) -> None:
    assert truth


def test_a_stroke_that_leaves_the_pad_stays_at_its_edge_one_point_is_a_dot_and_many_strokes_get_a_word(opened):
    at = box(opened)
    opened.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
    assert members(opened)[0] == r"\cdot"
    opened.get_by_role("button", name="Clear").click()
    drag(opened, (0.5, 0.5), (3, 0.5), (-3, -3))
    drawn = opened.locator(".wb-pad-surface path").get_attribute("d")
    numbers = [float(number) for number in drawn.replace("M", "").replace("L", " ").split()]
    assert min(numbers) == 0
    assert max(numbers) == 300
    for j in range(99):
        opened.mouse.click(at["x"] + 2 * j + 20, at["y"] + 30)
    assert "first 4 of 100 strokes" in opened.locator(".wb-pad-answer").inner_text()


@pytest.mark.parametrize("opened", [{"has_touch": True, "is_mobile": True}], indirect=True)
def test_a_finger_draws_and_does_not_scroll_the_page(opened):
    at = box(opened)
    client = opened.context.new_cdp_session(opened)
    down, along = at["x"] + 0.2 * at["width"], at["x"] + 0.8 * at["width"]
    middle = at["y"] + at["height"] / 2
    client.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [{"x": down, "y": middle}]})
    for x in np.linspace(down, along, 12).tolist():
        client.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [{"x": x, "y": middle}]})
    client.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    eventually(opened, lambda: _holds(members(opened)[:1] in (["-"], [r"\frac{}{}"])))
    assert opened.evaluate("scrollY") == 0


def test_a_room_of_twenty_drawings_makes_a_promise_with_its_band_and_is_there_after_a_reload(opened, tmp_path):
    fill_room(opened, 19)
    assert opened.locator("input[name=confidence]").is_disabled()
    fill_room(opened, 1)
    opened.locator("input[name=confidence]").fill("90")
    promise = opened.locator(".wb-pad-promise").inner_text()
    k = int(np.ceil(21 * 0.9))
    low, high = (f"{100 * beta(k, 21 - k).ppf(share):.0f} %" for share in (0.05, 0.95))
    assert f"between {low} and {high}" in promise
    with opened.expect_download() as saved:
        opened.get_by_role("button", name="Export (CSV)").click()
    path = tmp_path / "drawings.csv"
    saved.value.save_as(path)
    room = wb.import_table(path)
    assert (room.n, room.n_classes, room.labelled.all()) == (20, 378, True)
    assert np.abs(scores([drawing_from_text(text) for text in room.strokes.tolist()]) - room.scores).max() < 1e-5
    threshold = wb.LAC(0.9).fit(room).threshold
    assert f"λ = {threshold:.2g}" in promise
    opened.locator("input[name=confidence]").fill("99")
    assert "more than 20 drawings can promise" in opened.locator(".wb-pad-promise").inner_text()
    opened.reload()
    opened.wait_for_selector(".wb-pad[data-ready]")
    assert opened.locator(".wb-pad-wall li").count() == 20
    opened.get_by_role("button", name="Empty the room").click()
    opened.locator("input[type=file]").set_input_files(path)
    eventually(opened, lambda: _holds(opened.locator(".wb-pad-wall li").count() == 20))
    bad = tmp_path / "bad.csv"
    bad.write_text("strokes,label\nnonsense,x\n" + f'"{json.dumps([[[0, 0], [1, 1]]])}",no such symbol\n')
    opened.locator("input[type=file]").set_input_files(bad)
    noted = opened.locator(".wb-pad-noted")
    eventually(opened, lambda: _holds("2 lines hold no drawing" in noted.inner_text()))
