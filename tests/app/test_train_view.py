"""The Train view in a real browser: what it trains is what the library trains, and its pictures show just that."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import (
    KEYS,
    RUDE,
    arrives,
    asks,
    choose,
    click,
    figure,
    numbers,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)

import workbench as wb
from workbench.metrics.sweeps import chosen_on_val, stored_sweeps
from workbench.store.lru_store import LRUStore
from workbench.workers.client import head_of

pytestmark = pytest.mark.browser
NEW = {"train": "A new run", "data": "digits", "recipe": "quick-rows"}


def tiles(place):
    """Name and value of the numbers of a page, or of a part of it."""
    return place.locator("[data-testid=stMetric]").evaluate_all(
        "all => all.map(tile => [tile.querySelector('label').textContent, "
        "tile.querySelector('[data-testid=stMetricValue]').textContent])"
    )


@pytest.fixture
def digits(store, monkeypatch):
    """A small trained run in the server's store."""
    from workbench.training import Run, train

    trained = train(Run("digits", model="mlp", epochs=2, device="cpu"), store=store, progress=False)
    monkeypatch.setitem(KEYS, "digits", trained.run.key)
    return trained


@pytest.mark.writes
def test_a_run_is_trained_with_live_curves_and_opens_in_sets(opened, store, monkeypatch):
    page = opened(view="train", wait_for="text=What learns", **NEW, **{"epochs_quick-rows": 3})
    shown = shown_code(page.locator(".st-key-bar"))
    page.keyboard.press("Escape")
    click(page.get_by_role("button", name="Train", exact=True))
    says(page, "Trained and kept")
    settled(page)
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    made = {}
    exec(shown, made)  # reads what the page has trained: the same run has the same key
    run = made["trained"]
    assert run.path.parent == store.root
    assert len(run.history) == 3
    curves = figure(page, "learning")["data"]
    np.testing.assert_allclose(curves[0]["y"], run.history["train_loss"], rtol=1e-6)
    np.testing.assert_allclose(curves[3]["y"], run.history["val_accuracy"], rtol=1e-6)
    assert serious_violations(page) == []
    assert too_wide(page) == 0

    click(page.get_by_role("button", name="Open in Sets"))
    arrives(page, "Sets")
    settled(page)
    sets = wb.AverageK().fit(made["val"]).sets(made["test"])
    assert numbers(page)["Correct"] == f"{wb.metrics.accuracy(sets):.1%}"


@pytest.mark.writes
def test_training_survives_the_page_can_be_cancelled_and_tells_in_words_what_went_wrong(opened):
    long = {**NEW, "data": "letters", "epochs_quick-rows": 100}
    page = opened(view="train", wait_for="text=What learns", **long)
    click(page.get_by_role("button", name="Train", exact=True))
    says(page, re.compile(r"[Ee]poch \d+ of 100, about"))
    assert page.get_by_role("button", name="Train", exact=True).is_disabled()
    page = opened(view="train", wait_for="text=What learns", **long)
    says(page, re.compile(r"[Ee]poch \d+ of 100, about"))
    click(page.get_by_role("button", name="Cancel"))
    says(page, "Cancelled.")
    too_many = {"new_loss": "Noised top-K", "new_NoisedTopK_K": 15}
    page = opened(view="train", wait_for="text=What learns", **NEW, **too_many)
    click(page.get_by_role("button", name="Train", exact=True))
    says(page, "K = 15 with 10 classes")
    page = opened(
        view="train", wait_for="text=What learns", **NEW | {"data": "a path on this machine"}, path=f"/nowhere/{RUDE}"
    )
    says(page, "no such path")


@pytest.mark.writes
def test_a_moved_knob_trains_the_head_again_and_the_pictures_follow(opened, digits, store):
    page = opened("digits", view="train", wait_for=".st-key-result", live_loss="Noised top-K", width=1024)
    says(page, "Trained Noised top-K, K = 5, ε = 0.2:")
    settled(page)
    page.evaluate(
        """() => new MutationObserver(() => {
            window.dimmed ||= getComputedStyle(document.querySelector(".st-key-result")).opacity < 1;
        }).observe(document.body, { childList: true, subtree: true })"""
    )
    page.get_by_role("slider", name=re.compile("^K")).press("ArrowLeft")  # ε alone is trained ahead
    says(page, "Trained Noised top-K, K = 4, ε = 0.2:")
    settled(page)
    assert page.evaluate("() => window.dimmed")
    page.get_by_role("slider", name=re.compile("^K")).press("ArrowRight")
    says(page, "Trained Noised top-K, K = 5, ε = 0.2:")
    settled(page)
    slider = page.get_by_role("slider", name=re.compile("^ε"))
    slider.press("ArrowRight")
    epsilon = next(value for value in wb.losses.NoisedTopK.knobs()["epsilon"].values(21).tolist() if value > 0.2)
    says(page, f"Trained Noised top-K, K = 5, ε = {epsilon:g}:")
    says(page, f"Shown: digits · head of MLP · Noised top-K, K = 5, ε = {epsilon:g}")
    settled(page)
    run = LRUStore(store).find(head_of(digits.stored, wb.losses.NoisedTopK(K=5, epsilon=epsilon)))
    sets = wb.AverageK(5.0).fit(run.tables["val"]).sets(run.tables["val"])  # a knob is chosen on these rows
    expected = {"Correct": f"{wb.metrics.accuracy(sets):.1%}", "Mean size": f"{wb.metrics.mean_size(sets):.2f}"}
    assert dict(tiles(page)).items() >= expected.items()
    says(page, "Keep the run to see test results")
    sizes = wb.figures.set_sizes(sets).frame
    np.testing.assert_allclose(figure(page, "live-sizes")["data"][0]["y"][: len(sizes)], sizes["share"], atol=1e-6)
    assert serious_violations(page) == []
    assert too_wide(page) == 0

    slider.press("ArrowLeft")  # a value seen before
    says(page, "Shown: digits · head of MLP · Noised top-K, K = 5")
    click(page.get_by_role("button", name="Keep this run"))
    says(page, "Open in Compare")
    kept = LRUStore(store).find(head_of(digits.stored, wb.losses.NoisedTopK(K=5, epsilon=0.2)))
    assert store.open(kept.key).path.parent == store.root
    settled(page)
    sets = wb.AverageK(5.0).fit(kept.tables["val"]).sets(kept.tables["test"])
    assert ["Correct", f"{wb.metrics.accuracy(sets):.1%}"] in tiles(page.locator(".st-key-numbers-test"))

    slider.press("ArrowRight")
    asks(page, live_NoisedTopK_epsilon=f"{epsilon:g}")
    page.goto(page.url)
    says(page, f"Shown: digits · head of MLP · Noised top-K, K = 5, ε = {epsilon:g}")


def test_scores_without_a_network_say_that_there_is_no_head_to_train(opened):
    page = opened("no labels", view="train", wait_for="[data-testid=stAlert]", scheme="dark")
    for run in ("garden", "many labels", "no labels"):
        choose(page, "Run", run)
        says(page, f"{run} has scores but no network")
        settled(page)
        assert serious_violations(page) == []


@pytest.mark.writes
def test_a_sweep_of_the_store_is_drawn_as_small_multiples(opened, store, monkeypatch):
    about = json.loads((store.open(KEYS["garden"]).path / "run.json").read_text(encoding="utf-8"))
    run = {**(about["run"] or {}), "dataset_key": "d", "model": "cnn", "seed": 0}
    for place, epsilon in enumerate((0.1, 0.5, 1.0)):
        loss = {"loss": "NoisedTopK", "knobs": {"K": 3, "epsilon": epsilon}}
        tables = store.open(KEYS["sharper"]).tables
        with store.writing(str(place) * 64) as directory:
            (directory / "run.json").write_text(json.dumps({**about, "run": {**run, "loss": loss}}), encoding="utf-8")
            for split in ("val", "test"):
                dataclasses.replace(tables[split], scores=tables[split].scores * epsilon).save(directory / split)
    page = opened(view="train", train="Sweeps", sweep_K=3, width=1024, scheme="dark")
    (sweep,) = [each for each in stored_sweeps(store.runs()) if each.runs[0].record.run["dataset_key"] == "d"]
    summary = sweep.summary(wb.AverageK(3.0))
    expected = wb.figures.against_knob(summary, "loss.epsilon", split="val")  # a setting is chosen on these rows
    first = expected.frame[expected.frame["metric"] == expected.frame["metric"][0]]
    drawn = figure(page, "sweep")["data"]
    assert len(drawn) == expected.frame["metric"].nunique()
    np.testing.assert_allclose(drawn[0]["x"], [0.1, 0.5, 1.0])
    np.testing.assert_allclose(drawn[0]["y"], first["mean"], atol=1e-6)
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    made = {}
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    exec(shown_code(page.locator(".st-key-figure-sweep")), made)
    pd.testing.assert_frame_equal(made["figure"].frame, expected.frame)
    page.keyboard.press("Escape")

    choose(page, "Best by", "Negative log-likelihood")
    best = chosen_on_val(summary, ["loss.epsilon"], "negative_log_likelihood")
    says(page, f"Best on the validation rows by negative log-likelihood: ε = {best['loss.epsilon'].iloc[0]:g}")
    settled(page)
    test = best[best["split"] == "test"].set_index("metric")["mean"]
    assert (
        dict(tiles(page)).items()
        >= {
            "Coverage": f"{test['accuracy']:.1%}",
            "Top-1 accuracy": f"{test['top_k_accuracy@K=1']:.1%}",
            "Negative log-likelihood": f"{test['negative_log_likelihood']:.2f}",
        }.items()
    )
    assert page.get_by_text("Rows", exact=True).count() == 0  # of test rows nothing but the chosen one is shown


@pytest.mark.writes
def test_a_sweep_says_its_cost_before_it_is_started_and_goes_on_past_a_setting_that_fails(opened, store, monkeypatch):
    asked = {"data": "digits", "recipe": "quick-rows", "epochs_quick-rows": 2, "new_loss": "Noised top-K"}
    asked |= {"vary_NoisedTopK": "K", "values_NoisedTopK_K": "2, 15, 3, 4", "values_run_seed": "0, 1"}
    page = opened(view="train", wait_for="text=What to vary", train="Sweeps", **asked)
    says(page, "8 runs: 4 values of K × 2 seeds. 0 in the store already, 8 to train.")
    says(page, "How long that takes is not known")
    click(page.get_by_role("button", name="Time one epoch"))
    says(page, re.compile(r"About .* s, for 16 epochs of .* s each, as measured on digits · MLP · Noised top-K"))
    shown = shown_code(page.locator(".st-key-bar"))
    page.keyboard.press("Escape")
    click(page.get_by_role("button", name="Train 8 runs"))
    says(page, "6 of 8 runs trained and kept")
    settled(page)
    assert page.get_by_text("K = 15 with 10 classes").count() == 2  # of each seed
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    made = {}
    exec(shown.replace("15, ", ""), made)  # reads what the page has trained
    found = made["found"]
    assert {run.path.parent for run in found.runs} == {store.root}
    judged = found.summary().query("split == 'val' and metric == 'accuracy'")
    drawn = figure(page, "sweep")["data"][0]
    assert drawn["x"] == judged["loss.K"].tolist() == [2, 3, 4]
    np.testing.assert_allclose(drawn["y"], judged["mean"], atol=1e-6)
    assert serious_violations(page) == []
    assert too_wide(page) == 0


def test_the_code_of_a_run_names_its_data_with_knobs_and_transforms_and_makes_the_same_run(monkeypatch):
    from workbench.datasets import LongTail
    from workbench.training import Run

    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "app"))
    from session import training_requests

    data = wb.load_dataset("digits", seed=3).transformed(LongTail(5))
    run = Run(data, model="mlp", loss=wb.losses.DifferentiableTopK(p_k=(0.2, 0.8)), epochs=3, learning_rate=0.01)
    unloaded = Run.from_json(run.to_json())
    made = {}
    exec(training_requests.code(unloaded).partition("trained =")[0], made)
    assert made["run"].key == run.key
    assert training_requests.title(unloaded).startswith("digits · MLP · Differentiable top-k, P_K = 0.2, 0.8")
