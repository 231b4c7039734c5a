"""The link of scores: the one requested, the one a file names, or the one inferred from the numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from workbench.tables.checks import BLOCK, SUM_TOLERANCE, listed
from workbench.tables.formats.base import LINK, PROBABILITIES, StoredArray, decoded
from workbench.tables.links import LINKS

ROUNDED = "probabilities, divided by their sum"  # which rounding has moved away from 1
ROUNDING = 1e-2  # how far from 1 rounding may have moved the sum


def link_of_file(
    arrays: dict[str, StoredArray], facts: dict[str, Any], link: str | None, link_constant: float | None
) -> tuple[str | None, float | None, str]:
    """The link and its constant: as requested, else as in the file; and a note on the latter."""
    stored = {name: _one_value(arrays.pop(name)) if name in arrays else facts.get(name) for name in LINK}
    if link not in (None, "quasibinary") and link_constant is not None:
        raise ValueError(f"link_constant = {link_constant} belongs to the quasibinary link, not to {link}")
    if link is None and stored["link"] is None:
        if link_constant is not None:
            raise ValueError(f"link_constant = {link_constant} belongs to link='quasibinary' (--link quasibinary)")
        return None, None, ""
    if link is None and stored["link"] not in LINKS:
        raise ValueError(
            f"it says link = {str(stored['link'])[:40]!r}; known: {', '.join(LINKS)} (say link='softmax', --link softmax)"
        )
    constant = stored["link_constant"] if link_constant is None else link_constant
    try:
        constant = None if constant is None else float(constant)
    except ValueError:
        raise ValueError(f"it says link_constant = {str(constant)[:40]!r}; give a number, link_constant=0.3") from None
    if link is not None:
        return link, constant if link == "quasibinary" else None, ""
    source = " as the file says" if constant is None else f" with log C = {constant:g}, as the file says"
    return str(stored["link"]), constant, source


def _one_value(stored: StoredArray) -> Any:
    """The one value that an array holds, once or in every row."""
    values = np.unique(decoded(stored.read()).astype(str)).tolist() if int(np.prod(stored.shape)) < 10**8 else []
    if len(values) != 1:
        raise ValueError(
            f"the link of a table is one word, and its constant one number; it has {listed(values) or 'none'}"
        )
    return values[0]


def link_of_numbers(scores: np.ndarray, many_labels: bool, name: str) -> tuple[str, str]:
    """The link that the numbers call for, and what they were taken for. All rows are looked at."""
    low, high = np.inf, -np.inf
    like, near, other = 0, 0, None
    for start in range(0, len(scores), BLOCK):
        block = np.asarray(scores[start : start + BLOCK], dtype=np.float64)
        sums = block.sum(axis=1)
        if not np.isfinite(sums).all():
            return "softmax", "scores"  # the table refuses it, and says where
        inside = (block.min(axis=1) >= 0) & (block.max(axis=1) <= 1 + SUM_TOLERANCE)
        close = inside & (np.abs(sums - 1) < ROUNDING)
        like += int(close.sum())
        near += int((inside & (np.abs(sums - 1) < SUM_TOLERANCE)).sum())
        low, high = min(low, block.min()), max(high, block.max())
        if other is None and not close.all():
            other = start + int(np.argmin(close)), sums[np.argmin(close)]
    within = 0 <= low and high <= 1 + SUM_TOLERANCE
    if within and many_labels:
        return "identity", "probabilities of each class" if like < len(scores) else "probabilities"
    if like == len(scores):
        return "identity", "probabilities" if near == like else ROUNDED
    if name.lower() in PROBABILITIES or like > 0.01 * len(scores):
        row, total = other if other is not None else (0, np.nan)
        raise ValueError(
            f"{name} go from {low:g} to {high:g}, and row {row + 1} sums to {total:g}: are they probabilities? Say "
            "link='identity' (--link identity) if each class is judged by itself, link='softmax' (--link softmax) for scores"
        )
    return ("sigmoid", "scores, sigmoid") if many_labels else ("softmax", "scores, softmax")


def divided_by_sums(matrix: np.ndarray) -> np.ndarray:
    divided: np.ndarray = matrix / matrix.sum(axis=1, keepdims=True)
    return divided
