"""A knob that follows a schedule while a network learns."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from small_runs import assert_same_weights, clouds, small, weights

from workbench import figures, schedules
from workbench.losses import ROLE, CrossEntropy, Focal, Loss, NoisedTopK
from workbench.metrics.sweeps import stored_sweeps
from workbench.schedules import anneal
from workbench.training import Run, TrainedRun, learner, train
from workbench.training.sweeps import sweep
from workbench.training.weight_planes import weight_plane

pytestmark = pytest.mark.usefixtures("one_thread")
ANNEALED = NoisedTopK(K=2, epsilon=anneal(3, 0.2))


def test_a_schedule_is_part_of_the_key():
    keys = {small(loss=NoisedTopK(K=2, epsilon=epsilon)).key for epsilon in (0.2, anneal(3, 0.2), anneal(3, 0.2, 0.5))}
    assert len(keys) == 3
    assert small(loss=ANNEALED).key == small(loss=NoisedTopK(K=2, epsilon=anneal(3.0, 0.2, 0.75, "geometric"))).key


def test_every_step_takes_the_loss_at_the_share_that_the_learning_rate_takes(store, monkeypatch):
    loss_shares, rate_shares = [], []
    at, schedule = Loss.at, schedules.LEARNING_RATES["cosine"]

    def noted_at(loss, done):
        if loss.scheduled():
            loss_shares.append(done)
        return at(loss, done)

    def noted_schedule(done, milestones):
        rate_shares.append(done)
        return schedule(done, milestones)

    monkeypatch.setattr(Loss, "at", noted_at)
    monkeypatch.setitem(schedules.LEARNING_RATES, "cosine", noted_schedule)
    train(small(loss=ANNEALED), store=store, progress=False)
    n = len(rate_shares)
    assert rate_shares == pytest.approx(np.arange(n) / n)
    assert set(rate_shares) <= set(loss_shares)


def test_the_steps_are_those_of_the_loss_with_the_value_of_the_moment(store, monkeypatch):
    """A schedule that jumps after half the training: before and after it is the loss with that number."""
    jumps = Focal(gamma=anneal(5, 0, over=0.5, course="constant"))
    trained = train(small(loss=jumps, epochs=2, schedule="constant", optimizer="sgd"), store=store, progress=False)
    class_at = Loss.at
    monkeypatch.setattr(Loss, "at", lambda loss, done: class_at(loss, float(done >= 0.5)))
    stepped = train(
        small(loss=Focal(gamma=anneal(5, 0, course="linear")), epochs=2, schedule="constant", optimizer="sgd"),
        store=store, progress=False,
    )  # fmt: skip
    assert_same_weights(weights(trained), weights(stepped))
    plain = train(
        small(loss=Focal(gamma=0.0), epochs=2, schedule="constant", optimizer="sgd"), store=store, progress=False
    )
    assert trained.history["train_loss"][0] != plain.history["train_loss"][0]


def test_the_history_shows_the_value_of_the_last_step_of_each_epoch(store):
    trained = train(small(loss=ANNEALED, epochs=4), store=store, progress=False)
    n = len(trained.run.data.train.labels)
    steps = -(-n // 64)
    shares = [((epoch + 1) * steps - 1) / (4 * steps) for epoch in range(4)]
    assert trained.history["loss.epsilon"].tolist() == pytest.approx([anneal(3, 0.2).at(share) for share in shares])
    assert "loss.K" not in trained.history
    fixed = train(small(loss=NoisedTopK(K=2, epsilon=0.2)), store=store, progress=False)
    assert not [name for name in fixed.history if name.startswith("loss.")]


def test_the_learning_curves_have_a_panel_for_a_knob_that_changes(store):
    trained = train(small(loss=ANNEALED), store=store, progress=False)
    figure = figures.learning_curves(trained.history)
    assert figure.panels()["loss.epsilon"]["value"].tolist() == trained.history["loss.epsilon"].tolist()


def test_the_validation_loss_takes_the_end_in_all_epochs_so_that_they_can_be_compared(store):
    """Weights that do not learn: their validation loss is the same in all epochs, whatever the schedule."""
    loss = Focal(gamma=anneal(5, 1))
    trained = train(
        small(loss=loss, learning_rate=1e-12, weight_decay=0.0, optimizer="sgd"), store=store, progress=False
    )
    assert trained.history["val_loss"].to_numpy() == pytest.approx(trained.history["val_loss"][0], rel=1e-6)
    assert trained.history["train_loss"].is_monotonic_increasing, "less is damped from epoch to epoch"
    model, val = trained.model, trained.run.data.val
    with torch.no_grad():
        values = Focal(gamma=1.0)(model(torch.from_numpy(val.inputs)), torch.from_numpy(val.labels))
    assert trained.history["val_loss"].iloc[-1] == pytest.approx(values.mean().item(), rel=1e-5)


def test_a_step_in_pieces_is_the_step_with_a_schedule_too(store):
    run = small(loss=Focal(gamma=anneal(4, 1)), learning_rate=0.01, optimizer="sgd")
    whole = train(run, store=store, progress=False)
    pieces = train(dataclasses.replace(run, micro_batches=2), store=store, progress=False)
    np.testing.assert_allclose(pieces.tables["test"].scores, whole.tables["test"].scores, rtol=1e-4, atol=1e-5)
    assert pieces.history["loss.gamma"].tolist() == whole.history["loss.gamma"].tolist()


def test_a_run_with_a_schedule_is_read_again_as_it_was(store):
    trained = train(small(loss=ANNEALED, dataset=clouds()), store=store, progress=False)
    assert trained.stored.record.loss == {
        "loss": "NoisedTopK",
        "knobs": {"K": 2, "epsilon": "anneal(3.0, 0.2)", "n_samples": 5},
    }
    run = Run("digits", model="linear", loss=ANNEALED, epochs=1, device="cpu")
    first = train(run, store=store, progress=False)
    again = TrainedRun.open(first.stored.key, store)
    assert again.run.loss == ANNEALED
    assert again.run.key == run.key
    assert "epsilon=anneal(3.0, 0.2)" in first.stored.title


def test_the_weights_around_a_run_with_a_schedule_are_judged_by_its_end(store):
    trained = train(Run("digits", model="linear", loss=ANNEALED, epochs=1, device="cpu"), store=store, progress=False)
    plane = weight_plane(trained, steps=3, rows=50, progress=False)
    assert np.isfinite(plane["loss"]).all()


def test_estimates_of_labels_learn_as_fast_as_the_schedule_says(store, monkeypatch):
    speeds = []
    step = learner.Learner.learn

    def noted(self, batch, batch_idx):
        step(self, batch, batch_idx)
        speeds.append(self.optimizer.param_groups[1]["speed"])

    monkeypatch.setattr(learner.Learner, "learn", noted)
    train(small(loss=ROLE(K=2.0, estimate_rate=anneal(100, 1, over=1, course="linear"))), store=store, progress=False)
    n = len(speeds)
    assert speeds == pytest.approx([100 - 99 * step / n for step in range(n)])


@pytest.mark.parametrize("K", [anneal(50, 2), anneal(2, 50)])
def test_a_K_that_is_too_large_for_the_classes_at_either_end_is_refused_before_training(store, K):
    with pytest.raises(ValueError, match="K = 50 with 6 classes"):
        train(small(loss=NoisedTopK(K=K)), store=store, progress=False)


def test_a_sweep_varies_schedules_beside_numbers(store):
    over = {"loss.epsilon": [0.2, anneal(3, 0.2)], "seed": [0, 1]}
    found = sweep(small(loss=NoisedTopK(K=2), epochs=1), over, store=store, progress=False)
    assert found.frame["loss.epsilon"].drop_duplicates().tolist() == [0.2, "anneal(3, 0.2)"]
    assert set(found.summary()["seeds"]) == {2}
    assert found.best("accuracy").settings["loss.epsilon"] in (0.2, anneal(3, 0.2))


def test_a_run_with_a_schedule_does_not_disturb_the_sweeps_among_stored_runs(store):
    for epsilon in (0.1, 0.2, 1.0, anneal(3, 0.2)):
        train(small(loss=NoisedTopK(K=2, epsilon=epsilon), epochs=1), store=store, progress=False)
    (found,) = stored_sweeps(store.runs())
    assert found.knob == "loss.epsilon"
    assert len(found.runs) == 3
    assert found.summary()["loss.epsilon"].drop_duplicates().tolist() == [0.1, 0.2, 1.0]


def test_cross_entropy_has_nothing_to_anneal():
    assert CrossEntropy().scheduled() == {}
