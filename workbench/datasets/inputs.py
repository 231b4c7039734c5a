"""Conversion of inputs: arrays, lists, images, pandas objects and sparse matrices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from workbench.datasets.image_files import ImageFiles

Inputs = np.ndarray | ImageFiles

DENSE = 2**33  # bytes that a sparse matrix may take as rows of numbers


def read_inputs(X: Any) -> Inputs:
    """Images as they are, and rows of numbers as float32 (n, d)."""
    if isinstance(X, ImageFiles):
        return X
    if hasattr(X, "columns"):  # a DataFrame
        X = _numbers_of(X)
    elif hasattr(X, "toarray"):  # a sparse matrix
        X = _dense(X)
    elif hasattr(X, "detach"):  # a tensor
        X = X.detach().cpu()
    elif isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X is an array with masked entries; fill them, X.filled(…), or leave their rows out")
    try:
        inputs = np.asarray(X)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"X is not an array ({error}); give rows of numbers (n, d), all of one length") from None
    if 0 in inputs.shape[1:]:
        raise ValueError(f"X has shape {inputs.shape}: its rows are empty, and there is nothing to learn from")
    if inputs.ndim == 4 and inputs.shape[-1] in (1, 3):
        if inputs.dtype != np.uint8:
            raise ValueError(
                f"X holds images as {inputs.dtype}; give uint8, 0 to 255 (np.uint8(255 * X) for X in [0, 1])"
            )
        return inputs
    if inputs.ndim != 2:
        raise ValueError(
            f"X has shape {inputs.shape}; give rows of numbers (n, d) or images (n, H, W, 1 or 3); "
            "X[..., None] adds the channel of grey images"
        )
    if not (np.issubdtype(inputs.dtype, np.number) or inputs.dtype == np.bool_) or np.iscomplexobj(inputs):
        raise ValueError(f"X is {inputs.dtype}; give real numbers")
    with np.errstate(over="ignore"):
        numbers = inputs.astype(np.float32)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
        if np.isfinite(inputs[row]).all():
            raise ValueError(
                f"X holds numbers beyond ±3.4e38, first in row {row}; divide its columns by their deviation"
            )
        raise ValueError(f"X holds NaN or infinite numbers, first in row {row}; fill or drop those rows first")
    return numbers


def _numbers_of(frame: Any) -> np.ndarray:
    """The columns of a DataFrame as numbers; missing ones are NaN."""
    words = [str(name) for name, kind in zip(frame.columns, frame.dtypes, strict=True) if not _numeric(kind)]
    if words:
        raise ValueError(
            f"X has columns that are not numbers: {', '.join(words[:5])}; leave them out (attributes= takes what is known "
            "of a row beside its inputs), or make numbers of them (pandas.get_dummies)"
        )
    numbers: np.ndarray = frame.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers


def _numeric(kind: Any) -> bool:
    """Whether a column of this dtype, NumPy's or one of pandas, holds numbers or marks."""
    return getattr(kind, "kind", "O") in "biuf"


def _dense(matrix: Any) -> np.ndarray:
    if (size := 4 * math.prod(matrix.shape)) > DENSE:
        raise ValueError(
            f"X is sparse and would take {size / 2**30:.0f} GB as rows of numbers; give fewer columns (a projection such as "
            "TruncatedSVD of scikit-learn makes some hundreds of many)"
        )
    dense: np.ndarray = matrix.astype(np.float32).toarray()
    return dense
