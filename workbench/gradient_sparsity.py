"""Number of scores with a gradient: how sparse the gradient of a loss is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

ROUNDING = (
    1e-9  # relative to the largest gradient of the row; smaller ones are rounding, such as that of exact smoothing
)


def scores_with_gradient(gradients: Tensor) -> Tensor:
    """Count the scores of each row, over all heads, with a gradient: (n,) for gradients (n, L) or (n, heads, L).

    Gradients below a billionth of the largest of the row count as 0. The count stays on the device of the gradients, so
    a training step on a GPU does not wait for the CPU.

    >>> import torch
    >>> scores_with_gradient(torch.tensor([[1.0, -1.0, 3e-14], [1e-12, -1e-12, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [2, 2, 0]
    """
    sizes = gradients.abs().flatten(1)
    return (sizes > ROUNDING * sizes.amax(1, keepdim=True)).sum(1)
