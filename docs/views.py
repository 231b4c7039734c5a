"""Photographs every view of the app on four screens, by day and by night: docs/views-light.webp and docs/views-dark.webp.

python docs/views.py [--keep FOLDER] [--only NAME …] [--sizes NAME …] [--schemes NAME …]

The sheets show what one sees first. With `--keep`, all of each page is kept as a PNG of its own, to be looked at.
"""

from __future__ import annotations

import argparse
import io
import shutil
import tempfile
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image, ImageDraw, ImageFont

from workbench.app_server import app_command, free_port, start_server
from workbench.figures.style import theme
from workbench.store import DEMO, Store
from workbench.teaching.lessons import LESSONS

HERE = Path(__file__).parent
HIGH, GAP, ACROSS = 280, 12, 2  # of the sheet: pixels of a screen and between two, views to a line
QUALITY = 50  # of 100
PATIENCE = 240_000  # milliseconds


class Size(NamedTuple):
    """A screen, in the pixels of a page."""

    width: int
    height: int


SIZES = {
    "desk": Size(1440, 900),
    "projector": Size(683, 512),  # 1024 × 768 at 150 %
    "tablet": Size(820, 1180),
    "phone": Size(390, 844),
}
SCHEMES = ("light", "dark")
# Name → address and what it asks for; the run is that of the demo whose title begins so.
VIEWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "start": ("", "garden", {}),
    "runs": ("runs", "garden", {}),
    "sets": ("sets", "garden", {}),
    "sets by shots": ("sets", "garden", {"by": "shots", "K": 5}),
    "sets by another rule": ("sets", "garden", {"rule": "Regularised adaptive sets (RAPS)"}),
    "samples": ("samples", "garden", {}),
    "one row": ("samples", "garden", {"row": 3}),
    "classes": ("classes", "garden", {}),
    "calibration": ("calibration", "garden", {}),
    "train live": ("train", "garden", {}),
    "train a new run": ("train", "garden", {"train": "A new run"}),
    "sweeps": ("train", "garden", {"train": "Sweeps"}),
    "compare": ("compare", "garden", {}),
    "papers": ("compare", "garden", {"compare": "Papers' tables"}),
    "labels": ("labels", "meadow", {}),
    "stand-ins": ("landscapes", "garden", {"part": "Surrogates"}),
    "gallery": ("landscapes", "garden", {"part": "Gallery"}),
    "level sets": ("landscapes", "garden", {"part": "Level sets"}),
    "two losses": ("landscapes", "garden", {"part": "Level sets", "beside": "Cross-entropy"}),
    "conditional risk": ("landscapes", "garden", {"part": "Conditional risk"}),
    "along a line": ("landscapes", "garden", {"part": "Along a line"}),
    "the moat": ("landscapes", "garden", {"part": "Why small ε stalls"}),
    "weight space": ("landscapes", "garden", {"part": "Weight space"}),
    **{f"lesson {number}": ("lessons", "garden", {"lesson": number}) for number in range(1, 1 + len(LESSONS))},
    "a lesson on the wall": ("lessons", "garden", {"lesson": 1, "present": "true"}),
    "quiz": ("lessons", "garden", {"lessons": "Quiz"}),
}
# Python has nothing left to do, nobody is awaited and nothing dimmed; every picture is drawn where the sliders stand and as
# large as its place, and nothing is on its way to its own.
READY = """
    document.querySelector(".stApp")?.dataset.testScriptState === "notRunning"
    && !document.querySelector("[data-stale=true], [aria-busy=true]")
    && !document.querySelector("[data-testid=stSkeleton], [data-testid=stSpinner], [role=progressbar]:not([aria-valuenow='100'])")
    && [...document.querySelectorAll(".wb-drawing")].every(({ dataset }) => dataset.drawn === dataset.wanted)
    && [...document.querySelectorAll(".wb-figure, .wb-seen:has(.wb-plot)")].every(({ dataset }) => dataset.place)
    && [...document.querySelectorAll(":is(.wb-picture, .wb-plot):has(.main-svg)")].every((picture) =>
        ["width", "height"].every((side) => Math.abs(
            picture.getBoundingClientRect()[side] - picture.querySelector(".main-svg").getBoundingClientRect()[side]) < 2))
    && getComputedStyle(document.querySelector(".st-key-result") ?? document.body).opacity === "1"
    && document.getAnimations().every(({ playState }) => playState !== "running")
"""


def address(server: str, name: str) -> str:
    """The address of a view."""
    view, run, asked = VIEWS[name]
    key = next(each.key for each in Store(DEMO).runs() if each.title.startswith(run))
    return f"{server}/{view}?{urllib.parse.urlencode({'run': key[:12], **asked})}" if view else server


def wait(page: Any) -> None:
    """Until the page has been ready in five frames in a row."""
    page.evaluate("window.frames5 = 0")
    page.wait_for_function(f"() => {{ frames5 = {READY} ? frames5 + 1 : 0; return frames5 >= 5; }}", timeout=PATIENCE)


def photographed(page: Any, screen: Size, whole: bool) -> Image.Image:
    """What one sees first on a screen; or the whole page, as far down as six times its width, in a window as tall as that."""
    page.set_viewport_size(screen._asdict())
    wait(page)
    if whole:
        long = page.evaluate("document.querySelector('.stMain').scrollHeight")
        page.set_viewport_size({"width": screen.width, "height": max(screen.height, min(long, 6 * screen.width))})
        wait(page)
    return Image.open(io.BytesIO(page.screenshot())).convert("RGB")


@contextmanager
def served() -> Iterator[str]:
    """The app on a store of its own, in which are the runs of the demo."""
    with tempfile.TemporaryDirectory() as home:
        port = free_port(8700)
        with start_server(app_command(port, headless=True), port, {"WORKBENCH_HOME": home}) as app:
            yield app.url


@contextmanager
def chromium() -> Iterator[Any]:
    """The browser of the system."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


def photographs(server: str, given: argparse.Namespace, scheme: str) -> Iterator[tuple[str, str, Image.Image]]:
    """View, size and photograph; a view is visited once, and its window changes."""
    with chromium() as browser:
        page = browser.new_page(color_scheme=scheme)
        page.set_default_timeout(PATIENCE)
        for name in given.only:
            page.set_viewport_size(SIZES[given.sizes[0]]._asdict())
            page.goto(address(server, name))
            wait(page)
            page.keyboard.press("r")  # a lesson tells its answer
            for size in given.sizes:
                yield name, size, photographed(page, SIZES[size], whole=given.keep is not None)


def photograph_all(server: str, given: argparse.Namespace, scheme: str) -> None:
    """Write the sheet of a scheme, and every page of it if they are kept."""
    first_sights = {}
    for name, size, picture in photographs(server, given, scheme):
        first_sights[name, size] = picture.crop((0, 0, *SIZES[size]))
        if given.keep is not None:
            picture.save(given.keep / f"{name.replace(' ', '-')}-{size}-{scheme}.png")
    if given.only == list(VIEWS) and given.sizes == list(SIZES):
        contact_sheet(first_sights, scheme).save(HERE / f"views-{scheme}.webp", quality=QUALITY, method=6)


def contact_sheet(first_sights: dict[tuple[str, str], Image.Image], scheme: str) -> Image.Image:
    """The first sight of every view on every screen, (view, size) → picture, two views to a line."""
    colours, font = theme(scheme == "dark"), ImageFont.load_default(size=20)
    names = list(dict.fromkeys(name for name, _ in first_sights))
    widths = {size: round(HIGH * SIZES[size].width / SIZES[size].height) for _, size in first_sights}
    across, down = sum(widths.values()) + GAP * (len(widths) + 2), HIGH + 3 * GAP + 10
    sheet = Image.new("RGB", (ACROSS * across, -(-len(names) // ACROSS) * down + GAP), colours.panel)
    for place, name in enumerate(names):
        x, y = place % ACROSS * across + GAP, place // ACROSS * down + GAP
        ImageDraw.Draw(sheet).text((x, y), name, fill=colours.ink, font=font)
        for size, width in widths.items():
            sheet.paste(first_sights[name, size].resize((width, HIGH), Image.Resampling.LANCZOS), (x, y + 2 * GAP))
            x += width + GAP
    return sheet


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--only", nargs="+", default=list(VIEWS), choices=VIEWS, metavar="NAME")
    parser.add_argument("--sizes", nargs="+", default=list(SIZES), choices=SIZES)
    parser.add_argument("--schemes", nargs="+", default=list(SCHEMES), choices=SCHEMES)
    given = parser.parse_args()
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
    with served() as server, ThreadPoolExecutor() as side_by_side:  # day and night, each in a browser of its own
        list(side_by_side.map(lambda scheme: photograph_all(server, given, scheme), given.schemes))


if __name__ == "__main__":
    main()
