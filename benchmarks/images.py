"""What it costs to read images from files and to augment images, and how long training waits for them.

    python benchmarks/images.py

Reading is told in multiples of what Pillow needs to decode the whole file; threads in multiples of one; waiting as the
share of an epoch, with images decoded ahead of the network and without; augmentation as images a second on one core, and
as the share of a training step of the smallest network that looks at images; and how many cores a GPU would need.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from workbench.datasets import HorizontalFlip, ImageFiles, PaddedCrop
from workbench.losses import CrossEntropy
from workbench.networks.network import build_network
from workbench.training.batches import EpochAugmentations

SHAPES = {"640 × 480": (640, 480, 160), "3000 × 2000": (3000, 2000, 8)}  # width, height, number of files
BATCH = 32
EATEN = 2_000  # images a second that a GPU trains a small network with


def write_photographs(folder: Path, width: int, height: int, n: int) -> ImageFiles:
    """Smooth blots with grain: about as many bytes a pixel as a photograph has."""
    rng = np.random.default_rng(0)
    for number in range(n):
        blots = Image.fromarray(rng.integers(0, 256, (height // 40, width // 40, 3), dtype=np.uint8))
        grain = rng.integers(-6, 7, (height, width, 1))
        smooth = np.asarray(blots.resize((width, height), Image.Resampling.BICUBIC)) + grain
        Image.fromarray(smooth.clip(0, 255).astype(np.uint8)).save(folder / f"{width}_{number}.jpg", quality=88)
    return ImageFiles(folder, np.array([f"{width}_{number}.jpg" for number in range(n)], dtype=object))


def seconds(action: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    action()
    return clock() - start


def whole(path: Path) -> None:
    with Image.open(path) as image:
        image.convert("RGB")


def squares(images: ImageFiles) -> None:
    for file in images.files:
        images._square(file, (0.5, 0.5))


def one_by_one(images: ImageFiles, batches: list[np.ndarray]) -> Iterator[np.ndarray]:
    """Batches that are decoded when they are asked for, in the thread that asks."""
    for rows in batches:
        yield np.stack([images._square(file, (0.5, 0.5)) for file in images.files[rows]])


def waiting(batches: Iterator[np.ndarray]) -> tuple[float, float]:
    """Seconds spent waiting for input, and all seconds, of an epoch of a small network on one thread."""
    network = build_network("cnn", CrossEntropy(), input_shape=(224, 224, 3), n_classes=10)
    loss, started, waited = CrossEntropy(), time.perf_counter(), 0.0
    while True:
        asked = time.perf_counter()
        images = next(batches, None)
        waited += time.perf_counter() - asked
        if images is None:
            return waited, time.perf_counter() - started
        inputs = torch.from_numpy(images)
        loss(network(inputs), torch.zeros(len(inputs), dtype=torch.int64)).mean().backward()


def augmenting(side: int, n: int = 128, repeats: int = 20) -> None:
    """Flips and padded crops of a batch, beside a step of the small network with it."""
    images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (n, side, side, 3), dtype=np.uint8))
    augmented, rows = EpochAugmentations((HorizontalFlip(), PaddedCrop(4)), n, seed=0, epoch=0), torch.arange(n)
    network, loss = build_network("cnn", CrossEntropy(), input_shape=(side, side, 3), n_classes=10), CrossEntropy()
    changing = min(seconds(lambda: augmented(images, rows)) for _ in range(repeats))
    labels = torch.zeros(n, dtype=torch.int64)
    step = min(seconds(lambda: loss(network(images), labels).mean().backward()) for _ in range(repeats))
    print(
        f"{side} × {side}: {n / changing:,.0f} images a second flipped and cropped, {changing / step:.1%} of a step of cnn"
    )


def main() -> None:
    torch.set_num_threads(1)
    for side in (32, 224):
        augmenting(side)
    with tempfile.TemporaryDirectory() as place:
        found = {name: write_photographs(Path(place), *shape) for name, shape in SHAPES.items()}
        print(f"{'':14}{'ms each':>9}{'whole':>9}{'key, ms':>9}")
        for name, images in found.items():
            decoding = seconds(
                lambda images=images: [whole(images.root / file) for file in images.files], time.process_time
            )
            cutting = seconds(lambda images=images: squares(images), time.process_time)
            key = seconds(images.digest, time.process_time)
            print(f"{name:14}{1e3 * cutting / len(images):9.2f}{cutting / decoding:9.2f}{1e3 * key / len(images):9.3f}")

        print(f"\ncores that decode for a GPU that eats {EATEN:,} images a second, by processor time:")
        for name, images in found.items():
            each = seconds(lambda images=images: squares(images), time.process_time) / len(images)
            print(
                f"{name:14}{1 / each:9,.0f} images a second on one core, {2 / each:,.0f} on two; {math.ceil(EATEN * each)} cores"
            )

        images, cores = found["640 × 480"], os.cpu_count() or 1
        parts = [images.rows(slice(start, None, 4 * cores)) for start in range(4 * cores)]
        alone = seconds(lambda: squares(images))
        with ThreadPoolExecutor(cores) as threads, ProcessPoolExecutor(cores) as processes:
            list(processes.map(squares, [images.rows(slice(0, 1))] * cores))  # they are up and have Pillow
            in_threads = seconds(lambda: list(threads.map(squares, parts)))
            in_processes = seconds(lambda: list(processes.map(squares, parts)))
        print(
            f"\n{len(images) / alone:.0f} images a second in one thread; {cores} cores under a load of {os.getloadavg()[0]:.1f}"
        )
        print(f"threads {alone / in_threads:.2f} times as fast, processes {alone / in_processes:.2f} times")

        batches = np.array_split(np.arange(len(images)), len(images) // BATCH)
        for name, ahead in (("decoded ahead", images.batches(batches)), ("one by one", one_by_one(images, batches))):
            waited, total = waiting(ahead)
            print(f"{name:14} an epoch takes {total:.2f} s, {waited / total:.0%} of it waiting for images")


if __name__ == "__main__":
    main()
