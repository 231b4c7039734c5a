"""What a level set costs: 5 151 score vectors computed, contoured and written as Plotly's JSON, for every loss.

    python benchmarks/landscapes.py

Milliseconds of one core (the best of a few), beside the protocol of Garcin et al. 2022 for the noised loss in the same
run: the mean of 100 replications with 30 noise draws each.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from typing import Any

import torch

import workbench as wb
from workbench.figures.evaluation import on_three_classes
from workbench.figures.landscapes import simplex_grid

STEPS = 101


def best(action: Callable[[], Any], times: int = 5) -> float:
    """Milliseconds of processor time of the quickest of a few calls, after one that does not count."""
    action()
    seconds = []
    for _ in range(times):
        start = time.process_time()
        action()
        seconds.append(time.process_time() - start)
    return 1000 * min(seconds)


def paper_protocol() -> float:
    """One run of the paper's way to a level set without meshing artefacts."""
    scores, labels = torch.as_tensor(simplex_grid(STEPS)), torch.full((5151,), 2)
    loss, draws = wb.losses.NoisedTopK(K=2, epsilon=1.0, n_samples=30), torch.Generator().manual_seed(0)
    return best(lambda: sum(loss(scores, labels, generator=draws) for _ in range(100)) / 100, times=1)


def main() -> None:
    torch.set_num_threads(1)
    protocol = paper_protocol()
    print(f"{'':24}{'compute':>9}{'draw':>9}{'kB':>7}   of the paper's protocol ({protocol:.0f} ms)")
    for loss_class in wb.losses.LOSSES:
        loss = on_three_classes(loss_class)
        figure = wb.figures.level_sets(loss, steps=STEPS)
        compute = best(lambda loss=loss: wb.figures.level_sets(loss, steps=STEPS))
        draw = best(lambda figure=figure: figure.plot().to_json())
        size = len(figure.plot().to_json()) / 1000
        print(f"{loss_class.__name__:24}{compute:9.1f}{draw:9.1f}{size:7.0f}   {(compute + draw) / protocol:.1%}")
    compute, draw = best(wb.figures.gallery, 1), best(lambda: wb.figures.gallery().plot().to_json(), 1)
    print(f"{'gallery, 51 a side':24}{compute:9.1f}{draw - compute:9.1f}")


if __name__ == "__main__":
    main()
