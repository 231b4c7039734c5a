"""A network that knows its classes already is stored and evaluated as it is: `Run(epochs=0)`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_runs import CLOUDS, small
from torch import nn

import workbench as wb
from workbench.drawings import LATEX, drawing_from_text, inputs, scores
from workbench.training import Run, TrainedRun, train

SYMBOLS = {"n_train": 200, "n_val": 20, "n_test": 40}


def classifier(n_classes: int = 6) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Flatten(), nn.Linear(CLOUDS.input_shape[0], 8), nn.ReLU(), nn.Linear(8, n_classes))


def test_zero_epochs_store_the_scores_of_a_network_as_it_is_and_one_line_of_history(store):
    mine = classifier()
    trained = train(small(model=mine, epochs=0), store=store, progress=False)
    rows = torch.from_numpy(CLOUDS.test.inputs)
    prepared = (rows - trained.model.mean) / trained.model.deviation
    with torch.no_grad():
        np.testing.assert_allclose(trained.tables["test"].scores, mine(prepared).numpy(), atol=1e-6)
    (line,) = trained.history.to_dict("records")
    assert np.isnan([line["train_loss"], line["nonzero_gradients"]]).all()
    assert line["val_accuracy"] == wb.metrics.top_k_accuracy(trained.tables["val"], 1)
    again = TrainedRun.open(trained.run.key, store, model=classifier())
    assert (again.predict(CLOUDS.test.inputs, progress=False).scores == trained.tables["test"].scores).all()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model": "mlp"}, "the head of mlp would be new"),
        ({"model": classifier(), "head": "new"}, "the head of Sequential would be new"),
    ],
)
def test_a_new_head_has_nothing_to_say_without_training(fields, message):
    with pytest.raises(ValueError, match=message):
        small(epochs=0, **fields)


def test_a_network_of_other_classes_cannot_go_untrained(store):
    with pytest.raises(ValueError, match=r"head = 'own', but for 2 inputs the model returns \(2, 5\)"):
        train(small(model=classifier(5), epochs=0), store=store)


def test_classes_without_a_training_row_are_for_networks_that_know_them(store):
    symbols = wb.load_dataset("symbols", classes="all", **SYMBOLS)
    assert symbols.class_names == LATEX
    assert np.count_nonzero(symbols.class_counts) == wb.load_dataset("symbols", **SYMBOLS).n_classes == 78
    with pytest.raises(ValueError, match="classes without a training row, which cannot be learnt; give epochs=0"):
        train(Run(symbols, model="mlp", epochs=1), store=store)


def test_the_published_network_is_a_run_with_the_scores_of_the_pad(store):
    symbols = wb.load_dataset("symbols", classes="all", **SYMBOLS)
    trained = train(Run(symbols, model="symbols-mlp", epochs=0), store=store, progress=False)
    drawings = [drawing_from_text(text) for text in trained.tables["test"].strokes.tolist()]
    assert np.abs(trained.tables["test"].scores - scores(drawings)).max() < 1e-5
    fifty = np.load("tests/data/drawn_symbols.npz", allow_pickle=False)["strokes"].tolist()
    found = trained.predict(inputs([drawing_from_text(text) for text in fifty]).astype(np.float32), progress=False)
    assert np.abs(found.scores - scores([drawing_from_text(text) for text in fifty])).max() < 1e-5
    assert found.class_names == LATEX


def test_on_other_classes_the_published_scores_are_features_of_a_new_head(store):
    run = Run(wb.load_dataset("symbols", **SYMBOLS), model="symbols-mlp", features="cached", epochs=2)
    trained = train(run, store=store, progress=False)
    assert trained.tables["test"].n_classes == 78
    assert trained.model.head.weight.shape == (78, 378)
    with pytest.raises(ValueError, match=r"symbols-mlp reads the 167 numbers of a drawing .* \(16,\)"):
        train(Run("letters", model="symbols-mlp"), store=store)
