"""Start the Streamlit app, from a clone or from an installed wheel, in any folder."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

ADDRESS = "127.0.0.1"
FIRST_PORT = 8501


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
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((ADDRESS, port))
            except OSError:
                continue
            return port
    raise OSError(f"no free port between {first} and {first + tries - 1}; choose one with --port")


def app_command(port: int, *, headless: bool) -> list[str]:
    """The command that serves the app.

    The app's own config.toml says the same about address and statistics, but a config.toml in the folder where
    somebody happens to stand would override it; the command line overrides both.
    """
    return [
        sys.executable,
        *("-m", "streamlit", "run", str(app_script())),
        f"--server.address={ADDRESS}",
        f"--server.port={port}",
        f"--server.headless={str(headless).lower()}",
        "--browser.gatherUsageStats=false",
    ]


def run_app(port: int | None = None, *, headless: bool = False) -> int:
    """Serve the app until it is interrupted; the exit code of the server."""
    chosen = free_port() if port is None else port
    print(f"The workbench is at http://{ADDRESS}:{chosen} (Ctrl-C stops it)", flush=True)
    try:
        return subprocess.run(app_command(chosen, headless=headless), check=False).returncode
    except KeyboardInterrupt:
        return 0
