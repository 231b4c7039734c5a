"""What every loss takes of memory, forward and backward, for many classes.

    python benchmarks/memory.py
    python benchmarks/memory.py --classes 10450

Batch of 256, float32. All numbers are multiples of the scores of one head, 256 × classes × 4 bytes. "Kept" is what is held
between forward and backward, "peak" the most that is taken at any moment, the gradient of the scores among it; both are
what the system gave the process, NumPy's copies too. "As on a GPU" is the peak of the way that a GPU takes, where no
shortcut looks at a value. What is kept must not grow with the number of draws: the last lines show it.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor

import workbench as wb
from workbench.losses import LOSSES, Loss
from workbench.operators import applying

BATCH = 256
CLASSES = (10_450, 100_000)
LARGEST_AS_ON_A_GPU = 10_450  # classes; without its shortcut the exact loss takes minutes for more on a CPU
MMAP_THRESHOLD = -3  # of mallopt: larger blocks are given back to the system as soon as they are free


def resident(field: str = "VmRSS") -> int:
    """Bytes that this process has in memory, or (VmHWM) had at most since `forget_the_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def forget_the_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def taken(
    loss: Loss, n_classes: int, way: Callable[[], AbstractContextManager[object]] = nullcontext
) -> tuple[float, float]:
    """What is kept between forward and backward, and the peak of both, as multiples of the scores of one head."""
    generator = torch.Generator().manual_seed(0)
    shape = (BATCH, n_classes) if loss.heads == 1 else (BATCH, loss.heads, n_classes)
    scores = torch.randn(shape, generator=generator).requires_grad_()
    labels: Tensor = torch.randint(n_classes, (BATCH,), generator=generator)
    labels = loss.readable(labels, n_classes)
    gc.collect()
    before = resident()
    forget_the_peak()
    with way():
        values = loss(scores, labels, generator=torch.Generator().manual_seed(0)).mean()
        kept = resident() - before
        values.backward()
    unit = BATCH * n_classes * 4
    return kept / unit, (resident("VmHWM") - before) / unit


def as_on_a_gpu() -> AbstractContextManager[object]:
    return patch.object(applying, "is_here", lambda tensor: False)


def line(name: str, loss: Loss, sizes: tuple[int, ...]) -> str:
    told = "".join("{:10.1f}{:8.1f}".format(*taken(loss, n)) for n in sizes)
    return f"{name:36}{told}{taken(loss, min(min(sizes), LARGEST_AS_ON_A_GPU), as_on_a_gpu)[1]:14.1f}"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--classes", type=int, nargs="+", default=list(CLASSES), help="numbers of classes")
    sizes = tuple(arguments.parse_args().classes)
    ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, 2**18)
    torch.set_num_threads(1)
    taken(wb.losses.CrossEntropy(), 1000)  # what is imported and made once
    print(f"{'batch of 256':36}" + "".join(f"{f'L = {n}':>18}" for n in sizes))
    print(f"{'':36}" + f"{'kept':>10}{'peak':>8}" * len(sizes) + f"{'as on a GPU':>14}")
    for loss_class in LOSSES:
        print(line(loss_class.__name__, loss_class(), sizes), flush=True)
    for n_samples in (1, 5, 50):
        loss = wb.losses.NoisedTopK(epsilon=3.0, n_samples=n_samples)  # noise that reaches all classes
        print(line(f"NoisedTopK, ε = 3, {n_samples} draws", loss, sizes[:1]), flush=True)


if __name__ == "__main__":
    main()
