"""State of `torch.func`: whether a tensor is batched, and cheap calls of custom functions where none is."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor


def is_mapped(tensor: Tensor) -> bool:
    """Whether `torch.func` (vmap, grad) has wrapped a tensor, so that it has no values to look at."""
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(tensor))


def is_here(tensor: Tensor) -> bool:
    """Whether the values of a tensor can be looked at for nothing: on the CPU, and neither mapped nor being compiled.

    Reading a value from a GPU waits for all queued work and leaves the GPU idle afterwards. So all that
    looks at values, checks of labels and shortcuts by way of NumPy, is for tensors that are here. Elsewhere a formula does
    without: the tests try each on torch's `meta` device, where tensors have no values.
    """
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling() and not is_mapped(tensor)


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
