"""What training costs here: against a plain torch loop, heads on cached features, and each loss against cross-entropy.

One thread, one run; processor time, which a busy machine does not stretch."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
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
# A loss → the seconds within which 20 epochs of its head must pass on two cores, for a slider to feel alive.
HEADS = ((losses.CrossEntropy(), 1.6), (losses.NoisedTopK(), 3.5), (losses.AverageKTwoHead(), 3.5))


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


def trained(data: Dataset, model: str, loss: losses.Loss, epochs: int = EPOCHS) -> None:
    """The same by `train`: epochs with validation and its metrics, then the scores of val and test, all stored."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(data, model=model, loss=loss, epochs=epochs, batch_size=BATCH, device="cpu")
        train(run, store=Store(folder), progress=False)


def head_on_cached_features(data: Dataset, loss: losses.Loss, shelf: Store) -> None:
    """A head as the app trains it while a slider moves: the features are in the store, and the run is new each time."""
    run = Run(data, model=nn.Flatten(), features="cached", loss=loss, epochs=EPOCHS, batch_size=BATCH, device="cpu")
    train(run, store=shelf, progress=False, again=True)


def seconds(work: Callable[[], object]) -> float:
    """Of this one thread's processor time, which a busy machine does not stretch."""
    start = time.process_time()
    work()
    return time.process_time() - start


def in_turns(*works: Callable[[], object]) -> list[list[float]]:
    """Seconds of each, taken in turns so that a change of the machine's speed touches all alike."""
    rounds = [[seconds(work) for work in works] for _ in range(REPEATS)]
    return [list(column) for column in zip(*rounds, strict=True)]


def ratio(ours: list[float], theirs: list[float]) -> float:
    return median(mine / other for mine, other in zip(ours, theirs, strict=True))


def main() -> None:
    torch.set_num_threads(1)
    data = features()
    trained(data, "linear", CrossEntropy())  # imports and first-time costs
    print(
        f"{data.train.n} × {COLUMNS} → {CLASSES} classes, {EPOCHS} epochs of batch {BATCH}, one thread; median of {REPEATS}"
    )
    for model in ("linear", "mlp"):
        plain, ours = in_turns(partial(plain_loop, data, model == "mlp"), partial(trained, data, model, CrossEntropy()))
        print(
            f"{model:7} plain loop {median(plain):.2f} s   train {median(ours):.2f} s   ratio {ratio(ours, plain):.2f}"
        )
    print("\nhead on cached features, seconds to the stored tables (budget)")
    with tempfile.TemporaryDirectory() as folder:
        for loss, budget in HEADS:
            work = partial(head_on_cached_features, data, loss, Store(folder))
            work()  # the first one fills the cache
            print(f"{type(loss).__name__:24} {median(in_turns(work)[0]):6.2f} ({budget} s)")
    print("\nloss: processor time of 5 epochs relative to cross-entropy on the same head")
    for loss_class in losses.LOSSES:
        if loss_class.trains:
            base, ours = in_turns(
                partial(trained, data, "linear", CrossEntropy(), 5), partial(trained, data, "linear", loss_class(), 5)
            )
            print(f"{loss_class.__name__:24} {ratio(ours, base):6.2f}")


if __name__ == "__main__":
    main()
