"""Start the Streamlit app, from a clone or from an installed wheel, in any folder, on the object at hand."""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import sys
import time
import urllib.request
import webbrowser
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from workbench.lookup import allowing, check_installed

if TYPE_CHECKING:
    from workbench.store import StoredRun
    from workbench.tables import LogitTable
    from workbench.training import TrainedRun

ADDRESS = "127.0.0.1"
FIRST_PORT = 8501
PATIENCE = 240  # seconds a server may take to come up, or to end, on a very busy machine


def app_script() -> Path:
    """The app's main file: inside the package in a wheel, beside it in a clone."""
    package = Path(__file__).resolve().parent
    for folder in (package / "app", package.parent / "app"):
        if (folder / "main.py").is_file():
            return folder / "main.py"
    raise FileNotFoundError(f"the app is neither in {package} nor beside it; install the workbench again")


def free_port(first: int = FIRST_PORT, tries: int = 100) -> int:
    """The first port from `first` on that nobody listens to."""
    for port in range(first, first + tries):
        if _refusal(port) is None:
            return port
    raise OSError(f"no free port between {first} and {first + tries - 1}; choose one with --port")


def checked_port(port: int) -> int:
    """A port that somebody chose, if it can be served on."""
    if not 0 < port < 2**16:
        raise ValueError(f"port = {port}; give a number from 1 to 65535, or none for the first free one")
    if refusal := _refusal(port):
        raise OSError(f"port {port} cannot be served on ({refusal}); give another, or none for the first free one")
    return port


def _refusal(port: int) -> str | None:
    """Why the system does not give this port, if it does not."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ADDRESS, port))
        except OSError as error:
            return error.strerror
    return None


def app_command(port: int, *, headless: bool) -> list[str]:
    """The command that serves the app.

    The app's own config.toml says the same about address, prompt and statistics, but a config.toml in the folder where
    somebody happens to stand would override it; the command line overrides both.
    """
    check_installed("streamlit")
    return [
        sys.executable,
        str(app_script().with_name("serve.py")),
        f"--server.address={ADDRESS}",
        f"--server.port={port}",
        f"--server.headless={str(headless).lower()}",
        "--server.showEmailPrompt=false",
        "--server.fileWatcherType=none",  # looking for changed modules after every run holds up what is sent
        "--browser.gatherUsageStats=false",
    ]


def run_app(port: int | None = None, *, headless: bool = False, allow: Iterable[str] = ()) -> int:
    """Serve the app until it is interrupted; the exit code of the server.

    `allow` are modules of other people that stored runs and addresses may make import (`lookup`).
    """
    os.environ |= allowing(allow)
    chosen = free_port() if port is None else checked_port(port)
    command = app_command(chosen, headless=headless)
    print(f"The workbench is at http://{ADDRESS}:{chosen} (Ctrl-C stops it)", flush=True)
    if os.name == "posix":
        os.execv(command[0], command)  # become the server, so that whoever stops this process stops it
    return subprocess.run(command, check=False).returncode


@dataclass(frozen=True, eq=False)
class RunningApp:
    """A dashboard that was opened from Python: where it is, and how to stop it. It ends with the session at the latest."""

    url: str
    server: subprocess.Popen[bytes]

    def stop(self) -> None:
        """Stop the server; a second time does nothing."""
        self.server.terminate()
        try:
            self.server.wait(PATIENCE)
        except subprocess.TimeoutExpired:  # a server that is stopped while it starts may not hear it
            self.server.kill()
            self.server.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"RunningApp({self.url!r})"

    def _repr_html_(self) -> str:
        return f'<a href="{self.url}" target="_blank" rel="noopener">{self.url}</a> (the dashboard; <code>.stop()</code> ends it)'


def open_app(
    table_or_run: LogitTable | StoredRun | TrainedRun | None = None,
    test: LogitTable | None = None,
    *,
    port: int | None = None,
    wait: bool = False,
    allow: Iterable[str] = (),
) -> RunningApp:
    """Open the dashboard in the browser on the object at hand: a table, two (to fit on, to judge on), or a run.

    - `table_or_run`: what to open; the demo without it.
    - `test`: the table to judge on, if the first one is to fit on.
    - `port`: where to serve; the first free one from 8501 on without it.

    A table is kept in the store, so that its address shows it again tomorrow; one table is split in halves. With `wait`
    the call lasts until the server ends (Ctrl-C ends it). Stored runs are only data: losses and models of somebody else
    are imported if their modules are among those you `allow`.

        app = wb.open_app(val, test)
        app.url                       # http://127.0.0.1:8501/?run=…
        app.stop()
    """
    from workbench.store import DEMO, home  # only here: the command line starts the app without the rest of the library

    stored = _stored(table_or_run, test)
    root = home() if stored is None or stored.path.parent == DEMO else stored.path.parent
    chosen = free_port() if port is None else checked_port(port)
    served = start_server(app_command(chosen, headless=True), chosen, {"WORKBENCH_HOME": str(root)} | allowing(allow))
    atexit.register(served.stop)
    app = served if stored is None else RunningApp(f"{served.url}/?run={stored.short}", served.server)
    webbrowser.open(app.url)
    if wait:
        try:
            app.server.wait()
        except KeyboardInterrupt:
            app.stop()
    return app


def start_server(
    command: list[str],
    port: int,
    environment: Mapping[str, str],
    *,
    folder: Path | None = None,
    log: int | IO[str] = subprocess.DEVNULL,
) -> RunningApp:
    """Start a command that serves a Streamlit app on this port, and wait until it answers.

    `environment` is added to that of this process; the server stands in `folder` and writes to `log`.
    """
    server = subprocess.Popen(
        command, env={**os.environ, **environment}, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    app = RunningApp(f"http://{ADDRESS}:{port}", server)
    try:
        _wait_until_served(app)
    except BaseException:  # Ctrl-C included: nobody else knows of the process
        app.stop()
        raise
    return app


def _stored(given: Any, test: LogitTable | None) -> StoredRun | None:
    """The run in the store that shows what was given; a table becomes one."""
    from workbench.store import StoredRun
    from workbench.store.imported import keep_tables
    from workbench.tables import LogitTable

    if isinstance(given, LogitTable):
        return keep_tables(given, title=f"{given.n} rows × {given.n_classes} classes", test=test)
    if test is not None:
        raise ValueError("a second table goes with a first one to fit rules on: open_app(val, test)")
    stored = getattr(given, "stored", given)  # a trained run knows where it is stored
    if stored is not None and not isinstance(stored, StoredRun):
        raise ValueError(f"{given!r} cannot be opened; give a LogitTable, or a run that was trained or stored")
    return stored


def _wait_until_served(app: RunningApp) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if app.server.poll() is not None:
            raise OSError("the dashboard ended before it could be opened; `workbench app` in a terminal says why")
        try:
            with urllib.request.urlopen(f"{app.url}/_stcore/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"the dashboard was not up after {PATIENCE} s; `workbench app` in a terminal says why")
