"""Collective operations of ranks: a step of several processes is the step of one.

Each rank sends its part of the rows through the network. Then the scores of all parts are put together, so that every
rank computes the loss of the whole batch, with the noise of the whole batch: candidates, constants and regularisers of a
batch-coupled loss are those of one process, and no two rows share their noise. What travels in a step is the scores, the
statistics of batch normalisation and, averaged over the ranks by DistributedDataParallel, the gradients.

In a process that was not started as a rank, there is one rank and everything is as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, distributed, nn


def rank() -> int:
    """The number of this process among its ranks; only rank 0 writes and prints."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def n_ranks() -> int:
    return distributed.get_world_size() if distributed.is_initialized() else 1


def as_first(answer: bool) -> bool:
    """The answer of rank 0, for all ranks: a file that appears meanwhile is there for all of them, or for none."""
    if n_ranks() == 1:
        return answer
    answers = [answer]
    distributed.broadcast_object_list(answers)
    return answers[0]


def averaging_gradients(network: nn.Module, *, some_idle: bool) -> nn.Module:
    """The network whose gradients are averaged over the ranks, or the network itself where there is one rank.

    Ranks wait for the gradients of every weight. Where `some_idle` says that a batch may leave weights unused, on all ranks
    or on one, they look for these in every step, which takes a walk through its graph.
    """
    if n_ranks() == 1:
        return network
    return nn.parallel.DistributedDataParallel(network, find_unused_parameters=some_idle)


def part(rows: Tensor) -> Tensor:
    """The rows of a batch that this rank sends through the network; the parts differ by at most one row in size."""
    return rows.tensor_split(n_ranks())[rank()]


def together(scores: Tensor, n: int) -> Tensor:
    """The scores of the n rows of a batch, in their order, from those of this rank's part. Gradients flow back."""
    if n_ranks() == 1:
        return scores
    sizes = [len(rows) for rows in torch.arange(n).tensor_split(n_ranks())]
    before, after = sum(sizes[: rank()]), sum(sizes[rank() + 1 :])
    # Half precision is summed in full: each row is one rank's score and zeros.
    return total(F.pad(scores.float(), (0, 0) * (scores.ndim - 1) + (before, after)))


def total(tensor: Tensor) -> Tensor:
    """The sum of the tensors of all ranks."""
    summed: Callable[[Tensor], Tensor] = _Total.apply
    return summed(tensor)


class _Total(torch.autograd.Function):
    """Every rank has a copy of the sum, so the gradients of all copies add up.

    Each rank computes the same loss, so that what is differentiated is N times the loss of the batch; the average that
    DistributedDataParallel takes of the N ranks' gradients divides by N again.
    """

    @staticmethod
    def forward(_: Any, tensor: Tensor) -> Tensor:
        summed = tensor.detach().clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(_: Any, gradient: Tensor) -> Tensor:
        summed = gradient.clone()
        distributed.all_reduce(summed)
        return summed


def share_batch_statistics(network: nn.Module, device: torch.device) -> None:
    """Makes batch normalisation on ranks normalise by the whole batch, as one process does.

    Modules keep their names, parameters and buffers; only their forward changes. torch's own SyncBatchNorm takes no tensors
    of a CPU.
    """
    if device.type == "cuda":
        nn.SyncBatchNorm.convert_sync_batchnorm(network)
        return
    for module in network.modules():
        if type(module) in (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d):
            module.__class__ = BatchNormOverRanks


class BatchNormOverRanks(nn.modules.batchnorm._BatchNorm):
    """Batch normalisation by the mean and the variance of the rows of all ranks."""

    def forward(self, inputs: Tensor) -> Tensor:  # (n, channels, …)
        if not self.training and self.running_mean is not None:
            return super().forward(inputs)
        over = [0, *range(2, inputs.ndim)]
        along_channels = (1, -1, *(1 for _ in over[1:]))
        n = total(torch.tensor(inputs.numel() / inputs.shape[1]))
        mean = total(inputs.sum(over)) / n
        centred = inputs - mean.view(along_channels)
        variance = total((centred**2).sum(over)) / n
        if self.training:
            self._remember(mean.detach(), (variance * n / (n - 1)).detach())
        normalised = centred * (variance + self.eps).rsqrt().view(along_channels)
        return (
            normalised * self.weight.view(along_channels) + self.bias.view(along_channels)
            if self.affine
            else normalised
        )

    def _remember(self, mean: Tensor, variance: Tensor) -> None:
        """Moves the averages that are used when nothing is learnt."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        weight = 1 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
        self.running_mean.lerp_(mean, weight)
        self.running_var.lerp_(variance, weight)

    def _check_input_dim(self, input: Tensor) -> None:
        """Nothing to check: the network has seen inputs of this shape before."""
