"""What a table accepts: arrays from anywhere, checked once, with an error that says what is wrong and what to do."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from workbench.tables import LogitTable

BLOCK = 512  # rows looked at together
SUM_TOLERANCE = 1e-3  # how far from 1 a row of probabilities may sum that somebody else rounded


def array_of(values: Any) -> np.ndarray:
    """Anything array-like as a NumPy array; torch tensors come from any device, bfloat16 as float32."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = (values.float() if str(values.dtype) == "torch.bfloat16" else values).numpy()
    array = np.asanyarray(values)  # a memory map stays one
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError(
            "masked arrays are not taken, for a table has no missing entries; fill them, or leave rows out"
        )
    if isinstance(array, np.matrix):
        array = np.asarray(array)
    if array.dtype == object:
        array = array.astype(str)
    return array


def read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def checked_scores(given: Any) -> np.ndarray:
    scores = array_of(given)
    if scores.ndim != 2 or 0 in scores.shape:
        raise ValueError(f"scores have shape {scores.shape}; give (n, L): one row per example, one column per class")
    if scores.dtype.kind in "iu":
        scores = scores.astype(np.float64)
    if scores.dtype.kind != "f":
        raise ValueError(f"scores are {scores.dtype}; give floating-point numbers")
    if scores.dtype.itemsize > 8 or not scores.dtype.isnative:
        scores = scores.astype(np.float64 if scores.dtype.itemsize > 4 else scores.dtype.newbyteorder("="))
    return read_only(scores)


def checked_labels(given: Any, n: int, n_classes: int) -> np.ndarray:
    labels = array_of(given)
    if labels.ndim == 2:
        if labels.shape != (n, n_classes):
            raise ValueError(f"labels have shape {labels.shape} and scores ({n}, {n_classes}); give one mark per class")
        if labels.dtype != bool and not (labels.dtype.kind in "iuf" and np.isin(labels, (0, 1)).all()):
            raise ValueError("labels of shape (n, L) must be true or false (or 1 and 0)")
        return read_only(labels.astype(bool))
    if labels.ndim != 1 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"labels are {labels.dtype} of shape {labels.shape}; give {n} class indices, or ({n}, {n_classes}) bool"
        )
    if len(labels) and not (-1 <= int(labels.min()) and labels.max() < n_classes):
        raise ValueError(
            f"labels go from {labels.min()} to {labels.max()}; with {n_classes} classes give 0 to {n_classes - 1}, "
            "or -1 for a row without a label"
        )
    return read_only(labels.astype(np.int64))


def checked_weights(name: str, given: Any, shape: tuple[int, ...]) -> np.ndarray:
    weights = array_of(given)
    if weights.shape != shape or weights.dtype.kind not in "iuf":
        raise ValueError(
            f"{name} is {weights.dtype} of shape {weights.shape}; give numbers of shape {shape}, as scores"
        )
    return read_only(weights)


def one_per_row(given: Any) -> np.ndarray:
    values = array_of(given)
    if values.ndim != 1:
        raise ValueError(f"an attribute has one entry per row, not shape {values.shape}")
    return read_only(values)


def check_values(table: LogitTable) -> None:
    """Refuse NaN and infinity, and probabilities that are none; warn about probabilities given as scores."""
    for rows in table.spans():
        block = table.scores[rows]
        finite = np.isfinite(block)
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            raise ValueError(
                f"scores[{rows.start + row}, {column}] is {block[row, column]}; scores must be finite "
                "(use a large negative number for a class that is ruled out)"
            )
        if table.link == "identity" and (block.min() < 0 or block.max() > 1 + _tolerance(block)):
            raise ValueError(
                f"probabilities go from {block.min():g} to {block.max():g}; they must lie in [0, 1] "
                "(LogitTable(scores) takes scores that are not probabilities)"
            )
    for name in ("posterior", "votes"):
        weights = getattr(table, name)
        if weights is not None and not (np.isfinite(weights).all() and weights.min() >= 0):
            raise ValueError(f"{name} must be finite and ≥ 0")
    if table.posterior is not None:
        _check_posterior(table.posterior, one_label=table.labels is not None and not table.many_labels)
    first = table.scores[:BLOCK]
    if table.link == "softmax" and table.n_classes > 1 and first.min() >= 0:
        sums = first.sum(1, dtype=np.float64)
        if np.all(np.abs(sums - 1) <= _tolerance(first)):
            warnings.warn(
                "the scores are ≥ 0 and every row sums to 1: they look like probabilities, and softmax will flatten them; "
                "use LogitTable.from_probabilities",
                stacklevel=4,
            )


def _check_posterior(posterior: np.ndarray, one_label: bool) -> None:
    if posterior.max() > 1 + SUM_TOLERANCE:
        raise ValueError(
            f"posterior goes up to {posterior.max():g}; it holds probabilities (counts of people are votes)"
        )
    if one_label and (wrong := np.abs(posterior.sum(1, dtype=np.float64) - 1) > SUM_TOLERANCE).any():
        row = int(np.argmax(wrong))
        raise ValueError(f"row {row} of the posterior sums to {posterior[row].sum():.6g}; with one label a row give 1")


def _tolerance(block: np.ndarray) -> float:
    """How far the sum of a row of rounded probabilities may be from 1."""
    return max(1e-6, 4 * float(np.finfo(block.dtype).eps) * np.sqrt(block.shape[1]))


def check_sums(block: np.ndarray, first_row: int) -> None:
    sums = block.sum(1, dtype=np.float64)
    wrong = np.abs(sums - 1) > max(SUM_TOLERANCE, _tolerance(block))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"row {first_row + row} of the probabilities sums to {sums[row]:.6g}, not 1; give LogitTable(scores) for scores"
        )
