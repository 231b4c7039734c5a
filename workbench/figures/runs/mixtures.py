"""Top-1 and top-K accuracy of a sweep over P_K, against the weight of top-K."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from workbench.figures.base import checked_frame
from workbench.figures.runs.sweeping import OF_SUMMARY, AgainstKnob, against_knob
from workbench.figures.snippet import Code
from workbench.knob_kinds import KINDS
from workbench.metrics import top_k_accuracy

P_K = "loss.p_k"


def against_mixture(summary: pd.DataFrame, K: int = 5, split: str = "test") -> AgainstKnob:
    r"""Top-1 and top-K accuracy of a sweep over P_K, one panel each, against the weight of top-K in it.

    Args:
        summary: That of `wb.sweep(run, {"loss.p_k": [...], ...}, metrics=[top_k_accuracy.at(K=1), top_k_accuracy.at(K=5)])`;
            the column `loss.p_k` holds tuples, or the text that Python prints of them.
        K: Which k the weight is of, $P_K(k)$.
        split: The rows that were evaluated on, "test" or "val".

    What else was varied, such as `loss.operator`, tells the lines apart; the lines through the points are 95 % intervals
    of the mean over seeds.

    >>> rows = [("(1.0, 0.0)", "top_k_accuracy@K=1", 0.9), ("(0.25, 0.75)", "top_k_accuracy@K=1", 0.8)]
    >>> rows += [(p_k, "top_k_accuracy@K=2", accuracy + 0.1) for p_k, _, accuracy in rows]
    >>> summary = pd.DataFrame(rows, columns=["loss.p_k", "metric", "mean"])
    >>> summary = summary.assign(split="test", seeds=1, low=None, high=None)
    >>> against_mixture(summary, K=2).frame[["x", "mean"]].to_numpy().tolist()
    [[0.0, 0.9], [0.75, 0.8], [0.0, 1.0], [0.75, 0.9]]

    Paper: Petersen et al. 2022, Fig. 2 (left).
    """
    checked_frame(summary, OF_SUMMARY, "wb.sweep(...).summary() makes one")
    if P_K not in summary:
        raise ValueError(f"the summary has no column {P_K}; sweep over it: wb.sweep(run, {{{P_K!r}: [(0.5, 0.5), …]}})")
    metrics = [top_k_accuracy.at(K=k).name for k in dict.fromkeys((1, K))]
    if missing := [name for name in metrics if name not in set(summary["metric"])]:
        raise ValueError(
            f"the summary lacks {' and '.join(missing)}; give wb.sweep metrics=[wb.metrics.top_k_accuracy.at(K=1), "
            f"wb.metrics.top_k_accuracy.at(K={K})]"
        )
    weight = f"weight of top-{K}"
    chosen = summary[summary["metric"].isin(metrics)]
    chosen = chosen.assign(**{weight: [_weight_of(p_k, K) for p_k in chosen[P_K]]})
    chosen = chosen.drop(columns=[P_K, "rule"], errors="ignore")  # top-K accuracy is the same by every rule
    figure = against_knob(chosen, weight, split)
    return replace(
        figure,
        title=f"What the weight of top-{K} does",
        code=Code(f"wb.figures.against_mixture(summary, K={K!r}, split={split!r})", figure.code.setup),
    )


def _weight_of(p_k: Any, K: int) -> float:
    """P_K(K), of a tuple or of its text; 0 where the tuple ends before."""
    kind = KINDS["weights"]
    weights = kind.parsed(p_k) if isinstance(p_k, str) else tuple(p_k)
    return float(weights[K - 1]) if len(weights) >= K else 0.0
