"""One server for all browser tests, with four small runs of its own, and a browser that must not leave the machine."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from browsing import KEYS, settled

import workbench as wb
from workbench.launching import app_command, free_port, start_server
from workbench.similar import FILE, SHELF
from workbench.store import Store

PAGES = pytest.StashKey[list[Any]]()  # the pages a test has opened
GARDEN = {"species": 20, "genera": 6, "n_train": 600, "n_val": 300, "n_test": 400}


def _keep(store: Store, name: str, val: wb.LogitTable, test: wb.LogitTable, spec: dict[str, Any] | None = None) -> None:
    about = {"title": name, "dataset": spec, "finished": f"2025-01-0{len(KEYS) - list(KEYS).index(name)}"}
    with store.writing(KEYS[name]) as directory:
        (directory / "run.json").write_text(json.dumps(about), encoding="utf-8")
        val.save(directory / "val")
        test.save(directory / "test")


def _keep_training_features(store: Store, key: str, features: np.ndarray) -> None:
    """What `workbench.training_features` would write."""
    with Store(store.root / ".features").writing("f" * 64) as directory:
        np.save(directory / "train.npy", features)
    with Store(store.root / SHELF).writing(key) as directory:
        (directory / FILE).write_text(json.dumps({"key": "f" * 64}), encoding="utf-8")


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two models of the same small garden, a table with many labels and rude class names, and one without labels."""
    store = Store(tmp_path_factory.mktemp("home"))
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


@pytest.fixture(scope="session")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running app, started as `workbench app` starts it, in a folder that knows nothing of it."""
    port = free_port(8600 + os.getpid() % 400)
    folder = tmp_path_factory.mktemp("elsewhere")
    environment = {"WORKBENCH_HOME": str(store.root), "OMP_NUM_THREADS": "1"}
    with (folder / "log").open("w") as log:
        try:
            app = start_server(app_command(port, headless=True), port, environment, folder=folder, log=log)
        except OSError:
            pytest.fail(f"the app did not start:\n{(folder / 'log').read_text()}")
    with app:
        yield app.url


@pytest.fixture(scope="session")
def browser(chromium: Any) -> Any:
    return chromium.new_context()  # one for all tests: scripts are fetched and compiled once


@pytest.fixture
def opened(browser: Any, server: str, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """`opened("garden", view="classes", width=1024, K=3)`: a view of a run, drawn; it may not complain or call elsewhere."""
    pages: list[Any] = []
    complaints: list[str] = []
    request.node.stash[PAGES] = pages

    def complain(message: Any) -> None:
        # Below the address of a view Streamlit looks for its server first, and does not find it.
        if message.type == "error" and "/_stcore/" not in message.location.get("url", ""):
            complaints.append(message.text)

    def open_page(
        run: str = "garden",
        *,
        view: str = "",
        wait_for: str = ".wb-drawing",
        width: int = 1440,
        scheme: str = "light",
        **asked: Any,
    ) -> Any:
        page = browser.new_page()
        page.set_viewport_size({"width": width, "height": 2600})
        page.emulate_media(color_scheme=scheme)
        page.set_default_timeout(120_000)  # what never comes should fail, what comes late on a busy machine should not
        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: complaints.append(request.url) if _leaves(request.url, server) else None)
        pages.append(page)
        page.goto(f"{server}/{view}?{urllib.parse.urlencode({'run': KEYS.get(run, run)[:12], **asked}, doseq=True)}")
        page.wait_for_selector(wait_for if view else ".wb-wall")
        if wait_for == ".wb-drawing":
            settled(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """The report of a test that failed in the browser says what its pages said."""
    report = yield
    if report.when == "call" and report.failed:
        for page in item.stash.get(PAGES, []):
            if not page.is_closed():
                state = page.evaluate("document.querySelector('.stApp')?.dataset.testScriptState")
                lines = page.inner_text("body").splitlines()
                report.sections.append((f"{page.url}, {state}", " · ".join(filter(None, lines))[:2000]))
    return report


def _leaves(address: str, server: str) -> bool:
    return not address.startswith((server, server.replace("http", "ws", 1), "data:", "blob:"))
