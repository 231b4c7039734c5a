"""Metrics, each declared once with its title, definition, direction and bounds; `METRICS` is the tuple of all of them.

A metric is called like a function and returns a float (or {name: float}); `metric.interval(...)` gives its
interval. Consumers take `metrics=`, so one of yours joins by `(*wb.metrics.METRICS, mine)`.
"""

from __future__ import annotations

from workbench.metrics.base import Metric, Parts, intervals, mean, metric
from workbench.metrics.of_probabilities import (
    auroc,
    brier_decomposition,
    brier_score,
    classwise_calibration_error,
    confidences,
    expected_calibration_error,
    fpr_at_95,
    max_confidence,
    maximum_calibration_error,
    negative_log_likelihood,
    share_above_one,
    top_k_accuracy,
    top_k_calibration_error,
    top_label_calibration_error,
)
from workbench.metrics.of_sets import (
    accuracy,
    accuracy_by,
    accuracy_by_size,
    cardinality,
    class_accuracy,
    count_bin_accuracy,
    coverage_gap,
    empty_share,
    exact_match,
    group_accuracy,
    macro_accuracy,
    macro_f1,
    mean_size,
    micro_f1,
    recall,
    shot_accuracy,
    size_by,
    size_quantiles,
    size_stratified_coverage,
)
from workbench.metrics.reliability import reliability_bins

METRICS: tuple[Metric, ...] = (
    accuracy,
    macro_accuracy,
    shot_accuracy,
    count_bin_accuracy,
    group_accuracy,
    mean_size,
    size_quantiles,
    empty_share,
    accuracy_by_size,
    size_stratified_coverage,
    coverage_gap,
    accuracy_by,
    size_by,
    recall,
    micro_f1,
    macro_f1,
    exact_match,
    cardinality,
    top_k_accuracy,
    expected_calibration_error,
    maximum_calibration_error,
    top_k_calibration_error,
    top_label_calibration_error,
    classwise_calibration_error,
    brier_score,
    brier_decomposition,
    negative_log_likelihood,
    max_confidence,
    share_above_one,
    auroc,
    fpr_at_95,
)

__all__ = [
    "METRICS",
    "Metric",
    "Parts",
    "class_accuracy",
    "confidences",
    "intervals",
    "mean",
    "metric",
    "reliability_bins",
    *(declared.name for declared in METRICS),
]
