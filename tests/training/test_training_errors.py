"""What can go wrong in training is said in words, and leaves nothing half-written behind."""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass

import numpy as np
import pytest
import safetensors.numpy
import torch
from small_runs import assert_same_weights, small
from torch import nn

from workbench.datasets import Dataset
from workbench.files import atomic
from workbench.losses import BinaryCrossEntropy, Loss
from workbench.runs import Run
from workbench.store import Store
from workbench.training import hardware, loop, train
from workbench.training import learner as learning

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Exploding(Loss):
    """NaN in training, once a step has made the scores large."""

    title = "Exploding"

    def values(self, scores, labels, **_):
        return scores.sum(-1) * (torch.nan if scores.requires_grad and scores.abs().max() > 20 else 1.0)


def test_a_nan_loss_stops_with_the_epoch_the_batch_and_the_likely_knob(store):
    run = small(loss=Exploding(), learning_rate=100.0, batch_size=32)
    message = r"epoch \d of 3: the loss is nan in batch \d+ of 10.*learning_rate=10"
    with pytest.raises(FloatingPointError, match=message):
        train(run, store=store, progress=False)
    assert not store.has(run.key)


@pytest.mark.parametrize("monitor", [None, "val_accuracy"])
def test_a_loss_that_diverges_leaves_the_weights_of_the_best_epoch(store, tmp_path, monkeypatch, monitor):
    run = small(epochs=6, monitor=monitor, learning_rate=0.05)
    learn = learning.Learner.learn

    def explode(self, batch, batch_idx):
        if self.epoch == 4:
            raise FloatingPointError("the loss is nan")
        learn(self, batch, batch_idx)

    epochs: list[dict[str, np.ndarray]] = []
    close = learning.Learner.close_epoch

    def remember(self, seconds):
        finished = close(self, seconds)
        epochs.append({name: value.numpy() for name, value in self.weights().items()})
        return finished

    with monkeypatch.context() as patch:
        patch.setattr(learning.Learner, "learn", explode)
        patch.setattr(learning.Learner, "close_epoch", remember)
        with pytest.raises(FloatingPointError, match="the loss is nan; the weights of epoch") as stopped:
            train(run, store=store, progress=False)
    best = (
        4 if monitor is None else train(run, store=Store(tmp_path / "whole")).history["val_accuracy"][:4].idxmax() + 1
    )
    assert f"the weights of epoch {best}, the best so far, are kept in {store.diverged(run.key)}" in str(stopped.value)
    assert_same_weights(safetensors.numpy.load_file(store.diverged(run.key)), epochs[best - 1])
    train(run, store=store, progress=False)
    assert list((store.root / ".unfinished").iterdir()) == []


def test_a_loss_that_diverges_at_once_leaves_nothing(store):
    run = small(loss=Exploding(), learning_rate=100.0, batch_size=32)
    with pytest.raises(FloatingPointError, match="epoch 1 "):
        train(run, store=store, progress=False)
    assert list((store.root / ".unfinished").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_noticed_before_the_first_epoch(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setattr(loop, "fit", lambda *_, **__: pytest.fail("trained first"))
    with pytest.raises(PermissionError, match=r"runs cannot be written to .*file"):
        train(small(), store=Store(tmp_path / "file"), progress=False)


def test_a_full_disk_during_a_checkpoint_says_so_and_leaves_nothing_half_written(store, monkeypatch):
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)

    def full(path):  # as some disks do, which notice it late
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(atomic, "_sync", full)
    with pytest.raises(OSError, match=r"is full: \w+\.ckpt needs \d[\d ]* bytes; free some space"):
        train(small(), store=store, progress=False)
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    ("device", "gpus", "words"),
    [
        ("cuda", 0, "but torch sees no GPU on this machine; use device='auto' or 'cpu'"),
        ("cuda:1", 0, "but torch sees no GPU on this machine"),
        ("cuda:2", 2, "but torch sees 2 GPUs; use one of cuda:0, cuda:1"),
        ("mps", 2, "but torch sees no GPU of Apple on this machine"),
    ],
)
def test_a_gpu_that_is_not_there_is_an_error_that_says_so(store, monkeypatch, device, gpus, words):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(ValueError, match=f"device = '{device}', {words}"):
        train(small(device=device), store=store, progress=False)


def test_a_device_is_found_by_its_name_and_auto_is_a_gpu_of_cuda_or_the_processor(monkeypatch):
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    for gpus, auto in ((0, "cpu"), (2, "cuda")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda gpus=gpus: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda gpus=gpus: gpus)
        assert hardware.device_named("auto") == torch.device(auto)
    for name in ("cpu", "cuda", "cuda:1", "mps"):
        assert str(hardware.device_named(name)) == name


def test_a_class_missing_from_training_is_refused():
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="three"):
        small(Dataset.from_arrays(np.eye(8), labels, class_names=["one", "two", "three"]))


def test_training_on_a_gpu_gives_nearly_the_same_scores_as_on_a_cpu(tmp_path):
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    cpu, gpu = (
        train(small(model="mlp", device=device), store=Store(tmp_path / device), progress=False)
        for device in ("cpu", "cuda")
    )
    np.testing.assert_allclose(cpu.tables["test"].scores, gpu.tables["test"].scores, atol=1e-2)


class NotFinite(nn.Module):
    def forward(self, inputs):
        return inputs * torch.nan


def test_a_loss_that_is_nan_before_the_first_step_does_not_blame_the_learning_rate(store):
    with pytest.raises(
        FloatingPointError, match="epoch 1 of 3: the loss is nan in batch 1 of 5, before anything is learnt"
    ) as stopped:
        train(small(model=NotFinite()), store=store, progress=False)
    assert "learning" not in str(stopped.value)


class Detached(nn.Module):
    def forward(self, scores):
        return scores.detach()


@pytest.mark.parametrize("way", ["frozen", "detached"])
def test_a_model_in_which_nothing_learns_says_so(store, way):
    model = nn.Linear(5, 6).requires_grad_(way != "frozen")
    fields = {} if way == "frozen" else {"head": "own"}
    with pytest.raises(ValueError, match=r"no weight of .* learns: all are frozen, or .* detached.*head='new'"):
        train(
            small(model=nn.Sequential(model, *[Detached()] * (way != "frozen")), **fields), store=store, progress=False
        )


def test_a_dataset_of_one_class_is_refused_before_anything_is_trained(store):
    data = Dataset.from_arrays(np.eye(20), np.zeros(20, int))
    with pytest.raises(ValueError, match="a loss needs at least 2"):
        train(small(data), store=store, progress=False)


def test_a_monitor_of_accuracy_needs_validation_rows_with_a_label(store):
    split = ["train"] * 4 + ["val"] * 2 + ["test"] * 2
    data = Dataset.from_arrays(np.eye(8), [0, 1, 0, 1, -1, -1, 0, 1], split=split)
    run = small(data, loss=BinaryCrossEntropy(), monitor="val_accuracy")
    with pytest.raises(
        ValueError, match=r"monitor = 'val_accuracy', but no validation row .* has a label; use monitor='val_loss'"
    ):
        train(run, store=store, progress=False)


def test_what_cannot_be_called_is_refused_before_the_first_epoch(store):
    with pytest.raises(TypeError, match="on_epoch = 3; give a function, or None"):
        train(small(), store=store, progress=False, on_epoch=3)


class Codes(nn.Module):
    """The mean of the embeddings of whole numbers from 0 to 9."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, inputs):
        return self.table(inputs.long()).mean(1)


def test_an_embedding_reads_codes_as_they_are_and_standardised_rows_are_refused_with_the_remedy(store):
    codes = np.random.default_rng(0).integers(0, 10, (200, 3))
    labels = (codes.sum(1) > 13).astype(int)
    settings = {"model": Codes(), "epochs": 1, "device": "cpu"}
    with pytest.raises(ValueError, match=r"no entry for standardised rows .*standardise=False"):
        train(Run(Dataset.from_arrays(codes, labels, name="codes"), **settings), store=store, progress=False)
    data = Dataset.from_arrays(codes, labels, name="codes", standardise=False)
    assert data.key != Dataset.from_arrays(codes, labels).key
    run = train(Run(data, **settings), store=store, progress=False)
    assert run.stored.name.startswith("codes ·")
    seen = run.model.features(torch.from_numpy(data.test.inputs))
    torch.testing.assert_close(seen, run.model.backbone(torch.from_numpy(data.test.inputs)))
