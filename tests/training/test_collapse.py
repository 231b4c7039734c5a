"""`train` notices a network that gives every row the same answer, and says what to do."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import torch
from small_runs import clouds, small, tags

import workbench as wb
from workbench import losses
from workbench.cli.main import main
from workbench.datasets import Dataset
from workbench.losses import NoisedTopK
from workbench.training import Run, train
from workbench.training.collapse import answers, constant_answer
from workbench.training.trainer import write_run

pytestmark = pytest.mark.usefixtures("one_thread")


def long_tail(power: float = 1.8) -> Dataset:
    """Twenty classes whose frequencies fall as a power; each is a centre and its mirror image, so that they are learnt late."""
    rng, n, n_classes = np.random.default_rng(0), 1500, 20
    shares = 1 / np.arange(1, n_classes + 1) ** power
    labels = rng.choice(n_classes, n, p=shares / shares.sum())
    rows = rng.choice([-1, 1], n)[:, None] * rng.normal(size=(n_classes, 10))[labels] + rng.normal(size=(n, 10))
    return Dataset.from_arrays(rows, labels, name="long tail", drop_small=True)


STUCK = small(long_tail(), model="mlp", loss=NoisedTopK(K=3, epsilon=0.2), epochs=3, batch_size=16, learning_rate=3e-3)


def test_a_noised_loss_that_is_stuck_warns_once_with_what_helps(store):
    with pytest.warns(UserWarning, match="constant answer") as told:
        trained = train(STUCK, store=store, progress=False)
    assert len(told) == 1
    said = str(told[0].message)
    assert "gives a constant answer after epoch 2: 100% of the validation rows have the same 3 classes in front" in said
    for advice in ("epsilon=wb.schedules.anneal(3, 0.2)", "a larger epsilon", "CrossEntropy() first", "normalised"):
        assert advice in said
    assert (trained.history["val_same_set"] == 1).all()
    assert (trained.history["val_over_constant"] <= 0).all()
    with warnings.catch_warnings():  # read from the store it says so, and does not warn again
        warnings.simplefilter("error")
        again = train(STUCK, store=store, progress=False)
    assert "gives a constant answer after epoch 3" in again.stored.record.warned


@pytest.mark.parametrize(
    "run",
    [
        Run("digits", model="linear", epochs=9, device="cpu"),
        Run("letters", model="mlp", epochs=2, batch_size=256, device="cpu"),
        small(long_tail(), model="mlp", epochs=4, batch_size=16, learning_rate=3e-3),
        small(tags(), loss=losses.Quasibinary(), epochs=30),
    ],
    ids=["digits", "letters", "cross-entropy on the long tail", "many labels"],
)
def test_a_run_that_learns_is_not_warned(run, store):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        trained = train(run, store=store, progress=False)
    assert trained.history["val_same_set"].iloc[-1] < 0.9
    assert trained.stored.record.warned == ""


def test_the_warning_comes_after_the_second_epoch_or_the_first_hundred_steps_or_at_the_end(store):
    row = {"val_same_set": 1.0, "val_over_constant": 0.0}
    run = small(clouds(n=400), epochs=60, batch_size=64)  # 5 steps an epoch
    assert [epoch for epoch in range(60) if constant_answer(run, {"epoch": epoch, **row})] == list(range(19, 60))
    many = small(clouds(n=400), epochs=60, batch_size=1)
    assert [epoch for epoch in range(60) if constant_answer(many, {"epoch": epoch, **row})] == list(range(1, 60))
    once = small(clouds(n=400), epochs=1, batch_size=1)
    assert constant_answer(once, {"epoch": 0, **row})


@pytest.mark.parametrize(("same", "over"), [(0.89, 0.0), (1.0, 0.03), (np.nan, np.nan)])
def test_an_answer_that_is_not_constant_or_better_than_that_is_fine(same, over):
    assert constant_answer(STUCK, {"epoch": 2, "val_same_set": same, "val_over_constant": over}) == ""
    assert constant_answer(STUCK, {"epoch": 2}) == ""  # an epoch that an earlier version trained


def test_a_run_that_leaves_the_constant_answer_is_not_told_of_it_in_the_end(store):
    history = [
        {"epoch": epoch, "val_same_set": same, "val_over_constant": 0.0} for epoch, same in enumerate([1, 1, 0.3])
    ]
    with store.writing(STUCK.key) as directory:
        write_run(directory, STUCK, {}, history, {"val": wb.LogitTable(5 * np.eye(3), labels=[0, 1, 2])})
    assert store.open(STUCK.key).record.warned == ""


def test_the_share_is_of_sets_and_not_of_their_order():
    scores = torch.tensor([[3.0, 2, 1, 0], [2.0, 3, 1, 0], [3.0, 1, 2, 0], [0, 0, 0, 0]])
    val = wb.LogitTable(scores.numpy(), labels=[0, 0, 3, -1])
    found = answers(scores, val, K=2)
    assert found["val_same_set"] == pytest.approx(2 / 3)
    assert found["val_over_constant"] == pytest.approx(2 / 3 - 1)


def test_of_many_labels_each_counts_and_rows_without_any_do_not():
    scores = torch.tensor([[3.0, 2, 1], [3.0, 2, 1], [1.0, 2, 3]])
    val = wb.LogitTable(scores.numpy(), labels=np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]], bool))
    assert answers(scores, val, K=1) == {"val_same_set": 1.0, "val_over_constant": 0.0}
    unlabelled = wb.LogitTable(scores.numpy(), labels=np.zeros((3, 3), bool))
    assert np.isnan(list(answers(scores, unlabelled, K=1).values())).all()


def test_another_loss_that_is_stuck_is_told_of_the_learning_rate_also_on_the_command_line(capsys):
    stuck = ["--model", "mlp", "--optimizer", "sgd", "--learning_rate", "10", "--epochs", "9"]
    with pytest.warns(
        UserWarning, match=r"constant answer .*Try learning_rate=1 \(it is 10; 100 if the loss hardly moves"
    ):
        assert main(["train", "--dataset", "digits", *stuck]) == 0
    assert "note: digits · mlp · CrossEntropy() gives a constant answer after epoch 9" in capsys.readouterr().out
    assert main(["train", "--dataset", "digits", *stuck, "--json"]) == 0
    assert "constant answer" in json.loads(capsys.readouterr().out)["warned"]
