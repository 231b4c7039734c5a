"""What every test shares: a browser, real data, and a run that fails when something is skipped without a good reason."""

from __future__ import annotations

import ipaddress
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest

# Small computations on one thread, in whatever processes the tests start too: several wait for each other, and on a busy
# machine longer than they work (three times the processor time on two cores). Another number may be given.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# What `fsync` guards against, a loss of power, no test can cause; that it is called, and when, tests see by their own.
os.fsync = lambda descriptor: None

hypothesis.settings.register_profile("untimed", deadline=None)  # a busy machine is not a failure
hypothesis.settings.load_profile("untimed")

CUT_DATA = Path(__file__).parent / "data"  # a few hundred rows of each file; its README.md says whose they are
FULL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"  # beside the repository, on some machines
BROWSER_FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
    "--process-per-site",  # what one page has compiled serves the next
)


OUTSIDE: list[Any] = []  # addresses beyond this machine that this process connected to


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if event not in ("socket.connect", "socket.sendto") or not isinstance(arguments[1], tuple):
        return
    # Dask connects a datagram socket to learn the address of this machine: that sends nothing.
    sends = event == "socket.sendto" or arguments[0].type == socket.SOCK_STREAM
    if sends and not _is_here(arguments[1][0]):
        OUTSIDE.append(arguments[1])


def _is_here(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def no_connection_leaves_this_machine() -> Iterator[None]:
    """Every test is watched at the socket: nothing is downloaded, sent or reported."""
    yield
    assert OUTSIDE == []


@pytest.fixture(autouse=True)
def modules_of_a_test_are_forgotten(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a test imported from its own folder is not what another test finds under the same name."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    before = set(sys.modules)
    yield
    if folder := request.node.funcargs.get("tmp_path"):
        for name in sys.modules.keys() - before:
            if str(getattr(sys.modules[name], "__file__", None)).startswith(str(folder)):
                del sys.modules[name]


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
    from workbench.app_server import free_port

    each = 50  # ports for each process, below those that the system gives away itself
    return lambda: free_port(10_000 + each * (os.getpid() % 400), tries=each)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The system's browser, driven by Playwright. One for all tests of a process: Playwright cannot be started twice."""
    from playwright import sync_api

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("no chromium on this machine: install it (Debian: apt-get install chromium) for the browser tests")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=BROWSER_FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session", params=["cut", "full"] if FULL_DATA.is_dir() else ["cut"])
def shared_data(request: pytest.FixtureRequest) -> Callable[[str], dict[str, np.ndarray]]:
    """`shared_data("news20_cv_probs")` loads real data: the rows that lie in the repository and, where they are, all."""
    folder = CUT_DATA if request.param == "cut" else FULL_DATA

    def load(name: str) -> dict[str, np.ndarray]:
        with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
            return dict(arrays)

    return load


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Every test draws the same numbers from the `rng` of its module, whichever tests ran before it."""
    module = getattr(item, "module", None)
    if hasattr(module, "rng"):
        module.rng = np.random.default_rng(0)


# What may be skipped. Anything else that is skipped makes the run fail: a test that does not run tells nothing.

MAY_BE_SKIPPED = (
    "no CUDA device on this machine",
    "two ranks need two GPUs",
    "no nginx on this machine",  # of a long test
    *("this system has no /proc", "there is no uvloop for Windows"),
    # Whoever runs all tests for others installs one.
    *(() if os.environ.get("CI") == "true" else ("no chromium on this machine",)),
)
skipped_without_leave: list[str] = []


def note_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Notes a test or a file that was skipped for a reason that is not listed; one that is expected to fail is not."""
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if not reason.removeprefix("Skipped: ").startswith(MAY_BE_SKIPPED):
            skipped_without_leave.append(f"{report.nodeid}: {reason}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    note_skip(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    note_skip(report)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if skipped_without_leave and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if skipped_without_leave:
        terminalreporter.section(
            "skipped for a reason that MAY_BE_SKIPPED of tests/conftest.py does not list", red=True
        )
        for line in dict.fromkeys(skipped_without_leave):  # every worker of xdist collects a file
            terminalreporter.line(line)
