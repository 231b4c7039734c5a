"""States of losses: what ROLE and the quasibinary loss remember between batches, saved in the checkpoint."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from workbench.operators import applying


class LabelEstimates(nn.Module):
    """State of ROLE: a logit for every training row and class, and which rows it has met.

    Estimates start near "unknown" (probability between .4 and .6, the same draw every time) and the label of a row is
    put at .995 when the row is met for the first time in training. `learning_rate_factor` tells the optimiser how much
    faster than the model they learn.
    """

    UNKNOWN = math.log(0.6 / 0.4)
    AT_LABEL = math.log(0.995 / 0.005)
    met: Tensor

    def __init__(self, n_rows: int, n_classes: int, learning_rate_factor: float = 10.0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        start = torch.empty(n_rows, n_classes).uniform_(-self.UNKNOWN, self.UNKNOWN, generator=generator)
        self.estimates = nn.Parameter(start)
        self.register_buffer("met", torch.zeros(n_rows, dtype=torch.bool))
        self.learning_rate_factor = learning_rate_factor

    def forward(self, rows: Tensor, labels: Tensor) -> Tensor:
        """(n, L): the estimates of these rows."""
        self._check(rows, len(labels))
        with torch.no_grad():
            at_label = self.estimates[rows, labels].where(self.met[rows], self.AT_LABEL)
            self.estimates[rows, labels] = at_label
            self.met[rows] = True
        return self.estimates[rows]

    def _check(self, rows: Tensor, n: int) -> None:
        known = len(self.estimates)
        if not isinstance(rows, Tensor) or rows.dtype != torch.int64 or rows.shape != (n,):
            kind = f"{rows.dtype} of shape {tuple(rows.shape)}" if isinstance(rows, Tensor) else type(rows).__name__
            raise ValueError(f"ROLE: rows are {kind}; give {n} indices of rows in the training set (int64)")
        if n and applying.is_here(rows):
            first, last = (int(end) for end in torch.aminmax(rows))
            if first < 0 or last >= known:
                raise ValueError(f"ROLE: rows go from {first} to {last}; the state knows rows 0 to {known - 1}")


class Normaliser(nn.Module):
    """State of the quasibinary loss: log C, the moving average of its constant over training batches.

    C ← (1 − α)·C + α·C_t with the averaging rate α, computed on logarithms because C overflows; the first batch sets it.
    NaN means that no batch was seen yet. `batch_log_C` is that of the last batch alone, log C_t.
    """

    log_C: Tensor
    batch_log_C: Tensor | None = None

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("log_C", torch.tensor(math.nan))

    def forward(self, batch_log_C: Tensor, averaging_rate: float) -> Tensor:
        """log C to use for this batch: in training its own, which is also remembered; in eval mode the average."""
        unseen = self.log_C.isnan()
        if not self.training:
            return torch.where(unseen, batch_log_C, self.log_C.to(batch_log_C.dtype))
        with torch.no_grad():
            new = batch_log_C.to(self.log_C.dtype)
            log_rest = math.log1p(-averaging_rate) if averaging_rate < 1 else -math.inf
            average = torch.logaddexp(self.log_C + log_rest, new + math.log(averaging_rate))
            self.log_C.copy_(torch.where(unseen, new, average))
            self.batch_log_C = new
        return batch_log_C
