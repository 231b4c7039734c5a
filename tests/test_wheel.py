"""The distribution: an sdist that builds the wheel, and a wheel that runs alone from any folder."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from packaging.metadata import Metadata

from workbench.app_server import ADDRESS, free_port
from workbench.optional_dependencies import DISTRIBUTION, EXTRAS

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def distribution(tmp_path_factory) -> Path:
    """A folder with the sdist, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def installed(distribution) -> Path:
    """A folder that holds nothing but the content of the wheel."""
    (wheel,) = distribution.glob("*.whl")
    site = distribution / "site"
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--target", str(site), str(wheel)]
    subprocess.run(pip, check=True, capture_output=True)
    return site


@pytest.fixture
def environment(installed, tmp_path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(installed), "WORKBENCH_HOME": str(tmp_path / "home")}


@pytest.fixture(scope="module")
def metadata(installed) -> Metadata:
    """The metadata of the wheel, validated as the package index does at upload."""
    (path,) = installed.glob("*.dist-info/METADATA")
    return Metadata.from_email(path.read_bytes(), validate=True)


def written_files() -> list[Path]:
    """Source, pages and notebooks of the repository."""
    folders = ("workbench", "app", "docs", "notebooks", "benchmarks", "tests")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    return [path for path in (*files, *ROOT.glob("*.md")) if path.suffix in {".py", ".md", ".ipynb"}]


def test_every_printed_install_command_names_the_distribution_and_an_extra_of_the_wheel(metadata):
    assert metadata.name == DISTRIBUTION
    assert set(EXTRAS.values()) <= set(metadata.provides_extra)
    for path in written_files():
        for name, extras in re.findall(r"pip install '?([\w-]*workbench)\b(?:\[([\w,]+)\])?", path.read_text("utf-8")):
            assert name == DISTRIBUTION, path
            assert set(filter(None, extras.split(","))) <= set(metadata.provides_extra), path


def test_the_metadata_names_real_addresses_only_and_a_readme_without_files_of_the_repository(metadata):
    assert metadata.description_content_type == "text/markdown"
    targets = re.findall(r"\]\(([^)]+)\)", metadata.description)
    for target in (*targets, *(metadata.project_urls or {}).values()):
        assert target.startswith(("https://", "#")), target


def test_the_readme_says_how_the_names_of_distribution_and_package_relate():
    assert f"`{DISTRIBUTION}`" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_sdist_and_wheel_are_the_same_bytes_when_built_twice_and_the_wheel_also_from_the_sdist(distribution, tmp_path):
    build = [
        sys.executable,
        "-m",
        "build",
        "--sdist",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(build, check=True, capture_output=True)  # the wheel of the tree
    for kind in ("*.whl", "*.tar.gz"):
        (again,), (first,) = tmp_path.glob(kind), distribution.glob(kind)
        assert again.read_bytes() == first.read_bytes(), kind


def test_the_wheel_is_below_twelve_megabytes(distribution):
    (wheel,) = distribution.glob("*.whl")
    assert wheel.stat().st_size < 12e6


def test_the_sdist_holds_the_package_and_the_app_and_no_tests(distribution):
    (sdist,) = distribution.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        folders = {Path(name).parts[1] for name in archive.getnames() if len(Path(name).parts) > 2}
    assert folders == {"workbench", "app", "docs", "notebooks"}


def test_the_wheel_carries_the_app_the_demo_runs_and_the_letters(installed, environment, tmp_path):
    code = (
        "import workbench as wb; from workbench.store.store import Store; from workbench.app_server import app_script;"
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
    # A config.toml in the current folder must not open the app to the world, or to pages from elsewhere.
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text(
        '[server]\naddress = "0.0.0.0"\nenableXsrfProtection = false\nenableCORS = false\n'
        "[browser]\ngatherUsageStats = true\n"
    )
    port = own_port()
    command = [sys.executable, "-m", "workbench", "app", "--headless", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as server:
        try:
            assert _answers(f"http://{ADDRESS}:{port}/_stcore/health"), server.stdout.read()
            assert _listening_addresses(port) == {ADDRESS}
            upload = urllib.request.Request(f"http://{ADDRESS}:{port}/_stcore/upload_file/a/b", b"", method="PUT")
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(upload, timeout=600)
        finally:
            server.terminate()
            try:
                assert server.wait(600) == 0
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
    """The local addresses with a listener on this port, as the kernel lists them."""
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
