"""Every recipe is a run that takes a step, and says where it comes from."""

from __future__ import annotations

import enum
import re
import sys
import types

import numpy as np
import pytest

from workbench.datasets import Dataset
from workbench.losses import CrossEntropy, Focal
from workbench.losses.base import PAPERS
from workbench.runs.monitors import monitors_named
from workbench.runs.recipes import RECIPES
from workbench.schedules import LEARNING_RATES
from workbench.training import Run, train
from workbench.training.sweeps import sweep

pytestmark = pytest.mark.usefixtures("one_thread")


def photographs(side: int = 32, n_classes: int = 2, of_a_class: int = 6) -> Dataset:
    """Few photographs, so that an epoch is one step."""
    n = of_a_class * n_classes
    images = np.random.default_rng(0).integers(0, 256, (n, side, side, 3), dtype=np.uint8)
    groups = [f"group {j // 5}" for j in range(n_classes)]
    return Dataset.from_arrays(images, np.arange(n) % n_classes, name="photographs", groups=groups)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_takes_a_step(name, store):
    n_classes = 1 + max([1, *(int(each.K) for each in monitors_named(RECIPES[name].settings.get("monitor")))])
    data, extra = photographs(side=16, n_classes=n_classes, of_a_class=max(4, 12 // n_classes)), {}
    if "model" not in RECIPES[name].settings:  # that is to be chosen: here one that is trained already
        backbone = train(Run(data, model="mlp", epochs=1, device="cpu"), store=store, progress=False)
        extra = {"model": "mlp", "features": backbone}
    run = RECIPES[name].run(data, epochs=1, device="cpu", **extra)
    done = train(run, store=store, progress=False)
    assert np.isfinite(done.history["train_loss"]).all()
    assert done.tables["test"].scores.shape == (data.test.n, n_classes)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_keeps_its_settings_and_says_where_they_are_from(name):
    recipe = RECIPES[name]
    changes = {"seed": 3} | ({} if "model" in recipe.settings else {"model": "linear"})
    run = recipe.run(photographs(), **changes)
    assert run.seed == 3
    assert {field: getattr(run, field) for field in recipe.settings} == dict(recipe.settings)
    assert recipe.note
    if not name.startswith("quick-"):
        assert set(recipe.paper.split("; ")) <= set(PAPERS)
        assert recipe.place


@pytest.fixture
def torchvision(monkeypatch):
    """A stand-in that knows the names of all networks and makes none of them."""
    models = types.ModuleType("torchvision.models")
    grids = [each.get("model", "") for recipe in RECIPES.values() for each in recipe.grid]
    named = {model.split(":")[1] for model in grids if model.startswith("torchvision:")}
    models.list_models = lambda module: sorted(named)
    models.get_model_weights = lambda name: enum.Enum("Weights", ["IMAGENET1K_V1"])
    package = types.ModuleType("torchvision")
    package.models = models
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)


@pytest.mark.usefixtures("torchvision")
@pytest.mark.parametrize(("name", "what"), [(name, what) for name in RECIPES for what in ("compared", "grid")])
def test_what_a_recipe_compares_and_searches_are_settings_of_its_runs(name, what):
    recipe, data = RECIPES[name], photographs(side=8, n_classes=10)
    settings = [{"model": "linear"} | setting for setting in getattr(recipe, what)]
    keys = [recipe.run(data, **setting).key for setting in settings]
    assert len(set(keys)) == len(keys)


def test_the_comparison_of_a_recipe_is_swept(store):
    recipe = RECIPES["imagenet-resnet18"]
    run = recipe.run(photographs(side=8, n_classes=10), model="linear", epochs=1, device="cpu")
    found = sweep(run, over=recipe.compared, store=store, progress=False)
    assert [done.run.weight_decay for done in found.runs] == [1e-4, 2.5e-5, 1.5e-4]
    assert [type(done.run.loss).__name__ for done in found.runs] == ["CrossEntropy", "SmoothTopKHinge", "NoisedTopK"]


@pytest.mark.parametrize(
    ("name", "epochs"),
    [
        ("cifar100-densenet", (150, 225)),
        ("plantnet300k-resnet50", (20, 25)),
        ("plantnet300k-resnet18", (25,)),
        ("imagenet-lt-resnet34", (60, 80)),
        ("imagenet-resnet18", (30, 60, 90)),
    ],
)
def test_the_learning_rate_is_divided_by_ten_after_the_epochs_of_the_paper(name, epochs):
    run = RECIPES[name].run(photographs())
    factors = [LEARNING_RATES["steps"](7 * epoch / (7 * run.epochs), run.milestones) for epoch in range(run.epochs)]
    assert [epoch for epoch in range(1, run.epochs) if factors[epoch] < factors[epoch - 1]] == list(epochs)
    assert factors[-1] == pytest.approx(0.1 ** len(epochs))


def test_drops_are_part_of_what_a_run_is_and_runs_without_them_keep_their_key():
    data = photographs()
    run = Run(data, model="linear", schedule="steps")
    assert Run(data, model="linear", schedule="steps", milestones=[0.5, 0.75]).key == run.key
    assert Run(data, model="linear", schedule="steps", milestones=(0.5,)).key != run.key
    for wrong in ((0.75, 0.5), (0.5, 1.0), (0.0,)):
        with pytest.raises(ValueError, match=re.escape(f"milestones = {wrong}; give rising shares of the training")):
            Run(data, model="linear", milestones=wrong)


def test_a_recipe_takes_changes():
    run = RECIPES["quick-rows"].run("digits", loss=Focal(), epochs=1)
    assert (run.loss, run.epochs, run.model) == (Focal(), 1, "mlp")
    assert RECIPES["quick-rows"].run("digits").loss == CrossEntropy()
