"""Where a run trains, and whether the machine can do what is asked."""

from __future__ import annotations

import contextlib
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache

import torch
from torch import nn

SMALL_STEP = 2e7  # multiplications of a forward pass, which one thread does in a few milliseconds
BF16_PRODUCT = """
import torch
block = torch.zeros(64, 256, dtype=torch.bfloat16)
torch.nn.functional.linear(block, block)
"""


def device_named(wanted: str) -> torch.device:
    """The device that `Run.device` asks for."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("device = 'cuda', but torch sees no GPU on this machine; use device='auto' or 'cpu'")
    return torch.device("cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu")


def check_devices(device: torch.device, devices: int) -> None:
    """Refuses more ranks than there are GPUs. A CPU takes any number."""
    if device.type == "cuda" and devices > (there := torch.cuda.device_count()):
        raise ValueError(
            f"devices = {devices}, but torch sees {there} GPU{'s' * (there > 1)}; use devices={there} or device='cpu'"
        )


def check_bf16(device: torch.device) -> None:
    """Some virtual machines announce matrix instructions and then refuse them: better to say so than to fail inside."""
    if device.type == "cpu" and (refusal := _refusal(BF16_PRODUCT)):
        raise ValueError(
            f"precision = 'bf16' does not work on this processor ({refusal}); use precision='32', or start Python with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in its environment"
        )


def multiplications(network: nn.Module, input_shape: tuple[int, ...]) -> int:
    """How many a row takes, at most: every weight is used once, and that of a convolution once a pixel."""
    pixels = math.prod(input_shape[:2]) if len(input_shape) == 3 else 1
    return sum(weights.numel() * (pixels if weights.ndim > 2 else 1) for weights in network.parameters())


@contextlib.contextmanager
def one_thread_for_small_steps(network: nn.Module, input_shape: tuple[int, ...], batch_size: int) -> Iterator[None]:
    """A small network trains, and predicts, on one thread: several wait for each other longer than they work.

    On a machine that has other things to do they wait ten times as long. And the last bits of a sum depend on how many
    threads share it, so this also makes a run the same for any number of them.
    """
    threads = torch.get_num_threads()
    if batch_size * multiplications(network, input_shape) < SMALL_STEP:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@cache
def _refusal(code: str) -> str:
    """Why the code does not run, or "". A process of its own tries it: a refused instruction ends a process at once."""
    tried = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", errors="replace")
    if tried.returncode == 0:
        return ""
    if tried.returncode < 0:
        return signal.Signals(-tried.returncode).name
    return tried.stderr.strip().rpartition("\n")[2] or f"exit code {tried.returncode}"
