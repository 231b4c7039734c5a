"""Twenty heads trained together against single heads, in one run.

Three shapes of features: rows of letters, the photographs of the garden behind the small network, and a wide one. Time is
that of the wall clock, because the members share the threads: on a busy machine it says little, and the processor time
beside it says more. What a head costs alone is the median of some of the twenty. The aim is a ratio below 4 on two cores.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import torch

from workbench import losses
from workbench.datasets import Dataset
from workbench.store import Store
from workbench.training import Run, train
from workbench.training.stacked.train_many import train_heads

MEMBERS, EPOCHS, ALONE = 20, 12, 3
AIM = 4.0


@dataclass(frozen=True)
class Shape:
    """Rows to train on, and the batches they come in."""

    name: str
    rows: int
    columns: int
    classes: int
    batch_size: int


SHAPES = (
    Shape("letters", 8_000, 16, 26, 128),
    Shape("garden", 8_000, 48, 60, 512),
    Shape("wide", 8_000, 256, 100, 256),
)
SWEEPS: dict[str, Callable[[int], dict[str, object]]] = {
    "learning rate": lambda at: {"learning_rate": 10 ** (-3 + 2 * at / MEMBERS)},
    "seed": lambda at: {"seed": at},
    "γ of Focal": lambda at: {"loss": losses.Focal(gamma=5 * at / MEMBERS)},
    "ε of NoisedTopK": lambda at: {"loss": losses.NoisedTopK(epsilon=10 ** (-2 + 3 * at / MEMBERS))},
    "α of AverageKTwoHead": lambda at: {"loss": losses.AverageKTwoHead(alpha=10 ** (-1 + 2 * at / MEMBERS))},
}


def features(shape: Shape) -> Dataset:
    """Rows around one centre per class, as cached features would be."""
    rng = np.random.default_rng(0)
    labels = np.arange(round(shape.rows / 0.8)) % shape.classes
    centres = rng.normal(size=(shape.classes, shape.columns))
    rows = centres[labels] + 3 * rng.normal(size=(len(labels), shape.columns))
    return Dataset.from_arrays(rows.astype(np.float32), labels, name=shape.name)


def seconds(work: Callable[[Store], object]) -> tuple[float, float]:
    """Of the wall clock and of the processors, with an empty store."""
    with tempfile.TemporaryDirectory() as folder:
        wall, processors = time.perf_counter(), time.process_time()
        work(Store(folder))
        return time.perf_counter() - wall, time.process_time() - processors


def measured(runs: Sequence[Run]) -> None:
    """Some of the runs alone, then all together."""
    some = runs[:: len(runs) // ALONE][:ALONE]
    alone = [seconds(lambda store, run=run: train(run, store=store, progress=False)) for run in some]
    wall, processors = (median(times) for times in zip(*alone, strict=True))
    of_all = seconds(lambda store: train_heads(runs, store=store, progress=False))
    ratios = of_all[0] / wall, of_all[1] / processors
    print(
        f"{wall:10.2f}{of_all[0]:10.2f}{ratios[0]:10.1f}{AIM:8.0f}{processors:12.2f}{of_all[1]:10.2f}{ratios[1]:8.1f}"
    )


def main() -> None:
    """One line for each shape and each thing that is varied."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--shape", choices=[shape.name for shape in SHAPES], action="append")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    print(f"{MEMBERS} heads, {EPOCHS} epochs, {given.threads} threads")
    print(
        f"{'shape, varied':<34}{'alone s':>10}{'all s':>10}{'ratio':>10}{'aim':>8}{'alone cpu s':>12}{'all':>10}{'ratio':>8}"
    )
    for shape in SHAPES:
        if given.shape and shape.name not in given.shape:
            continue
        data = features(shape)
        for name, fields in SWEEPS.items():
            settings = [{"loss": losses.CrossEntropy(), "learning_rate": 0.01, **fields(at)} for at in range(MEMBERS)]
            runs = [
                Run(data, model="linear", epochs=EPOCHS, batch_size=shape.batch_size, device="cpu", **setting)
                for setting in settings
            ]
            print(f"{shape.name + ', ' + name:<34}", end="", flush=True)
            measured(runs)


if __name__ == "__main__":
    main()
