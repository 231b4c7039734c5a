"""What objects look like in a notebook: cards, the explorer in JupyterLab and in an exported page, the dashboard."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import plotly
import pytest
from waiting import PATIENCE, eventually, next_frame

import workbench as wb
from workbench import glossary
from workbench.app_server import ADDRESS
from workbench.store import DEMO, Store

ROOT = Path(__file__).resolve().parents[1]
PLOTLY_JS = Path(plotly.__file__).parent / "package_data" / "plotly.min.js"
CELLS = (
    """import numpy as np, workbench as wb
scores = np.random.default_rng(0).normal(size=(120, 5))
explorer = wb.figures.explore(*wb.LogitTable(scores, scores.argmax(1)).split(), K_max=3, step=0.5)
explorer""",
    "print(explorer.K, explorer.rule)",
)
KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
RAIL, LABEL = ".slider-rail-touch-rect", ".slider-label"


def table(n: int = 120) -> wb.LogitTable:
    scores = np.random.default_rng(0).normal(size=(n, 5))
    labels = (scores + np.random.default_rng(1).normal(size=scores.shape)).argmax(1)
    return wb.LogitTable(scores, labels, class_names=["<b>", "elm", "fir", "oak", "yew"])


def test_a_table_and_its_sets_say_what_they_are_with_headline_numbers_and_a_picture():
    test = table()
    sets = wb.TopK(2).fit(test)(test)
    for shown in (test._repr_html_(), sets._repr_html_()):
        assert "<svg" in shown
        assert "120 rows" in shown
        assert "<b>" not in shown
    right = np.mean(test.scores.argmax(1) == test.labels)
    assert f"right in {right:.1%}" in test._repr_html_()
    assert f"{sets.hits.mean():.1%}" in sets._repr_html_()


def test_a_large_table_shows_itself_without_reading_all_of_it():
    scores = np.zeros((5000, 3))
    scores[2500:] = np.nan  # a row that is looked at would not give a number
    large = wb.LogitTable.trusted(scores=np.lib.stride_tricks.as_strided(scores, (10**8, 3), (0, 8)))
    assert "2000 rows" in large._repr_html_()


def test_a_run_shows_its_title_sizes_accuracy_and_learning_curve():
    run = Store(DEMO).runs()[0]
    shown = run._repr_html_()
    assert run.title in shown
    assert "test 3000 rows" in shown
    assert "60 classes" in shown
    assert "polyline" in shown
    assert repr(run) == f"StoredRun({run.key[:12]!r})"  # no path of this machine


def test_a_run_to_be_trained_shows_its_settings_and_loads_nothing():
    shown = wb.Run("no such data", model="mlp", loss=wb.losses.NoisedTopK(K=3))._repr_html_()
    assert "no such data" in shown
    assert "NoisedTopK(K=3" in shown
    assert "learning_rate 0.001" in shown


def test_a_report_has_a_line_per_rule_and_folds_the_rest_and_its_parts_are_plain_frames():
    val, test = table().split()
    report = wb.report(test, [wb.TopK(2), wb.AverageK(2)], val=val, interval=0.9, resamples=20)
    shown = report._repr_html_()
    headlines, everything = shown.split("<details>")
    assert re.search(r"TopK\(K=2\).*AverageK\(K=2\)", headlines)
    assert "negative_log_likelihood" not in headlines
    assert "negative_log_likelihood" in everything
    assert headlines.count("<rect") == 2  # a bar for the accuracy of each rule
    assert type(report[report.metric == "accuracy"]).__name__ == "DataFrame"


def test_the_glossary_page_is_current_and_every_name_in_it_is_in_the_code():
    page = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert page == glossary.markdown(), "run: python docs/glossary.py"
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "workbench").rglob("*.py"))
    for term in glossary.TERMS:
        for name in re.findall(r"\w+", term.name):
            assert re.search(rf"\b{name}\b", code.replace(f'"{term.name}"', "")), term.name


def test_what_cannot_be_opened_in_the_dashboard_is_refused_in_words():
    with pytest.raises(ValueError, match="give a LogitTable, or a run"):
        wb.open_app([1, 2])
    with pytest.raises(ValueError, match=r"open_app\(val, test\)"):
        wb.open_app(Store(DEMO).runs()[0], table())


def test_the_dashboard_opens_on_the_table_at_hand_and_stops(own_port, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    val, test = table().split()
    app = wb.open_app(val, test, port=own_port())
    try:
        kept = Store(tmp_path).runs()[0]
        assert opened == [app.url]
        assert app.url.endswith(f"/?run={kept.key[:12]}")
        assert kept.tables["test"].key == test.key
        assert urllib.request.urlopen(app.url, timeout=PATIENCE).status == 200
        assert app.url in app._repr_html_()
    finally:
        app.stop()
    app.stop()
    assert app.server.poll() is not None


# In a real browser


@pytest.fixture(scope="module")
def explorer_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A notebook with one cell: the explorer as 00_start_here saved it."""
    notebook = nbformat.read(ROOT / "notebooks" / "00_start_here.ipynb", as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "wb.figures.explore(val" in cell.source][:1]
    path = tmp_path_factory.mktemp("lab") / "explorer.ipynb"
    nbformat.write(notebook, path)
    return path


@pytest.fixture(scope="module")
def lab(explorer_only: Path, own_port: Callable[[], int]) -> Iterator[str]:
    """The address of a JupyterLab of its own that has that notebook, and one that was never run."""
    port, folder = own_port(), explorer_only.parent
    fresh = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, CELLS)), metadata=KERNEL)
    nbformat.write(fresh, folder / "fresh.ipynb")
    environment = {
        **os.environ,
        **{f"JUPYTER_{kind}_DIR": str(folder / kind) for kind in ("CONFIG", "DATA", "RUNTIME")},
    }
    subprocess.run(
        [sys.executable, "-m", "jupyter", "trust", explorer_only], env=environment, check=True, capture_output=True
    )
    options = [f"--ip={ADDRESS}", f"--port={port}", "--no-browser", "--allow-root", "--IdentityProvider.token=open"]
    options += [f"--ServerApp.root_dir={folder}", "--LabApp.news_url=''"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "jupyterlab", *options], env=environment, cwd=folder, stdout=log, stderr=log
        )
    try:
        for _ in range(600):
            assert server.poll() is None, (folder / "log").read_text()
            try:
                urllib.request.urlopen(f"http://{ADDRESS}:{port}/api?token=open", timeout=60).close()
                break
            except OSError:
                time.sleep(0.2)
        yield f"http://{ADDRESS}:{port}/doc/tree/{{}}?token=open"
    finally:
        server.terminate()
        server.wait(600)


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    page = chromium.new_page(viewport={"width": 1300, "height": 1000})
    page.set_default_timeout(1000 * PATIENCE)
    yield page
    page.close()


def slide_to_the_left(page: Any) -> str:
    """Moves the slider of the explorer to its left end; what it says then."""
    rails, label = page.locator(RAIL), page.locator(LABEL).first
    rails.first.wait_for()
    assert label.text_content().startswith("K = 5 ")

    def slid() -> str:
        place = rails.evaluate_all(
            """all => {
                if (all.length !== 1) return null;
                all[0].scrollIntoView({ block: "center" });
                const { x, y, height } = all[0].getBoundingClientRect();
                return [x + 2, y + height / 2];
            }"""
        )
        assert place is not None, "JupyterLab, which draws twice what it opens, is not ready"
        page.mouse.click(*place)
        next_frame(page)
        said = label.text_content()
        assert said.startswith("K = 1 ")
        return said

    return eventually(page, slid)


@pytest.mark.browser
def test_the_slider_of_the_explorer_moves_in_jupyterlab(page, lab):
    page.goto(lab.format("explorer.ipynb"))
    assert "1.00 classes on average" in slide_to_the_left(page)


@pytest.mark.browser
def test_a_slider_that_is_moved_in_jupyterlab_is_read_by_another_cell(page, lab):
    fetched: list[str] = []
    page.on("request", lambda request: fetched.append(request.url))
    page.goto(lab.format("fresh.ipynb"))
    cells, dashboard = page.locator(".jp-CodeCell"), page.locator(".wb-in-notebook")
    cells.nth(1).wait_for()
    page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for(state="attached")
    cells.first.locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    dashboard.locator(".main-svg").nth(3).wait_for()
    page.get_by_role("slider", name="Average size K").fill("2")
    page.wait_for_function("() => document.querySelector('.wb-in-notebook').dataset.told === '2'")
    assert dashboard.locator("output").first.text_content() == "2.00"
    cells.nth(1).locator(".cm-content").click()
    page.keyboard.press("Shift+Enter")
    said = cells.nth(1).locator(".jp-OutputArea-output")
    eventually(page, lambda: expect_text(said, "2.0 AverageK(K=2.0, min_size=0)"))
    assert not [url for url in fetched if not url.startswith((lab.partition("/doc")[0], "data:", "blob:"))]


def expect_text(part: Any, text: str) -> None:
    assert part.all_text_contents() == [f"{text}\n"]


@pytest.mark.browser
@pytest.mark.parametrize("online", [True, False])
def test_the_explorer_is_alive_in_an_exported_page_and_still_without_a_network(page, explorer_only, tmp_path, online):
    from nbconvert import HTMLExporter

    exported, _ = HTMLExporter().from_filename(str(explorer_only))
    path = tmp_path / "explorer.html"
    path.write_text(exported, encoding="utf-8")
    page.route(re.compile("^https?:"), lambda route: route.abort())
    if online:
        allow = {"access-control-allow-origin": "*"}  # what the real address answers, for the checksum of the script
        page.route(re.compile("cdn.plot.ly"), lambda route: route.fulfill(path=PLOTLY_JS, headers=allow))
    page.goto(path.as_uri())
    if online:
        assert "1.00 classes on average" in slide_to_the_left(page)
    still = page.locator("img[alt^='Size and accuracy of average-K sets']")
    assert still.count() == (0 if online else 1)


def test_a_page_of_a_notebook_with_the_widget_shows_the_picture_that_needs_no_kernel(explorer_only):
    from nbconvert import HTMLExporter

    notebook = nbformat.read(explorer_only, as_version=4)
    view = {"model_id": "gone", "version_major": 2, "version_minor": 0}
    notebook.cells[0].outputs[0].data["application/vnd.jupyter.widget-view+json"] = view
    exported, _ = HTMLExporter().from_notebook_node(notebook)
    assert "Size and accuracy of average-K sets" in exported
    assert "widget-view" not in exported
