"""Pictures, each computed first (a tidy frame) and drawn second (Plotly, or matplotlib for paper)."""

from __future__ import annotations

from workbench.figures.base import Figure
from workbench.figures.code import Code
from workbench.figures.of_data.inequality import lorenz
from workbench.figures.of_data.sprites import sprite_sheet
from workbench.figures.of_losses.landscapes import gallery, level_sets
from workbench.figures.of_losses.moat import moat
from workbench.figures.of_losses.profiles import binary_surrogates, line_profile
from workbench.figures.of_losses.risks import calibration_map, conditional_risk
from workbench.figures.of_losses.smoothing import gradient_sparsity, smoothing_bounds
from workbench.figures.of_losses.twins import twins
from workbench.figures.of_probabilities.rejection import none_of_these
from workbench.figures.of_probabilities.reliability import reliability
from workbench.figures.of_probabilities.temperature import temperatures
from workbench.figures.of_runs.comparisons import on_two_metrics, paired_differences
from workbench.figures.of_runs.improvement import most_improved
from workbench.figures.of_runs.intervals import with_intervals
from workbench.figures.of_runs.learning import learning_curves
from workbench.figures.of_runs.mixtures import against_mixture
from workbench.figures.of_runs.normalisers import normalisers
from workbench.figures.of_runs.reproduced import reproduced
from workbench.figures.of_runs.sweeping import against_knob
from workbench.figures.of_runs.weights import weight_plane
from workbench.figures.of_sets.agreement import f1_against_threshold
from workbench.figures.of_sets.classes import per_class
from workbench.figures.of_sets.curves import accuracy_against_size
from workbench.figures.of_sets.explorer import explore
from workbench.figures.of_sets.neighbours import shared_sets
from workbench.figures.of_sets.rarity import accuracy_against_count
from workbench.figures.of_sets.samples import samples
from workbench.figures.of_sets.sizes import set_sizes
from workbench.figures.of_sets.thresholds import size_against_threshold

# Every figure: to add one, write it in one file of its folder and put it here. Tests and documents go by this list.
FIGURES = (
    lorenz,
    level_sets,
    gallery,
    line_profile,
    binary_surrogates,
    conditional_risk,
    calibration_map,
    gradient_sparsity,
    smoothing_bounds,
    moat,
    twins,
    set_sizes,
    accuracy_against_size,
    size_against_threshold,
    per_class,
    accuracy_against_count,
    shared_sets,
    samples,
    explore,
    f1_against_threshold,
    reliability,
    temperatures,
    none_of_these,
    learning_curves,
    normalisers,
    against_knob,
    against_mixture,
    weight_plane,
    on_two_metrics,
    paired_differences,
    most_improved,
    reproduced,
    with_intervals,
)

__all__ = [  # written out for type checkers; a test holds it to FIGURES
    "FIGURES",
    "Code",
    "Figure",
    "accuracy_against_count",
    "accuracy_against_size",
    "against_knob",
    "against_mixture",
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
    "moat",
    "most_improved",
    "none_of_these",
    "normalisers",
    "on_two_metrics",
    "paired_differences",
    "per_class",
    "reliability",
    "reproduced",
    "samples",
    "set_sizes",
    "shared_sets",
    "size_against_threshold",
    "smoothing_bounds",
    "sprite_sheet",
    "temperatures",
    "twins",
    "weight_plane",
    "with_intervals",
]
