"""`.jsonl` and `.json`: one object a row, as services answer: scores by name, in a list, or as pairs of label and score."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.tables.formats.base import LABELS, LOGITS, PROBABILITIES, Contents, Format, RefusedFile, Room
from workbench.tables.formats.frames import contents_of_frame
from workbench.untrusted_files import read_bytes

SCORE = ("score", "probability", "confidence", "prob", *LOGITS, *PROBABILITIES)  # of one class
NAME = ("label", "name", "class", "tagname", "description", "scientificname", *LABELS)
WITHIN = ("species", "taxon", "category")  # where the name of a class stands in an object of its own
ROWS = ("rows", "results", "predictions", "answers", "data")  # what the list of rows is called in an object around it
TIMES = 8  # the size of the text that its objects take
CELL = 16  # bytes of a cell of the frame


def read_json(path: Path, room: Room, text_columns: tuple[str, ...]) -> Contents:
    """A list of objects, or one object a line."""
    import pandas as pd

    flat = [_flat(row) for row in json_rows(path, room)]
    names = dict.fromkeys(name for line in flat for name in line)
    room.take("its cells", CELL * len(names) * len(flat))
    room.take_columns(list(names))
    _check_complete(flat, list(names))
    return contents_of_frame(pd.DataFrame(flat))


def json_rows(path: Path, room: Room) -> list[dict[str, Any]]:
    """The rows of a file: a list of objects or of answers, one object a line, an object around them, or {id: answer}."""
    size = path.stat().st_size
    room.take("its objects", TIMES * size)
    text = read_bytes(path, size).decode("utf-8")
    lines = path.suffix.lower() != ".json"
    found = [json.loads(line) for line in text.splitlines() if line.strip()] if lines else json.loads(text)
    if isinstance(found, Mapping):
        found = _rows_in(found)
    rows = [row if isinstance(row, Mapping) else {"answer": row} for row in found] if isinstance(found, list) else []
    if not rows or any(scores_by_name(row.get("answer", 0.0)) is None for row in rows if list(row) == ["answer"]):
        raise RefusedFile(
            'it does not hold a list of objects, one a row, such as {"label": "oak", "scores": {"oak": 0.9}}'
        )
    return [dict(row) for row in rows]


def _rows_in(found: Mapping[str, Any]) -> Any:
    """The rows of an object: the list in it, {id: answer}, or the object itself as the answer about one row."""
    for name in ROWS:
        inner = found.get(name)
        if isinstance(inner, list) and scores_by_name(inner) is None:
            return inner
    if found and all(scores_by_name(value) is not None for value in found.values()):
        return [{"id": name, "answer": value} for name, value in found.items()]
    return [found]


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with scores by name as columns of their own."""
    line: dict[str, Any] = {}
    for name, value in row.items():
        scores = scores_by_name(value)
        line |= {name: value} if scores is None else scores
    return line


def _check_complete(flat: list[dict[str, Any]], names: list[str]) -> None:
    """Refuse rows that lack the score of a class that others have."""
    others = {name for line in flat for name, value in line.items() if not isinstance(value, float)}
    scores = [name for name in names if name not in others]
    for number, line in enumerate(flat):
        if missing := [name for name in scores if name not in line]:
            raise RefusedFile(
                f"row {number + 1} has no score of {missing[0]}, which other rows have; give every class of every row, or "
                "read the best few of each as such: wb.import_partial(path), workbench evaluate FILE"
            )


def scores_by_name(value: Any) -> dict[str, float] | None:
    """{class: score} of an object of numbers, or of a list of names with scores; None for anything else."""
    if isinstance(value, Mapping) and value and all(_is_number(each) for each in value.values()):
        return {str(name): float(each) for name, each in value.items()}
    if not (isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value)):
        return None
    pairs = [_pair({str(key).lower(): part for key, part in each.items()}) for each in value]
    return None if None in pairs else dict(pair for pair in pairs if pair is not None)


def _pair(answer: Mapping[str, Any]) -> tuple[str, float] | None:
    """The name and the score of one class, as services write them."""
    inside: Mapping[str, Any] = next((answer[key] for key in WITHIN if isinstance(answer.get(key), Mapping)), {})
    lower = {str(key).lower(): part for key, part in inside.items()}
    name = next((found[key] for found in (answer, lower) for key in NAME if key in found), None)
    name = next((answer[key] for key in WITHIN if isinstance(answer.get(key), str)), None) if name is None else name
    score = next((answer[key] for key in SCORE if _is_number(answer.get(key))), None)
    return None if name is None or score is None else (str(name), float(score))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


JSON = Format((".jsonl", ".ndjson", ".json"), read_json)
