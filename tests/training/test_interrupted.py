"""A run that was killed, stopped or cancelled goes on where it was, and two may train it at the same time."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from small_runs import CLOUDS, assert_same_weights, clouds, small, weights
from torch import nn

from workbench import losses
from workbench.schedules import anneal
from workbench.store import Store
from workbench.training import Cancelled, Run, loop, train
from workbench.training import learner as learning
from workbench.training.checkpoint import read_checkpoint, write_checkpoint

pytestmark = pytest.mark.usefixtures("one_thread")


def started(work: Callable[[], object]) -> multiprocessing.Process:
    """Another process that does the work: a fork, so that it need not import torch again."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def interrupted_run(micro_batches: int = 1) -> Run:
    """Dropout, noise, momentum, a cosine schedule, a knob with a schedule, monitors: what a careless resume gets wrong."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 8), nn.Dropout(0.5))
    with torch.no_grad():
        module[1].weight.copy_(torch.linspace(-1, 1, 40).view(8, 5))
        module[1].bias.zero_()
    loss = losses.NoisedTopK(K=2, epsilon=anneal(3, 0.2))
    watched = ("val_accuracy", "macro_average_k_accuracy@K=1.5", "top_k_accuracy@K=1")
    return small(model=module, loss=loss, epochs=8, monitor=watched, learning_rate=0.01, micro_batches=micro_batches)


@pytest.mark.parametrize("micro_batches", [1, 2])
def test_a_killed_run_resumes_and_ends_with_the_same_bits(tmp_path, monkeypatch, micro_batches):
    uninterrupted = train(interrupted_run(micro_batches), store=Store(tmp_path / "elsewhere"), progress=False)
    store, run = Store(tmp_path / "runs"), interrupted_run(micro_batches)
    hanging = multiprocessing.get_context("fork").Event()
    step = learning.Learner.learn

    def hang_in_the_fourth_epoch(self, batch, batch_idx):
        if self.epoch == 3 and batch_idx == 2:
            hanging.set()
            signal.pause()
        step(self, batch, batch_idx)

    with monkeypatch.context() as patch:
        patch.setattr(learning, "CHECKPOINT_SECONDS", 0)
        patch.setattr(learning.Learner, "learn", hang_in_the_fourth_epoch)
        process = started(lambda: train(run, store=store, progress=False))
    assert hanging.wait(600)
    process.kill()  # SIGKILL
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not store.has(run.key)
    assert store.unfinished(run.key).is_file()
    epochs = []
    resume = learning.Learner.resume

    def noted(self):
        resume(self)
        epochs.append(self.epoch)

    monkeypatch.setattr(learning.Learner, "resume", noted)
    resumed = train(run, store=store, progress=False)
    assert epochs == [3]
    assert_same_weights(weights(resumed), weights(uninterrupted))
    np.testing.assert_array_equal(resumed.tables["test"].scores, uninterrupted.tables["test"].scores)
    for monitor in run.monitor:
        kept, wanted = resumed.kept_by(monitor), uninterrupted.kept_by(monitor)
        assert kept.epoch == wanted.epoch
        np.testing.assert_array_equal(kept.tables["test"].scores, wanted.tables["test"].scores)
    pd.testing.assert_frame_equal(
        resumed.history.drop(columns="seconds"), uninterrupted.history.drop(columns="seconds")
    )
    assert list((store.root / ".unfinished").iterdir()) == []


@pytest.mark.parametrize("stop", range(1, 9))
def test_a_run_stopped_after_any_epoch_ends_with_the_same_bits(tmp_path, stop, monkeypatch):
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    uninterrupted = train(interrupted_run(), store=Store(tmp_path / "elsewhere"), progress=False)
    save, saves = learning.Learner.save, []

    def save_and_stop(self):
        save(self)
        saves.append(self.epoch)
        if len(saves) == stop:
            raise RuntimeError("power cut")

    monkeypatch.setattr(learning.Learner, "save", save_and_stop)
    store, run = Store(tmp_path / "runs"), interrupted_run()
    with pytest.raises(RuntimeError, match="power cut"):
        train(run, store=store, progress=False)
    resumed = train(run, store=store, progress=False)
    assert saves == list(range(8))  # no epoch was trained twice
    assert_same_weights(weights(resumed), weights(uninterrupted))


@pytest.mark.parametrize("loss", [losses.ROLE(K=2.0), losses.Quasibinary(), losses.AverageKTwoHead(K=2.0)], ids=repr)
def test_what_a_loss_remembers_is_taken_up_again(tmp_path, loss, monkeypatch):
    run = small(loss=loss, epochs=4)
    uninterrupted = train(run, store=Store(tmp_path / "elsewhere"), progress=False)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    save, store = learning.Learner.save, Store(tmp_path / "runs")

    def save_and_stop(self):
        save(self)
        raise RuntimeError("power cut")

    with monkeypatch.context() as patch:
        patch.setattr(learning.Learner, "save", save_and_stop)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="power cut"):
                train(run, store=store, progress=False)
    resumed = train(run, store=store, progress=False)
    assert_same_weights(weights(resumed), weights(uninterrupted))
    np.testing.assert_array_equal(resumed.tables["test"].scores, uninterrupted.tables["test"].scores)


def test_ctrl_c_leaves_a_run_that_resumes_and_a_session_that_lives_on(store, monkeypatch):
    step = learning.Learner.learn
    uninterrupted = train(small(epochs=4), store=Store(store.root / "elsewhere"), progress=False)

    def interrupted_in(epoch):
        def learn(self, batch, batch_idx):
            step(self, batch, batch_idx)
            if self.epoch == epoch and batch_idx == 1:
                raise KeyboardInterrupt

        return learn

    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        for epoch, then in ((0, "starts anew"), (2, "goes on from the last checkpoint")):
            patch.setattr(learning.Learner, "learn", interrupted_in(epoch))
            with pytest.raises(KeyboardInterrupt, match=f"stopped in epoch {epoch + 1} of 4; the same call {then}"):
                train(small(epochs=4), store=store, progress=False)
    assert signal.getsignal(signal.SIGINT) is handler
    reports = []
    trained = train(small(epochs=4), store=store, progress=False, on_epoch=lambda row: reports.append(row["epoch"]))
    assert reports == [2, 3]
    assert_same_weights(weights(trained), weights(uninterrupted))


def test_a_cheap_run_that_is_asked_to_end_loses_no_epoch_that_it_finished(store):
    def end_in_the_last_but_one(row):
        if row["epoch"] == 28:
            os.kill(os.getpid(), signal.SIGTERM)

    process = started(lambda: train(small(epochs=30), store=store, progress=False, on_epoch=end_in_the_last_but_one))
    process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    reports = []
    train(small(epochs=30), store=store, progress=False, on_epoch=lambda row: reports.append(row["epoch"]))
    assert reports == [29]


def test_every_epoch_that_is_trained_is_told_as_it_ends(store):
    reports = []
    trained = train(small(), store=store, progress=False, on_epoch=reports.append)
    pd.testing.assert_frame_equal(pd.DataFrame(reports), trained.history)
    train(small(), store=store, progress=False, on_epoch=reports.append)  # read from the store
    assert len(reports) == 3


def test_a_cancelled_run_leaves_nothing_behind_and_can_be_trained_again(store):
    def cancel(row):
        if row["epoch"] == 1:
            raise Cancelled

    with pytest.raises(Cancelled):
        train(small(), store=store, progress=False, on_epoch=cancel)
    assert [path for path in store.root.rglob("*") if path.is_file()] == []
    assert len(train(small(), store=store, progress=False).history) == 3


def test_two_processes_may_train_the_same_run_at_the_same_time(store, monkeypatch):
    run = interrupted_run()
    meet = multiprocessing.get_context("fork").Barrier(2)
    fit = loop.fit

    def fit_together(learner, *, progress):
        meet.wait(600)
        device = fit(learner, progress=progress)
        meet.wait(600)
        return device

    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(loop, "fit", fit_together)
    processes = [started(lambda: train(run, store=store, progress=False)) for _ in range(2)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert store.open(run.key).tables["test"].n == CLOUDS.test.n
    assert sorted(path.name for path in store.root.iterdir()) == [".unfinished", run.key]


@pytest.mark.parametrize("file", ["the checkpoint", "the weights", "the best weights"])
def test_a_disk_that_is_too_small_for_what_is_trained_says_so_in_words(store, monkeypatch, file):
    data = clouds(n_columns=2000)
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    if file == "the weights":
        monkeypatch.setattr(learning.Learner, "save", lambda self: None)
    reports, tell = multiprocessing.get_context("fork").Pipe(duplex=False)

    def train_on_a_small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            if file == "the best weights":
                learner = learning.Learner(small(data), store)
                learner.kept_weights, learner.history = {0: learner.weights()}, [{}]
                learner.keep_best()
            train(small(data), store=store, progress=False)
        except OSError as error:
            tell.send(str(error))

    process = started(train_on_a_small_disk)
    process.join()
    assert reports.poll()
    assert re.search(r"runs is full: .* needs \d[\d ]+ bytes; free some space, or set WORKBENCH_HOME", reports.recv())
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def with_content(change: Callable[[dict], object]) -> Callable[[Path], None]:
    """Writes the checkpoint of a file anew with its content changed, as a careful forger would: the checksum is right."""

    def damage(path: Path) -> None:
        content = read_checkpoint(path)
        change(content)
        write_checkpoint(content, path, Store(path.parent.parent))

    return damage


def with_bytes(change: Callable[[bytearray], object]) -> Callable[[Path], None]:
    def damage(path: Path) -> None:
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)

    return damage


def flip(content: bytearray, at: int) -> None:
    content[at] ^= 1


WEIGHT = "head.weight"
DAMAGE = {
    "no checkpoint at all": with_bytes(lambda content: content.__setitem__(slice(None), b"not a checkpoint")),
    "empty": with_bytes(bytearray.clear),
    "cut": with_bytes(lambda content: content.__delitem__(slice(len(content) // 2, None))),
    "a bit of the checksum": with_bytes(lambda content: flip(content, 3)),
    "a bit of the weights": with_bytes(lambda content: flip(content, len(content) // 2)),
    "zeros": with_bytes(lambda content: content.__setitem__(slice(None), bytes(len(content)))),
    "a weight missing": with_content(lambda content: content["weights"].pop(WEIGHT)),
    "a weight of another shape": with_content(lambda content: content["weights"].update({WEIGHT: torch.zeros(2, 2)})),
    "a kept weight missing": with_content(lambda content: content["kept"][1].pop(WEIGHT)),
    "history cut": with_content(lambda content: content["history"].pop(0)),
    "history too long": with_content(lambda content: content["history"].extend(content["history"])),
}


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory) -> tuple[Path, dict[str, np.ndarray]]:
    """The checkpoint of a run that was stopped after its second epoch, and the weights that it should end with."""
    folder = tmp_path_factory.mktemp("interrupted")
    run = small(monitor="val_loss")
    whole = train(run, store=Store(folder / "whole"), progress=False)

    def stop_after_the_second(row):
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, store=Store(folder), progress=False, on_epoch=stop_after_the_second)
    return Store(folder).unfinished(run.key), weights(whole)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_not_trusted_and_training_starts_anew(damage, interrupted, store):
    run = small(monitor="val_loss")
    checkpoint, expected = interrupted
    store.unfinished(run.key).parent.mkdir(parents=True)
    shutil.copy(checkpoint, store.unfinished(run.key))
    damage(store.unfinished(run.key))
    epochs = []
    with pytest.warns(UserWarning, match=r"cannot be used .*: training starts anew"):
        trained = train(run, store=store, progress=False, on_epoch=lambda row: epochs.append(row["epoch"]))
    assert epochs == [0, 1, 2]
    assert_same_weights(weights(trained), expected)


def test_what_a_killed_training_left_is_removed_by_the_next_one(store, monkeypatch):
    run, hanging = small(), multiprocessing.get_context("fork").Event()

    def hang(content, path, store):
        with store.replacing(path) as aside:
            aside.write_bytes(b"half of it")
            hanging.set()
            signal.pause()

    with monkeypatch.context() as patch:
        patch.setattr(learning, "CHECKPOINT_SECONDS", 0)
        patch.setattr(learning, "write_checkpoint", hang)
        process = started(lambda: train(run, store=store, progress=False))
    assert hanging.wait(600)
    process.kill()
    process.join()
    unfinished = store.root / ".unfinished"
    assert len(list(unfinished.rglob("*"))) == 2  # a folder with half a file

    def look(row):
        assert list(unfinished.rglob("*")) == []

    train(run, store=store, progress=False, on_epoch=look)


def test_a_checkpoint_beside_a_stored_run_is_removed_when_the_run_is_asked_for(store):
    trained = train(small(), store=store, progress=False)
    for path in (store.unfinished(trained.run.key), store.diverged(trained.run.key)):
        path.write_bytes(b"left by a process that was killed")
    train(small(), store=store, progress=False)
    assert list((store.root / ".unfinished").iterdir()) == []


def test_again_begins_with_the_first_epoch_whatever_was_left_behind(store, monkeypatch):
    def interrupt_after_the_second(row):
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        train(small(), store=store, progress=False, on_epoch=interrupt_after_the_second)
    assert store.unfinished(small().key).is_file()
    reports = []
    train(small(), store=store, progress=False, force=True, on_epoch=lambda row: reports.append(row["epoch"]))
    assert reports == [0, 1, 2]


def test_a_request_to_end_stops_at_once_and_is_no_success(tmp_path):
    code = f"""
        import os, signal, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from small_runs import small
        from workbench.store import Store
        from workbench.training import train
        end = lambda row: os.kill(os.getpid(), signal.SIGTERM) if row["epoch"] == 1 else None
        train(small(), store=Store({str(tmp_path)!r}), progress=False, on_epoch=end)
        """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 128 + signal.SIGTERM
    assert "stopped in epoch 2 of 3; the same call goes on from the last checkpoint" in done.stderr
    assert "Traceback" not in done.stderr
