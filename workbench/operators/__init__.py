"""Pure functions on the last axis: order statistics and their smoothing, relaxed permutations, sparse projections."""

from __future__ import annotations

from workbench.operators.networks import selection_network
from workbench.operators.noised import noised_kth_largest
from workbench.operators.order import kth_largest, top_sum
from workbench.operators.projections import project_top_k_simplex, sparsemax
from workbench.operators.relaxed_sorts import comparator_network_sort, neural_sort, sinkhorn_sort, soft_sort
from workbench.operators.smoothed import exact_noised_kth_largest

__all__ = [
    "comparator_network_sort",
    "exact_noised_kth_largest",
    "kth_largest",
    "neural_sort",
    "noised_kth_largest",
    "project_top_k_simplex",
    "selection_network",
    "sinkhorn_sort",
    "soft_sort",
    "sparsemax",
    "top_sum",
]
