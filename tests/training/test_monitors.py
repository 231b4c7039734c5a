"""Any metric of the validation rows chooses the epoch, and several do so in one run."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
import torch
from small_runs import clouds, small, tags

import workbench as wb
from workbench import losses
from workbench.cli.main import main
from workbench.datasets import Dataset
from workbench.metrics import accuracy, macro_accuracy, shot_accuracy
from workbench.runs.monitors import METRICS, MONITORS, monitor_named
from workbench.store import RunRecord, Store
from workbench.training import Run, TrainedRun, train
from workbench.training import learner as learning
from workbench.training.monitoring import measured

pytestmark = pytest.mark.usefixtures("one_thread")

SEVERAL = ("top_k_accuracy@K=2", "macro_average_k_accuracy@K=1.5", "val_loss")


def rare_and_common() -> Dataset:
    """Classes with 8 to 250 training rows, each around a centre of its own."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(6), [10, 15, 40, 80, 200, 300])
    rows = rng.normal(size=(6, 5))[labels] + rng.normal(size=(len(labels), 5))
    return Dataset.from_arrays(rows, labels, name="rare and common")


RARE = rare_and_common()


def table_of(many: bool, n: int = 90, n_classes: int = 7, seed: int = 0) -> wb.LogitTable:
    """Scores with ties, some rows without a label, classes of every shot and one without a row."""
    rng = np.random.default_rng(seed)
    scores = np.round(rng.normal(size=(n, n_classes)), 1).astype(np.float32)
    labels = rng.integers(0, n_classes - 1, n)
    several = (labels[:, None] == np.arange(n_classes)) | (rng.random((n, n_classes)) < 0.1)
    several[:, -1] = False
    labels[:5], several[:5] = -1, False
    return wb.LogitTable(scores, several if many else labels, class_counts=[3, 30, 300, 19, 20, 101, 7])


def judged(metric: str, K: float, val: wb.LogitTable) -> float:
    """The same metric, by the rules and metrics that judge tables."""
    rule = wb.TopK(int(K)) if "top_k" in metric else wb.AverageK(K)
    sets, part = rule.fit(val)(val), metric.partition("_")[0]
    if part in ("few", "medium", "many"):
        return shot_accuracy(sets)[part]
    return (macro_accuracy if part == "macro" else accuracy)(sets)


@pytest.mark.filterwarnings("ignore:.* sets are empty")
@pytest.mark.parametrize("many", [False, True], ids=["one label", "many labels"])
@pytest.mark.parametrize("metric", METRICS)
def test_a_monitor_is_the_metric_of_its_name_on_the_validation_rows(metric, many):
    val = table_of(many)
    for K in (1, 3) if "top_k" in metric else (1, 2.5, 4):
        monitor = monitor_named(f"{metric}@K={K}")
        assert measured([monitor], val) == {f"val_{metric}@K={K}": pytest.approx(judged(metric, K, val))}


@pytest.mark.parametrize(
    "loss", [loss() for loss in losses.LOSSES if loss.trains], ids=lambda loss: type(loss).__name__
)
def test_every_loss_is_watched_at_a_K_of_ones_own(loss, store):
    """Also those without a K, and at a K that is not theirs."""
    data = clouds(n_classes=8, n=96)
    names = ("average_k_accuracy@K=3", "macro_top_k_accuracy@K=2")
    trained = train(small(data, loss=loss, epochs=2, monitor=names), store=store, progress=False)
    for name in names:
        kept = trained.kept_by(name)
        metric, K = name.split("@K=")
        at_its_best = trained.history[f"val_{name}"].max()
        assert judged(metric, float(K), kept.tables["val"]) == pytest.approx(at_its_best, abs=1e-6)
        assert trained.history[f"val_{name}"][kept.epoch] == at_its_best


def forced(monkeypatch, values: dict[str, list[float]]) -> None:
    """From now on the histories of monitors have these values, whatever is learnt."""
    monkeypatch.setattr(
        learning, "measured", lambda monitors, val: {m.column: values[m.name].pop(0) for m in monitors if m.sets}
    )


def test_each_monitor_keeps_its_own_best_epoch_and_its_tables(tmp_path, monkeypatch):
    values = {"top_k_accuracy@K=2": [0.1, 0.2, 0.9, 0.3], "few_average_k_accuracy@K=1.5": [0.7, 0.9, 0.1, 0.1]}
    alone = {}
    for name in values:
        forced(monkeypatch, {each: list(column) for each, column in values.items()})
        alone[name] = train(small(RARE, epochs=4, monitor=name), store=Store(tmp_path / name[:3]), progress=False)
    forced(monkeypatch, {each: list(column) for each, column in values.items()})
    together = train(small(RARE, epochs=4, monitor=tuple(values)), store=Store(tmp_path), progress=False)
    assert [together.kept_by(name).epoch for name in values] == [2, 1]
    for name, run in alone.items():
        kept = together.kept_by(name)
        assert kept.epoch == run.stored.record.kept_epoch == run.kept_by(name).epoch
        assert sorted(kept.tables) == ["test", "val"]
        for split in ("val", "test"):
            np.testing.assert_array_equal(kept.tables[split].scores, run.tables[split].scores)
        assert kept.tables["val"].chose_model
        assert not kept.tables["test"].chose_model
    assert sorted(together.tables) == ["test", "val"]  # the first decides the tables, and the weights
    scores = together.model(torch.from_numpy(RARE.test.inputs)).detach()
    np.testing.assert_allclose(scores, together.tables["test"].scores, atol=1e-5)
    assert together.metrics["epoch"] == 2


def test_two_heads_keep_the_tables_of_both_for_each_monitor(store, monkeypatch):
    forced(monkeypatch, {"top_k_accuracy@K=2": [0.1, 0.9], "average_k_accuracy@K=2": [0.9, 0.1]})
    run = small(loss=losses.AverageKTwoHead(K=2.0), epochs=2, monitor=("top_k_accuracy@K=2", "average_k_accuracy@K=2"))
    trained = train(run, store=store, progress=False)
    other = trained.kept_by("average_k_accuracy@K=2")
    assert sorted(other.tables) == sorted(trained.tables) == ["test", "test/candidates", "val", "val/candidates"]
    assert not np.array_equal(other.tables["test/candidates"].scores, trained.tables["test/candidates"].scores)


def test_the_constant_of_quasibinary_is_that_of_the_epoch_that_was_kept(store, monkeypatch):
    forced(monkeypatch, {"macro_top_k_accuracy@K=2": [0.1, 0.9], "average_k_accuracy@K=2": [0.9, 0.1]})
    run = small(loss=losses.Quasibinary(), epochs=2, monitor=("macro_top_k_accuracy@K=2", "average_k_accuracy@K=2"))
    trained = train(run, store=store, progress=False)
    constants = [trained.kept_by(name).tables["test"].link_constant for name in run.monitor]
    assert constants == pytest.approx(trained.history["log_C"].to_numpy()[::-1])


def test_the_first_monitor_alone_decides_patience():
    run = small(epochs=9, monitor=("val_accuracy", "val_loss"), patience=1)
    history = [{"val_accuracy": 1 - i / 10, "val_loss": 1 - i / 10} for i in range(3)]
    assert (run.best_epoch(history), run.best_epochs(history)) == (0, {"val_accuracy": 0, "val_loss": 2})
    assert [run.finished(history[:n]) for n in range(3)] == [False, False, True]


def test_a_conformal_rule_fitted_on_a_val_that_chose_an_epoch_warns_for_each_of_them(store):
    trained = train(small(epochs=2, monitor=SEVERAL), store=store, progress=False)
    for name in SEVERAL:
        with pytest.warns(UserWarning, match="chose"):
            wb.LAC(0.9).fit(trained.kept_by(name).tables["val"])


def test_kept_epochs_are_read_from_the_store_and_from_the_file_that_describes_the_run(store):
    run = Run("digits", model="linear", epochs=3, device="cpu", monitor=list(SEVERAL))
    trained = train(run, store=store, progress=False)
    again = TrainedRun.open(run.key, store)
    assert again.run.monitor == run.monitor == SEVERAL
    assert again.run.key == run.key
    assert [again.kept_by(name).epoch for name in SEVERAL] == list(trained.stored.record.best_epochs.values())
    with pytest.raises(ValueError, match=r"kept no epoch by 'val_accuracy': it watched top_k_accuracy@K=2, macro_"):
        again.kept_by("val_accuracy")
    with pytest.raises(ValueError, match="it has no monitor and kept its last epoch"):
        train(small(), store=store, progress=False).kept_by("val_loss")


def test_a_record_holds_several_monitors_and_refuses_what_is_none():
    def record(facts, **run):
        return RunRecord.from_json({"format": 1, "run": run, "facts": {"title": "mine", **facts}})

    told = record({"best_epochs": dict.fromkeys(SEVERAL, 1), "kept_epoch": 1}, monitor=list(SEVERAL))
    assert RunRecord.from_json(told.to_json()) == told
    for monitor in ([3], 3, "val_lost"):
        with pytest.raises(ValueError, match="monitor = "):
            record({}, monitor=monitor)
    with pytest.raises(ValueError, match="best_epochs cannot be"):
        record({"best_epochs": {"val_loss": -1}})


def test_a_name_is_brought_into_one_form_so_that_the_same_run_has_one_key():
    assert small(monitor="top_k_accuracy@K=3.0").monitor == "top_k_accuracy@K=3"
    assert small(monitor=["val_loss"]).key == small(monitor="val_loss").key
    assert small(monitor=()).key == small().key
    keys = {small(monitor=monitor).key for monitor in (None, "val_loss", SEVERAL, SEVERAL[::-1], SEVERAL[:2])}
    assert len(keys) == 5


@pytest.mark.parametrize(
    ("monitor", "message"),
    [
        ("top_k_accuracy", "is not watched; give one of val_loss, .*'average_k_accuracy@K=3'"),
        ("accuracy@K=3", "is not watched"),
        ("top_k_accuracy@K=", "is not watched"),
        ("top_k_accuracy@K=2.5", r"K = 2\.5; give a whole number ≥ 1, such as top_k_accuracy@K=3"),
        ("average_k_accuracy@K=0", "K = 0; give a number above 0, such as average_k_accuracy@K=3"),
        ("average_k_accuracy@K=many", "K = many; give a number above 0"),
        ("average_k_accuracy@K=inf", "K = inf; give a number above 0"),
        (("val_loss", 3), r"monitor = \('val_loss', 3\); give one of .* several of them as a tuple"),
        (3, "monitor = 3; give one of"),
        (("top_k_accuracy@K=3", "top_k_accuracy@K=3.0"), "names one of them twice"),
    ],
)
def test_a_monitor_that_is_none_says_what_is_allowed_with_an_example(monitor, message):
    with pytest.raises(ValueError, match=message):
        small(monitor=monitor)


def test_what_is_allowed_lists_every_metric():
    with pytest.raises(ValueError, match=re.escape(", ".join(MONITORS))):
        small(monitor="beauty")


def test_sets_of_all_classes_choose_nothing(store):
    with pytest.raises(ValueError, match="clouds has 6 classes: sets of all of them are always right; give a K below"):
        train(small(monitor="average_k_accuracy@K=6"), store=store)


def test_a_shot_without_a_class_says_which_there_are(store):
    said = r"no class of the validation rows of clouds has few training rows \(few < 20 ≤ .*give medium_… or macro_…"
    with pytest.raises(ValueError, match=said):
        train(small(monitor="few_average_k_accuracy@K=3"), store=store)


def test_rows_that_all_have_more_labels_than_K_need_a_metric_of_labels(store):
    rows = np.random.default_rng(0).normal(size=(120, 4))
    labels = np.ones((120, 4), bool)
    labels[np.arange(120), rows.argmin(1)] = False
    data = Dataset.from_arrays(rows, labels, name="triples")
    run = small(data, loss=losses.BinaryCrossEntropy(), monitor="top_k_accuracy@K=2")
    with pytest.raises(
        ValueError, match=r"more than 2 labels, .* or macro_top_k_accuracy@K=2, which counts every label"
    ):
        train(run, store=store)
    trained = train(dataclasses.replace(run, monitor="macro_top_k_accuracy@K=2"), store=store, progress=False)
    assert 0 < trained.metrics["val_macro_top_k_accuracy@K=2"] < 1


@pytest.mark.parametrize("metric", [metric for metric in METRICS if metric.partition("_")[0] not in ("few", "many")])
def test_rows_with_many_labels_are_watched_by_every_metric_that_their_classes_allow(metric, store):
    run = small(tags(), loss=losses.BinaryCrossEntropy(), epochs=1, monitor=f"{metric}@K=2")
    assert 0 <= train(run, store=store, progress=False).metrics[f"val_{metric}@K=2"] <= 1


def test_the_command_line_takes_several_monitors_with_commas_or_one_by_one(capsys):
    digits = ["train", "--dataset", "digits", "--model", "linear", "--epochs", "2"]
    assert main([*digits, "--monitor", "top_k_accuracy@K=2,val_loss", "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert first["best_epochs"].keys() == {"top_k_accuracy@K=2", "val_loss"}
    assert main([*digits, "--monitor", "top_k_accuracy@K=2", "--monitor", "val_loss"]) == 0
    text = capsys.readouterr().out
    assert f"stored as {first['key'][:12]}" in text
    assert re.search(r"best in val_loss: epoch \d of 2, val_loss \d\.\d+", text)
    assert main([*digits, "--monitor", "beauty"]) == 2
    assert "monitor = 'beauty' is not watched; give one of val_loss, val_accuracy" in capsys.readouterr().err
