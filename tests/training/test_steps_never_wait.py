"""A training step asks the device for nothing; now and then the steps are looked at, all at once."""

from __future__ import annotations

import dataclasses
import math
import threading
from dataclasses import dataclass

import pytest
import torch
from host_reads import HostReads
from small_runs import CLOUDS, small, stripes
from tqdm import tqdm

from workbench import losses
from workbench.datasets import HorizontalFlip
from workbench.losses import LOSSES, CrossEntropy
from workbench.store import Store
from workbench.training import batches as batching
from workbench.training import learner as learning
from workbench.training import train

TRAINING = [loss_class for loss_class in LOSSES if loss_class.trains]


def learner_without_values(run, store):
    """Ready to take steps on torch's `meta` device, where every question for a value raises."""
    learner = learning.Learner(run, store)
    learner.begin_epoch()  # its noise is drawn by a generator of the CPU: meta has none
    learner.move_to(torch.device("meta"))
    learner.optimizer = torch.optim.AdamW(learner.parameter_groups())
    learner.bar = tqdm(disable=True)
    return learner


@pytest.mark.parametrize("loss_class", TRAINING, ids=lambda loss_class: loss_class.__name__)
def test_a_step_sends_its_rows_to_the_device_and_asks_it_for_nothing(loss_class, tmp_path):
    knobs = {"K": 2} if "K" in loss_class.knobs() else {}
    knobs |= {"p_k": (0.5, 0.5)} if loss_class is losses.DifferentiableTopK else {}
    learner = learner_without_values(small(loss=loss_class(**knobs)), Store(tmp_path))
    batches = list(learner.train_batches())
    learner.learn(batches[0], 0)  # what is made once and kept
    with HostReads("meta") as counted:
        learner.learn(batches[1], 1)
    assert counted.found == ["aten._to_copy.default"] * 3  # inputs, labels and the numbers of the rows
    assert len(learner.unseen) == 2


def test_a_step_of_a_network_of_images_asks_for_nothing_either(tmp_path):
    learner = learner_without_values(small(stripes(), model="cnn"), Store(tmp_path))
    batches = list(learner.train_batches())
    with HostReads("meta") as counted:
        learner.learn(batches[0], 0)
    assert counted.found == ["aten._to_copy.default"] * 3


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_the_steps_are_looked_at_every_so_often_and_at_the_end_of_the_epoch(micro_batches, store, monkeypatch):
    looks = []

    class Watched(learning.Learner):
        def look(self):
            looks.append([step for step, *_ in self.unseen])
            super().look()

    monkeypatch.setattr(learning, "STEPS_BETWEEN_LOOKS", 3)
    monkeypatch.setattr(learning, "Learner", Watched)
    run = small(epochs=1, micro_batches=micro_batches)
    train(run, store=store, progress=False)
    n_batches = math.ceil(CLOUDS.train.n / run.batch_size)
    every_piece = [step for step in range(n_batches) for _ in range(micro_batches)]
    assert [step for steps in looks for step in steps] == every_piece
    assert [steps[-1] for steps in looks] == [*range(2, n_batches - 1, 3), n_batches - 1]


def test_when_the_steps_are_looked_at_changes_not_a_bit(store, tmp_path, monkeypatch):
    run = small(loss=losses.Quasibinary(), epochs=2)
    seldom = train(run, store=store, progress=False)
    monkeypatch.setattr(learning, "STEPS_BETWEEN_LOOKS", 1)
    always = train(run, store=Store(tmp_path / "always"), progress=False)
    assert (seldom.tables["test"].scores == always.tables["test"].scores).all()
    assert seldom.history.drop(columns="seconds").equals(always.history.drop(columns="seconds"))


@dataclass(frozen=True)
class Exploding(CrossEntropy):
    """NaN in the second step of the second epoch, and in nearly all that follow."""

    def values(self, scores, labels, *, rows=None, **_):
        order = learning.torch.randperm(CLOUDS.train.n, generator=learning.generator(0, 1, "order"))
        second = order.tensor_split(math.ceil(CLOUDS.train.n / 16))[1]
        broken = rows is not None and torch.equal(rows, second)
        return super().values(scores, labels) * (math.nan if broken else 1)


def test_a_loss_that_diverges_between_two_looks_is_named_by_its_batch_and_the_best_epoch_is_kept(store):
    run = dataclasses.replace(small(loss=Exploding(), epochs=3), batch_size=16)
    with pytest.raises(
        FloatingPointError, match=r"epoch 2 of 3: the loss is nan in batch 2 of .* of epoch 1, the best"
    ):
        train(run, store=store, progress=False)
    assert store.diverged(run.key).is_file()
    assert not store.has(run.key)


def test_batches_for_a_gpu_are_the_same_and_a_thread_makes_the_next_ones(monkeypatch):
    pinned, makers = [], set()

    def pin(tensor):
        makers.add(threading.current_thread().name.partition("_")[0])
        pinned.append(tensor.shape)
        return tensor.clone()

    monkeypatch.setattr(batching, "ready_for_gpu", pin)
    images, labels = torch.arange(60, dtype=torch.uint8).view(10, 2, 3, 1), torch.arange(10)
    augmented = batching.EpochAugmentations((HorizontalFlip(),), 10, seed=0, epoch=0)
    plain, ahead = (
        list(batching.Batches(images, labels, 4, augmented=augmented, pinned=each)) for each in (False, True)
    )
    assert len(plain) == 3
    torch.testing.assert_close(plain, ahead)
    assert len(pinned) == 3 * 3  # inputs, labels and rows of each
    assert makers == {"batches"}


def test_an_error_while_a_batch_is_made_reaches_who_asks_for_it():
    def broken(inputs, rows):
        raise ValueError("rose.jpg cannot be read")

    batches = batching.Batches(torch.zeros(4, 2), torch.zeros(4), 2, augmented=broken, pinned=True)
    with pytest.raises(ValueError, match="rose"):
        next(iter(batches))


def test_steps_on_a_gpu_never_wait_but_for_a_look(store):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    run = small(loss=losses.NoisedTopK(K=2), epochs=1, device="cuda")
    learner = learning.Learner(run, store)
    learner.move_to(torch.device("cuda"))
    learner.begin_epoch()
    learner.make_optimizer()
    learner.bar = tqdm(disable=True)
    batches = list(learner.train_batches())
    learner.learn(batches[0], 0)
    torch.cuda.set_sync_debug_mode("error")
    try:
        learner.learn(batches[1], 1)
    finally:
        torch.cuda.set_sync_debug_mode("default")
