"""Runs that are trained together are what each would be alone, but for rounding, and are stored as runs of their own."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from small_runs import clouds, small, stripes, tags, threads, weights
from torch import nn

from workbench import losses, schedules
from workbench.operators.applying import is_mapped
from workbench.store import Store
from workbench.training import Cancelled, Run, TrainedRun, many_runs, train
from workbench.training.stacked import train_many
from workbench.training.stacked.stack import FACTORS
from workbench.training.stacked.train_many import stackable, train_heads
from workbench.training.sweeps import sweep

pytestmark = pytest.mark.usefixtures("one_thread")

DATA = clouds(n=240, n_classes=8)
ROUNDING = 1e-5  # of weights, scores and losses near 1, after a few epochs at rates that do not magnify it


def assert_same(together: TrainedRun, alone: TrainedRun, rounding: float = ROUNDING) -> None:
    assert together.run.key == alone.run.key == together.stored.key
    first, second = weights(together), weights(alone)
    assert first.keys() == second.keys()
    for name in first:
        np.testing.assert_allclose(first[name], second[name], rtol=0, atol=rounding, err_msg=name)
    assert together.tables.keys() == alone.tables.keys()
    for name, table in together.tables.items():
        np.testing.assert_allclose(table.scores, alone.tables[name].scores, rtol=rounding, atol=rounding, err_msg=name)
    assert together.history.columns.tolist() == alone.history.columns.tolist()
    columns = [name for name in together.history if name != "seconds"]
    one, other = (_in_logarithms(each.history[columns]) for each in (together, alone))
    pulled = [each.pop("nonzero_gradients") for each in (one, other)]  # a count: a score at its bound is in or out
    np.testing.assert_allclose(*pulled, rtol=0, atol=4 / 192)  # of the scores of 192 rows, at most four
    hits = [each.pop("train_accuracy") for each in (one, other)]  # a count: a row with two equal scores is in or out
    np.testing.assert_allclose(*hits, rtol=0, atol=2 / 192)
    np.testing.assert_allclose(one, other, rtol=rounding, atol=rounding)
    assert together.stored.record.kept_epoch == alone.stored.record.kept_epoch


def _in_logarithms(history):
    """Sums of exponentials as their logarithms, which are as exact as the scores."""
    return history.assign(**{name: np.log(history[name]) for name in history if name.startswith("normaliser_")})


def trained_both_ways(runs: list[Run], tmp_path) -> list[tuple[TrainedRun, TrainedRun]]:
    together = train_heads(runs, store=Store(tmp_path / "together"), progress=False)
    alone = [train(run, store=Store(tmp_path / "alone"), progress=False) for run in runs]
    return list(zip(together, alone, strict=True))


SOME = (
    (losses.CrossEntropy(), losses.CrossEntropy()),
    (
        losses.NoisedTopK(K=3, epsilon=0.1),
        losses.NoisedTopK(K=2, epsilon=1.0, n_samples=3),
        losses.NoisedTopK(epsilon=0.0),
    ),
    (losses.Focal(gamma=1.0), losses.Focal(gamma=3.0), losses.AssumeNegative()),
    (losses.ExpectedPositive(K=2.0), losses.ExpectedPositive(K=3.0, beta=1.0)),
    (losses.ROLE(K=2.0), losses.ROLE(K=3.0, estimate_rate=1.0)),
    (losses.DifferentiableTopK(p_k=(0.5, 0.5)), losses.DifferentiableTopK(p_k=(0.2, 0.8), operator="soft_sort")),
    (losses.SmoothTopKHinge(K=2, temperature=0.3), losses.SmoothTopKHinge(K=2), losses.CalibratedTopKHinge(K=2)),
    (losses.AverageKTwoHead(K=2.0, alpha=0.3), losses.AverageKTwoHead(K=3.0, alpha=3.0)),
    (losses.LDAM(scale=10.0), losses.LDAM(max_margin=0.5), losses.NoisedTopKImbalanced(K=2)),
    (losses.ExactNoisedTopK(K=2), losses.Sparsemax()),
)


@pytest.mark.parametrize("some", SOME, ids=lambda some: type(some[0]).__name__)
def test_every_member_agrees_with_the_run_trained_alone_whatever_its_loss_and_its_seed(some, tmp_path):
    runs = [small(DATA, loss=loss, epochs=2, seed=seed, learning_rate=0.01) for seed, loss in enumerate(some)]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone)


@pytest.mark.parametrize("loss", [losses.Quasibinary(), losses.BinaryCrossEntropy(), losses.SoftmaxUniform()])
def test_losses_of_many_labels_and_what_they_remember_agree_too(loss, tmp_path):
    runs = [small(tags(), loss=loss, epochs=2, learning_rate=rate) for rate in (0.01, 0.03)]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_every_member_has_its_own_rate_decay_and_schedule_under_each_optimizer_of_torch(optimizer, tmp_path):
    settings = [(0.01, 0.0, "cosine"), (0.03, 0.1, "constant"), (0.02, 0.01, "steps")]
    runs = [
        small(DATA, optimizer=optimizer, learning_rate=rate, weight_decay=decay, schedule=schedule)
        for rate, decay, schedule in settings
    ]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone)


def test_whole_small_networks_are_stacked_too(tmp_path):
    for data in (DATA, stripes(60)):
        runs = [small(data, model="mlp", epochs=1, learning_rate=1e-3, seed=seed) for seed in (0, 1)]
        for together, alone in trained_both_ways(runs, tmp_path):
            assert_same(together, alone, rounding=1e-4)  # Adam magnifies it where a gradient cancels to nearly nothing


def test_heads_on_cached_features_share_the_backbone_and_store_it_with_each(tmp_path):
    backbone = nn.Sequential(nn.Flatten(), nn.Linear(5, 7), nn.ReLU())
    runs = [small(DATA, model=backbone, features="cached", epochs=2, learning_rate=rate) for rate in (0.01, 0.03)]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone)
        assert {name.split(".")[0] for name in weights(together)} >= {"backbone", "head"}


def test_heads_on_the_features_of_a_run_agree_too(tmp_path):
    for folder in ("together", "alone"):
        base = train(small(DATA, model="mlp", epochs=1), store=Store(tmp_path / folder), progress=False)
    runs = [small(DATA, model="mlp", features=base, epochs=2, seed=seed) for seed in (0, 1)]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone)


def test_members_may_stop_at_different_epochs_and_keep_their_best(tmp_path):
    runs = [
        small(DATA, epochs=4),
        small(DATA, epochs=2),
        small(DATA, epochs=6, learning_rate=0.3, monitor="val_loss", patience=1),
        small(DATA, epochs=3, learning_rate=0.3, monitor="val_accuracy"),
    ]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone, rounding=1e-4)


@pytest.mark.parametrize("loss_class", FACTORS, ids=lambda loss_class: loss_class.__name__)
def test_losses_that_differ_in_factors_are_evaluated_once_for_all(loss_class, tmp_path, monkeypatch):
    data = tags() if loss_class.labels == "many" else DATA
    ends = [
        loss_class(**{name: loss_class.knobs()[name].ends()[end] for name in FACTORS[loss_class]}) for end in (0, -1)
    ]
    some = [dataclasses.replace(loss, K=2) if "K" in loss.knobs() else loss for loss in (*ends, loss_class())]
    runs = [small(data, loss=loss, epochs=1, learning_rate=0.001, seed=seed) for seed, loss in enumerate(some)]
    evaluated, values = [], loss_class.values
    with monkeypatch.context() as patch:
        patch.setattr(loss_class, "values", lambda *a, **k: evaluated.append(is_mapped(a[1])) or values(*a, **k))
        together = train_heads(runs, store=Store(tmp_path / "together"), progress=False)
    assert sum(evaluated) == math.ceil(data.train.n / 64) + 1  # val is one batch
    for found, run in zip(together, runs, strict=True):
        assert_same(found, train(run, store=Store(tmp_path / "alone"), progress=False))


def test_knobs_that_follow_a_schedule_and_several_monitors_are_those_of_the_run_alone(tmp_path):
    anneal = schedules.anneal(3.0, 0.2)
    some = (losses.NoisedTopK(K=2, epsilon=anneal), losses.Focal(gamma=anneal), losses.Focal(gamma=anneal))
    watched = ("average_k_accuracy@K=2", "val_loss")
    runs = [
        small(DATA, loss=loss, epochs=2 + extra, learning_rate=0.1, monitor=watched) for extra, loss in enumerate(some)
    ]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone, rounding=1e-4)
        assert together.kept_by("val_loss").epoch == alone.kept_by("val_loss").epoch


def test_a_run_says_that_it_was_trained_together_and_each_has_its_share_of_the_seconds(store):
    found = train_heads([small(DATA, epochs=1, seed=seed) for seed in range(3)], store=store, progress=False)
    assert [trained.stored.record.together for trained in found] == [3, 3, 3]
    assert len({trained.history["seconds"].sum() for trained in found}) == 1
    assert train(found[0].run, store=store).stored == found[0].stored


def test_a_member_that_diverges_fails_alone(store):
    runs = [small(DATA, learning_rate=rate, optimizer="sgd", loss=losses.SmoothTopKHinge(K=2)) for rate in (0.01, 0.02)]
    broken = dataclasses.replace(runs[0], loss=Overflowing())
    first, error, last = train_heads([runs[0], broken, runs[1]], store=store, progress=False)
    assert isinstance(error, FloatingPointError)
    assert str(error).startswith(
        "epoch 2 of 3: the loss is inf in batch 2 of 3. Most often the learning rate is too large"
    )
    assert store.diverged(broken.key).is_file()  # the best weights so far
    assert not store.has(broken.key)
    for together in (first, last):
        assert_same(together, train(together.run, store=Store(store.root / "alone"), progress=False))


class Overflowing(losses.CrossEntropy):
    """Cross-entropy that is infinite in the fifth batch of three an epoch."""

    def state(self, n_rows: int, n_classes: int) -> nn.Module:
        return Counter()

    def values(self, scores, labels, *, state=None, **_):
        values = super().values(scores, labels)
        return values if state is None else state(values)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("batches", torch.zeros(()))

    def forward(self, values):
        self.batches += self.training
        return values * torch.inf if self.training and self.batches == 5 else values


def test_what_is_stored_is_read_and_what_is_asked_for_twice_is_trained_once(store):
    run = small(DATA, epochs=1)
    stored = train(run, store=store, progress=False)
    first, second, third = train_heads([run, small(DATA, epochs=1, seed=1), run], store=store, progress=False)
    assert first.stored == third.stored == stored.stored
    assert first.stored.record.together is None
    assert second.stored.record.together == 1


def test_runs_that_share_no_steps_are_trained_in_groups(store):
    runs = [small(DATA, epochs=1), small(DATA, epochs=1, batch_size=32), small(DATA, epochs=1, loss=losses.LDAM())]
    found = train_heads([*runs, dataclasses.replace(runs[0], seed=1)], store=store, progress=False)
    assert [trained.stored.record.together for trained in found] == [2, 1, 1, 2]


def test_members_that_do_not_fit_in_memory_together_take_turns(store, monkeypatch):
    monkeypatch.setattr(train_many, "BYTES_TOGETHER", 1)
    found = train_heads([small(DATA, epochs=1, seed=seed) for seed in range(2)], store=store, progress=False)
    assert [trained.stored.record.together for trained in found] == [1, 1]


def test_an_interruption_keeps_what_is_finished_and_the_rest_starts_anew(store):
    short, long = small(DATA, epochs=1), small(DATA, epochs=3)

    def stops(run, row):
        if row["epoch"] == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="finished are stored, and the same call trains the others anew"):
        train_heads([short, long], store=store, progress=False, on_epoch=stops)
    assert (store.has(short.key), store.has(long.key)) == (True, False)
    seen = []
    train_heads([short, long], store=store, progress=False, on_epoch=lambda run, row: seen.append(row["epoch"]))
    assert seen == [0, 1, 2]


def test_training_together_can_be_cancelled(store):
    def cancels(run, row):
        raise Cancelled

    with pytest.raises(Cancelled):
        train_heads([small(DATA, seed=seed) for seed in (0, 1)], store=store, progress=False, on_epoch=cancels)
    assert not list(store.root.glob("[!.]*"))


def test_a_bar_shows_how_far_all_are(store, capsys):
    train_heads([small(DATA, epochs=2, seed=seed) for seed in (0, 1)], store=store)
    assert "2 runs together · clouds: 100%" in capsys.readouterr().err


@pytest.mark.parametrize("fields", [{"micro_batches": 2}, {"precision": "bf16"}, {"model": "cnn"}, {"devices": 2}])
def test_what_cannot_be_stacked_is_refused(fields, store):
    run = small(stripes(60), **{"model": "linear", **fields})
    assert not stackable(run)
    with pytest.raises(ValueError, match=r"stripes .* cannot be trained together with others: give heads on cached"):
        train_heads([run], store=store)


def test_a_sweep_trains_together_what_it_can_and_prints_the_same_lines(store, monkeypatch, capsys):
    monkeypatch.setattr(many_runs, "train", lambda run, **_: pytest.fail(f"{run.title} was trained alone"))
    swept = sweep(small(DATA, epochs=1), {"learning_rate": [0.01, 0.1], "seed": range(2)}, store=store)
    assert [trained.stored.record.together for trained in swept.runs] == [4] * 4
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:3] for line in lines] == [
        [f"{n + 1}/4", f"learning_rate={rate}", f"seed={seed}"]
        for n, (rate, seed) in enumerate([(0.01, 0), (0.01, 1), (0.1, 0), (0.1, 1)])
    ]
    assert not any("stored" in line for line in lines)


def test_a_sweep_lets_a_run_with_a_checkpoint_go_on_alone(store):
    runs = [small(DATA, seed=seed) for seed in range(3)]
    interrupted = store.unfinished(runs[1].key)
    interrupted.parent.mkdir(parents=True)
    interrupted.touch()
    assert train_many.companions(runs[0], runs, store) == [runs[0], runs[2]]


def test_each_thread_of_torch_trains_its_part_to_the_same_end(tmp_path):
    with threads(2):
        runs = [small(DATA, seed=seed, learning_rate=0.01) for seed in range(3)]
        for together, alone in trained_both_ways(runs, tmp_path):
            assert_same(together, alone)
        assert torch.get_num_threads() == 2


def test_what_stops_one_thread_stops_the_others(store):
    def cancels(run, row):
        raise Cancelled

    with threads(2), pytest.raises(Cancelled):
        train_heads([small(DATA, epochs=10**6, seed=seed) for seed in (0, 1)], store=store, on_epoch=cancels)


def test_members_keep_an_epoch_for_each_monitor_and_the_course_of_their_constant(tmp_path):
    watched = ("top_k_accuracy@K=2", "macro_average_k_accuracy@K=1.5")
    runs = [small(DATA, loss=loss, monitor=watched) for loss in (losses.CrossEntropy(), losses.Quasibinary())]
    for together, alone in trained_both_ways(runs, tmp_path):
        assert_same(together, alone)
        assert {"val_same_set", "normaliser_variance", *(f"val_{name}" for name in watched)} <= set(together.history)
        for monitor in watched:
            kept = together.kept_by(monitor), alone.kept_by(monitor)
            assert kept[0].epoch == kept[1].epoch
            np.testing.assert_allclose(kept[0].tables["test"].scores, kept[1].tables["test"].scores, atol=ROUNDING)


def test_a_member_with_a_constant_answer_is_told_of(store):
    run = Run("digits", model="mlp", optimizer="sgd", learning_rate=10.0, epochs=9, device="cpu")
    with pytest.warns(UserWarning, match=r"digits · mlp · CrossEntropy\(\) gives a constant answer after epoch 9"):
        train_heads([run], store=store, progress=False)
