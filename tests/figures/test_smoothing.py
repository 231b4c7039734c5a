"""Sparsity of gradients and the bounds of the smoothed top-K: measured against plain arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.operators import kth_largest

SCORES = np.random.default_rng(0).normal(size=(40, 30))
LABELS = np.random.default_rng(1).integers(0, 30, 40)


def counted_directly(loss: wb.losses.Loss) -> float:
    """Gradient coordinates of one row after the other, a mean over the rows that have any."""
    scores = torch.tensor(SCORES, requires_grad=True)
    loss(scores, torch.tensor(LABELS), generator=torch.Generator().manual_seed(0)).sum().backward()
    sizes = scores.grad.abs()
    counts = (sizes > 1e-9 * sizes.amax(-1, keepdim=True)).sum(-1)
    return float(counts[counts > 0].double().mean())


@pytest.mark.parametrize("loss_class", [wb.losses.NoisedTopK, wb.losses.ExactNoisedTopK])
def test_the_count_is_that_of_the_gradients(loss_class):
    figure = wb.figures.gradient_sparsity(loss_class(K=3), SCORES, LABELS, epsilons=(0.05, 0.8))
    assert figure.frame["classes"].tolist() == pytest.approx(
        [counted_directly(loss_class(K=3, epsilon=epsilon)) for epsilon in (0.05, 0.8)]
    )


def test_rounding_of_exact_smoothing_is_no_gradient():
    """At ε = 0.001 noise changes no rank: only the label and the (K + 1)-th largest score are pulled at."""
    loss = wb.losses.ExactNoisedTopK(K=2)
    frame = wb.figures.gradient_sparsity(loss, (2.4, 2.6, 2.3, 0.5), [3], epsilons=(0.001, 0.2)).frame
    assert frame["classes"].tolist() == [2.0, 4.0]


def test_a_table_gives_the_same_as_its_scores_and_labels():
    epsilons = (0.1, 1.0)
    table = wb.LogitTable(SCORES, LABELS)
    ours = wb.figures.gradient_sparsity(wb.losses.NoisedTopK(K=3), table, epsilons=epsilons)
    assert ours.frame.equals(wb.figures.gradient_sparsity([wb.losses.NoisedTopK(K=3)], SCORES, LABELS, epsilons).frame)
    made = {"table": table}
    exec(ours.code, made)
    assert made["figure"].frame.equals(ours.frame)


def test_of_a_long_table_rows_are_spread_evenly():
    table = wb.LogitTable(np.tile(SCORES, (10, 1)), np.arange(400) // 40 * 3)  # sorted by class
    chosen = np.unique(np.linspace(0, 399, 200).astype(int))
    losses, epsilons = [wb.losses.NoisedTopK(K=3)], (0.1, 1.0)
    of_table = wb.figures.gradient_sparsity(losses, table, epsilons=epsilons)
    of_rows = wb.figures.gradient_sparsity(losses, table.scores[chosen], table.labels[chosen], epsilons)
    assert of_table.frame.equals(of_rows.frame)
    assert "n = 200 rows" in of_table.subtitle


def test_scores_of_half_precision_are_taken_too():
    scores, loss = torch.tensor([[2.5, 2.0, 1.0, 0.5]]), wb.losses.NoisedTopK(K=2)
    figure = wb.figures.gradient_sparsity(loss, scores.bfloat16(), torch.tensor([3]))
    assert figure.frame.equals(wb.figures.gradient_sparsity(loss, scores, [3]).frame)


def test_draws_cap_the_gradient_and_exact_smoothing_does_not():
    """The "4 of 100" of Figure 2 (Garcin et al. 2022) are n_samples + 1."""
    losses = [wb.losses.NoisedTopK(K=3, n_samples=3), wb.losses.ExactNoisedTopK(K=3), wb.losses.CrossEntropy()]
    frame = wb.figures.gradient_sparsity(losses, SCORES, LABELS, epsilons=(0.01, 1, 100)).frame
    sampled, exact, dense = (part["classes"].to_numpy() for _, part in frame.groupby("loss", sort=False))
    assert sampled.max() <= 4
    assert sampled[-1] > 3
    assert exact[-1] == 30
    assert dense.tolist() == [30, 30, 30]


def test_rows_that_beat_their_margin_do_not_count():
    scores = [[5.0, 0.0, 0.0], [0.0, 0.0, 5.0]]
    frame = wb.figures.gradient_sparsity(wb.losses.ExactNoisedTopK(K=1), scores, [0, 0], epsilons=(0.01, 0.02)).frame
    assert frame["rows"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("losses", "options", "message"),
    [
        (wb.losses.CrossEntropy(), {}, "has an ε"),
        ([], {}, "1 to 8"),
        (wb.losses.NoisedTopK(K=1), {"epsilons": (1, 0.5)}, "rising"),
        (wb.losses.NoisedTopK(K=1), {"epsilons": (0, 0.5)}, "above 0"),
        (wb.losses.NoisedTopK(K=1), {"scores": [[1, 2], [3, 4]], "labels": [0]}, r"\(n, L\) and \(n,\)"),
        (
            wb.losses.NoisedTopK(K=1),
            {"scores": wb.LogitTable(SCORES, LABELS), "labels": LABELS},
            "a table has labels of its own",
        ),
    ],
)
def test_sparsity_refuses_in_words(losses, options, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.gradient_sparsity(losses, **options)


@settings(max_examples=12, deadline=None)
@given(
    scores=st.lists(st.floats(-3, 3), min_size=2, max_size=7),
    K=st.integers(1, 6),
    epsilon=st.floats(0.05, 5),
)
def test_every_bound_holds(scores, K, epsilon):
    frame = wb.figures.smoothing_bounds(scores, min(K, len(scores) - 1), epsilons=(epsilon, 2 * epsilon)).frame
    assert (frame["measured"] <= frame["bound"] * (1 + 1e-6)).all()


def test_rounding_breaks_no_bound():
    """The slope of the sum of the 3 largest of these is √3, which is also its bound."""
    frame = wb.figures.smoothing_bounds((2.4, 2.6, 2.3, 0.5), K=3, epsilons=(0.01, 0.1)).frame
    assert (frame["measured"] <= frame["bound"]).all()


def test_the_bounds_are_those_of_propositions_3_3_and_3_5():
    frame = wb.figures.smoothing_bounds((3.0, 1.0, 2.0), K=2, epsilons=(0.5, 1.0)).frame
    bounds = frame[frame["epsilon"] == 0.5]["bound"].tolist()
    assert bounds == pytest.approx(
        [0.5 * 2 * math.sqrt(2 * math.log(3)), 8 * math.sqrt(6), math.sqrt(2), 2 * math.sqrt(6)]
    )


def test_two_classes_measure_what_calculus_gives():
    """E max(a + εZ, b + εZ') has second derivative φ(d) / (√2 ε) along a − b, with d = (a − b) / (√2 ε)."""
    a, b, epsilon = 0.7, 0.1, 0.4
    frame = wb.figures.smoothing_bounds((a, b), K=1, epsilons=(epsilon, 2 * epsilon)).frame
    distance, curvature, slope, _ = frame[frame["epsilon"] == epsilon]["measured"]
    d = (a - b) / (math.sqrt(2) * epsilon)
    density, share = math.exp(-d * d / 2) / math.sqrt(2 * math.pi), 0.5 * (1 + math.erf(d / math.sqrt(2)))
    assert curvature == pytest.approx(2 * density / (math.sqrt(2) * epsilon), rel=1e-4)
    assert slope == pytest.approx(math.hypot(share, 1 - share), rel=1e-6)
    smoothed = a * share + b * (1 - share) + math.sqrt(2) * epsilon * density
    assert distance == pytest.approx(smoothed - kth_largest(torch.tensor([a, b]), 1).item(), rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"K": 4}, "from 1 to 3"),
        ({"K": 0}, "from 1 to 3"),
        ({"scores": [[1.0, 2.0]]}, "one score vector"),
        ({"epsilons": (1.0,)}, "at least two"),
    ],
)
def test_bounds_refuse_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.smoothing_bounds(**arguments)
