"""What every test shares: a browser, and the real data beside the repository, where they are there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is not a failure
hypothesis.settings.load_profile("untimed")

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BROWSER_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@pytest.fixture(scope="session", autouse=True)
def home_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Runs and drawings of the tests go to a folder that all processes of a test run share, never to the user's own."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    os.environ["WORKBENCH_HOME"] = str(shared / "home")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    """An empty store."""
    from workbench.store import Store

    return Store(tmp_path / "runs")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """Small networks on one thread: several would wait for each other. `pytestmark = usefixtures("one_thread")`."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def own_port() -> Callable[[], int]:
    """`own_port()`: a free port that no other process of the tests will take while a server of ours is still starting."""
    from workbench.launching import free_port

    each = 50  # ports for each process, below those that the system gives away itself
    return lambda: free_port(10_000 + each * (os.getpid() % 400), tries=each)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's browser, driven by Playwright. One for all tests of a process: Playwright cannot be started twice."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium on this machine: install it (Debian: apt-get install chromium) for the browser tests")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared_data() -> Callable[[str], dict[str, np.ndarray]]:
    """`shared_data("leaf99")` loads real development data, or skips the test and says why."""

    def load(name: str) -> dict[str, np.ndarray]:
        path = SHARED_DATA / f"{name}.npz"
        if not path.is_file():
            pytest.skip(f"the development data {path.name} is not on this machine")
        with np.load(path, allow_pickle=False) as arrays:
            return dict(arrays)

    return load


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test draws the same numbers from the `rng` of its module, whichever tests ran before it."""
    module = getattr(item, "module", None)
    if hasattr(module, "rng"):
        module.rng = np.random.default_rng(0)
