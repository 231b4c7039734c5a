"""Links: how a row of scores becomes a row of probabilities.

Every link works row by row with NumPy reductions over the last axis only, so a row has the same bits whatever block it
is computed in. Scores come in as float32 or float64 and probabilities leave in the same type.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np


def softmax(scores: np.ndarray, log_constant: float | None = None) -> np.ndarray:
    r"""$p_j = e^{s_j} / \sum_k e^{s_k}$: exactly one class is right.

    >>> softmax(np.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    exponentials: np.ndarray = scores - scores.max(-1, keepdims=True)
    np.exp(exponentials, out=exponentials)
    exponentials /= exponentials.sum(-1, keepdims=True)
    return exponentials


def sigmoid(scores: np.ndarray, log_constant: float | None = None) -> np.ndarray:
    r"""$p_j = 1 / (1 + e^{-s_j})$: each class is right or wrong on its own.

    >>> sigmoid(np.array([[0.0, -1e4]])).tolist()
    [[0.5, 0.0]]
    """
    decay = np.exp(-np.abs(scores))  # never overflows
    probabilities = np.where(scores >= 0, 1, decay)
    probabilities /= 1 + decay
    return probabilities


def quasibinary(scores: np.ndarray, log_constant: float | None = None) -> np.ndarray:
    r"""$q_j = e^{s_j} / C$ with one constant C for all classes and rows (Liao et al., Eq. 4).

    q may exceed 1 and is not clipped: clipping would tie all confident classes, and a threshold could not tell them
    apart.

    >>> quasibinary(np.array([[0.0, -1.0]]), log_constant=-1.0).round(3).tolist()
    [[2.718, 1.0]]
    """
    if log_constant is None:
        raise ValueError("the quasibinary link needs link_constant = log C, which training estimates")
    exponents = scores - scores.dtype.type(log_constant)
    largest = np.nextafter(np.log(np.finfo(scores.dtype).max), scores.dtype.type(0))  # whose exponential is finite
    exponentials: np.ndarray = np.exp(np.minimum(exponents, largest, out=exponents), out=exponents)
    return exponentials


def identity(scores: np.ndarray, log_constant: float | None = None) -> np.ndarray:
    """The scores are probabilities already."""
    return scores


def sparsemax(scores: np.ndarray, log_constant: float | None = None) -> np.ndarray:
    r"""The nearest point of the simplex, $\arg\min_{p \in \Delta} \|p - s\|^2$: many probabilities are exactly 0.

    >>> sparsemax(np.array([[1.0, 0.5, -3.0]])).tolist()
    [[0.75, 0.25, 0.0]]

    Martins & Astudillo 2016, Eq. 1 and 2; Garcin, thesis, Eq. 6.6 and 6.7.
    """
    falling = -np.sort(-(scores - scores.max(-1, keepdims=True)), axis=-1)
    excess = np.cumsum(falling, axis=-1) - 1
    ranks = np.arange(1, scores.shape[-1] + 1, dtype=scores.dtype)
    support = (ranks * falling > excess).sum(-1, keepdims=True)  # how many classes keep some probability
    cut = np.take_along_axis(excess, support - 1, axis=-1) / support.astype(scores.dtype)
    nearest: np.ndarray = np.maximum(scores - scores.max(-1, keepdims=True) - cut, 0)
    return nearest


def sparse_top(scores: np.ndarray, n_labels: np.ndarray | float) -> np.ndarray:
    r"""The nearest point with entries from 0 to 1 that sum to the number of labels of the row.

    $$\text{sparse-top}_j(K, s) = \max(0, \min(1, s_j - \lambda)), \qquad \sum_j \text{sparse-top}_j(K, s) = K$$

    Args:
        n_labels: K, one number or one for each row, from 0 to L.

    >>> sparse_top(np.array([[3.0, 0.75, 0.5, -1.0]]), 2).tolist()
    [[1.0, 0.625, 0.375, 0.0]]

    Garcin, thesis, Eq. 6.13 to 6.15; as a prediction where the number of labels is known, section 6.2.7.
    """
    n, L = scores.shape
    K = np.broadcast_to(np.asarray(n_labels, dtype=float), n)
    if not ((K >= 0) & (K <= L)).all():
        wrong = K[(K < 0) | (K > L)][0]
        raise ValueError(f"n_labels = {wrong:g}; a row of {L} classes has from 0 to {L} labels")
    # The sum falls with λ from L to 0, by straight pieces: a class adds less from s_j − 1 on, and nothing from s_j on.
    falling_from = scores.astype(float)
    ends = np.concatenate([falling_from - 1, falling_from], axis=1)
    order = np.argsort(ends, axis=1)
    ends = np.take_along_axis(ends, order, axis=1)
    slopes = np.cumsum(np.where(order < L, 1, -1), axis=1)[:, :-1]
    sums = np.column_stack([np.full(n, float(L)), L - np.cumsum(slopes * np.diff(ends, axis=1), axis=1)])
    before = np.clip((sums > K[:, None]).sum(1) - 1, 0, 2 * L - 2)[:, None]
    left, over, slope = (np.take_along_axis(each, before, axis=1) for each in (ends, sums, slopes))
    cut = left + (over - K[:, None]) / np.maximum(slope, 1)
    nearest: np.ndarray = np.clip(falling_from - cut, 0, 1).astype(scores.dtype)
    return nearest


LINKS: dict[str, Callable[[np.ndarray, float | None], np.ndarray]] = {
    "softmax": softmax,
    "sigmoid": sigmoid,
    "quasibinary": quasibinary,
    "identity": identity,
    "sparsemax": sparsemax,
}


class Linked(Protocol):
    """A table, or what was fitted on one: it knows the link of the probabilities; None where it does not matter."""

    @property
    def link(self) -> str | None: ...

    @property
    def link_constant(self) -> float | None: ...


def check_same_link(fitted: Linked, given: Linked) -> None:
    """An error where probabilities are read through another link than those of a fit: thresholds mean something else there.

    Raises:
        ValueError: the links, or the constants of the quasibinary link, differ.
    """
    if fitted.link is None or (fitted.link, fitted.link_constant) == (given.link, given.link_constant):
        return
    if "identity" in (fitted.link, given.link):
        remedy = "take both as probabilities, LogitTable.from_probabilities(table.probabilities(), table.labels)"
    elif fitted.link == "quasibinary":
        remedy = f"read it by table.with_link('quasibinary', {fitted.link_constant!r})"
    else:
        remedy = f"read it by table.with_link({fitted.link!r})"
    raise ValueError(
        f"fitted on probabilities of the {_described(fitted)} and this table has the {_described(given)}, where the same "
        f"number means something else; {remedy}, or fit on rows with its link"
    )


def _described(linked: Linked) -> str:
    constant = f" with log C = {linked.link_constant:g}" if linked.link_constant is not None else ""
    return f"{linked.link} link{constant}"


def has_likelihood(link: str, many_labels: bool) -> bool:
    """Whether probabilities of this link are those of one label a row (softmax) or of each class by itself (sigmoid)."""
    return link in ("identity", "sigmoid" if many_labels else "softmax")


def check_likelihood(link: str, many_labels: bool) -> None:
    """An error unless labels have a likelihood under a link."""
    if not has_likelihood(link, many_labels):
        one_or_many, link_needed = ("many labels", "sigmoid") if many_labels else ("one label", "softmax")
        raise ValueError(
            f"the link is {link}; the likelihood of {one_or_many} a row needs {link_needed} (LogitTable.with_link)"
        )


def log_losses(scores: np.ndarray, labels: np.ndarray, link: str) -> np.ndarray:
    """(n,) minus the log-likelihood of the labels of each row, from the scores, so that nothing underflows.

    One label a row needs the softmax link, (n, L) labels the sigmoid link (the binary cross-entropies of all classes are
    summed); probabilities, the identity link, serve for both.

    >>> log_losses(np.zeros((1, 4)), np.array([2]), "softmax").round(3).tolist()  # log 4
    [1.386]
    """
    losses: np.ndarray
    many_labels = labels.ndim == 2
    check_likelihood(link, many_labels)
    if link == "identity":
        with np.errstate(divide="ignore"):  # a probability of 0 for what happened is an infinite loss
            if many_labels:
                losses = -np.log(np.where(labels, scores, 1 - scores)).sum(-1)
            else:
                losses = -np.log(scores[np.arange(len(scores)), labels])
    elif many_labels:
        softplus = np.maximum(scores, 0) + np.log1p(np.exp(-np.abs(scores)))  # log(1 + e^s), safe for large s
        losses = (softplus - scores * labels).sum(-1)
    else:
        largest = scores.max(-1, keepdims=True)
        below = scores - largest
        own = below[np.arange(len(scores)), labels]  # before the next line writes over it
        losses = np.log(np.exp(below, out=below).sum(-1)) - own
    return losses
