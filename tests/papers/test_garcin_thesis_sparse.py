"""Garcin, thesis, Section 6.2: sparsemax, sparse-top, their Jacobians and their losses, Eq. 6.1–6.26."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.losses import Sparsemax, SparseTop
from workbench.operators import project_top_k_simplex, sparsemax


def draw(*shape, seed=0, size=1.0):
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def sets_of(scores, K):
    """H, M and L of Section 6.2.3: the entries at 1, between, and at 0."""
    projection = project_top_k_simplex(scores, K)
    return projection == 1, (projection > 0) & (projection < 1), projection == 0


def threshold_of(scores, K):
    """λ of Eq. 6.14, read off an entry between 0 and 1."""
    projection = project_top_k_simplex(scores, K)
    middle = (projection > 0) & (projection < 1)
    return (scores - projection)[middle][0]


def some_labels(n=40, n_classes=7, seed=1):
    return torch.rand(n, n_classes, generator=torch.Generator().manual_seed(seed)) < 0.35


# The projections


@given(st.integers(2, 30), st.floats(0.01, 1e4), st.integers(0, 99), st.data())
@settings(max_examples=60, deadline=None)
def test_sparse_top_is_in_the_top_K_simplex_and_clips_the_scores_at_one_threshold(n_classes, size, seed, data):
    K = data.draw(st.integers(0, n_classes) | st.floats(0, n_classes))  # Eq. 6.2, 6.14 and 6.15; K need not be whole
    scores = draw(n_classes, seed=seed, size=size)
    q = project_top_k_simplex(scores, K)
    assert ((q >= 0) & (q <= 1)).all()
    assert q.sum().item() == pytest.approx(K, abs=1e-9 * max(1, K))
    if ((q > 0) & (q < 1)).any():
        clipped = (scores - threshold_of(scores, K)).clamp(0, 1)
        torch.testing.assert_close(q, clipped, rtol=0, atol=1e-12 * size + 1e-12)


def test_sparse_top_is_the_closest_point_of_the_top_K_simplex():  # Eq. 6.13
    scores = draw(5)
    for K in (1, 2, 4):
        q = project_top_k_simplex(scores, K)
        corners = [F.one_hot(torch.tensor(A), 5).sum(0).double() for A in itertools.combinations(range(5), K)]
        # The closest point of a convex body has every other point behind it; corners are enough.
        assert max(((scores - q) * (corner - q)).sum() for corner in corners) <= 1e-12


def test_sparsemax_is_the_closest_probability_vector_and_sparse_top_with_K_1():  # Eq. 6.6–6.8
    scores = draw(20, 8)
    p = sparsemax(scores)
    torch.testing.assert_close(p.sum(-1), torch.ones(20, dtype=torch.float64))
    for row, probabilities in zip(scores, p, strict=True):
        support = probabilities > 0
        tau = (row[support].sum() - 1) / support.sum()  # Eq. 6.8 solved on the support
        torch.testing.assert_close(probabilities, (row - tau).clamp(min=0))
        assert (row[~support] <= tau).all()
    assert torch.equal(p, project_top_k_simplex(scores, 1))


def test_the_threshold_is_any_real_number_not_one_between_0_and_1():  # below Eq. 6.14
    scores = torch.tensor([7.0, 6.5, 6.4], dtype=torch.float64)
    assert threshold_of(scores, 1).item() == pytest.approx(6.3)
    assert threshold_of(scores - 20, 1).item() == pytest.approx(-13.7)


def test_each_row_may_have_its_own_K():
    scores, K = draw(6, 5), torch.tensor([0, 1, 2, 3, 4, 5])
    together = project_top_k_simplex(scores, K)
    alone = torch.stack([project_top_k_simplex(row, k) for row, k in zip(scores, K.tolist(), strict=True)])
    torch.testing.assert_close(together, alone)
    assert not together[0].any()
    assert (together[-1] == 1).all()


def test_large_scores_in_float32_sum_to_K():
    for size in (1e-4, 1.0, 1e4):
        scores = draw(50, 200, size=size).float()
        for K in (1, 7, 199):
            q = project_top_k_simplex(scores, K)
            assert (q.sum(-1) - K).abs().max() < 1e-6 * K + 1e-5


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float16, 1e4), (torch.bfloat16, 1e4), (torch.float32, 1e8), (torch.float64, 1e-3)]
)
@pytest.mark.parametrize("K", [1, 2.5, 999, 1000])
def test_scores_of_any_size_and_precision_sum_to_K(dtype, size, K):
    q = project_top_k_simplex(draw(4, 1000, seed=7, size=size).to(dtype), K)
    assert q.dtype == dtype
    rounding = 2 * torch.finfo(dtype).eps * ((q > 0) & (q < 1)).sum(-1)
    assert ((q.double().sum(-1) - K).abs() <= rounding + 1e-9).all()


def test_half_precision_is_projected_in_float32():
    scores = draw(4, 300).bfloat16()
    for K in (1, 2.5, 299):  # bfloat16 itself has no 299
        assert torch.equal(project_top_k_simplex(scores, K), project_top_k_simplex(scores.float(), K).bfloat16())


def test_as_many_labels_as_classes_cost_nothing():
    scores = draw(1, 1000, seed=7, size=1e-3)
    assert SparseTop()(scores, torch.ones(1, 1000, dtype=torch.bool)).item() == pytest.approx(0, abs=1e-9)


@pytest.mark.filterwarnings("error")
def test_scores_may_lie_in_memory_in_any_order():
    scores, Y = draw(7, 40), some_labels()
    torch.testing.assert_close(SparseTop()(scores.T, Y), SparseTop()(scores.T.contiguous(), Y))


def test_more_than_the_classes_that_are_not_ruled_out_is_refused():
    scores = torch.tensor([[0.0, 1.0, -math.inf, -math.inf]])
    assert project_top_k_simplex(scores, 2).tolist() == [[1, 1, 0, 0]]
    with pytest.raises(ValueError, match="ruled out"):
        project_top_k_simplex(scores, 3)
    assert project_top_k_simplex(torch.full((1, 3), -math.inf), 0).tolist() == [[0, 0, 0]]


def test_masked_classes_stay_at_zero():
    scores = torch.tensor([0.3, -math.inf, 0.1, -math.inf])
    assert project_top_k_simplex(scores, 2).tolist() == [1, 0, 1, 0]
    torch.testing.assert_close(sparsemax(scores), torch.tensor([0.6, 0, 0.4, 0]))


def test_tied_scores_share():
    assert project_top_k_simplex(torch.zeros(8), 2).tolist() == [0.25] * 8
    assert sparsemax(torch.tensor([5.0, 5.0, 0.0])).tolist() == [0.5, 0.5, 0]


@pytest.mark.parametrize("K", [-1, 6, math.nan, torch.tensor([1, 2, 3]), torch.tensor([1, 7])])
def test_a_K_that_fits_no_row_is_refused(K):
    with pytest.raises(ValueError, match="K"):
        project_top_k_simplex(torch.zeros(2, 5), K)


# The Jacobians


def test_the_threshold_moves_with_the_entries_between_0_and_1():  # Eq. 6.17
    scores = draw(9, seed=3).requires_grad_()
    threshold_of(scores, 3).backward()
    _, middle, _ = sets_of(scores.detach(), 3)
    torch.testing.assert_close(scores.grad, middle.double() / middle.sum())


@pytest.mark.parametrize("K", [1, 2, 5])
def test_the_jacobian_of_sparse_top_is_diag_m_minus_m_m_over_its_size(K):  # Eq. 6.18, 6.19, 6.21 and 6.22
    for seed in range(5):
        scores = draw(9, seed=seed)
        m = sets_of(scores, K)[1].double()
        if not m.any():  # all entries are settled
            continue
        jacobian = torch.autograd.functional.jacobian(lambda s: project_top_k_simplex(s, K), scores)
        torch.testing.assert_close(jacobian, m.diag() - m[:, None] * m / m.sum())


def test_the_jacobian_equals_finite_differences():
    scores = draw(6, 7).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: project_top_k_simplex(s, torch.tensor([0, 1, 2, 3, 6, 7])), scores)
    assert torch.autograd.gradcheck(lambda s: project_top_k_simplex(s, 2.5), scores)
    assert torch.autograd.gradcheck(sparsemax, scores)


# The losses


def test_the_sparsemax_loss_is_eq_6_12():
    scores, labels = draw(40, 7), torch.arange(40) % 7
    for row, y, value in zip(scores, labels, Sparsemax()(scores, labels), strict=True):
        support = sparsemax(row) > 0
        tau = (row[support].sum() - 1) / support.sum()
        expected = -row[y] + (row[support] ** 2 - tau**2).sum() / 2 + 0.5
        assert value.item() == pytest.approx(expected.item(), abs=1e-10)


def test_the_gradient_of_the_sparsemax_loss_is_sparsemax_minus_the_label():  # Eq. 6.11
    scores, labels = draw(40, 7).requires_grad_(), torch.arange(40) % 7
    Sparsemax()(scores, labels).sum().backward()
    torch.testing.assert_close(scores.grad, (sparsemax(scores) - F.one_hot(labels, 7)).detach())


def test_the_sparsemax_loss_of_many_labels_shares_the_weight_among_them():
    scores, labels = draw(40, 7).requires_grad_(), some_labels()
    values = Sparsemax()(scores, labels)
    values.sum().backward()
    shares = labels / labels.sum(-1, keepdim=True).clamp(min=1)
    with_label = labels.any(-1, keepdim=True)
    torch.testing.assert_close(scores.grad, ((sparsemax(scores) - shares) * with_label).detach())
    assert not with_label.all()
    assert not values[~with_label.squeeze(-1)].any()
    assert (values >= -1e-12).all()


def test_the_sparse_top_loss_is_eq_6_25_ending_in_half_the_number_of_labels():
    scores, labels = draw(40, 7), some_labels()
    for row, Y, value in zip(scores, labels, SparseTop()(scores, labels), strict=True):
        K = int(Y.sum())
        H, M, _ = sets_of(row, K)
        between = (row[M] ** 2 - threshold_of(row, K) ** 2).sum() / 2 if M.any() else 0.0
        expected = -row[Y].sum() + (row[H] - 0.5).sum() + between + K / 2
        assert value.item() == pytest.approx(float(expected), abs=1e-10)


def test_the_gradient_of_the_sparse_top_loss_is_sparse_top_minus_the_labels():  # Eq. 6.24
    scores, labels = draw(40, 7).requires_grad_(), some_labels()
    SparseTop()(scores, labels).sum().backward()
    torch.testing.assert_close(scores.grad, (project_top_k_simplex(scores, labels.sum(-1)) - labels.double()).detach())


def test_with_one_label_sparse_top_is_sparsemax():  # K = 1: the two simplices coincide
    scores, labels = draw(40, 7), torch.arange(40) % 7
    torch.testing.assert_close(SparseTop()(scores, F.one_hot(labels, 7).bool()), Sparsemax()(scores, labels))


def test_the_sparse_top_loss_is_convex_and_never_negative():  # Prop. 6.2.1
    labels = some_labels(200)
    a, b = draw(200, 7, seed=2, size=2.0), draw(200, 7, seed=3, size=2.0)
    chord = (SparseTop()(a, labels) + SparseTop()(b, labels)) / 2
    assert (SparseTop()((a + b) / 2, labels) <= chord + 1e-12).all()
    assert (SparseTop()(a, labels) >= -1e-12).all()


def test_the_sparse_top_loss_is_zero_exactly_when_the_projection_is_the_labels():  # Prop. 6.2.1
    labels = some_labels(200)
    scores = draw(200, 7, size=0.3) + 1.3 * labels
    right = (project_top_k_simplex(scores, labels.sum(-1)) == labels.double()).all(-1)
    values = SparseTop()(scores, labels)
    assert values[right].abs().max() < 1e-12
    assert values[~right].min() > 0
    assert 20 < right.sum() < 180


def test_the_hessian_of_the_sparse_top_loss_is_the_jacobian_of_sparse_top():  # Eq. 6.26
    scores, Y = draw(7, seed=4), some_labels(1, seed=5)
    step = 1e-6

    def slope(s):
        s = s.clone().requires_grad_()
        SparseTop()(s[None], Y).sum().backward()
        return s.grad

    rows = [(slope(scores + step * unit) - slope(scores - step * unit)) / (2 * step) for unit in torch.eye(7).double()]
    m = sets_of(scores, int(Y.sum()))[1].double()
    torch.testing.assert_close(torch.stack(rows), m.diag() - m[:, None] * m / m.sum(), rtol=0, atol=1e-7)


def test_a_row_without_a_label_costs_nothing():
    scores = draw(2, 5).requires_grad_()
    values = SparseTop()(scores, torch.zeros(2, 5, dtype=torch.bool))
    values.sum().backward()
    assert values.tolist() == [0, 0]
    assert not scores.grad.any()
