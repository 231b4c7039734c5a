"""Key press to redrawn charts, in a real browser on 31 112 × 1 081: the app against the obvious one, in the same run.

The clock starts with the key event in the page and stops one frame after every chart in sight shows the new place.
Needs chromium and playwright. Prints medians, 95th percentiles and their ratio.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

import workbench as wb
from workbench.imports import keep_tables
from workbench.launching import ADDRESS, app_command, free_port
from workbench.store import Store, StoredRun

ROWS, CLASSES = 31_112, 1_081  # the test split of Pl@ntNet-300K
PRESSES = 40
NAIVE = Path(__file__).with_name("naive_app.py")

# Both pages define `place()`, what the slider says, and `shown(place)`, whether all charts in sight show it.
APP_PAGE = """() => {
    const strip = () => document.querySelector(".wb-sliders");
    const inSight = (e) => e.getBoundingClientRect().top < innerHeight && e.getBoundingClientRect().bottom > 0;
    window.place = () => strip().dataset.row;
    window.shown = (place) => [...document.querySelectorAll(".wb-figure")]
        .filter((e) => inSight(e.querySelector(".wb-picture"))).every((e) => e.dataset.row === place);
}"""
NAIVE_PAGE = """() => {
    window.place = () => Number(document.querySelector("[data-testid=stSlider] input").value).toFixed(1);
    window.shown = (place) => {
        const titles = [...document.querySelectorAll(".gtitle")].map((e) => e.textContent);
        return titles.length === 3 && titles.every((text) => text.startsWith(`K = ${place}:`));
    };
}"""
TIMER = """() => {
    window.pressed = new Promise((resolve) => addEventListener("keydown", ({ timeStamp }) => {
        const before = place();
        const look = () => place() !== before && shown(place())
            ? requestAnimationFrame(() => resolve(performance.now() - timeStamp))
            : requestAnimationFrame(look);
        look();
    }, { once: true, capture: true }));
}"""


def long_tailed_tables() -> tuple[wb.LogitTable, wb.LogitTable]:
    """Validation and test rows of the size and the imbalance of Pl@ntNet-300K, with scores of a middling model."""
    random = np.random.default_rng(0)
    class_counts = np.sort(random.pareto(0.9, CLASSES) * 8 + 4).astype(int)[::-1]

    def table() -> wb.LogitTable:
        labels = random.choice(CLASSES, ROWS, p=class_counts / class_counts.sum())
        scores = 2 * random.standard_normal((ROWS, CLASSES), dtype=np.float32)
        scores[np.arange(ROWS), labels] += random.uniform(4, 16, ROWS).astype(np.float32)
        return wb.LogitTable(scores, labels, class_counts=class_counts)

    return table(), table()


def serve(command: list[str], port: int, root: Path, run: StoredRun) -> subprocess.Popen[bytes]:
    """Start a server and wait until it answers."""
    environment = {**os.environ, "WORKBENCH_HOME": str(root), "BENCHMARK_RUN": run.key, "OMP_NUM_THREADS": "1"}
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            urllib.request.urlopen(f"http://{ADDRESS}:{port}/_stcore/health", timeout=1).close()
            return server
        except OSError:
            time.sleep(0.2)
    server.terminate()
    raise RuntimeError(f"{' '.join(command)} did not start")


def measured(browser, port: int, slider: str, page_code: str, presses: int) -> np.ndarray:
    """Milliseconds from each key press to the redrawn charts."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(120_000)
    page.goto(f"http://{ADDRESS}:{port}")
    page.locator(slider).first.wait_for()
    page.evaluate(page_code)
    page.wait_for_function("() => shown(place())")
    page.wait_for_timeout(3000)
    page.locator(slider).first.focus()
    times = []
    for _ in range(presses):
        page.evaluate(TIMER)
        page.keyboard.press("ArrowRight")
        times.append(page.evaluate("() => pressed"))
        page.wait_for_timeout(100)
    page.close()
    return np.array(times)


def main() -> None:
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("this benchmark drives a browser: pip install playwright")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("this benchmark drives chromium, which is not installed here")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        val, test = long_tailed_tables()
        run = keep_tables(val, test=test, title="benchmark", store=Store(folder))
        ports = free_port(8700), free_port(8800)
        naive = app_command(ports[1], headless=True)
        naive[naive.index("run") + 1] = str(NAIVE)
        commands = [app_command(ports[0], headless=True), naive]
        servers = [serve(command, port, Path(folder), run) for command, port in zip(commands, ports, strict=True)]
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            ours = measured(browser, ports[0], "input[name=K]", APP_PAGE, PRESSES)
            theirs = measured(browser, ports[1], "[data-testid=stSlider] input", NAIVE_PAGE, PRESSES // 4)
        finally:
            browser.close()
            for server in servers:
                server.terminate()
                server.wait(30)
    print(f"key press to redrawn charts, {ROWS:,} rows × {CLASSES:,} classes".replace(",", " "))
    print(f"{'':<14}{'median':>10}{'95 %':>10}")
    for name, times in (("workbench", ours), ("obvious app", theirs)):
        print(f"{name:<14}{np.median(times):>7.0f} ms{np.quantile(times, 0.95):>7.0f} ms")
    print(f"{np.median(theirs) / np.median(ours):.0f} × faster")


if __name__ == "__main__":
    main()
