"""Drawings as a table, like the rows of any other classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.drawings.network import scores
from workbench.drawings.strokes import drawing_to_text
from workbench.drawings.symbols import LATEX
from workbench.tables import LogitTable
from workbench.tables.texts import checked_texts


def table(drawings: Sequence[Any], labels: Any = None, **fields: Any) -> LogitTable:
    """The scores that the network gives drawings, as a table whose rows can be seen.

    Args:
        drawings: Each a list of strokes, each stroke (m, 2) points with y downwards.
        labels: The symbol that was meant in each drawing: LaTeX names or class numbers; None where it is not known.
        **fields: Further fields of the table, such as `attributes`.

    Returns:
        A LogitTable of the 378 symbols, named in LaTeX, with the drawings in `strokes`.

    Example:
        >>> from workbench.drawings import table
        >>> table([[[(0, 0), (9, 9)], [(9, 0), (0, 9)]]], labels=["x"])
        LogitTable(1 rows × 378 classes, softmax, float32; labels, strokes, class_names)
    """
    texts = checked_texts("strokes", [drawing_to_text(drawing) for drawing in drawings])
    return LogitTable(scores(drawings), labels, class_names=LATEX, strokes=texts, **fields)
