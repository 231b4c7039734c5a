"""What training costs here: against a plain torch loop, and each loss against cross-entropy. One thread, one run."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from torch import nn

from workbench import losses
from workbench.datasets import Dataset
from workbench.losses import CrossEntropy
from workbench.store import Store
from workbench.training import Run, train

ROWS, COLUMNS, CLASSES, EPOCHS, BATCH = 10_000, 256, 100, 20, 256
REPEATS = 3


def features() -> Dataset:
    """Rows around one centre per class: 10 000 to train on, as cached features would be."""
    rng = np.random.default_rng(0)
    n = round(ROWS / 0.8)
    labels = np.arange(n) % CLASSES
    centres = rng.normal(size=(CLASSES, COLUMNS))
    rows = centres[labels] + 3 * rng.normal(size=(n, COLUMNS))
    return Dataset.from_arrays(rows.astype(np.float32), labels, name="features")


def plain_loop(data: Dataset, hidden: bool) -> None:
    """What a person would write in torch without any framework."""
    inputs, labels = torch.from_numpy(data.train.inputs), torch.from_numpy(data.train.labels)
    layers = [nn.Linear(COLUMNS, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()] if hidden else []
    model = nn.Sequential(*layers, nn.Linear(COLUMNS, CLASSES))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-4)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(inputs)).split(BATCH):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
            optimizer.step()
        with torch.no_grad():
            model(torch.from_numpy(data.val.inputs)).argmax(1)


def trained(data: Dataset, model: str, loss: losses.Loss) -> float:
    """Seconds of the epochs of one run, validation included."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(data, model=model, loss=loss, epochs=EPOCHS, batch_size=BATCH, device="cpu")
        return train(run, store=Store(folder), progress=False).history["seconds"].sum()


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def main() -> None:
    torch.set_num_threads(1)
    data = features()
    trained(data, "linear", CrossEntropy())  # imports and first-time costs
    print(f"{data.train.n} × {COLUMNS} → {CLASSES} classes, {EPOCHS} epochs of batch {BATCH}, one thread; median of {REPEATS}")
    for model in ("linear", "mlp"):
        # Taken in turns, so that a busy machine slows both alike.
        pairs = [
            (seconds(lambda: plain_loop(data, model == "mlp")), trained(data, model, CrossEntropy()))
            for _ in range(REPEATS)
        ]
        plain, ours = median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)
        ratio = median(pair[1] / pair[0] for pair in pairs)
        print(f"{model:7} plain loop {plain:.2f} s   train {ours:.2f} s   ratio {ratio:.2f} (target ≤ 2)")
    print("\nloss, seconds relative to cross-entropy on the same head")
    for loss_class in losses.LOSSES:
        if loss_class.trains:
            pairs = [(trained(data, "linear", CrossEntropy()), trained(data, "linear", loss_class())) for _ in range(REPEATS)]
            print(f"{loss_class.__name__:24} {median(ours / base for base, ours in pairs):.2f}")


if __name__ == "__main__":
    main()
