"""Agreement with pytopk, the package of Garcin et al. 2022.

pytopk lays its noise out as (n, L, n_samples), we as (n, n_samples, L). It averages over the batch and keeps the label
among the candidates, as we do; its `scale` multiplies the loss and nothing else.
"""

from __future__ import annotations

import numpy as np
import pytest
import pytopk
import torch
from pytopk.functional import bal_noised_topk_loss, imbal_noised_topk_loss
from pytopk.noised_topk import _noised_topk

from workbench.losses import NoisedTopK, NoisedTopKImbalanced
from workbench.operators import noised_kth_largest

CASES = pytest.mark.parametrize(
    ("n_classes", "K", "epsilon", "n_samples"),
    [(4, 1, 1.0, 3), (20, 5, 0.2, 5), (20, 19, 10.0, 1), (1000, 50, 0.01, 10)],
)


def draw(n_classes, n_samples, n=16):
    generator = torch.Generator().manual_seed(n_classes)
    scores = torch.randn(n, n_classes, generator=generator)
    labels = torch.randint(n_classes, (n,), generator=generator)
    noise = torch.randn(n, n_samples, n_classes, generator=generator)
    return scores, labels, noise


def value_and_gradient(function, scores):
    scores = scores.clone().requires_grad_()
    value = function(scores)
    value.backward()
    return value.detach(), scores.grad


@CASES
def test_the_smoothed_operator_equals_theirs_for_the_same_noise(n_classes, K, epsilon, n_samples):
    scores, _, noise = draw(n_classes, n_samples)
    ours = value_and_gradient(lambda s: noised_kth_largest(s, K, epsilon, noise=noise).sum(), scores)
    theirs = value_and_gradient(lambda s: _noised_topk(s, noise.mT, K, epsilon, -1, -1).sum(), scores)
    torch.testing.assert_close(ours, theirs)


@CASES
def test_the_balanced_loss_equals_theirs_for_the_same_noise(n_classes, K, epsilon, n_samples):
    scores, labels, noise = draw(n_classes, n_samples)
    ours = value_and_gradient(lambda s: NoisedTopK(K=K, epsilon=epsilon)(s, labels, noise=noise).mean(), scores)
    theirs = value_and_gradient(lambda s: bal_noised_topk_loss(s, labels, K, epsilon, _noised_topk, noise.mT), scores)
    torch.testing.assert_close(ours, theirs)


@CASES
def test_the_imbalanced_loss_equals_theirs_for_the_same_noise_and_counts(n_classes, K, epsilon, n_samples):
    scores, labels, noise = draw(n_classes, n_samples)
    counts = list(range(1, n_classes + 1))
    theirs_made = pytopk.ImbalNoisedTopK(K, epsilon=epsilon, max_m=0.3, scale=50.0, cls_num_list=counts)
    loss = NoisedTopKImbalanced(K=K, epsilon=epsilon, max_margin=0.3, scale=50.0).for_classes(counts)
    torch.testing.assert_close(loss.margins(scores), theirs_made.m_list.to(scores))
    ours = value_and_gradient(lambda s: loss(s, labels, noise=noise).mean(), scores)
    theirs = value_and_gradient(
        lambda s: imbal_noised_topk_loss(s, labels, K, theirs_made.m_list.to(s), epsilon, _noised_topk, noise.mT, 50.0),
        scores,
    )
    torch.testing.assert_close(ours, theirs)


def test_a_class_without_images_is_refused_where_theirs_is_nan():
    with np.errstate(all="ignore"):
        theirs = pytopk.ImbalNoisedTopK(1, epsilon=0.1, max_m=0.3, cls_num_list=[0, 1, 2])
    assert theirs.m_list.isnan().any()
    with pytest.raises(ValueError, match="no training image"):
        NoisedTopKImbalanced().for_classes([0, 1, 2])
