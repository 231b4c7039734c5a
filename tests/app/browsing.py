"""Reading and moving a page of the app, as a person would. What is waited for is a state of the page, never a time."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import urllib.parse
from typing import Any

from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest
from waiting import eventually, next_frame

from workbench.calibration import RECALIBRATORS
from workbench.datasets import AUGMENTATIONS, TRANSFORMS
from workbench.losses import by_name
from workbench.metrics import METRICS
from workbench.sets import RULES

# The runs of the test server.
KEYS = {"garden": "a" * 64, "sharper": "b" * 64, "many labels": "c" * 64, "no labels": "d" * 64}

# Hostile input for text fields: a script, an image from elsewhere, a link that runs code, a formula, a colour.
RUDE = "<img src=x onerror=alert(1)> ![x](http://elsewhere.test/x.png) [y](javascript:alert(1)) $x$ :red[z]"
RUDE_FILE = "<img src=x onerror=alert(1)> $x$ :red[z]"

# Shot group → its name in the bar.
SHOTS = {"few": "Rare classes", "medium": "Medium", "many": "Frequent"}

# Python has nothing left to do, and nothing of an earlier run of the page is left on it.
AT_REST = """
    document.querySelector(".stApp")?.dataset.testScriptState === "notRunning"
    && !document.querySelector("[data-stale=true], [data-retained=true], [data-testid=stSkeleton]")
"""
# Every part of the page is there, is drawn, as large as its place, and shows the place of the sliders.
DRAWN = """
    [...document.querySelectorAll(".stBidiComponent")].every((part) => part.querySelector(".wb-live, .wb-copy, .wb-night"))
    && [...document.querySelectorAll(".wb-figure, .wb-cards")].every((part) =>
        part.dataset.place && part.dataset.place === document.querySelector(".wb-sliders")?.dataset.place)
    && [...document.querySelectorAll(".wb-drawing")].every(({ dataset }) => dataset.drawn === dataset.wanted)
    && [...document.querySelectorAll(":is(.wb-picture, .wb-plot):has(.main-svg)")].every((picture) =>
        ["width", "height"].every((side) => Math.abs(
            picture.getBoundingClientRect()[side] - picture.querySelector(".main-svg").getBoundingClientRect()[side]) < 2))
"""

# Names of classes and functions that have a title, and what only code looks like: `n_samples=5`, `CrossEntropy()`.
NAMES = {*by_name(), *(kind.__name__ for kind in (*RULES, *RECALIBRATORS, *TRANSFORMS, *AUGMENTATIONS))}
NAMES |= {metric.name for metric in METRICS}
IN_CODE = re.compile(
    rf"\b(?:{'|'.join(name for name in NAMES if re.search('[a-z][A-Z]|_', name))})\b|\b[A-Za-z]\w*=[\d(\[]|\w\(\)"
)
SHOWN_AS_CODE = re.compile(r"`[^`]*`|<code>.*?</code>|\$\$.*?\$\$|\$[^$]*\$", re.DOTALL)  # and formulas
NOT_READ = (
    "id",
    "elementId",
    "formId",
    "jsContent",
    "cssContent",
    "queryParamKey",
    "help",
    "customdata",
    "meta",
    "channel",
)
QUOTED = "Part of this link is not available"  # and what it asks for is told as it stands there


def code_names(app: AppTest) -> list[str]:
    """What of a page that `AppTest` drew reads like code and is not shown as code."""
    found = []
    for element in app._tree:
        if element.type != "code" and getattr(element, "proto", None) is not None:
            texts = _texts(MessageToDict(element.proto))
            found += [text for text in texts if IN_CODE.search(SHOWN_AS_CODE.sub("", text))]
    return found


def markdown(app: AppTest) -> list[str]:
    """What of a page that `AppTest` drew a browser reads as Markdown: texts, labels, hints, and the options of buttons."""
    found = []
    for element in app._tree:
        if getattr(element, "proto", None) is not None:
            message = MessageToDict(element.proto)
            named = (
                "body",
                "label",
                "help",
                "captions",
                *(["options"] if element.type in ("radio", "button_group") else []),
            )
            found += _texts([message.get(name, "") for name in named])
    return found


def _texts(value: Any) -> list[str]:
    """All that stands in a message to the browser and that a person may read."""
    if isinstance(value, str):
        if value.startswith(("{", "[")):  # what a component draws
            with contextlib.suppress(ValueError):
                return _texts(json.loads(value))
        return [] if value.startswith(("data:", QUOTED)) or (len(value) > 2000 and " " not in value[:200]) else [value]
    if isinstance(value, dict):
        return [text for name, each in value.items() if name not in NOT_READ for text in _texts(each)]
    return [text for each in value for text in _texts(each)] if isinstance(value, list) else []


def tab(browser: Any) -> Any:
    """The tab that all tests use, after the one that keeps the browser's process alive."""
    return browser.pages[1] if len(browser.pages) > 1 else browser.new_page()


def at_rest(page: Any) -> None:
    """Wait until Python has nothing left to do and what it sent is on the page."""
    _wait_until(page, AT_REST)


def settled(page: Any) -> None:
    """Wait until the page is at rest and every part of it shows the place of the sliders."""
    _wait_until(page, f"{AT_REST} && {DRAWN}")


def _wait_until(page: Any, condition: str) -> None:
    """Wait until a condition holds in three frames in a row: what Python sends is drawn a frame or two after it says so."""
    page.evaluate("window.framesInARow = 0")
    page.wait_for_function(
        f"() => {{ window.framesInARow = {condition} ? window.framesInARow + 1 : 0; return window.framesInARow >= 3; }}"
    )


def says(place: Any, words: Any) -> None:
    """Wait until a page, or a part of it, says so. While a page changes, the same words may stand on it twice."""
    place.get_by_text(words).first.wait_for()


def arrives(page: Any, view: str) -> None:
    """Wait until a view has taken the place of the one before."""
    page.get_by_role("heading", name=view, exact=True, level=1).first.wait_for()
    at_rest(page)


def click(target: Any) -> None:
    """Click when Python has nothing left to do, and again if the browser says that the click missed.

    On a busy machine what is being clicked may move between the press and the release of the button; then the browser
    has clicked nothing, and a person would click again. A click that arrives and does nothing is not repeated.
    """
    target.first.wait_for()
    for _ in range(5):
        at_rest(target.page)
        element = target.element_handle()
        element.evaluate("e => e.addEventListener('click', () => { e.wasClicked = true; }, { capture: true })")
        target.click()
        if element.evaluate("e => e.wasClicked"):
            return
    raise AssertionError(f"five clicks on {target} missed it")


def go(page: Any, view: str) -> None:
    """Go to a view by its link, as a person does."""
    click(page.get_by_role("link", name=view, exact=True))
    arrives(page, view)


def click_in(picture: Any, x: float, y: float) -> None:
    """Click a place of a Plotly picture until the picture says that it was clicked.

    What a picture hovers is what it clicks, and while it is being laid out it does not see the pointer come.
    """
    page, element, beside = picture.page, picture.element_handle(), itertools.cycle((0, 1))
    element.evaluate("picture => picture.on('plotly_click', () => { picture.wasClicked = true; })")

    def clicked() -> None:
        box = element.bounding_box()
        page.mouse.move(box["x"] + x + next(beside), box["y"] + y)
        next_frame(page)
        assert element.evaluate("picture => Boolean(picture._hoverdata)"), "the picture does not see the pointer"
        page.mouse.click(box["x"] + x, box["y"] + y)
        next_frame(page)
        assert element.evaluate("picture => Boolean(picture.wasClicked)"), "the picture was not clicked"

    eventually(page, clicked)


def clicked(page: Any, name: str, *, trace: int = 0, point: int) -> None:
    """A picture says that a point of it was clicked."""
    settled(page)
    page.locator(f".st-key-figure-{name} .wb-picture").evaluate(
        """(picture, [trace, point]) => picture.emit("plotly_click", {
            points: [{ curveNumber: trace, pointNumber: point, customdata: picture._fullData[trace].customdata?.[point] }],
        })""",
        [trace, point],
    )


def choose(page: Any, control: str, option: str) -> None:
    """Choose an option of a list."""
    click(page.get_by_role("combobox", name=control, exact=True))
    click(page.get_by_role("option", name=option, exact=True))


def shown_code(place: Any) -> str:
    """The code of a picture, or of the only one of a page, as one copies it."""
    click(place.get_by_role("button", name=re.compile("Show the code|Code and download")))
    page = getattr(place, "page", place)
    at_rest(page)
    return page.locator("[data-testid=stCode]").inner_text().replace("\N{NO-BREAK SPACE}", " ")


def in_address(page: Any) -> dict[str, list[str]]:
    """What the address of a page asks for."""
    return urllib.parse.parse_qs(urllib.parse.urlparse(page.url).query)


def asks(page: Any, **expected: Any) -> None:
    """The address of the page asks, at the latest after a while, for all of this."""
    wanted = {
        name: list(map(str, value)) if isinstance(value, list) else [str(value)] for name, value in expected.items()
    }

    def same() -> None:
        assert in_address(page) == in_address(page) | wanted

    eventually(page, same)


def pressed(page: Any, slider: str, key: str, times: int = 1) -> None:
    """Press an arrow key on a slider and wait until the page, its address included, has followed."""
    page.locator(f"input[name={slider}]").focus()
    for _ in range(times):
        page.keyboard.press(key)
    next_frame(page)  # it moves once a frame
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

    def same() -> None:
        shown = {name: text for name, text in numbers(page).items() if name in expected}
        assert shown == expected, f"{page.url} shows {shown}, not {expected}"

    eventually(page, same)


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
    """What Plotly shows in a picture, once it is drawn: its traces' numbers and its shapes."""
    drawn = page.wait_for_function(
        """name => {
            const picture = document.querySelector(`.st-key-figure-${name} .wb-picture`);
            return picture?._fullData && {
                data: picture._fullData.map(({ x, y }) => ({ x: Array.from(x), y: Array.from(y) })),
                shapes: picture.layout.shapes ?? [],
                last: Math.round(picture._fullLayout.xaxis.range[1] - 0.5),
            };
        }""",
        arg=name,
    )
    return drawn.json_value()


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
