"""The app in a real browser: key press to redrawn charts, every view, and the first paint of a fresh server.

The sliders of *Sets* are measured on 31 112 × 1 081, beside the obvious app in the same run; the other views on a demo run,
one control moved by a key, beside a page that does nothing but answer. The clock starts with the key event in the page and
stops one frame after the last chart in sight has changed. The first paint is that of a server that has just come up, with an
empty browser, and so is the first row that is opened. At last views are opened in a row, and what server and page then hold
is compared with what they held when each had been opened a few times.
Needs chromium and playwright. Prints medians and 95th percentiles beside their limits. Given names of views, such as
`python benchmarks/app.py Classes Compare`, it moves their controls and measures nothing else.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import workbench as wb
from workbench.app_server import ADDRESS, RunningApp, app_command, free_port, start_server
from workbench.store import Store, StoredRun
from workbench.store.imported_tables import keep_tables

ROWS, CLASSES = 31_112, 1_081  # the test split of Pl@ntNet-300K
PRESSES = 40
FEW_PRESSES = 12  # of a control that may ask the server
MOST_VISITS = 20  # of a page, until what it makes ahead is there
STARTS = 6  # of a server, to paint a first page
PATIENCE = 10_000  # milliseconds after which a page that does not change is given up
QUIET = 1000  # milliseconds without a change after which a page has settled
# View → its address, and the beginning of the name of the slider that is moved.
CONTROLS = {
    "Sets, RAPS": ("sets?rule=RAPS&rule_confidence=0.6", "1 − α"),
    "Samples": ("samples?K=5&size=2&size=50", "Set size"),
    "Classes": ("classes?K=3", "Average size K"),
    "Calibration": ("calibration", "Temperature"),
    "Compare": ("compare?K=3", "Average size K"),
    "Labels": ("labels?K=3", "Average size K"),
    "Landscapes": ("landscapes?part=Level+sets", "ε"),
    "Lessons": ("lessons?lesson=3", "threshold"),
}
# View → what is there once the server has made ahead what follows its control by itself; until then each move asks Python.
MADE_AHEAD = {
    "Calibration": ".st-key-figure-after .wb-figure",
    "Compare": ".st-key-figure-scatter .wb-figure",
    "Landscapes": ".wb-drawing[data-follows]",
}
VISITS, ROUNDS = 20, 3  # of views, one after the other; through all of them before
SLIDERS = 200  # milliseconds
ROUND_TRIPS, OF_OBVIOUS, FIRST_ROW = 1.3, 0.7, 1000  # a move ÷ nothing, a paint ÷ that of the obvious app, milliseconds
BESIDE = Path(__file__).parent / "beside"

SLIDER, ANY_SLIDER = "input[name=K]", "[data-testid=stSlider] input"
# Both pages define `place()`, what the slider says, and `shown(place)`, whether all charts in sight show it.
APP_PAGE = """() => {
    const strip = () => document.querySelector(".wb-sliders");
    const inSight = (e) => e.getBoundingClientRect().top < innerHeight && e.getBoundingClientRect().bottom > 0;
    window.place = () => strip().dataset.place;
    window.shown = (place) => {
        const pictures = [...document.querySelectorAll(".wb-figure")].filter((e) => inSight(e.querySelector(".wb-picture")));
        return pictures.length > 0 && pictures.every((e) => e.dataset.place === place);
    };
}"""
# Whatever the first page shows: its words, and all pictures in sight if it has any.
FIRST_PAGE = """() => {
    window.place = () => null;
    window.shown = () => document.querySelector(".stApp").dataset.testScriptState === "notRunning"
        && [...document.querySelectorAll(".wb-figure")].every((e) =>
            e.dataset.place || e.querySelector(".wb-picture").getBoundingClientRect().top > innerHeight);
}"""
NAIVE_PAGE = """() => {
    window.place = () => Number(document.querySelector("[data-testid=stSlider] input").value).toFixed(1);
    window.shown = (place) => {
        const titles = [...document.querySelectorAll(".gtitle")].map((e) => e.textContent);
        return titles.length === 3 && titles.every((text) => text.startsWith(`K = ${place}:`));
    };
}"""
ANY_PAGE = """() => {
    const told = ".wb-drawing, .wb-figure, .wb-cards, .wb-sliders, .wb-seen, .stMain .stMarkdown";
    window.state = () => [...document.querySelectorAll(told)]
        .map((e) => e.dataset.drawn ?? `${e.dataset.place} ${e.textContent.length} ${e.textContent}`).join("\\n");
    window.settled = (since) => new Promise((resolve) => {
        let [before, last] = [state(), null];
        const look = () => {
            const [now, time] = [state(), performance.now()];
            if (now !== before) [before, last] = [now, time];
            if (last !== null && time - last > QUIET) resolve(last - since);
            else if (time - since > PATIENCE) resolve(NaN);
            else requestAnimationFrame(look);
        };
        look();
    });
    addEventListener("keydown", ({ timeStamp }) => window.pressed ??= settled(timeStamp), { capture: true });
}""".replace("QUIET", str(QUIET)).replace("PATIENCE", str(PATIENCE))
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


def serve(command: list[str], port: int, root: Path, run: StoredRun) -> RunningApp:
    """Start one of the two apps and wait until it answers. Compiled modules are kept from one start to the next."""
    environment = {"WORKBENCH_HOME": str(root), "BENCHMARK_RUN": run.key, "OMP_NUM_THREADS": "1"}
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(root / "compiled")}
    return start_server(command, port, environment | compiled)


def measured(browser, url: str, slider: str, page_code: str, presses: int) -> np.ndarray:
    """Milliseconds from each key press to the redrawn charts."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(120_000)
    page.goto(url)
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


def of_views(
    browser, ports: tuple[int, int], root: Path, run: StoredRun, names: Iterable[str]
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """View → milliseconds from each key press on one of its controls to the last chart redrawn, and the same of nothing.

    They are pressed in turn: whatever else the machine does, it does to both.
    """
    found = {}
    with (
        serve(app_command(ports[0], headless=True), ports[0], root, run) as app,
        serve(beside("nothing.py", ports[1]), ports[1], root, run) as empty_app,
    ):
        for name in names:
            address, label = CONTROLS[name]
            ours = control(browser, f"{app.url}/{address}", label, MADE_AHEAD.get(name, ".stMain"))
            controls = ours, control(browser, empty_app.url, "K", ".stMain")
            times = np.array([[press(each) for each in controls] for _ in range(FEW_PRESSES)])
            found[name] = times[:, 0], times[:, 1]
            for each in controls:
                each.page.close()
    return found


def control(browser, url: str, label: str, ready: str):
    """A slider of a page that has settled, visited anew until it has what is `ready` by then."""
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(120_000)
    control = page.locator(".stMain").get_by_role("slider", name=label).first
    for _ in range(MOST_VISITS):
        page.goto(url)
        control.wait_for()
        page.wait_for_timeout(4000)
        page.locator(".stApp[data-test-script-state=notRunning]").wait_for()  # the photographs may take longer
        if page.locator(ready).count():
            break
    page.evaluate(ANY_PAGE)
    return control


def press(control) -> float:
    """Milliseconds from a key press on a slider to the last change of its page."""
    control.page.bring_to_front()
    control.focus()
    control.page.evaluate("() => { window.pressed = undefined; }")
    control.page.keyboard.press("ArrowRight")
    return control.page.evaluate("() => pressed")


def first_paint(
    browser, command: list[str], port: int, root: Path, run: StoredRun, page_code: str, ready: str, view: str
) -> float:
    """Milliseconds from asking a server that has just come up for a page to all charts in sight drawn."""
    with serve(command, port, root, run) as app:
        page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
        page.set_default_timeout(120_000)
        started = time.perf_counter()
        page.goto(f"{app.url}/{view}", wait_until="commit")
        page.locator(ready).first.wait_for(state="attached")
        page.evaluate(page_code)
        page.wait_for_function("() => shown(place())")
        taken = 1000 * (time.perf_counter() - started)
        page.context.close()
    return taken


def opening_train(port: int, browser, root: Path, run: StoredRun) -> tuple[float, float]:
    """Milliseconds until the Train view of a fresh server shows its knobs, and the megabytes that the server then holds."""
    with serve(app_command(port, headless=True), port, root, run) as app:
        page = browser.new_context().new_page()
        page.set_default_timeout(120_000)
        started = time.perf_counter()
        page.goto(f"{app.url}/train", wait_until="commit")
        page.locator(".stMain .stSlider").first.wait_for()
        taken = 1000 * (time.perf_counter() - started)
        held = megabytes_of(app)
        page.context.close()
    return taken, held


def opening_a_row(port: int, browser, root: Path, run: StoredRun) -> tuple[float, float]:
    """Milliseconds until the first row that is opened on a fresh server is there, and until its similar pictures are."""
    with serve(app_command(port, headless=True), port, root, run) as app:
        page = browser.new_context(viewport={"width": 1440, "height": 1000}).new_page()
        page.set_default_timeout(120_000)
        page.goto(f"{app.url}/samples?K=5")
        card = page.get_by_role("button", name="open row 3")
        card.wait_for()
        page.locator(".stApp[data-test-script-state=notRunning]").wait_for()
        started, taken = time.perf_counter(), []
        card.dispatch_event("click")
        for part in (".wb-suggestions-table", ".wb-similar .wb-photo"):
            page.locator(part).first.wait_for()
            taken.append(1000 * (time.perf_counter() - started))
        page.context.close()
    return taken[0], taken[1]


def held_after_visits(app: RunningApp, browser) -> tuple[dict[str, float], dict[str, float]]:
    """What server and page hold when every view was opened a few times, and after so many more visits in the same tab.

    A few times: the server goes on computing ahead what a view may ask for next.
    """
    page = browser.new_page(viewport={"width": 1440, "height": 1000})
    page.set_default_timeout(120_000)
    page.goto(app.url)
    page.locator("[data-testid=stSidebarNavLink]").first.wait_for()
    links = page.locator("[data-testid=stSidebarNavLink]").count()
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def visit(number: int) -> None:
        page.locator("[data-testid=stSidebarNavLink]").nth(number % links).click()
        page.wait_for_timeout(500)
        page.locator(".stApp[data-test-script-state=notRunning]").wait_for()
        page.wait_for_timeout(1500)

    def held() -> dict[str, float]:
        session.send("HeapProfiler.collectGarbage")
        found = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
        of_page = {"page, MB": found["JSHeapUsedSize"] / 2**20}
        of_page |= {f"page, {name.lower()}": found[name] for name in ("Nodes", "JSEventListeners")}
        return {"server, MB": megabytes_of(app), **of_page}

    for number in range(ROUNDS * links + 1):
        visit(number)
    before = held()
    for number in range(1, VISITS // links * links + 1):
        visit(number)
    after = held()
    page.close()
    return before, after


def megabytes_of(app: RunningApp) -> float:
    """The memory that a server holds."""
    command = ["ps", "-o", "rss=", "-p", str(app.server.pid)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) / 1024


def beside(script: str, port: int) -> list[str]:
    """The command that serves an app that ours is measured beside."""
    python, _, *options = app_command(port, headless=True)
    return [python, "-m", "streamlit", "run", str(BESIDE / script), *options]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("views", nargs="*", choices=CONTROLS, metavar="view", help=f"of {', '.join(CONTROLS)}")
    chosen = arguments.parse_args().views
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        sys.exit("this benchmark drives a browser: pip install playwright")
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("this benchmark drives chromium, which is not installed here")
    with (
        tempfile.TemporaryDirectory() as folder,
        tempfile.TemporaryDirectory() as empty,
        sync_playwright() as playwright,
    ):
        demo = Store(empty).runs()[0]
        ports = free_port(8700), free_port(8800)
        commands = app_command(ports[0], headless=True), beside("obvious_app.py", ports[1])
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            if chosen:
                print_moves(of_views(browser, ports, Path(empty), demo, chosen))
                return
            pages = {
                "first page": (commands[0], ports[0], FIRST_PAGE, ".stMain h1", ""),
                "Sets": (commands[0], ports[0], APP_PAGE, SLIDER, "sets"),
                "obvious app": (commands[1], ports[1], NAIVE_PAGE, ANY_SLIDER, ""),
            }
            painted = {
                name: [first_paint(browser, command, port, Path(empty), demo, *about) for _ in range(STARTS)]
                for name, (command, port, *about) in pages.items()
            }
            row = opening_a_row(ports[0], browser, Path(empty), demo)
            opened, megabytes = opening_train(ports[0], browser, Path(empty), demo)
            moves = of_views(browser, ports, Path(empty), demo, CONTROLS)
            with serve(commands[0], ports[0], Path(empty), demo) as app:
                visited = held_after_visits(app, browser)
            val, test = long_tailed_tables()
            run = keep_tables(val, test=test, title="benchmark", store=Store(folder))
            with serve(commands[0], ports[0], Path(folder), run), serve(commands[1], ports[1], Path(folder), run):
                ours = measured(browser, f"http://{ADDRESS}:{ports[0]}/sets", SLIDER, APP_PAGE, PRESSES)
                theirs = measured(browser, f"http://{ADDRESS}:{ports[1]}", ANY_SLIDER, NAIVE_PAGE, PRESSES // 4)
        finally:
            browser.close()
    print(f"key press to redrawn charts: {ROWS:,} rows × {CLASSES:,} classes".replace(",", " "))
    print(f"{'':<14}{'median':>10}{'95 %':>10}{'limit':>10}")
    line("Sets", ours, f"{SLIDERS:>7} ms")
    line("obvious app", theirs)
    print(f"{np.median(theirs) / np.median(ours):.0f} × faster\n")
    print_moves(moves)
    print("\nfirst paint of a server that has just come up, demo run")
    obvious = np.median(painted["obvious app"][1:])
    for name, (first, *later) in painted.items():
        line(name, np.array(later), f"{np.median(later) / obvious:>7.2f} of {OF_OBVIOUS} × the obvious app")
        line("  first start", np.array([first]))  # modules are compiled, and our photographs drawn
    print(f"\nfirst row opened: {row[0]:.0f} of {FIRST_ROW} ms; its similar pictures after {row[1]:.0f} ms")
    print(f"Train opened on a fresh server: {opened:.0f} ms, which then holds {megabytes:.0f} MB")
    print(f"\n{VISITS} views opened in a row")
    for name, (first, last) in {name: (held[name] for held in visited) for name in visited[0]}.items():
        print(f"{name:<24}{first:>8.0f}{last:>8.0f}  {last / first:.2f} ×")


def print_moves(moves: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """How long moves of controls take, beside a round trip that does nothing."""
    print("one control moved, demo run")
    line("nothing", np.concatenate([nothing for _, nothing in moves.values()]))
    for name, (times, nothing) in moves.items():
        line(name, times, f"{np.nanmedian(times) / np.nanmedian(nothing):>7.2f} of {ROUND_TRIPS} × nothing")


def line(name: str, times: np.ndarray, said: str = "") -> None:
    """Median and 95th percentile of some times, beside their limit; presses that changed nothing are told."""
    if lost := np.count_nonzero(np.isnan(times)):
        said += f"  ({lost} of {len(times)} presses changed nothing)"
    print(f"{name:<14}{np.nanmedian(times):>7.0f} ms{np.nanquantile(times, 0.95):>7.0f} ms{said}")


if __name__ == "__main__":
    main()
