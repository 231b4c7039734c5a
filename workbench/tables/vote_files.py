"""Votes of annotators: the label that each person gave to each item, as `peerannot` and spreadsheets store them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.tables.checks import listed
from workbench.tables.formats.opening import contents_at
from workbench.tables.table import LogitTable
from workbench.untrusted_files import read_json

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "item": ("item", "task", "task_id", "row", "id", "image", "image_id", "file", "filename", "observation"),
    "user": ("user", "worker", "worker_id", "annotator", "annotator_id", "person", "rater"),
    "label": ("label", "answer", "vote", "class", "species"),
}
FIRST_LINES = 1000  # of a file, by which votes are told from scores
ANSWERS, METADATA = "answers.json", "metadata.json"  # of a folder of peerannot


def import_votes(source: Any) -> pd.DataFrame:
    """Read the votes of annotators: one line for each item and person, as `wb.crowd_labels.validated_labels` takes them.

    Args:
        source: `answers.json` of peerannot ({task: {worker: label}}) or the folder that holds it (whose `metadata.json` is
            checked), a `.csv` or another file of columns item, user and label (or task, worker, answer, …), or a DataFrame.

    Returns:
        A frame of `item`, `user` and `label`.

    Raises:
        ValueError: it holds no votes, or other ones than its metadata says.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.json"
        >>> _ = path.write_text('{"0": {"7": 1, "9": 0}, "1": {"7": 1}}')
        >>> import_votes(path).to_dict("list")
        {'item': ['0', '0', '1'], 'user': ['7', '9', '7'], 'label': [1, 0, 1]}
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        return _renamed(source, "frame")
    path = Path(source)
    if path.is_dir():
        return _of_folder(path)
    if path.suffix.lower() == ".json":
        return _of_answers(read_json(path), path.name)
    columns = {column.name: list(column.values) for column in contents_at(path).columns or ()}
    return _renamed(pd.DataFrame(columns), path.name)


def holds_votes(source: Any) -> bool:
    """Whether a path is a file or a folder of votes, by what it is called and by what it holds."""
    path = Path(source)
    if path.is_dir():
        return (path / ANSWERS).is_file()
    if path.suffix.lower() == ".json":
        try:
            return _are_answers(read_json(path))
        except ValueError:
            return False
    if path.suffix.lower() not in (".csv", ".tsv") or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        lines = [[cell.strip() for cell in _cells(line)] for line in islice(file, FIRST_LINES)]
    names = [name.lower() for name in lines[0]] if lines else []
    if not all(set(names) & set(known) for known in COLUMNS.values()):
        return False
    item = next(place for place, name in enumerate(names) if name in COLUMNS["item"])
    items = [line[item] for line in lines[1:] if len(line) > item]
    return len(names) == len(COLUMNS) or len(set(items)) < len(items)  # scores beside a user: each item stands once


def _cells(line: str) -> list[str]:
    return line.replace("\t", ",").replace(";", ",").split(",")


def refuse_votes(path: Any) -> None:
    """An error where a file or folder that should hold scores holds votes."""
    if holds_votes(path):
        name = Path(path).name
        raise ValueError(
            f"{name} holds votes of annotators, not scores; `workbench data {name}` describes them, "
            f"`workbench import SCORES --votes {name}` puts them on the rows of a file of scores, wb.import_votes reads them"
        )


def vote_counts(votes: pd.DataFrame, items: Sequence[Any], classes: Sequence[Any] | int) -> np.ndarray:
    """(n, L) how many people gave each class to each item.

    Args:
        votes: Columns item, user and label.
        items: The items, one a row.
        classes: Names of the classes, or how many there are where labels are indices.

    Raises:
        ValueError: a label is none of the classes.

    Example:
        >>> import pandas as pd
        >>> votes = pd.DataFrame({"item": ["a", "a", "b"], "user": [1, 2, 1], "label": ["oak", "elm", "oak"]})
        >>> vote_counts(votes, ["b", "a"], ["oak", "elm"]).tolist()
        [[1, 0], [1, 1]]
    """
    names = [str(j) for j in range(classes)] if isinstance(classes, int) else [str(name) for name in classes]
    row, column = ({str(each): at for at, each in enumerate(part)} for part in (items, names))
    given = votes["label"].astype(str)
    if unknown := sorted(set(given) - column.keys()):
        raise ValueError(f"votes name {listed(unknown)}, not among the {len(names)} classes ({listed(names)})")
    counts = np.zeros((len(items), len(names)), np.int64)
    kept = votes["item"].astype(str).isin(row)
    at = votes["item"].astype(str)[kept].map(row).to_numpy(int), given[kept].map(column).to_numpy(int)
    np.add.at(counts, at, 1)
    return counts


def with_votes(table: LogitTable, votes: pd.DataFrame) -> LogitTable:
    """The table with the votes on its rows, matched by id; a row without votes has zeros.

    Raises:
        ValueError: no vote is on a row of the table.
    """
    numbered = not set(votes["label"].astype(str)) <= set(table.class_names or ())
    classes = table.n_classes if numbered or table.class_names is None else table.class_names
    counts = vote_counts(votes, table.row_ids.tolist(), classes)
    if not counts.any():
        ids, items = listed(table.row_ids[:5].tolist()), listed(votes["item"][:5].tolist())
        raise ValueError(f"the rows are called {ids} and the items of the votes {items}; give ids that match")
    return dataclasses.replace(table, votes=counts)


def _of_folder(folder: Path) -> pd.DataFrame:
    votes = import_votes(folder / ANSWERS)
    about = folder / METADATA
    metadata = read_json(about) if about.is_file() else {}
    if not isinstance(metadata, Mapping):
        raise ValueError(f'{METADATA} holds no object; give {{"n_classes": 10}}, or leave it out')
    found = {"n_classes": votes["label"].nunique(), "n_workers": votes["user"].nunique()}
    for name, n in found.items():
        if isinstance(metadata.get(name), int) and n > metadata[name]:
            raise ValueError(f"{METADATA} says {name} = {metadata[name]}, and {ANSWERS} has {n}; mend one of them")
    return votes


def _are_answers(found: Any) -> bool:
    """Whether it is {task: {worker: label}}: labels are whole numbers or words, and not the scores of classes."""
    return (
        isinstance(found, Mapping)
        and bool(found)
        and all(isinstance(each, Mapping) for each in found.values())
        and all(isinstance(label, (int, str)) for each in found.values() for label in each.values())
    )


def _of_answers(found: Any, name: str) -> pd.DataFrame:
    import pandas as pd

    if not _are_answers(found):
        raise ValueError(f'{name} holds no votes; give {{task: {{worker: label}}}}, such as {{"0": {{"ann": 2}}}}')
    lines = [(task, worker, label) for task, given in found.items() for worker, label in given.items()]
    if not lines:
        raise ValueError(f"{name} holds no votes; every task is without an answer")
    return pd.DataFrame(lines, columns=["item", "user", "label"])


def _renamed(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    by_lower = {str(column).lower(): column for column in frame.columns}
    found = {
        role: next((by_lower[each] for each in known if each in by_lower), None) for role, known in COLUMNS.items()
    }
    if missing := [role for role, column in found.items() if column is None]:
        raise ValueError(f"{name} has no column of {', '.join(missing)}; it has {listed(frame.columns, 20)}")
    return frame[list(found.values())].set_axis(list(found), axis=1).dropna().reset_index(drop=True)
