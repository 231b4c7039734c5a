"""Features are computed once, and a head learns on them what it would learn behind a frozen backbone."""

from __future__ import annotations

import dataclasses
import multiprocessing
import re
import resource
import shutil

import numpy as np
import pytest
import torch
from torch import nn

from workbench import progress
from workbench.cli.train import TRAIN
from workbench.datasets import Dataset
from workbench.losses import LDAM, AverageKTwoHead, CrossEntropy, NoisedTopK
from workbench.progress import listening
from workbench.store import DEMO, Store
from workbench.store.imported_tables import keep_tables
from workbench.tables import LogitTable
from workbench.training import Cancelled, Run, TrainedRun, features, train
from workbench.training.features import cache_features

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def clouds() -> Dataset:
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 6
    rows = 2 * rng.normal(size=(6, 5))[labels] + rng.normal(size=(400, 5))
    return Dataset.from_arrays(rows, labels, name="clouds", attributes={"place": np.arange(400) % 3})


@pytest.fixture
def trained(clouds, store) -> TrainedRun:
    return train(Run(clouds, model="mlp", epochs=3, batch_size=64, device="cpu"), store=store, progress=False)


def head_run(data: Dataset, source: TrainedRun, **fields) -> Run:
    return Run(data, **{"model": "mlp", "features": source, "epochs": 4, "batch_size": 64, "device": "cpu", **fields})


def files(store: Store) -> set[str]:
    return {path.name for path in (store.root / ".features").iterdir()}


def test_the_features_of_a_trained_run_are_those_of_its_model_and_everything_else_stays(clouds, trained, store):
    cached = cache_features(clouds, trained, store=store)
    for split in ("train", "val", "test"):
        theirs, ours = getattr(cached, split), getattr(clouds, split)
        with torch.no_grad():
            expected = trained.model.features(torch.from_numpy(ours.inputs)).numpy()
        np.testing.assert_allclose(theirs.inputs, expected, rtol=1e-5, atol=1e-6)
        assert isinstance(theirs.inputs, np.memmap)
        np.testing.assert_array_equal(theirs.labels, ours.labels)
        np.testing.assert_array_equal(theirs.attributes["place"], ours.attributes["place"])
    assert (cached.n_classes, cached.class_names, cached.input_shape) == (6, clouds.class_names, (256,))


def test_training_can_be_cancelled_while_features_are_computed_and_leaves_none_behind(
    clouds, trained, store, monkeypatch
):
    monkeypatch.setattr(features, "rows_at_once", lambda shape: 50)
    batches = []

    def after_two(what: str, unit: str, share: float) -> None:
        batches.append(share)
        if len(batches) == 2:
            raise Cancelled

    run = head_run(clouds, trained)
    with pytest.raises(Cancelled), listening(after_two):
        train(run, store=store, progress=False)
    assert len(batches) == 2
    assert not store.has(run.key)
    assert not any(Store(store.root / ".features").has(name) for name in files(store))
    train(run, store=store, progress=False)


def test_damaged_features_are_computed_anew(clouds, trained, store):
    first = cache_features(clouds, trained, store=store)
    file = store.root / ".features" / first.key / "train.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"?")
    with pytest.warns(UserWarning, match=r"features are computed anew: .*train.npy is damaged"):
        cache_features(clouds, trained, store=store)
    assert file.read_bytes() == whole


def test_a_disk_that_is_too_small_for_features_says_so_before_the_process_is_ended(clouds, trained, store):
    told, tell = multiprocessing.get_context("fork").Pipe(duplex=False)

    def compute_on_a_small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            cache_features(clouds, trained, store=store, progress=False)
        except OSError as error:
            tell.send(str(error))

    process = multiprocessing.get_context("fork").Process(target=compute_on_a_small_disk)
    process.start()
    process.join()
    assert told.poll()
    assert re.search(r"is full: train.npy needs \d+ \d+ bytes; free some space", told.recv())
    assert files(store) == set()


def test_features_are_computed_once_and_anew_for_other_weights_or_other_data(clouds, trained, store, monkeypatch):
    first = cache_features(clouds, trained, store=store)
    write, written = features._write, []
    monkeypatch.setattr(features, "_write", lambda path, *rest: written.append(path) or write(path, *rest))
    assert cache_features(clouds, trained, store=store).key == first.key
    assert written == []
    module = nn.Sequential(nn.Linear(5, 7), nn.ReLU())
    keys = {first.key, cache_features(clouds, module, store=store).key}
    with torch.no_grad():
        module[0].weight.add_(1)
    keys.add(cache_features(clouds, module, store=store).key)
    shifted = Dataset.from_arrays(np.eye(60, 5), np.arange(60) % 6)
    keys.add(cache_features(shifted, module, store=store).key)
    assert files(store) == keys
    assert len(keys) == 4


def test_what_takes_long_shows_how_far_it_is_unless_that_is_not_wanted(clouds, trained, store, monkeypatch, capfd):
    cache_features(clouds, trained, store=store)
    assert capfd.readouterr().err == ""  # it was quick
    monkeypatch.setattr(progress, "AFTER", 0)
    for wanted in (False, True):
        cache_features(clouds, nn.Linear(5, 3 + wanted), store=store, progress=wanted)
        assert ("features of Linear: " in capfd.readouterr().err) is wanted
    shutil.rmtree(store.root / ".features")
    train(head_run(clouds, trained), store=store)
    assert "features of mlp: " in capfd.readouterr().err


def test_a_failure_while_features_are_computed_leaves_nothing_behind(clouds, store):
    class Breaks(nn.Module):
        def forward(self, inputs):
            if len(inputs) > 2:  # the two blank inputs that ask for its width
                raise RuntimeError("out of luck")
            return inputs

    with pytest.raises(RuntimeError, match="out of luck"):
        cache_features(clouds, Breaks(), store=store)
    assert files(store) == set()


def test_cached_features_are_no_run(clouds, trained, store):
    before = [run.key for run in store.runs()]
    cache_features(clouds, trained, store=store)
    assert [run.key for run in store.runs()] == before


@pytest.mark.parametrize("loss", [CrossEntropy(), NoisedTopK(K=2), AverageKTwoHead(K=2), LDAM()], ids=repr)
def test_a_head_learns_on_the_features_of_a_run_and_leaves_the_backbone_as_it_was(clouds, trained, store, loss):
    done = train(head_run(clouds, trained, loss=loss, epochs=10, learning_rate=0.05), store=store, progress=False)
    assert done.history["val_accuracy"].iloc[-1] > 0.5  # chance is 1/6
    for name, value in trained.model.backbone.state_dict().items():
        assert torch.equal(done.model.backbone.state_dict()[name], value)
    with torch.no_grad():  # what is kept is a whole network: inputs go in, the table's scores come out
        scores = done.run.loss.logits(done.model(torch.from_numpy(clouds.test.inputs))).numpy()
    np.testing.assert_allclose(done.tables["test"].scores, scores, rtol=1e-4, atol=1e-5)
    assert done.run.title.startswith("clouds · head of mlp")


def test_a_head_is_the_same_each_time_and_another_one_with_another_seed(clouds, trained, store):
    first = train(head_run(clouds, trained), store=store, progress=False).tables["test"].scores
    np.testing.assert_array_equal(
        train(head_run(clouds, trained), store=store, progress=False, force=True).tables["test"].scores, first
    )
    other = train(head_run(clouds, trained, seed=1), store=store, progress=False).tables["test"].scores
    assert not np.array_equal(other, first)


def test_a_run_on_cached_features_equals_a_linear_run_on_them_but_for_the_standardising(clouds, store):
    whiten = nn.Sequential(nn.Flatten())
    done = train(Run(clouds, model=whiten, features="cached", epochs=2, device="cpu"), store=store, progress=False)
    plain = train(Run(clouds, model="linear", epochs=2, device="cpu"), store=store, progress=False)
    # A backbone of no weights: its features are the standardised inputs, which is what `linear` learns on.
    np.testing.assert_allclose(done.tables["test"].scores, plain.tables["test"].scores, rtol=1e-4, atol=1e-5)


def test_a_head_run_is_repeated_from_its_file(store):
    source = train(Run("digits", model="mlp", epochs=1, device="cpu"), store=store, progress=False)
    run = head_run(source.run.data, source, epochs=1)
    train(run, store=store, progress=False)
    again = TrainedRun.open(run.key, store).run
    assert (again.key, again.features) == (run.key, source.run.key)


def test_a_demo_run_lends_its_backbone(store):
    source = Store(DEMO).runs()[0]
    run = Run.from_json(source.record.run)
    one_of_each = np.unique(run.data.train.labels, return_index=True)[1]
    rows = {"train": one_of_each, "val": slice(10), "test": slice(300)}
    small = dataclasses.replace(run.data, key="", **{name: getattr(run.data, name).rows(rows[name]) for name in rows})
    cached = cache_features(small, TrainedRun(run, source), store=store)
    np.testing.assert_allclose(cached.test.inputs, source.tables["test"].features[:300], atol=0.01)


def test_wrong_backbones_are_refused_with_what_to_do(clouds, trained, store):
    with pytest.raises(ValueError, match=r"cnn comes with random weights.*give a trained run, efficientnet"):
        cache_features(clouds, "cnn", store=store)
    with pytest.raises(
        ValueError, match="device = 'gpu'; give auto, cpu, cuda, cuda:1, mps or another device of torch"
    ):
        cache_features(clouds, nn.Flatten(), store=store, device="gpu")
    with pytest.raises(ValueError, match="backbone = None; give a trained run, a Module, or the name"):
        cache_features(clouds, None, store=store)
    wide = Dataset.from_arrays(np.eye(60, 9), np.arange(60) % 6, name="wide")
    with pytest.raises(ValueError, match=r"trained on inputs of shape \(5,\), those of wide have \(9,\)"):
        cache_features(wide, trained, store=store)
    with pytest.raises(
        ValueError, match=r"whose model is 'mlp', and the run has model = 'linear'; give the run the same"
    ):
        train(head_run(clouds, trained, model="linear"), store=store)
    with pytest.raises(ValueError, match="no run has a key that starts with"):
        train(Run(clouds, model="mlp", features=64 * "0", device="cpu"), store=store)


def test_a_run_that_was_imported_lends_no_features_and_says_why(clouds, store, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    brought = keep_tables(LogitTable(9 * np.eye(4)), title="mine.npz", store=store).key
    words = "mine.npz was imported and not trained here: it has no network; give a trained run"
    with pytest.raises(ValueError, match=words):
        train(Run(clouds, model="mlp", features=brought, device="cpu"), store=store)
    with pytest.raises(ValueError, match=words):
        TRAIN.reads(["--dataset", "digits", "--features", brought])
    with pytest.raises(ValueError, match=words):
        TrainedRun.open(brought, store)
