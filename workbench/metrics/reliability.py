"""Reliability diagrams: confidence against accuracy, in bins or without, with counts or density and consistency bands."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.calibration.isotonic import Steps
from workbench.metrics.base import ratio
from workbench.metrics.probability_metrics import BINS, equal_mass_bins, equal_width_bins, top_classes
from workbench.tables import LogitTable
from workbench.validation import whole_number

DRAWS, LOTS = 1000, 32
CURVE_DRAWS, CURVE_LOTS = 300, 1000  # of the band of a curve: each draw is a regression
GRID = np.linspace(0, 1, 201)  # confidences of a curve


def reliability_bins(
    table: LogitTable, bins: int = BINS, K: int = 1, equal_mass: bool = False, band: float = 0.9, seed: int = 0
) -> pd.DataFrame:
    """One line per bin of the K most probable classes of every row (K = 4 and 10 bins in Liao et al., Fig. 3).

    Columns: `low`, `high` (the bin is (low, high]), `count`, `confidence` and `accuracy` (means in the bin, NaN when
    empty), and the consistency band `band_low`, `band_high`: where the accuracy of the bin lies with probability `band`
    if the confidences are exactly right (Bröcker & Smith 2007). A point outside the band is evidence; a point inside is
    what luck alone gives. Rows whose label is unknown are left out; in a row of many labels that has none, no class is right.

    Args:
        table: The rows, with their scores and labels.
        bins: Number of bins of the confidence.
        K: Number of most probable classes of each row that are judged.
        equal_mass: Whether bins hold equally many rows; otherwise they are equally wide.
        seed: Of the band, so that the same call gives the same numbers.

    >>> table = LogitTable.from_probabilities([[0.75, 0.25]] * 4, labels=[0, 0, 0, 1])
    >>> reliability_bins(table, bins=2)[["low", "high", "count", "confidence", "accuracy"]].to_numpy().tolist()
    [[0.0, 0.5, 0.0, nan, nan], [0.5, 1.0, 4.0, 0.75, 0.75]]
    """
    table = table.known_rows()
    if not 0 < band < 1:
        raise ValueError(f"band = {band} must lie strictly between 0 and 1, such as 0.9")
    bins = whole_number("bins", bins)
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


def reliability_curve(table: LogitTable, K: int = 1, band: float = 0.9, seed: int = 0) -> pd.DataFrame:
    """Accuracy as a rising function of confidence, without bins, at 201 confidences from 0 to 1.

    Columns: `confidence`; `accuracy`, the isotonic regression of "is it right?" on confidence, linear between its steps and NaN
    outside the confidences that occur; `band_low`, `band_high`, where that curve lies with probability `band` at each
    confidence if the confidences are exactly right; `density` of the confidences (Gaussian kernel, reflected at 0 and 1).
    No number of bins has to be chosen (CORP, Dimitriadis, Gneiting & Jordan 2021). Rows as in `reliability_bins`.

    Args:
        table: The rows, with their scores and labels.
        K: Number of most probable classes of each row that are judged.
        band: Probability of the band.
        seed: Of the band, so that the same call gives the same numbers.

    >>> table = LogitTable.from_probabilities([[0.9, 0.1]] * 4 + [[0.6, 0.4]] * 4, labels=[0, 0, 0, 1, 0, 1, 0, 1])
    >>> curve = reliability_curve(table).set_index("confidence")
    >>> [round(float(curve["accuracy"].loc[at]), 3) for at in (0.6, 0.75, 0.9)]
    [0.5, 0.625, 0.75]
    """
    if not 0 < band < 1:
        raise ValueError(f"band = {band} must lie strictly between 0 and 1, such as 0.9")
    confidence, _, right = (values.ravel() for values in top_classes(table.known_rows(), K))
    confidence = np.minimum(confidence, 1)
    steps = Steps.of(confidence, right.astype(np.float64))
    low, high = _band_of_curves(np.sort(confidence), band, seed)
    return pd.DataFrame(
        {
            "confidence": GRID,
            "accuracy": _on_grid(steps.values, steps.isotonic()),
            "band_low": low,
            "band_high": high,
            "density": _density(confidence),
        }
    )


def _on_grid(confidence: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A function of some confidences on the grid, NaN outside them (up to half a step of the grid)."""
    half = (GRID[1] - GRID[0]) / 2
    inside = (GRID >= confidence[0] - half) & (GRID <= confidence[-1] + half)
    return np.where(inside, np.interp(GRID, confidence, values), np.nan)


def _band_of_curves(rising: np.ndarray, band: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the curve at each confidence when every row is right with exactly its confidence.

    Neighbouring confidences are drawn together, so that the cost does not grow with the rows.
    """
    generator = np.random.default_rng(seed)
    lots = np.array_split(rising, min(CURVE_LOTS, len(rising)))
    steps = Steps.of(np.array([lot.mean() for lot in lots]).clip(0, 1), np.zeros(len(lots)))
    places = np.searchsorted(steps.values, [min(lot.mean(), 1) for lot in lots])
    counts = np.bincount(places, [len(lot) for lot in lots])
    right = generator.binomial(counts.astype(int), steps.values, (CURVE_DRAWS, len(counts)))
    curves = [_on_grid(steps.values, Steps(steps.values, counts, drawn).isotonic()) for drawn in right]
    low, high = np.quantile(curves, [(1 - band) / 2, (1 + band) / 2], axis=0)
    return low, high


def _density(confidence: np.ndarray, cells: int = 1000) -> np.ndarray:
    """The density of the confidences on the grid; the bandwidth is Silverman's."""
    quartiles = np.quantile(confidence, [0.25, 0.75])
    spread = min(confidence.std(), (quartiles[1] - quartiles[0]) / 1.34) or confidence.std()
    width = max(0.9 * spread * len(confidence) ** -0.2, 1 / 200)
    counts, edges = np.histogram(confidence, cells, (0, 1))
    middles = (edges[:-1] + edges[1:]) / 2
    mirrored = np.concatenate([-middles, middles, 2 - middles])
    kernel = np.exp(-(((GRID[:, None] - mirrored) / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi))
    density: np.ndarray = kernel @ np.tile(counts, 3) / len(confidence)
    return density


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
