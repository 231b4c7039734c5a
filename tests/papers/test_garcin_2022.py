"""Garcin et al. 2022, stochastic smoothing of the top-K calibrated hinge loss: the losses.

Table 1, Eq. 3–5 and 8–13, Prop. 3.7, Sec. 3.3 and 4.1. The operators are in test_garcin_2022_operators.py.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from trying import draw, exact_top_sum, gradient

from workbench.losses import (
    LDAM,
    CalibratedTopKHinge,
    ConvexTopKHinge,
    CrossEntropy,
    ExactNoisedTopK,
    Focal,
    NoisedTopK,
    NoisedTopKImbalanced,
    SmoothTopKHinge,
    TopKError,
    TopKHinge,
)
from workbench.losses.noised import largest_calibrated_epsilon
from workbench.operators import exact_noised_kth_largest, kth_largest, noised_kth_largest

# Table 1: every loss against plain arithmetic


def naive(loss, s, y):
    """The column "Expression" of Table 1 for one row, with its misprints mended."""
    L, K, others = len(s), getattr(loss, "K", None), s[:y] + s[y + 1 :]
    p = [math.exp(value) / sum(map(math.exp, s)) for value in s]
    top = lambda values, k: sorted(values, reverse=True)[k - 1]  # noqa: E731
    match loss:
        case TopKError():
            return float(top(s, K) > s[y])
        case CrossEntropy():
            return -math.log(p[y])
        case Focal():
            return (1 - p[y]) ** loss.gamma * -math.log(p[y])
        case LDAM():
            counts = loss.class_counts or [1] * L
            margin = loss.max_margin * min(counts) ** 0.25 / counts[y] ** 0.25
            shifted = math.exp(loss.scale * (s[y] - margin))
            return -math.log(shifted / (shifted + sum(math.exp(loss.scale * value) for value in others)))
        case TopKHinge():
            return max(0, 1 + top(others, K) - s[y])
        case ConvexTopKHinge():
            with_margin = [value + (j != y) for j, value in enumerate(s)]
            return max(0, sum(sorted(with_margin)[-K:]) / K - s[y])
        case CalibratedTopKHinge():
            return max(0, 1 + top(s, K + 1) - s[y])
        case SmoothTopKHinge():
            return naive_smooth(torch.tensor(s, dtype=torch.float64), y, K, loss.temperature).item()
    raise AssertionError(loss)


def naive_smooth(s, y, K, temperature):
    """The two log-sums of the smooth hinge over all sets of K classes; the second over those with y."""
    sets = list(itertools.combinations(range(len(s)), K))
    weights = torch.stack([s[list(A)].sum() / (K * temperature) for A in sets])
    with_y = torch.tensor([y in A for A in sets])
    everything = (weights + ~with_y / temperature).logsumexp(0)
    return temperature * (everything - weights[with_y].logsumexp(0))


@pytest.mark.parametrize(
    "loss",
    [
        *(
            loss_class(K=K)
            for loss_class in (TopKError, TopKHinge, ConvexTopKHinge, CalibratedTopKHinge)
            for K in (1, 3, 5)
        ),
        CrossEntropy(),
        *(Focal(gamma=gamma) for gamma in (0.0, 0.5, 2.0, 5.0)),
        LDAM(scale=1.0),
        *(LDAM(max_margin=m, scale=s, class_counts=(9, 1, 4, 100, 7, 1)) for m in (0.05, 1.0) for s in (1.0, 30.0)),
        *(SmoothTopKHinge(K=K, temperature=t) for K in (1, 3, 5) for t in (0.01, 1.0, 10.0)),
    ],
    ids=repr,
)
def test_losses_are_the_expressions_of_table_1(loss):
    scores, labels = draw(30, 6), torch.arange(30) % 6
    expected = [naive(loss, row, y) for row, y in zip(scores.tolist(), labels.tolist(), strict=True)]
    torch.testing.assert_close(loss(scores, labels), torch.tensor(expected, dtype=torch.float64))


def test_top_k_error_on_three_classes_spares_the_label_unless_it_is_last():  # Sec. 3.4, Figure 1a
    scores = draw(100, 3)
    assert torch.equal(TopKError(K=2)(scores, torch.full((100,), 2)) == 1, scores[:, 2] == scores.amin(-1))


def test_focal_printed_in_table_1_is_not_a_loss_at_all():
    loss, gamma = 0.1, 2.0  # a cross-entropy of 0.1: the row is nearly right
    printed = (1 - math.log(loss)) ** gamma * loss
    assert printed > loss  # it would amplify easy rows, and is not real for a cross-entropy above e


def test_convex_hinge_bounds_the_hinge_from_above():
    scores, labels = draw(200, 8, size=2.0), torch.arange(200) % 8
    for K in (1, 3, 7):
        assert (ConvexTopKHinge(K=K)(scores, labels) >= TopKHinge(K=K)(scores, labels) - 1e-12).all()


# The smooth hinge


@pytest.mark.parametrize("n_classes", [2, 5, 8])
@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0, 10.0])
def test_smooth_hinge_and_its_gradient_equal_brute_force_over_all_sets_in_float32(n_classes, temperature):
    for K in range(1, n_classes):
        for size in (0.1, 1.0, 10.0):
            scores = draw(6, n_classes, size=size, seed=K, dtype=torch.float32)
            labels = torch.arange(6) % n_classes
            exact = scores.double().requires_grad_()
            expected = torch.stack(
                [naive_smooth(s, int(y), K, temperature) for s, y in zip(exact, labels, strict=True)]
            )
            expected.sum().backward()
            loss = SmoothTopKHinge(K=K, temperature=temperature)
            torch.testing.assert_close(loss(scores, labels).double(), expected.detach(), rtol=1e-5, atol=1e-5)
            # A row on the kink of the nearly hard hinge rounds to either side of it: compare with that in mind.
            found = gradient(loss, scores, labels).double()
            torch.testing.assert_close(found, exact.grad, rtol=1e-3, atol=2e-4 * (1 + size / temperature / 100))


def test_the_second_sum_printed_in_table_1_would_cap_the_smooth_hinge_at_one():
    s, K, temperature = torch.tensor([9.0, 8.0, 0.0, -9.0], dtype=torch.float64), 2, 0.1
    sets = [list(A) for A in itertools.combinations(range(4), K)]
    weights = torch.stack([s[A].sum() / (K * temperature) for A in sets])
    margins = torch.tensor([float(3 not in A) for A in sets], dtype=torch.float64)
    printed = temperature * ((weights + margins / temperature).logsumexp(0) - weights.logsumexp(0))
    assert printed <= 1
    assert SmoothTopKHinge(K=K, temperature=temperature)(s[None], torch.tensor([3])) > 5


def test_smooth_hinge_tends_to_a_hinge_on_scores_divided_by_K():
    scores, labels = draw(50, 7, size=3.0), torch.arange(50) % 7
    for K in (1, 2, 6):
        others = scores.scatter(-1, labels[:, None], -math.inf)
        own = scores.gather(-1, labels[:, None]).squeeze(-1)
        limit = (1 + (kth_largest(others, K) - own) / K).relu()
        found = SmoothTopKHinge(K=K, temperature=0.01)(scores, labels)
        assert (found - limit).abs().max() < 0.01 * math.log(math.comb(7, K) + 1)


def test_on_K_times_the_scores_the_smooth_hinge_has_the_margin_of_the_others():  # Figure 1, "harmonised"
    scores, labels = draw(50, 7, size=3.0), torch.arange(50) % 7
    smooth = SmoothTopKHinge(K=3, temperature=0.01)(3 * scores, labels)
    assert (smooth - TopKHinge(K=3)(scores, labels)).abs().max() < 0.01 * math.log(math.comb(7, 3) + 1)


def test_smooth_hinge_does_not_jump_when_classes_are_far_apart():
    K, temperature = 5, 0.1
    gap = K * temperature * math.log(1000)  # where the authors' code changes to a hard hinge
    gaps = torch.linspace(gap - 0.5, gap + 0.5, 2001, dtype=torch.float32)
    scores = torch.zeros(2001, 30)
    scores[:, 0] = 2 * gaps
    scores[:, 1:5] = gaps[:, None]
    for label in (0, 9):
        values = SmoothTopKHinge(K=K, temperature=temperature)(scores, torch.full((2001,), label))
        assert values.diff().abs().max() < 1e-3


def test_smooth_hinge_of_a_thousand_tied_classes_counts_their_sets():
    for K in (1, 5, 50):
        loss = SmoothTopKHinge(K=K, temperature=1.0)(torch.zeros(1, 1000), torch.tensor([3]))
        ratio = math.comb(999, K) / math.comb(999, K - 1)
        assert loss.item() == pytest.approx(math.log1p(math.e * ratio), rel=1e-5)


# Eq. 8 and 9, Proposition 3.7: the noised loss


@pytest.mark.parametrize("K", [3, 30, 300])
def test_smooth_hinge_of_ten_thousand_tied_classes_is_finite_for_large_sets_too(K):
    scores = torch.zeros(1, 10_000)
    expected = 0.1 * math.log1p(math.exp(10) * (10_000 - K) / K)
    assert SmoothTopKHinge(K=K)(scores, torch.tensor([0])).item() == pytest.approx(expected, rel=1e-6)
    assert gradient(SmoothTopKHinge(K=K), scores, torch.tensor([0])).isfinite().all()


@pytest.mark.parametrize("gamma", [0.0, 2.0, 5.0])
def test_focal_of_a_label_that_is_the_only_class_left_is_zero(gamma):
    scores, label = torch.tensor([[1.0, -math.inf, -math.inf]]), torch.tensor([0])
    assert Focal(gamma=gamma)(scores, label).item() == 0
    assert not gradient(Focal(gamma=gamma), scores, label).any()


def test_without_noise_the_noised_losses_are_the_calibrated_hinge():
    scores, labels = draw(50, 8), torch.arange(50) % 8
    for K in (1, 3, 7):
        hinge = CalibratedTopKHinge(K=K)
        for loss in (NoisedTopK(K=K, epsilon=0.0), ExactNoisedTopK(K=K, epsilon=0.0)):
            assert torch.equal(loss(scores, labels), hinge(scores, labels))
            assert torch.equal(gradient(loss, scores, labels), gradient(hinge, scores, labels))


def test_gradient_of_the_noised_loss_is_eq_9():
    scores, labels, K, epsilon = draw(50, 6), torch.arange(50) % 6, 2, 0.5
    loss = ExactNoisedTopK(K=K, epsilon=epsilon)
    active = loss(scores, labels) > 0
    weights = gradient(exact_noised_kth_largest, scores, K + 1, epsilon)
    expected = active[:, None] * (weights - F.one_hot(labels, 6))
    torch.testing.assert_close(gradient(loss, scores, labels), expected)
    assert active.any()
    assert not active.all()


def test_the_gradient_in_the_proof_of_prop_3_7_sums_to_K_and_not_to_zero_as_that_of_a_shift_invariant_loss_must():
    scores, K = draw(6), 2
    printed = gradient(exact_top_sum, scores, K + 1, 0.5) - F.one_hot(torch.tensor(0), 6)
    right = gradient(exact_noised_kth_largest, scores, K + 1, 0.5) - F.one_hot(torch.tensor(0), 6)
    assert printed.sum().item() == pytest.approx(K, abs=1e-6)
    assert right.sum().item() == pytest.approx(0, abs=1e-6)


def test_the_noised_loss_is_no_longer_calibrated_once_K_plus_1_tied_scores_cost_nothing():
    for K, limit in ((1, 1.77), (2, 1.18), (3, 0.97), (5, 0.79)):
        assert largest_calibrated_epsilon(K) == pytest.approx(limit, abs=0.005)
        tied = torch.zeros(K + 1, 10, dtype=torch.float64)
        tied[:, : K + 1] = 200.0
        labels = torch.arange(K + 1)  # whichever of the tied classes is the label
        above, below = (
            ExactNoisedTopK(K=K, epsilon=factor * largest_calibrated_epsilon(K)) for factor in (1.001, 0.999)
        )
        assert above(tied, labels).max() == 0
        assert not above.calibrated
        assert below(tied, labels).min() > 0
        assert below.calibrated


@pytest.mark.parametrize("loss_class", [TopKHinge, ConvexTopKHinge])
def test_the_hinges_of_lapin_are_not_calibrated_because_equal_scores_are_optimal(loss_class):
    probabilities = torch.tensor([0.4, 0.3, 0.3], dtype=torch.float64)
    scores = torch.cartesian_prod(*[torch.arange(-10, 11, dtype=torch.float64) / 5] * 3)
    labels = [torch.full((len(scores),), y) for y in range(3)]
    risk = sum(p * loss_class(K=1)(scores, y) for p, y in zip(probabilities, labels, strict=True))
    equal = (scores == 0).all(-1)
    assert risk[equal].item() == pytest.approx(risk.min().item())
    assert not loss_class(K=1).calibrated


@pytest.mark.parametrize("loss_class", [LDAM, NoisedTopKImbalanced])
def test_the_margin_of_figure_1j_is_accepted(loss_class):
    loss = loss_class(max_margin=5.0, scale=1.0).for_classes([10] * 7)
    assert torch.equal(loss.margins(torch.zeros(1, 7)), torch.full((7,), 5.0))
    with pytest.raises(ValueError, match=r"max_margin = 6 is outside \[0, 5\]"):
        loss_class(max_margin=6)


def test_uneven_margins_are_not_calibrated_because_they_favour_the_rare_class():
    probabilities = (0.55, 0.45)
    scores = torch.linspace(-2, 2, 401, dtype=torch.float64)[:, None] * torch.tensor([1.0, -1.0])
    for loss in (LDAM(max_margin=1.0, scale=1.0), NoisedTopKImbalanced(K=1, epsilon=0.0, max_margin=1.0, scale=1.0)):
        best = []
        for one in (loss, loss.for_classes([100, 1])):
            risk = sum(p * one(scores, torch.full((401,), y)) for y, p in enumerate(probabilities))
            best.append(int(scores[risk.argmin(), 0] < scores[risk.argmin(), 1]))
        assert best == [0, 1]
        assert loss.calibrated
        assert not loss.for_classes([100, 1]).calibrated


# Eq. 10 and 12: sampling


def test_the_sampled_loss_is_eq_10_with_the_gradient_of_eq_12():
    scores, labels, noise = draw(40, 6), torch.arange(40) % 6, draw(40, 3, 6, seed=1)
    loss = NoisedTopK(K=2, epsilon=0.5)
    noised = scores[:, None] + 0.5 * noise
    holders = noised.argsort(-1, descending=True)[..., 2]
    top = noised.gather(-1, holders[..., None]).squeeze(-1).mean(-1)
    values = (1 + top - scores.gather(-1, labels[:, None]).squeeze(-1)).relu()
    G = (values > 0)[:, None] * (F.one_hot(holders, 6).double().mean(1) - F.one_hot(labels, 6))
    torch.testing.assert_close(loss(scores, labels, noise=noise), values)
    torch.testing.assert_close(gradient(loss, scores, labels, noise=noise), G)


def test_at_most_one_class_per_draw_and_the_label_get_a_gradient_and_exact_smoothing_reaches_all():  # Sec. 4.1
    scores, labels = draw(64, 100, size=0.1), torch.arange(64)
    for n_samples in (1, 3):
        loss = NoisedTopK(K=5, epsilon=10.0, n_samples=n_samples)
        draws = torch.Generator().manual_seed(0)
        found = gradient(loss, scores, labels, generator=draws)
        assert (found != 0).sum(-1).max() == n_samples + 1
    exact = gradient(ExactNoisedTopK(K=5, epsilon=10.0), scores, labels)
    assert (exact[exact.any(-1)] != 0).all()


def test_nothing_of_the_size_of_the_noise_is_kept_for_the_backward_pass():
    scores, labels, kept = draw(16, 500).requires_grad_(), torch.arange(16), []
    for loss in (NoisedTopK(n_samples=20), ExactNoisedTopK()):
        with torch.autograd.graph.saved_tensors_hooks(
            lambda saved: kept.append(saved.numel()) or saved, lambda saved: saved
        ):
            loss(scores, labels)
    assert max(kept) <= scores.numel()


# Eq. 13: imbalanced classes


def test_margins_fall_with_the_fourth_root_of_the_class_counts_and_the_largest_is_max_margin():  # Sec. 3.3
    counts = [1, 16, 81, 256, 10_000]
    for loss in (LDAM(max_margin=0.4), NoisedTopKImbalanced(max_margin=0.4)):
        margins = loss.for_classes(counts).margins(torch.zeros(1, 5, dtype=torch.float64))
        assert margins.tolist() == pytest.approx([0.4 / n**0.25 for n in counts])
        assert loss.for_classes([16, 81]).margins(torch.zeros(1, 2)).max().item() == pytest.approx(0.4)


def test_the_imbalanced_loss_is_eq_13_times_the_scale():
    scores, labels, noise = draw(40, 6).tanh(), torch.arange(40) % 6, draw(40, 3, 6, seed=1)
    counts = [1, 5, 10, 50, 100, 500]
    loss = NoisedTopKImbalanced(K=2, epsilon=0.1, max_margin=0.3, scale=50.0).for_classes(counts)
    top = noised_kth_largest(scores, 3, 0.1, noise=noise)
    margins = torch.tensor([0.3 / n**0.25 for n in counts], dtype=torch.float64)[labels]
    expected = 50 * (margins + top - scores.gather(-1, labels[:, None]).squeeze(-1)).relu()
    torch.testing.assert_close(loss(scores, labels, noise=noise), expected)


def test_losses_with_margins_want_a_cosine_head_and_a_table_caches_scaled_cosines():
    cosines = draw(3, 4).tanh()
    for loss in (LDAM(scale=30.0), NoisedTopKImbalanced(scale=30.0)):
        assert loss.head == "cosine"
        assert torch.equal(loss.logits(cosines), 30 * cosines)


def test_class_counts_are_no_knob_and_leave_the_spec_of_a_run_alone():
    for loss in (LDAM(), NoisedTopKImbalanced()):
        filled = loss.for_classes([3, 2, 1])
        assert filled.class_counts == (3, 2, 1)
        assert "class_counts" not in loss.knobs()
        assert filled.spec() == loss.spec()
        assert "class_counts" not in repr(loss)
    assert CrossEntropy().for_classes([3, 2, 1]) == CrossEntropy()
