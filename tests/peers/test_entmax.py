"""Agreement with entmax, which bisects where we solve."""

from __future__ import annotations

import entmax
import pytest
import torch

from workbench.losses import Sparsemax
from workbench.operators import project_top_k_simplex, sparsemax


def draw(n=50, n_classes=60, size=1.0):
    return size * torch.randn(n, n_classes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("K", [1, 2, 30, 59])
def test_the_projection_on_the_top_K_simplex_equals_budget_bisect(K, size):
    scores, direction = draw(size=size), draw(n=1)
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    found, expected = project_top_k_simplex(ours, K), entmax.budget_bisect(theirs, budget=K, n_iter=60)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-6)
    (found * direction).sum().backward()
    (expected * direction).sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [0.01, 1.0, 100.0])
def test_sparsemax_equals_theirs(size):
    torch.testing.assert_close(sparsemax(draw(size=size)), entmax.sparsemax(draw(size=size)))


def test_the_sparsemax_loss_and_its_gradient_equal_theirs():
    labels = torch.arange(50)
    ours, theirs = draw().requires_grad_(), draw().requires_grad_()
    found, expected = Sparsemax()(ours, labels), entmax.sparsemax_loss(theirs, labels)
    torch.testing.assert_close(found, expected)
    found.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(ours.grad, theirs.grad)


def test_more_than_all_classes_is_refused_where_theirs_answers_ones():
    assert (entmax.budget_bisect(torch.zeros(1, 3), budget=5) == 1).all()
    with pytest.raises(ValueError, match="from 0 to 3"):
        project_top_k_simplex(torch.zeros(1, 3), 5)
