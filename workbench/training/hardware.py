"""Devices: where a run trains, and whether the machine supports its precision and size."""

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
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}  # Run.precision → type of what a network computes
PRODUCT = """
import torch
block = torch.zeros(64, 256, dtype={})
torch.nn.functional.linear(block, block)
"""


def device_named(name: torch.device | str) -> torch.device:
    """The device of this name, such as `Run.device`; auto takes a GPU of CUDA if there is one.

    Raises:
        ValueError: torch knows no such device, or this machine has none.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError):
        raise ValueError(f"device = {name!r}; give auto, cpu, cuda, cuda:1, mps or another device of torch") from None
    there = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if (device.type == "cuda" and not there) or (device.type == "mps" and not torch.backends.mps.is_available()):
        whose = " of Apple" if device.type == "mps" else ""
        raise ValueError(f"device = {name!r}, but torch sees no GPU{whose} on this machine; use device='auto' or 'cpu'")
    if device.type == "cuda" and device.index is not None and device.index >= there:
        raise ValueError(
            f"device = {name!r}, but torch sees {there} GPU{'s' * (there > 1)}; use one of "
            f"{', '.join(f'cuda:{number}' for number in range(there))}"
        )
    return device


def check_devices(device: torch.device, devices: int) -> None:
    """Refuses more ranks than there are GPUs. A CPU takes any number."""
    if device.type == "cuda" and devices > (there := torch.cuda.device_count()):
        raise ValueError(
            f"devices = {devices}, but torch sees {there} GPU{'s' * (there > 1)}; use devices={there} or device='cpu'"
        )


def check_precision(precision: str, device: torch.device) -> None:
    """Some virtual machines announce matrix instructions and then refuse them: better to say so than to fail inside."""
    if precision in HALVES and device.type == "cpu" and (refusal := _refusal(PRODUCT.format(HALVES[precision]))):
        raise ValueError(
            f"precision = {precision!r} does not work on this processor ({refusal}); use precision='32', or start Python with "
            "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 in its environment"
        )


def multiplications(network: nn.Module, input_shape: tuple[int, ...]) -> int:
    """Upper bound of multiplications per row: each weight once, that of a convolution once per pixel."""
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
    probe = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", errors="replace")
    if probe.returncode == 0:
        return ""
    if probe.returncode < 0:
        return signal.Signals(-probe.returncode).name
    return probe.stderr.strip().rpartition("\n")[2] or f"exit code {probe.returncode}"
