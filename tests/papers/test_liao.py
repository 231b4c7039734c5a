"""Liao et al., quasibinary classifier for images with zero and multiple labels: Eq. 2–13 and its supplement."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from torch.func import vmap

from workbench.losses import BinaryCrossEntropy, CrossEntropy, Quasibinary, SoftmaxMaxConfidence, SoftmaxUniform


def batch(n=5, n_classes=6, seed=0):
    """Random scores in double precision; the first row has no label, the second many, the others one or more."""
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, n_classes, generator=generator, dtype=torch.float64) * 2
    labels = torch.rand(n, n_classes, generator=generator) < 0.3
    labels[0], labels[1, :4], labels[2:, 0] = False, True, True
    return scores, labels


def naive_quasibinary(scores, labels, C=None):
    """Minus Eq. 11, with Eq. 10 and 12, in loops and without logarithms of sums."""
    scores, labels = scores.tolist(), labels.tolist()
    if C is None:
        C = sum(math.exp(z) for row in scores for z in row) / max(sum(map(sum, labels)), 1)
    total = 0.0
    for row, label in zip(scores, labels, strict=True):
        for z, y in zip(row, label, strict=True):
            log_q = math.log(math.exp(z) / C)
            total -= y * log_q - max(log_q, 0.0)
    return total / len(scores)


# Baselines


def test_binary_cross_entropy_is_the_likelihood_of_independent_sigmoids_of_eq_2():
    scores, labels = batch()
    q = scores.sigmoid()
    expected = -torch.where(labels, q, 1 - q).log().sum(-1)
    assert torch.allclose(BinaryCrossEntropy()(scores, labels), expected)


def test_softmax_is_pushed_to_the_equally_weighted_labels_of_a_row():
    scores, labels = batch()
    log_p = scores.log_softmax(-1)
    for loss in (SoftmaxUniform(), SoftmaxMaxConfidence()):
        values = loss(scores, labels)
        for i in range(1, 5):
            assert values[i].item() == pytest.approx(-log_p[i, labels[i]].mean().item())


def test_softmax_uniform_is_the_divergence_from_uniform_on_a_row_without_a_label():
    scores, labels = batch()
    p = scores.softmax(-1)[0]
    divergence = sum(1 / 6 * math.log(1 / 6 / p_k) for p_k in p.tolist())
    assert SoftmaxUniform(no_label_weight=0.5)(scores, labels)[0].item() == pytest.approx(0.5 * divergence)


def test_softmax_max_confidence_pushes_down_the_class_in_front_of_a_row_without_a_label():
    scores, labels = batch()
    scores.requires_grad_()
    value = SoftmaxMaxConfidence(no_label_weight=2)(scores, labels)[0]
    p = scores.softmax(-1)[0]
    assert value.item() == pytest.approx(2 * p.max().log().item())
    value.backward()
    assert scores.grad[0].argmax() == p.argmax()
    assert (scores.grad[0] > 0).sum() == 1


def test_softmax_cannot_go_below_one_over_the_number_of_classes():  # Sec. V-B, results
    for loss in (SoftmaxUniform(), SoftmaxMaxConfidence()):
        scores = torch.randn(1, 10, generator=torch.Generator().manual_seed(0), requires_grad=True)
        optimiser = torch.optim.SGD([scores], lr=1.0)
        for _ in range(100):
            optimiser.zero_grad()
            loss(scores, torch.zeros(1, 10, dtype=torch.bool)).sum().backward()
            optimiser.step()
        assert 0.1 <= scores.softmax(-1).max() < 0.2


# Eq. 4, 10–12


def test_quasibinary_is_minus_eq_11():
    for seed in range(3):
        scores, labels = batch(seed=seed)
        assert Quasibinary()(scores, labels).mean().item() == pytest.approx(naive_quasibinary(scores, labels))


def test_the_q_of_a_batch_sum_to_its_number_of_labels():  # Eq. 4, 9 and 10
    scores, labels = batch()
    state = Quasibinary().state(5, 6).double()
    Quasibinary()(scores, labels, state=state)
    assert (scores - state.log_C).exp().sum().item() == pytest.approx(labels.sum().item())


def test_one_row_with_one_label_is_cross_entropy():  # Sec. III-A: softmax is the case #label = 1
    scores, _ = batch(n=4)
    for row, label in zip(scores, (0, 3, 5, 2), strict=True):
        labels = torch.arange(6) == label
        expected = CrossEntropy()(row[None], torch.tensor([label]))
        assert torch.allclose(Quasibinary()(row[None], labels[None]), expected)


def test_q_above_one_is_paid_for():
    scores = torch.tensor([[6.0, 0, 0], [0, 0, 0]], dtype=torch.float64)
    labels = torch.tensor([[True, True, True], [True, False, False]])
    C = (math.exp(6) + 5) / 4
    assert math.exp(6) / C > 1
    expected = [(6 - math.log(C)) - (6 - 3 * math.log(C)), math.log(C)]
    assert Quasibinary()(scores, labels).tolist() == pytest.approx(expected)


def test_a_batch_without_any_label_counts_as_one_label():
    scores, _ = batch()
    labels = torch.zeros(5, 6, dtype=torch.bool)
    value = Quasibinary()(scores, labels)
    assert value.mean().item() == pytest.approx(naive_quasibinary(scores, labels))
    assert value.isfinite().all()


def test_the_gradient_flows_through_C_so_rows_without_labels_and_absent_classes_learn():
    scores, labels = batch()
    scores = (scores / 10).requires_grad_()  # near zero, so that every q is below 1
    loss = Quasibinary()
    loss(scores, labels).mean().backward()
    assert (scores.grad[0] > 0).all()  # the row without a label sinks
    q = (scores - (scores.flatten().logsumexp(0) - labels.sum().log())).exp().detach()
    assert (q < 1).all()
    # Then the gradient is that of cross-entropy over the whole batch: q − y.
    assert torch.allclose(scores.grad * 5, q - labels.double())
    assert torch.autograd.gradcheck(lambda s: loss(s, labels), (scores,))


def test_scores_that_overflow_the_exponential_stay_finite():
    scores, labels = batch()
    scores = (scores * 1e4).float().requires_grad_()
    state = Quasibinary().state(5, 6)
    value = Quasibinary()(scores, labels, state=state)
    value.sum().backward()
    assert value.isfinite().all()
    assert scores.grad.isfinite().all()
    assert state.log_C.isfinite()


# Eq. 13


@pytest.mark.parametrize("rate", [0.1, 0.001, 0.5, 1])  # 1: the last batch alone
def test_the_constant_is_a_moving_average_of_the_constants_of_training_batches(rate):
    loss = Quasibinary(averaging_rate=rate)
    state = loss.state(100, 6).double()
    assert state.log_C.isnan()
    expected = None
    for seed in range(4):
        scores, labels = batch(seed=seed)
        loss(scores, labels, state=state)
        C = scores.exp().sum().item() / labels.sum().item()
        expected = C if expected is None else (1 - rate) * expected + rate * C
        assert state.log_C.exp().item() == pytest.approx(expected)


def test_the_constant_follows_the_momentum_of_the_paper_unless_told_otherwise():  # Sec. III-B, Sec. V
    assert 1 - Quasibinary().averaging_rate == 0.9


def test_eq_13_as_printed_would_grow_without_bound_and_the_average_does_not():
    scores, labels = batch()
    state = Quasibinary().state(5, 6).double()
    for _ in range(50):
        Quasibinary()(scores, labels, state=state)
    assert state.log_C.exp().item() == pytest.approx(scores.exp().sum().item() / labels.sum().item())


def test_eval_mode_uses_the_average_and_leaves_it_alone():
    scores, labels = batch()
    other, other_labels = batch(seed=1)
    state = Quasibinary().state(5, 6).double()
    Quasibinary()(other, other_labels, state=state)
    C = state.log_C.exp().item()
    state.eval()
    value = Quasibinary()(scores, labels, state=state)
    assert value.mean().item() == pytest.approx(naive_quasibinary(scores, labels, C))
    assert state.log_C.exp().item() == C


def test_the_constant_is_saved_with_the_checkpoint():
    state = Quasibinary().state(5, 6)
    Quasibinary()(*batch(), state=state)
    again = Quasibinary().state(5, 6)
    again.load_state_dict(state.state_dict())
    assert list(state.state_dict()) == ["log_C"]
    assert again.log_C == state.log_C


# Supplement


def test_probabilities_of_three_classes_with_two_labels_sum_to_two():
    pairs = dict(zip(combinations("ABC", 2), (0.5, 0.2, 0.3), strict=True))  # P(AB¬C), P(A¬BC), P(¬ABC)
    probability = {name: sum(p for pair, p in pairs.items() if name in pair) for name in "ABC"}
    assert sum(probability.values()) == pytest.approx(2)
    # With scores log P, C = 1 is the constant of Eq. 10 for this row, and the q are those probabilities.
    scores = torch.tensor([[math.log(probability[name]) for name in "ABC"]], dtype=torch.float64)
    state = Quasibinary().state(1, 3).double()
    Quasibinary()(scores, torch.tensor([[True, True, False]]), state=state)
    assert state.log_C.item() == pytest.approx(0, abs=1e-12)


def test_the_expected_loss_of_that_row_is_least_at_its_probabilities():
    pairs = {(True, True, False): 0.5, (True, False, True): 0.2, (False, True, True): 0.3}
    scores = torch.zeros(1, 3, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.SGD([scores], lr=0.5)
    for _ in range(150):
        optimiser.zero_grad()
        sum(p * Quasibinary()(scores, torch.tensor([pair])).sum() for pair, p in pairs.items()).backward()
        optimiser.step()
    q = 2 * scores.softmax(-1)[0]
    assert q.tolist() == pytest.approx([0.7, 0.8, 0.5], abs=1e-4)


# All of them


@pytest.mark.parametrize("loss", [BinaryCrossEntropy(), Quasibinary(), SoftmaxUniform(), SoftmaxMaxConfidence()])
def test_batches_can_be_mapped_and_classes_masked(loss):
    scores = torch.randn(20, 3, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.rand(20, 3, 5, generator=torch.Generator().manual_seed(1)) < 0.3
    one_by_one = torch.stack([loss(s, y) for s, y in zip(scores, labels, strict=True)])
    assert torch.allclose(vmap(loss)(scores, labels), one_by_one)
    labels[..., 4], scores[..., 4] = False, -math.inf
    scores.requires_grad_()
    vmap(loss)(scores, labels).sum().backward()
    assert scores.grad.isfinite().all()


def test_class_indices_are_refused_where_many_labels_are_meant():
    with pytest.raises(ValueError, match=r"wants \(5, 6\) bool"):
        Quasibinary()(batch()[0], torch.zeros(5, dtype=torch.long))


def test_the_labels_of_a_row_share_cross_entropy_in_double_precision():
    scores = torch.randn(1, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.tensor([[True, True, False, True, False, False, False]])
    expected = CrossEntropy()(scores.expand(3, -1), torch.tensor([0, 1, 3])).mean()
    assert CrossEntropy()(scores, labels).item() == pytest.approx(expected.item(), rel=1e-14)


def test_the_constant_of_the_link_is_asked_of_the_loss_and_not_of_its_state():
    loss = Quasibinary()
    state = loss.state(1, 3)
    loss(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([[True, False, False]]), state=state)
    assert loss.link_constant(state) == state.log_C.item()
    assert loss.link_constant(None) is None
    assert CrossEntropy().link_constant(None) is None
