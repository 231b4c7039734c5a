"""The published network: 167 inputs of a drawing, two layers of 500 sigmoids, 378 scores.

`network.js` computes the same numbers with the same operations in the same order; `tests/drawings` compares both.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from workbench.drawings.pad import WEIGHTS
from workbench.drawings.strokes import Drawing, checked_drawing

LAYERS = (167, 500, 500, 378)
STROKES, POINTS = 4, 20  # of a drawing that the network sees
COORDINATES = STROKES * POINTS * 2


def inputs(drawings: Sequence[Any]) -> np.ndarray:
    """(n, 167) float64: points of the first four strokes, how straight each is, ink, number of strokes, aspect.

    A drawing is scaled to the unit square with its aspect kept, centred along the shorter side; each stroke is resampled to
    20 points evenly in length; then it is scaled again. M. Thoma, On-line recognition of handwritten mathematical symbols,
    arXiv 1511.09030; joining strokes that almost touch is left out.
    """
    checked = [checked_drawing(drawing, f"drawing {number}") for number, drawing in enumerate(drawings)]
    if not checked:
        raise ValueError("there are no drawings; give at least one")
    return np.stack([_inputs(drawing) for drawing in checked])


def _inputs(drawing: Drawing) -> np.ndarray:
    strokes = _scaled([_resampled(stroke) for stroke in _scaled(drawing)])
    lengths = [_lengths(stroke)[-1] for stroke in strokes]
    values = np.zeros(LAYERS[0])
    for j, stroke in enumerate(strokes[:STROKES]):
        values[j * POINTS * 2 : (j + 1) * POINTS * 2] = stroke.ravel()
        values[COORDINATES + j] = np.ptp(stroke[:, 1]) / lengths[j] if lengths[j] > 0 else 1.0
    width, height = np.ptp(np.concatenate(strokes), axis=0)
    values[COORDINATES + STROKES :] = np.cumsum(lengths)[-1], len(strokes), (width + 0.01) / (height + 0.01)
    return values


def _scaled(strokes: Drawing) -> Drawing:
    """The drawing in the unit square, its shorter side centred at 0; what has no extent keeps its unit."""
    points = np.concatenate(strokes)
    low = points.min(axis=0)
    factors = [1 / side if side > 0 else 1.0 for side in (points.max(axis=0) - low).tolist()]
    factor = min(factors)
    shift = np.zeros(2)
    shift[1 if factor == factors[0] else 0] = -(factor / (2 * max(factors)))
    return [(stroke - low) * factor + shift for stroke in strokes]


def _lengths(stroke: np.ndarray) -> np.ndarray:
    """(m,): the length of the stroke up to each of its points."""
    steps = np.diff(stroke, axis=0)
    return np.concatenate([[0.0], np.cumsum(np.sqrt(steps[:, 0] * steps[:, 0] + steps[:, 1] * steps[:, 1]))])


def _resampled(stroke: np.ndarray) -> np.ndarray:
    """(20, 2): points evenly in length along the stroke."""
    at = _lengths(stroke)
    if at[-1] == 0:
        return np.repeat(stroke[:1], POINTS, axis=0)
    positions = at[-1] * np.arange(POINTS) / (POINTS - 1)
    before = np.clip(np.searchsorted(at, positions, side="right") - 1, 0, len(at) - 2)
    gap = at[before + 1] - at[before]
    share = np.where(gap > 0, (positions - at[before]) / np.where(gap > 0, gap, 1), 0)
    points: np.ndarray = stroke[before] + share[:, None] * (stroke[before + 1] - stroke[before])
    return points


def scores(drawings: Sequence[Any]) -> np.ndarray:
    """(n, 378) float32: the scores of the symbols, before the softmax.

    >>> from workbench.drawings import LATEX
    >>> plus = [[(0, 50), (100, 50)], [(50, 0), (50, 100)]]
    >>> LATEX[scores([plus]).argmax()]
    '+'
    """
    *hidden, (last, bias) = layers()
    values = inputs(drawings)
    for matrix, offset in hidden:
        values = _sigmoid(values @ matrix + offset)
    return np.asarray(values @ last + bias, dtype=np.float32)


def _sigmoid(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-np.logaddexp(0, -values)))  # no overflow


@cache
def layers() -> list[tuple[np.ndarray, np.ndarray]]:
    """(matrix, bias) of each layer, as they are stored one after the other in half precision."""
    flat = np.frombuffer(WEIGHTS.read_bytes(), "<f2").astype(np.float64)
    layers, start = [], 0
    for rows, columns in itertools.pairwise(LAYERS):
        matrix = flat[start : start + rows * columns].reshape(rows, columns)
        start += rows * columns
        layers.append((matrix, flat[start : start + columns]))
        start += columns
    return layers
