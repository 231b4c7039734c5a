"""Garcin et al. 2022, stochastic smoothing of the top-K calibrated hinge loss: the top-K operators.

Eq. 1, 2, 6, 7 and 11, Prop. 3.3 and 3.5, the illustration of Sec. 3.2.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr
from trying import draw, exact_top_sum, gradient

from workbench.operators import chebyshev, exact_noised_kth_largest, kth_largest, noised_kth_largest, top_sum
from workbench.operators.noised import _holders_by_arrival

EXAMPLE = torch.tensor([2.4, 2.6, 2.3, 0.5], dtype=torch.float64)  # Sec. 3.2, Illustration
EXAMPLE_NOISE = torch.tensor(
    [[0.2, -0.1, 0.1, 0.3], [0.1, 0.1, -0.1, 0.1], [-0.1, -0.1, 0.1, -0.1]], dtype=torch.float64
)


# Eq. 1 and 2: the top-K operators


def test_kth_largest_and_top_sum_are_eq_1_and_eq_2():
    scores = draw(20, 7)
    for k in range(1, 8):
        ranked = [sorted(row, reverse=True) for row in scores.tolist()]
        assert kth_largest(scores, k).tolist() == [row[k - 1] for row in ranked]
        assert top_sum(scores, k).tolist() == pytest.approx([sum(row[:k]) for row in ranked])
    assert top_sum(scores, 0).tolist() == [0.0] * 20


def test_their_gradients_are_one_at_the_kth_class_and_one_at_the_k_largest():
    scores = draw(20, 7)
    for k in range(1, 8):
        order = scores.argsort(-1, descending=True)
        assert torch.equal(gradient(kth_largest, scores, k), F.one_hot(order[:, k - 1], 7).double())
        assert torch.equal(gradient(top_sum, scores, k), F.one_hot(order[:, :k], 7).sum(1).double())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.data())
@settings(max_examples=50, deadline=None)
def test_of_tied_classes_the_lower_index_counts_as_larger(values, data):
    k = data.draw(st.integers(1, len(values)))
    order = sorted(range(len(values)), key=lambda j: (-values[j], j))
    scores = torch.tensor(values, dtype=torch.float64)
    assert gradient(kth_largest, scores, k).nonzero().flatten().tolist() == [order[k - 1]]
    assert gradient(top_sum, scores, k).nonzero().flatten().tolist() == sorted(order[:k])


@pytest.mark.parametrize("operator", [kth_largest, top_sum])
@pytest.mark.parametrize("k", [-1, 8, 1.0, True])
def test_a_place_that_does_not_exist_is_refused(operator, k):
    with pytest.raises(ValueError, match="7 classes"):
        operator(draw(2, 7), k)


def test_a_whole_number_of_numpy_is_a_place():
    scores = draw(3, 8)
    for operator in (kth_largest, top_sum):
        assert torch.equal(operator(scores, np.int64(2)), operator(scores, 2))


def test_a_row_with_nan_does_not_change_which_of_tied_classes_are_largest():
    tied = torch.zeros(1, 10, requires_grad=True)
    beside = torch.cat([torch.tensor([[math.nan] * 2 + [1.0] * 8]), tied])
    assert gradient(lambda scores, k: top_sum(scores, k)[1:], beside.detach(), 5)[1].tolist() == [1.0] * 5 + [0.0] * 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])  # by way of NumPy, and of torch
def test_a_row_with_nan_has_no_kth_largest_score(dtype):
    scores = torch.tensor([[math.nan, 1, 2], [0, 1, 2]], dtype=dtype)
    for k in (1, 2, 3):
        for operator in (kth_largest, top_sum):
            assert operator(scores, k).isnan().tolist() == [True, False]


def test_integer_scores_are_refused():
    for operator in (kth_largest, top_sum, lambda s, k: exact_noised_kth_largest(s, k, 1.0)):
        with pytest.raises(ValueError, match="floating-point"):
            operator(torch.arange(5), 2)


# Definitions 3.2 and 3.4, Propositions 3.3 and 3.5: exact smoothing


def test_exact_smoothing_of_the_example_is_2_4558_and_its_gradient_who_holds_the_second_place():
    assert exact_noised_kth_largest(EXAMPLE, 2, 1.0).item() == pytest.approx(2.455775, abs=1e-6)
    weights = gradient(exact_noised_kth_largest, EXAMPLE, 2, 1.0)
    assert weights.tolist() == pytest.approx([0.3245, 0.3159, 0.3172, 0.0424], abs=5e-5)


def slow_expectation(scores, k, epsilon):
    """E[top_k(s + εZ)] by a fine trapezoid, counting one class after the other."""
    scores = scores.numpy()
    t = np.sort(scores)[-k] + epsilon * np.linspace(-8.5, 9.5, 1201)
    fewer = np.zeros((k, len(t)))  # P(N(t) = 0), …, P(N(t) = k − 1)
    fewer[0] = 1
    for score in scores[scores > t[0] - 8.5 * epsilon]:
        above = ndtr((score - t) / epsilon)
        fewer[1:] = fewer[1:] * (1 - above) + fewer[:-1] * above
        fewer[0] *= 1 - above
    return t[0] + np.trapezoid(1 - fewer.sum(0), t)


@pytest.mark.parametrize("epsilon", [1e-3, 0.2, 100.0])
@pytest.mark.parametrize(("n_classes", "k"), [(3, 1), (3, 2), (3, 3), (60, 1), (60, 51), (1000, 6), (10_000, 2)])
def test_exact_smoothing_is_accurate_to_1e_6_for_few_and_many_classes(n_classes, k, epsilon):
    crowd = torch.full((n_classes,), -4 * epsilon, dtype=torch.float64)  # many classes just within reach of a few
    crowd[: max(1, k // 2)] = 0
    for scores in (draw(n_classes), torch.zeros(n_classes, dtype=torch.float64), crowd):
        error = exact_noised_kth_largest(scores, k, epsilon).item() - slow_expectation(scores, k, epsilon)
        assert abs(error) < 1e-8 * max(1, epsilon)
        weights = gradient(exact_noised_kth_largest, scores, k, epsilon)
        assert weights.min() >= 0
        assert weights.sum().item() == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0])
def test_the_exact_gradient_equals_finite_differences(epsilon):
    scores = draw(4, 9, size=epsilon)
    weights = gradient(exact_noised_kth_largest, scores, 3, epsilon)
    for j in range(9):
        step = 1e-4 * epsilon * F.one_hot(torch.tensor(j), 9)
        rise = exact_noised_kth_largest(scores + step, 3, epsilon) - exact_noised_kth_largest(scores - step, 3, epsilon)
        torch.testing.assert_close(rise / (2e-4 * epsilon), weights[:, j], rtol=0, atol=1e-6)


def test_exact_smoothing_in_float32_is_good_to_a_few_millionths():
    scores = draw(8, 1000)
    for epsilon in (0.01, 0.2, 1.0):
        error = exact_noised_kth_largest(scores.float(), 6, epsilon) - exact_noised_kth_largest(scores, 6, epsilon)
        assert error.abs().max() < 1e-5


@pytest.mark.parametrize("k", [1, 6])
def test_exact_smoothing_in_float32_of_ten_thousand_tied_classes_does_not_add_up_their_rounding(k):
    tied = torch.zeros(10_000)
    error = exact_noised_kth_largest(tied, k, 1.0) - exact_noised_kth_largest(tied.double(), k, 1.0)
    assert abs(error) < 1e-5
    assert gradient(exact_noised_kth_largest, tied, k, 1.0).sum().item() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_few_chebyshev_points_stand_for_many_numbers(dtype):
    x = (2 * torch.rand(3, 500, generator=torch.Generator().manual_seed(0)) - 1).to(dtype)
    x[:, :100] = -math.inf  # of which these are not counted
    points = chebyshev.points(12, x.device)

    def of_degree_11(x):
        return x**11 - 0.5 * x**4 + 1

    total = (chebyshev.weights(x, 12) * of_degree_11(points)).sum(-1)
    torch.testing.assert_close(total, of_degree_11(x[:, 100:].double()).sum(-1), rtol=1e-13, atol=0)
    found = chebyshev.interpolated(of_degree_11(points).expand(3, -1), x)
    assert (found[:, :100] == 0).all()
    torch.testing.assert_close(found[:, 100:], of_degree_11(x[:, 100:]), rtol=0, atol=50 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("offset", [0.0, 100.0, -1000.0])
def test_exact_smoothing_in_float32_does_not_mind_where_the_scores_are(offset):
    scores, epsilon = offset + draw(20, 50, size=0.03, dtype=torch.float32), 0.01
    rounding = abs(offset) * torch.finfo(torch.float32).eps
    smoothed = exact_noised_kth_largest(scores, 3, epsilon)
    error = (smoothed - exact_noised_kth_largest(scores.double(), 3, epsilon)).abs().max()
    assert error < 1e-5 * epsilon + rounding
    slopes = [gradient(exact_noised_kth_largest, s, 3, epsilon).double() for s in (scores, scores.double())]
    torch.testing.assert_close(*slopes, rtol=0, atol=1e-6)


def test_classes_masked_out_never_hold_the_place():
    masked = torch.cat([EXAMPLE, torch.full((3,), -math.inf, dtype=torch.float64)])
    assert exact_noised_kth_largest(masked, 2, 1.0) == pytest.approx(exact_noised_kth_largest(EXAMPLE, 2, 1.0).item())
    assert gradient(exact_noised_kth_largest, masked, 2, 1.0)[4:].abs().max() < 1e-12
    assert exact_noised_kth_largest(masked, 5, 1.0) == -math.inf


def test_smoothed_top_sum_is_convex():  # Prop. 3.3
    a, b = draw(100, 6, seed=1), draw(100, 6, seed=2)
    for K in (1, 3):
        chord = (exact_top_sum(a, K, 0.5) + exact_top_sum(b, K, 0.5)) / 2
        assert (exact_top_sum((a + b) / 2, K, 0.5) < chord).all()


def test_smoothed_top_sum_is_not_strictly_convex_as_printed():  # Prop. 3.3: a constant added to all scores
    scores = draw(6)
    for c in (1.0, -3.0):
        shifted = exact_top_sum(scores + c, 3, 0.5)
        assert shifted.item() == pytest.approx(exact_top_sum(scores, 3, 0.5).item() + 3 * c, abs=1e-8)


def test_smoothed_top_sum_is_sqrt_K_lipschitz():  # Prop. 3.3
    a, b = draw(100, 8, seed=1), draw(100, 8, seed=2)
    for K in (1, 4):
        rise = (exact_top_sum(a, K, 0.3) - exact_top_sum(b, K, 0.3)).abs()
        assert (rise <= math.sqrt(K) * (a - b).norm(dim=-1)).all()


def test_gradient_of_the_smoothed_top_sum_is_the_expected_indicator_of_the_K_largest():  # Prop. 3.3, Eq. 7
    scores, K, epsilon = draw(5), 2, 0.7
    chosen = (scores + epsilon * draw(200_000, 5, seed=3)).topk(K).indices
    frequency = F.one_hot(chosen, 5).sum(1).double().mean(0)
    weights = gradient(exact_top_sum, scores, K, epsilon)
    torch.testing.assert_close(weights, frequency, rtol=0, atol=0.005)
    assert weights.sum().item() == pytest.approx(K, abs=1e-8)


def test_gradient_of_the_smoothed_top_sum_is_lipschitz():  # Prop. 3.3
    a = draw(100, 6, seed=1)
    b = a + draw(100, 6, seed=2, size=0.1)
    for K, epsilon in ((1, 0.1), (3, 1.0)):
        slopes = [gradient(exact_top_sum, scores, K, epsilon) for scores in (a, b)]
        assert ((slopes[0] - slopes[1]).norm(dim=-1) <= math.sqrt(K * 6) / epsilon * (a - b).norm(dim=-1)).all()


def test_smoothed_top_K_is_smooth():  # Prop. 3.5: 4 √(KL) / ε
    a = draw(100, 6, seed=1)
    b = a + draw(100, 6, seed=2, size=0.1)
    for K, epsilon in ((1, 0.1), (3, 1.0)):
        slopes = [gradient(exact_noised_kth_largest, scores, K, epsilon) for scores in (a, b)]
        assert ((slopes[0] - slopes[1]).norm(dim=-1) <= 4 * math.sqrt(K * 6) / epsilon * (a - b).norm(dim=-1)).all()


@given(st.integers(2, 40), st.floats(1e-3, 100), st.integers(0, 9), st.data())
@settings(max_examples=40, deadline=None)
def test_smoothed_top_K_is_within_epsilon_K_root_2_log_L_of_top_K(n_classes, epsilon, seed, data):  # Prop. 3.5, Eq. 22
    K = data.draw(st.integers(1, n_classes))
    scores = draw(n_classes, seed=seed)
    distance = exact_noised_kth_largest(scores, K, epsilon) - kth_largest(scores, K)
    assert -epsilon * (K - 1) * math.sqrt(2 * math.log(n_classes)) - 1e-9 <= distance
    assert distance <= epsilon * K * math.sqrt(2 * math.log(n_classes)) + 1e-9


def test_smoothed_operators_tend_to_the_operators_as_epsilon_vanishes():  # Prop. 3.3 and 3.5
    scores = draw(20, 7)
    for K in (1, 3, 7):
        for epsilon in (1e-2, 1e-3):
            assert (exact_noised_kth_largest(scores, K, epsilon) - kth_largest(scores, K)).abs().max() < 5 * epsilon
        assert torch.equal(exact_noised_kth_largest(scores, K, 0.0), kth_largest(scores, K))


# Eq. 10–12 and the illustration: sampling


def test_the_noised_top_2_of_the_illustration_is_2_47_with_a_third_for_each_of_three_classes():
    value = noised_kth_largest(EXAMPLE, 2, 1.0, noise=EXAMPLE_NOISE)
    assert value.item() == pytest.approx((2.5 + 2.5 + 2.4) / 3)
    weights = gradient(noised_kth_largest, EXAMPLE, 2, 1.0, noise=EXAMPLE_NOISE)
    assert weights.tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0])


def test_the_illustration_with_less_noise_keeps_the_gradient_of_top_2():
    weights = gradient(noised_kth_largest, EXAMPLE, 2, 0.1, noise=EXAMPLE_NOISE)
    assert weights.tolist() == pytest.approx([1, 0, 0, 0])


def test_the_sampled_operator_is_a_difference_of_sampled_sums():  # Eq. 11
    scores, noise, epsilon = draw(10, 6), draw(10, 4, 6, seed=1), 0.7
    noised = scores[:, None] + epsilon * noise
    for k in (1, 3, 6):
        expected = (top_sum(noised, k) - top_sum(noised, k - 1)).mean(-1)
        torch.testing.assert_close(noised_kth_largest(scores, k, epsilon, noise=noise), expected)


def rows_of_every_kind(n_classes):
    """Rows that few classes lead, then a row where all are close: it is not settled by a few contenders."""
    scores = 3 * draw(12, n_classes, seed=5)
    scores[-1] *= 0.02
    return scores


@pytest.mark.parametrize(
    ("n_classes", "k", "epsilon", "dtype"),
    [
        (12, 3, 0.5, torch.float64),
        (400, 4, 0.3, torch.float64),
        (400, 1, 0.3, torch.float32),
        (400, 30, 5.0, torch.float32),
    ],
)
def test_fresh_noise_has_the_law_of_noise_on_every_class(n_classes, k, epsilon, dtype):
    n_samples = 2000
    scores = rows_of_every_kind(n_classes).to(dtype).requires_grad_()
    generator = torch.Generator().manual_seed(0)
    found = noised_kth_largest(scores, k, epsilon, n_samples, generator=generator)
    found.sum().backward()
    exact = exact_noised_kth_largest(scores.detach().double(), k, epsilon)
    spread = epsilon / math.sqrt(n_samples)  # the k-th largest varies no more than the noise
    assert (found.detach() - exact).abs().max() < 4.5 * spread
    weights = gradient(exact_noised_kth_largest, scores.double(), k, epsilon)
    assert (scores.grad - weights).abs().max() < 4.5 * math.sqrt(0.25 / n_samples)


def test_arrivals_in_falling_order_have_the_law_of_noise_on_every_class():
    n_classes, k, epsilon, n_samples = 2003, 6, 3.0, 4000
    scores = draw(4, n_classes, seed=5)
    scores[1] = 0  # all tied
    scores[2, :3] += 5  # three classes that come up again and again
    scores[3] *= 3
    holders, drawn = _holders_by_arrival(scores, k, epsilon, n_samples, torch.Generator().manual_seed(0))
    found = scores.gather(-1, holders) + epsilon * drawn
    exact = exact_noised_kth_largest(scores, k, epsilon)
    error = found.std(-1) / math.sqrt(n_samples)
    assert ((found.mean(-1) - exact) / error).abs().max() < 4
    weights = gradient(exact_noised_kth_largest, scores, k, epsilon)
    for some in (scores > scores.median(-1, keepdim=True).values, scores > 4.5):
        share = some.gather(-1, holders).double().mean(-1)
        assert (share - (weights * some).sum(-1)).abs().max() < 4 * math.sqrt(0.25 / n_samples)
    for row, of_row in zip(scores, found, strict=True):
        everywhere = noised_kth_largest(row.expand(300, -1), k, epsilon, noise=draw(300, 1, n_classes, seed=1))
        assert of_row.std().item() == pytest.approx(everywhere.std().item(), rel=0.15)


def test_no_arrival_is_waited_for_where_it_may_never_come():
    generator = torch.Generator().manual_seed(0)
    for scores in (draw(2, 2000, size=100.0), draw(2, 2000).index_fill(-1, torch.arange(5, 2000), -1e9)):
        assert _holders_by_arrival(scores, 6, 3.0, 5, generator) is None
    assert _holders_by_arrival(draw(2, 2000).index_fill(-1, torch.tensor([0]), 100), 6, 3.0, 5, generator) is None


def test_fresh_noise_varies_as_much_as_noise_on_every_class():
    scores, k, epsilon, n = draw(1, 300, size=2.0), 3, 0.5, 4000
    fresh = noised_kth_largest(scores.expand(n, -1), k, epsilon, 1, generator=torch.Generator().manual_seed(0))
    everywhere = noised_kth_largest(scores.expand(n, -1), k, epsilon, noise=draw(n, 1, 300, seed=1))
    assert fresh.std().item() == pytest.approx(everywhere.std().item(), rel=0.06)
    for level in (0.05, 0.5, 0.95):
        assert fresh.quantile(level).item() == pytest.approx(everywhere.quantile(level).item(), abs=0.04)


def test_the_same_generator_gives_the_same_noise_and_no_generator_fresh_noise():
    scores = draw(4, 300)
    same = [noised_kth_largest(scores, 3, 0.5, generator=torch.Generator().manual_seed(1)) for _ in range(2)]
    assert torch.equal(*same)
    assert not torch.equal(noised_kth_largest(scores, 3, 0.5), noised_kth_largest(scores, 3, 0.5))


@pytest.mark.parametrize("operator", [noised_kth_largest, exact_noised_kth_largest])
@pytest.mark.parametrize("epsilon", [-0.1, math.nan, math.inf])
def test_noise_of_negative_or_infinite_scale_is_refused(operator, epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        operator(EXAMPLE, 2, epsilon)


@pytest.mark.parametrize("n_samples", [0, -1, 2.5])
def test_a_number_of_draws_that_nobody_can_draw_is_refused(n_samples):
    with pytest.raises(ValueError, match="n_samples"):
        noised_kth_largest(EXAMPLE, 2, 0.1, n_samples)
