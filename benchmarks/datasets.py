"""What it costs to draw the default garden, to read it back from pixels, and to load it again.

    python benchmarks/datasets.py

Seconds of one core, and multiples of one pass over the same images (`zlib.crc32`).
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import tempfile
import time
import zlib
from collections.abc import Callable
from typing import Any

from workbench.datasets import Garden


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def main() -> None:
    garden = Garden()
    with tempfile.TemporaryDirectory() as home:
        os.environ["WORKBENCH_HOME"] = home
        drawing, data = timed(garden.dataset)
        loading, data = timed(garden.dataset)
        splits = (data.train, data.val, data.test)
        reading, _ = timed(lambda: [garden.read(split.inputs) for split in splits])
        one_pass, _ = timed(lambda: [zlib.crc32(split.inputs) for split in splits])
        n = sum(split.n for split in splits)
        print(f"{n} photographs, {sum(split.inputs.nbytes for split in splits) / 1e6:.0f} MB")
        print(f"{'':24}{'seconds':>9}{'passes':>9}{'µs each':>9}")
        for name, seconds in (("draw", drawing), ("read from pixels", reading), ("load again", loading)):
            print(f"{name:24}{seconds:9.2f}{seconds / one_pass:9.1f}{1e6 * seconds / n:9.0f}")


if __name__ == "__main__":
    main()
