"""A conformal rule with one limit per cluster of classes whose scores are alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workbench.knobs import knob
from workbench.sets.adaptive import seed_knob
from workbench.sets.base import min_size_knob
from workbench.sets.conformal import Calibration, label_scores, rows_needed
from workbench.sets.marginal import ScoredRule, score_knob
from workbench.sets.per_group import FittedGroups
from workbench.sets.row_draws import row_draws
from workbench.sets.scores import Score
from workbench.tables import LogitTable
from workbench.tables.map_reduce import over_parts

WITHOUT_CLUSTER = "classes without a cluster"


@dataclass(frozen=True, eq=False, repr=False)
class FittedClusters(FittedGroups):
    """A limit per cluster of classes; the last group is that of all rows, for classes without a cluster."""

    def calibration_rows(self) -> dict[str, int]:
        rows = super().calibration_rows()
        if len(rows) == 1:
            return {"": next(iter(rows.values()))}
        return {name: n for name, n in rows.items() if name != WITHOUT_CLUSTER}


@dataclass(frozen=True)
class Clustered(ScoredRule):
    r"""One limit per cluster of classes whose scores are alike: near class-conditional coverage with few rows a class.

    $$\Gamma(x) = \{j : s(x, j) \le q_{c(j)}\}, \qquad c(j) \text{ by k-means of the quantiles } .5, .6, .7, .8, .9
    \text{ of the scores of } j$$

    A share of the calibration rows makes the clusters, the others the limits. Classes with too few rows for a cluster have
    the limit of all rows, which promises nothing of them: beside clusters, coverage over all rows may be below
    `confidence`. With `n_clusters` 0 the number follows Ding et al., Sec. 4.

    Ding et al. 2023.
    """

    title = "Clustered sets"
    formulation = "average error"
    guarantee = "class coverage"
    promise = "the label is in the set with probability `confidence`, inside each cluster of classes"
    elsewhere = ("TorchCP",)
    fitted_kind = FittedClusters

    n_clusters: int = knob(
        0, low=0, high=20, maximum=math.inf, meaning="number of clusters; 0 chooses by the rows there are"
    )
    score: str = score_knob()
    seed: int = seed_knob()
    min_size: int = min_size_knob()

    def calibrated(self, score: Score, table: LogitTable) -> Calibration:
        rows, classes, scores = label_scores(score, table)
        counts = np.bincount(classes, minlength=table.n_classes)
        share, n_clusters = cluster_plan(counts, self.confidence, self.n_clusters)
        draws = np.concatenate(list(over_parts(table, draws_of, self.seed)))
        first = draws[rows] < share
        codes = clusters(scores[first], classes[first], table.n_classes, n_clusters, rows_needed(self.confidence))
        n_clusters = codes.max() + 1
        rest = ~first
        groups, values = codes[classes[rest]], scores[rest]
        everyone = np.full(len(values), n_clusters)  # the last group holds all rows, for classes without a cluster
        inside = groups >= 0
        names = (*(f"cluster {j + 1}" for j in range(n_clusters)), WITHOUT_CLUSTER)
        grouped = np.concatenate([groups[inside], everyone])
        return Calibration.grouped(
            np.concatenate([values[inside], values]), grouped, names, np.where(codes < 0, n_clusters, codes)
        )


def draws_of(part: LogitTable, first_row: int, seed: int) -> np.ndarray:
    """(rows,) the draw of every row of a part."""
    return np.concatenate([row_draws(np.asarray(part.scores[rows]), seed) for rows in part.spans()])


def cluster_plan(counts: np.ndarray, confidence: float, n_clusters: int) -> tuple[float, int]:
    """The share of the rows that makes clusters, and how many (Ding et al. 2023, Sec. 4; also TorchCP's `auto`)."""
    least = max(int(counts.min()), int(min(rows_needed(confidence), 10**6)))
    n_enough = int(np.count_nonzero(counts >= least))
    n_clustering = int(least * n_enough / (75 + n_enough))
    return (n_clustering / least if n_clustering else 0.3), n_clusters or max(1, n_clustering // 2)


def clusters(scores: np.ndarray, classes: np.ndarray, n_classes: int, n_clusters: int, least: float) -> np.ndarray:
    """(L,) the cluster of every class, -1 for one with too few rows or where one cluster is all."""
    counts = np.bincount(classes, minlength=n_classes)
    enough = np.flatnonzero((counts >= least) & (counts > 0))
    codes = np.full(n_classes, -1)
    if n_clusters < 2 or len(enough) <= n_clusters:
        return codes
    order = np.lexsort((scores, classes))
    offsets = np.concatenate([[0], np.cumsum(counts)])
    shares = np.array([0.5, 0.6, 0.7, 0.8, 0.9])
    places = offsets[enough, None] + np.ceil(counts[enough, None] * shares).astype(int) - 1
    embedded = scores[order][places]
    codes[enough] = k_means(np.where(np.isinf(embedded), 1e6, embedded), np.sqrt(counts[enough]), n_clusters)
    return codes


def k_means(points: np.ndarray, weights: np.ndarray, k: int, tries: int = 10) -> np.ndarray:
    """(n,) the cluster of each point by weighted k-means: the best of some starts by k-means++."""
    rng, best = np.random.default_rng(0), (np.inf, np.zeros(len(points), int))
    for _ in range(tries):
        centres = points[[rng.choice(len(points), p=weights / weights.sum())]]
        while len(centres) < k:
            nearest = weights * ((points[:, None] - centres) ** 2).sum(-1).min(1)
            chances = nearest / nearest.sum() if nearest.sum() else weights / weights.sum()
            centres = np.vstack([centres, points[rng.choice(len(points), p=chances)]])
        for _ in range(100):
            codes = ((points[:, None] - centres) ** 2).sum(-1).argmin(1)
            sums = np.stack([np.bincount(codes, weights * column, k) for column in points.T], axis=1)
            mass = np.bincount(codes, weights, k)[:, None]
            moved = np.divide(sums, mass, out=centres.copy(), where=mass > 0)
            if np.array_equal(moved, centres):
                break
            centres = moved
        cost = float((weights * ((points - centres[codes]) ** 2).sum(1)).sum())
        best = min(best, (cost, codes), key=lambda found: found[0])
    return best[1]
