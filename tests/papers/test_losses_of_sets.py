"""Conformal training, cardinality-aware sets and logit adjustment, held against their equations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck

import workbench as wb
from workbench.losses import CardinalityAware, ConformalTraining, CrossEntropy, LogitAdjustment


def batch(n=10, n_classes=6, size=1.0):
    generator = torch.Generator().manual_seed(0)
    scores = size * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    return scores, torch.randint(n_classes, (n,), generator=generator)


# Conformal training: Stutz et al. 2022, Sec. 3


def test_conformal_training_is_the_log_of_the_mean_cost_of_the_sets_of_the_second_half():
    loss = ConformalTraining(confidence=0.5, temperature=0.7, size_weight=0.3, free_size=1.5, sort_temperature=1e-3)
    scores, labels = batch()
    log_p = scores.log_softmax(-1).tolist()
    first = sorted((log_p[i][labels[i]] for i in range(5)), reverse=True)
    threshold = first[3 - 1]  # ⌈(5 + 1) · 0.5⌉ = 3
    costs = []
    for i in range(5, 10):
        inside = [1 / (1 + math.exp(-(p - threshold) / 0.7)) for p in log_p[i]]
        costs.append(1 - inside[labels[i]] + 0.3 * max(0, sum(inside) - 1.5))
    expected = math.log(sum(costs) / 5)
    assert loss(scores, labels).tolist() == pytest.approx([expected] * 10, rel=1e-6)


def test_the_threshold_of_a_sharp_sort_is_that_of_lac():
    scores, labels = batch(n=39)
    own = scores.log_softmax(-1)[torch.arange(39), labels]
    fitted = wb.LAC(0.8).fit(wb.LogitTable(scores.numpy(), labels.numpy()))
    threshold = ConformalTraining(confidence=0.8, sort_temperature=1e-3).threshold(own)
    assert threshold.exp().item() == pytest.approx(fitted.threshold, rel=1e-6)


def test_the_gradient_of_conformal_training_flows_through_the_quantile_into_the_first_half():
    scores, labels = batch()
    scores.requires_grad_()
    loss = ConformalTraining(confidence=0.7, sort_temperature=0.5)
    loss(scores, labels, reduction="mean").backward()
    assert (scores.grad[:5].abs().sum(-1) > 1e-4).all()
    assert gradcheck(lambda s: loss(s, labels, reduction="mean"), scores)


def test_a_half_too_small_for_the_promise_takes_its_least_probable_label():
    own = torch.tensor([-0.1, -3.0, -1.0])
    assert ConformalTraining(confidence=0.99, sort_temperature=1e-3).threshold(own).item() == pytest.approx(-3.0)


# Cardinality-aware sets: Cortes et al. 2024, Sec. 3


def test_the_cardinality_aware_loss_is_cross_entropy_plus_the_expected_cost_of_a_size():
    loss, m = CardinalityAware(size_cost=0.2, max_size=4), 4
    scores, labels = batch()
    for row, y, value in zip(scores.tolist(), labels.tolist(), loss(scores, labels).tolist(), strict=True):
        order = sorted(range(6), key=lambda j: -row[j])
        r = [sum(row[j] for j in order[:k]) for k in range(1, m + 1)]
        costs = [((y not in order[:k]) + 0.2 * math.log(k)) / (1 + 0.2 * math.log(m)) for k in range(1, m + 1)]
        log_z = math.log(sum(map(math.exp, r)))
        cross_entropy = math.log(sum(map(math.exp, row))) - row[y]
        expected = sum(c * math.exp(x - log_z) for c, x in zip(costs, r, strict=True))
        assert value == pytest.approx(cross_entropy + expected)


def test_the_learnt_sets_are_the_classes_of_positive_score():
    scores, _ = batch(n=200)
    loss = CardinalityAware(max_size=6)
    sizes = wb.Threshold(0.5, min_size=1).fit(table := wb.LogitTable(scores.numpy(), link="sigmoid"))(table).sizes
    assert loss.cardinality(scores).tolist() == sizes.tolist()


@pytest.mark.parametrize(("size_cost", "size"), [(0.01, 3), (3.0, 1)])
def test_a_dear_class_makes_the_learnt_sets_smaller(size_cost, size):
    """Three classes of equal probability, and seven that never occur."""
    scores = torch.zeros(1, 10, dtype=torch.float64, requires_grad=True)
    loss, labels = CardinalityAware(size_cost=size_cost, max_size=6), torch.arange(3)
    optimizer = torch.optim.Adam([scores], lr=0.05)
    for _ in range(400):
        optimizer.zero_grad()
        loss(scores.expand(3, -1), labels, reduction="mean").backward()
        optimizer.step()
    assert loss.cardinality(scores).item() == size


# Logit adjustment: Menon et al. 2021, Eq. 10


def test_logit_adjustment_is_cross_entropy_of_the_scores_plus_tau_log_pi():
    scores, labels = batch()
    counts = np.array([50, 20, 10, 5, 2, 1])
    shifted = scores + 0.7 * torch.from_numpy(np.log(counts / counts.sum()))
    found = LogitAdjustment(tau=0.7).for_classes(counts)(scores, labels)
    torch.testing.assert_close(found, CrossEntropy()(shifted, labels))
    torch.testing.assert_close(LogitAdjustment()(scores, labels), CrossEntropy()(scores, labels))


def test_logit_adjustment_learns_the_ratio_that_pas_thresholds():
    law, prior = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64), torch.tensor([0.7, 0.2, 0.1], dtype=torch.float64)
    loss = LogitAdjustment(tau=1.0).for_classes((100 * prior).round().long().numpy())
    scores = (law / prior).log().expand(3, -1).clone().requires_grad_()
    (loss(scores, torch.arange(3)) * law).sum().backward()
    assert scores.grad.sum(0).abs().max() < 1e-12  # softmax of the scores is proportional to P(y|x) / π
