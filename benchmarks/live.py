"""Live heads in a real browser: from the key that moves α to every picture of the new head.

A fresh server and a fresh store; the first head also pays for drawing the garden and computing its features, so it is
told apart. When it is there, the other values of the slider are trained together: until then a new value is trained alone,
and then all of them are there. The clock starts with the key event in the page and stops when the page shows the head of the
new value, no longer dimmed. Beside it, the seconds of the epochs of a head that is trained alone, in the same run.
Needs chromium and playwright. Prints medians and 95th percentiles beside their limits. The machine should be quiet.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from workbench.app_server import app_command, free_port, start_server
from workbench.store import Store
from workbench.store.lru_store import LRUStore

PRESSES = 7
VALUES = 21  # of the slider
LIMITS = {"first": 6.0, "alone": 3.0, "new": 0.5, "seen": 0.5}  # seconds
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


def measured(address: str, lru_store: LRUStore) -> dict[str, list[float]]:
    """Seconds of the first head, of one trained alone, of its epochs, of values trained ahead, and of values seen before."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1440, "height": 1800})
        started = time.monotonic()
        page.goto(f"{address}/train")
        page.get_by_text("Trained Average-K two-head").wait_for(timeout=300_000)
        seconds: dict[str, list[float]] = {"first": [time.monotonic() - started]}
        page.evaluate(PAGE)
        page.wait_for_function("() => ready('')", timeout=60_000)
        seconds["alone"] = [moved(page, "ArrowRight")]
        seconds["epochs"] = [float(run.history["seconds"].sum()) for run in on(lru_store)]
        started = time.monotonic()
        while len(on(lru_store)) < VALUES:
            page.wait_for_timeout(100)
        page.wait_for_function("() => !document.body.innerText.includes('trained together')", timeout=60_000)
        print(f"all {len(on(lru_store))} values of α: after {time.monotonic() - started:.1f} s more")
        seconds["new"] = [moved(page, "ArrowRight") for _ in range(PRESSES)]
        seconds["seen"] = [moved(page, "ArrowLeft") for _ in range(PRESSES)]
        browser.close()
    return seconds


def on(lru_store: LRUStore) -> list[Any]:
    """The runs that are in the LRU store itself."""
    return [run for run in lru_store.runs() if run.path.parent == lru_store.root]


WORDS = {
    "first": "the first head, from the address on",
    "alone": "a new value, trained alone",
    "epochs": "  of these, the epochs",
    "new": "a new value, its axis trained",
    "seen": "a value seen before",
}


def main() -> None:
    """Start the app, measure, and print one line for each kind of move."""
    with tempfile.TemporaryDirectory() as home:
        port = free_port(8700)
        environment = {"WORKBENCH_HOME": home, "OMP_NUM_THREADS": "1"}
        with start_server(app_command(port, headless=True), port, environment, folder=Path(home)) as app:
            seconds = measured(app.url, LRUStore(Store(home)))
    print(f"{'move of α':<36}{'median s':>10}{'p95 s':>8}{'limit s':>9}")
    for kind, words in WORDS.items():
        median, high = np.median(seconds[kind]), np.quantile(seconds[kind], 0.95)
        limit = f"{LIMITS[kind]:.1f}" if kind in LIMITS else ""
        print(f"{words:<36}{median:>10.2f}{high:>8.2f}{limit:>9}")


if __name__ == "__main__":
    main()
