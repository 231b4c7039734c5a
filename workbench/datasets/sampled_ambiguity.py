"""The ambiguity of a dataset that its samples keep: whole groups, single classes or single rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from workbench.datasets.base import Dataset
from workbench.datasets.transforms import SampledClasses, SampledGroups, SampledRows, Transform
from workbench.validation import whole_number

if TYPE_CHECKING:
    import pandas as pd

SAMPLES: dict[str, type[Transform]] = {
    "whole groups": SampledGroups,
    "single classes": SampledClasses,
    "single rows": SampledRows,
}
SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)
RELATED, ERROR, ROWS = "classes with a relative, %", "best possible top-1 error, %", "median rows of a class"


def ambiguity_of_samples(
    dataset: Dataset, shares: Sequence[float] = SHARES, draws: int = 10, smallest: int = 5
) -> pd.DataFrame:
    """Ambiguity that is left in samples of a dataset, by the way they are drawn and the share that is drawn.

    Args:
        dataset: One with groups of classes, such as genera of species.
        shares: Of the groups, the classes or the rows.
        draws: Number of samples of each kind and share.
        smallest: Rows that a class needs to stay.

    Columns `panel`, `series`, `x` (the share), `value` (the mean over draws), `low` and `high` (95 % of the draws), as
    `wb.figures.with_intervals` draws them. Panels are the share of classes of which another class of the same group is in the
    sample, the median number of rows of a class, and, where the posterior is known, the best possible top-1 error on test
    rows. A sample that leaves fewer than two classes does not count.

    >>> from workbench.datasets import load_dataset
    >>> frame = ambiguity_of_samples(load_dataset("letters", groups="shape"), shares=[0.5, 1.0], draws=2)
    >>> frame["series"].unique().tolist()
    ['whole groups', 'single classes', 'single rows']

    Paper: Garcin, thesis, section 3.2.2.
    """
    if dataset.groups is None:
        raise ValueError(f"{dataset.name} has no groups of classes; give it some with dataset.with_groups([...])")
    import pandas as pd  # a second, which loading a dataset does not need

    lines = []
    for series, kind in SAMPLES.items():
        for share in shares:
            found = list(_of_draws(dataset, kind, share, whole_number("draws", draws), smallest))
            for panel in found[0] if found else ():
                values = np.array([of_draw[panel] for of_draw in found])
                low, high = np.quantile(values, (0.025, 0.975))
                lines.append((panel, series, share, values.mean(), low, high))
    frame = pd.DataFrame(lines, columns=["panel", "series", "x", "value", "low", "high"])
    return frame.sort_values("panel", kind="stable", ignore_index=True)


def _of_draws(
    dataset: Dataset, kind: type[Transform], share: float, draws: int, smallest: int
) -> Iterable[dict[str, float]]:
    """Panel -> number, of each draw that leaves two classes or more."""
    for seed in range(draws):
        try:
            sampled = dataset.transformed(kind(share=share, smallest=smallest, seed=seed))
        except ValueError:
            continue
        yield _measured(sampled)


def _measured(dataset: Dataset) -> dict[str, float]:
    _, group, sizes = np.unique(np.asarray(dataset.groups), return_inverse=True, return_counts=True)
    found = {RELATED: 100 * float((sizes[group] > 1).mean()), ROWS: float(np.median(dataset.class_counts))}
    if dataset.test.posterior is not None and dataset.test.n:
        found[ERROR] = 100 * (1 - float(dataset.test.posterior.max(axis=1).mean()))
    return found
