"""Top-1 and top-5 accuracy against the weight of top-5 in P_K: Petersen et al. 2022, Fig. 2 (left)."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.losses import DifferentiableTopK
from workbench.store import Store
from workbench.training import Run

WEIGHTS = (0.0, 0.5, 1.0)
METRICS = [wb.metrics.top_k_accuracy.at(K=K) for K in (1, 2)]


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """A tiny sweep over mixtures of top-1 and top-2, by two sorts."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 120)
    inputs = np.eye(4, dtype=np.float32)[labels] + rng.normal(size=(120, 4)).astype(np.float32)
    data = wb.Dataset.from_arrays(inputs, labels)
    run = Run(data, model="linear", loss=DifferentiableTopK(p_k=(1.0, 0.0), m=4), epochs=1, device="cpu")
    over = {"loss.p_k": [(1 - weight, weight) for weight in WEIGHTS], "loss.operator": ["soft_sort", "splitter"]}
    store = Store(tmp_path_factory.mktemp("runs"))
    return wb.sweep(run, over, rule=wb.AverageK(2), metrics=METRICS, store=store, progress=False)


def test_p_k_is_swept_and_both_accuracies_are_drawn_against_the_weight_of_top_K(found):
    figure = wb.figures.against_mixture(found.summary(), K=2)
    assert figure.frame["metric"].unique().tolist() == [metric.name for metric in METRICS]
    assert figure.frame["line"].unique().tolist() == ["operator = soft_sort", "operator = splitter"]
    for _, part in figure.frame.groupby(["metric", "line"]):
        assert part["x"].tolist() == list(WEIGHTS)
    run = next(
        run for run, setting in zip(found.runs, found.settings, strict=True) if setting["loss.p_k"] == (0.5, 0.5)
    )
    half = figure.frame.query("x == 0.5 and line == 'operator = soft_sort'").set_index("metric")["mean"]
    for K, metric in zip((1, 2), METRICS, strict=True):
        assert half[metric.name] == pytest.approx(wb.metrics.top_k_accuracy(run.tables["test"], K))
    assert "weight of top-2" in figure.text
    assert len(figure.plot().data) == 4


def test_the_column_may_hold_tuples_or_their_text(found):
    summary = found.summary()
    as_text = wb.figures.against_mixture(summary, K=2).frame
    assert isinstance(summary["loss.p_k"].iloc[0], str)
    tuples = summary.assign(**{"loss.p_k": [eval(text) for text in summary["loss.p_k"]]})
    assert wb.figures.against_mixture(tuples, K=2).frame.equals(as_text)


def test_a_summary_without_mixtures_or_without_both_accuracies_says_how_to_get_them(found):
    summary = found.summary()
    with pytest.raises(ValueError, match=r"no column loss\.p_k; sweep over it"):
        wb.figures.against_mixture(summary.drop(columns="loss.p_k"))
    with pytest.raises(ValueError, match=r"lacks top_k_accuracy@K=5; give wb\.sweep metrics="):
        wb.figures.against_mixture(summary, K=5)
    with pytest.raises(ValueError, match="the summary has test, val"):
        wb.figures.against_mixture(summary, K=2, split="train")
