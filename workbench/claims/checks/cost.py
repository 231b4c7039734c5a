"""A claim about time: what an epoch costs as K grows."""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import nn

from workbench.claims.claim import COUNTED, Bench, Claim, Found
from workbench.claims.experiment import Estimate
from workbench.losses import Loss, NoisedTopK, SmoothTopKHinge

K_VALUES = (2, 5, 10, 20, 50)
ROUNDS, ROWS, WIDTH, N_CLASSES = 40, 64, 256, 100


def _time_of_a_step(_: Bench) -> Found:
    """Steps of all settings in turn, so that a busy machine slows all alike; a value is a median."""
    losses: dict[tuple[str, int], Loss] = {
        **{("noised", K): NoisedTopK(K, 1.0) for K in K_VALUES},
        **{("smooth", K): SmoothTopKHinge(K, 1.0) for K in K_VALUES},
    }
    generator = torch.Generator().manual_seed(0)
    network = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, N_CLASSES))
    inputs = torch.randn(ROWS, WIDTH, generator=generator)
    labels = torch.randint(N_CLASSES, (ROWS,), generator=generator)
    seconds = {setting: np.empty(ROUNDS) for setting in losses}
    for turn in range(-5, ROUNDS):  # the first ones only warm up
        for setting, loss in losses.items():
            start = time.process_time()
            network.zero_grad()
            loss(network(inputs), labels, generator=generator).mean().backward()
            if turn >= 0:
                seconds[setting][turn] = time.process_time() - start
    ratios = {
        (name, K): _ratio(seconds[name, K], seconds[name, K_VALUES[0]])
        for name in ("noised", "smooth")
        for K in K_VALUES
    }
    return Found(
        (
            ratios["noised", 50].expected("time of a noised step at K = 50 over K = 2", below=1.5),
            ratios["smooth", 50].expected("time of a smooth step at K = 50 over K = 2", above=1.5),
        ),
        tuple(found.at(name, K) for (name, K), found in ratios.items()),
    )


def _ratio(seconds: np.ndarray, reference: np.ndarray) -> Estimate:
    """The ratio of two medians; its interval is of resampled turns."""
    rng = np.random.default_rng(0)
    turns = rng.integers(ROUNDS, size=(1000, ROUNDS))
    drawn = np.median(seconds[turns], axis=1) / np.median(reference[turns], axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Estimate(float(np.median(seconds) / np.median(reference)), float(low), float(high))


CLAIMS = (
    Claim(
        4,
        "The time of an epoch is flat in K for the noised loss and grows for the smooth hinge.",
        "Garcin et al. 2022, Fig. 3",
        f"a step of a small network with {N_CLASSES} classes and batches of {ROWS} rows, forward and backward, processor time, "
        f"median of {ROUNDS} turns; K = 2 to 50",
        "from K = 2 to 50 a noised step takes less than half as long again, a smooth one more",
        _time_of_a_step,
        COUNTED,
        x="K",
        y="time of a step over that at K = 2",
        logarithmic=True,
        seeds=1,
    ),
)
