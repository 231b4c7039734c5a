"""Reading and moving a page of the app, as a person would."""

from __future__ import annotations

from typing import Any

# The runs of the test server.
KEYS = {"garden": "a" * 64, "sharper": "b" * 64, "many labels": "c" * 64, "no labels": "d" * 64}


def settled(page: Any) -> None:
    """Wait until every part of the page shows the row of the sliders and Python has nothing left to do."""
    page.wait_for_function(
        """() => {
            const strip = document.querySelector(".wb-sliders");
            const parts = [...document.querySelectorAll(".wb-figure, .wb-cards")];
            const drawings = [...document.querySelectorAll(".wb-drawing")];
            return parts.every((part) => strip?.dataset.row && part.dataset.row === strip.dataset.row)
                && drawings.every((drawing) => drawing.dataset.drawn) && parts.length + drawings.length
                && document.querySelector(".stApp").dataset.testScriptState === "notRunning";
        }"""
    )


def click(target: Any) -> None:
    """Click when Python has nothing left to do, and again if the browser says that the click missed.

    On a busy machine what is being clicked may move between the press and the release of the button; then the browser
    has clicked nothing, and a person would click again. A click that arrives and does nothing is not repeated.
    """
    target.wait_for()
    for _ in range(5):
        target.page.wait_for_function("document.querySelector('.stApp').dataset.testScriptState === 'notRunning'")
        element = target.element_handle()
        element.evaluate("e => e.addEventListener('click', () => { e.wasClicked = true; }, { capture: true })")
        target.click()
        if element.evaluate("e => e.wasClicked"):
            return
    raise AssertionError(f"five clicks on {target} missed it")


def click_in(picture: Any, x: float, y: float) -> None:
    """Click a place of a Plotly picture, once it has seen the pointer there: what it hovers is what it clicks."""
    page = picture.page
    for attempt in range(100):  # a picture that is being laid out does not see the pointer come
        box = picture.bounding_box()
        page.mouse.move(box["x"] + x + attempt % 2, box["y"] + y)
        page.wait_for_timeout(50)
        if picture.evaluate("picture => Boolean(picture._hoverdata)"):
            break
    page.mouse.click(box["x"] + x, box["y"] + y)


def pressed(page: Any, slider: str, key: str, times: int = 1) -> None:
    """Press an arrow key on a slider and wait until the page, its address included, has followed."""
    page.locator(f"input[name={slider}]").focus()
    for _ in range(times):
        page.keyboard.press(key)
    page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )  # it moves once a frame
    page.wait_for_function(
        """name => {
            const said = document.querySelector(`input[name=${name}]`).getAttribute("aria-valuetext");
            return Number(new URL(location).searchParams.get(name)) === Number(said);
        }""",
        arg=slider,
    )
    settled(page)


def reads(page: Any, expected: dict[str, str]) -> None:
    """The page says, at the latest after a while, exactly these numbers."""
    for _ in range(600):
        if numbers(page).items() >= expected.items():
            break
        page.wait_for_timeout(100)
    shown = {name: text for name, text in numbers(page).items() if name in expected}
    assert shown == expected, f"{page.url} shows {shown}, not {expected}"


def numbers(page: Any) -> dict[str, str]:
    """The headline numbers and what the sliders say, as a person reads them."""
    tiles = page.locator(".wb-number").evaluate_all(
        "all => all.map(tile => [...tile.children].map(e => e.textContent))"
    )
    said = page.locator(".wb-slider").evaluate_all(
        "all => all.map(box => [box.querySelector('input').name, box.querySelector('output').textContent])"
    )
    return dict(tiles) | dict(said)


def figure(page: Any, name: str) -> dict[str, Any]:
    """What Plotly shows in a picture: its traces' numbers and its shapes."""
    return page.locator(f".st-key-figure-{name} .wb-picture").evaluate(
        """picture => ({
            data: picture._fullData.map(({ x, y }) => ({ x: Array.from(x), y: Array.from(y) })),
            shapes: picture.layout.shapes ?? [],
            last: Math.round(picture._fullLayout.xaxis.range[1] - 0.5),
        })"""
    )


def serious_violations(page: Any) -> list[Any]:
    """What axe, if it is installed, finds wrong for people who use the page otherwise than with eyes and a mouse."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        return []
    return [
        (problem["id"], node["target"], node["failureSummary"])
        for problem in Axe().run(page).response["violations"]
        if problem["impact"] in ("serious", "critical")
        for node in problem["nodes"]
    ]


def too_wide(page: Any) -> int:
    """By how many pixels the page is wider than the window."""
    return page.evaluate("() => { const m = document.querySelector('.stMain'); return m.scrollWidth - m.clientWidth; }")
