"""What a teacher hands out: notebooks with gaps, and a check of the machine."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

from workbench.cli.check import CHECKS
from workbench.cli.main import main
from workbench.teaching.exercises import EXERCISES

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"


def test_student_notebooks_have_every_exercise_and_no_solution_or_output(tmp_path):
    found = importlib.util.spec_from_file_location("student", NOTEBOOKS / "student.py")
    student = importlib.util.module_from_spec(found)
    found.loader.exec_module(student)
    student.main(tmp_path)
    cells = [
        cell for path in tmp_path.glob("*.ipynb") for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]
    ]
    sources = ["".join(cell["source"]) for cell in cells]
    assert len(list(tmp_path.glob("*.ipynb"))) == len(list(NOTEBOOKS.glob("*.ipynb")))
    assert not any("Solutions" in source for source in sources)
    assert not any(cell.get("outputs") for cell in cells)
    for exercise in EXERCISES:
        assert sum(f'wb.exercises.check("{exercise.number}"' in source for source in sources) == 1
    graded = [cell["metadata"]["nbgrader"]["grade_id"] for cell in cells if "nbgrader" in cell["metadata"]]
    assert len(graded) == len({*graded}) == 3 * len(EXERCISES)


def test_a_ready_machine_passes_every_check(capsys):
    assert main(["check"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line[0] for line in lines[:-1]] == ["✓"] * len(CHECKS)
    assert lines[-1] == "Ready."


def test_a_failed_check_says_what_to_do(capsys, monkeypatch):
    monkeypatch.setattr("workbench.cli.check.find_spec", lambda name: None)
    assert main(["check"]) == 1
    assert "✗ packages: missing: torch" in capsys.readouterr().out
