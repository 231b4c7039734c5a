"""What a row is, in one word: an image, a drawing, a sound, a text, or a row of numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.tables.table import LogitTable

IMAGE, ROW = "image", "row"
NOUNS = {"images": IMAGE, "strokes": "drawing", "sounds": "sound", "texts": "text"}  # field of a table → what a row is
KINDS = (*NOUNS.values(), ROW)


def kind_of_rows(table: LogitTable) -> str:
    """What the rows of a table are: what it says itself, else by what it shows of them.

    >>> import numpy as np
    >>> from workbench.tables import LogitTable
    >>> kind_of_rows(LogitTable(np.zeros((1, 2)), texts=["Peru"])), kind_of_rows(LogitTable(np.zeros((1, 2))))
    ('text', 'row')
    """
    return table.row_kind or next((noun for name, noun in NOUNS.items() if getattr(table, name) is not None), ROW)


def training_row(table: LogitTable) -> str:
    """What class counts count: "training image" where rows are images."""
    return f"training {kind_of_rows(table)}"


def training_rows(table: LogitTable) -> str:
    """The same in the plural."""
    return f"{training_row(table)}s"
