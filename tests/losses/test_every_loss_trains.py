"""Every loss that trains does so from a one-line run, far better than chance."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.datasets import load_dataset
from workbench.losses import LOSSES
from workbench.metrics import top_k_accuracy
from workbench.store import DEMO, Store
from workbench.training import Run, train

TRAINING = [loss for loss in LOSSES if loss.trains]
OF_MANY_LABELS = [loss for loss in TRAINING if loss.labels == "many" or loss.also_many_labels]

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    """One for all tests, so that the features of the meadow are computed once."""
    return Store(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def meadow():
    return load_dataset("meadow", n_train=2000, n_val=200, n_test=1000)


def test_all_losses_but_the_error_itself_train():
    assert [loss.__name__ for loss in LOSSES if not loss.trains] == ["TopKError"]


@pytest.mark.parametrize("loss", TRAINING, ids=lambda loss: loss.__name__)
def test_two_epochs_of_letters_teach_a_loss_to_hold_the_letter_in_five_of_26(loss, store):
    run = Run("letters", model="mlp", loss=loss(), epochs=2, batch_size=256, learning_rate=5e-3, device="cpu")
    test = train(run, store=store, progress=False).tables["test"]
    assert top_k_accuracy(test, 5) > 0.85  # chance is 5/26 = 0.19
    assert top_k_accuracy(test, 1) > 0.4  # chance is 0.04, and some losses only ask for the first five


@pytest.mark.parametrize("loss", OF_MANY_LABELS, ids=lambda loss: loss.__name__)
def test_a_head_of_the_meadow_finds_a_plant_that_is_there(loss, meadow, store):
    garden = next(run for run in Store(DEMO).runs() if run.title == "garden · cnn · CrossEntropy()")
    run = Run(meadow, model="cnn", features=garden.key, loss=loss(), epochs=5, learning_rate=2e-2, device="cpu")
    test = train(run, store=store, progress=False).tables["test"]
    some = test.labels.any(axis=1)
    found = test.labels[np.arange(test.n), test.scores.argmax(axis=1)][some].mean()
    commonest = test.labels[some].mean(axis=0).max()  # always answering with one genus: 0.36
    assert found > commonest + 0.25
