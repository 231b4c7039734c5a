"""Pure functions on the last axis: order statistics and their smoothing, relaxed permutations, sparse projections."""

from __future__ import annotations

from workbench.operators.order import kth_largest, noised_kth_largest, top_sum

__all__ = ["kth_largest", "noised_kth_largest", "top_sum"]
