"""Figures of sweeps: rules are lines, groups are panels."""

from __future__ import annotations

import pandas as pd

import workbench as wb


def rules_at_each_K(*rules):
    rows = [
        (K, rule, "test", metric, group, 0.1 * K, 2, 0.1, 0.9)
        for metric, group, of in (("accuracy", "", rules), ("shot_accuracy", "few", rules), ("brier_score", "", ("",)))
        for rule in of
        for K in (1, 2, 3)
    ]
    columns = ["K", "rule", "split", "metric", "group", "mean", "seeds", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def test_several_rules_are_lines_and_groups_are_panels_of_a_figure_against_a_knob():
    figure = wb.figures.against_knob(rules_at_each_K("TopK(K)", "AverageK(K)"), "K")
    panels = figure.panels()
    assert list(panels) == ["accuracy", "shot_accuracy (few)", "brier_score"]
    assert list(panels["shot_accuracy (few)"]["line"].unique()) == ["TopK(K)", "AverageK(K)"]
    assert list(panels["brier_score"]["line"].unique()) == ["probabilities"]
    drawn = figure.plot().data
    assert [trace.name for trace in drawn if trace.showlegend] == ["TopK(K)", "AverageK(K)", "probabilities"]


def test_one_rule_is_not_told_in_a_figure_against_a_knob():
    assert wb.figures.against_knob(rules_at_each_K("AverageK(K)"), "K").frame["line"].unique().tolist() == [""]


def test_every_top_K_accuracy_of_a_sweep_names_its_K_and_every_curve_of_sets_too():
    summary = rules_at_each_K("AverageK(K)").replace({"brier_score": "top_k_accuracy@K=1"})
    titles = [note.text for note in wb.figures.against_knob(summary, "K").plot().layout.annotations]
    assert "<b>Top-1 accuracy</b> ↑" in titles
    history = pd.DataFrame({"epoch": [0], "val_accuracy": [0.5], "val_average_K_accuracy": [0.7]})
    assert wb.figures.learning_curves(history, K=3.0).frame["curve"].tolist() == ["top-1", "average-3"]
