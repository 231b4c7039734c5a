"""Metrics against the Bayes sets, where the true P(y|x) of the rows is known or estimated from votes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from workbench.metrics.base import Parts, metric
from workbench.sets import PredictionSets, TopK
from workbench.tables import LogitTable, checked_table


def posterior_of(table: LogitTable) -> np.ndarray:
    """(n, L) float64: the known posterior of a table, or the shares of the votes people gave.

    Args:
        table: One that has a `posterior`, or `votes`.
    """
    if checked_table(table).posterior is not None:
        return np.asarray(table.posterior, dtype=np.float64)
    if table.votes is None:
        raise ValueError("this table knows neither the true posterior nor human votes; give posterior= or votes=")
    totals = table.votes.sum(1, dtype=np.float64)
    if not totals.all():
        raise ValueError(f"row {int(np.argmin(totals))} has no votes; leave such rows out with table.rows(...)")
    posterior: np.ndarray = table.votes / totals[:, None]
    return posterior


def mass_of_rows(sets: PredictionSets) -> np.ndarray:
    """(n,): the posterior probability that each set holds the label."""
    p = posterior_of(sets.table)
    return np.concatenate([(p[rows] * mask).sum(1) for rows, _, mask in sets.blocks()])


@metric(
    title="Regret", direction="lower", labels="none", needs=("posterior",), suits=lambda table: not table.many_labels
)
def regret(sets: PredictionSets) -> Parts:
    r"""The coverage that sets lose against the best sets of the same mean size (for top-K: of the same size).

    $\max_{\mathbb E|S^*| = \mathbb E|S|} \mathbb E[P(Y \in S^*(X) \mid X)] - \mathbb E[P(Y \in S(X) \mid X)]$: zero for the Bayes
    classifier, never negative, and free of luck with labels, because both sides are computed from the true posterior. The best
    sets are those of these rows, in an interval too.

    Args:
        sets: Sets of rows whose posterior is known.
    """
    best = _best_coverage(sets)

    def formula(sums: np.ndarray) -> np.ndarray:
        n, mass, size = np.moveaxis(sums[..., 0, :], -1, 0)
        lost: np.ndarray = np.maximum(best(size / n) - mass / n, 0)
        return lost

    return Parts(sets.table.n, np.column_stack([np.ones(sets.table.n), mass_of_rows(sets), sets.sizes]), formula)


def _best_coverage(sets: PredictionSets) -> Callable[[np.ndarray], np.ndarray]:
    """Mean size → the largest coverage that any sets of these rows can have; the last class enters in part."""
    p, rule = posterior_of(sets.table), getattr(sets.rule, "rule", None)
    if isinstance(rule, TopK):
        K = min(max(rule.K, rule.min_size), sets.table.n_classes)
        reached = -np.sort(-p, axis=1)[:, :K].sum() / len(p)
        return lambda size: np.full_like(size, reached)
    entries = -np.sort(-p[p > 0])
    sizes, reached = np.arange(len(entries) + 1) / len(p), np.append(0, np.cumsum(entries)) / len(p)
    return lambda size: np.interp(size, sizes, reached)
