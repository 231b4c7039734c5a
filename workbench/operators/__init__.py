"""Pure functions on the last axis: order statistics and their smoothing, relaxed permutations, sparse projections."""

from __future__ import annotations

from workbench.operators.networks import selection_network
from workbench.operators.noised import noised_kth_largest
from workbench.operators.order import kth_largest, top_sum
from workbench.operators.ranking import comparator_network_sort, neural_sort, sinkhorn_sort, soft_sort

__all__ = [
    "comparator_network_sort",
    "kth_largest",
    "neural_sort",
    "noised_kth_largest",
    "selection_network",
    "sinkhorn_sort",
    "soft_sort",
    "top_sum",
]
