"""A run of the tests fails when something is skipped without a good reason."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REASONS = {
    "gpu": "no CUDA device on this machine",
    "browser": "no chromium on this machine: install it",
    "holiday": "it is a holiday",
}


def run_that_skips(folder: Path, *reasons: str, ci: str) -> subprocess.CompletedProcess[str]:
    """A run in which one test passes, one fails as expected, and one is skipped for each reason."""
    shutil.copy(HERE / "conftest.py", folder)
    skipped = [f"def test_{reason}():\n    pytest.skip({REASONS[reason]!r})\n" for reason in reasons]
    others = "@pytest.mark.xfail\ndef test_expected_to_fail():\n    assert False\n\ndef test_fine():\n    pass\n"
    (folder / "test_here.py").write_text("\n".join(["import pytest", *skipped, others]))
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(folder), str(folder)]
    return subprocess.run(command, cwd=folder, env=os.environ | {"CI": ci}, capture_output=True, text=True, check=False)


def test_a_run_passes_that_skips_for_reasons_that_are_listed(tmp_path):
    run = run_that_skips(tmp_path, "gpu", "browser", ci="")
    assert (run.returncode, "MAY_BE_SKIPPED" in run.stdout) == (0, False), run.stdout


def test_a_run_fails_that_skips_for_a_reason_that_is_not_listed(tmp_path):
    (tmp_path / "test_there.py").write_text("import pytest\npytest.importorskip('no_such_package')\n")
    run = run_that_skips(tmp_path, "gpu", "browser", "holiday", ci="true")
    assert run.returncode == 1, run.stdout
    told = run.stdout.partition("MAY_BE_SKIPPED")[2]
    assert "test_there.py: Skipped: could not import 'no_such_package'" in told
    assert "::test_browser: Skipped: no chromium" in told
    assert "::test_holiday: Skipped: it is a holiday" in told
    assert "::test_gpu" not in told
    assert "expected_to_fail" not in told


def test_real_data_in_the_repository_is_small_and_has_its_credit():
    files = [path for path in (HERE / "data").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(path.stat().st_size for path in files) <= 1_000_000
    credits = (HERE / "data" / "README.md").read_text(encoding="utf-8")
    held = {path.relative_to(HERE / "data").parts[0].removesuffix(".npz") for path in files} - {"README.md", "cut.py"}
    assert held == {line.split("|")[1].strip() for line in credits.splitlines() if line.startswith("| ")} - {"file"}
