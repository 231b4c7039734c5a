"""Conditional risk: Definitions A.1 and A.2 of Garcin et al. 2022, seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.figures.losses.evaluation import on_three_classes
from workbench.figures.losses.risks import top_K_preserving
from workbench.figures.losses.ternary import CORNERS, contour
from workbench.losses import LOSSES
from workbench.losses.noised import largest_calibrated_epsilon


def preserving_as_printed(s: list[float], p: list[float], K: int) -> bool:
    """Definition A.1, line by line."""
    top = lambda values, k: sorted(values, reverse=True)[k - 1]  # noqa: E731
    return all(
        (not p[k] > top(p, K + 1) or s[k] > top(s, K + 1)) and (not p[k] < top(p, K) or s[k] < top(s, K))
        for k in range(len(s))
    )


@settings(max_examples=200, deadline=None)
@given(
    scores=st.lists(st.integers(0, 4), min_size=4, max_size=4),
    weights=st.lists(st.integers(0, 4), min_size=4, max_size=4),
    K=st.integers(1, 3),
)
def test_top_K_preserving_is_definition_A_1(scores, weights, K):
    found = top_K_preserving(np.array([scores], float), np.array(weights, float), K)[0]
    assert found == preserving_as_printed(scores, weights, K)


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_the_risk_is_the_mean_of_the_loss_over_the_law_of_the_label(loss_class):
    loss, law = on_three_classes(loss_class), (0.5, 0.3, 0.2)
    figure = wb.figures.conditional_risk(loss, law, K=2, steps=11)
    exact = loss.exact()
    for row in figure.frame.sample(4, random_state=0).itertuples():
        point = torch.tensor([[row.s0, row.s1, row.s2]])
        point = torch.stack([point, point], dim=1) if loss.heads == 2 else point
        total = 0.0
        for label, share in enumerate(law):
            labels = torch.tensor([label])
            total += share * exact(point, torch.eye(3)[labels].bool() if loss.labels == "many" else labels).item()
        assert row.risk == pytest.approx(total)
        assert row.value >= -1e-9


def test_cross_entropy_is_lowest_at_the_log_probabilities():
    law = (0.5, 0.3, 0.2)
    figure = wb.figures.conditional_risk(wb.losses.CrossEntropy(), law, K=2)
    logs = np.log(law)
    assert figure.minimiser == pytest.approx(logs - logs.mean(), abs=1e-3)
    assert (figure.bayes_set, figure.keeps_bayes_set) == ((0, 1), True)
    # The cheapest way out is a tie of classes 1 and 2: both at the logarithm of their mean probability.
    entropy = -sum(p * math.log(p) for p in law)
    tied = -0.5 * math.log(0.5) - 0.5 * math.log(0.25)
    assert figure.price == pytest.approx(tied - entropy, abs=1e-6)


def test_the_hinge_is_not_calibrated_when_no_class_is_likelier_than_the_rest():
    """K = 1: with every π_k below ½ equal scores are optimal (Garcin et al. 2022, after Yang and Koyejo)."""
    law = (0.4, 0.35, 0.25)
    hinge = wb.figures.conditional_risk(wb.losses.TopKHinge(K=1), law)
    calibrated = wb.figures.conditional_risk(wb.losses.CalibratedTopKHinge(K=1), law)
    assert not hinge.keeps_bayes_set
    assert hinge.minimiser == pytest.approx((0, 0, 0), abs=1e-3)
    assert calibrated.price == pytest.approx(0.05)  # 0.4 − 0.35: the next class in its place
    assert wb.figures.conditional_risk(wb.losses.TopKHinge(K=1), (0.6, 0.3, 0.1)).keeps_bayes_set


def test_a_large_epsilon_breaks_the_calibration_of_the_noised_loss_exactly_where_theory_says():
    border = largest_calibrated_epsilon(2)  # with K + 1 = L classes: all tied
    for factor, keeps in ((0.95, True), (1.05, False)):
        figure = wb.figures.conditional_risk(wb.losses.NoisedTopK(K=2, epsilon=factor * border), steps=31)
        assert figure.keeps_bayes_set is keeps
        assert ("leaving {0, 1} is free" in figure.subtitle) is not keeps


def test_the_map_agrees_with_the_refined_price():
    loss = wb.losses.CalibratedTopKHinge(K=2)
    figure = wb.figures.calibration_map(loss, steps=11)
    assert (figure.frame.iloc[:, :3].sum(axis=1) - 1).abs().max() < 1e-9
    for row in figure.frame.sample(6, random_state=2).itertuples():
        law = (row.pi0, row.pi1, row.pi2)
        ordered = sorted(law, reverse=True)
        if ordered[1] - ordered[2] > 1e-9:
            assert row.value == pytest.approx(wb.figures.conditional_risk(loss, law, steps=61).price, abs=0.02)
        else:
            assert row.value == 0


def test_the_map_is_empty_where_the_noise_is_too_large_and_full_below():
    small, large = (
        wb.figures.calibration_map(wb.losses.NoisedTopK(K=2, epsilon=epsilon), steps=11) for epsilon in (0.2, 1.5)
    )
    assert large.frame["value"].max() == pytest.approx(0, abs=1e-9)
    assert "free for 100%" in large.subtitle
    assert "free for 0%" in small.subtitle


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probabilities": (0.5, 0.5)}, "three numbers"),
        ({"probabilities": (0.5, 0.6, -0.1)}, "three numbers"),
        ({"probabilities": (0.5, 0.6, 0.1)}, "sum to 1"),
        ({"K": 3}, "1 or 2"),
    ],
)
def test_risk_refuses_in_words(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.conditional_risk(wb.losses.CrossEntropy(), **arguments)


def test_a_law_without_one_of_the_labels_is_drawn():
    figure = wb.figures.conditional_risk(wb.losses.CrossEntropy(), (0.7, 0.3, 0.0), K=2, steps=21)
    assert figure.keeps_bayes_set
    assert figure.plot().data


def test_equal_probabilities_leave_nothing_to_break():
    figure = wb.figures.conditional_risk(wb.losses.CrossEntropy(), (1 / 3, 1 / 3, 1 / 3), K=1, steps=21)
    assert figure.price == math.inf
    assert len(figure.marks) == 1


def test_the_colours_of_the_risk_mean_the_same_whatever_the_law_of_the_label():
    loss = wb.losses.CrossEntropy()
    figures = [wb.figures.conditional_risk(loss, law, K=1, steps=21) for law in ((1, 0, 0), (0.5, 0.3, 0.2), (0, 0, 1))]
    assert len({figure.value_range for figure in figures}) == 1
    assert all(figure.frame["value"].max() <= figure.value_range[1] for figure in figures)


@pytest.mark.parametrize(
    ("loss", "K"),
    [
        (wb.losses.CrossEntropy(), 1),
        (wb.losses.CrossEntropy(), 2),
        (wb.losses.CalibratedTopKHinge(K=2), 2),
        (wb.losses.SmoothTopKHinge(K=2, temperature=0.5), 2),
    ],
    ids=repr,
)
def test_a_calibrated_loss_is_free_for_no_law_however_near_a_tie(loss, K):
    figure = wb.figures.calibration_map(loss, K, steps=31)
    assert not figure.frame["free"].any()
    assert figure.subtitle.endswith("free for 0%")


def test_the_map_outlines_the_laws_whose_bayes_set_the_risk_does_not_keep():
    for loss in (wb.losses.TopKHinge(K=1), wb.losses.ConvexTopKHinge(K=2), wb.losses.TopKHinge(K=2)):
        frame = wb.figures.calibration_map(loss, steps=11).frame
        untied = frame[np.diff(np.sort(frame[["pi0", "pi1", "pi2"]], axis=1), axis=1).min(axis=1) > 1e-9]
        for *law, _, free in untied.sample(6, random_state=0).itertuples(index=False):
            kept = wb.figures.conditional_risk(loss, law, steps=19).keeps_bayes_set
            assert free != kept, f"{loss} at {law}"


def test_a_line_runs_around_what_is_free_and_nothing_is_drawn_where_nothing_is():
    hinge, proper = (
        wb.figures.calibration_map(loss, K=1, steps=31) for loss in (wb.losses.TopKHinge(K=1), wb.losses.CrossEntropy())
    )
    line = contour(hinge, "free", 0.5)
    assert len(line) > 20
    assert len(contour(proper, "free", 0.5)) == 0
    shares = np.linalg.solve(np.vstack([CORNERS.T, np.ones(3)]), np.vstack([line.T, np.ones(len(line))]))
    border = shares[:, np.isfinite(shares).all(axis=0)].max(axis=0)
    assert abs(border - 0.5).max() < 1 / 30  # the plain hinge fails where no class has a majority
