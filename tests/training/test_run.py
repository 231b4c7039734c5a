"""A run is what decides its result: its key heeds all of that and nothing else."""

from __future__ import annotations

import dataclasses
import importlib
import json
import linecache
import re
import sys
import textwrap
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from small_runs import CLOUDS, clouds, small, tags, weights
from torch import nn

from workbench import losses
from workbench.datasets import LabelNoise, LongTail, load_dataset
from workbench.losses import CrossEntropy
from workbench.networks import BACKBONES
from workbench.training import Run, TrainedRun, train
from workbench.workers.client import head_of

pytestmark = pytest.mark.usefixtures("one_thread")


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
        {"micro_batches": 2},
        {"compile": True},
        {"channels_last": True},
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


def test_a_classifier_of_ones_own_is_trained_as_it_is_and_read_back(store):
    mine = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 6))
    trained = train(small(model=mine, learning_rate=1e-9), store=store, progress=False)
    assert weights(trained)["head.weight"].shape == (6, 4)
    np.testing.assert_allclose(weights(trained)["head.weight"], mine[2].weight.detach(), atol=1e-6)
    assert trained.tables["test"].features.shape == (CLOUDS.test.n, 4)
    scores = trained.model(torch.from_numpy(CLOUDS.test.inputs)).detach()
    np.testing.assert_allclose(scores, trained.tables["test"].scores, atol=1e-5)
    heads = {small(model=mine, head=head).key for head in ("auto", "new", "own")}
    assert len(heads) == 3
    assert small(head="new").key == small().key  # a built-in model has no head of its own


def test_the_head_of_a_classifier_learns_alone_on_what_its_last_layer_sees(store):
    mine = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 6))
    trained = train(small(model=mine, features="cached"), store=store, progress=False)
    np.testing.assert_array_equal(weights(trained)["backbone.0.weight"], mine[0].weight.detach())
    assert not np.allclose(weights(trained)["head.weight"], mine[2].weight.detach())


def test_a_new_head_in_the_app_keeps_what_was_said_of_the_model(store):
    run = Run("digits", model="workbench.networks.backbones:linear", head="new", epochs=1, device="cpu")
    assert head_of(train(run, store=store, progress=False).stored, CrossEntropy()).head == "new"
    assert head_of(store.runs()[-1], CrossEntropy()).head == "auto"  # a demo run of a built-in model


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
    again = Run.from_json(json.dumps({"title": run.title, **run.to_json()}))
    assert again.key == run.key
    assert again.loss == run.loss
    assert run.title == f"digits · linear · {run.loss!r} · seed 4"


@pytest.mark.parametrize("described", ["{}", "[]", {"title": "mine.npz", "imported": True}])
def test_a_file_that_describes_no_run_says_what_it_lacks(described):
    with pytest.raises(ValueError, match="this describes no run: it lacks dataset"):
        Run.from_json(described)


def test_a_description_that_leaves_a_field_out_means_its_default():
    run = Run("digits", model="linear")
    described = {name: value for name, value in run.to_json().items() if name not in ("nodes", "micro_batches")}
    assert Run.from_json(described).key == run.key


def test_a_run_is_described_by_json_and_made_again_from_it():
    run = Run("digits", model="linear", loss=losses.NoisedTopK(K=3), epochs=2, monitor=("val_loss", "val_accuracy"))
    described = json.loads(json.dumps(run.to_json()))
    again = Run.from_json({"format": 1, "run": described, "facts": {"title": "mine"}})
    assert (again.key, again.loss, again.monitor) == (run.key, run.loss, run.monitor)


def test_transforms_change_the_data_of_a_run_once_and_are_repeated_from_its_file(store):
    changes = (LongTail(10), LabelNoise(0.3))
    run = small(CLOUDS, transforms=changes)
    assert run.data.key == CLOUDS.transformed(*changes).key
    assert run.key == small(CLOUDS.transformed(*changes)).key != small(CLOUDS).key
    digits = Run("digits", model="linear", epochs=1, device="cpu", transforms=[LongTail(10)])
    trained = train(digits, store=store, progress=False)
    assert trained.stored.record.run["transforms"] == [LongTail(10).spec()]
    again = TrainedRun.open(digits.key, store).run
    assert (again.transforms, again.data.key, again.key) == ((LongTail(10),), digits.data.key, digits.key)
    assert again.data.class_counts.sum() < Run("digits", model="linear").data.class_counts.sum()


def test_transforms_of_the_dataset_and_of_the_run_are_told_apart():
    digits = load_dataset("digits").transformed(LongTail(10))
    run = Run(digits, model="linear", transforms=(LongTail(20),))
    again = Run.from_json({"title": run.title, **run.to_json()})
    assert (again.key, again.transforms, again.dataset.transforms) == (run.key, (LongTail(20),), (LongTail(10),))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "conv"}, f"no model named 'conv'; known: {', '.join(BACKBONES)}"),
        ({"epochs": -1}, r"epochs = -1 is outside \[0"),
        ({"epochs": 0}, r"epochs = 0 evaluates a network as it is, and the head of \w+ would be new"),
        ({"batch_size": 0}, "batch_size = 0"),
        ({"learning_rate": 0.0}, "learning_rate = 0.0"),
        ({"weight_decay": -1.0}, "weight_decay = -1.0"),
        ({"optimizer": "lbfgs"}, "optimizer = 'lbfgs'.*adamw, adam, sgd"),
        ({"schedule": "step"}, "schedule = 'step'.*cosine, constant"),
        ({"seed": -1}, "seed = -1"),
        ({"precision": "16"}, "precision = '16'.*32, bf16"),
        ({"precision": "half"}, "precision = 'half'.*32, bf16, fp16"),
        ({"device": "tpu"}, "device = 'tpu'.*auto, cpu, cuda"),
        ({"device": "cuda:one"}, "device = 'cuda:one'; give .* a GPU by its number such as cuda:1"),
        ({"device": "cuda:1", "devices": 2}, "device = 'cuda:1' is a single place, but devices = 2"),
        ({"device": "mps", "nodes": 2}, "device = 'mps' is a single place, but devices = 1 and nodes = 2"),
        ({"monitor": "test_accuracy"}, "monitor = 'test_accuracy'.*val_loss, val_accuracy, val_average_K_accuracy"),
        ({"monitor": ["val_lost"]}, "monitor = 'val_lost'.*val_loss, val_accuracy"),
        ({"milestones": (0.75, 0.5)}, r"milestones = \(0.75, 0.5\); give rising shares"),
        ({"milestones": 0.5}, "milestones = 0.5; give rising shares"),
        ({"milestones": ("half",)}, "milestones = .*; give rising shares"),
        ({"patience": 3}, "patience needs a monitor"),
        ({"monitor": "val_loss", "patience": 0}, "patience = 0; give a whole number ≥ 1, of epochs, or None"),
        ({"monitor": "val_loss", "patience": True}, "patience = True; give a whole number"),
        ({"monitor": "val_loss", "patience": 1.5}, "patience = 1.5; give a whole number"),
        ({"features": "cached", "model": "mlp"}, "mlp comes with random weights.*give a trained run"),
        ({"head": "both"}, "head = 'both'.*auto, new, own"),
        ({"head": "own"}, "head = 'own', but linear returns features and no scores; leave head out"),
        ({"head": "own", "model": nn.Linear(5, 6), "features": "cached"}, "head = 'own' with features"),
        ({"features": "abc"}, "features = 'abc'; give a trained run, the 64 digits of its key, or 'cached'"),
    ],
)
def test_a_wrong_field_is_refused_with_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message):
        small(**fields)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": 3}, f"model = 3; give {', '.join(BACKBONES)}"),
        ({"dataset": None}, "dataset = None; give a name, a path or a Dataset"),
        ({"loss": CrossEntropy}, "with the brackets"),
        ({"transforms": LongTail(10)}, r"transforms = LongTail\(.*give a tuple of some of LabelNoise\(\), LongTail"),
        ({"transforms": ("LongTail",)}, "transforms = .*give a tuple"),
    ],
)
def test_a_field_of_another_type_is_a_type_error(fields, message):
    with pytest.raises(TypeError, match=message):
        small(**fields)


def test_what_is_no_run_and_what_is_no_store_are_refused(tmp_path):
    with pytest.raises(TypeError, match=r"train takes a Run, such as Run\(.* and not 'letters'"):
        train("letters")
    with pytest.raises(TypeError, match=r"store = 'runs'; give a Store, Store\('path/to/runs'\)"):
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
