"""How many scores a loss pulls at: the one count behind the figures and the history of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = 1e-9  # of the strongest pull on a row: what is weaker is rounding, such as that of exact smoothing


def scores_pulled(gradients: Tensor) -> Tensor:
    """How many scores of each row, in all heads, have a gradient: (n,) for gradients (n, L) or (n, heads, L).

    A gradient below a billionth of the row's largest is rounding and does not count. Counted where the gradients are: a
    training step on a GPU must not wait for them to come to the CPU.

    >>> import torch
    >>> scores_pulled(torch.tensor([[1.0, -1.0, 3e-14], [1e-12, -1e-12, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [2, 2, 0]
    """
    sizes = gradients.abs().flatten(1)
    return (sizes > ROUNDING * sizes.amax(1, keepdim=True)).sum(1)
