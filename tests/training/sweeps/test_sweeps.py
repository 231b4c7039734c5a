"""A sweep trains every setting once, tells of each, tunes on val and reports test."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest
from scipy import stats
from torch import nn

from workbench import metrics
from workbench.cli.sweep import SWEEP
from workbench.datasets import Dataset, LabelNoise
from workbench.losses import CrossEntropy, NoisedTopK
from workbench.runs import grid
from workbench.sets import AverageK
from workbench.store import Store
from workbench.training import Run, many_runs
from workbench.training.sweeps import Sweep, sweep

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def run() -> Run:
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 6
    rows = rng.normal(size=(6, 5))[labels] + rng.normal(size=(300, 5))
    data = Dataset.from_arrays(rows, labels, name="clouds", groups=["a", "a", "a", "b", "b", "b"])
    return Run(data, model="linear", loss=NoisedTopK(K=2), epochs=2, batch_size=64, device="cpu")


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Store:
    return Store(tmp_path_factory.mktemp("runs"))


GRID = {"loss.epsilon": [0.1, 1.0], "learning_rate": [1e-4, 0.1], "seed": range(3)}


@pytest.fixture(scope="module")
def swept(run, store) -> Sweep:
    return sweep(run, GRID, rule=AverageK(2), store=store, progress=False)


def test_a_grid_trains_every_combination(run, swept):
    assert len({trained.run.key for trained in swept.runs}) == len(swept.runs) == 12
    for trained, setting in zip(swept.runs, swept.settings, strict=True):
        assert trained.run.loss == NoisedTopK(K=2, epsilon=setting["loss.epsilon"])
        assert (trained.run.learning_rate, trained.run.seed) == (setting["learning_rate"], setting["seed"])
        assert trained.run.epochs == run.epochs


def test_the_frame_is_tidy_and_says_what_the_metrics_say(swept):
    frame = swept.frame
    names = ["loss.epsilon", "learning_rate", "seed", "run", "rule", "split", "metric", "group", "value", "n"]
    assert frame.columns.tolist() == names
    assert not frame.duplicated(["run", "split", "metric", "group"]).any()
    of_sets = frame["metric"].isin(["accuracy", "macro_accuracy", "shot_accuracy", "count_bin_accuracy", "mean_size"])
    assert (frame["rule"] == np.where(of_sets, "AverageK(K=2)", "")).all()
    trained = swept.runs[4]
    sets = AverageK(2).fit(trained.tables["val"])(trained.tables["test"])
    of_run = frame[frame["run"] == trained.run.key]
    line = of_run.query("split == 'test' and metric == 'accuracy'")
    assert line["value"].item() == pytest.approx(metrics.accuracy(sets))
    assert line["n"].item() == len(sets.sizes)


def test_the_summary_is_the_mean_over_seeds_with_students_interval(swept):
    summary, frame = swept.summary(), swept.frame
    line = summary.iloc[0]
    values = frame[
        (frame["loss.epsilon"] == line["loss.epsilon"])
        & (frame["learning_rate"] == line["learning_rate"])
        & (frame["split"] == line["split"])
        & (frame["metric"] == line["metric"])
    ]["value"].to_numpy()
    odds = values.mean() / (1 - values.mean())  # of a share the interval is in log-odds
    reach = stats.t.ppf(0.975, 2) * stats.sem(values) / (values.mean() * (1 - values.mean()))
    low, high = (odds * np.exp(sign * reach) / (1 + odds * np.exp(sign * reach)) for sign in (-1, 1))
    assert (line["mean"], line["low"], line["high"], line["seeds"]) == pytest.approx((values.mean(), low, high, 3))


def test_one_seed_has_a_mean_and_no_interval(run, store):
    summary = sweep(run, {"learning_rate": [1e-4, 0.1]}, store=store, progress=False).summary()
    assert summary.loc[summary["group"] == "", "mean"].notna().all()  # some groups have no class
    assert summary[["low", "high"]].isna().all(axis=None)


@pytest.mark.parametrize("metric", ["accuracy", "negative_log_likelihood"])
def test_the_best_setting_is_chosen_on_val_and_reported_on_test(swept, metric):
    best = swept.best(metric)
    of_metric = swept.summary().query("metric == @metric")
    on_val = of_metric.query("split == 'val'")
    place = on_val["mean"].idxmax() if metric == "accuracy" else on_val["mean"].idxmin()
    chosen = on_val.loc[place, ["loss.epsilon", "learning_rate"]].to_dict()
    assert best.settings == chosen
    assert [trained.run.seed for trained in best.runs] == [0, 1, 2]
    frame = swept.frame
    keys = [trained.run.key for trained in best.runs]
    test = frame[frame["run"].isin(keys) & (frame["split"] == "test") & (frame["metric"] == metric)]["value"]
    assert best.test["mean"] == pytest.approx(test.mean())
    assert best.test["low"] < best.test["mean"] < best.test["high"]


def test_a_list_of_settings_is_trained_as_it_stands_and_gaps_are_filled_from_the_run(run, store):
    settings = [{"loss": CrossEntropy()}, {"loss.epsilon": 0.5, "seed": 1}]
    swept = sweep(run, settings, store=store, progress=False)
    assert [trained.run.loss for trained in swept.runs] == [CrossEntropy(), NoisedTopK(K=2, epsilon=0.5)]
    assert swept.settings[1] == {"loss": swept.runs[1].run.loss, "loss.epsilon": 0.5, "seed": 1}
    assert swept.settings[0] == {"loss": CrossEntropy(), "loss.epsilon": "", "seed": 0}
    assert len(swept.summary().query("metric == 'accuracy' and split == 'test'")) == 2


def test_transforms_and_datasets_can_be_varied(run, store):
    swept = sweep(run, {"transforms": [(), (LabelNoise(0.5),)]}, store=store, progress=False)
    assert [trained.run.transforms for trained in swept.runs] == [(), (LabelNoise(0.5),)]
    assert swept.frame["transforms"].unique().tolist() == ["()", repr((LabelNoise(0.5),))]


def test_knobs_of_the_dataset_can_be_varied(run, store):
    digits = Run("digits", model="linear", epochs=1, device="cpu")
    swept = sweep(digits, [{"data.seed": 3}, {"data.seed": 4}, {"seed": 1}], store=store, progress=False)
    assert [trained.run.data.spec["knobs"]["seed"] for trained in swept.runs] == [3, 4, 0]
    assert [setting["data.seed"] for setting in swept.settings] == [3, 4, 0]
    with pytest.raises(ValueError, match="digits has no knob size; it has seed"):
        sweep(digits, {"data.size": [3]}, store=store)
    with pytest.raises(ValueError, match="clouds was given as arrays and has no knobs to vary"):
        sweep(run, {"data.seed": [3]}, store=store)


def test_settings_may_come_one_by_one_and_an_equal_one_counts_once(run, store):
    swept = sweep(run, ({"seed": seed} for seed in (0, 1, 0)), store=store, progress=False)
    assert swept.settings == ({"seed": 0}, {"seed": 1})
    assert swept.best("accuracy").test["seeds"] == 2


def test_the_interval_of_one_seed_is_null_in_json(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    SWEEP.reads(["--dataset", "digits", "--model", "linear", "--epochs", "1", "--over", "seed", "0", "--json"])
    best = json.loads(capsys.readouterr().out, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))["best"]
    assert (best["test"]["low"], best["test"]["high"], best["test"]["seeds"]) == (None, None, 1)


def test_a_sweep_goes_on_where_it_stopped_and_prints_a_line_for_each_run(run, tmp_path, monkeypatch, capsys):
    run = dataclasses.replace(run, micro_batches=2)  # in pieces, so that runs are trained one after the other
    store, grid, trained = Store(tmp_path), {"seed": range(4)}, []
    real = many_runs.train

    def stops(one, **options):
        if len(trained) == 2:
            raise KeyboardInterrupt
        trained.append(one.seed)
        return real(one, **options)

    monkeypatch.setattr(many_runs, "train", stops)
    with pytest.raises(KeyboardInterrupt):
        sweep(run, grid, store=store)
    assert trained == [0, 1]
    assert re.search(r"stopped, about \d+ (s|min) left$", capsys.readouterr().err)
    monkeypatch.setattr(many_runs, "train", real)
    capsys.readouterr()
    assert len(sweep(run, grid, store=store).runs) == 4
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[:2] for line in lines] == [[f"{n + 1}/4", f"seed={n}"] for n in range(4)]
    assert [line.endswith("stored") for line in lines] == [True, True, False, False]
    assert "s left" in lines[2]
    assert "left" not in lines[3]


def test_a_run_that_diverges_is_told_of_and_its_setting_is_never_the_best(run, tmp_path, monkeypatch):
    run = dataclasses.replace(run, micro_batches=2)  # in pieces, so that each is trained alone
    real = many_runs.train

    def breaks(one, **options):
        if (one.learning_rate, one.seed) == (0.1, 1):
            raise FloatingPointError("the loss is nan")
        return real(one, **options)

    monkeypatch.setattr(many_runs, "train", breaks)
    swept = sweep(run, {"learning_rate": [1e-4, 0.1], "seed": [0, 1]}, store=Store(tmp_path), progress=False)
    assert swept.failed == (({"learning_rate": 0.1, "seed": 1}, "the loss is nan"),)
    assert len(swept.runs) == 3
    assert swept.best("accuracy").settings == {"learning_rate": 1e-4}


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ({}, "over is empty"),
        ([], "over is empty"),
        ({"seed": 3}, r"over: seed = 3; give a list of values"),
        ({"model": "mlp"}, "over: model = 'mlp'; give a list of values"),
        ({"epsilon": [0.1]}, r"a run has no epsilon; it has dataset, model, .*loss\.… for its knobs"),
        ({"loss.alpha": [0.1]}, "NoisedTopK has no knob alpha; it has K, epsilon, n_samples"),
        ({"loss.epsilon": [0.1, -1]}, "epsilon = -1"),
        ({"loss.K": [2, 6]}, "K = 6 with 6 classes"),
        ({"micro_batches": [1, 100]}, "cannot share"),
        ({"model": ["linear", "cnn"]}, "cnn looks at images"),
        ({"loss": ["CrossEntropy"]}, r"over: loss = 'CrossEntropy' is not a loss; give some such as CrossEntropy\(\)"),
        (
            {"dataset": [Dataset.from_arrays(np.eye(20), np.zeros(20, int))], "loss": [CrossEntropy()]},
            "a loss needs at least 2",
        ),
    ],
)
def test_a_wrong_setting_is_refused_before_anything_is_trained(run, tmp_path, over, message):
    with pytest.raises(ValueError, match=message):
        sweep(run, over, store=Store(tmp_path), progress=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"run": "letters"}, "sweep takes a Run, such as"),
        ({"over": 3}, "over = 3; give a grid"),
        ({"over": [3]}, r"over = \[3\]; give a grid"),
        ({"rule": "AverageK(K=2)"}, "give a rule such as AverageK"),
        ({"metrics": ["accuracy"]}, "'accuracy' is not a metric"),
        ({"store": "runs"}, "give a Store"),
    ],
)
def test_what_a_sweep_cannot_use_is_refused_before_anything_is_trained(run, monkeypatch, options, message):
    monkeypatch.setattr(many_runs, "train", lambda *_, **__: pytest.fail("trained first"))
    with pytest.raises((TypeError, ValueError), match=message):
        sweep(**{"run": run, "over": {"seed": [0]}, "progress": False, **options})


def test_settings_are_not_chosen_on_test_nor_by_what_was_not_measured(swept):
    with pytest.raises(ValueError, match="chosen on 'val', so that test stays a judge"):
        swept.best("accuracy", split="test")
    with pytest.raises(ValueError, match="metric = 'group_accuracy' does not rank settings; give one of accuracy"):
        swept.best("group_accuracy")
    with pytest.raises(ValueError, match="group = 'few': accuracy is one number, of no group; leave group out"):
        swept.best("accuracy", group="few")


def test_python_shows_a_sweep_in_a_line(swept):
    varied = ", ".join(swept.varied)
    assert repr(swept) == f"Sweep({len(swept.runs)} runs over {varied})"
    first = swept.varied[0]
    each = swept.best_of_each(first, "accuracy")
    assert repr(each) == f"BestOfEach({len(each)} settings, one for each {first})"


def test_a_dataset_named_in_a_run_is_loaded_once(store, monkeypatch):
    real, loaded = grid.load_dataset, []
    monkeypatch.setattr(grid, "load_dataset", lambda name: loaded.append(name) or real(name))
    run = Run("digits", model="linear", epochs=1, device="cpu")
    sweep(run, {"seed": range(2)}, store=store, progress=False)
    assert loaded == ["digits"]
    assert dataclasses.replace(run, seed=1).key in {stored.key for stored in store.runs()}


def test_data_and_modules_that_look_alike_are_told_apart(run, store):
    rows = np.random.default_rng(1).normal(size=(120, 5))
    twins = [Dataset.from_arrays(rows + shift, np.arange(120) % 3, name="twin") for shift in (0.0, 1.0)]
    over = {"dataset": twins, "model": [nn.Linear(5, 4), nn.Linear(5, 4)]}
    found = sweep(run, over, rule=AverageK(2), metrics=[metrics.accuracy], store=store, progress=False)
    assert len(found.summary()) == 2 * 4  # val and test of four settings
    assert len(found.best("accuracy").runs) == 1


def test_a_sweep_keeps_metrics_that_are_a_number_for_each_group_and_chooses_by_one_of_them(run, store):
    judged = [metrics.shot_accuracy, metrics.accuracy_by_size]
    found = sweep(run, {"seed": [0, 1]}, rule=AverageK(2), metrics=judged, store=store, progress=False)
    kept = found.frame.query("metric == 'shot_accuracy' and split == 'test'")
    assert kept["group"].tolist() == ["few", "medium", "many"] * 2
    trained = found.runs[0]
    sets = AverageK(2).fit(trained.tables["val"]).sets(trained.tables["test"])
    assert dict(zip(kept["group"], kept["value"][:3], strict=False)) == pytest.approx(
        metrics.shot_accuracy(sets), nan_ok=True
    )
    assert {"few", "medium", "many"} <= set(found.summary()["group"])
    present = kept.loc[kept["value"].notna(), "group"].iloc[0]
    assert found.best("shot_accuracy", group=present).test["seeds"] == 2
    with pytest.raises(ValueError, match="shot_accuracy is a number for each of few, medium, many; give one of them"):
        found.best("shot_accuracy")


def test_a_sweep_says_the_K_of_top_k_accuracy_and_is_asked_with_it_or_without(swept):
    assert "top_k_accuracy@K=1" in set(swept.frame["metric"])
    assert swept.best("top_k_accuracy").metric == "top_k_accuracy@K=1"
    assert swept.best("top_k_accuracy").settings == swept.best("top_k_accuracy@K=1").settings
