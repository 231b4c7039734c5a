"""What a reliability diagram shows: confidence against accuracy in bins, with counts and consistency bands."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.counts import whole
from workbench.metrics.base import ratio
from workbench.metrics.of_probabilities import BINS, equal_mass_bins, equal_width_bins, top_classes
from workbench.tables import LogitTable

DRAWS, LOTS = 1000, 32


def reliability_bins(
    table: LogitTable, bins: int = BINS, K: int = 1, equal_mass: bool = False, band: float = 0.9, seed: int = 0
) -> pd.DataFrame:
    """One line per bin of the K most probable classes of every row (K = 4 and 10 bins in Liao et al., Fig. 3).

    Columns: `low`, `high` (the bin is (low, high]), `count`, `confidence` and `accuracy` (means in the bin, NaN when
    empty), and the consistency band `band_low`, `band_high`: where the accuracy of the bin lies with probability `band`
    if the confidences are exactly right (Bröcker & Smith 2007). A point outside the band is evidence; a point inside is
    what luck alone gives. Rows without a label are left out.

    - `table`: the rows, with their scores and labels.
    - `bins`: number of bins of the confidence.
    - `K`: number of most probable classes of each row that are judged.
    - `equal_mass`: whether bins hold equally many rows; otherwise they are equally wide.
    - `seed`: of the band, so that the same call gives the same numbers.

    >>> table = LogitTable.from_probabilities([[0.75, 0.25]] * 4, labels=[0, 0, 0, 1])
    >>> reliability_bins(table, bins=2)[["low", "high", "count", "confidence", "accuracy"]].to_numpy().tolist()
    [[0.0, 0.5, 0.0, nan, nan], [0.5, 1.0, 4.0, 0.75, 0.75]]
    """
    table = table.labelled_rows()
    if not 0 < band < 1:
        raise ValueError(f"band = {band} must lie strictly between 0 and 1, such as 0.9")
    bins = whole("bins", bins)
    confidence, _, right = (values.ravel() for values in top_classes(table, K))
    confidence = np.minimum(confidence, 1)
    cells = (equal_mass_bins if equal_mass else equal_width_bins)(confidence, bins)
    count = np.bincount(cells, minlength=bins)
    low, high = _consistency_band(confidence, cells, bins, band, seed)
    edges = np.linspace(0, 1, bins + 1)
    if equal_mass:
        edges = np.concatenate([[0], np.sort(confidence)[np.cumsum(count) - 1]])
    return pd.DataFrame(
        {
            "low": edges[:-1],
            "high": edges[1:],
            "count": count,
            "confidence": ratio(np.bincount(cells, confidence, bins), count),
            "accuracy": ratio(np.bincount(cells, right, bins), count),
            "band_low": low,
            "band_high": high,
        }
    )


def _consistency_band(
    confidence: np.ndarray, cells: np.ndarray, bins: int, band: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the accuracy in each bin when every row is right with exactly its confidence.

    Neighbouring confidences are drawn together, at most 32 lots a bin: the cost does not grow with the rows.
    """
    generator = np.random.default_rng(seed)
    order = np.lexsort((confidence, cells))
    inside_bins = np.split(confidence[order], np.cumsum(np.bincount(cells, minlength=bins))[:-1])
    low, high = np.full(bins, np.nan), np.full(bins, np.nan)
    for place, inside in enumerate(inside_bins):
        if len(inside):
            lots = np.array_split(inside, min(LOTS, len(inside)))
            sizes, chances = [len(lot) for lot in lots], [min(lot.mean(), 1.0) for lot in lots]
            right = generator.binomial(sizes, chances, (DRAWS, len(lots))).sum(1)
            low[place], high[place] = np.quantile(right / len(inside), [(1 - band) / 2, (1 + band) / 2])
    return low, high
