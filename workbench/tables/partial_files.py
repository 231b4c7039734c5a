"""Import of the best classes of each row, as services, databases and `torch.topk` give them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.tables.checks import NO_LABEL
from workbench.tables.listed_classes import ListedClasses, read_listed
from workbench.tables.partial import PartialTable
from workbench.tables.table import LogitTable


def import_partial(
    source: Any,
    *,
    class_names: Sequence[str] | None = None,
    n_classes: int | None = None,
    cut: float | None = None,
) -> PartialTable:
    """Read probabilities of some classes of each row: the best m, or those above a cut.

    - `.json`, `.jsonl`: the answers of a service, {"answer": {class: score}} or lists of {"label", "score"}; a label, an id
      and attributes beside them.
    - `.csv`, `.parquet`, frames: `classes` and `probabilities` in one cell each (`oak;elm`), a line for each row and class
      (`id`, `class`, `score`), or columns `class_1`, `score_1`, `class_2`, …
    - `.npz`: `indices` and `values` of shape (n, m), as `torch.topk` gives them, `labels`, `n_classes` or `class_names`.
    - a file of all scores: with `cut`, probabilities below it are taken for unknown.

    Args:
        source: The path of a file, or a DataFrame.
        class_names: All classes, where the file names only those it lists.
        n_classes: How many classes there are, where it is known.
        cut: The probability below which classes were left out.

    Raises:
        ValueError: the file lists no classes with probabilities.

    Example:
        >>> import tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "answers.jsonl"
        >>> _ = path.write_text('{"truth": "oak", "answer": [{"label": "oak", "score": 0.8}, {"label": "elm", "score": 0.1}]}')
        >>> import_partial(path, n_classes=50)
        PartialTable(1 rows, 2 of 50 classes)
    """
    listed = read_listed(source)
    name = Path(source).name if isinstance(source, (str, Path)) else "frame"
    if listed is None:
        return _of_whole_table(source, name, cut)
    try:
        return partial_table(listed, name, class_names=class_names, n_classes=n_classes, cut=cut)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def partial_table(listed: ListedClasses, name: str, **given: Any) -> PartialTable:
    """The table of the classes that the rows of a file list."""
    if not listed.with_probabilities:
        raise ValueError("it lists classes without probabilities: sets made elsewhere; wb.import_sets(path) reads them")
    facts = {key: value if value is not None else getattr(listed, key) for key, value in given.items()}
    table = PartialTable.from_rows(
        listed.rows, listed.labels, **facts, ids=None if listed.ids is None else np.array(listed.ids),
        attributes={key: np.array([str(v) for v in values]) for key, values in listed.attributes.items()} or None,
        note="",
    )  # fmt: skip
    labels = "no labels" if table.labels is None else f"{int((table.labels != NO_LABEL).sum())} labels"
    rest = "at most as probable as the last one listed" if table.cut is None else f"below {table.cut:g}"
    note = f"{name}: {table.in_words()}, {labels}; a class that is not listed is {rest}"
    object.__setattr__(table, "note", note)
    return table


def _of_whole_table(source: Any, name: str, cut: float | None) -> PartialTable:
    from workbench.tables.files import import_table

    if cut is None:
        raise ValueError(
            f"{name} lists no classes with their probabilities; wb.import_table(path) reads the scores of all classes "
            "(cut=0.01 takes what lies below for unknown)"
        )
    table: LogitTable = import_table(source)
    return PartialTable.of_table(table, cut=cut)
