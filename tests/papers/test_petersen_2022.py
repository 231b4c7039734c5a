"""Petersen et al. 2022, differentiable top-k classification learning: Eq. 1–4, Fig. 1, 4 and 5, Table 7."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import vmap

from workbench.losses import CrossEntropy, DifferentiableTopK, from_spec
from workbench.losses.ranked import MASKED, largest_k, rank_weights
from workbench.operators import (
    comparator_network_sort,
    neural_sort,
    relaxed_sorts,
    selection_network,
    sinkhorn_sort,
    soft_sort,
)
from workbench.operators.networks import KINDS, minimum_ranks, splitter_cascade

OPERATORS = ("neural_sort", "soft_sort", "sinkhorn_sort", *KINDS)
# Table 7: n → (full sort; odd-even/pairwise/bitonic selection for k = 1…8; splitter selection for k = 1…8).
TABLE_7 = {
    16: (10, (4, 7, 9, 9, 10, 10, 10, 10), (4, 6, 7, 8, 10, 11, 12, 13)),
    1024: (55, (10, 19, 27, 27, 34, 34, 34, 34), (10, 14, 16, 18, 22, 25, 27, 29)),
    10450: (105, (14, 27, 39, 39, 50, 50, 50, 50), (14, 18, 20, 23, 27, 30, 32, 34)),
    65536: (136, (16, 31, 45, 45, 58, 58, 58, 58), (16, 20, 22, 25, 29, 32, 34, 36)),
}


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def relaxed(operator, scores, k=None, steepness=3.0, relaxation="cauchy"):
    if operator in KINDS:
        return comparator_network_sort(scores, k, kind=operator, relaxation=relaxation, steepness=steepness)
    sort = {"neural_sort": neural_sort, "soft_sort": soft_sort, "sinkhorn_sort": sinkhorn_sort}[operator]
    return sort(scores, k, temperature=1 / steepness)


def dense_network(scores, k, kind, relaxation, steepness):
    """P of one row as the product of one n × n matrix per layer, from the first layer to the last."""
    n = len(scores)
    P, values = torch.eye(n, dtype=scores.dtype), scores
    for layer in selection_network(n, k, kind):
        M = torch.eye(n, dtype=scores.dtype)
        for a, b in layer.tolist():
            x = steepness * (values[b] - values[a])
            swap = torch.sigmoid(x) if relaxation == "logistic" else 0.5 + torch.arctan(x) / math.pi
            M[a, a] = M[b, b] = 1 - swap
            M[a, b] = M[b, a] = swap
        P, values = M @ P, M @ values
    return P


# Selection networks: Appendix B and Table 7


def test_depths_of_selection_networks_are_those_of_table_7():
    for n, (full, merging, splitter) in TABLE_7.items():
        for kind in ("odd_even_merge", "bitonic"):
            assert tuple(len(selection_network(n, k, kind)) for k in range(1, 9)) == merging, (n, kind)
            assert len(selection_network(n, n, kind)) == full, (n, kind)
        assert tuple(len(selection_network(n, k, "splitter")) for k in range(1, 9)) == splitter, n
    selection_network.cache_clear()  # the last ones are large


def test_the_5_of_16_network_has_depth_10():
    assert len(selection_network(16, 5, "splitter")) == 10


def test_odd_even_transposition_needs_as_many_layers_as_wires():
    assert len(selection_network(16, 16, "odd_even_transposition")) == 16


def on_all_bits(n, layers):
    """(2^n, n): what the layers make of every input of zeros and ones, and those inputs."""
    inputs = np.array(list(product((0, 1), repeat=n)), dtype=np.int8)
    values = inputs.copy()
    for layer in layers:
        a, b = layer.T
        values[:, a], values[:, b] = values[:, a] | values[:, b], values[:, a] & values[:, b]
    return values, inputs


@pytest.mark.parametrize("kind", KINDS)
def test_networks_sort_the_k_largest_to_the_front(kind):
    # The 0-1 principle: a network that is right on all inputs of zeros and ones is right on all inputs.
    for n in range(1, 11):
        for k in range(1, n + 1):
            network = selection_network(n, k, kind)
            values, inputs = on_all_bits(n, network)
            assert (values[:, :k] == -np.sort(-inputs, axis=1)[:, :k]).all(), (n, k)
            for layer in network:
                assert (layer[:, 0] < layer[:, 1]).all()
                assert len(np.unique(layer)) == layer.size  # a wire is compared once a layer


def known_to_be_larger(n, layers):
    """For each wire, how many others carry at least its value after these layers, whatever the input."""
    values = on_all_bits(n, layers)[0].astype(np.float32)
    smaller_once = (1 - values).T @ values  # [u, v] > 0: some input leaves 0 on wire u and 1 on wire v
    return (smaller_once == 0).sum(axis=0) - 1  # but for the wire itself


def test_minimum_ranks_of_figure_4_follow_from_the_comparisons():
    assert minimum_ranks(8).tolist() == [0, 1, 1, 3, 1, 3, 3, 7]
    assert known_to_be_larger(8, splitter_cascade(np.arange(8))).tolist() == [0, 1, 1, 3, 1, 3, 3, 7]


def test_minimum_ranks_of_figure_5_decide_the_top_five_of_sixteen():
    first = minimum_ranks(16)
    assert first.tolist() == [0, 1, 1, 3, 1, 3, 3, 7, 1, 3, 3, 7, 3, 7, 7, 15]
    assert known_to_be_larger(16, splitter_cascade(np.arange(16))).tolist() == first.tolist()
    assert (first >= 5).sum() == 5  # wires 7, 11, 13, 14, 15 leave after the first cascade
    # Wires tied at rank 3, then those tied at rank 1, are told apart by cascades of their own.
    third, second = np.flatnonzero(first == 3), np.flatnonzero(first == 1)
    assert (3 + minimum_ranks(len(third))).tolist() == [3, 4, 4, 6, 4, 6]
    assert (1 + minimum_ranks(len(second))).tolist() == [1, 2, 2, 4]
    after = known_to_be_larger(16, selection_network(16, 5, "splitter"))
    assert sorted(after[:5]) == [0, 1, 2, 3, 4]
    assert after[0] == 0


def test_the_stride_of_a_splitter_is_a_power_of_two_not_the_printed_logarithm():
    assert splitter_cascade(np.arange(16))[0][0].tolist() == [0, 8]  # printed: ⌈log₂ 16⌉ − 1 = 3


def test_networks_that_do_not_exist_are_refused():
    with pytest.raises(ValueError, match="no network of kind 'pairwise'; give one of odd_even_transposition"):
        selection_network(8, 3, "pairwise")
    with pytest.raises(ValueError, match="1 ≤ k ≤ n"):
        selection_network(4, 5, "bitonic")


# Relaxed permutations: Sec. 2 and Eq. 3


@pytest.mark.parametrize("operator", OPERATORS)
@settings(max_examples=10, deadline=None)
@given(n=st.integers(1, 9), k=st.integers(1, 9), scale=st.sampled_from([1e-3, 1.0, 30.0]), seed=st.integers(0, 99))
def test_rows_are_probability_distributions_and_the_first_k_of_all(operator, n, k, scale, seed):
    scores, k = scale * draw(2, n, seed=seed), min(n, k)
    P = relaxed(operator, scores, k)
    assert P.shape == (2, k, n)
    assert (P >= 0).all()
    assert torch.allclose(P.sum(-1), torch.ones(2, k, dtype=torch.float64))
    if operator in ("neural_sort", "soft_sort", "sinkhorn_sort", "odd_even_transposition"):
        assert torch.allclose(P, relaxed(operator, scores)[:, :k])  # other networks depend on k


@pytest.mark.parametrize("operator", ["sinkhorn_sort", *KINDS])
def test_columns_sum_to_one_where_the_paper_says_so(operator):
    P = relaxed(operator, draw(3, 7))
    assert torch.allclose(P.sum(-2), torch.ones(3, 7, dtype=torch.float64), atol=1e-4)


@pytest.mark.parametrize("operator", OPERATORS)
def test_P_tends_to_the_permutation_that_sorts(operator):
    scores = torch.tensor([0.3, 2.0, -1.0, 1.2, 0.9], dtype=torch.float64)
    hard = torch.nn.functional.one_hot(scores.argsort(descending=True)[:4], 5).double()
    if operator == "sinkhorn_sort":  # the lower the temperature, the slower it converges
        P = sinkhorn_sort(scores, 4, temperature=2e-3, n_iterations=1000)
    else:
        P = relaxed(operator, scores, 4, steepness=1e6)
    assert torch.allclose(P, hard, atol=1e-2)


def test_neural_sort_and_soft_sort_are_their_formulas():
    s, T, n = draw(6), 0.7, 6
    A = (s[:, None] - s).abs().sum(1)
    largest = s.sort(descending=True).values
    for r in range(1, 4):
        assert torch.allclose(neural_sort(s, 3, T)[r - 1], (((n + 1 - 2 * r) * s - A) / T).softmax(0))
        assert torch.allclose(soft_sort(s, 3, T)[r - 1], (-(largest[r - 1] - s).abs() / T).softmax(0))


def test_sinkhorn_sort_transports_squashed_scores_to_a_grid():
    s, T, n = draw(5), 0.05, 5
    x = ((s - s.mean()) / s.std(correction=0)).sigmoid()
    kernel = torch.exp(-((torch.linspace(1, 0, n)[:, None] - x) ** 2) / T)
    of_rank = torch.ones(n, dtype=torch.float64)
    for _ in range(2000):
        of_class = 1 / (kernel.T @ of_rank)
        of_rank = 1 / (kernel @ of_class)
    assert torch.allclose(sinkhorn_sort(s, temperature=T, n_iterations=2000), of_rank[:, None] * kernel * of_class)


def test_more_sinkhorn_iterations_bring_the_columns_nearer_to_one():
    errors = [(sinkhorn_sort(draw(8), n_iterations=i).sum(-2) - 1).abs().max().item() for i in (1, 5, 25)]
    assert errors == sorted(errors, reverse=True)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("relaxation", ["logistic", "cauchy"])
def test_back_to_front_rows_are_those_of_the_product_of_all_layers(kind, relaxation):  # Eq. 3
    scores = draw(3, 11)
    P = comparator_network_sort(scores, 4, kind, relaxation, steepness=1.7)
    for row, expected in zip(P, scores, strict=True):
        assert torch.allclose(row, dense_network(expected, 4, kind, relaxation, 1.7)[:4])


@pytest.mark.parametrize("relaxation", ["logistic", "cauchy"])
def test_a_comparator_mixes_its_two_values_by_the_distribution_function(relaxation):
    a, b, beta = 0.4, 1.1, 2.0
    swap = (
        1 / (1 + math.exp(-beta * (b - a))) if relaxation == "logistic" else 0.5 + math.atan(beta * (b - a)) / math.pi
    )
    P = comparator_network_sort(torch.tensor([a, b], dtype=torch.float64), None, "bitonic", relaxation, beta)
    assert P.flatten().tolist() == pytest.approx([1 - swap, swap, swap, 1 - swap])


@pytest.mark.parametrize("operator", OPERATORS)
def test_gradients_equal_finite_differences(operator):
    scores = draw(2, 6).requires_grad_()
    relaxations = ("logistic", "cauchy") if operator in KINDS else ("cauchy",)
    for relaxation in relaxations:
        assert torch.autograd.gradcheck(lambda s: relaxed(operator, s, 3, relaxation=relaxation), (scores,))  # noqa: B023


def test_networks_can_be_mapped_and_differentiated_inside_the_map():
    scores = draw(5, 2, 6)
    sort = lambda s: comparator_network_sort(s, 3, "splitter")  # noqa: E731
    assert torch.allclose(vmap(sort)(scores), sort(scores))
    weights = draw(3, 6, seed=1)
    gradient = torch.func.grad(lambda s: (sort(s) * weights).sum())
    expected = scores.clone().requires_grad_()
    (sort(expected) * weights).sum().backward()
    assert torch.allclose(vmap(gradient)(scores), expected.grad)


def test_a_network_first_used_for_validation_can_be_trained_with():
    scores = draw(2, 13)  # a size no other test uses, so that nothing is kept from before
    with torch.inference_mode():
        comparator_network_sort(scores, 3)
        DifferentiableTopK(m=13)(scores, torch.tensor([0, 1]))
    scores.requires_grad_()
    comparator_network_sort(scores, 3)[0, 0, 0].backward()
    DifferentiableTopK(m=13)(scores, torch.tensor([0, 1])).sum().backward()
    assert scores.grad.isfinite().all()


def test_small_probabilities_keep_their_digits():
    # The loser of a comparison 1e6 apart stays in front with probability 1/(π·1e6); 1 − swap would be 0 in float32.
    P = comparator_network_sort(torch.tensor([0.0, 1e6]), kind="bitonic")
    assert P[0, 0].item() == pytest.approx(1 / (math.pi * 1e6), rel=1e-4)


def test_a_rank_out_of_reach_has_a_large_loss_and_no_gradient():
    scores = torch.tensor([[0.0, 1e30, 2e30, 3e30]], requires_grad=True)  # so far that ½ − arctan(x)/π is 0 in double
    loss = DifferentiableTopK(p_k=(1.0,), operator="bitonic", m=4, top1="sort")(scores, torch.tensor([0]))
    loss.sum().backward()
    assert 100 < loss.item() < math.inf
    assert (scores.grad == 0).all()


def test_sinkhorn_sort_of_tied_scores_has_a_gradient_to_learn_from():  # a head that starts at 0
    scores = torch.zeros(2, 20, requires_grad=True)
    DifferentiableTopK(operator="sinkhorn_sort")(scores, torch.tensor([0, 1])).sum().backward()
    assert 0 < scores.grad.abs().max() < 100


@pytest.mark.parametrize("operator", [neural_sort, soft_sort, sinkhorn_sort])
@pytest.mark.parametrize("size", [0, 1e4])
def test_relaxed_sorts_compute_half_precision_in_float32(operator, size):
    scores = (size * draw(3, 20)).half()
    assert operator(scores).dtype == torch.float16
    assert torch.equal(operator(scores), operator(scores.float()).half())


def test_neural_sort_of_many_classes_keeps_nothing_of_size_n_by_n():
    scores = torch.randn(1, 20_000, generator=torch.Generator().manual_seed(0))
    assert neural_sort(scores, 2).shape == (1, 2, 20_000)  # 1.6 GB for |s_j − s_l|


@pytest.mark.parametrize("operator", ["neural_sort", "soft_sort", "sinkhorn_sort", "bitonic"])
def test_what_cannot_be_ranked_is_refused(operator):
    for k in (4, 0, 1.5, "2"):
        with pytest.raises(ValueError, match=f"k = {k} with 3 classes"):
            relaxed(operator, draw(3), k=k)
    with pytest.raises(ValueError, match="give a number > 0"):
        relaxed(operator, draw(3), steepness=-1.0)
    with pytest.raises(ValueError, match="floating-point"):
        relaxed(operator, torch.tensor([1, 2]))


# The loss: Eq. 1, 2 and 4


def naive_loss(scores, label, p_k, operator, steepness, top1, P_of=relaxed):
    """Eq. 2, Eq. 4 and the authors' default, as sums over k and over ranks."""
    others = [j for j in scores.argsort().tolist() if j != label]
    kept = scores[[*others, label]]
    P = P_of(operator, kept, len(p_k), steepness)[:, -1]
    inside = lambda k: sum(P[r] for r in range(k))  # noqa: E731
    if top1 == "sort":
        return -math.log(sum(p * inside(k) for k, p in enumerate(p_k, 1)))
    beyond = sum(p * inside(k) for k, p in enumerate(p_k, 1) if k > 1)
    softmax = kept.softmax(0)[-1]
    if top1 == "softmax":
        return -math.log(p_k[0] * softmax + beyond)
    return -p_k[0] * math.log(softmax) - (1 - p_k[0]) * math.log(beyond)


def test_half_top_1_and_half_top_2_weigh_the_ranks_one_and_a_half():  # Fig. 1
    assert rank_weights(torch.tensor([0.5, 0.5, 0, 0, 0])).tolist() == [1, 0.5, 0, 0, 0]
    assert rank_weights(torch.tensor([0.2] * 5)).tolist() == pytest.approx([1, 0.8, 0.6, 0.4, 0.2])


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("top1", ["sort", "softmax", "cross_entropy"])
def test_the_loss_is_eq_2_or_eq_4_or_softmax_in_place_of_the_first_row(operator, top1):
    scores, labels = draw(5, 7), torch.arange(5)
    for p_k in ((0.5, 0.5), (0.3, 0.0, 0.2, 0.5), (0.0, 1.0)):
        loss = DifferentiableTopK(p_k=p_k, operator=operator, steepness=3.0, top1=top1)
        expected = [naive_loss(s, y, p_k, operator, 3.0, top1) for s, y in zip(scores, labels.tolist(), strict=True)]
        assert loss(scores, labels).tolist() == pytest.approx(expected)


def test_all_weight_on_top_1_is_cross_entropy_and_not_zero_times_log_zero():  # Eq. 4 at P_K(1) = 1
    scores, labels = draw(4, 6).requires_grad_(), torch.tensor([0, 2, 5, 5])
    for p_k in ((1.0,), (1.0, 0.0, 0.0)):
        for top1 in ("cross_entropy", "softmax"):
            value = DifferentiableTopK(p_k=p_k, top1=top1)(scores, labels)
            assert torch.allclose(value, CrossEntropy()(scores, labels))
            (gradient,) = torch.autograd.grad(value.sum(), scores)
            assert gradient.isfinite().all()


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [1, 1e4])
def test_all_weight_on_top_1_by_softmax_is_cross_entropy_with_its_gradient(operator, size):
    scores, labels = (size * draw(5, 10)).requires_grad_(), torch.arange(5)
    values = DifferentiableTopK(p_k=(1.0,), operator=operator, m=10)(scores, labels)
    torch.testing.assert_close(values, CrossEntropy()(scores, labels))
    slopes = [torch.autograd.grad(v.sum(), scores)[0] for v in (values, CrossEntropy()(scores, labels))]
    torch.testing.assert_close(*slopes)


@pytest.mark.parametrize("operator", OPERATORS)
def test_a_class_with_all_weight_on_top_1_leaves_the_others_their_gradient(operator):
    scores = draw(3, 3).requires_grad_()
    loss = DifferentiableTopK(p_k=((1.0, 0.0), (0.5, 0.5), (0.0, 1.0)), operator=operator)
    loss(scores, torch.arange(3)).sum().backward()
    assert scores.grad.isfinite().all()
    assert scores.grad.any(-1).all()


def test_hard_ranks_give_minus_the_log_of_the_weight_of_the_rank():
    # As the sort hardens, the label at rank r costs −log Σ_{k ≥ r} P_K(k).
    scores = torch.tensor([[5.0, 4, 3, 2, 1, 0]], dtype=torch.float64).repeat(6, 1)
    loss = DifferentiableTopK(p_k=(0.5, 0.0, 0.5), operator="soft_sort", steepness=100.0, top1="sort")
    values = loss(scores, torch.arange(6))
    assert values[:3].tolist() == pytest.approx([0, math.log(2), math.log(2)], abs=1e-6)
    assert (values[3:] > 50).all()


def test_only_the_m_best_classes_count_and_the_label_always_does():  # Sec. 3.3
    scores, labels = draw(3, 50), torch.tensor([4, 7, 9])
    loss = DifferentiableTopK(p_k=(0.5, 0.5), m=8)
    scores[0, 4] = -30.0  # the label of row 0 is last
    values = loss(scores, labels)
    low = scores.scatter(1, labels[:, None], math.inf).topk(8).values[:, -1:]
    other = torch.where(scores < low, scores - 5, scores).scatter(1, labels[:, None], scores.gather(1, labels[:, None]))
    assert torch.equal(loss(other, labels), values)
    scores.requires_grad_()
    loss(scores, labels).sum().backward()
    assert ((scores.grad != 0).sum(1) <= 8).all()
    assert (scores.grad.gather(1, labels[:, None]) < 0).all()


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_loss_does_not_depend_on_the_order_of_the_classes(operator):
    scores, labels = draw(4, 9), torch.tensor([0, 3, 8, 8])
    order = torch.randperm(9, generator=torch.Generator().manual_seed(0))
    loss = DifferentiableTopK(p_k=(0.5, 0.0, 0.5), operator=operator)
    assert torch.allclose(loss(scores[:, order], order.argsort()[labels]), loss(scores, labels))


def test_networks_depend_on_the_order_of_their_wires():
    scores, order = draw(8), torch.tensor([3, 1, 0, 2, 7, 4, 6, 5])
    P = comparator_network_sort(scores, 2, "bitonic")
    assert not torch.allclose(comparator_network_sort(scores[order], 2, "bitonic"), P[:, order], atol=1e-3)


@pytest.mark.parametrize("operator", OPERATORS)
def test_the_gradient_of_the_loss_equals_finite_differences(operator):
    scores, labels = draw(3, 7).requires_grad_(), torch.tensor([0, 3, 6])
    for top1 in ("sort", "softmax", "cross_entropy"):
        loss = DifferentiableTopK(p_k=(0.4, 0.0, 0.6), operator=operator, top1=top1)
        assert torch.autograd.gradcheck(lambda s: loss(s, labels), (scores,))  # noqa: B023


def test_each_class_may_have_its_own_distribution():  # Sec. 3: top-1 for persons, top-3 for animals
    scores, labels = draw(4, 5), torch.tensor([0, 1, 2, 1])
    person, animal = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0)
    loss = DifferentiableTopK(p_k=(person, animal, animal, person, person))
    as_person, as_animal = (DifferentiableTopK(p_k=p_k)(scores, labels) for p_k in (person, animal))
    assert torch.allclose(loss(scores, labels), torch.where(labels == 0, as_person, as_animal))
    assert from_spec(loss.spec()) == loss
    with pytest.raises(ValueError, match="5 rows, one per class, and scores 4 classes"):
        loss(scores[:, :4], labels)
    with pytest.raises(ValueError, match="sum to 1"):
        DifferentiableTopK(p_k=((0.5, 0.5), (0.5, 0.2)))
    with pytest.raises(ValueError, match="different lengths"):
        DifferentiableTopK(p_k=((0.5, 0.5), (1.0,)))


def test_each_row_may_have_its_own_distribution():
    scores, labels = draw(3, 5), torch.tensor([0, 1, 2])
    p_k = torch.tensor([[1.0, 0, 0], [0, 0, 1], [0.5, 0.5, 0]])
    for top1 in ("sort", "softmax", "cross_entropy"):
        value = DifferentiableTopK(p_k=(0.5, 0.5), operator="soft_sort", top1=top1)(scores, labels, p_k=p_k)
        for i in range(3):
            one = DifferentiableTopK(p_k=tuple(p_k[i].tolist()), operator="soft_sort", top1=top1)
            assert torch.allclose(value[i], one(scores, labels)[i])
    for wrong in (p_k[:2], p_k[:, :0], p_k.tolist()):
        with pytest.raises(ValueError, match=r"give a tensor \(3, k\)"):
            DifferentiableTopK()(scores, labels, p_k=wrong)
    for no_distribution in (p_k * 0.5, p_k - 1 / 3, p_k * math.nan):
        with pytest.raises(ValueError, match="not a distribution"):
            DifferentiableTopK()(scores, labels, p_k=no_distribution)


@pytest.mark.parametrize("operator", OPERATORS)
def test_large_scores_and_masked_classes_stay_finite(operator):
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(6, 20, generator=generator), torch.arange(6)
    masked = scores.clone()
    masked[:, 8:] = -math.inf  # fewer than m = 16 classes are left
    for steepness in (0.1, 100.0):
        loss = DifferentiableTopK(operator=operator, steepness=steepness)
        for tried in (scores * 1e4, scores * 1e-4, masked, torch.zeros(6, 20)):
            tried = tried.clone().requires_grad_()
            value = loss(tried, labels)
            value.sum().backward()
            assert value.isfinite().all()
            assert tried.grad.isfinite().all()


def test_batches_can_be_mapped():
    scores, labels = draw(10, 2, 4), torch.randint(0, 4, (10, 2), generator=torch.Generator().manual_seed(0))
    for operator in OPERATORS:
        loss = DifferentiableTopK(p_k=(0.5, 0.5), operator=operator)
        assert torch.allclose(vmap(loss)(scores, labels), torch.stack(list(map(loss, scores, labels))))


def test_a_distribution_that_reaches_too_far_is_refused():
    with pytest.raises(ValueError, match="reaches k = 5 with 5 classes"):
        DifferentiableTopK()(draw(2, 5), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="reaches rank 5 and m = 4"):
        DifferentiableTopK(m=4)
    with pytest.raises(ValueError, match="sum to 1"):
        DifferentiableTopK(p_k=(0.5, 0.6))
    assert largest_k((0.5, 0.5, 0.0, 0.0)) == 2


def test_with_classes_masked_the_label_is_ranked_once_and_against_the_others():
    """Of five classes three are masked and m = 4 are kept: the masked one that is left out is never the label."""
    loss = DifferentiableTopK(p_k=(0.5, 0.5), m=4, steepness=2.0)
    for label in range(5):
        scores = torch.full((1, 5), -math.inf, dtype=torch.float64)
        scores[0, [(label + 1) % 5, label]] = torch.tensor([1.0, -3.0], dtype=torch.float64)
        far = scores.clamp(min=-3.0 - MASKED / loss.steepness)
        torch.testing.assert_close(loss(scores, torch.tensor([label])), loss(far, torch.tensor([label])))
        assert loss(scores, torch.tensor([label])) > 0.3  # another class leads


@pytest.mark.parametrize("temperature", [relaxed_sorts.LEAST_TEMPERATURE_OF_PRODUCTS, 0.03, 0.5])
def test_sinkhorn_by_products_is_sinkhorn_on_logarithms(temperature, monkeypatch):
    scores, into = draw(7, 16).requires_grad_(), draw(7, 5, 16, seed=1)
    found = []
    for least in (0, math.inf):
        monkeypatch.setattr(relaxed_sorts, "LEAST_TEMPERATURE_OF_PRODUCTS", least)
        P = sinkhorn_sort(scores, 5, temperature)
        found.append((P.detach(), *torch.autograd.grad((into * P).sum(), scores)))
    for products, logarithms in zip(*found, strict=True):
        torch.testing.assert_close(products, logarithms, rtol=1e-11, atol=1e-13)
