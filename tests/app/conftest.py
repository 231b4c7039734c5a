"""A server with four small runs for the browser tests, and a browser that must not leave the machine.

Tests that only read share one server. A test that is marked `writes` (it trains, keeps, brings or computes something that
is kept) has a server and a copy of the store for itself, so that no test meets what another one, or its own earlier try, left.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from browsing import KEYS, code_names, settled, tab
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash
from waiting import PATIENCE

import workbench as wb
from workbench.app_server import app_command, start_server
from workbench.files.cache import FEATURES, FEATURES_OF_RUNS
from workbench.store import Store
from workbench.workers.client import Worker
from workbench.workers.nearest_neighbours import FILE

APP = Path(__file__).resolve().parents[2] / "app"
OwnPort = Callable[[], int]
PAGE = pytest.StashKey[Any]()  # the page of a test
GARDEN = {"species": 20, "genera": 6, "n_train": 600, "n_val": 300, "n_test": 400}


def _keep(store: Store, name: str, val: wb.LogitTable, test: wb.LogitTable, spec: dict[str, Any] | None = None) -> None:
    facts = {"title": name, "finished": f"2025-01-0{len(KEYS) - list(KEYS).index(name)}"}
    about = {"format": 1, "run": {"dataset": spec}, "facts": facts}
    with store.writing(KEYS[name]) as directory:
        (directory / "run.json").write_text(json.dumps(about), encoding="utf-8")
        val.save(directory / "val")
        test.save(directory / "test")


def _keep_training_features(store: Store, key: str, features: np.ndarray) -> None:
    """Write the training features as a worker does."""
    with FEATURES.writing(store, "f" * 64) as directory:
        np.save(directory / "train.npy", features)
    with FEATURES_OF_RUNS.writing(store, key) as directory:
        (directory / FILE).write_text(json.dumps({"key": "f" * 64}), encoding="utf-8")


@pytest.fixture(scope="session")
def runs_of_all(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two models of the same small garden, a table with many labels and rude class names, and one without labels."""
    store = Store(tmp_path_factory.mktemp("home"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_HOME", str(store.root))  # its photographs are drawn here once, and not by every server
        garden = wb.load_dataset("garden", **GARDEN)
    for name, blur in (("garden", 1.5), ("sharper", 0.5)):
        random = np.random.default_rng(0)
        tables = []
        for split in (garden.val, garden.test):
            scores = np.log(split.posterior + 1e-3) + blur * random.normal(size=split.posterior.shape)
            about = {"class_names": garden.class_names, "groups": garden.groups, "class_counts": garden.class_counts}
            if name == "sharper":  # the one whose posterior is known, and whose features can be compared
                about |= {"posterior": split.posterior, "features": split.posterior}
            tables.append(wb.LogitTable(scores.astype(np.float16), split.labels, attributes=split.attributes, **about))
        _keep(store, name, *tables, garden.spec)
    _keep_training_features(store, KEYS["sharper"], garden.train.posterior)
    scores = np.random.default_rng(1).normal(size=(120, 6)).astype(np.float32)
    names = ["<b>bold</b>", "<img src=x onerror=alert(1)>", "*star*", "$x$", "{{ e }}", "&amp;"]
    many = wb.LogitTable(scores, scores > 0.8, link="sigmoid", class_names=names)
    _keep(store, "many labels", *many.split())
    _keep(store, "no labels", *wb.LogitTable(scores).split())
    return store


@pytest.fixture(scope="session", autouse=True)
def no_packaged_components() -> Iterator[None]:
    """Every `AppTest` looks for components in the metadata of all installed packages, which takes half of its time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.components.v2.manifest_scanner.scan_component_manifests", list)
        yield


@pytest.fixture(autouse=True)
def main_module_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Streamlit makes the page it draws `__main__`, which every process that is spawned afterwards would run first."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


@pytest.fixture
def store(runs_of_all: Store, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Store]:
    """The store of the server: for a test that writes a copy of its own, for all others the same, which stays as it is."""
    if request.node.get_closest_marker("writes"):
        yield Store(shutil.copytree(runs_of_all.root, tmp_path / "home"))
        return
    before = sorted(runs_of_all.root.iterdir())
    yield runs_of_all
    assert sorted(runs_of_all.root.iterdir()) == before, "a test that changes the store must be marked `writes`"


@pytest.fixture(scope="session")
def server_of_all(runs_of_all: Store, own_port: OwnPort, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with _served(runs_of_all, own_port(), tmp_path_factory.mktemp("elsewhere")) as address:
        yield address


@pytest.fixture
def server(store: Store, own_port: OwnPort, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a running app on the store."""
    if not request.node.get_closest_marker("writes"):
        yield request.getfixturevalue("server_of_all")
        return
    (tmp_path / "elsewhere").mkdir()
    with _served(store, own_port(), tmp_path / "elsewhere") as address:
        yield address


@contextlib.contextmanager
def _served(store: Store, port: int, folder: Path) -> Iterator[str]:
    """The app, started as `workbench app` starts it, in a folder that knows nothing of it."""
    environment = {"WORKBENCH_HOME": str(store.root), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:
        try:
            app = start_server(app_command(port, headless=True), port, environment, folder=folder, log=log)
        except OSError:
            pytest.fail(f"the app did not start:\n{(folder / 'log').read_text()}")
    with app:
        yield app.url


@pytest.fixture(scope="session")
def browser(chromium: Any, server_of_all: str) -> Any:
    """One browser for all tests: scripts are fetched once.

    With it comes a tab that stays at the server for good. A process of the browser ends with the last page of its site,
    and the next one would compile all scripts of Streamlit and Plotly again, which takes as long as most tests do.
    """
    context = chromium.new_context()
    context.set_default_timeout(1000 * PATIENCE)
    context.new_page().goto(f"{server_of_all}/_stcore/health")
    return context


@pytest.fixture
def opened(browser: Any, server: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """`opened("garden", view="classes", width=1024, K=3)`: a view of a run, drawn; it may not complain or call elsewhere.

    Each time it is a new visit, in the one tab that all tests use.
    """
    _leave_all(browser)  # of a test that failed a page may be left
    complaints: list[str] = []

    def complain(message: Any) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def complain_of_dialog(dialog: Any) -> None:
        complaints.append(f"a script opened a dialog: {dialog.message}")
        dialog.dismiss()

    listeners = {
        "console": complain,
        "dialog": complain_of_dialog,
        "weberror": lambda problem: complaints.append(str(problem.error)),
        "request": lambda request: complaints.append(request.url) if _leaves(request.url, server) else None,
    }
    for event, listener in listeners.items():
        browser.on(event, listener)

    def open_page(
        run: str = "garden",
        *,
        view: str = "sets",
        wait_for: str = "",
        width: int = 1440,
        height: int = 2600,
        scheme: str = "light",
        **asked: Any,
    ) -> Any:
        page = request.node.stash[PAGE] = tab(browser)
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        page.mouse.move(0, 0)
        page.goto(f"{server}/{view}?{urllib.parse.urlencode({'run': KEYS.get(run, run)[:12], **asked}, doseq=True)}")
        page.wait_for_selector(wait_for or (".wb-wall" if view == "sets" else ".wb-drawing, .wb-figure"))
        settled(page)
        return page

    yield open_page
    _leave_all(browser)
    for event, listener in listeners.items():
        browser.remove_listener(event, listener)
    assert complaints == []


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch, store: Store) -> Callable[..., AppTest]:
    """`drawn("train", train="Sweeps")`: a page of a small run as its address asks for it.

    It may not complain, nor show a name of the code to a person. Nothing is made ahead of what a person might do next: what
    a later visit finds of that is tested in the browser.
    """
    monkeypatch.syspath_prepend(str(APP))
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    from session.serving import AHEAD

    monkeypatch.setattr(AHEAD, "submit", lambda *_, **__: Future())
    monkeypatch.setattr(Worker, "start", lambda _: None)

    def draw(url: str, **asked: Any) -> AppTest:
        app = AppTest.from_file(str(APP / "main.py"), default_timeout=600)
        app._page_hash = calc_hash(url)  # `switch_page` knows pages that are files
        app.query_params = {"run": KEYS["garden"][:12], **asked}
        app.run()
        assert not app.exception
        assert [error.value for error in app.error] == []
        assert code_names(app) == []
        return app

    return draw


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """The report of a test that failed in the browser says what its page said."""
    report = yield
    page = item.stash.get(PAGE, None)
    if report.when == "call" and report.failed and page is not None and not page.is_closed():
        state = page.evaluate("document.querySelector('.stApp')?.dataset.testScriptState")
        lines = page.inner_text("body").splitlines()
        report.sections.append((f"{page.url}, {state}", " · ".join(filter(None, lines))[:2000]))
    return report


def _leave_all(browser: Any) -> None:
    """Nobody looks at a page any more, and none is left to complain during another test."""
    for page in browser.pages[1:]:
        page.goto("about:blank")


def _leaves(address: str, server: str) -> bool:
    return not address.startswith((server, server.replace("http", "ws", 1), "data:", "blob:"))
