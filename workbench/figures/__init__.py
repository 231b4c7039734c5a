"""Pictures, each computed first (a tidy frame) and drawn second (Plotly, or matplotlib for paper)."""

from __future__ import annotations

from workbench.figures.base import Figure
from workbench.figures.data.inequality import lorenz
from workbench.figures.data.sprites import sprite_sheet
from workbench.figures.interact import interact
from workbench.figures.losses.descent import descent_paths
from workbench.figures.losses.filmstrip import filmstrip
from workbench.figures.losses.landscapes import gallery, level_sets, loss_difference
from workbench.figures.losses.moat import moat
from workbench.figures.losses.probes import probe
from workbench.figures.losses.profiles import binary_surrogates, line_profile
from workbench.figures.losses.risks import calibration_map, conditional_risk
from workbench.figures.losses.smoothing import gradient_sparsity, smoothing_bounds
from workbench.figures.losses.twins import twins
from workbench.figures.probabilities.abstaining import risk_against_coverage
from workbench.figures.probabilities.rejection import none_of_these
from workbench.figures.probabilities.reliability import reliability
from workbench.figures.probabilities.reliability_curve import reliability_curve
from workbench.figures.probabilities.temperature import temperatures
from workbench.figures.runs.comparisons import on_two_metrics, paired_differences
from workbench.figures.runs.improvement import most_improved
from workbench.figures.runs.intervals import with_intervals
from workbench.figures.runs.learning import learning_curves
from workbench.figures.runs.mixtures import against_mixture
from workbench.figures.runs.normalisers import normalisers
from workbench.figures.runs.reproduced import reproduced
from workbench.figures.runs.sweep_plan import sweep_plan
from workbench.figures.runs.sweeping import against_knob
from workbench.figures.runs.weights import weight_plane
from workbench.figures.sets.against_bayes import against_bayes
from workbench.figures.sets.agreement import f1_against_threshold
from workbench.figures.sets.bounds import coverage_bounds
from workbench.figures.sets.candidates import candidates
from workbench.figures.sets.class_matrix import class_matrix
from workbench.figures.sets.classes import per_class
from workbench.figures.sets.curves import accuracy_against_size
from workbench.figures.sets.explorer import explore
from workbench.figures.sets.gains import gains_by_count
from workbench.figures.sets.head_or_tail import head_or_tail
from workbench.figures.sets.neighbours import shared_sets
from workbench.figures.sets.rarity import accuracy_against_count
from workbench.figures.sets.rule_tradeoff import rule_tradeoff
from workbench.figures.sets.same_answer import same_answer
from workbench.figures.sets.samples import samples
from workbench.figures.sets.sizes import set_sizes
from workbench.figures.sets.thresholds import size_against_threshold
from workbench.figures.sets.worst_slices import worst_slices
from workbench.figures.snippet import Code

# Every figure: to add one, write it in one file of its folder and put it here. Tests and documents go by this list.
FIGURES = (
    lorenz,
    level_sets,
    loss_difference,
    descent_paths,
    gallery,
    filmstrip,
    probe,
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
    coverage_bounds,
    size_against_threshold,
    head_or_tail,
    rule_tradeoff,
    gains_by_count,
    per_class,
    accuracy_against_count,
    shared_sets,
    class_matrix,
    candidates,
    same_answer,
    against_bayes,
    worst_slices,
    samples,
    explore,
    f1_against_threshold,
    reliability,
    reliability_curve,
    temperatures,
    none_of_these,
    risk_against_coverage,
    learning_curves,
    normalisers,
    sweep_plan,
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
    "against_bayes",
    "against_knob",
    "against_mixture",
    "binary_surrogates",
    "calibration_map",
    "candidates",
    "class_matrix",
    "conditional_risk",
    "coverage_bounds",
    "descent_paths",
    "explore",
    "f1_against_threshold",
    "filmstrip",
    "gains_by_count",
    "gallery",
    "gradient_sparsity",
    "head_or_tail",
    "interact",
    "learning_curves",
    "level_sets",
    "line_profile",
    "lorenz",
    "loss_difference",
    "moat",
    "most_improved",
    "none_of_these",
    "normalisers",
    "on_two_metrics",
    "paired_differences",
    "per_class",
    "probe",
    "reliability",
    "reliability_curve",
    "reproduced",
    "risk_against_coverage",
    "rule_tradeoff",
    "same_answer",
    "samples",
    "set_sizes",
    "shared_sets",
    "size_against_threshold",
    "smoothing_bounds",
    "sprite_sheet",
    "sweep_plan",
    "temperatures",
    "twins",
    "weight_plane",
    "with_intervals",
    "worst_slices",
]
