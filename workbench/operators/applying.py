"""What `torch.func` is doing: whether a tensor is mapped, and a function of our own called at little cost where none is."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor


def is_mapped(tensor: Tensor) -> bool:
    """Whether `torch.func` (vmap, grad) has wrapped a tensor, so that it has no values to look at."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def applied(function: type[torch.autograd.Function], *inputs: Any) -> Any:
    """`function.apply(*inputs)` for a function with a `setup_context`, which is what `torch.func` can map.

    Of such a function torch looks up the signature at every call, and that takes as long as a cross-entropy. Where nothing
    is being mapped, the same function in the older form does as well.
    """
    if torch._C._are_functorch_transforms_active():
        return function.apply(*inputs)
    return _in_older_form(function).apply(*inputs)


@cache
def _in_older_form(function: type[torch.autograd.Function]) -> type[torch.autograd.Function]:
    class Older(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> Any:
            output = function.forward(*inputs)
            function.setup_context(ctx, inputs, output)
            return output

        backward = function.backward

    return Older
