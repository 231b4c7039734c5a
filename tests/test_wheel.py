"""The wheel is whole: installed alone, from any folder, it serves the app with its demo, to this machine only."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from workbench.launching import ADDRESS, free_port

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder that holds nothing but the wheel's content."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    site = folder / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return site


@pytest.fixture
def environment(installed, tmp_path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(installed), "WORKBENCH_HOME": str(tmp_path / "home")}


def test_the_wheel_carries_the_app_the_demo_runs_and_the_letters(installed, environment, tmp_path):
    code = (
        "import workbench as wb; from workbench.store.store import Store; from workbench.launching import app_script;"
        "print(wb.__file__); print(app_script()); print(len(Store().runs())); print(wb.load_dataset('letters').n_classes)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    package, script, runs, letters = result.stdout.split()
    assert (installed / "workbench" / "py.typed").is_file()
    assert Path(package).is_relative_to(installed)
    assert Path(script).is_relative_to(installed)
    assert int(runs) >= 1
    assert int(letters) == 26


def test_the_installed_app_answers_on_this_machine_and_on_no_other_address(environment, own_port, tmp_path):
    # A config.toml where somebody happens to stand must not open the app to the world.
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(
        '[server]\naddress = "0.0.0.0"\n[browser]\ngatherUsageStats = true\n'
    )
    port = own_port()
    command = [sys.executable, "-m", "workbench", "app", "--headless", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert _answers(f"http://{ADDRESS}:{port}/_stcore/health"), server.stdout.read()
            assert _listening_addresses(port) == {ADDRESS}
        finally:
            server.terminate()
            try:
                server.wait(600)
            except subprocess.TimeoutExpired:  # say so instead of waiting for ever
                server.kill()
                raise
    assert _listening_addresses(port) == set(), "stopping the command stops the server"


def test_a_port_that_is_taken_is_passed_over():
    with socket.socket() as taken:
        taken.bind((ADDRESS, 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert free_port(port) > port
        with pytest.raises(OSError, match="choose one with --port"):
            free_port(port, tries=1)


def _answers(url: str, seconds: float = 600) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(url, timeout=60) as response:
                return response.status == 200
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
    return False


def _listening_addresses(port: int) -> set[str]:
    """The local addresses on which somebody listens to this port, as the kernel lists them."""
    if not Path("/proc/net/tcp").exists():
        pytest.skip("this system has no /proc/net/tcp to read listening addresses from")
    found = set()
    for table, digits in (("/proc/net/tcp", 8), ("/proc/net/tcp6", 32)):
        for line in Path(table).read_text().splitlines()[1:]:
            address, state = line.split()[1], line.split()[3]
            host, hexadecimal = address.split(":")
            if state == "0A" and int(hexadecimal, 16) == port:
                found.add(".".join(str(byte) for byte in reversed(bytes.fromhex(host))) if digits == 8 else host)
    return found
