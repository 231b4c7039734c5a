"""What cannot be beaten: sets made from the true P(y|x), or from what people said.

With a known posterior (`table.posterior`, as the garden has it) accuracy needs no labels: a set is right with the
posterior probability it holds. Posteriors tie massively, so the best average-K accuracy is a sum of the largest
entries, the last one in part, and never the accuracy of a threshold set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.counts import falling_entries, mass_at_mean_size, whole
from workbench.metrics import accuracy
from workbench.sets import Rule, Threshold, TopK, checked_rule
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.sets.selection import threshold_at_mean_size
from workbench.tables import LogitTable, checked_table
from workbench.tables.checks import array_of


def posterior_of(table: LogitTable) -> np.ndarray:
    """(n, L) float64: the known posterior of a table, or the shares of the votes people gave.

    - `table`: one that has a `posterior`, or `votes`.
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


def posterior_table(table: LogitTable) -> LogitTable:
    """The same rows with the true probabilities in place of the network's.

    - `table`: one that has a `posterior`, or `votes`.
    """
    posterior = posterior_of(table)
    fields = {name: getattr(table, name) for name in ("class_names", "groups", "class_counts", "attributes", "ids")}
    return LogitTable.from_probabilities(posterior, table.labels, posterior=posterior, **fields)


def sets(table: LogitTable, rule: Rule) -> PredictionSets:
    """The Bayes sets of a rule: its formulation in Table 2.1 of the thesis, solved with the true posterior.

    - `table`: one that has a `posterior`, or `votes`.
    - `rule`: a rule that is not fitted yet.

    >>> table = LogitTable([[0.0, 0.0, 0.0]], posterior=[[0.5, 0.3, 0.2]])
    >>> sets(table, TopK(2)).members(0)[0].tolist()
    [0, 1]
    """
    known = posterior_table(table)
    return checked_rule(rule).bayes(known).sets(known)


def top_k_accuracy(posterior: Any, K: int, weights: Any = None) -> float:
    r"""The best accuracy of sets of size K: $\mathbb E[\text{sum of the } K \text{ largest } p_j(X)]$.

    - `K`: number of classes in a set.

    `posterior` is (n, L) or a table that knows it; `weights` (n,) are the probabilities of the rows, equal if not given.

    Paper: Garcin, thesis, Eq. 2.11–2.12.
    """
    p, weights = _weighted(posterior, weights)
    return float(weights @ -np.sort(-p, axis=1)[:, : whole("K", K)].sum(1))


def average_k_accuracy(posterior: Any, K: float, weights: Any = None) -> float:
    r"""The best accuracy of sets of mean size K: the sum of the largest entries of all rows, K of them a row.

    - `posterior`: the true P(y|x), (n, L), or a table that knows it.
    - `K`: mean size of the sets.
    - `weights`: how much each row counts; all the same without.

    The last entry counts in part, so the size is K exactly whatever the ties (a randomised classifier; a threshold set
    would take all tied classes or none).

    >>> p = [[1.0, 0.0, 0.0], [0.4, 0.4, 0.2]]
    >>> top_k_accuracy(p, K=1), round(average_k_accuracy(p, K=1), 3), round(average_k_accuracy(p, K=1.5), 3)
    (0.7, 0.7, 0.9)

    Paper: Garcin, thesis, Eq. 2.15–2.28.
    """
    p, weights = _weighted(posterior, weights)
    if not 0 < K <= p.shape[1]:
        raise ValueError(f"K = {K:g} must lie in (0, {p.shape[1]}]: there are {p.shape[1]} classes")
    return mass_at_mean_size(p, weights, K)


def mean_size_at_confidence(posterior: Any, confidence: float, weights: Any = None) -> float:
    """The smallest mean size with which a promised accuracy can be kept: the inverse of `average_k_accuracy`.

    - `posterior`: the true P(y|x), (n, L), or a table that knows it.
    - `confidence`: the promised accuracy.
    - `weights`: how much each row counts; all the same without.

    The Bayes form of the average-error formulation (Garcin, thesis, Table 2.1), the last entry in part.
    """
    p, weights = _weighted(posterior, weights)
    if not 0 < confidence <= 1:
        raise ValueError(f"confidence = {confidence} must lie in (0, 1]")
    entries, mass = falling_entries(p, weights)
    gained = entries * mass
    room = np.clip(confidence - (np.cumsum(gained) - gained), 0, gained)
    return float(np.divide(room, entries, out=np.zeros_like(room), where=entries > 0).sum())


def expected_accuracy(prediction: PredictionSets) -> float:
    """The accuracy that sets have under the true posterior of their rows: no luck with the labels in it.

    - `prediction`: sets of rows whose posterior is known.
    """
    p = posterior_of(checked_sets(prediction).table)
    return float(sum((p[rows] * mask).sum() for rows, _, mask in prediction.blocks()) / prediction.table.n)


def regret(prediction: PredictionSets) -> float:
    """How much accuracy sets lose against the best sets of the same mean size (for top-K: of the same size).

    - `prediction`: sets of rows whose posterior is known.

    Zero for the Bayes classifier, never negative; it does not depend on the labels that happened to be drawn.
    """
    rule = getattr(checked_sets(prediction).rule, "rule", None)
    if isinstance(rule, TopK):
        best = top_k_accuracy(prediction.table, min(max(rule.K, rule.min_size), prediction.table.n_classes))
    else:
        mean_size = float(prediction.sizes.mean())
        best = average_k_accuracy(prediction.table, mean_size) if mean_size > 0 else 0.0
    return max(best - expected_accuracy(prediction), 0.0)


def top_k_against_average_k(posterior: Any, K_values: Iterable[int] | None = None, weights: Any = None) -> pd.DataFrame:
    """The two best accuracies at each K, the gap between them, and how unequal the ambiguity of the rows is.

    - `posterior`: the true P(y|x), (n, L), or a table that knows it.
    - `K_values`: the sizes; 1 to 10, or to the number of classes, without them.
    - `weights`: how much each row counts; all the same without.

    Columns `K`, `top_k`, `average_k`, `gap` = average_k − top_k ≥ 0, and `heterogeneity`: the standard deviation over
    rows of how many classes the best average-K sets give them. The gap is zero when all rows are equally ambiguous and
    grows as they differ (Garcin, thesis, Sec. 2.2.5).
    """
    p, weights = _weighted(posterior, weights)
    lines = []
    for K in range(1, min(10, p.shape[1]) + 1) if K_values is None else K_values:
        top, average = top_k_accuracy(p, K, weights), average_k_accuracy(p, K, weights)
        lines.append((K, top, average, average - top, _spread_of_sizes(p, weights, K)))
    return pd.DataFrame(lines, columns=["K", "top_k", "average_k", "gap", "heterogeneity"])


def human_sets(table: LogitTable, min_votes: int = 1) -> PredictionSets:
    """The classes that at least `min_votes` people chose, as sets.

    - `table`: one that has `votes`.
    """
    checked_table(table)
    if table.votes is None:
        raise ValueError("this table has no votes; give LogitTable(..., votes=) how many people chose each class")
    return PredictionSets.from_matrix(table, table.votes >= min_votes)


def contains(outer: PredictionSets, inner: PredictionSets) -> np.ndarray:
    """(n,) bool: whether each set contains the whole other set, as a model's set should that of the people.

    - `outer`, `inner`: sets of the same rows.
    """
    if checked_sets(outer).table.n != checked_sets(inner).table.n:
        raise ValueError(f"the sets are of {outer.table.n} and {inner.table.n} rows; give sets of the same rows")
    pairs = zip(outer.blocks(), inner.blocks(), strict=True)
    return np.concatenate([~(inside & ~mask).any(1) for (_, _, mask), (_, _, inside) in pairs])


def against_expert(
    tables: Mapping[str, LogitTable], expert: PredictionSets, expert_name: str = "expert"
) -> pd.DataFrame:
    """The error of an expert and of models that return as many classes on average as the expert did, on the same rows.

    - `tables`: tables of the models by their names.
    - `expert`: the sets of the expert.
    - `expert_name`: what the expert is called in the frame.

    Columns `who`, `mean_size`, `error`. Sets of equal probability enter together, so with ties the size of a model may
    exceed that of the expert. Garcin, thesis, Sec. 3.3.3 and Fig. 3.7.
    """
    K = float(checked_sets(expert).sizes.mean())
    lines = [(expert_name, K, 1 - accuracy(expert))]
    for name, table in tables.items():
        if checked_table(table).n != expert.table.n:
            raise ValueError(f"{name} has {table.n} rows and the expert saw {expert.table.n}; give the same rows")
        found = Threshold(threshold_at_mean_size(table, K)).fit(table).sets(table)
        lines.append((name, float(found.sizes.mean()), 1 - accuracy(found)))
    return pd.DataFrame(lines, columns=["who", "mean_size", "error"])


def _weighted(posterior: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    """The posterior as float64 and weights that sum to 1."""
    p = posterior_of(posterior) if isinstance(posterior, LogitTable) else array_of(posterior).astype(np.float64)
    if p.ndim != 2 or not p.size or not np.isfinite(p).all() or p.min() < 0:
        raise ValueError(f"a posterior is (n, L), finite and ≥ 0; this one has shape {p.shape}")
    weights = np.ones(len(p)) if weights is None else array_of(weights).astype(np.float64)
    if weights.shape != (len(p),) or weights.min() < 0 or not weights.sum() > 0:
        raise ValueError(f"weights are one number ≥ 0 for each of the {len(p)} rows, not all zero")
    return p, weights / weights.sum()


def _spread_of_sizes(p: np.ndarray, weights: np.ndarray, K: float) -> float:
    """Standard deviation over rows of the size of the best sets of mean size K.

    Tied entries enter in equal parts, zeros not at all.
    """
    entries, mass = falling_entries(p, weights)
    last = entries[min(int(np.searchsorted(np.cumsum(mass), K * (1 - 1e-12))), len(entries) - 1)]
    above, tied = (p > last).sum(1), np.isclose(p, last, rtol=1e-12, atol=0).sum(1)
    share = (K - weights @ above) / (weights @ tied) if last > 0 else 0.0
    sizes = above + share * tied
    return float(np.sqrt(max(weights @ (sizes - weights @ sizes) ** 2, 0.0)))
