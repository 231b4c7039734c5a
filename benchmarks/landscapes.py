"""What a landscape costs: 5 151 score vectors computed, contoured and written as Plotly's JSON, for every loss.

    python benchmarks/landscapes.py

Milliseconds of one core (the best of a few), beside the protocol of Garcin et al. 2022 for the noised loss in the same
run: the mean of 100 replications with 30 noise draws each. Then, if there is a chromium, the same seen by a person: from a
key press on the slider of ε to the redrawn contours, and from opening the gallery to all of it.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

import workbench as wb
from workbench.app_server import app_command, free_port, start_server
from workbench.figures.losses.evaluation import on_three_classes
from workbench.figures.losses.landscapes import simplex_grid

STEPS = 101
PRESSES = 30
RANKED_OR_EXACT = {"NoisedTopK", "ExactNoisedTopK", "NoisedTopKImbalanced", "DifferentiableTopK"}  # drawn exactly
BUDGETS = {False: 60, True: 250}  # milliseconds to compute

# Resolves one frame after a picture that was drawn later than the key press.
TIMER = """() => {
    const drawn = () => document.querySelector(".wb-drawing").dataset.drawn;
    window.pressed = new Promise((resolve) => addEventListener("keydown", ({ timeStamp }) => {
        const before = drawn();
        const look = () => drawn() !== before
            ? requestAnimationFrame(() => resolve(performance.now() - timeStamp))
            : requestAnimationFrame(look);
        look();
    }, { once: true, capture: true }));
}"""


def best(action: Callable[[], Any], times: int = 5) -> float:
    """Milliseconds of processor time of the quickest of a few calls, after one that does not count."""
    action()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return 1000 * min(seconds)


def paper_protocol() -> float:
    """One run of the paper's way to a level set without meshing artefacts."""
    scores, labels = torch.as_tensor(simplex_grid(STEPS)), torch.full((5151,), 2)
    loss, draws = wb.losses.NoisedTopK(K=2, epsilon=1.0, n_samples=30), torch.Generator().manual_seed(0)
    return best(lambda: sum(loss(scores, labels, generator=draws) for _ in range(100)) / 100, times=1)


def in_python(protocol: float) -> None:
    """The table of losses."""
    print(f"{'':24}{'compute':>9}{'budget':>8}{'draw':>8}{'kB':>6}   of the paper's protocol ({protocol:.0f} ms)")
    for loss_class in wb.losses.LOSSES:
        loss = on_three_classes(loss_class)
        figure = wb.figures.level_sets(loss, steps=STEPS)
        compute = best(lambda loss=loss: wb.figures.level_sets(loss, steps=STEPS))
        draw = best(lambda figure=figure: figure.plot().to_json())
        size, budget = len(figure.plot().to_json()) / 1000, BUDGETS[loss_class.__name__ in RANKED_OR_EXACT]
        share = (compute + draw) / protocol
        print(f"{loss_class.__name__:24}{compute:9.1f}{budget:8}{draw:8.1f}{size:6.0f}   {share:.1%}")
    compute, draw = best(wb.figures.gallery, 1), best(lambda: wb.figures.gallery().plot().to_json(), 1)
    print(f"{'gallery, 51 a side':24}{compute:9.1f}{3000:8}{draw - compute:8.1f}")
    loss = wb.losses.NoisedTopK(K=2)
    print(f"{'conditional risk':24}{best(lambda: wb.figures.conditional_risk(loss)):9.1f}")
    print(f"{'calibration map':24}{best(lambda: wb.figures.calibration_map(loss)):9.1f}")


@contextmanager
def served() -> Iterator[str]:
    """The address of a fresh app."""
    port = free_port(8700)
    with tempfile.TemporaryDirectory() as home:
        command = app_command(port, headless=True)
        with start_server(command, port, {"WORKBENCH_HOME": home}, folder=Path(home)) as app:
            yield app.url


def in_a_browser(protocol: float) -> None:
    """Key press to redrawn contours, and the gallery, cold and seen before."""
    from playwright.sync_api import sync_playwright

    with served() as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", "--disable-quic"]
        )

        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        page.set_default_timeout(120_000)
        page.goto(f"{address}/landscapes")
        page.wait_for_selector(".wb-drawing[data-drawn]")

        def shown(part: str, figure: str) -> float:
            """Milliseconds from the click on a part of the page to its first picture."""
            start = time.perf_counter()
            page.get_by_role("radio", name=part).or_(page.get_by_role("button", name=part)).first.click()
            page.wait_for_selector(f".st-key-figure-{figure} .wb-drawing[data-drawn]")
            return 1000 * (time.perf_counter() - start)

        print(
            f"{'gallery, cold':24}{shown('Gallery', 'gallery'):9.0f}{3000:8}   click to picture, torch's import included"
        )
        shown("Stand-ins", "surrogates")
        print(f"{'gallery, seen before':24}{shown('Gallery', 'gallery'):9.0f}")
        shown("Level sets", "levels-0")
        page.wait_for_timeout(1500)
        page.locator(".st-key-NoisedTopK_epsilon input[type=range]").focus()
        waited = []
        for press in range(PRESSES):
            page.evaluate(TIMER)
            page.keyboard.press("ArrowRight" if press < PRESSES // 2 else "ArrowLeft")
            waited.append(page.evaluate("() => window.pressed"))
            page.wait_for_timeout(200)
        browser.close()
    new, seen = waited[: PRESSES // 2], waited[PRESSES // 2 + 1 :]
    for name, times in (("slider, new setting", new), ("slider, seen before", seen)):
        print(f"{name:24}{statistics.median(times):9.0f}{250:8}   {statistics.median(times) / protocol:.1%} (median)")


def main() -> None:
    torch.set_num_threads(1)
    protocol = paper_protocol()
    in_python(protocol)
    if shutil.which("chromium"):
        in_a_browser(protocol)


if __name__ == "__main__":
    main()
