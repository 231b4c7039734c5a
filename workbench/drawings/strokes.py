"""A drawing: a list of strokes, each (m, 2) points with y downwards; as text, JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

Drawing = list[np.ndarray]


def checked_drawing(given: Any, name: str = "the drawing") -> Drawing:
    """The strokes as float64 arrays (m, 2).

    Args:
        given: A sequence of strokes, each a sequence of (x, y) points.
        name: What an error calls the drawing.

    Raises:
        TypeError: `given` is not a sequence of strokes.
        ValueError: There is no stroke, a stroke is empty or not (m, 2), or a coordinate is not finite.
    """
    if isinstance(given, (str, bytes)) or not hasattr(given, "__len__"):
        raise TypeError(f"{name} is {type(given).__name__}; give a list of strokes, each a list of (x, y) points")
    if len(given) == 0:
        raise ValueError(f"{name} has no stroke; give at least one, with at least one point")
    return [_checked_stroke(stroke, f"{name}, stroke {number}") for number, stroke in enumerate(given)]


def _checked_stroke(given: Any, name: str) -> np.ndarray:
    try:
        stroke = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not a list of (x, y) points; give numbers of shape (m, 2)") from None
    if stroke.ndim != 2 or stroke.shape[0] == 0 or stroke.shape[1] != 2:
        raise ValueError(f"{name} has shape {stroke.shape}; give (m, 2): one line for each point, at least one")
    if not np.isfinite(stroke).all():
        raise ValueError(f"{name} holds NaN or infinite coordinates; drop those points")
    return stroke


def drawing_to_text(drawing: Any) -> str:
    """The drawing as JSON, which a table keeps: `[[[x, y], …], …]`.

    >>> drawing_to_text([[(0, 0), (1, 1)]])
    '[[[0.0,0.0],[1.0,1.0]]]'
    """
    return json.dumps([stroke.tolist() for stroke in checked_drawing(drawing)], separators=(",", ":"))


def drawing_from_text(text: str) -> Drawing:
    """The drawing that `drawing_to_text`, or the pad, wrote."""
    try:
        strokes = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"{text[:40]!r} is not a drawing; give strokes in JSON, [[[x, y], …], …]") from None
    return checked_drawing(strokes)
