"""Best possible sets, from the true P(y|x) or from human votes.

With a known posterior (`table.posterior`, as the garden has it) accuracy needs no labels: a set is right with the
posterior probability it holds. Posteriors tie massively, so the best average-K accuracy is a sum of the largest
entries, the last one in part, and never the accuracy of a threshold set.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.exact_arithmetic import classes_of_rows
from workbench.metrics import accuracy, regret
from workbench.metrics.posterior_metrics import mass_of_rows, posterior_of
from workbench.posterior_mass import falling_entries, mass_at_mean_size
from workbench.sets import AverageK, Rule, Threshold, checked_rule
from workbench.sets.prediction_sets import PredictionSets, checked_sets
from workbench.sets.thresholds import threshold_at_mean_size
from workbench.tables import LogitTable, checked_table
from workbench.tables.checks import array_of
from workbench.validation import whole_number

__all__ = [
    "against_expert",
    "average_k_accuracy",
    "contains",
    "expected_accuracy",
    "gap_lower_bound",
    "human_sets",
    "mean_size_at_confidence",
    "posterior_of",
    "posterior_table",
    "regret",
    "right_candidates_by",
    "sets",
    "top_k_accuracy",
    "top_k_against_average_k",
]


def posterior_table(table: LogitTable) -> LogitTable:
    """The same rows with the true probabilities in place of the network's.

    Args:
        table: One that has a `posterior`, or `votes`.
    """
    posterior = posterior_of(table)
    fields = {name: getattr(table, name) for name in ("class_names", "groups", "class_counts", "attributes", "ids")}
    return LogitTable.from_probabilities(posterior, table.labels, posterior=posterior, **fields)


def sets(table: LogitTable, rule: Rule) -> PredictionSets:
    """The Bayes sets of a rule: its formulation in Table 2.1 of the thesis, solved with the true posterior.

    Args:
        table: One that has a `posterior`, or `votes`.
        rule: a rule that is not fitted yet.

    >>> from workbench.sets import TopK
    >>> table = LogitTable([[0.0, 0.0, 0.0]], posterior=[[0.5, 0.3, 0.2]])
    >>> sets(table, TopK(2)).members(0)[0].tolist()
    [0, 1]
    """
    known = posterior_table(table)
    return checked_rule(rule).bayes(known).sets(known)


def top_k_accuracy(posterior: Any, K: int, weights: Any = None) -> float:
    r"""The best accuracy of sets of size K: $\mathbb E[\text{sum of the } K \text{ largest } p_j(X)]$.

    Args:
        K: Number of classes in a set.

    `posterior` is (n, L) or a table that knows it; `weights` (n,) are the probabilities of the rows, equal if not given.

    Paper: Garcin, thesis, Eq. 2.11–2.12.
    """
    p, weights = _weighted(posterior, weights)
    return float(weights @ -np.sort(-p, axis=1)[:, : whole_number("K", K)].sum(1))


def average_k_accuracy(posterior: Any, K: float, weights: Any = None) -> float:
    r"""The best accuracy of sets of mean size K: the sum of the largest entries of all rows, K of them a row.

    Args:
        posterior: The true P(y|x), (n, L), or a table that knows it.
        K: Mean size of the sets.
        weights: How much each row counts; all the same without.

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

    Args:
        posterior: The true P(y|x), (n, L), or a table that knows it.
        confidence: The promised accuracy.
        weights: How much each row counts; all the same without.

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

    Args:
        prediction: Sets of rows whose posterior is known.
    """
    return float(mass_of_rows(checked_sets(prediction)).mean())


def top_k_against_average_k(posterior: Any, K_values: Iterable[int] | None = None, weights: Any = None) -> pd.DataFrame:
    """The two best accuracies at each K, the gap between them, and how unequal the ambiguity of the rows is.

    Args:
        posterior: The true P(y|x), (n, L), or a table that knows it.
        K_values: The sizes; 1 to 10, or to the number of classes, without them.
        weights: How much each row counts; all the same without.

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


def gap_lower_bound(posterior: Any, K: int, weights: Any = None) -> float:
    r"""A lower bound of how much average-K beats top-K at best, from the two probabilities beside the cut of top-K.

    $$ \mathbb E\bigl[(\lambda - p_{(K)}(X))_+ + (p_{(K+1)}(X) - \lambda)_+\bigr] $$

    Args:
        posterior: The true P(y|x), (n, L), or a table that knows it.
        K: Number of classes in a set, on average for average-K.
        weights: How much each row counts; all the same without.

    λ is the probability of the last class that the best average-K sets take. Summed over all ranks, not the two alone, the
    expectation is the gap itself. It is zero if one λ lies between the K-th and the (K+1)-th probability of every row: then
    all rows are equally ambiguous, and top-K is as good.

    >>> p = [[0.9, 0.1, 0.0], [0.4, 0.35, 0.25]]
    >>> round(gap_lower_bound(p, K=1), 3), round(average_k_accuracy(p, K=1) - top_k_accuracy(p, K=1), 3)
    (0.0, 0.0)
    >>> p = [[1.0, 0.0, 0.0, 0.0], [0.3, 0.3, 0.2, 0.2]]
    >>> round(gap_lower_bound(p, K=2), 3), round(average_k_accuracy(p, K=2) - top_k_accuracy(p, K=2), 3)
    (0.1, 0.1)

    Paper: Garcin, thesis, section 2.2.5 (after Lorieul, Joly and Shasha 2021).
    """
    p, weights = _weighted(posterior, weights)
    if not 1 <= whole_number("K", K) < p.shape[1]:
        raise ValueError(f"K = {K} must lie in [1, {p.shape[1]}): there are {p.shape[1]} classes")
    falling = -np.sort(-p, axis=1)
    last = _last_entry(*falling_entries(p, weights), K)
    return float(weights @ (np.maximum(last - falling[:, K - 1], 0) + np.maximum(falling[:, K] - last, 0)))


def candidates(probabilities: np.ndarray, labels: np.ndarray, K: float) -> np.ndarray:
    """(n, L) bool: the candidates of a batch for the two-head loss.

    They are the (K − 1) · n largest probabilities once the labels are taken out (Garcin et al. 2023, Eq. 11–12).
    """
    n, n_classes = probabilities.shape
    without = probabilities.astype(float)
    without[np.arange(n), labels] = -np.inf
    n_candidates = min(classes_of_rows(K, n) - n, n * (n_classes - 1))
    chosen = np.zeros(n * n_classes, dtype=bool)
    chosen[np.argsort(-without.ravel(), kind="stable")[:n_candidates]] = True
    return chosen.reshape(n, n_classes)


def right_candidates(table: LogitTable, K: float, batch: int, seed: int = 0) -> np.ndarray:
    """(batches,) the share of the candidates of each batch that are in the Bayes sets of mean size K; none at K = 1."""
    best = np.zeros((table.n, table.n_classes), dtype=bool)
    of_rows = sets(table, AverageK(K))
    best[np.repeat(np.arange(table.n), of_rows.sizes), of_rows.classes] = True
    order, shares = np.random.default_rng(seed).permutation(table.n), []
    for start in range(0, table.n - batch + 1, batch):
        rows = order[start : start + batch]
        chosen = candidates(table.probabilities(rows), table.checked_labels()[rows], K)
        if chosen.any():
            shares.append((chosen & best[rows]).sum() / chosen.sum())
    return np.array(shares)


def right_candidates_by(
    tables: Mapping[str, LogitTable], K_values: Iterable[float] = (2, 3, 5), batches: Iterable[int] = (8, 32, 128)
) -> pd.DataFrame:
    """How many candidates of the two-head loss are right, by network, K and size of the batch.

    Args:
        tables: Name, such as "α = 0.3" → scores of its candidate head on rows whose posterior is known.
        K_values: Mean sizes of sets, labels included, above 1.
        batches: Numbers of rows that candidates are chosen from.

    Columns `panel` (the batch), `series` (the name), `x` (K), `value` (the mean over batches, in %), `low` and `high` (its 95 %
    interval), as `wb.figures.with_intervals` draws them.

    >>> posterior = [[0.9, 0.06, 0.04], [0.5, 0.3, 0.2]]
    >>> guess = LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.9, 0.08, 0.02]], [0, 0], posterior=posterior)
    >>> right_candidates_by({"a guess": guess}, K_values=[1.5], batches=[2])["value"].tolist()
    [0.0]
    """
    lines = []
    for batch in batches:
        for name, table in tables.items():
            for K in K_values:
                shares = 100 * right_candidates(table, K, batch)
                if not len(shares):
                    raise ValueError(f"K = {K}, batch = {batch}: no candidates; K above 1, and at most {table.n} rows")
                reach = 1.96 * shares.std(ddof=1) / np.sqrt(len(shares)) if len(shares) > 1 else np.nan
                value = shares.mean()
                lines.append((f"batches of {batch}", name, K, value, value - reach, value + reach))
    return pd.DataFrame(lines, columns=["panel", "series", "x", "value", "low", "high"])


def human_sets(table: LogitTable, min_votes: int = 1) -> PredictionSets:
    """The classes that at least `min_votes` people chose, as sets.

    Args:
        table: One that has `votes`.
    """
    checked_table(table)
    if table.votes is None:
        raise ValueError("this table has no votes; give LogitTable(..., votes=) how many people chose each class")
    return PredictionSets.from_matrix(table, table.votes >= min_votes)


def contains(outer: PredictionSets, inner: PredictionSets) -> np.ndarray:
    """(n,) bool: whether each set contains the whole other set, as a model's set should that of the people.

    Args:
        outer: Sets of some rows.
        inner: Other sets of the same rows.
    """
    if checked_sets(outer).table.n != checked_sets(inner).table.n:
        raise ValueError(f"the sets are of {outer.table.n} and {inner.table.n} rows; give sets of the same rows")
    pairs = zip(outer.blocks(), inner.blocks(), strict=True)
    return np.concatenate([~(inside & ~mask).any(1) for (_, _, mask), (_, _, inside) in pairs])


def against_expert(
    tables: Mapping[str, LogitTable], expert: PredictionSets, expert_name: str = "expert"
) -> pd.DataFrame:
    """The error of an expert and of models that return as many classes on average as the expert did, on the same rows.

    Args:
        tables: Tables of the models by their names.
        expert: The sets of the expert.
        expert_name: What the expert is called in the frame.

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


def _last_entry(entries: np.ndarray, mass: np.ndarray, K: float) -> float:
    """The smallest probability that sets of mean size K take, of entries in falling order and their mass."""
    return float(entries[min(int(np.searchsorted(np.cumsum(mass), K * (1 - 1e-12))), len(entries) - 1)])


def _spread_of_sizes(p: np.ndarray, weights: np.ndarray, K: float) -> float:
    """Standard deviation over rows of the size of the best sets of mean size K.

    Tied entries enter in equal parts, zeros not at all.
    """
    last = _last_entry(*falling_entries(p, weights), K)
    above, tied = (p > last).sum(1), np.isclose(p, last, rtol=1e-12, atol=0).sum(1)
    share = (K - weights @ above) / (weights @ tied) if last > 0 else 0.0
    sizes = above + share * tied
    return float(np.sqrt(max(weights @ (sizes - weights @ sizes) ** 2, 0.0)))
