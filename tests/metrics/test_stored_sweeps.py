"""Sweeps that are found in the store: runs that differ in one knob, and perhaps in a second."""

from __future__ import annotations

import dataclasses
import hashlib
import json

import numpy as np
import pytest

import workbench as wb
from workbench.metrics.seeds import mean_over_seeds
from workbench.metrics.sweeps import stored_sweeps


def keep(store, *, epsilon, K=3, seed=0, class_counts=None, **settings):
    """A run as training leaves it: the larger epsilon, the better its scores."""
    key = hashlib.sha256(f"{epsilon} {K} {seed} {settings}".encode()).hexdigest()
    loss = {"loss": "NoisedTopK", "knobs": {"K": K, "epsilon": epsilon}}
    run = {"dataset": {"name": "none"}, "dataset_key": "d", "model": "mlp", "loss": loss, "epochs": 5, "seed": seed}
    content = {"format": 1, "run": run | settings, "facts": {"title": key}}
    random = np.random.default_rng(seed)
    labels = random.integers(0, 6, 80)
    scores = random.normal(size=(80, 6)) + epsilon * np.eye(6)[labels]
    with store.writing(key) as directory:
        (directory / "run.json").write_text(json.dumps(content), encoding="utf-8")
        for split in ("val", "test"):
            wb.LogitTable(scores.astype(np.float32), labels, class_counts=class_counts).save(directory / split)


def found(store):
    return [sweep for sweep in stored_sweeps(store.runs()) if all(run.path.parent == store.root for run in sweep.runs)]


def test_three_values_of_a_knob_are_a_sweep_and_two_are_not(store):
    keep(store, epsilon=0.1)
    keep(store, epsilon=1.0)
    assert found(store) == []
    keep(store, epsilon=2.0)
    (sweep,) = found(store)
    assert (sweep.knob, sweep.beside, len(sweep.runs)) == ("loss.epsilon", None, 3)


def test_a_second_knob_tells_lines_apart_and_a_third_makes_sweeps_of_their_own(store):
    for epsilon in (0.1, 1.0, 2.0):
        for K in (1, 3):
            keep(store, epsilon=epsilon, K=K)
    (sweep,) = found(store)
    assert (sweep.knob, sweep.beside, len(sweep.runs)) == ("loss.epsilon", "loss.K", 6)
    for epsilon in (0.1, 1.0, 2.0):
        keep(store, epsilon=epsilon, K=1, epochs=9)
    assert [(sweep.knob, sweep.beside, len(sweep.runs)) for sweep in found(store)] == [("loss.epsilon", None, 3)] * 3


def test_runs_on_other_data_and_runs_without_a_loss_belong_to_no_sweep_of_these(store):
    for epsilon in (0.1, 1.0):
        keep(store, epsilon=epsilon)
    keep(store, epsilon=2.0, dataset_key="other")
    keep(store, epsilon=3.0, loss=None)
    assert found(store) == []


def test_a_knob_of_the_data_is_swept_like_one_of_the_loss(store):
    def on(rho, seed=0):
        spec = {"name": "garden", "knobs": {"rho": rho, "seed": seed}}
        keep(store, epsilon=1.0, dataset=spec, dataset_key=f"garden {rho} {seed}")

    on(0.1)
    on(0.2)
    on(0.3, seed=1)  # another garden
    on(0.4, seed=2)
    assert found(store) == []
    on(0.3)
    (sweep,) = found(store)
    assert (sweep.knob, sweep.beside, len(sweep.runs)) == ("data.rho", None, 3)
    figure = wb.figures.against_knob(sweep.summary(wb.AverageK(2.0)), "data.rho")
    assert figure.frame["x"].drop_duplicates().tolist() == [0.1, 0.2, 0.3]


def test_the_summary_is_the_mean_over_seeds_of_what_report_says(store):
    for epsilon in (0.5, 1.0, 2.0):
        for seed in range(3):
            keep(store, epsilon=epsilon, seed=seed)
    (sweep,) = found(store)
    rule = wb.AverageK(2.0)
    summary = sweep.summary(rule, [wb.metrics.accuracy])
    for line in summary.to_dict("records"):
        runs = [run for run in sweep.runs if run.record.loss_knobs["epsilon"] == line["loss.epsilon"]]
        values = [wb.metrics.accuracy(rule.fit(run.tables["val"]).sets(run.tables[line["split"]])) for run in runs]
        assert line["seeds"] == 3
        assert line["mean"] == pytest.approx(np.mean(values))
        spread = line["mean"] * (1 - line["mean"])  # of a share the interval is in log-odds
        reach = np.log(line["high"] / (1 - line["high"])) - np.log(line["mean"] / (1 - line["mean"]))
        assert reach * spread == pytest.approx(4.302653 * np.std(values, ddof=1) / np.sqrt(3))
    figure = wb.figures.against_knob(summary, "loss.epsilon")
    assert figure.frame["x"].tolist() == [0.5, 1.0, 2.0]
    assert "95 % intervals" in figure.subtitle


def test_groups_of_few_and_many_training_images_are_kept_and_drawn(store):
    for epsilon in (0.1, 1.0, 2.0):
        keep(store, epsilon=epsilon, class_counts=[5, 5, 50, 50, 200, 200])
    summary = found(store)[0].summary(wb.AverageK(2.0))
    of_groups = summary.query("metric == 'shot_accuracy' and split == 'test'")
    assert of_groups["group"].tolist() == ["few", "medium", "many"] * 3
    assert set(summary["rule"]) == {"AverageK(K=2)", ""}
    panels = wb.figures.against_knob(summary, "loss.epsilon").panels()
    assert {"shot_accuracy (few)", "shot_accuracy (medium)", "shot_accuracy (many)"} <= panels.keys()


def test_one_seed_has_no_interval(store):
    for epsilon in (0.1, 1.0, 2.0):
        keep(store, epsilon=epsilon)
    (sweep,) = found(store)
    summary = sweep.summary(wb.AverageK(2.0))
    assert summary["low"].isna().all()
    assert "no interval" in wb.figures.against_knob(summary, "loss.epsilon").subtitle


def test_what_was_not_varied_or_is_no_number_is_refused_in_words(store):
    for epsilon in (0.1, 1.0, 2.0):
        keep(store, epsilon=epsilon)
    summary = found(store)[0].summary(wb.AverageK(2.0))
    with pytest.raises(ValueError, match=r"'loss\.K' is not a number that was varied; give one of loss\.epsilon"):
        wb.figures.against_knob(summary, "loss.K")
    with pytest.raises(ValueError, match="the summary has test, val"):
        wb.figures.against_knob(summary, "loss.epsilon", split="train")
    assert list(mean_over_seeds(summary.assign(value=1.0), []).columns[:3]) == ["rule", "split", "metric"]


def test_a_run_that_was_trained_again_is_measured_again(store):
    for epsilon in (0.5, 1.0, 2.0):
        keep(store, epsilon=epsilon)
    before = found(store)[0].frame()
    run = found(store)[0].runs[0]
    table = run.tables["test"]
    with store.writing(run.key, replace=True) as directory:
        (directory / "run.json").write_text(json.dumps(run.record.to_json()), encoding="utf-8")
        for split in ("val", "test"):
            dataclasses.replace(table, labels=np.asarray(table.scores).argmin(axis=1)).save(directory / split)
    after = found(store)[0].frame()
    changed = after["run"] == run.key
    assert (after["value"] != before["value"])[changed].any()
    assert after[~changed].equals(before[~changed])


def test_a_damaged_run_is_left_out_of_its_sweep_and_told_of(store):
    for epsilon in (0.5, 1.0, 2.0):
        keep(store, epsilon=epsilon)
    (sweep,) = found(store)
    damaged = sweep.runs[1]
    file = damaged.path / "test" / "scores.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"?")  # only reading it tells
    with pytest.warns(UserWarning, match=f"a run is left out: run {damaged.key[:12]}: test/scores.npy is damaged"):
        frame = found(store)[0].frame(wb.AverageK(2.0))
    assert set(frame["run"]) == {run.key for run in sweep.runs} - {damaged.key}
