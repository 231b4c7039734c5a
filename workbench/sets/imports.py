"""Import of sets made elsewhere, and of any file that real systems give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from workbench.sets.prediction_sets import PredictionSets
from workbench.tables.checks import listed
from workbench.tables.files import import_table, table_from
from workbench.tables.formats import Room
from workbench.tables.formats.json_files import JSON
from workbench.tables.formats.opening import contents_at, format_of
from workbench.tables.listed_classes import ListedClasses, of_contents, of_json, read_listed
from workbench.tables.partial import PartialTable
from workbench.tables.partial_files import partial_table
from workbench.tables.shards import holds_shards
from workbench.tables.table import LogitTable
from workbench.tables.vote_files import holds_votes, import_votes

MOST_CELLS = 2**25  # of sets whose classes are numbers, where few of them are listed
Imported = LogitTable | PartialTable | PredictionSets | pd.DataFrame


def import_sets(
    source: Any, table: LogitTable | None = None, *, class_names: Sequence[str] | None = None
) -> PredictionSets:
    """Read sets that another system made, so that every metric and figure of sets judges them.

    A `.csv`, `.parquet` or frame has a column `classes` (or `set`, `prediction_set`, …) with the names between semicolons, or
    lists; a `.json` one object a row with such a list; a `.npz` an array `sets` of shape (n, L), true and false. Labels and
    ids stand beside them. What `workbench sets --output` writes is read.

    Args:
        source: The path of a file, or a DataFrame.
        table: The rows that the sets are about, where their scores are known: matched by id, or by order where the file
            has no ids. Labels and classes are then those of the table.
        class_names: All classes, where the file has no table and sets leave some out.

    Returns:
        The sets; `.source` names the file.

    Raises:
        ValueError: the file holds no sets, or sets of other rows or classes.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "theirs.csv"
        >>> _ = path.write_text("label,classes\\noak,oak;elm\\nfir,oak\\n")
        >>> sets = import_sets(path)
        >>> sets, sets.hits.tolist()
        (PredictionSets(2 rows, mean size 1.5; theirs.csv), [True, False])
    """
    name = Path(source).name if isinstance(source, (str, Path)) else "frame"
    found = read_listed(source)
    if found is None:
        raise ValueError(f"{name} holds no sets; give a column classes with names between semicolons, such as oak;elm")
    return sets_of(found, name, table, class_names)


def sets_of(
    found: ListedClasses, name: str, table: LogitTable | None = None, class_names: Sequence[str] | None = None
) -> PredictionSets:
    """The sets that the rows of a file list."""
    try:
        if table is not None:
            return _about(found, name, table)
        return _alone(found, name, class_names)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _alone(found: ListedClasses, name: str, class_names: Sequence[str] | None) -> PredictionSets:
    rows = [dict.fromkeys(row, 0.0) for row in found.rows]
    if not any(rows):
        raise ValueError("every set is empty; give at least one class")
    listing = PartialTable.from_rows(
        rows, found.labels, class_names=class_names or found.class_names, n_classes=found.n_classes
    )
    names = listing.named_classes()
    n_classes = max(len(names), int(-1 if listing.labels is None else listing.labels.max()) + 1)
    if n_classes > 10 * len(listing.classes) and listing.n * n_classes > MOST_CELLS:
        raise ValueError(
            f"its largest class is {n_classes - 1}, of few that are listed; give class_names, or mend that number"
        )
    matrix = np.zeros((listing.n, n_classes), bool)
    matrix[listing.row_of, listing.classes] = True
    table = LogitTable(
        matrix.astype(np.float32), listing.labels, link="identity", class_names=names if listing.class_names else None,
        ids=np.arange(listing.n) if found.ids is None else np.array(found.ids),
        attributes={key: np.array([str(each) for each in values]) for key, values in found.attributes.items()} or None,
        note=f"{name}: sets without scores",
    )  # fmt: skip
    return PredictionSets.from_matrix(table, matrix, source=name)


def _about(found: ListedClasses, name: str, table: LogitTable) -> PredictionSets:
    place = {each: j for j, each in enumerate(table.named_classes())}
    classes = {each for row in found.rows for each in row}
    if unknown := sorted(str(each) for each in classes if isinstance(each, str) and each not in place):
        raise ValueError(f"sets name {listed(unknown)}, not among the classes ({listed(place)})")
    rows, at = _matched(found, table)
    chosen = table.rows(at)
    matrix = np.zeros((chosen.n, table.n_classes), bool)
    for i, row in enumerate(rows):
        indices = [place[each] if isinstance(each, str) else int(each) for each in found.rows[row]]
        if indices and not 0 <= min(indices) <= max(indices) < table.n_classes:
            raise ValueError(f"row {row + 1} names class {max(indices)} of {table.n_classes}; give indices from 0")
        matrix[i, indices] = True
    return PredictionSets.from_matrix(chosen, matrix, source=name)


def _matched(found: ListedClasses, table: LogitTable) -> tuple[list[int], list[int]]:
    """Rows of the file and rows of the table that are the same, by id; by order without ids."""
    if found.ids is None:
        if len(found.rows) != table.n:
            raise ValueError(
                f"it has {len(found.rows)} sets without ids, and the table {table.n} rows; add a column id"
            )
        return list(range(table.n)), list(range(table.n))
    row_of = {str(each): i for i, each in enumerate(table.row_ids.tolist())}
    pairs = [(i, row_of[str(each)]) for i, each in enumerate(found.ids) if str(each) in row_of]
    if not pairs:
        raise ValueError(
            f"its rows are called {listed(found.ids)}, those of the table {listed(table.row_ids[:6].tolist())}; none match"
        )
    rows, at = zip(*pairs, strict=True)
    return list(rows), list(at)


def import_any(
    path: str | Path,
    *,
    cut: float | None = None,
    n_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    **options: Any,
) -> Imported:
    """Read a file or a folder, whichever of these it holds: scores of all classes, of some, sets, or votes.

    Args:
        path: The file, a folder of `.npy` files, a saved table, or a folder of peerannot.
        cut: Probabilities below it are unknown.
        n_classes: How many classes there are, where rows list some.
        class_names: The classes, where rows list some.
        options: `scores`, `labels`, `link` and `link_constant` of `wb.import_table`.

    Returns:
        A `LogitTable`, a `PartialTable`, `PredictionSets`, or a frame of votes.
    """
    if not holds_shards(path) and holds_votes(path):
        return import_votes(path)
    if any(value is not None for value in options.values()) or holds_shards(path) or Path(path).is_dir():
        return import_table(path, **options)
    if cut is not None:
        from workbench.tables.partial_files import import_partial

        return import_partial(path, cut=cut, n_classes=n_classes, class_names=class_names)
    path = Path(path)
    room = Room(path.stat().st_size if path.is_file() else 0)
    is_json = format_of(path) is JSON
    contents = None if is_json else contents_at(path, room=room)
    found = of_json(path) if contents is None else of_contents(contents)
    if found is None or (contents is None and found.with_probabilities and not found.are_sets and _lists_all(found)):
        nothing = dict.fromkeys(("scores", "labels", "link", "link_constant"))
        return import_table(path) if contents is None else table_from(path, contents, room, nothing)
    if found.with_probabilities and not found.are_sets:
        return partial_table(found, path.name, cut=cut, n_classes=n_classes, class_names=class_names)
    return sets_of(found, path.name, class_names=class_names)


def _lists_all(found: ListedClasses) -> bool:
    """Whether every row lists the same classes: the scores of all."""
    first = set(found.rows[0])
    return found.n_classes in (None, len(first)) and all(set(row) == first for row in found.rows)
