"""Rows of text: strings of any length in memory, and as their UTF-8 bytes with the end of each on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from workbench.tables.checks import read_only

TEXT = np.dtypes.StringDType()  # each text takes the room that it needs


def checked_texts(field: str, given: Any) -> np.ndarray:
    """Texts, one per row, from a list, a Series or an array of them; a missing one is empty.

    >>> checked_texts("texts", ["Peru", None]).tolist()
    ['Peru', '']
    """
    if field == "sounds" and isinstance(given, (str, Path)):
        given = sound_files(Path(given))
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise TypeError(f"{field} = {str(given)[:60]!r}; give one text per row, such as ['Peru', 'Chile']")
    texts = [_checked(field, row, text) for row, text in enumerate(given)]
    return read_only(np.array(texts, dtype=TEXT))


def sound_files(folder: Path) -> list[str]:
    """The `.wav` files of a folder and of those in it, by name."""
    found = sorted(str(path) for path in folder.rglob("*") if path.suffix.lower() == ".wav")
    if not found:
        raise ValueError(f"{folder} holds no .wav file; give a folder of them, one for each row, or a list of paths")
    return found


def _checked(field: str, row: int, text: Any) -> str:
    if text is None or (isinstance(text, float) and np.isnan(text)):
        return ""
    if not isinstance(text, str):
        raise TypeError(f"{field}: row {row} holds {text!r} ({type(text).__name__}); give a text for each row")
    return str(text)


def packed(texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all texts, one after the other, and where each ends."""
    encoded = [text.encode("utf-8") for text in texts.tolist()]
    return np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([len(text) for text in encoded], dtype=np.int64)


def unpacked(content: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The texts that `packed` wrote, or a ValueError where its arrays do not fit together."""
    if len(ends) and (ends[-1] != content.size or np.diff(ends, prepend=0).min() < 0):
        raise ValueError(f"texts are damaged: {content.size} bytes, and the last text ends at {ends[-1]}")
    whole = content.tobytes()
    spans = zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)
    return read_only(np.array([whole[start:end].decode("utf-8") for start, end in spans], dtype=TEXT))
