"""What the tests of Garcin et al. 2022 share: scores to try, gradients, and the smoothed sum of the K largest."""

from __future__ import annotations

import torch

from workbench.operators import exact_noised_kth_largest


def draw(*shape, seed=0, size=1.0, dtype=torch.float64):
    return size * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def gradient(function, scores, *rest, **named):
    scores = scores.detach().clone().requires_grad_()
    function(scores, *rest, **named).sum().backward()
    return scores.grad


def exact_top_sum(scores, K, epsilon):
    """topΣ_{K,ε} of Definition 3.2, as a sum of its terms."""
    return sum(exact_noised_kth_largest(scores, k, epsilon) for k in range(1, K + 1))
