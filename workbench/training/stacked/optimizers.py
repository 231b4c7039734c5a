"""Optimizers of stacked weights: the formulas of `torch.optim` with a learning rate and a decay for each member.

A tensor of weights is (members, …), and so is its gradient. `rates` and `decays` are (members,).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

MOMENTUM = 0.9
BETAS, EPSILON = (0.9, 0.999), 1e-8  # the defaults of torch


class Rule:
    """Turns gradients into steps, and remembers what it needs of the steps before."""

    def __init__(self) -> None:
        self.n_steps = 0
        self.memory: list[tuple[Tensor, ...]] = []  # of each tensor of weights

    @torch.no_grad()
    def step(self, weights: Sequence[Tensor], gradients: Sequence[Tensor], rates: Tensor, decays: Tensor) -> None:
        """Changes the weights in place."""
        self.n_steps += 1
        self.memory = self.memory or [self.at_first(each) for each in weights]
        for each, gradient, memory in zip(weights, gradients, self.memory, strict=True):
            shape = (-1, *(1 for _ in each.shape[1:]))
            self.change(each, gradient, rates.view(shape), decays.view(shape), *memory)

    def keep(self, places: Sequence[int]) -> None:
        """Forgets all members but those at these places."""
        self.memory = [tuple(each[list(places)] for each in memory) for memory in self.memory]

    def at_first(self, weights: Tensor) -> tuple[Tensor, ...]:
        """Return the state before the first step."""
        raise NotImplementedError

    def change(self, weights: Tensor, gradient: Tensor, rates: Tensor, decays: Tensor, *memory: Tensor) -> None:
        """One step of one tensor of weights."""
        raise NotImplementedError


class SGD(Rule):
    """With Nesterov's momentum of 0.9: m ← 0.9 m + g and w ← w − η (g + 0.9 m), where g is the gradient plus decay · w."""

    def at_first(self, weights: Tensor) -> tuple[Tensor, ...]:
        return (torch.zeros_like(weights),)

    def change(self, weights: Tensor, gradient: Tensor, rates: Tensor, decays: Tensor, *memory: Tensor) -> None:
        (momentum,) = memory
        gradient = gradient + decays * weights
        momentum.mul_(MOMENTUM).add_(gradient)
        weights.sub_(gradient.add_(momentum, alpha=MOMENTUM).mul_(rates))


class Adam(Rule):
    """w ← w − η m̂ / (√v̂ + ε), with moving averages m of the gradient and v of its square, corrected for their start at 0."""

    def at_first(self, weights: Tensor) -> tuple[Tensor, ...]:
        return torch.zeros_like(weights), torch.zeros_like(weights)

    def change(self, weights: Tensor, gradient: Tensor, rates: Tensor, decays: Tensor, *memory: Tensor) -> None:
        mean, square = memory
        gradient = self.decayed(weights, gradient, rates, decays)
        mean.lerp_(gradient, 1 - BETAS[0])
        square.mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        of_mean, of_square = (1 - beta**self.n_steps for beta in BETAS)
        # √of_square times that of the formula, to spare a division.
        scale = square.sqrt().add_(EPSILON * of_square**0.5)
        weights.addcdiv_(mean * (rates * of_square**0.5 / of_mean), scale, value=-1)

    def decayed(self, weights: Tensor, gradient: Tensor, rates: Tensor, decays: Tensor) -> Tensor:
        """The gradient with that of the decay, ½ decay · w²."""
        return gradient + decays * weights


class AdamW(Adam):
    """Adam with a decay that does not go through the averages: w ← w − η · decay · w comes first."""

    def decayed(self, weights: Tensor, gradient: Tensor, rates: Tensor, decays: Tensor) -> Tensor:
        weights.mul_(1 - rates * decays)
        return gradient


RULES: dict[str, type[Rule]] = {"adamw": AdamW, "adam": Adam, "sgd": SGD}
