"""Import of tables: files of any of the `FORMATS`, or a directory that `LogitTable.save` wrote.

Files are data: nothing is ever unpickled. What was understood is in the table's `note`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.tables.formats import AmbiguousScores, Contents, Room
from workbench.tables.formats.frames import contents_of_frame
from workbench.tables.formats.infer_table import table_of
from workbench.tables.formats.numpy_files import holds_arrays, read_array_folder
from workbench.tables.formats.opening import contents_at, damaged
from workbench.tables.shards import holds_shards
from workbench.tables.table import LogitTable
from workbench.tables.vote_files import refuse_votes


def import_table(
    source: str | os.PathLike[str] | Any,
    *,
    scores: str | Sequence[str] | None = None,
    labels: str | None = None,
    link: str | None = None,
    link_constant: float | None = None,
) -> LogitTable:
    """Read scores or probabilities, and labels where there are any, from a file or a pandas DataFrame.

    Args:
        source: The path of a file, the folder or address of a saved table (`s3://…`), or a DataFrame.

    - `.npz`, `.safetensors`: arrays named `scores` (or `logits`, `probabilities`, …) and `labels` (or `y`, …); also
      `class_names`, `groups`, `class_counts`, `link`, `link_constant`, `split`, `posterior`, `votes`, `features`, `ids`,
      `images`. Any other array with one entry per row becomes a row attribute. Words of a `.safetensors` stand in its
      metadata, names of classes there as a list in JSON.
      `train_labels` give the class counts.
    - `.npy`: the scores alone, memory-mapped. A folder of them, named as papers on long tails name theirs:
      `…_val_softmax.npy`, `…_val_labels.npy`, `…_test_softmax.npy`, `…_test_labels.npy`, `…_train_labels.npy`; of one split
      also `softmax.npy` and `labels.npy`.
    - `.csv`, `.tsv` (with commas, semicolons or tabs, also `.gz`), `.parquet`, `.feather`, frames: one numeric column per
      class (its name is the class name), or one column of lists; a column `label` with class names or indices, and further
      columns as row attributes.
    - `.jsonl`, `.json`: one object a row; scores as an object {class: score}, a list of {"label", "score"}, or a list.

    Labels are indices, names, lists of them (`a;b` in a `.csv`), one mark in each row, or several marks; an empty cell or -1
    is a row without a label. The link is the one that the file names. Else rows that are ≥ 0 and sum to 1 are taken for
    probabilities, as `predict_proba` of scikit-learn gives them; anything else for scores to be put through softmax
    (through sigmoid when labels are many). `table.note` says what was understood.

    What a file leaves open is refused; then say it: `scores` names the array, a part of a stacked one, `logits[0]`, or the
    columns of the classes (`["oak", "elm"]` or `"p_*"`), `labels` names the labels, `link` and `link_constant` the link.

    Reading takes at most ten times the size of the file and 200 MB; what would take more is refused before.

    >>> import tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/mine.npz", logits=np.eye(3, dtype=np.float32) * 5, y=[0, 1, 2])
    ...     table = import_table(f"{folder}/mine.npz")
    >>> print(table.note)
    mine.npz: 3 rows × 3 classes; logits (float32) read as scores, softmax; labels from y
    """
    options: dict[str, Any] = {"scores": scores, "labels": labels, "link": link, "link_constant": link_constant}
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return table_of("frame", contents_of_frame(source), Room(2**62), **options)
    if not isinstance(source, (str, os.PathLike)):
        raise ValueError(
            f"give the path of a file, not {type(source).__name__}; LogitTable(scores, labels) takes arrays"
        )
    if holds_shards(source):
        return _saved(source, **options)
    path = Path(source)
    if scores is None:
        refuse_votes(path)
    if path.is_dir() and not (path / "table.json").exists() and holds_arrays(path):
        return table_from(path, read_array_folder(path), Room(2**62), options)
    if path.is_dir():
        return _saved(path, **options)
    names = (scores,) if isinstance(scores, str) else tuple(scores or ())
    room = Room(path.stat().st_size if path.is_file() else 0)
    contents = contents_at(path, (*names, *([] if labels is None else [labels])), room)
    return table_from(path, contents, room, options)


def table_from(path: Path, contents: Contents, room: Room, options: dict[str, Any]) -> LogitTable:
    """The table of a file that was opened; `options` are the arguments of `import_table`."""
    try:
        return table_of(path.name, contents, room, **options)
    except AmbiguousScores as error:
        raise AmbiguousScores(f"{path.name}: {error}", error.arrays) from None
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Exception as error:  # arrays that are read lazily may be damaged, too
        raise ValueError(damaged(path, error)) from error


def _saved(
    directory: str | os.PathLike[str], scores: Any, labels: Any, link: str | None, link_constant: float | None
) -> LogitTable:
    """A table that `LogitTable.save` wrote, or one in shards; both name every part themselves."""
    if scores is not None or labels is not None:
        raise ValueError(f"{directory} is a saved table, whose scores and labels are known; leave out their names")
    table = LogitTable.load(directory)
    return table if link is None else table.with_link(link, link_constant)
