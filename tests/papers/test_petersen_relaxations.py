"""Petersen et al. 2021 (ART) and 2022 (monotonic sorting networks): how a comparator is relaxed."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.losses import DifferentiableTopK
from workbench.operators import comparator_network_sort
from workbench.operators.comparators import RELAXATIONS, Comparator
from workbench.operators.networks import KINDS

MONOTONIC = ("reciprocal", "cauchy", "optimal")
every_relaxation = pytest.mark.parametrize("relaxation", RELAXATIONS)
numbers = st.floats(-1e6, 1e6)


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def swap(relaxation, gap, steepness=1.0, art_lambda=0.25):
    """F as it is printed, of one gap b − a."""
    x = steepness * gap
    match relaxation:
        case "art":
            return 1 / (1 + math.exp(-x / (abs(gap) + 1e-10) ** art_lambda))
        case "logistic":
            return 1 / (1 + math.exp(-x))
        case "reciprocal":
            return 0.5 * 2 * x / (1 + 2 * abs(x)) + 0.5
        case "cauchy":
            return math.atan(x) / math.pi + 0.5
        case "optimal":
            if abs(x) <= 0.25:
                return x + 0.5
            return 1 - 1 / (16 * x) if x > 0 else -1 / (16 * x)


def swaps(comparator, x):
    return comparator.mixing(comparator.steepness * x)[1]


@every_relaxation
def test_a_comparator_swaps_as_printed(relaxation):
    gaps = [-30.0, -0.5, -0.13, -0.125, 0.0, 1e-3, 0.125, 0.2, 3.0]
    for steepness, art_lambda in ((2.0, 0.25), (0.0625, 0.5)):
        found = swaps(Comparator(relaxation, steepness, art_lambda), double(*gaps))
        assert found.tolist() == pytest.approx([swap(relaxation, gap, steepness, art_lambda) for gap in gaps])


@every_relaxation
@settings(max_examples=50, deadline=None)
@given(first=numbers, second=numbers, steepness=st.sampled_from([0.01, 1.0, 100.0]))
def test_each_relaxation_is_the_distribution_function_of_a_symmetric_distribution(relaxation, first, second, steepness):
    x = double(*sorted((first, second)))
    comparator = Comparator(relaxation, steepness)
    stay, changed = comparator.mixing(steepness * x)
    assert changed[0] <= changed[1]
    assert ((changed >= 0) & (changed <= 1)).all()
    assert torch.allclose(stay + changed, torch.ones(2, dtype=torch.float64), atol=1e-12)
    assert torch.equal(swaps(comparator, -x), stay)
    assert swaps(comparator, double(0.0, 1e-13)).tolist() == pytest.approx([0.5, 0.5], abs=1e-9)


@every_relaxation
def test_no_relaxation_jumps_and_all_reach_0_and_1(relaxation):
    x = torch.linspace(-1, 1, 20_001, dtype=torch.float64)
    found = swaps(Comparator(relaxation), x)
    assert found.diff().abs().max() < (2e-3 if relaxation == "art" else 1.1e-4)  # no steeper than 1, but for ART
    assert swaps(Comparator(relaxation), double(-1e6, 1e6)).tolist() == pytest.approx([0, 1], abs=1e-6)


@every_relaxation
def test_the_density_is_the_slope_also_where_two_values_tie(relaxation):
    x = double(-40.0, -1.0, -0.2, 0.0, 0.2, 1.0, 40.0).requires_grad_()
    comparator = Comparator(relaxation, steepness=2.0, art_lambda=0.5)
    stay, changed = comparator.mixing(x)
    (slope,) = torch.autograd.grad(changed.sum(), x, retain_graph=True)
    assert torch.allclose(slope, comparator.density(x))
    (slope,) = torch.autograd.grad(stay.sum(), x)
    assert torch.allclose(slope, -comparator.density(x))


def test_art_is_logistic_at_0_and_only_the_sign_at_1():
    x = double(-3.0, -1e-3, 1e-3, 3.0)
    logistic = swaps(Comparator("logistic"), x)
    assert torch.allclose(swaps(Comparator("art", art_lambda=0.0), x), logistic)
    alone = 1 / (1 + math.exp(-1))
    assert swaps(Comparator("art", art_lambda=1.0), x).tolist() == pytest.approx([1 - alone, 1 - alone, alone, alone])


def relaxed_minimum(relaxation, x):
    """Of 0 and x: x where the two change places, so that the smaller one comes first."""
    stay, _ = Comparator(relaxation).mixing(x)
    return x * stay


@every_relaxation
def test_the_relaxed_minimum_is_monotonic_for_all_but_the_logistic_ones(relaxation):
    x = torch.linspace(-20, 20, 40_001, dtype=torch.float64)
    rises = (relaxed_minimum(relaxation, x).diff() >= -1e-12).all()
    assert bool(rises) == (relaxation in MONOTONIC)


# How far the relaxed minimum of 0 and x lies from the minimum at most, at slope 1 in the middle: 1/16 is the least.
@pytest.mark.parametrize(
    ("relaxation", "slope", "error"),
    [("reciprocal", 1, 1 / 4), ("cauchy", 1 / math.pi, 1 / math.pi**2), ("optimal", 1, 1 / 16)],
)
def test_the_error_of_a_monotonic_relaxation_is_bounded(relaxation, slope, error):
    x = torch.cat([torch.linspace(0, 1, 10_001, dtype=torch.float64), double(1e2, 1e4, 1e6)])
    comparator = Comparator(relaxation, steepness=1 / slope)
    errors = x * (1 - swaps(comparator, x))
    assert comparator.density(double(0.0)).item() == pytest.approx(slope)
    assert errors.max().item() == pytest.approx(error, rel=1e-4)


@every_relaxation
@pytest.mark.parametrize("kind", KINDS)
def test_a_network_sorts_by_any_relaxation(relaxation, kind):
    scores = double(0.3, 2.0, -1.0, 1.2, 0.9)
    P = comparator_network_sort(scores, None, kind, relaxation, steepness=0.7)
    assert (P >= 0).all()
    assert torch.allclose(P.sum(-1), torch.ones(5, dtype=torch.float64))
    assert torch.allclose(P.sum(-2), torch.ones(5, dtype=torch.float64))
    sharp = comparator_network_sort(scores, None, kind, relaxation, steepness=1e5)
    hard = torch.nn.functional.one_hot(scores.argsort(descending=True), 5).double()
    assert torch.allclose(sharp, hard, atol=1e-3)


@pytest.mark.parametrize("relaxation", MONOTONIC)
@pytest.mark.parametrize("kind", KINDS)
def test_the_sorted_values_rise_with_every_score_if_the_comparator_is_monotonic(relaxation, kind):
    scores = draw(40, 6)

    def values(s):
        return (comparator_network_sort(s, None, kind, relaxation) @ s.unsqueeze(-1)).squeeze(-1)

    slopes = torch.func.vmap(torch.func.jacrev(values))(scores)  # (40, rank, class)
    assert slopes.min() > -1e-9


@every_relaxation
@pytest.mark.parametrize("kind", ["bitonic", "splitter"])
def test_the_loss_is_that_of_the_relaxed_permutation(relaxation, kind):
    scores = draw(4, 9)
    kept = torch.cat([scores[:, 1:].sort(-1).values, scores[:, :1]], -1)  # the label last
    loss = DifferentiableTopK((0.0, 0.5, 0.5), kind, 9, 3.0, "sort", relaxation, 0.4)
    P = comparator_network_sort(kept, 3, kind, relaxation, steepness=3.0, art_lambda=0.4)[..., -1]
    expected = -(P @ double(1.0, 1.0, 0.5)).log()
    assert torch.allclose(loss(scores, torch.zeros(4, dtype=torch.int64)), expected)


@every_relaxation
def test_the_gradient_of_the_loss_equals_finite_differences_for_any_relaxation(relaxation):
    scores, labels = draw(3, 7).requires_grad_(), torch.tensor([0, 3, 6])
    for steepness in (0.01, 5.0):
        loss = DifferentiableTopK((0.4, 0.0, 0.6), steepness=steepness, top1="sort", relaxation=relaxation)
        assert torch.autograd.gradcheck(lambda s: loss(s, labels), (scores,))  # noqa: B023


@every_relaxation
def test_a_head_that_starts_at_0_has_a_gradient_for_any_relaxation(relaxation):
    scores = torch.zeros(2, 20, requires_grad=True)
    DifferentiableTopK(relaxation=relaxation)(scores, torch.tensor([0, 1])).sum().backward()
    assert 0 < scores.grad.abs().max() < 1e4


def test_a_label_far_behind_keeps_the_digits_of_a_thin_tail():
    # σ(−100) = e^−100; 1 − σ(100) would be 0 in double precision.
    scores = torch.tensor([[0.0, 100.0]], requires_grad=True)
    loss = DifferentiableTopK((1.0,), "bitonic", 2, 1.0, "sort", "logistic")(scores, torch.tensor([0]))
    loss.sum().backward()
    assert loss.item() == pytest.approx(100)
    assert scores.grad.tolist()[0] == pytest.approx([-1, 1])


def test_the_steepness_of_the_authors_is_accepted_and_what_is_no_relaxation_is_refused():
    assert DifferentiableTopK(steepness=0.0625).steepness == 0.0625
    with pytest.raises(ValueError, match="there is no relaxation 'gaussian'; give one of logistic, art, reciprocal"):
        Comparator("gaussian")
    with pytest.raises(ValueError, match="art_lambda = 2; give a number from 0"):
        Comparator("art", art_lambda=2)
    with pytest.raises(ValueError, match="relaxation = 'gaussian' is not allowed; give one of logistic, art"):
        DifferentiableTopK(relaxation="gaussian")


def test_more_iterations_of_sinkhorn_change_the_loss_less_and_less():
    scores, labels = draw(6, 20), torch.arange(6)
    values = [
        DifferentiableTopK(operator="sinkhorn_sort", steepness=30.0, n_iterations=n)(scores, labels)
        for n in (1, 5, 25, 125, 625)
    ]
    changes = [(after - before).abs().max().item() for before, after in pairwise(values)]
    assert changes == sorted(changes, reverse=True)
    assert changes[0] > 1e-3 > changes[-1]


def test_the_loss_names_every_relaxation_and_every_sort_that_the_operators_have():
    choices = {name: knob.choices for name, knob in DifferentiableTopK.knobs().items()}
    assert choices["relaxation"] == tuple(RELAXATIONS)
    assert choices["operator"] == ("neural_sort", "soft_sort", "sinkhorn_sort", *KINDS)
