"""Regimes: what is trained, how well it fits its training rows, and that a claim is judged only where it fits them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.claims import data, experiment
from workbench.claims.checks import deciding, memorising_averages
from workbench.claims.checks.memorising import noisy
from workbench.claims.claim import (
    COUNTED,
    HEAD,
    HOLDS,
    MEMORISING,
    NETWORK,
    NOT_REACHED,
    REGIMES,
    Bench,
    Expectation,
    Found,
    Line,
)
from workbench.claims.data import CIFAR_IMAGES, cifar_images, data_to_try, few_letters, letters_memorised, memorised
from workbench.claims.experiment import arm, trained, widened
from workbench.claims.page import figure_of, page_of, read_found, result_file, run_claim, run_claims
from workbench.cli.main import main
from workbench.datasets import Dataset
from workbench.losses import LDAM, ROLE, CrossEntropy
from workbench.store import Store

RESULTS = Path(__file__).parents[2] / "docs" / "claims"
SETS_OF_ONE_CLASS = next(claim for claim in wb.claims.CLAIMS if claim.number == 9 and claim.regime is MEMORISING)

WHAT_DECIDES = next(claim for claim in wb.claims.CLAIMS if claim.number == 32)


def small_letters(epochs):
    """120 letters to train and 200 to choose and to judge, for a claim of the new regime in seconds."""
    letters = few_letters()
    rows = {"train": 120, "val": 200, "test": 200}
    parts = [getattr(letters, split).rows(np.arange(n)) for split, n in rows.items()]
    small = Dataset.from_arrays(
        np.concatenate([part.inputs for part in parts]),
        np.concatenate([part.labels for part in parts]),
        class_names=list(letters.class_names),
        groups=list(letters.groups),
        split=np.repeat(list(rows), list(rows.values())),
    )
    whole = letters_memorised()
    return replace(whole, run=replace(whole.run, dataset=small, epochs=epochs), seeds=2, tuned_on=1)


def test_the_cheapest_claim_of_the_regime_memorises_its_training_rows_and_prints_how_far(tmp_path, monkeypatch):
    monkeypatch.setattr(memorising_averages, "memorised", lambda bench, name: small_letters(epochs=50))
    bench = Bench(Store(tmp_path / "store"), progress=False, only=("letters",))
    assert run_claims([SETS_OF_ONE_CLASS], bench, tmp_path, told=False) == []
    found = read_found(tmp_path, SETS_OF_ONE_CLASS)
    assert found.reached
    assert found.training_accuracy["cross-entropy, letters"] >= 0.99
    assert found.verdict != NOT_REACHED
    assert len(found.runs) == 4
    page = page_of([SETS_OF_ONE_CLASS], tmp_path, "claims")
    assert "whole network that memorises its training rows" in page
    assert "Top-1 accuracy on training rows in the last epoch: cross-entropy, letters: " in page


def test_the_runs_behind_the_page_are_those_that_its_claim_trains(tmp_path, monkeypatch):
    planned = []

    class Planned(Exception):
        """Enough is known: nothing is trained."""

    def plan(bench, runs):
        planned.extend(replace(run, seed=seed).key for run in runs for seed in range(letters_memorised().seeds))
        raise Planned

    monkeypatch.setattr(experiment, "_train_runs", plan)
    with pytest.raises(Planned):
        SETS_OF_ONE_CLASS.check(Bench(Store(tmp_path), progress=False), "letters")
    published = Found.from_json(result_file(RESULTS, SETS_OF_ONE_CLASS, "letters").read_text("utf-8"))
    assert set(published.runs) == set(planned)


def test_a_network_that_does_not_fit_its_training_rows_is_not_judged(tmp_path, monkeypatch):
    monkeypatch.setattr(memorising_averages, "memorised", lambda bench, name: small_letters(epochs=1))
    found = run_claim(SETS_OF_ONE_CLASS, Bench(Store(tmp_path), progress=False), "letters")
    assert found.reached is False
    assert found.verdict == NOT_REACHED


def test_what_decides_is_drawn_against_how_far_cross_entropy_fits_its_training_rows(tmp_path, monkeypatch):
    few, more = (small_letters(epochs) for epochs in (1, 20))
    monkeypatch.setattr(deciding, "memorised", lambda bench, name: more)
    monkeypatch.setattr(deciding, "conditions", lambda source: {"as it is": source, "1 epoch": few})
    found = run_claim(WHAT_DECIDES, Bench(Store(tmp_path / "store"), progress=False), "letters")
    assert found.reached is None
    assert len(found.expectations) == 3
    figure = figure_of(WHAT_DECIDES, found)
    assert [len(points) for _, points in figure.panels()] == [2, 2, 2]
    for name, points in figure.panels():
        side = "cross-entropy, label noise" if "label noise" in name else "cross-entropy"
        fits = [100 * found.training_accuracy[f"{side}, {condition}"] for condition in ("as it is", "1 epoch")]
        assert points["x"].tolist() == pytest.approx(fits)
        assert fits[0] > fits[1]


@pytest.mark.parametrize("name", ["letters", "CIFAR-100"])
@pytest.mark.parametrize("change", [lambda source: source, noisy], ids=["clean", "wrong labels"])
def test_every_condition_of_what_decides_is_another_run(name, change):
    source = replace(small_letters(epochs=1), name=name)
    made = deciding.conditions(source)
    assert "as it is" in made
    keys = {change(each).run.key for each in made.values()}
    assert len(keys) == len(made) > 3


def test_the_training_accuracy_of_a_regime_is_asked_of_every_arm_of_cross_entropy():
    assert MEMORISING.reached({"cross-entropy, a": 1.0, "cross-entropy, b": 0.99, "noised": 0.2})
    assert MEMORISING.reached({"cross-entropy, a": 1.0, "cross-entropy, b": 0.98}) is False
    assert MEMORISING.reached({"noised": 1.0}) is False
    assert all(regime.reached({}) is None for regime in (COUNTED, HEAD, NETWORK))


def test_the_results_of_several_data_sets_are_one_and_each_is_run_apart(tmp_path, monkeypatch):
    asked = []

    def check(bench, data):
        asked.append(data)
        return Found((Expectation("gain", 2, 1, 3, above=0),), (Line("gain", "a", 2.0),), {"arm": "best"}, (data,))

    monkeypatch.setattr(data, "small_garden", lambda: None)
    claim = replace(SETS_OF_ONE_CLASS, check=check)
    bench = Bench(None, progress=False, only=("garden",))
    run_claims([claim], bench, tmp_path, told=False)
    run_claims([claim], replace(bench, only=()), tmp_path, told=False)
    assert asked == ["garden", "letters"]
    found = read_found(tmp_path, claim)
    assert [each.what for each in found.expectations] == ["gain, garden", "gain, letters"]
    assert [line.panel for line in found.lines] == ["garden", "letters"]
    assert found.settled == {"arm, garden": "best", "arm, letters": "best"}
    assert found.runs == ("garden", "letters")
    assert "gain, garden" in page_of([claim], tmp_path, "claims")


def test_of_several_data_sets_those_are_judged_that_reach_the_regime():
    met, missed = Expectation("gain", 2, 1, 3, above=0), Expectation("gain", -2, -3, -1, above=0)
    point = Line("gain", "a", 2.0)
    high, low = Found((met,), (point,), reached=True), Found((missed,), (point,), reached=False)
    both = Found.joined({"letters": high, "images": low})
    assert both.verdict == HOLDS
    assert [each.what for each in both.expectations] == ["gain, letters"]
    assert [line.panel for line in both.lines] == ["letters", "images"]
    assert both.remark == "On images the regime is not reached, and nothing is judged."
    assert Found.joined({"images": low}).verdict == NOT_REACHED
    assert Found.joined({"letters": high}).remark == ""


def test_rates_are_added_while_the_best_one_is_at_an_edge_of_its_grid(tmp_path):
    source = small_letters(epochs=1)
    found = trained(
        Bench(Store(tmp_path), progress=False),
        source.run,
        [arm("cross-entropy", loss=CrossEntropy(), learning_rate=[1e-5, 3e-5])],
        tuned_by=lambda run: -abs(np.log10(run.run.learning_rate) + 3),  # best at 1e-3
        seeds=1,
    )["cross-entropy"]
    assert found.setting["learning_rate"] == 1e-3
    assert found.added == {"learning_rate": (1e-4, 3e-4, 1e-3, 3e-3)}
    assert found.settled().endswith("(grid widened by learning_rate = 0.0001, 0.0003, 0.001, 0.003)")
    one_rate = arm("cross-entropy", loss=CrossEntropy())
    assert widened(one_rate, one_rate.settings[0]) is one_rate


def test_knobs_of_a_loss_are_widened_too_as_far_as_they_go():
    margins = arm("LDAM", loss=[LDAM(max_margin=margin) for margin in (0.3, 0.5)])
    wider = widened(margins, margins.settings[-1])
    assert [each["loss"].max_margin for each in wider.settings] == [0.3, 0.5, 1.0]
    highest = LDAM.knobs()["max_margin"].accepted[1]
    at_the_end = arm("LDAM", loss=[LDAM(max_margin=margin) for margin in (0.5, highest)])
    assert widened(at_the_end, at_the_end.settings[-1]) is at_the_end
    beta = arm("ROLE", loss=[ROLE(beta=beta) for beta in (0.0, 0.01)])
    assert widened(beta, beta.settings[0]) is beta  # nothing lies below 0


def test_every_claim_names_its_regime_and_thirteen_are_tried_with_networks_that_memorise():
    assert {claim.regime for claim in wb.claims.CLAIMS} == set(REGIMES)
    tried = [claim for claim in wb.claims.CLAIMS if claim.regime is MEMORISING]
    assert [claim.number for claim in tried] == [1, 5, 6, 7, 8, 9, 10, 11, 13, 14, 27, 28, 30]
    assert not any(claim.needs for claim in tried)  # shipped data do
    assert all(claim.decides for claim in tried)


def test_images_are_those_of_the_folder_or_the_garden_of_the_package(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    np.savez(
        tmp_path / CIFAR_IMAGES,
        X_train=rng.integers(256, size=(60, 32, 32, 3), dtype=np.uint8),
        X_test=rng.integers(256, size=(100, 32, 32, 3), dtype=np.uint8),
        y_train=np.arange(60) % 2,
        y_test=np.arange(100) % 2,
        classes=["bee", "rose"],
        superclass=[0, 1],
        superclasses=["insects", "flowers"],
    )
    assert data_to_try(Bench(None, tmp_path)) == ("letters", "CIFAR-100")
    assert memorised(Bench(None, tmp_path), "CIFAR-100").run.data.input_shape == (16, 16, 3)
    images = cifar_images(tmp_path / CIFAR_IMAGES)
    assert [getattr(images, split).n for split in ("train", "val", "test")] == [60, 50, 50]
    assert images.input_shape == (16, 16, 3)
    assert images.groups == ("insects", "flowers")
    monkeypatch.setattr(data, "small_garden", lambda: images)  # six thousand photographs take a while
    assert data_to_try(Bench(None)) == ("letters", "garden")
    assert memorised(Bench(None), "garden").name == "garden"
    assert data_to_try(Bench(None, only=("letters",))) == ("letters",)
    with pytest.raises(ValueError, match="there is no data set 'leaves' here; there are letters, garden"):
        data_to_try(Bench(None, only=("leaves",)))


def test_a_regime_lists_its_claims_and_an_unknown_one_is_refused(capsys):
    assert main(["claims", "--list", "--regime", "memorising"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        *("1", "5", "6", "7", "8", "9", "10", "11", "13", "14", "27", "28", "30")
    ]
    assert main(["claims", "5", "--regime", "deep"]) == 2
    assert (
        "there is no regime 'deep'; give one of counted, head, network, memorising, graded" in capsys.readouterr().err
    )
    assert main(["claims", "17", "--regime", "memorising"]) == 2
    assert "claim 17 is not tried in the regime memorising; it is in counted" in capsys.readouterr().err
