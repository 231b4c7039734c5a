"""How long the network for drawn symbols takes to answer a stroke, in a browser and in Python, against one frame of 16 ms."""

from __future__ import annotations

import base64
import shutil
import statistics
import time

from playwright.sync_api import sync_playwright

import workbench as wb
from workbench.drawings import drawing_from_text, pad, scores

FRAME = 16.0  # milliseconds
TIMES = """async ([script, weights, drawings]) => {
    const module = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
    const bytes = Uint8Array.from(atob(weights), (letter) => letter.charCodeAt(0)).buffer;
    const parent = document.body.appendChild(document.createElement("div"));
    const symbols = JSON.parse(document.querySelector("#symbols").textContent);
    module.default({ data: { weights: { base64: weights }, symbols }, parentElement: parent });
    while (!parent.querySelector("[data-ready]")) await new Promise((done) => setTimeout(done));
    const layers = module.layersOf(bytes);
    const timed = (work) => drawings.map((drawing) => {
        const started = performance.now();
        work(JSON.parse(drawing));
        return performance.now() - started;
    });
    const whole = (drawing) => {
        parent.pad.drawing = drawing;
        parent.pad.draw();
        parent.getBoundingClientRect();
    };
    timed(whole);
    return [timed((drawing) => module.scores(layers, drawing)), timed(whole)];
}"""


def main() -> None:
    """Print medians and the worst, in milliseconds and in frames."""
    drawings = wb.load_dataset("symbols", n_train=200, n_val=1, n_test=200).test.strokes.tolist()
    weights = base64.b64encode(pad.WEIGHTS.read_bytes()).decode()
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        symbols = pad.SYMBOLS.read_text(encoding="utf-8")
        page.set_content(f'<style>{pad.style()}</style><script type="application/json" id="symbols">{symbols}</script>')
        network, whole = page.evaluate(TIMES, [pad.script(), weights, drawings])
        browser.close()
    read = [drawing_from_text(text) for text in drawings]
    python = []
    for drawing in read:
        started = time.perf_counter()
        scores([drawing])
        python.append(1000 * (time.perf_counter() - started))
    for name, times in {"browser, network": network, "browser, answer drawn": whole, "Python, network": python}.items():
        middle, worst = statistics.median(times), sorted(times)[int(0.95 * len(times))]
        print(f"{name:22} median {middle:5.2f} ms, 95 % within {worst:5.2f} ms = {worst / FRAME:.2f} of a frame")


if __name__ == "__main__":
    main()
