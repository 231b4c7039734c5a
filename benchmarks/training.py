"""What training costs here: against a plain torch loop, heads on cached features, each loss against cross-entropy on the
same network and for more and more classes in a set (Garcin et al. 2022, section 4.3 and Fig. 3), and waiting for inputs.

One thread, one run; processor time, which a busy machine does not stretch."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from statistics import median

import numpy as np
import torch
from torch import nn

from workbench import losses
from workbench.datasets import Dataset, load_dataset
from workbench.losses import CrossEntropy, Loss
from workbench.store import Store
from workbench.training import Run, train
from workbench.training.batches import Batches

ROWS, COLUMNS, CLASSES, EPOCHS, BATCH = 10_000, 256, 100, 20, 256
REPEATS = 3
# A loss → the seconds within which 20 epochs of its head must pass on two cores, for a slider to feel alive.
HEADS = ((losses.CrossEntropy(), 1.6), (losses.NoisedTopK(), 3.5), (losses.AverageKTwoHead(), 3.5))
PHOTOGRAPHS = 512  # of the garden, for one epoch of the small network
SIZES = (1, 5, 10, 20)  # K
OF_K = (losses.NoisedTopK, losses.ExactNoisedTopK, losses.SmoothTopKHinge)


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


def trained(data: Dataset, model: str, loss: Loss, epochs: int = EPOCHS) -> None:
    """The same by `train`: epochs with validation and its metrics, then the scores of val and test, all stored."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(data, model=model, loss=loss, epochs=epochs, batch_size=BATCH, device="cpu")
        train(run, store=Store(folder), progress=False)


def head_on_cached_features(data: Dataset, loss: Loss, lru_store: Store) -> None:
    """A head as the app trains it while a slider moves: the features are in the store, and the run is new each time."""
    run = Run(data, model=nn.Flatten(), features="cached", loss=loss, epochs=EPOCHS, batch_size=BATCH, device="cpu")
    train(run, store=lru_store, progress=False, force=True)


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


def relative(data: Dataset, model: str, loss: Loss, epochs: int) -> float:
    """Processor time of training with a loss, in multiples of that of cross-entropy on the same network."""
    base, ours = in_turns(
        partial(trained, data, model, CrossEntropy(), epochs), partial(trained, data, model, loss, epochs)
    )
    return ratio(ours, base)


def against_a_plain_loop(data: Dataset) -> None:
    print(
        f"{data.train.n} × {COLUMNS} → {CLASSES} classes, {EPOCHS} epochs of batch {BATCH}, one thread; median of {REPEATS}"
    )
    for model in ("linear", "mlp"):
        plain, ours = in_turns(partial(plain_loop, data, model == "mlp"), partial(trained, data, model, CrossEntropy()))
        print(
            f"{model:7} plain loop {median(plain):.2f} s   train {median(ours):.2f} s   ratio {ratio(ours, plain):.2f} (2)"
        )


COLD_PLAIN = """
import torch
from torch import nn
inputs, labels = torch.randn(1000, 64), torch.randint(10, (1000,))
model = nn.Linear(64, 10)
optimizer = torch.optim.AdamW(model.parameters())
for rows in torch.randperm(1000).split(128):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(inputs[rows]), labels[rows]).backward()
    optimizer.step()
"""
COLD_OURS = """
import sys
import workbench as wb
wb.train(wb.Run("letters", model="linear", epochs=1, device="cpu"), store=wb.Store(sys.argv[1]), progress=False)
"""


def processor_seconds(code: str) -> float:
    """Of a new Python process that runs the code with an empty folder as its argument."""
    with tempfile.TemporaryDirectory() as folder:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code, folder], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def cold_start() -> None:
    plain, ours = zip(
        *((processor_seconds(COLD_PLAIN), processor_seconds(COLD_OURS)) for _ in range(REPEATS)), strict=True
    )
    print(
        f"\nfirst model of a new process, processor time: plain torch {median(plain):.2f} s   train {median(ours):.2f} s   "
        f"ratio {ratio(list(ours), list(plain)):.2f}"
    )


def heads(data: Dataset) -> None:
    print("\nhead on cached features, seconds to the stored tables (budget)")
    with tempfile.TemporaryDirectory() as folder:
        for loss, budget in HEADS:
            work = partial(head_on_cached_features, data, loss, Store(folder))
            work()  # the first one fills the cache
            print(f"{type(loss).__name__:24} {median(in_turns(work)[0]):6.2f} ({budget} s)")


def against_cross_entropy(data: Dataset, garden: Dataset) -> None:
    print(f"\n{'relative to cross-entropy':24}{'head':>8}{'cnn':>8}    a linear head, and photographs of {garden.name}")
    for loss_class in losses.LOSSES:
        if loss_class.trains:
            loss = loss_class()
            print(
                f"{loss_class.__name__:24} {relative(data, 'linear', loss, 5):8.2f}{relative(garden, 'cnn', loss, 1):8.2f}"
            )


def against_K(garden: Dataset) -> None:
    print(f"\n{'the cnn, for K =':24} " + "".join(f"{K:8}" for K in SIZES))
    for loss_class in OF_K:
        print(
            f"{loss_class.__name__:24} " + "".join(f"{relative(garden, 'cnn', loss_class(K=K), 1):8.2f}" for K in SIZES)
        )


def input_share(garden: Dataset) -> None:
    """How much of an epoch goes by before a batch is there. For images in files, see benchmarks/images.py."""
    inputs, labels = torch.from_numpy(garden.train.inputs), torch.from_numpy(garden.train.labels)
    order = torch.randperm(garden.train.n)
    batches, epoch = in_turns(
        lambda: list(Batches(inputs, labels, BATCH, order)), partial(trained, garden, "cnn", CrossEntropy(), 1)
    )
    print(f"\nmaking batches of photographs takes {ratio(batches, epoch):.1%} of an epoch of the cnn")


def main() -> None:
    torch.set_num_threads(1)
    data = features()
    garden = load_dataset("garden", n_train=PHOTOGRAPHS, n_val=64, n_test=64)
    trained(data, "linear", CrossEntropy())  # imports and first-time costs
    against_a_plain_loop(data)
    cold_start()
    heads(data)
    against_cross_entropy(data, garden)
    against_K(garden)
    input_share(garden)


if __name__ == "__main__":
    main()
