"""Pictures, each computed first (a tidy frame) and drawn second (Plotly, or matplotlib for paper)."""

from __future__ import annotations

from workbench.figures.agreement import f1_against_threshold
from workbench.figures.base import Figure
from workbench.figures.classes import per_class
from workbench.figures.comparisons import on_two_metrics, paired_differences
from workbench.figures.curves import accuracy_against_size
from workbench.figures.explorer import explore
from workbench.figures.improvement import most_improved
from workbench.figures.inequality import lorenz
from workbench.figures.landscapes import gallery, level_sets
from workbench.figures.learning import learning_curves
from workbench.figures.neighbours import shared_sets
from workbench.figures.profiles import binary_surrogates, line_profile
from workbench.figures.rarity import accuracy_against_count
from workbench.figures.rejection import none_of_these
from workbench.figures.reliability import reliability
from workbench.figures.risks import calibration_map, conditional_risk
from workbench.figures.samples import samples
from workbench.figures.sizes import set_sizes
from workbench.figures.smoothing import gradient_sparsity, smoothing_bounds
from workbench.figures.sprites import sprite_sheet
from workbench.figures.sweeping import against_knob
from workbench.figures.temperature import temperatures
from workbench.figures.thresholds import size_against_threshold
from workbench.figures.weights import weight_plane

__all__ = [
    "Figure",
    "accuracy_against_count",
    "accuracy_against_size",
    "against_knob",
    "binary_surrogates",
    "calibration_map",
    "conditional_risk",
    "explore",
    "f1_against_threshold",
    "gallery",
    "gradient_sparsity",
    "learning_curves",
    "level_sets",
    "line_profile",
    "lorenz",
    "most_improved",
    "none_of_these",
    "on_two_metrics",
    "paired_differences",
    "per_class",
    "reliability",
    "samples",
    "set_sizes",
    "shared_sets",
    "size_against_threshold",
    "smoothing_bounds",
    "sprite_sheet",
    "temperatures",
    "weight_plane",
]
