"""Functions of a row whose gradient is known in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from workbench.operators.applying import applied, is_mapped
from workbench.operators.order import at_least_float32

# rows (n, L), whether the gradient is needed → values (n,), gradients (n, L) or None
Evaluate = Callable[[Tensor, bool], tuple[Tensor, Tensor | None]]


def rowwise(scores: Tensor, evaluate: Evaluate) -> Tensor:
    """One number per row of scores (..., L), differentiable by the gradient that `evaluate` returns beside it.

    Half precision is computed in float32. Works inside `torch.func.vmap` and `grad`.
    """
    # Inside `torch.func.grad` `requires_grad` is False: compute the gradient anyway.
    needs_gradient = scores.requires_grad or is_mapped(scores)
    working = at_least_float32(scores)
    values: Tensor = applied(_Rowwise, working, evaluate, needs_gradient and torch.is_grad_enabled())[0].to(
        scores.dtype
    )
    return values


def with_gradient(scores: Tensor, values: Tensor, gradient: Tensor) -> Tensor:
    """The values (...,), which autograd takes for a function of the scores (..., L) with this gradient."""
    attached: Tensor = applied(_WithGradient, scores, values, gradient)
    return attached


def once(gradient: Tensor, scores: Tensor) -> Tensor:
    """A gradient written out by hand, tied to its scores: its own derivative, which is not known, is refused.

    Without that tie autograd would take the derivative for 0. Only where it records a backward pass there is work to do.
    """
    return applied(_Once, gradient, scores) if torch.is_grad_enabled() else gradient


class _Once(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, scores: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError(
            "only the first derivative of this function is known; take differences of gradients for the second"
        )


class _WithGradient(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(scores: Tensor, values: Tensor, gradient: Tensor) -> Tensor:
        return values.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(inputs[0], inputs[2])

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None]:
        scores, gradient = ctx.saved_tensors
        return once(slope.unsqueeze(-1) * gradient, scores), None, None


class _Rowwise(torch.autograd.Function):
    @staticmethod
    def forward(scores: Tensor, evaluate: Evaluate, with_gradient: bool) -> tuple[Tensor, Tensor]:
        values, gradient = evaluate(scores.reshape(-1, scores.shape[-1]), with_gradient)
        kept = scores.new_empty((*scores.shape[:-1], 0)) if gradient is None else gradient.reshape(scores.shape)
        return values.reshape(scores.shape[:-1]), kept

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx: Any, slope: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        scores, gradient = ctx.saved_tensors
        return once(slope.unsqueeze(-1) * gradient, scores), None, None

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int, None, None], scores: Tensor, evaluate: Evaluate, with_gradient: bool
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        return applied(_Rowwise, scores.movedim(in_dims[0], 0), evaluate, with_gradient), (0, 0)
