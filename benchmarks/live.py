"""Live heads in a real browser: from the key that moves α to every picture of the new head.

A fresh server and a fresh store; the first head also pays for drawing the garden and computing its features, so it is
told apart. The clock starts with the key event in the page and stops when the page shows the head of the new value, no
longer dimmed. Beside it, the seconds that the epochs themselves took: the rest is the way there and the pictures.
Needs chromium and playwright. Prints medians and 95th percentiles beside their limits.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from workbench.launching import app_command, free_port, start_server
from workbench.store import Store
from workbench.store.shelf import Shelf

PRESSES = 7
LIMITS = {"new": 3.0, "seen": 0.5}  # seconds
SLIDER = "[data-testid=stSlider]:has-text('α') input"
PAGE = """() => {
    const result = () => document.querySelector(".st-key-result");
    window.said = () => result()?.querySelector("strong")?.textContent;
    window.ready = (before) => said() && said() !== before && getComputedStyle(result()).opacity === "1";
    window.move = () => {
        const before = said();
        window.seconds = null;
        addEventListener("keydown", () => {
            const started = performance.now();
            const look = () => {
                if (!ready(before)) return requestAnimationFrame(look);
                requestAnimationFrame(() => { window.seconds = (performance.now() - started) / 1000; });
            };
            look();
        }, { once: true, capture: true });
    };
}"""


def moved(page: Any, key: str) -> float:
    """Seconds from a key on the slider of α to the pictures of the head it asks for."""
    page.evaluate("() => move()")
    page.locator(SLIDER).press(key)
    page.wait_for_function("() => window.seconds !== null", timeout=120_000)
    return float(page.evaluate("() => window.seconds"))


def measured(address: str, shelf: Shelf) -> dict[str, list[float]]:
    """Seconds of new values, of the epochs of their training, and of values seen before."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 1800})
        started = time.monotonic()
        page.goto(f"{address}/train")
        page.get_by_text("Trained AverageKTwoHead").wait_for(timeout=300_000)
        print(
            f"first head, with starting the worker, drawing the garden and its features: {time.monotonic() - started:.1f} s"
        )
        page.evaluate(PAGE)
        page.wait_for_function("() => ready('')", timeout=60_000)
        seconds: dict[str, list[float]] = {"new": [], "epochs": [], "seen": []}
        for _ in range(PRESSES):
            seconds["new"].append(moved(page, "ArrowRight"))
            seconds["epochs"].append(float(newest(shelf).history["seconds"].sum()))
        for _ in range(PRESSES):
            seconds["seen"].append(moved(page, "ArrowLeft"))
        browser.close()
    return seconds


def newest(shelf: Shelf) -> Any:
    """The run that was put on the shelf last."""
    return max((run for run in shelf.runs() if run.path.parent == shelf.root), key=lambda run: run.path.stat().st_mtime)


def main() -> None:
    """Start the app, measure, and print one line for each kind of move."""
    with tempfile.TemporaryDirectory() as home:
        port = free_port(8700)
        environment = {"WORKBENCH_HOME": home, "OMP_NUM_THREADS": "1"}
        with start_server(app_command(port, headless=True), port, environment, folder=Path(home)) as app:
            seconds = measured(app.url, Shelf(Store(home)))
    print(f"{'move of α':<28}{'median s':>10}{'p95 s':>8}{'limit s':>9}")
    for kind, words in (("new", "a new value"), ("epochs", "  of these, the epochs"), ("seen", "a value seen before")):
        median, high = np.median(seconds[kind]), np.quantile(seconds[kind], 0.95)
        limit = f"{LIMITS[kind]:.1f}" if kind in LIMITS else ""
        print(f"{words:<28}{median:>10.2f}{high:>8.2f}{limit:>9}")


if __name__ == "__main__":
    main()
