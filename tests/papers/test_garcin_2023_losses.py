"""Garcin et al. 2023, a two-head loss for average-K classification: Eq. 3–15, Fig. 3 and the twin example of Sec. 4.3."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from workbench.losses import ROLE, AssumeNegative, AverageKTwoHead, CrossEntropy, ExpectedPositive
from workbench.losses.states import LabelEstimates


def batch(n=4, n_classes=6, heads=1, seed=0):
    """Random scores in double precision and labels."""
    generator = torch.Generator().manual_seed(seed)
    shape = (n, n_classes) if heads == 1 else (n, heads, n_classes)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64) * 2
    return scores, torch.randint(0, n_classes, (n,), generator=generator)


def log_sigmoid(z):
    return -math.log1p(math.exp(-z))


def naive_two_head(scores, labels, K, alpha):
    """Eq. 10–15 read aloud, with loops; also returns the candidate sets."""
    z, z_prime = scores[:, 0].numpy(), scores[:, 1].numpy()
    n, L = z.shape
    softmax = np.exp(z_prime) / np.exp(z_prime).sum(1, keepdims=True)
    cross_entropy = -sum(math.log(softmax[i, labels[i]]) for i in range(n)) / n  # Eq. 10
    activations = [(softmax[i, j], i, j) for i in range(n) for j in range(L) if j != labels[i]]  # Eq. 11
    m = math.floor((Fraction(str(K)) - 1) * n + Fraction(1, 2))
    candidates = {(i, j) for _, i, j in sorted(activations, reverse=True)[:m]}  # Eq. 12
    positive = sum(log_sigmoid(z[i, labels[i]]) for i in range(n)) / n
    pseudo_positive = sum(log_sigmoid(z[i, j]) for i, j in candidates) / m if m else 0.0
    negatives = {(i, j) for i in range(n) for j in range(L) if j != labels[i]} - candidates
    pseudo_negative = sum(log_sigmoid(-z[i, j]) for i, j in negatives) / max(len(negatives), 1)
    return cross_entropy - positive - alpha * pseudo_positive - alpha * pseudo_negative, candidates  # Eq. 14, 15


# Eq. 3–4 and Sec. 4.3


def test_gradient_of_cross_entropy_is_softmax_minus_one_at_the_label_and_eq_4_is_that_of_the_softmax_score():
    scores, labels = batch(n=1)
    scores.requires_grad_()
    probabilities = scores.softmax(-1).detach()[0]
    at_label = torch.nn.functional.one_hot(labels[0], 6)
    (gradient,) = torch.autograd.grad(CrossEntropy()(scores, labels).sum(), scores)
    assert torch.allclose(gradient[0], probabilities - at_label)
    (gradient,) = torch.autograd.grad(scores.softmax(-1)[0, labels[0]], scores)
    assert torch.allclose(gradient[0], probabilities[labels[0]] * (at_label - probabilities))


def test_cross_entropy_lowers_the_twin_of_the_label_and_the_two_head_loss_raises_it():
    label, twin = 0, 1
    scores = torch.zeros(1, 2, 5)
    scores[0, :, [label, twin]] = 1.0  # two equiprobable labels, one of them written down
    scores.requires_grad_()
    labels = torch.tensor([label])
    (cross_entropy,) = torch.autograd.grad(CrossEntropy()(scores[:, 0], labels).sum(), scores)
    (two_head,) = torch.autograd.grad(AverageKTwoHead(K=2)(scores, labels).sum(), scores)
    step = -1  # gradient descent
    assert step * cross_entropy[0, 0, label] > 0 > step * cross_entropy[0, 0, twin]
    assert step * two_head[0, 0, label] > 0
    assert step * two_head[0, 0, twin] > 0
    assert (step * two_head[0, 0, 2:] < 0).all()


# Eq. 5–8


def test_assume_negative_is_eq_5():
    scores, labels = batch()
    expected = [
        -log_sigmoid(z[y]) - sum(log_sigmoid(-z[j]) for j in range(6) if j != y) / 5
        for z, y in zip(scores.tolist(), labels.tolist(), strict=True)
    ]
    assert AssumeNegative()(scores, labels).tolist() == pytest.approx(expected)


def test_assume_negative_gives_the_negatives_together_the_weight_of_the_label():
    scores = torch.zeros(1, 50, requires_grad=True)
    AssumeNegative()(scores, torch.tensor([7])).sum().backward()
    assert scores.grad.sum().item() == pytest.approx(0, abs=1e-6)


def test_expected_positive_is_eq_8_with_the_mean_size_of_eq_7():
    scores, labels = batch()
    sizes = scores.sigmoid().sum() / 4
    positive = -sum(log_sigmoid(scores[i, labels[i]]) for i in range(4)) / 4
    loss = ExpectedPositive(K=1.5, beta=0.3)(scores, labels)
    assert loss.mean().item() == pytest.approx(positive + 0.3 * (sizes - 1.5).item() ** 2)


def test_expected_positive_allows_fewer_than_one_class_on_average():
    scores, labels = batch()
    assert ExpectedPositive(K=0.3)(scores, labels).isfinite().all()
    with pytest.raises(ValueError, match="below 0"):
        ExpectedPositive(K=-1)
    with pytest.raises(ValueError, match=r"K = 0\.9 is below 1"):
        AverageKTwoHead(K=0.9)


def test_positive_cross_entropy_alone_is_minimised_by_infinite_scores_and_the_mean_size_prevents_it():
    scores, labels = torch.full((2, 4), 30.0), torch.tensor([0, 1])
    assert ExpectedPositive(K=1, beta=0)(scores, labels).max() < 1e-6
    assert ExpectedPositive(K=1, beta=1)(scores, labels).min() > 8.9  # all four classes: (4 − 1)²


# ROLE, Sec. 4.6


def naive_role(scores, estimates, labels, K, beta):
    def side(student, teacher):
        value = beta * (sum(1 / (1 + math.exp(-z)) for row in student for z in row) / len(student) - K) ** 2
        for row, target, y in zip(student, teacher, labels, strict=True):
            value -= log_sigmoid(row[y]) / len(student)
            for z, t in zip(row, target, strict=True):
                p = 1 / (1 + math.exp(-t))
                value -= (p * log_sigmoid(z) + (1 - p) * log_sigmoid(-z)) / len(student)
        return value

    return (side(scores, estimates) + side(estimates, scores)) / 2


def test_role_is_the_mean_of_the_two_sides_that_teach_each_other():
    scores, labels = batch()
    loss = ROLE(K=2, beta=0.3)
    state = loss.state(n_rows=10, n_classes=6).double()
    rows = torch.tensor([7, 0, 3, 9])
    value = loss(scores, labels, state=state, rows=rows).mean().item()
    estimates = state.estimates[rows].tolist()
    assert value == pytest.approx(naive_role(scores.tolist(), estimates, labels.tolist(), 2, 0.3))


def test_role_estimates_start_unknown_and_at_995_for_the_label_of_a_row_that_was_met():
    loss = ROLE()
    state = loss.state(n_rows=5, n_classes=6)
    start = state.estimates.detach().clone()
    assert torch.equal(start, loss.state(5, 6).estimates)  # no hidden randomness
    assert 0.4 <= start.sigmoid().min() < 0.45 < 0.55 < start.sigmoid().max() <= 0.6
    scores, labels = batch(n=2)
    rows = torch.tensor([4, 1])
    loss(scores, labels, state=state, rows=rows)
    assert state.estimates[rows, labels].sigmoid().tolist() == pytest.approx([0.995, 0.995])
    assert torch.equal(state.estimates[[0, 2, 3]], start[[0, 2, 3]])
    with torch.no_grad():
        state.estimates[4, labels[0]] = 1.0  # learnt since
    loss(scores, labels, state=state, rows=rows)
    assert state.estimates[4, labels[0]] == 1.0


def test_role_teaches_the_estimates_of_the_rows_of_the_batch_and_no_others():
    loss = ROLE()
    state = loss.state(n_rows=5, n_classes=6).double()
    scores, labels = batch(n=2)
    loss(scores, labels, state=state, rows=torch.tensor([4, 1])).mean().backward()
    assert state.estimates.grad.abs().sum(-1).gt(0).tolist() == [False, True, False, False, True]


def test_role_refuses_rows_that_its_state_does_not_know():
    state = ROLE().state(n_rows=5, n_classes=6)
    scores, labels = batch(n=2)
    for rows in (torch.tensor([4, 5]), torch.tensor([-1, 0]), torch.tensor([1]), torch.tensor([1.0, 2.0]), [1, 2]):
        with pytest.raises(ValueError, match="ROLE: rows"):
            ROLE()(scores, labels, state=state, rows=rows)
    assert not state.met.any()


def test_role_has_no_gradient_into_the_side_that_teaches():
    scores, labels = batch()
    scores.requires_grad_()
    loss = ROLE(beta=0)
    state = loss.state(4, 6).double()
    loss(scores, labels, state=state, rows=torch.arange(4)).sum().backward()
    target = state.estimates.sigmoid()
    at_label = torch.nn.functional.one_hot(labels, 6)
    expected = (scores.sigmoid() - target + at_label * (scores.sigmoid() - 1)) / 2
    assert torch.allclose(scores.grad, expected)


def test_role_without_a_state_and_in_eval_mode_takes_the_estimates_of_a_new_row():
    scores, labels = batch()
    loss = ROLE(K=2)
    new = torch.zeros(4, 6).scatter(1, labels[:, None], LabelEstimates.AT_LABEL).tolist()
    expected = naive_role(scores.tolist(), new, labels.tolist(), 2, loss.beta)
    assert loss(scores, labels).mean().item() == pytest.approx(expected)
    state = loss.state(10, 6).eval()
    assert torch.equal(loss(scores, labels, state=state), loss(scores, labels))
    assert not state.met.any()


def test_role_asks_for_the_rows_when_it_has_a_state():
    scores, labels = batch()
    with pytest.raises(ValueError, match="pass rows="):
        ROLE()(scores, labels, state=ROLE().state(10, 6))


def test_role_passes_the_learning_rate_of_its_estimates_on():
    assert ROLE().state(3, 4).learning_rate_factor == 10
    assert ROLE(estimate_rate=2).state(3, 4).learning_rate_factor == 2


# The two-head loss, Eq. 9–15


@pytest.mark.parametrize("K", [1, 1.25, 2, 2.5, 4])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 5.0, 100.0])  # 100: the end of Fig. 5.5 of the thesis
def test_two_head_loss_is_eq_14_plus_eq_10(K, alpha):
    scores, labels = batch(heads=2, seed=int(10 * K))
    loss = AverageKTwoHead(K=K, alpha=alpha)
    value, candidates = naive_two_head(scores, labels.tolist(), K, alpha)
    assert loss(scores, labels).mean().item() == pytest.approx(value, rel=1e-12)
    assert {tuple(place) for place in loss.candidates(scores, labels).nonzero().tolist()} == candidates


def test_three_rows_and_K_2_give_three_pseudo_positives_over_the_whole_batch():
    # Fig. 3: the candidates need not be one a row.
    proposals = torch.tensor([[4.0, 3.0, 2.5, 0.0], [9.0, 0.0, 0.0, 0.0], [1.0, 1.2, 5.0, 4.8]])
    scores = torch.stack([torch.zeros(3, 4), proposals], dim=1)
    candidates = AverageKTwoHead(K=2).candidates(scores, torch.tensor([0, 0, 2]))
    assert candidates.int().tolist() == [[0, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 1]]


def test_softmax_is_taken_over_all_classes_before_the_labels_are_masked():
    # Row 0 is sure of its label, so its second class is unlikely although it dwarfs the other non-labels of the row.
    proposals = torch.tensor([[20.0, 9.0, 0.0], [0.3, 0.2, 0.1]])
    scores = torch.stack([torch.zeros(2, 3), proposals], dim=1)
    candidates = AverageKTwoHead(K=1.5).candidates(scores, torch.tensor([0, 0]))
    assert candidates.int().tolist() == [[0, 0, 0], [0, 1, 0]]


def test_sets_have_K_classes_on_average_and_never_contain_the_label_twice():  # Eq. 13
    scores, labels = batch(n=20, n_classes=30, heads=2)
    for K in (1, 2, 3.5, 7, 29):
        candidates = AverageKTwoHead(K=K).candidates(scores, labels)
        assert 1 + candidates.sum() / 20 == K
        assert not candidates[torch.arange(20), labels].any()


def test_a_batch_of_one_row_has_K_minus_one_candidates():  # Sec. 5.3
    scores, labels = batch(n=1, heads=2)
    assert AverageKTwoHead(K=4).candidates(scores, labels).sum() == 3


def test_K_is_the_decimal_it_prints_as_and_a_half_is_rounded_up():
    # In binary (1.15 − 1)·10 is 1.4999999999999991.
    assert AverageKTwoHead(K=1.15).n_candidates(10) == 2
    assert AverageKTwoHead(K=1.1).n_candidates(5) == 1
    assert AverageKTwoHead(K=1.1).n_candidates(4) == 0
    assert AverageKTwoHead(K=2.3).n_candidates(64) == 83
    assert AverageKTwoHead(K=1).n_candidates(64) == 0


def test_candidates_weigh_alpha_together_however_their_number_is_rounded():
    scores, labels = batch(n=5, heads=2)
    scores[:, 0] = 0  # every −log σ is log 2: one for the label, α for the candidates, α for the rest
    for K in (1.1, 1.3, 1.5, 1.6):
        of_sigmoids = AverageKTwoHead(K=K, alpha=3)(scores, labels).mean() - CrossEntropy()(scores[:, 1], labels).mean()
        assert of_sigmoids.item() == pytest.approx(7 * math.log(2))


def test_K_1_is_cross_entropy_on_the_candidate_head_plus_weighted_binary_cross_entropy_on_the_other():
    scores, labels = batch(heads=2)
    value = AverageKTwoHead(K=1, alpha=1)(scores, labels)
    assert torch.allclose(value, CrossEntropy()(scores[:, 1], labels) + AssumeNegative()(scores[:, 0], labels))


def test_only_cross_entropy_trains_the_candidate_head():
    scores, labels = batch(heads=2)
    scores.requires_grad_()
    (gradient,) = torch.autograd.grad(AverageKTwoHead(K=3)(scores, labels).mean(), scores)
    (expected,) = torch.autograd.grad(CrossEntropy()(scores[:, 1], labels).mean(), scores)
    assert torch.allclose(gradient[:, 1], expected[:, 1])


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 8), st.integers(3, 7), st.floats(1, 2.9), st.floats(0, 5), st.integers(0, 10**6))
def test_the_mean_over_rows_is_the_batch_loss_for_any_batch(n, n_classes, K, alpha, seed):
    K = round(K, 2)
    scores, labels = batch(n, n_classes, heads=2, seed=seed)
    value, _ = naive_two_head(scores, labels.tolist(), K, alpha)
    assert AverageKTwoHead(K=K, alpha=alpha)(scores, labels).mean().item() == pytest.approx(value)


def test_masked_classes_are_never_candidates_even_when_there_are_too_few_others():
    scores, labels = batch(n=2, heads=2)
    labels[:] = 0
    scores[..., 2:] = -math.inf
    loss = AverageKTwoHead(K=4)
    scores.requires_grad_()
    assert loss.candidates(scores, labels).int().tolist() == [[0, 1, 0, 0, 0, 0]] * 2
    value = loss(scores, labels)
    (gradient,) = torch.autograd.grad(value.sum(), scores)
    assert value.isfinite().all()
    assert gradient.isfinite().all()


@pytest.mark.parametrize("loss", [AverageKTwoHead(K=2), AssumeNegative(), ExpectedPositive(K=2), ROLE(K=2)])
def test_batches_can_be_mapped(loss):
    scores = torch.randn(20, 3, *((2,) if loss.heads == 2 else ()), 5, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(0, 5, (20, 3), generator=torch.Generator().manual_seed(1))
    one_by_one = torch.stack([loss(s, y) for s, y in zip(scores, labels, strict=True)])
    assert torch.allclose(vmap(loss)(scores, labels), one_by_one)


def test_the_predicting_head_is_what_a_table_caches():
    scores, _ = batch(heads=2)
    assert torch.equal(AverageKTwoHead().logits(scores), scores[:, 0])
    with pytest.raises(ValueError, match=r"wants \(n, 2, L\)"):
        AverageKTwoHead(K=2)(scores[:, 0], torch.zeros(4, dtype=torch.long))
