"""`workbench sweep`: K for everything at once, several rules, and a grid for each loss, in words and as JSON."""

from __future__ import annotations

import json

import pytest

from workbench.cli.main import main
from workbench.losses import NoisedTopK
from workbench.store import Store

DIGITS = ("sweep", "--dataset", "digits", "--model", "linear", "--epochs", "1")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def printed(capsys, *arguments: str) -> str:
    assert main([*DIGITS, *arguments]) == 0
    return capsys.readouterr().out


def sweep_result(capsys, *arguments: str) -> dict:
    return json.loads(printed(capsys, *arguments, "--json"))


def refused(capsys, *arguments: str) -> str:
    assert main([*DIGITS, *arguments]) == 2
    return capsys.readouterr().err


def test_several_K_are_those_of_loss_and_rules_together_and_a_loss_without_K_is_trained_once(capsys):
    given = [
        "--K",
        "2",
        "3",
        "--over",
        "loss",
        "CrossEntropy",
        "NoisedTopK(n_samples=3)",
        "--rule",
        "TopK",
        "--rule",
        "AverageK",
    ]
    found = sweep_result(capsys, *given, "--over", "seed", "0", "1")
    frame = [row for row in found["frame"] if row["metric"] == "accuracy" and row["split"] == "test"]
    assert {(row["K"], row["rule"]) for row in frame} == {
        (K, rule) for K in (2, 3) for rule in ("TopK(K)", "AverageK(K)")
    }
    runs = {loss: {row["run"] for row in frame if row["loss"].startswith(loss)} for loss in ("Cross", "Noised")}
    assert [len(keys) for keys in runs.values()] == [2, 4]
    assert [(row["K"], row["rule"]) for row in found["side_by_side"]] == [(K, "TopK(K)") for K in (2, 2, 3, 3)]
    assert [row["comparisons"] for row in found["differences"]] == [2, 2]
    assert "p_holm is corrected for all 2 comparisons" in found["multiplicity"]
    text = printed(capsys, *given, "--over", "seed", "0", "1")
    assert "the best on val for each K and loss, with intervals over seeds and rows" in text
    assert found["multiplicity"] in text


def test_several_K_are_those_of_the_monitor_too(capsys):
    found = sweep_result(capsys, "--K", "2", "3", "--monitor", "average_k_accuracy@K=5")
    keys = {row["K"]: row["run"] for row in found["frame"]}
    assert {K: Store().open(key).record.run["monitor"] for K, key in keys.items()} == {
        2: "average_k_accuracy@K=2",
        3: "average_k_accuracy@K=3",
    }


def test_one_K_is_the_knob_of_the_loss_as_it_was_and_otherwise_that_of_the_rule(capsys):
    found = sweep_result(capsys, "--loss", "NoisedTopK", "--K", "2", "--over", "seed", "0", "--rule", "AverageK(K=3)")
    assert "K" not in found["frame"][0]
    assert {row["rule"] for row in found["frame"]} == {"", "AverageK(K=3)"}
    found = sweep_result(capsys, "--K", "2")
    assert {row["rule"] for row in found["frame"]} == {"", "AverageK(K)"}
    assert found["best"]["settings"] == {"K": 2}


def test_each_setting_may_be_a_grid_of_its_own_and_over_is_varied_in_each(capsys):
    given = ["--setting", "loss=CrossEntropy", "learning_rate=0.1", "learning_rate=0.001"]
    given += ["--setting", "loss=NoisedTopK(K=3)", "loss.epsilon=0.1", "loss.epsilon=1", "--over", "seed", "0", "1"]
    found = sweep_result(capsys, *given, "--rule", "TopK(K=3)")
    cross_entropy, noised = found["best_of_each"]
    assert cross_entropy["settings"]["loss"] == "CrossEntropy()"
    assert cross_entropy["settings"]["learning_rate"] == 0.1
    assert noised["settings"]["loss.epsilon"] in (0.1, 1.0)
    assert len(cross_entropy["runs"]) == len(noised["runs"]) == 2
    assert len({row["run"] for row in found["frame"]}) == 2 * 2 + 2 * 2
    assert main(["runs"]) == 0
    listed = [line.partition("  ")[2] for line in capsys.readouterr().out.splitlines() if "  digits · " in line]
    assert len(listed) == len(set(listed)) == 2 * 2 + 2 * 2


def test_a_loss_means_the_same_by_its_name_alone_and_with_brackets(capsys):
    found = sweep_result(capsys, "--over", "loss", "NoisedTopK", "NoisedTopK(K=3)")
    losses = [NoisedTopK(), NoisedTopK(K=3)]
    assert [best["settings"]["loss"] for best in found["best_of_each"]] == [repr(loss) for loss in losses]


def test_settings_are_chosen_by_a_group_of_a_metric_or_at_a_K_of_it(capsys):
    seeds = ["--over", "seed", "0", "1", "--over", "learning_rate", "0.1", "0.001"]
    text = printed(capsys, *seeds, "--metric", "shot_accuracy", "--group", "many")
    assert "best shot_accuracy (many) on val: learning_rate = 0.1" in text
    found = sweep_result(
        capsys, *seeds, "--metric", "top_k_accuracy@K=3", "--measure", "top_k_accuracy@K=2", "coverage_gap"
    )
    assert {row["metric"] for row in found["frame"]} >= {f"top_k_accuracy@K={K}" for K in (1, 2, 3)} | {"coverage_gap"}
    three = [row for row in found["frame"] if row["metric"] == "top_k_accuracy@K=3" and row["split"] == "test"]
    of_best = [row["value"] for row in three if row["learning_rate"] == found["best"]["settings"]["learning_rate"]]
    assert found["best"]["test"]["mean"] == pytest.approx(sum(of_best) / 2)
    assert "has no K" in refused(capsys, *seeds, "--metric", "accuracy@K=3")


def test_distributions_over_ranks_are_swept_as_they_are_typed(capsys):
    given = ["--loss", "DifferentiableTopK", "--over", "loss.p_k", "1,0,0,0,0", ".5,0,0,0,.5"]
    found = sweep_result(capsys, *given)
    assert {row["loss.p_k"] for row in found["frame"]} == {"(1.0, 0.0, 0.0, 0.0, 0.0)", "(0.5, 0.0, 0.0, 0.0, 0.5)"}
    assert found["best"]["settings"]["loss.p_k"] in ([1.0, 0, 0, 0, 0], [0.5, 0, 0, 0, 0.5])


def test_a_sweep_of_nothing_says_what_can_be_given(capsys, home):
    assert "nothing is varied; say what to try: --over NAME VALUE" in refused(capsys)
    assert not home.exists()


def test_what_was_judged_on_other_rows_stands_side_by_side_and_is_not_paired(capsys):
    assert main([*DIGITS, "--over", "data.seed", "0", "1", "--each", "data.seed", "--json"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert [row["data.seed"] for row in found["side_by_side"]] == [0, 1]
    assert "differences" not in found
    assert "were evaluated on different rows, so nothing pairs them" in err


def test_settings_that_differ_in_K_alone_stand_side_by_side_and_nothing_is_said_of_pairs(capsys):
    text = printed(capsys, "--K", "2", "3")
    assert "the best on val for each K" in text
    assert not [words for words in ("Empty DataFrame", "p-value") if words in text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--K", "a"], "--K = 'a': K is a number of classes, such as 5"),
        (["--over", "K", "a"], "K = 'a': K is a number of classes, such as 5"),
        (
            ["--over", "seed", "0", "--metric", "top_k_accuracy@K=a"],
            "'top_k_accuracy@K=a': K = a; give a number above 0, such as top_k_accuracy@K=3",
        ),
    ],
)
def test_a_K_that_is_no_number_is_refused_in_words(capsys, home, arguments, message):
    assert message in refused(capsys, *arguments)
    assert not home.exists()


def test_a_cluster_that_cannot_be_meant_is_refused(capsys):
    over = ("--over", "seed", "0")
    assert "give one of the two" in refused(capsys, *over, "--workers", "2", "--cluster", "tcp://127.0.0.1:1")
    assert "workers = 0; give at least 1" in refused(capsys, *over, "--workers", "0")


@pytest.mark.long  # two processes that load torch
def test_two_processes_train_the_runs_of_a_sweep_and_one_that_fails_is_told_of_and_counts(capsys):
    broken = ("--model", "mlp", "--epochs", "30", "--optimizer", "sgd", "--over", "learning_rate", "0.01", "1000")
    assert main([*DIGITS, *broken, "--workers", "2"]) == 1
    printed = capsys.readouterr()
    assert "failed: {'learning_rate': 1000.0}: epoch" in printed.err
    assert "Most often the learning rate is too large" in printed.err
    assert "best accuracy on val: learning_rate = 0.01" in printed.out
