"""Rows that are not images, as pictures: strokes, the waveform of a sound, a text in lines."""

from __future__ import annotations

import importlib.util
import wave
from collections.abc import Callable
from functools import cache
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from workbench.tables import LogitTable

SIDE, MARGIN = 160, 14  # pixels of a picture, and of the free space around what it shows
INK, PAPER = (34, 48, 42), (251, 250, 245)
LETTERS, LINES = 18, 8  # of a text that fits a picture


class RowPictures:
    """The rows of a table as images (n, SIDE, SIDE, 3), each drawn when it is indexed."""

    ndim = 4

    def __init__(self, contents: np.ndarray, draw: Callable[[str], np.ndarray]) -> None:
        self.contents, self.draw = contents, draw
        self.shape = (len(contents), SIDE, SIDE, 3)

    def __len__(self) -> int:
        return len(self.contents)

    def __getitem__(self, rows: Any) -> np.ndarray:
        """(k, SIDE, SIDE, 3) uint8 of the chosen rows."""
        return np.stack([self.draw(text) for text in np.atleast_1d(self.contents[rows]).tolist()])


def row_pictures(table: LogitTable, *, texts: bool = True) -> Any:
    """Images of the rows: those that the table has, or pictures of its strokes, sounds or texts; None where it has none.

    Example:
        >>> from workbench.drawings import table
        >>> row_pictures(table([[[(0, 0), (9, 9)]]]))[:1].shape
        (1, 160, 160, 3)
    """
    if table.images is not None:
        return table.images
    kinds = {"strokes": stroke_picture, "sounds": waveform} | ({"texts": text_picture} if texts else {})
    for name, draw in kinds.items():
        if getattr(table, name) is not None:
            return RowPictures(getattr(table, name), draw)
    return None


def stroke_picture(text: str) -> np.ndarray:
    """A drawing, as large as the picture allows; a blank picture where the text is not a drawing."""
    from workbench.drawings import drawing_from_text

    image, pen = _blank()
    try:
        strokes = drawing_from_text(text)
    except (TypeError, ValueError):
        return np.asarray(image)
    points = np.concatenate(strokes)
    low, extent = points.min(axis=0), max(float(np.ptp(points, axis=0).max()), 1e-9)
    free = (SIDE - 2 * MARGIN - (SIDE - 2 * MARGIN) * np.ptp(points, axis=0) / extent) / 2
    for stroke in strokes:
        placed = MARGIN + free + (SIDE - 2 * MARGIN) * (stroke - low) / extent
        pen.line([tuple(point) for point in placed.tolist()], fill=INK, width=5, joint="curve")
        for x, y in placed[[0, -1]].tolist():
            pen.ellipse((x - 2.5, y - 2.5, x + 2.5, y + 2.5), fill=INK)
    return np.asarray(image)


def waveform(path: str) -> np.ndarray:
    """The loudness of a `.wav` file along its time; a blank picture with a word where it cannot be read."""
    image, pen = _blank()
    try:
        samples = read_wave(Path(path))
    except (OSError, ValueError) as error:
        return text_picture(f"{Path(path).name}: {error}")
    parts = np.array_split(samples, min(SIDE - 2 * MARGIN, len(samples)))
    loudness = np.array([np.abs(part).max() for part in parts]) / max(float(np.abs(samples).max()), 1e-9)
    for x, height in enumerate((loudness * (SIDE / 2 - MARGIN)).tolist(), MARGIN):
        pen.line((x, SIDE / 2 - height, x, SIDE / 2 + height), fill=INK)
    return np.asarray(image)


def read_wave(path: Path) -> np.ndarray:
    """(m,) the samples of a `.wav` file, its channels averaged."""
    try:
        with wave.open(str(path)) as file:
            width, channels = file.getsampwidth(), file.getnchannels()
            content = file.readframes(file.getnframes())
    except (wave.Error, EOFError) as error:
        raise ValueError(f"is no .wav file that can be read ({error})") from None
    if width not in (1, 2, 4):
        raise ValueError(f"has samples of {width} bytes; give 1, 2 or 4")
    numbers = np.frombuffer(content, {1: "u1", 2: "<i2", 4: "<i4"}[width]).astype(np.float64)
    samples = (numbers - 128 if width == 1 else numbers).reshape(-1, channels).mean(axis=1)
    if samples.size == 0:
        raise ValueError("is empty")
    return np.asarray(samples)


def text_picture(text: str) -> np.ndarray:
    """The beginning of a text, in lines."""
    image, pen = _blank()
    lines = wrap(text, LETTERS) or [""]
    shown = lines[:LINES] if len(lines) <= LINES else [*lines[: LINES - 1], "…"]
    pen.multiline_text((MARGIN, MARGIN), "\n".join(shown), fill=INK, font=_font(), spacing=3)
    return np.asarray(image)


def _blank() -> Any:
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (SIDE, SIDE), PAPER)
    return image, ImageDraw.Draw(image)


@cache
def _font() -> Any:
    """DejaVu Sans, which comes with matplotlib and knows many scripts; matplotlib itself is not loaded."""
    from PIL import ImageFont

    found = importlib.util.find_spec("matplotlib")
    assert found is not None
    assert found.origin is not None
    return ImageFont.truetype(str(Path(found.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"), 13)
