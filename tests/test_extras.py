"""A person with a file of logits needs no extra; what needs one says which."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from workbench.optional_dependencies import EXTRAS, install_command

TESTS = Path(__file__).resolve().parent
# As on a machine where no extra was installed.
PREPARED = f"""
import sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        absent = name.split(".")[0] in {{*{sorted(EXTRAS)!r}, "jupyterlab"}}
        return None if absent else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)
sys.meta_path[:] = map(Without, sys.meta_path)
sys.path[:0] = [{str(TESTS)!r}, {str(TESTS / "figures")!r}]
import numpy as np
import workbench as wb
from workbench.cli.main import main
"""


def without_extras(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs code in a process of its own, in which nothing that an extra brings can be imported."""
    return subprocess.run(
        [sys.executable, "-c", PREPARED + code],
        cwd=folder,
        env={**os.environ, "WORKBENCH_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
    )


def test_a_person_with_a_file_of_logits_needs_no_extra(tmp_path):
    code = """
rng = np.random.default_rng(0)
labels = rng.integers(0, 6, 300)
for name, help in (("one", 2), ("two", 3)):
    np.savez(name, scores=rng.normal(size=(300, 6)) + help * np.eye(6)[labels], labels=labels)
for command in ("import one.npz", "evaluate one.npz --K 2", "compare one.npz two.npz", "runs", "--help"):
    try:
        assert main(command.split()) == 0, command
    except SystemExit as end:
        assert end.code == 0, command

from workbench.calibration import RECALIBRATORS
from workbench.sets import RULES

val, test = wb.import_table("one.npz").split()
for rule in (kind() for kind in RULES if not kind().missing(val)):
    assert rule.fit(val)(test).sizes.shape == (test.n,)
for recalibrator in RECALIBRATORS:
    assert recalibrator().fit(val)(test).n == test.n
assert len(wb.report(test, [wb.AverageK(2)], val=val)) > 0

from test_every_figure import OF_TABLES, TABLES, made

for name in OF_TABLES:
    assert made(name, TABLES["seven classes"]).plot().data, name
print("done")
"""
    done = without_extras(code, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("done\n")


@pytest.mark.parametrize(
    ("code", "package"),
    [
        ("wb.train", "torch"),
        ("wb.losses.CrossEntropy()(np.eye(3), np.arange(3))", "torch"),
        ("wb.load_dataset('digits')", "sklearn"),
        ("wb.SetClassifier", "sklearn"),
        ("wb.open_app()", "streamlit"),
        ("wb.LogitTable.load('s3://bucket/table')", "fsspec"),
        ("sys.exit(main(['train', '--dataset', 'letters']))", "torch"),
        ("sys.exit(main(['app', '--headless']))", "streamlit"),
    ],
)
def test_what_needs_an_extra_says_which_in_one_line(code, package, tmp_path):
    done = without_extras(code, tmp_path)
    assert done.returncode != 0
    last = done.stderr.splitlines()[-1]
    assert last.endswith(f"this needs {package}, which is not installed: {install_command(EXTRAS[package])}")
    if "main" in code:
        assert done.stderr == f"workbench: {last.removeprefix('workbench: ')}\n"


def test_the_extras_bring_what_is_said_of_them():
    extras = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package, extra in EXTRAS.items():
        name = {"sklearn": "scikit-learn"}.get(package, package)
        assert any(line.startswith(name) for line in extras["optional-dependencies"][extra]), package
        assert not any(line.startswith(name) for line in extras["dependencies"]), package
