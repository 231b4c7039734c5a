"""Values and gradients of the quick formulas are those of the equation, written out class by class."""

from __future__ import annotations

import math
from decimal import Decimal

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.operators.counting import log_symmetric_ratio

N = 12


def focal(loss, s, y):
    p = s.softmax(-1).gather(-1, y[:, None]).squeeze(-1)
    return -((1 - p) ** loss.gamma) * p.log()


def hinge(loss, s, y):
    others = s.scatter(-1, y[:, None], -math.inf).sort(dim=-1, descending=True).values
    return (1 + others[:, loss.K - 1] - s.gather(-1, y[:, None]).squeeze(-1)).relu()


def convex_hinge(loss, s, y):
    raised = s + 1 - F.one_hot(y, s.shape[-1])
    largest = raised.sort(dim=-1, descending=True).values[:, : loss.K]
    return (largest.mean(-1) - s.gather(-1, y[:, None]).squeeze(-1)).relu()


def calibrated_hinge(loss, s, y):
    return (1 + s.sort(dim=-1, descending=True).values[:, loss.K] - s.gather(-1, y[:, None]).squeeze(-1)).relu()


def role(loss, s, y):
    start = torch.zeros_like(s).scatter(-1, y[:, None], math.log(0.995 / 0.005))

    def taught(teacher, student):
        target, p = teacher.detach().sigmoid(), student.sigmoid()
        fit = -(target * p.log() + (1 - target) * (1 - p).log()).sum(-1)
        return fit - p.gather(-1, y[:, None]).squeeze(-1).log() + loss.beta * (p.sum(-1).mean() - loss.K) ** 2

    return (taught(start, s) + taught(s, start)) / 2


def two_heads(loss, s, y):
    (z, proposals), n, L = s.unbind(1), *s[:, 0].shape
    in_set = loss.candidates(s, y)
    label = F.one_hot(y, L).bool()
    m = int(in_set.sum())
    value = -proposals.log_softmax(-1)[label] - z[label].sigmoid().log()
    value = value - loss.alpha * n / m * z.sigmoid().log().where(in_set, 0).sum(-1)
    negative = (1 - z.sigmoid()).log().where(~in_set & ~label, 0).sum(-1)
    return value - loss.alpha * n / (n * (L - 1) - m) * negative


def softmax_or(without):
    def value(loss, s, y):
        log_p = s.log_softmax(-1)
        labelled = -(log_p * y).sum(-1) / y.sum(-1).clamp(min=1)
        return torch.where(y.any(-1), labelled, loss.no_label_weight * without(log_p))

    return value


WRITTEN_OUT = [
    (wb.losses.Focal(gamma=0.5), focal),
    (wb.losses.Focal(gamma=2.0), focal),
    (wb.losses.TopKHinge(K=3), hinge),
    (wb.losses.ConvexTopKHinge(K=3), convex_hinge),
    (wb.losses.CalibratedTopKHinge(K=3), calibrated_hinge),
    (wb.losses.NoisedTopK(K=3, epsilon=0.0), calibrated_hinge),
    (wb.losses.ROLE(K=3.0, beta=0.1), role),
    (wb.losses.AverageKTwoHead(K=3.0, alpha=2.0), two_heads),
    (
        wb.losses.SoftmaxUniform(no_label_weight=2.0),
        softmax_or(lambda log_p: -log_p.mean(-1) - math.log(log_p.shape[-1])),
    ),
    (wb.losses.SoftmaxMaxConfidence(no_label_weight=2.0), softmax_or(lambda log_p: log_p.amax(-1))),
]


@pytest.mark.parametrize("n_classes", [7, 40, 333])  # the last in blocks of classes, whose number does not divide it
@pytest.mark.parametrize(("loss", "written_out"), WRITTEN_OUT, ids=[repr(loss) for loss, _ in WRITTEN_OUT])
def test_a_quick_formula_has_the_values_and_the_gradient_of_the_equation(loss, written_out, n_classes):
    generator = torch.Generator().manual_seed(0)
    shape = (N, n_classes) if loss.heads == 1 else (N, 2, n_classes)
    scores = 2 * torch.randn(shape, generator=generator, dtype=torch.float64)
    labels = loss.readable(torch.randint(n_classes, (N,), generator=generator), n_classes)
    if labels.ndim == 2:
        labels[0], labels[1, :2] = False, True  # no label, and several
    results = []
    for function in (loss, lambda s, y: written_out(loss, s, y)):
        given_scores = scores.clone().requires_grad_()
        values = function(given_scores, labels)
        values.mean().backward()
        results.append((values.detach(), given_scores.grad))
    torch.testing.assert_close(*results, rtol=1e-9, atol=1e-12)


def test_a_row_that_is_sure_has_a_focal_loss_without_a_nan():
    scores = torch.tensor([[60.0, 0.0], [0.0, -math.inf]], requires_grad=True)
    values = wb.losses.Focal(gamma=0.5)(scores, torch.tensor([0, 0]))
    values.sum().backward()
    assert values.tolist() == [0, 0]
    assert not scores.grad.isnan().any()


@pytest.mark.parametrize("K", [2, 3])
def test_a_hinge_of_fewer_classes_than_K_costs_nothing(K):
    scores = torch.tensor([[0.0, 1.0, -math.inf, -math.inf]])
    assert wb.losses.TopKHinge(K=K)(scores, torch.tensor([0])).item() == 0


def symmetric(weights, k):
    """e_0 … e_k of these weights, multiplied out."""
    e = [Decimal(1)] + [Decimal(0)] * k
    for weight in weights:
        e = [1] + [e[i] + weight * e[i - 1] for i in range(1, k + 1)]
    return e


@settings(max_examples=30, deadline=None)
@given(st.integers(2, 50), st.integers(1, 8), st.sampled_from([0.0, 0.3, 3.0, 40.0]), st.integers(0, 1000))
def test_power_sums_give_the_symmetric_polynomials_multiplied_out(n_classes, k, spread, seed):
    k = min(k, n_classes)
    generator = torch.Generator().manual_seed(seed)
    log_weights = spread * torch.randn(1, n_classes, generator=generator, dtype=torch.float64)
    log_weights.requires_grad_()
    ratio = log_symmetric_ratio(log_weights, k)
    ratio.sum().backward()

    x = [Decimal(weight).exp() for weight in log_weights.tolist()[0]]
    e = symmetric(x, k)
    assert ratio.item() == pytest.approx(float((e[k] / e[k - 1]).ln()), rel=1e-9, abs=1e-9)
    for j, slope in enumerate(log_weights.grad.tolist()[0]):
        others = [Decimal(0), *symmetric(x[:j] + x[j + 1 :], k)]  # e_{-1} … e_k
        assert slope == pytest.approx(float(x[j] * (others[k] / e[k] - others[k - 1] / e[k - 1])), rel=1e-7, abs=1e-10)


def test_a_set_of_many_classes_neither_overflows_nor_underflows():
    tied = torch.cat([torch.full((1, 151), 8.0), torch.zeros(1, 149)], -1)
    few = torch.zeros(1, 1000)
    for log_weights, k in ((tied, 150), (few, 600)):
        single, double = (log_symmetric_ratio(log_weights.to(dtype), k) for dtype in (torch.float32, torch.float64))
        torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=1e-5)
    assert double.exp().item() == pytest.approx((1000 - 600 + 1) / 600)  # (1000 choose 600) / (1000 choose 599)
