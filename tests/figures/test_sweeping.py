"""Figures of sweeps: rules are lines, groups are panels."""

from __future__ import annotations

import pandas as pd
import pytest

import workbench as wb
from workbench.runs.plan import planned


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


def test_the_plan_of_a_sweep_has_a_cell_for_every_run_with_its_accuracy_or_its_time():
    plan = pd.DataFrame(
        [(0.1, 0, "trained", None, 0.61), (0.2, 0, "to train", 40.0, None), (0.2, 1, "failed", None, None)],
        columns=["loss.epsilon", "seed", "state", "seconds", "accuracy"],
    )
    figure = wb.figures.sweep_plan(plan)
    assert figure.frame[["value", "line", "cell"]].to_numpy().tolist() == [
        ["0.1", "seed = 0", "61.0%"],
        ["0.2", "seed = 0", "about 40 s"],
        ["0.2", "seed = 1", "failed"],
    ]
    assert figure.subtitle.startswith("n = 3 runs: 1 trained, 1 failed, 1 to train, about 40 s in all")
    assert "The best that is trained has 61.0% at ε = 0.1, seed = 0" in figure.text
    drawn = figure.plot()
    assert list(zip(drawn.data[0].x, drawn.data[0].y, strict=True)) == [(0, 0), (1, 0), (1, 1)]
    unknown = wb.figures.sweep_plan(plan.assign(seconds=None))
    assert "in all" not in unknown.subtitle
    assert unknown.frame["cell"][1] == "to train"
    for wrong in (plan.assign(state="lost"), plan[["state", "seconds", "accuracy"]], plan[:0]):
        with pytest.raises(ValueError, match="a plan has a run, a column for what is varied and the states"):
            wb.figures.sweep_plan(wrong)


def test_what_is_set_beforehand_is_drawn_as_a_history_is():
    loss = wb.losses.NoisedTopK(K=5, epsilon=wb.schedules.anneal(3, 0.2))
    figure = wb.figures.learning_curves(planned(wb.Run("digits", loss=loss, epochs=4, learning_rate=0.1)))
    assert figure.title == "What changes while it learns"
    assert list(figure.panels()) == ["learning rate", "loss.epsilon"]
    assert figure.panels()["learning rate"]["value"].tolist() == pytest.approx([0.1, 0.0854, 0.05, 0.0146], abs=1e-4)
    titles = [note.text for note in figure.plot().layout.annotations]
    assert titles == ["<b>learning rate</b>", "<b>ε</b>"]
