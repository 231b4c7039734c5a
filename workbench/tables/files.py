"""Tables that people bring: files of any of the `FORMATS`, or a directory that `LogitTable.save` wrote.

Files are data: nothing is ever unpickled. What was understood is in the table's `note`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workbench.tables.formats import FORMATS, SUFFIXES, Format, Refused, Room
from workbench.tables.formats.frames import contents_of_frame
from workbench.tables.formats.understanding import table_of
from workbench.tables.shards import holds_shards
from workbench.tables.table import LogitTable


def import_table(
    source: str | os.PathLike[str] | Any,
    *,
    scores: str | Sequence[str] | None = None,
    labels: str | None = None,
    link: str | None = None,
    link_constant: float | None = None,
) -> LogitTable:
    """Read scores or probabilities, and labels where there are any, from a file or a pandas DataFrame.

    - `source`: the path of a file, the folder or address of a saved table (`s3://…`), or a DataFrame.

    - `.npz`, `.safetensors`: arrays named `scores` (or `logits`, `probabilities`, …) and `labels` (or `y`, …); also
      `class_names`, `groups`, `class_counts`, `link`, `link_constant`, `split`, `posterior`, `votes`, `features`, `ids`,
      `images`. Any other array with one entry per row becomes a row attribute. Words of a `.safetensors` stand in its
      metadata, names of classes there as a list in JSON.
    - `.npy`: the scores alone, memory-mapped.
    - `.csv` (also with semicolons or tabs), `.parquet`, frames: one numeric column per class (its name is the class name),
      or one column of lists; a column `label` with class names or indices, and further columns as row attributes.

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
    said: dict[str, Any] = {"scores": scores, "labels": labels, "link": link, "link_constant": link_constant}
    if hasattr(source, "columns") and hasattr(source, "to_numpy"):
        return table_of("frame", contents_of_frame(source), Room(2**62), **said)
    if not isinstance(source, (str, os.PathLike)):
        raise ValueError(
            f"give the path of a file, not {type(source).__name__}; LogitTable(scores, labels) takes arrays"
        )
    if holds_shards(source):
        return _saved(source, **said)
    path = Path(source)
    if path.is_dir():
        return _saved(path, **said)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    form = _format(path)
    room = Room(path.stat().st_size)
    asked = (scores,) if isinstance(scores, str) else tuple(scores or ())
    try:
        contents = form.read(path, room, (*asked, *([] if labels is None else [labels])))
    except Refused as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Exception as error:  # each format has its own errors for a damaged file, and some have many
        raise ValueError(_damaged(path, error)) from error
    try:
        return table_of(path.name, contents, room, **said)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Exception as error:  # what is read only when it is wanted may be damaged as well
        raise ValueError(_damaged(path, error)) from error


def _saved(
    directory: str | os.PathLike[str], scores: Any, labels: Any, link: str | None, link_constant: float | None
) -> LogitTable:
    """A table that `LogitTable.save` wrote, or one in shards, which says all about itself."""
    if scores is not None or labels is not None:
        raise ValueError(f"{directory} is a saved table, whose scores and labels are known; leave out their names")
    table = LogitTable.load(directory)
    return table if link is None else table.with_link(link, link_constant)


def _format(path: Path) -> Format:
    for form in FORMATS:
        if path.suffix.lower() in form.suffixes:
            return form
    raise ValueError(
        f"{path.name}: files ending in {path.suffix or '(nothing)'} are not read; give one of {', '.join(SUFFIXES)} "
        "(pickles, .pt and .pkl among them, can run code and are never opened: save arrays with numpy.savez)"
    )


def _damaged(path: Path, error: BaseException) -> str:
    reason = (str(error).strip() or type(error).__name__).split("\n")[0][:300]
    return f"{path.name} could not be read as {path.suffix}: it is damaged, incomplete or something else ({reason})"
