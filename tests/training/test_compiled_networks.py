"""Compiled, and with channels last: ways to compute the same, whose numbers differ by rounding."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from small_runs import clouds, small, stripes

from workbench import losses, schedules
from workbench.losses import CrossEntropy
from workbench.store import Store
from workbench.training import Run, train
from workbench.training import learner as learning
from workbench.training.stacked.train_many import stackable


@pytest.fixture
def quick_compiler(monkeypatch):
    """All of torch.compile but the kernels, which need a C++ compiler and minutes."""
    torch.compiler.reset()
    monkeypatch.setattr(learning, "COMPILER", "aot_eager")


def nearly_the_same(one: Run, other: Run, folder) -> None:
    tables = [train(run, store=Store(folder), progress=False).tables["test"] for run in (one, other)]
    np.testing.assert_allclose(tables[0].scores, tables[1].scores, rtol=1e-3, atol=1e-3)


@pytest.mark.usefixtures("quick_compiler")
def test_a_compiled_run_learns_what_the_plain_one_learns(tmp_path):
    run = small(clouds(n=150), model="mlp", loss=losses.Focal(), epochs=2)
    nearly_the_same(run, dataclasses.replace(run, compile=True), tmp_path)


def test_channels_last_learns_the_same_and_stores_its_weights_row_by_row(tmp_path):
    run = small(stripes(60), model="cnn", epochs=1)
    nearly_the_same(run, dataclasses.replace(run, channels_last=True), tmp_path)
    learner = learning.Learner(dataclasses.replace(run, channels_last=True), Store(tmp_path))
    of_pixels = [each for each in learner.network.parameters() if each.ndim == 4 and each.shape[1] > 1]
    assert of_pixels
    assert all(each.is_contiguous(memory_format=torch.channels_last) for each in of_pixels)
    assert all(each.is_contiguous() for each in learner.weights().values())


def test_what_changes_the_last_bits_is_part_of_the_key():
    run = small()
    for name in ("compile", "channels_last"):
        other = dataclasses.replace(run, **{name: True})
        assert other.key != run.key
        assert name not in run.title
    assert not stackable(dataclasses.replace(run, compile=True))


def test_a_loss_is_compiled_where_it_can_be_and_taken_as_it_is_elsewhere(tmp_path):
    def compiled(loss) -> bool:
        learner = learning.Learner(small(loss=loss, compile=True), Store(tmp_path))
        return learner.evaluated is not None

    assert compiled(CrossEntropy())
    assert not compiled(losses.NoisedTopK(K=2))
    assert not compiled(losses.Focal(gamma=schedules.anneal(3.0, 1.0)))


def test_a_machine_that_cannot_compile_says_what_is_missing(store, monkeypatch):
    def broken(*_):
        raise RuntimeError("there is no g++")

    torch.compiler.reset()
    monkeypatch.setattr(learning, "COMPILER", broken)
    with pytest.raises(ValueError, match=r"compile = True, but torch cannot compile mlp here .* C\+\+ compiler"):
        train(small(model="mlp", compile=True, epochs=1), store=store, progress=False)


@pytest.mark.long
def test_kernels_of_its_own_learn_what_the_plain_run_learns(tmp_path):
    torch.compiler.reset()
    run = small(clouds(n=150), model="mlp", loss=losses.Focal(), epochs=2)
    nearly_the_same(run, dataclasses.replace(run, compile=True), tmp_path)
