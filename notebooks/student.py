"""Write the notebooks for students: no outputs, no solutions, and a gap with a check for each exercise: `make student`.

    python notebooks/student.py FOLDER

The cells carry the marks of nbgrader: a gap is a solution, its check a test of one point.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from workbench.teaching.exercises import EXERCISES

HERE = Path(__file__).parent
Cell = dict[str, Any]


def student(notebook: dict[str, Any], number: int) -> dict[str, Any]:
    """A notebook without its outputs and solutions, with gaps for the exercises of that number."""
    kept = [_blank(cell) for cell in notebook["cells"] if "<summary><b>Solutions" not in "".join(cell["source"])]
    gaps = [cell for exercise in EXERCISES if exercise.number.startswith(f"{number}.") for cell in gap(exercise.number)]
    return {**notebook, "cells": [*kept, *gaps]}


def gap(number: str) -> list[Cell]:
    """The task of an exercise, a gap for its answer, and its check."""
    name = number.replace(".", "-")
    show = f'data = wb.exercises.show("{number}")'
    answer = "answer = None  # your answer"
    check = f'checked = wb.exercises.check("{number}", answer)\nprint(checked)\nassert checked'
    return [
        _code(f"task-{name}", show, {"grade": False, "solution": False, "locked": True}),
        _code(f"answer-{name}", answer, {"grade": False, "solution": True, "locked": False}),
        _code(f"check-{name}", check, {"grade": True, "solution": False, "locked": True, "points": 1}),
    ]


def _code(name: str, source: str, marks: dict[str, Any]) -> Cell:
    marks = {"grade_id": name, "schema_version": 3, "task": False, **marks}
    return {
        "cell_type": "code",
        "id": name,
        "metadata": {"nbgrader": marks},
        "execution_count": None,
        "outputs": [],
        "source": source.splitlines(keepends=True),
    }


def _blank(cell: Cell) -> Cell:
    return {**cell, "execution_count": None, "outputs": []} if cell["cell_type"] == "code" else cell


def main(folder: Path) -> None:
    """Write every notebook of this folder for students."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(HERE.glob("*.ipynb")):
        number = int(re.match(r"\d+", path.name)[0])  # type: ignore[index]
        written = student(json.loads(path.read_text(encoding="utf-8")), number)
        (folder / path.name).write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(folder / path.name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
