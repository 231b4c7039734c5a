"""Agreement with difftopk, the package of Petersen et al. 2022.

difftopk sorts in rising order, so rank 1 is its last wire: our wires are its wires backwards. It computes in float32 and
mixes the probability of the label with 1e-7, which we do not.
"""

from __future__ import annotations

import difftopk
import pytest
import torch

from workbench.losses import CrossEntropy, DifferentiableTopK
from workbench.operators import comparator_network_sort, neural_sort, selection_network, soft_sort

OPERATORS = {
    "odd_even": "odd_even_transposition",
    "bitonic__non_sparse": "bitonic",
    "neuralsort": "neural_sort",
    "softsort": "soft_sort",
}
TOP1 = {"sort": "sort", "sm": "softmax", "smce": "cross_entropy"}


def draw(*shape, seed=0):
    return 2 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def mixed(value):
    """−log p as they compute it: p mixed with 1e-7."""
    return -torch.log(torch.exp(-value) * (1 - 2e-7) + 1e-7)


@pytest.mark.parametrize("theirs", OPERATORS)
# In mode smce they take cross-entropy over the m kept classes, we over all, as Eq. 4 is printed: the same without m.
@pytest.mark.parametrize(("mode", "m"), [("sort", 16), ("sm", 16), ("sort", None), ("sm", None), ("smce", None)])
def test_loss_and_gradient_agree(theirs, mode, m):
    n_classes = 16 if m is None else 40
    scores, labels = draw(12, n_classes), torch.arange(12)
    if m is None:
        # Without m they rank the classes in the order of their indices: put them as we do, the label first.
        others = scores.scatter(1, labels[:, None], -torch.inf).sort(descending=True).values[:, :-1]
        scores, labels = torch.cat([scores.gather(1, labels[:, None]), others], dim=1), torch.zeros_like(labels)
    ours, peers = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    p_k = [0.3, 0.2, 0.0, 0.1, 0.4]
    peer = difftopk.TopKCrossEntropyLoss(
        theirs, inverse_temperature=0.5, p_k=p_k, n=n_classes, m=m, distribution="cauchy", top1_mode=mode
    )
    loss = DifferentiableTopK(p_k=p_k, operator=OPERATORS[theirs], m=16, steepness=0.5, top1=TOP1[mode])
    value = loss(ours, labels)
    if mode == "smce":
        cross_entropy = CrossEntropy()(ours, labels)
        value = 0.3 * cross_entropy + 0.7 * mixed((value - 0.3 * cross_entropy) / 0.7)
    else:
        value = mixed(value)
    expected = peer(peers, labels)
    assert value.mean().item() == pytest.approx(expected.item(), rel=1e-5)
    expected.backward()
    value.mean().backward()
    assert torch.allclose(ours.grad, peers.grad, atol=1e-5)


# Their distributions, ours, and what our steepness is multiplied by to get theirs: their reciprocal is flatter than printed.
DISTRIBUTIONS = [
    ("logistic", "logistic", 1),
    ("logistic_phi", "art", 1),
    ("reciprocal", "reciprocal", 4),
    ("cauchy", "cauchy", 1),
    ("optimal", "optimal", 1),
]


@pytest.mark.parametrize("kind", ["odd_even", "bitonic"])
@pytest.mark.parametrize(("distribution", "relaxation", "factor"), DISTRIBUTIONS)
def test_networks_give_the_same_matrix(kind, distribution, relaxation, factor):
    scores = draw(5, 16)
    peer = difftopk.DiffTopkNet(kind, 16, 16, steepness=1.5 * factor, distribution=distribution, art_lambda=0.4)
    _, theirs = peer(scores)
    name = {"odd_even": "odd_even_transposition", "bitonic": "bitonic"}[kind]
    ours = comparator_network_sort(scores.flip(-1), None, name, relaxation, steepness=1.5, art_lambda=0.4)
    assert torch.allclose(ours, theirs.mT.flip(-1, -2), atol=1e-5)


@pytest.mark.parametrize(("distribution", "relaxation", "factor"), DISTRIBUTIONS)
def test_loss_and_gradient_agree_for_every_distribution(distribution, relaxation, factor):
    scores, labels, p_k = draw(12, 40), torch.arange(12), [0.25, 0.0, 0.0, 0.0, 0.75]
    ours, peers = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    peer = difftopk.TopKCrossEntropyLoss(
        "bitonic__non_sparse", 0.5 * factor, p_k, n=40, m=16, distribution=distribution, art_lambda=0.5
    )
    loss = DifferentiableTopK(p_k, "bitonic", 16, 0.5, relaxation=relaxation, art_lambda=0.5)
    value, expected = mixed(loss(ours, labels)).mean(), peer(peers, labels)
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    expected.backward()
    value.backward()
    assert torch.allclose(ours.grad, peers.grad, atol=1e-5)


def test_odd_even_transposition_agrees_for_an_odd_number_of_wires():
    scores = draw(5, 7)
    _, theirs = difftopk.DiffTopkNet("odd_even", 7, 7, steepness=1.5)(scores)
    ours = comparator_network_sort(scores.flip(-1), None, "odd_even_transposition", "cauchy", steepness=1.5)
    assert torch.allclose(ours, theirs.mT.flip(-1, -2), atol=1e-5)


def test_neural_sort_and_soft_sort_give_the_same_matrix():
    scores = draw(5, 9)
    theirs = difftopk.NeuralSort(tau=0.5)(scores)
    assert torch.allclose(neural_sort(scores, temperature=0.5), theirs.mT.flip(-2), atol=1e-5)
    assert torch.allclose(soft_sort(scores, temperature=0.5), difftopk.SoftSort(tau=0.5)(scores), atol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(16, 5), (11, 3), (100, 6), (1000, 5)])
def test_splitter_networks_make_the_same_comparisons_but_for_those_that_cannot_matter(n, k, capsys):
    theirs = difftopk.networks.sparse_splitter_selection_network(n, k)
    ours = selection_network(n, k, "splitter")
    assert len(ours) == len(theirs)
    for layer, (*_, swaps, _remain, _mask) in zip(ours, theirs, strict=True):
        pairs = {(n - 1 - b, n - 1 - a) for a, b in swaps.tolist() if a != b}
        assert {tuple(pair) for pair in layer.tolist()} <= {tuple(sorted(pair)) for pair in pairs}
