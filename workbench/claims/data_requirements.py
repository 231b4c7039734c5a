"""Requirements on data that replace those of a paper, and the errors for data that do not meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from workbench.class_counts import FEW, MANY
from workbench.datasets import Dataset


class Need(NamedTuple):
    """Whether a dataset has something, and what it is in words."""

    met: Callable[[Dataset], bool]
    words: str


def _shots(data: Dataset) -> bool:
    counts = np.asarray(data.class_counts)
    return all(map(np.any, (counts < FEW, (counts >= FEW) & (counts <= MANY), counts > MANY)))


NEEDS: dict[str, Need] = {
    "one label": Need(lambda data: not data.many_labels, "one label a row"),
    "many labels": Need(lambda data: data.many_labels, "many labels a row: (n, L) of true and false"),
    "groups": Need(
        lambda data: data.groups is not None,
        "groups of classes, within which labels are mixed up: data.with_groups([…]), or groups='shape' of letters",
    ),
    "a long tail": Need(
        _shots,
        f"counts of training rows that make few-shot (< {FEW}), medium-shot and many-shot (> {MANY}) classes: a long "
        "tail, such as data.transformed(LongTail(100))",
    ),
}


def check_needs(data: Dataset, needs: Iterable[str], where: str) -> None:
    """Refuses data that lack something, and says all that they lack."""
    if lacking := [NEEDS[need].words for need in needs if not NEEDS[need].met(data)]:
        raise ValueError(f"{where} cannot be run on {data.name}, which lacks: {'; '.join(lacking)}")


def check_classes(data: Dataset, K: int, where: str) -> None:
    """Refuses data with too few classes for sets of K of them."""
    if data.n_classes <= K:
        raise ValueError(f"{where} has sets of K = {K}, and {data.name} has {data.n_classes} classes; it needs more")
