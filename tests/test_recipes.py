"""Every recipe is a run that takes a step, and says where it comes from."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.datasets import Dataset
from workbench.learning import SCHEDULES
from workbench.recipes import RECIPES
from workbench.store import Store
from workbench.training import Run, train


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(tmp_path)


def photographs() -> Dataset:
    """Eight photographs of the size of CIFAR's: four to train on, so that an epoch is one step."""
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)
    return Dataset.from_arrays(images, np.arange(12) % 2, name="photographs")


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_takes_a_step(name, store):
    data, extra = photographs(), {}
    if "model" not in RECIPES[name].settings:  # a head, on the features of a model that was trained before
        backbone = train(Run(data, model="mlp", epochs=1, device="cpu"), store=store, progress=False)
        extra = {"model": "mlp", "features": backbone}
    run = RECIPES[name].run(data, epochs=1, device="cpu", **extra)
    done = train(run, store=store, progress=False)
    assert np.isfinite(done.history["train_loss"]).all()
    assert done.tables["test"].scores.shape == (data.test.n, 2)


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_keeps_its_settings_says_where_they_are_from_and_takes_changes(name):
    recipe = RECIPES[name]
    run = recipe.run(photographs(), seed=3)
    assert run.seed == 3
    assert {field: getattr(run, field) for field in recipe.settings} == dict(recipe.settings)
    assert recipe.note
    assert (recipe.paper and recipe.place) or name.startswith("quick-")
    assert [recipe.run(photographs(), loss=loss).loss for loss in recipe.losses] == list(recipe.losses)


def test_steps_divide_the_learning_rate_by_ten_at_epochs_150_and_225_of_300():
    rates = [SCHEDULES["steps"](epoch / 300) for epoch in (0, 149, 150, 224, 225, 299)]
    assert rates == pytest.approx([1, 1, 0.1, 0.1, 0.01, 0.01])
