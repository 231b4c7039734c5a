"""A run is trained once, resumes where it was killed, and gives the same bits each time."""

from __future__ import annotations

import dataclasses
import errno
import importlib
import json
import linecache
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
from torch import nn

from workbench import fitting, hardware, learning, losses
from workbench.datasets import Dataset, LabelNoise, LongTail, load_dataset
from workbench.losses import CrossEntropy, Loss
from workbench.store import Store
from workbench.training import Cancelled, Run, TrainedRun, train

pytestmark = pytest.mark.usefixtures("one_thread")


def clouds(n: int = 400, n_classes: int = 6, seed: int = 0, spread: float = 1.0) -> Dataset:
    """Rows around one centre per class."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    rows = 2 * rng.normal(size=(n_classes, 5))[labels] + spread * rng.normal(size=(n, 5))
    return Dataset.from_arrays(rows, labels, name="clouds", groups=[f"group {j // 2}" for j in range(n_classes)])


def stripes(n: int = 120) -> Dataset:
    """Small photographs whose class is the place of a bright stripe."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 3
    images = rng.integers(0, 60, (n, 28, 28, 3), dtype=np.uint8)
    for image, label in zip(images, labels, strict=True):
        image[8 * label : 8 * label + 8] += 150
    return Dataset.from_arrays(images, labels, name="stripes")


def tags(n: int = 300, n_classes: int = 4) -> Dataset:
    """Rows with no label, one or several: class j is there when column j is positive."""
    rows = np.random.default_rng(0).normal(size=(n, n_classes))
    return Dataset.from_arrays(rows, rows > 0.3, name="tags")


CLOUDS = clouds()


def small(dataset: Dataset = CLOUDS, **fields) -> Run:
    return Run(dataset, **{"model": "linear", "epochs": 3, "batch_size": 64, "device": "cpu", **fields})


def weights(trained: TrainedRun) -> dict[str, np.ndarray]:
    return safetensors.numpy.load_file(trained.path / "weights.safetensors")


def assert_same_weights(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> None:
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_array_equal(value, second[name], err_msg=name)


# What a run is


def test_the_key_ignores_where_a_run_is_trained_and_heeds_everything_else():
    run = small()
    assert re.fullmatch("[0-9a-f]{64}", run.key)
    for where in ({"device": "auto"}, {"devices": 4}, {"nodes": 2}):
        assert dataclasses.replace(run, **where).key == run.key
    changes = [
        {"dataset": clouds(seed=1)},
        {"model": "mlp"},
        {"loss": losses.class_named("BinaryCrossEntropy")()},
        {"epochs": 4},
        {"batch_size": 32},
        {"optimizer": "sgd"},
        {"learning_rate": 0.1},
        {"schedule": "constant"},
        {"weight_decay": 0.0},
        {"seed": 1},
        {"monitor": "val_loss"},
        {"monitor": "val_loss", "patience": 2},
        {"precision": "bf16"},
        {"features": "cached"},
        {"features": 64 * "0"},
        {"accumulate": 2},
    ]
    keys = {dataclasses.replace(run, **change).key for change in changes}
    assert len(keys | {run.key}) == len(changes) + 1


def test_the_key_of_a_named_dataset_is_that_of_its_content():
    assert Run("digits", model="linear").key == Run(load_dataset("digits"), model="linear").key
    assert Run("digits", model="linear").key != Run(load_dataset("digits", seed=1), model="linear").key


def test_the_key_of_a_module_is_that_of_its_weights():
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 3))
    first = small(model=module).key
    assert small(model=module).key == first
    with torch.no_grad():
        module[1].weight.add_(1)
    assert small(model=module).key != first


class Sideways(nn.Module):
    """A linear map whose matrix lies column by column in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(5, 3).t())

    def forward(self, inputs):
        return inputs @ self.matrix.t()


def test_weights_that_do_not_lie_row_by_row_are_kept_as_they_are(store):
    module = Sideways()
    trained = train(small(model=module, learning_rate=1e-9), store=store, progress=False)
    assert not module.matrix.is_contiguous()
    np.testing.assert_allclose(weights(trained)["backbone.matrix"], np.eye(3, 5), atol=1e-6)
    np.testing.assert_allclose(trained.model.backbone.matrix.detach(), np.eye(3, 5), atol=1e-6)


def test_a_module_whose_weights_have_no_shape_yet_is_refused():
    with pytest.raises(ValueError, match=r"LazyLinear.* has weights without a shape yet; send some inputs through it"):
        small(model=nn.LazyLinear(5))


def test_an_edited_loss_of_ones_own_is_a_new_run(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    source = """
        from dataclasses import dataclass
        from workbench.losses import CrossEntropy

        @dataclass(frozen=True)
        class Mine(CrossEntropy):
            def values(self, scores, labels, **_):
                return {factor} * super().values(scores, labels)
        """
    keys = []
    for factor in (1, 2):
        (tmp_path / "edited_losses.py").write_text(textwrap.dedent(source.format(factor=factor)))
        sys.modules.pop("edited_losses", None)
        importlib.invalidate_caches()
        linecache.checkcache()
        keys.append(small(loss=losses.class_named("edited_losses:Mine")()).key)
    assert keys[0] != keys[1]


def test_a_run_is_described_by_its_file_and_read_back():
    run = Run(
        "digits", model="linear", loss=losses.class_named("NoisedTopK")(K=3), epochs=2, seed=4, monitor="val_loss"
    )
    again = Run.from_json(json.dumps({"title": run.title, **run.described()}))
    assert again.key == run.key
    assert again.loss == run.loss
    assert run.title == f"digits · linear · {run.loss!r} · seed 4"


@pytest.mark.parametrize("described", ["{}", "[]", {"title": "mine.npz", "imported": True}])
def test_a_file_that_describes_no_run_says_what_it_lacks(described):
    with pytest.raises(ValueError, match="this describes no run, for it lacks dataset, dataset_key, model, loss"):
        Run.from_json(described)


def test_a_file_written_before_ranks_and_pieces_is_read_back_to_the_same_key():
    run = Run("digits", model="linear")
    described = {name: value for name, value in run.described().items() if name not in ("nodes", "accumulate")}
    assert Run.from_json({"title": run.title, **described}).key == run.key


def test_transforms_change_the_data_of_a_run_once_and_are_repeated_from_its_file(store):
    changes = (LongTail(10), LabelNoise(0.3))
    run = small(CLOUDS, transforms=changes)
    assert run.data.key == CLOUDS.transformed(*changes).key
    assert run.key == small(CLOUDS.transformed(*changes)).key != small(CLOUDS).key
    digits = Run("digits", model="linear", epochs=1, device="cpu", transforms=[LongTail(10)])
    trained = train(digits, store=store, progress=False)
    assert trained.stored.info["transforms"] == [LongTail(10).spec()]
    again = TrainedRun.open(digits.key, store).run
    assert (again.transforms, again.data.key, again.key) == ((LongTail(10),), digits.data.key, digits.key)
    assert again.data.class_counts.sum() < Run("digits", model="linear").data.class_counts.sum()


def test_transforms_of_the_dataset_and_of_the_run_are_told_apart():
    digits = load_dataset("digits").transformed(LongTail(10))
    run = Run(digits, model="linear", transforms=(LongTail(20),))
    again = Run.from_json({"title": run.title, **run.described()})
    assert (again.key, again.transforms, again.dataset.key) == (run.key, (LongTail(20),), digits.key)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"transforms": LongTail(10)}, r"transforms = LongTail\(.*give a tuple of some of LabelNoise\(\), LongTail"),
        ({"transforms": ("LongTail",)}, "transforms = .*give a tuple"),
        ({"model": "conv"}, "no model named 'conv'; known: linear, mlp, cnn, resnet18-small"),
        ({"model": 3}, "model = 3; give linear, mlp, cnn"),
        ({"dataset": None}, "dataset = None; give a name, a path or a Dataset"),
        ({"loss": CrossEntropy}, "with the brackets"),
        ({"epochs": 0}, r"epochs = 0 is outside \[1"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0"),
        ({"optimizer": "lbfgs"}, "optimizer = 'lbfgs'.*adamw, adam, sgd"),
        ({"schedule": "step"}, "schedule = 'step'.*cosine, constant"),
        ({"seed": -1}, "seed = -1"),
        ({"precision": "16"}, "precision = '16'.*32, bf16"),
        ({"device": "tpu"}, "device = 'tpu'.*auto, cpu, cuda"),
        ({"monitor": "test_accuracy"}, "monitor = 'test_accuracy'.*val_loss, val_accuracy, val_average_K_accuracy"),
        ({"monitor": ["val_loss"]}, r"monitor = \['val_loss'\].*val_loss, val_accuracy"),
        ({"drops": (0.75, 0.5)}, r"drops = \(0.75, 0.5\); give rising shares"),
        ({"drops": 0.5}, "drops = 0.5; give rising shares"),
        ({"drops": ("half",)}, "drops = .*; give rising shares"),
        ({"patience": 3}, "patience needs a monitor"),
        ({"monitor": "val_loss", "patience": 0}, "patience = 0"),
        ({"features": "cached", "model": "mlp"}, "mlp comes with random weights.*give a trained run"),
        ({"features": "abc"}, "features = 'abc'; give a trained run, the 64 digits of its key, or 'cached'"),
    ],
)
def test_a_wrong_field_is_refused_with_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message):
        small(**fields)


def test_what_is_no_run_and_what_is_no_store_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"train takes a Run, such as Run\(.* and not 'letters'"):
        train("letters")
    with pytest.raises(ValueError, match=r"store = 'runs'; give a Store, Store\('path/to/runs'\)"):
        train(small(), store="runs")


def test_a_loss_without_gradient_is_refused():
    @dataclass(frozen=True)
    class Step(CrossEntropy):
        trains = False

    with pytest.raises(ValueError, match="zero gradient"):
        small(loss=Step())


def test_an_unknown_dataset_lists_the_known_ones(store):
    with pytest.raises(ValueError, match=r"there is no dataset 'gardn'.* garden, meadow, letters, digits"):
        train(Run("gardn", model="linear"), store=store)


def test_a_one_label_loss_refuses_rows_with_many_labels(store):
    with pytest.raises(ValueError, match="tags has rows with several labels or none, and NoisedTopK reads one label"):
        train(small(tags(), loss=losses.class_named("NoisedTopK")(K=2)), store=store)


# What training gives


def test_training_gives_tables_with_all_that_is_known_of_the_rows(store):
    trained = train(small(model="mlp", epochs=5), store=store, progress=False)
    assert set(trained.tables) == {"val", "test"}
    test = trained.tables["test"]
    assert (test.n, test.n_classes, test.link) == (CLOUDS.test.n, 6, "softmax")
    np.testing.assert_array_equal(test.labels, CLOUDS.test.labels)
    np.testing.assert_array_equal(test.class_counts, CLOUDS.class_counts)
    assert (test.class_names, test.groups) == (CLOUDS.class_names, CLOUDS.groups)
    assert test.features.shape == (test.n, 256)
    assert not test.chose_model
    assert np.mean(test.scores.argmax(1) == test.labels) > 0.5  # chance is 1/6


def test_the_history_has_one_row_per_epoch_and_gets_better(store):
    history = train(small(epochs=6), store=store, progress=False).history
    losses_and_sets = ["epoch", "train_loss", "val_loss", "val_accuracy", "val_average_K_accuracy", "val_mean_size"]
    assert list(history.columns) == [*losses_and_sets, "val_log_normaliser", "nonzero_gradients", "seconds"]
    assert history["epoch"].tolist() == list(range(6))
    assert history["train_loss"].iloc[-1] < history["train_loss"].iloc[0]
    assert (history["val_average_K_accuracy"] >= history["val_accuracy"]).all()  # sets of 5 of 6 classes


@pytest.mark.parametrize("loss", [losses.NoisedTopK(K=2), losses.AverageKTwoHead(K=2.0)], ids=repr)
def test_the_last_row_of_the_history_is_what_the_library_says_of_the_val_table(store, loss):
    from workbench.sets import AverageK, TopK

    trained = train(small(loss=loss), store=store, progress=False)
    val, last = trained.tables["val"], trained.history.iloc[-1]
    assert last["val_accuracy"] == pytest.approx(TopK(1).fit(val)(val).hits.mean())
    assert last["val_average_K_accuracy"] == pytest.approx(AverageK(2).fit(val)(val).hits.mean())
    assert last["val_mean_size"] == pytest.approx(AverageK(2).fit(val)(val).sizes.mean())


def test_the_history_counts_the_scores_that_the_loss_pulls_at(store):
    def pulled(loss: Loss) -> np.ndarray:
        return train(small(loss=loss, epochs=2), store=store, progress=False).history["nonzero_gradients"].to_numpy()

    assert (pulled(CrossEntropy()) == 6).all()  # every class of every row
    assert (pulled(losses.AverageKTwoHead(K=2)) > 6).all()  # of two heads
    hinge = pulled(losses.TopKHinge(K=2))
    assert (hinge <= 2).all()  # the label's score and the K-th largest of the others, or none
    assert (hinge > 0).all()
    assert (pulled(losses.NoisedTopK(K=2, epsilon=0.2)) < 6).all()
    assert (pulled(losses.ExactNoisedTopK(K=2, epsilon=1e-3)) < 2.5).all()  # what rounding leaves is no pull


def test_the_history_of_quasibinary_has_its_constant_beside_the_softmax_normaliser(store):
    trained = train(small(loss=losses.Quasibinary()), store=store, progress=False)
    val, last = trained.tables["val"], trained.history.iloc[-1]
    assert last["log_C"] == pytest.approx(val.link_constant, rel=1e-6)
    assert last["val_log_normaliser"] == pytest.approx(np.log(np.exp(val.scores).sum(1)).mean(), rel=1e-5)
    history = train(small(loss=losses.BinaryCrossEntropy()), store=store, progress=False).history
    assert not {"log_C", "val_log_normaliser"} & set(history.columns)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_out_of_memory_names_the_batch_size_and_the_precision(store, monkeypatch, error):
    def refuses(*_):
        raise error

    monkeypatch.setattr(learning.Learner, "learn", refuses)
    with pytest.raises(
        MemoryError, match=r"batch_size = 64 and precision = '32': try batch_size=32 or precision='bf16'"
    ):
        train(small(), store=store, progress=False)


@pytest.mark.parametrize("fields", [{"batch_size": 1}, {"batch_size": 4, "accumulate": 4}])
def test_a_single_row_for_batch_normalisation_names_the_batch_size_and_the_pieces(store, fields):
    module = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    with pytest.raises(
        ValueError, match=r"two rows or more .*batch_size = \d with accumulate = \d leaves a single one"
    ):
        train(small(model=module, **fields), store=store, progress=False)
    assert list(store.root.glob("[!.]*")) == []


def test_other_errors_of_a_step_are_not_taken_for_a_lack_of_memory(store, monkeypatch):
    def refuses(*_):
        raise RuntimeError("shapes cannot be multiplied")

    monkeypatch.setattr(learning.Learner, "learn", refuses)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        train(small(), store=store, progress=False)


def test_the_model_is_rebuilt_from_its_weights_and_repeats_the_scores(store):
    run = small(model="mlp")
    train(run, store=store, progress=False)
    model = TrainedRun(run, store.open(run.key)).model
    with torch.no_grad():
        scores = model(torch.from_numpy(CLOUDS.test.inputs)).numpy()
    np.testing.assert_array_equal(scores, store.open(run.key).tables["test"].scores)


def test_the_run_file_says_what_is_needed_to_repeat_the_run(store):
    trained = train(Run("digits", model="linear", epochs=1, device="cpu"), store=store, progress=False)
    info = json.loads((trained.path / "run.json").read_text())
    assert info["dataset"] == {"name": "digits", "knobs": {"seed": 0}}
    assert info["loss"] == {"loss": "workbench.losses.baselines:CrossEntropy", "knobs": {}}
    assert info["repeatable"] is True
    assert info["versions"]["torch"] == torch.__version__
    reopened = TrainedRun.open(trained.run.key[:10], store)
    assert reopened.run.key == trained.run.key
    assert reopened.model.training is False


def test_a_run_of_arrays_says_that_its_file_alone_cannot_repeat_it(store):
    trained = train(small(epochs=1), store=store, progress=False)
    assert trained.stored.info["repeatable"] is False
    with pytest.raises(ValueError, match="cannot be repeated from its file alone: its dataset was given as arrays"):
        TrainedRun.open(trained.run.key, store)


def test_photographs_and_rows_take_the_same_path(store):
    trained = train(
        small(stripes(), model="cnn", epochs=4, batch_size=16, learning_rate=5e-3), store=store, progress=False
    )
    test = trained.tables["test"]
    assert np.mean(test.scores.argmax(1) == test.labels) == 1


def test_data_that_cannot_be_written_to_are_trained_on_without_a_word(store):
    data = clouds(seed=2)
    for split in (data.train, data.val, data.test):
        split.inputs.flags.writeable = split.labels.flags.writeable = False
    torch.set_warn_always(True)  # not only the first time in a process
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".*not writable")
            with pytest.raises(UserWarning, match="not writable"):
                torch.from_numpy(data.val.labels)
            train(small(data), store=store, progress=False)
    finally:
        torch.set_warn_always(False)


def test_a_module_of_the_user_trains_and_stays_as_it_was(store):
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 3), nn.Dropout(0.5))
    before = module[1].weight.clone()
    run = small(model=module)
    trained = train(run, store=store, progress=False)
    assert torch.equal(module[1].weight, before)
    assert trained.stored.info["repeatable"] is False
    assert not np.array_equal(trained.model.backbone[1].weight.detach().numpy(), before.detach().numpy())


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_every_optimizer_learns(store, optimizer):
    rate = {"adam": 0.01, "sgd": 0.05}[optimizer]
    run = small(optimizer=optimizer, schedule="constant", learning_rate=rate, epochs=8)
    trained = train(run, store=store, progress=False)
    assert trained.history["val_accuracy"].iloc[-1] > 0.5


def test_bf16_trains_and_gives_float32_scores(tmp_path):
    # On its own, because a processor that announces AMX and refuses it must be told before torch is loaded.
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from test_training import Store, small, train
        trained = train(small(model="mlp", precision="bf16"), store=Store({str(tmp_path)!r}), progress=False)
        assert trained.tables["test"].scores.dtype == "float32"
        assert trained.history["train_loss"].is_monotonic_decreasing
        """
    environment = os.environ | {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, env=environment)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        ("raise RuntimeError('could not create a primitive')", "RuntimeError: could not create a primitive"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "SIGILL"),
    ],
)
def test_a_processor_that_refuses_bf16_is_an_error_that_says_what_to_do(store, monkeypatch, refusal, words):
    monkeypatch.setattr(hardware, "BF16_PRODUCT", refusal)
    with pytest.raises(ValueError, match=rf"'bf16' does not work .*\({words}\); use precision='32'"):
        train(small(precision="bf16"), store=store, progress=False)


# Heads and states


@dataclass(frozen=True)
class Margin(CrossEntropy):
    """A loss on cosines, whose margins come from the class counts."""

    head = "cosine"
    scale = 8.0
    margins: tuple[float, ...] = ()

    def for_classes(self, class_counts):
        return dataclasses.replace(self, margins=tuple(np.asarray(class_counts) ** -0.25))

    def values(self, scores, labels, **_):
        margins = torch.tensor(self.margins)[labels]
        shifted = scores.scatter_add(1, labels[:, None], -margins[:, None].to(scores))
        return super().values(self.scale * shifted, labels)


def test_a_cosine_head_is_trained_with_the_counts_and_its_table_holds_scaled_cosines(store):
    run = small(loss=Margin(), epochs=10, learning_rate=0.05)
    trained = train(run, store=store, progress=False)
    scores = trained.tables["test"].scores
    assert 1 < np.abs(scores).max() <= 8.001
    assert np.mean(scores.argmax(1) == CLOUDS.test.labels) > 0.5
    assert run.loss.margins == ()  # the run keeps the loss as it was given


def test_two_heads_give_tables_of_predictions_and_of_candidates(store):
    loss = losses.class_named("AverageKTwoHead")(K=2.0)
    trained = train(small(loss=loss, epochs=8, learning_rate=0.05), store=store, progress=False)
    assert set(trained.tables) == {"val", "val/candidates", "test", "test/candidates"}
    predicting, candidates = trained.tables["test"], trained.tables["test/candidates"]
    assert not np.array_equal(predicting.scores, candidates.scores)
    for table in (predicting, candidates):
        assert table.link == "softmax"
        assert np.mean(table.scores.argmax(1) == CLOUDS.test.labels) > 0.5
    with torch.no_grad():
        scores = trained.model(torch.from_numpy(CLOUDS.test.inputs)).numpy()
    np.testing.assert_array_equal(scores[:, 0], predicting.scores)
    np.testing.assert_array_equal(scores[:, 1], candidates.scores)


def test_quasibinary_keeps_its_constant_in_the_weights_and_in_the_table(store):
    loss = losses.class_named("Quasibinary")()
    trained = train(small(tags(), loss=loss, epochs=5, learning_rate=0.05), store=store, progress=False)
    test = trained.tables["test"]
    assert test.link == "quasibinary"
    assert test.link_constant == pytest.approx(float(weights(trained)["loss_state.log_C"]))
    assert np.isfinite(test.link_constant)
    right = np.take_along_axis(test.labels, test.scores.argmax(1)[:, None], 1)[:, 0]
    assert right[test.labels.any(1)].mean() > 0.8


def test_the_estimates_of_a_loss_are_trained_faster_and_saved(store):
    loss = losses.class_named("ROLE")(K=2.0)
    trained = train(small(loss=loss), store=store, progress=False)
    estimates = weights(trained)["loss_state.estimates"]
    start = loss.state(CLOUDS.train.n, 6).estimates.detach().numpy()
    assert estimates.shape == start.shape
    assert np.abs(estimates - start).max() > 0.01
    assert trained.model(torch.from_numpy(CLOUDS.test.inputs)).shape == (CLOUDS.test.n, 6)


def test_a_loss_of_many_labels_reads_a_single_label_as_a_set_of_one(store):
    loss = losses.class_named("BinaryCrossEntropy")()
    trained = train(small(loss=loss, epochs=8, learning_rate=0.05), store=store, progress=False)
    assert trained.history["val_accuracy"].iloc[-1] > 0.5


# Once, and the same each time


def test_the_same_run_is_never_trained_twice(store, monkeypatch):
    first = train(small(), store=store, progress=False)
    monkeypatch.setattr(fitting, "fit", lambda *_, **__: pytest.fail("trained again"))
    second = train(small(), store=store, progress=False)
    assert second.path == first.path


def test_again_trains_anew_and_gives_the_same_bits(store, tmp_path):
    first = train(small(model="mlp"), store=store, progress=False)
    scores, before = np.array(first.tables["test"].scores), weights(first)
    made = (first.path / "run.json").stat().st_ino
    again = train(small(model="mlp"), store=store, progress=False, again=True)
    assert (again.path / "run.json").stat().st_ino != made
    np.testing.assert_array_equal(again.tables["test"].scores, scores)
    assert_same_weights(weights(again), before)


def test_another_seed_gives_other_weights(store):
    first, second = (train(small(seed=seed), store=store, progress=False) for seed in (0, 1))
    assert not np.array_equal(weights(first)["head.weight"], weights(second)["head.weight"])


def test_training_neither_reads_nor_changes_the_global_generators(store):
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 8), nn.Dropout(0.5))
    runs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  (the global generator is what this is about)
        state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
        loss = losses.class_named("NoisedTopK")(K=2)
        runs.append(train(small(model=module, loss=loss), store=store, progress=False, again=True))
        assert torch.equal(torch.random.get_rng_state(), state)
        np.testing.assert_array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
        runs[-1] = weights(runs[-1])
    assert_same_weights(*runs)


def test_training_prints_nothing_and_litters_nothing(store, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    train(small(), store=store, progress=False)
    assert capfd.readouterr() == ("", "")
    assert [path.name for path in tmp_path.iterdir()] == ["runs"]
    assert sorted(path.name for path in store.root.iterdir()) == [".unfinished", small().key]
    assert list((store.root / ".unfinished").iterdir()) == []


def test_the_progress_bar_names_the_run_and_its_accuracy(store, capfd):
    train(small(), store=store, progress=True)
    shown = capfd.readouterr().err
    assert "clouds · linear · CrossEntropy()" in shown
    assert "val_accuracy=" in shown


# Early stopping


def test_early_stopping_keeps_the_weights_of_the_best_epoch(store):
    noisy = clouds(n=240, spread=4.0)
    run = small(noisy, model="mlp", epochs=40, learning_rate=0.01, monitor="val_loss", patience=3, batch_size=32)
    trained = train(run, store=store, progress=False)
    history = trained.history
    best = int(history["val_loss"].idxmin())
    assert best < len(history) - 1 < 39  # it stopped, and later epochs were worse
    assert len(history) == best + 1 + 3
    assert trained.stored.info["kept_epoch"] == best
    with torch.no_grad():
        loss = CrossEntropy()(
            torch.from_numpy(np.array(trained.tables["val"].scores)), torch.from_numpy(noisy.val.labels)
        )
    assert loss.mean().item() == pytest.approx(history["val_loss"].min(), rel=1e-5)


def test_a_monitor_that_should_rise_keeps_its_largest_value():
    history = [{"val_accuracy": value} for value in (0.1, 0.5, 0.5, 0.4)]
    run = small(epochs=9, monitor="val_accuracy", patience=2)
    assert run.best_epoch(history) == 1
    assert [run.finished(history[:n]) for n in range(5)] == [False, False, False, False, True]


def test_val_says_that_it_chose_the_model(store):
    trained = train(small(monitor="val_loss"), store=store, progress=False)
    assert trained.tables["val"].chose_model
    assert not trained.tables["test"].chose_model


# Interrupted


def started(work: Callable[[], object]) -> multiprocessing.Process:
    """Another process that does the work: a fork, so that it need not import Lightning again."""
    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    return process


def interrupted_run(accumulate: int = 1) -> Run:
    """Dropout, noise, momentum, a cosine schedule and a monitor: all that a careless resume would get wrong."""
    module = nn.Sequential(nn.Flatten(), nn.Linear(5, 8), nn.Dropout(0.5))
    with torch.no_grad():
        module[1].weight.copy_(torch.linspace(-1, 1, 40).view(8, 5))
        module[1].bias.zero_()
    loss = losses.class_named("NoisedTopK")(K=2)
    return small(model=module, loss=loss, epochs=8, monitor="val_accuracy", learning_rate=0.01, accumulate=accumulate)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_killed_run_resumes_and_ends_with_the_same_bits(tmp_path, monkeypatch, accumulate):
    uninterrupted = train(interrupted_run(accumulate), store=Store(tmp_path / "elsewhere"), progress=False)
    store, run = Store(tmp_path / "runs"), interrupted_run(accumulate)
    hanging = multiprocessing.get_context("fork").Event()
    step = learning.Learner.learn

    def hang_in_the_fourth_epoch(self, batch, batch_idx):
        if self.epoch == 3 and batch_idx == 2:
            hanging.set()
            time.sleep(60)
        step(self, batch, batch_idx)

    with monkeypatch.context() as patch:
        patch.setattr(learning, "CHECKPOINT_SECONDS", 0)
        patch.setattr(learning.Learner, "learn", hang_in_the_fourth_epoch)
        process = started(lambda: train(run, store=store, progress=False))
    assert hanging.wait(60)
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

    def interrupted(self, batch, batch_idx):
        if self.epoch == 2:
            raise KeyboardInterrupt
        step(self, batch, batch_idx)

    handler = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        patch.setattr(learning.Learner, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt, match="stopped in epoch 3 of 4; the same call starts anew"):
            train(small(epochs=4), store=store, progress=False)
        patch.setattr(learning, "CHECKPOINT_SECONDS", 0)
        with pytest.raises(KeyboardInterrupt, match="stopped in epoch 3 of 4; the same call goes on"):
            train(small(epochs=4), store=store, progress=False)
    assert signal.getsignal(signal.SIGINT) is handler
    assert store.unfinished(small(epochs=4).key).is_file()
    assert len(train(small(epochs=4), store=store, progress=False).history) == 4


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
        meet.wait(60)
        device = fit(learner, progress=progress)
        meet.wait(60)
        return device

    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    monkeypatch.setattr(fitting, "fit", fit_together)
    processes = [started(lambda: train(run, store=store, progress=False)) for _ in range(2)]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    assert store.open(run.key).tables["test"].n == CLOUDS.test.n
    assert sorted(path.name for path in store.root.iterdir()) == [".unfinished", run.key]


def test_a_checkpoint_that_cannot_be_read_is_left_and_training_starts_anew(store):
    run = small()
    checkpoint = store.unfinished(run.key)
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"not a checkpoint")
    with pytest.warns(UserWarning, match=r"cannot be read .*: training starts anew"):
        trained = train(run, store=store, progress=False)
    assert len(trained.history) == 3


# What can go wrong


@dataclass(frozen=True)
class Exploding(Loss):
    """NaN from the third batch on, in training."""

    title = "Exploding"

    def values(self, scores, labels, **_):
        return scores.sum(-1) * (torch.nan if scores.requires_grad and scores.mean() < 0 else 1.0)


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
    ended = learning.Learner.on_train_epoch_end

    def remember(self):
        ended(self)
        epochs.append({name: value.numpy() for name, value in self.weights().items()})

    with monkeypatch.context() as patch:
        patch.setattr(learning.Learner, "learn", explode)
        patch.setattr(learning.Learner, "on_train_epoch_end", remember)
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
    monkeypatch.setattr(fitting, "fit", lambda *_, **__: pytest.fail("trained first"))
    with pytest.raises(PermissionError, match=r"runs cannot be written to .*file"):
        train(small(), store=Store(tmp_path / "file"), progress=False)


def test_a_full_disk_during_a_checkpoint_says_so_and_leaves_nothing_half_written(store, monkeypatch):
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)

    def full(content, file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(learning.torch, "save", full)
    with pytest.raises(OSError, match="is full: free some space"):
        train(small(), store=store, progress=False)
    assert [path for path in store.root.rglob("*") if path.is_file()] == []


def test_a_gpu_that_is_not_there_is_an_error_that_says_so(store, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="device = 'cuda', but torch sees no GPU"):
        train(small(device="cuda"), store=store, progress=False)


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


def test_a_stored_run_is_read_without_lightning(store):
    train(Run("digits", model="linear", epochs=1, device="cpu"), store=store, progress=False)
    code = f"""
        import sys, time
        from workbench.training import Run, train
        from workbench.store import Store
        run = Run("digits", model="linear", epochs=1)
        assert train(run, store=Store({str(store.root)!r})).tables["test"].n > 0
        assert "lightning" not in sys.modules
        """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


class NotingThreads(nn.Module):
    """A linear map that notes how many threads its forward passes could use."""

    noted: ClassVar[set[int]] = set()

    def __init__(self, width: int) -> None:
        super().__init__()
        self.map = nn.Linear(5, width)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if self.training:
            self.noted.add(torch.get_num_threads())
        return self.map(inputs)


@pytest.mark.parametrize(("width", "threads"), [(8, {1}), (200_000, {2})])
def test_small_steps_train_on_one_thread_and_give_the_others_back(store, width, threads):
    NotingThreads.noted.clear()
    torch.set_num_threads(2)
    try:
        train(small(model=NotingThreads(width), epochs=1, batch_size=16), store=store)
        assert NotingThreads.noted == threads
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
