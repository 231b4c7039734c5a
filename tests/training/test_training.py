"""What training gives: tables, a history, weights; once, and the same bits each time."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import textwrap
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import torch
from small_runs import CLOUDS, assert_same_weights, clouds, small, stripes, tags, threads, weights
from torch import nn

from workbench import losses, progress
from workbench.losses import CrossEntropy, Loss, states
from workbench.training import Run, TrainedRun, hardware, loop, scoring, train
from workbench.training import learner as learning

pytestmark = pytest.mark.usefixtures("one_thread")


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
    losses_and_sets = [
        *(
            "epoch",
            "train_loss",
            "train_accuracy",
            "val_loss",
            "val_accuracy",
            "val_average_K_accuracy",
            "val_mean_size",
        )
    ]
    answers, normalisers = (
        ["val_same_set", "val_over_constant"],
        ["val_log_normaliser", "normaliser_mean", "normaliser_variance"],
    )
    assert list(history.columns) == [*losses_and_sets, *answers, *normalisers, "nonzero_gradients", "seconds"]
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


@pytest.mark.parametrize("fields", [{"batch_size": 1}, {"batch_size": 4, "micro_batches": 4}])
def test_a_single_row_for_batch_normalisation_names_the_batch_size_and_the_pieces(store, fields):
    module = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3))
    with pytest.raises(
        ValueError, match=r"two rows or more .*batch_size = \d with micro_batches = \d leaves a single one"
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
    assert list(info) == ["format", "run", "facts"]
    assert info["run"] == json.loads(json.dumps(trained.run.to_json()))
    assert info["run"]["dataset"] == {"name": "digits", "knobs": {"seed": 0}}
    assert info["run"]["loss"] == {"loss": "CrossEntropy", "knobs": {}}
    assert info["facts"]["repeatable"] is True
    assert info["facts"]["versions"]["torch"] == torch.__version__
    reopened = TrainedRun.open(trained.run.key[:10], store)
    assert reopened.run.key == trained.run.key
    assert reopened.model.training is False


def test_a_run_of_arrays_says_that_its_file_alone_cannot_repeat_it(store):
    trained = train(small(epochs=1), store=store, progress=False)
    assert trained.stored.record.repeatable is False
    reopened = TrainedRun.open(trained.run.key, store)
    with pytest.raises(ValueError, match="cannot be repeated from its file alone: its dataset was given as arrays"):
        reopened.run


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
    assert trained.stored.record.repeatable is False
    assert not np.array_equal(trained.model.backbone[1].weight.detach().numpy(), before.detach().numpy())


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_every_optimizer_learns(store, optimizer):
    rate = {"adam": 0.01, "sgd": 0.05}[optimizer]
    run = small(optimizer=optimizer, schedule="constant", learning_rate=rate, epochs=8)
    trained = train(run, store=store, progress=False)
    assert trained.history["val_accuracy"].iloc[-1] > 0.5


def test_half_precision_trains_gives_float32_scores_and_resumes_with_the_same_bits(tmp_path):
    # On its own, because a processor that announces AMX and refuses it must be told before torch is loaded.
    code = f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from small_runs import small
        from workbench.store import Store
        from workbench.training import train

        def stop(row):
            raise KeyboardInterrupt

        for precision in ("bf16", "fp16"):
            run = small(model="mlp", precision=precision)
            trained = train(run, store=Store({str(tmp_path)!r}), progress=False)
            assert trained.tables["test"].scores.dtype == "float32"
            assert trained.history["train_loss"].is_monotonic_decreasing
            elsewhere = Store({str(tmp_path / "elsewhere")!r})
            try:
                train(run, store=elsewhere, progress=False, on_epoch=stop)
            except KeyboardInterrupt:
                assert elsewhere.unfinished(run.key).is_file()
            resumed = train(run, store=elsewhere, progress=False)
            assert (resumed.tables["test"].scores == trained.tables["test"].scores).all()
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
    monkeypatch.setattr(hardware, "PRODUCT", refusal)
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
    monkeypatch.setattr(loop, "fit", lambda *_, **__: pytest.fail("trained again"))
    second = train(small(), store=store, progress=False)
    assert second.path == first.path


def test_again_trains_anew_and_gives_the_same_bits(store, tmp_path):
    first = train(small(model="mlp"), store=store, progress=False)
    scores, before = np.array(first.tables["test"].scores), weights(first)
    made = (first.path / "run.json").stat().st_ino
    again = train(small(model="mlp"), store=store, progress=False, force=True)
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
        runs.append(train(small(model=module, loss=loss), store=store, progress=False, force=True))
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


def test_the_progress_bar_names_the_run_and_its_accuracy(store, capfd, monkeypatch):
    monkeypatch.setattr(progress, "redraws", lambda: True)
    train(small(), store=store, progress=True)
    shown = capfd.readouterr().err
    assert "clouds · linear · CrossEntropy()" in shown
    assert "val_accuracy=" in shown
    assert "\r" in shown


def test_in_a_log_file_training_prints_one_line_an_epoch(store, capfd):
    trained = train(small(epochs=4), store=store, progress=True)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 4
    for epoch, line in enumerate(lines):
        row = trained.history.loc[epoch]
        assert line.startswith("clouds · linear · CrossEntropy()")
        assert f"epoch={epoch + 1}/4, val_accuracy={row.val_accuracy:.1%}, val_loss={row.val_loss:.3f}" in line


def test_in_a_log_file_work_of_unknown_length_prints_a_line_every_so_often(capfd):
    with progress.bar("features", "row", total=1000, every=0.0) as often:
        for _ in range(5):
            often.update()
    with progress.bar("features", "row", total=1000, every=3600) as seldom:
        for _ in range(1000):
            seldom.update()
    *_, fifth, last = capfd.readouterr().err.splitlines()
    assert fifth.startswith("features:   0%")
    assert last.startswith("features: 100%")


# Early stopping


def test_early_stopping_keeps_the_weights_of_the_best_epoch(store):
    noisy = clouds(n=240, spread=4.0)
    run = small(noisy, model="mlp", epochs=40, learning_rate=0.01, monitor="val_loss", patience=3, batch_size=32)
    trained = train(run, store=store, progress=False)
    history = trained.history
    best = int(history["val_loss"].idxmin())
    assert best < len(history) - 1 < 39  # it stopped, and later epochs were worse
    assert len(history) == best + 1 + 3
    assert trained.stored.record.kept_epoch == best
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


# Threads


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


@pytest.mark.parametrize(("width", "noted"), [(8, {1}), (200_000, {2})])
def test_small_steps_train_on_one_thread_and_give_the_others_back(store, width, noted):
    NotingThreads.noted.clear()
    with threads(2):
        train(small(model=NotingThreads(width), epochs=1, batch_size=16), store=store)
        assert NotingThreads.noted == noted
        assert torch.get_num_threads() == 2


# The constant of quasibinary over training (Liao et al., Fig. 2)


def test_the_history_has_mean_and_variance_of_the_constant_over_the_batches_of_each_epoch(store, monkeypatch):
    seen: list[float] = []
    forward = states.Normaliser.forward

    def noted(self, batch_log_C, averaging_rate):
        if self.training:
            seen.append(batch_log_C.exp().item())
        return forward(self, batch_log_C, averaging_rate)

    monkeypatch.setattr(states.Normaliser, "forward", noted)
    history = train(small(loss=losses.Quasibinary(), epochs=3), store=store, progress=False).history
    of_epochs = np.reshape(seen, (3, -1))
    np.testing.assert_allclose(history["normaliser_mean"], of_epochs.mean(1), rtol=1e-5)
    np.testing.assert_allclose(history["normaliser_variance"], of_epochs.var(1), rtol=1e-3)


def test_of_a_softmax_mean_and_variance_are_those_of_the_validation_rows(store):
    trained = train(small(), store=store, progress=False)
    sums = np.exp(trained.tables["val"].scores.astype(float)).sum(1)
    assert trained.metrics["normaliser_mean"] == pytest.approx(sums.mean(), rel=1e-5)
    assert trained.metrics["normaliser_variance"] == pytest.approx(sums.var(), rel=1e-4)


def test_a_normaliser_that_overflows_has_no_finite_variance():
    found = scoring.normalisers(CrossEntropy(), None, torch.tensor([[800.0, 0.0], [1.0, 0.0]]))
    assert (found["normaliser_mean"], found["normaliser_variance"]) == (np.inf, np.inf)
