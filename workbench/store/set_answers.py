"""Answers of people: the set of classes that a person thinks a row may be.

One line of JSON for each answer, appended and forced to disk before the person sees the next row: a killed browser or server
loses no answer that was given. A line that was cut short by a crash is left out. The last answer of a person to a row counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.store.store import Store

FOLDER = ".answers"
COLUMNS = ("person", "row", "classes")
LONGEST = 100  # letters of the name of a person


class SetAnswers:
    """The answers to rows of one run, by several people.

    Args:
        path: The file, which need not exist yet; `of_run` chooses it inside a store.

    Example:
        >>> import tempfile
        >>> answers = SetAnswers(Path(tempfile.mkdtemp()) / "answers.jsonl")
        >>> answers.add("ann", 3, ["oak", "elm"])
        >>> answers.frame().to_dict("records")
        [{'person': 'ann', 'row': 3, 'classes': ('oak', 'elm')}]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_run(cls, store: Store, key: str) -> SetAnswers:
        """The answers to the test rows of a run of a store."""
        return cls(store.root / FOLDER / f"{key}.jsonl")

    def add(self, person: str, row: int, classes: Sequence[str]) -> None:
        """Append an answer; it is on disk when this returns."""
        line = {"person": checked_person(person), "row": int(row), "classes": [str(name) for name in classes]}
        self._append([{**line, "time": datetime.now(UTC).isoformat()}])

    def add_frame(self, frame: pd.DataFrame) -> int:
        """Append the answers of a frame with columns `person`, `row` and `classes` (a list, or names between semicolons).

        Returns:
            The number of answers.
        """
        if missing := [name for name in COLUMNS if name not in frame]:
            raise ValueError(f"answers lack the column {', '.join(missing)}; give person, row and classes")
        lines = [
            {"person": checked_person(line["person"]), "row": _row(line["row"]), "classes": _classes(line["classes"])}
            for line in frame.to_dict("records")
        ]
        self._append(lines)
        return len(lines)

    def frame(self) -> pd.DataFrame:
        """One line for each person and row: the last answer, in the order of the first ones."""
        found: dict[tuple[str, int], tuple[str, ...]] = {}
        for line in self._lines():
            found[line["person"], line["row"]] = tuple(line["classes"])
        return pd.DataFrame([(*place, classes) for place, classes in found.items()], columns=list(COLUMNS))

    def to_csv(self) -> str:
        """All answers as CSV; `add_frame(pandas.read_csv(...))` takes them back."""
        frame = self.frame()
        return frame.assign(classes=[";".join(classes) for classes in frame["classes"]]).to_csv(index=False)

    def rows_of(self, person: str) -> set[int]:
        """The rows that a person has answered."""
        return {line["row"] for line in self._lines() if line["person"] == person}

    def _append(self, lines: Sequence[dict[str, Any]]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        with open(self.path, "ab") as file:  # one write at the end of the file: two people do not mix
            whole = file.tell() == 0 or self.path.read_bytes()[-1:] == b"\n"
            file.write((text if whole else f"\n{text}").encode())  # after a line that a crash cut short
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> list[dict[str, Any]]:
        if not self.path.is_file():
            return []
        lines = []
        for text in self.path.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError):  # cut short by a crash, or damaged
                continue
            if isinstance(line, dict) and isinstance(line.get("classes"), list) and {"person", "row"} <= line.keys():
                lines.append(line)
        return lines


def checked_person(person: Any) -> str:
    """The name of a person, or an error that says what to give."""
    name = str(person).strip()
    if not name or len(name) > LONGEST:
        raise ValueError(f"person = {person!r}; give a name of 1 to {LONGEST} letters")
    return name


def _row(value: Any) -> int:
    try:
        row = int(value)
    except (TypeError, ValueError):
        raise ValueError(f"row = {value!r}; give the number of a test row") from None
    return row


def _classes(value: Any) -> list[str]:
    if isinstance(value, str):
        return [name.strip() for name in value.split(";") if name.strip()]
    return [] if value is None or value != value else [str(name) for name in value]
