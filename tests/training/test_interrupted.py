"""A run that was killed, stopped or cancelled goes on where it was, and two may train it at the same time."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
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
from workbench.training import Cancelled, Run, fitting, train
from workbench.training import learner as learning

pytestmark = pytest.mark.usefixtures("one_thread")


def started(work: Callable[[], object]) -> multiprocessing.Process:
    """Another process that does the work: a fork, so that it need not import Lightning again."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def interrupted_run(accumulate: int = 1) -> Run:
    """Dropout, noise, momentum, a cosine schedule, a knob with a schedule, monitors: what a careless resume gets wrong."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 8), nn.Dropout(0.5))
    with torch.no_grad():
        module[1].weight.copy_(torch.linspace(-1, 1, 40).view(8, 5))
        module[1].bias.zero_()
    loss = losses.NoisedTopK(K=2, epsilon=anneal(3, 0.2))
    watched = ("val_accuracy", "macro_average_k_accuracy@K=1.5", "top_k_accuracy@K=1")
    return small(model=module, loss=loss, epochs=8, monitor=watched, learning_rate=0.01, accumulate=accumulate)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_killed_run_resumes_and_ends_with_the_same_bits(tmp_path, monkeypatch, accumulate):
    uninterrupted = train(interrupted_run(accumulate), store=Store(tmp_path / "elsewhere"), progress=False)
    store, run = Store(tmp_path / "runs"), interrupted_run(accumulate)
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
        epochs.append(self.first_epoch)

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
    told = []
    trained = train(small(epochs=4), store=store, progress=False, on_epoch=lambda row: told.append(row["epoch"]))
    assert told == [2, 3]
    assert_same_weights(weights(trained), weights(uninterrupted))


def test_a_cheap_run_that_is_asked_to_end_loses_no_epoch_that_it_finished(store):
    def end_in_the_last_but_one(row):
        if row["epoch"] == 28:
            os.kill(os.getpid(), signal.SIGTERM)

    process = started(lambda: train(small(epochs=30), store=store, progress=False, on_epoch=end_in_the_last_but_one))
    process.join()
    assert process.exitcode == 128 + signal.SIGTERM
    told = []
    train(small(epochs=30), store=store, progress=False, on_epoch=lambda row: told.append(row["epoch"]))
    assert told == [29]


def test_every_epoch_that_is_trained_is_told_as_it_ends(store):
    told = []
    trained = train(small(), store=store, progress=False, on_epoch=told.append)
    pd.testing.assert_frame_equal(pd.DataFrame(told), trained.history)
    train(small(), store=store, progress=False, on_epoch=told.append)  # read from the store
    assert len(told) == 3


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
    fit = fitting.fit

    def fit_together(learner, *, progress):
        meet.wait(600)
        device = fit(learner, progress=progress)
        meet.wait(600)
        return device

    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(fitting, "fit", fit_together)
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
    told, tell = multiprocessing.get_context("fork").Pipe(duplex=False)

    def train_on_a_small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            if file == "the best weights":
                learner = learning.Learner(small(data), store)
                learner.kept, learner.history = {0: learner.weights()}, [{}]
                learner.keep_best()
            train(small(data), store=store, progress=False)
        except OSError as error:
            tell.send(str(error))

    process = started(train_on_a_small_disk)
    process.join()
    assert told.poll()
    assert re.search(r"runs is full: .* needs \d[\d ]+ bytes; free some space, or set WORKBENCH_HOME", told.recv())
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def test_a_checkpoint_that_cannot_be_read_is_left_and_training_starts_anew(store):
    run = small()
    checkpoint = store.unfinished(run.key)
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"not a checkpoint")
    with pytest.warns(UserWarning, match=r"cannot be read .*: training starts anew"):
        trained = train(run, store=store, progress=False)
    assert len(trained.history) == 3


def test_again_begins_with_the_first_epoch_whatever_was_left_behind(store, monkeypatch):
    def interrupt_after_the_second(row):
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        train(small(), store=store, progress=False, on_epoch=interrupt_after_the_second)
    assert store.unfinished(small().key).is_file()
    told = []
    train(small(), store=store, progress=False, again=True, on_epoch=lambda row: told.append(row["epoch"]))
    assert told == [0, 1, 2]


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
