"""Start the Streamlit app, from a clone or from an installed wheel, in any folder, on the object at hand."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import re
import secrets
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

from workbench.optional_dependencies import check_installed
from workbench.trusted_imports import READ_ONLY, allow_environment

if TYPE_CHECKING:
    from workbench.store import StoredRun
    from workbench.tables import LogitTable
    from workbench.training import TrainedRun

ADDRESS = "127.0.0.1"
LOCAL = (ADDRESS, "localhost")
TOKEN = "WORKBENCH_TOKEN"  # in the environment of a server: what every visitor must have
FIRST_PORT = 8501
PATIENCE = 240  # seconds a server may take to come up, or to end, on a very busy machine


def app_script() -> Path:
    """The app's main file: inside the package in a wheel, beside it in a clone."""
    package = Path(__file__).resolve().parent
    for folder in (package / "app", package.parent / "app"):
        if (folder / "main.py").is_file():
            return folder / "main.py"
    raise FileNotFoundError(f"the app is neither in {package} nor beside it; install the workbench again")


def free_port(first: int = FIRST_PORT, tries: int = 100, address: str = ADDRESS) -> int:
    """Return the first free port from `first` on."""
    for port in range(first, first + tries):
        if _refusal(port, address) is None:
            return port
    raise OSError(f"no free port between {first} and {first + tries - 1}; choose one with --port")


def checked_port(port: int, address: str = ADDRESS) -> int:
    """Return the port; raise if the server cannot listen on it."""
    if not 0 < port < 2**16:
        raise ValueError(f"port = {port}; give a number from 1 to 65535, or none for the first free one")
    if refusal := _refusal(port, address):
        raise OSError(f"port {port} cannot be served on ({refusal}); give another, or none for the first free one")
    return port


def _refusal(port: int, address: str) -> str | None:
    """Return the error of binding this port; None if the port is free."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.strerror
    return None


def app_command(
    port: int, *, headless: bool, host: str = ADDRESS, base_path: str = "", server_name: str = ""
) -> list[str]:
    """The command that serves the app.

    Pages are answered under the names of this machine and under `server_name`; where the server listens on another address
    and has no name, under any. The app's own config.toml says some of this too, but a config.toml in the folder where
    the command is started would override it; the command line overrides both.
    """
    check_installed("streamlit")
    names = (*LOCAL, server_name) if server_name else LOCAL if host in LOCAL else ("*",)
    return [
        sys.executable,
        str(app_script().with_name("serve.py")),
        f"--server.address={host}",
        f"--server.port={port}",
        f"--server.headless={str(headless).lower()}",
        f"--server.baseUrlPath={base_path.strip('/')}",
        *(f"--server.allowedHosts={name}" for name in names),
        "--server.enableXsrfProtection=true",
        "--server.enableCORS=true",
        "--server.enableStaticServing=false",
        "--server.showEmailPrompt=false",
        "--server.fileWatcherType=none",  # looking for changed modules after every run holds up what is sent
        "--runner.magicEnabled=false",  # it parses the script, which fails beside another thread that parses (gh-106905)
        "--runner.postScriptGC=false",  # it looks at all that is cached after every move of everybody
        # A browser forgets messages that this many runs of a page did not show; the server may still refer to one that is
        # forgotten while the next run is on its way ("Cached ForwardMsg MISS"). With the default, 2, going back a step did it.
        "--global.maxCachedMessageAge=30",
        "--client.showErrorDetails=none",
        "--browser.gatherUsageStats=false",
    ]


def run_app(
    port: int | None = None,
    *,
    headless: bool = False,
    allow: Iterable[str] = (),
    host: str = ADDRESS,
    token: str | None = None,
    read_only: bool = False,
    base_path: str = "",
    server_name: str = "",
    workers: int = 1,
) -> int:
    """Serve the app until it is interrupted; the exit code of the server.

    Args:
        port: Where to serve; the first free port from 8501 on without it.
        headless: Open no browser.
        allow: Modules of other people, and addresses, that stored runs may make import or ask (`trusted_imports`).
        host: The address to listen on. Anything but this machine needs a token; without one, one is drawn.
        token: Required from every visitor, once in the address (`?token=…`), then in a cookie; "" requires none.
        read_only: Renaming, removing, tagging, pinning, keeping and training are disabled.
        base_path: Where the app lies behind a reverse proxy, such as `/workbench`.
        server_name: The name under which a reverse proxy is reached, such as `lab.example.org`; then a token is required, too.
        workers: How many server processes share the address; each visitor stays with one of them.
    """
    if workers < 1:
        raise ValueError(f"workers = {workers}; give the number of server processes, 1 or more")
    if server_name and not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?", server_name):
        raise ValueError(f"server_name = {server_name!r}; give a name alone, such as lab.example.org")
    public = host not in LOCAL or bool(server_name)
    if public and token is None:
        token = secrets.token_urlsafe(16)
    if token and not re.fullmatch(r"[A-Za-z0-9_-]{8,}", token):
        raise ValueError("a token has at least 8 letters, digits, - or _; leave out --token to have one drawn")
    os.environ |= allow_environment(allow)
    os.environ |= ({TOKEN: token} if token else {}) | ({READ_ONLY: "1"} if read_only else {})
    os.environ.setdefault("MALLOC_ARENA_MAX", "2")  # threads of sessions would each keep memory of their own
    chosen = free_port(address=host) if port is None else checked_port(port, host)
    options = {"host": host, "base_path": base_path, "server_name": server_name}
    command = app_command(chosen, headless=headless or bool(token), **options)
    base = f"/{base_path.strip('/')}" if base_path.strip("/") else ""
    address = f"http://{host}:{chosen}{base}{f'/?token={token}' if token else ''}"
    if public:
        whose = "has the token" if token else "can open a page"
        print(f"WARNING: everybody who reaches this machine and {whose} can use the app and its store, unencrypted")
    if workers > 1:
        return _serve_many(workers, chosen, address, options)
    print(f"The workbench is at {address} (Ctrl-C stops it)", flush=True)
    if os.name == "posix":
        os.execv(command[0], command)  # become the server, so that stopping this process stops it
    return subprocess.run(command, check=False).returncode


def _serve_many(workers: int, port: int, address: str, options: Mapping[str, str]) -> int:
    """Serve on one port with several server processes, with the `options` of `app_command`, until SIGTERM or Ctrl-C."""
    from workbench.app_balancer import SERVER, Balancer

    ports: list[int] = []
    with contextlib.ExitStack() as servers:
        for number in range(workers):
            ports.append(free_port(max([port, *ports]) + 1))
            command = app_command(ports[-1], headless=True, **options)
            command.append(f"--server.address={ADDRESS}")  # only the balancer is reached from elsewhere
            print(f"Starting server {number + 1} of {workers} …", flush=True)
            servers.enter_context(
                start_server(command, ports[-1], {SERVER: str(number)}, base_path=options["base_path"])
            )
        print(f"The workbench is at {address} (Ctrl-C stops it)", flush=True)
        asyncio.run(Balancer(ports).serve(options["host"], port))
    return 0


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

    Args:
        table_or_run: What to open; the demo without it.
        test: The table to judge on, if the first one is to fit on.
        port: Where to serve; the first free one from 8501 on without it.

    A table is kept in the store, so that its address shows it again tomorrow; one table is split in halves. With `wait`
    the call lasts until the server ends (Ctrl-C ends it). Stored runs are only data: foreign losses and models
    are imported if their modules are among those you `allow`.

        app = wb.open_app(val, test)
        app.url                       # http://127.0.0.1:8501/?run=…
        app.stop()
    """
    from workbench.store import DEMO, home  # only here: the command line starts the app without the rest of the library

    stored = _stored_run(table_or_run, test)
    root = home() if stored is None or stored.path.parent == DEMO else stored.path.parent
    chosen = free_port() if port is None else checked_port(port)
    served = start_server(
        app_command(chosen, headless=True), chosen, {"WORKBENCH_HOME": str(root)} | allow_environment(allow)
    )
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
    base_path: str = "",
) -> RunningApp:
    """Start a command that serves a Streamlit app on this port, and wait until it answers.

    `environment` is added to that of this process; the server stands in `folder` and writes to `log`.
    """
    server = subprocess.Popen(
        command, env={**os.environ, **environment}, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
    )
    app = RunningApp(f"http://{ADDRESS}:{port}/{base_path.strip('/')}".rstrip("/"), server)
    try:
        _wait_until_served(app)
    except BaseException:  # Ctrl-C included: nothing else would stop the process
        app.stop()
        raise
    return app


def _stored_run(given: Any, test: LogitTable | None) -> StoredRun | None:
    """The run in the store that shows what was given; a table becomes one."""
    from workbench.store import StoredRun
    from workbench.store.imported_tables import keep_tables
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
