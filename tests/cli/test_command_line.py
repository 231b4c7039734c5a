"""The command line: what it prints, what it keeps, and what it says when the input is wrong."""

from __future__ import annotations

import dataclasses
import json
import socket
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench import app_server
from workbench.cli import COMMANDS
from workbench.cli.main import main
from workbench.datasets import LongTail
from workbench.losses import LOSSES
from workbench.store import DEMO, Store
from workbench.training import many_runs


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def logits(tmp_path):
    """A file of scores whose largest is the label three times in four."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 6, size=400)
    scores = rng.normal(size=(400, 6))
    scores[np.arange(400), labels] += 2
    np.savez(tmp_path / "mine.npz", scores=scores, labels=labels)
    return tmp_path / "mine.npz"


def run(capsys, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def failed(capsys, *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("command", [command.name for command in COMMANDS])
def test_every_command_explains_itself(command, capsys):
    with pytest.raises(SystemExit) as exit_:
        main([command, "--help"])
    assert exit_.value.code == 0
    assert f"workbench {command}" in capsys.readouterr().out


def test_a_knob_of_the_loss_is_given_a_schedule_and_shown_in_the_history(capsys):
    arguments = ["train", "--dataset", "digits", "--model", "linear", "--epochs", 2, "--loss", "NoisedTopK", "--K", 2]
    said = json.loads(run(capsys, *arguments, "--epsilon", "anneal(4, 0.5, over=0.5, course=linear)", "--json"))
    trained = Store().open(said["key"])
    assert trained.record.loss_knobs["epsilon"] == "anneal(4.0, 0.5, over=0.5, course='linear')"
    assert said["loss.epsilon"] == 0.5
    assert "loss.epsilon 0.5" in run(capsys, *arguments, "--epsilon", "anneal(4, 0.5, over=0.5, course=linear)")


def test_a_person_who_names_no_epsilon_begins_with_the_schedule_that_was_measured(capsys):
    arguments = ["train", "--dataset", "digits", "--model", "linear", "--epochs", 1, "--loss", "NoisedTopK", "--K", 2]
    said = json.loads(run(capsys, *arguments, "--json"))
    assert Store().open(said["key"]).record.loss_knobs["epsilon"] == "anneal(3.0, 0.2)"
    data = wb.load_dataset("digits")
    assert said["key"] == wb.Run(data, model="linear", epochs=1, loss=wb.losses.NoisedTopK(K=2)).key
    with pytest.raises(SystemExit):
        main([*map(str, arguments), "--help"])
    assert "(default: anneal(3, 0.2))" in " ".join(capsys.readouterr().out.split())


def test_a_sweep_varies_a_schedule_beside_numbers(capsys):
    arguments = ["sweep", "--dataset", "digits", "--model", "linear", "--epochs", 1, "--loss", "NoisedTopK", "--K", 2]
    varied = ["--over", "loss.epsilon", "0.2", "anneal(3,0.2)"]
    found = json.loads(run(capsys, *arguments, *varied, "--json"))
    assert {line["loss.epsilon"] for line in found["frame"]} == {0.2, "anneal(3.0, 0.2)"}
    assert found["best"]["settings"]["loss.epsilon"] in (0.2, "anneal(3.0, 0.2)")
    assert "anneal(3.0, 0.2)" in run(capsys, *arguments, *varied)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--epsilon", "anneal(3)"], "'anneal(3)' is not a schedule; write anneal(3, 0.2)"),
        (["--epsilon", "anneal(300, 0.2)"], "epsilon = 300 is outside [0, 100]"),
        (["--epsilon", "__import__('os').getcwd()"], "is not a schedule"),
        (["--learning_rate", "anneal(0.1, 0.01)"], "learning_rate = 'anneal(0.1, 0.01)' is not allowed; give a number"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_on_the_command_line(given, message, capsys):
    arguments = ["train", "--dataset", "digits", "--model", "linear", "--loss", "NoisedTopK", "--K", "2"]
    assert message in failed(capsys, *arguments, *given)


def test_help_for_training_lists_the_knobs_of_the_loss_that_was_named(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--loss", "NoisedTopK", "--help"])
    text = capsys.readouterr().out
    assert "--epsilon" in text
    assert "scale of the noise" in text


def test_losses_lists_every_loss_with_its_knobs(capsys):
    text = run(capsys, "losses")
    rows = json.loads(run(capsys, "losses", "--json"))
    assert [row["name"] for row in rows] == [loss.__name__ for loss in LOSSES]
    for loss in LOSSES:
        assert f"{loss.__name__}: {loss.title}" in text
        for name in loss.knobs():
            assert f"--{name} " in text


def test_training_keeps_a_run_that_runs_lists_and_evaluate_judges(capsys):
    trained = json.loads(
        run(capsys, "train", "--dataset", "digits", "--model", "linear", "--epochs", 2, "--seed", 1, "--json")
    )
    assert trained["epoch"] == 1
    again = run(capsys, "train", "--dataset", "digits", "--model", "linear", "--epochs", 2, "--seed", 1)
    assert f"epoch 2 of 2, whose weights were kept: train_loss {trained['train_loss']:.4g}" in again
    assert trained["key"] in {row["key"] for row in json.loads(run(capsys, "runs", "--json"))}
    assert "seed 1" in run(capsys, "runs")
    rows = json.loads(run(capsys, "evaluate", trained["key"][:10], "--K", 2, "--json"))
    stored = Store().open(trained["key"])
    sets = wb.AverageK(2).fit(stored.tables["val"])(stored.tables["test"])
    printed = {(row["rule"], row["metric"]): row["value"] for row in rows}
    assert printed[repr(wb.AverageK(2)), "accuracy"] == pytest.approx(wb.metrics.accuracy(sets))


def test_a_head_is_trained_on_the_backbone_of_a_run_and_on_changed_data(capsys):
    common = ["train", "--dataset", "digits", "--epochs", 1, "--device", "cpu", "--json"]
    backbone = json.loads(run(capsys, *common, "--model", "linear", "--transforms", "LongTail(imbalance=10)"))
    assert Store().open(backbone["key"]).record.run["transforms"] == [LongTail(imbalance=10).spec()]
    head = json.loads(run(capsys, *common, "--features", backbone["key"][:8], "--loss", "AverageKTwoHead", "--K", 2))
    record = Store().open(head["key"]).record
    assert (record.run["features"], record.model) == (backbone["key"], "linear")
    assert "head of linear" in head["title"]


def test_listing_runs_opens_no_table(capsys, monkeypatch):
    monkeypatch.setattr(wb.LogitTable, "load", lambda *_: pytest.fail("a table was loaded"))
    assert "(test 3000, val 1000)" in run(capsys, "runs")


def test_a_sweep_tunes_on_val_and_reports_test(capsys):
    arguments = ["sweep", "--dataset", "digits", "--model", "linear", "--epochs", 1, "--loss", "NoisedTopK", "--K", 2]
    arguments += ["--over", "loss.epsilon", 0.1, 1, "--over", "seed", 0, 1, "--rule", "AverageK(K=2)"]
    found = json.loads(run(capsys, *arguments, "--json"))
    assert {(row["loss.epsilon"], row["seed"]) for row in found["frame"]} == {(0.1, 0), (0.1, 1), (1, 0), (1, 1)}
    assert len(found["best"]["runs"]) == 2
    text = run(capsys, *arguments)
    assert f"best accuracy on val: loss.epsilon = {found['best']['settings']['loss.epsilon']}" in text
    assert f"on test: {found['best']['test']['mean']:.4g}" in text
    assert "95 % interval of the mean over 2 seeds" in text


def test_a_sweep_over_something_unknown_says_what_can_be_varied(capsys):
    unknown = "epsilon is nothing that a sweep varies; give one of model, epochs"
    assert unknown in failed(capsys, "sweep", "--dataset", "digits", "--over", "epsilon", 0.1)
    assert unknown in failed(capsys, "sweep", "--dataset", "digits", "--setting", "epsilon=0.1")


def test_a_sweep_by_an_unknown_metric_is_refused_before_anything_is_trained(capsys, home):
    arguments = ["sweep", "--dataset", "digits", "--over", "seed", 0, "--metric", "beauty"]
    assert "metric = 'beauty' does not rank settings; give one of accuracy" in failed(capsys, *arguments)
    assert not home.exists()


def test_a_sweep_in_which_everything_diverges_says_why(capsys, monkeypatch):
    def diverges(*_, **__):
        raise FloatingPointError("the loss is nan in batch 3")

    monkeypatch.setattr(many_runs, "train", diverges)
    told = failed(capsys, "sweep", "--dataset", "digits", "--model", "linear", "--over", "seed", 0)
    assert "failed: {'seed': 0}: the loss is nan in batch 3" in told
    assert "every setting has a run that failed" in told


def test_a_sweep_takes_a_list_of_settings_and_knobs_of_the_data(capsys):
    arguments = ["sweep", "--dataset", "digits", "--model", "linear", "--epochs", 1, "--rule", "AverageK(K=2)"]
    listed = ["--setting", "learning_rate=0.1", "data.seed=1", "--setting", "learning_rate=0.01", "data.seed=2"]
    found = json.loads(run(capsys, *arguments, *listed, "--json"))
    assert {(row["learning_rate"], row["data.seed"]) for row in found["frame"]} == {(0.1, 1), (0.01, 2)}
    assert {Store().open(row["run"]).record.settings["data.seed"] for row in found["frame"]} == {1, 2}
    text = run(capsys, *arguments, "--over", "data.seed", 1, "--over", "data.seed", 2, "--learning_rate", 0.1)
    assert "(one seed: no interval)" in text
    assert len(Store().runs()) == 3 + len(Store(DEMO).runs())


def test_a_loss_of_ones_own_is_trained_by_its_module_and_class(capsys, tmp_path, monkeypatch):
    (tmp_path / "my_losses.py").write_text(
        "from dataclasses import dataclass\nfrom workbench.knobs import knob\nfrom workbench.losses import CrossEntropy\n"
        "@dataclass(frozen=True)\nclass Weighted(CrossEntropy):\n"
        "    weight: float = knob(1.0, low=0.1, high=10, meaning='factor of the loss')\n"
        "    def values(self, scores, labels, **rest):\n        return self.weight * super().values(scores, labels, **rest)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    text = run(
        capsys,
        "train",
        "--dataset",
        "digits",
        "--model",
        "linear",
        "--epochs",
        1,
        "--loss",
        "my_losses:Weighted",
        "--weight",
        3,
    )
    assert "Weighted(weight=3.0)" in text


def test_a_knob_that_has_the_name_of_an_option_is_refused(capsys, tmp_path, monkeypatch):
    (tmp_path / "seeded.py").write_text(
        "from dataclasses import dataclass\nfrom workbench.knobs import knob\nfrom workbench.losses import CrossEntropy\n"
        "@dataclass(frozen=True)\nclass Seeded(CrossEntropy):\n"
        "    seed: int = knob(0, low=0, high=9, meaning='seed of the loss')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    told = failed(capsys, "train", "--dataset", "digits", "--loss", "seeded:Seeded")
    assert "knobs of Seeded: --seed means something else here already; rename the knob" in told


def test_importing_one_file_splits_it_in_halves_and_says_so(capsys, logits):
    text = run(capsys, "import", logits)
    assert "random half" in text
    (mine, *_demo) = Store().runs()
    assert mine.title == "mine"
    assert (mine.tables["val"].n, mine.tables["test"].n) == (200, 200)
    run(capsys, "import", logits)
    assert [stored.title for stored in Store().runs()].count("mine") == 1


def test_importing_two_files_takes_them_as_validation_and_test(capsys, logits, tmp_path):
    arrays = np.load(logits)
    others = {name: values + 1 if values.dtype.kind == "f" else values for name, values in arrays.items()}
    np.savez(tmp_path / "others.npz", **others)
    told = json.loads(run(capsys, "import", logits, tmp_path / "others.npz", "--title", "both", "--json"))
    stored = Store().open(told["key"])
    assert (stored.title, stored.record.note) == ("both", "")
    assert (stored.tables["val"].n, stored.tables["test"].n) == (400, 400)


@pytest.mark.parametrize("name", ["json", "csv", "markdown", "latex", "text"])
def test_evaluate_writes_the_table_in_the_format_asked_for(capsys, logits, tmp_path, name):
    run(capsys, "evaluate", logits, "--K", 2, "--format", name, "--output", tmp_path / "report")
    text = (tmp_path / "report").read_text()
    assert (repr(wb.AverageK(2)) if name in ("json", "csv") else "AverageK(K=2)") in text
    if name == "json":
        assert len(pd.DataFrame(json.loads(text))) > 3
    if name == "csv":
        assert "accuracy" in set(pd.read_csv(tmp_path / "report")["metric"])


def test_evaluate_says_on_which_rows_of_a_file_the_rules_are_fitted(capsys, logits):
    assert main(["evaluate", str(logits), "--K", "2", "--json"]) == 0
    told = capsys.readouterr()
    val, test = wb.import_table(logits).split()
    assert f"fitted on {val.n} of its rows and evaluated on the other {test.n}" in told.err
    assert json.loads(told.out)


def test_evaluate_takes_any_rule_as_python_prints_it_and_gives_intervals(capsys, logits):
    text = run(capsys, "evaluate", logits, "--rule", "LAC(confidence=0.9)", "--interval", 0.9, "--json")
    accuracy = next(row for row in json.loads(text) if row["metric"] == "accuracy")
    val, test = wb.import_table(logits).split()
    sets = wb.LAC(confidence=0.9).fit(val)(test)
    assert accuracy["rule"] == repr(wb.LAC(confidence=0.9))
    assert accuracy["value"] == pytest.approx(wb.metrics.accuracy(sets))
    assert accuracy["low"] <= accuracy["value"] <= accuracy["high"]


def test_sets_of_less_than_one_class_on_average_are_judged(capsys, logits):
    rows = json.loads(run(capsys, "evaluate", logits, "--K", 0.6, "--json"))
    (size,) = [row["value"] for row in rows if row["metric"] == "mean_size"]
    assert {row["rule"] for row in rows} == {"", repr(wb.AverageK(0.6))}  # there is no top-0.6
    assert size == pytest.approx(0.6, abs=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["evaluate", "nothing"], "no run has a key"),
        (["evaluate", "nothing.npz"], "there is no file nothing.npz"),
        (["evaluate", "LOGITS", "--rule", "LAG(confidence=0.9)"], "known: TopK"),
        (["evaluate", "LOGITS", "--rule", "LAC(level=0.9)"], "did you mean confidence? It has confidence, min_size"),
        (["evaluate", "LOGITS", "--rule", "LAC(0.9, 0, 3)"], "more values than the 2 knobs"),
        (["evaluate", "LOGITS", "--rule", "LAC(confidence=2)"], "confidence = 2"),
        (["evaluate", "LOGITS", "--K", "inf"], "K = inf is not allowed"),
        (["evaluate", "LOGITS", "--K", "few"], "K = 'few' is not allowed"),
        (["evaluate", "LOGITS", "--K", "0"], "K = 0 is below 1"),
        (["evaluate", "LOGITS", "--K", "0.001"], "K = 0.001 with 200 rows returns no class at all; give K ≥ 0.005"),
        (["import", "missing.npz"], "missing.npz"),
        (["train", "--loss", "CrossEntropie"], "known: "),
        (["train", "--loss", ":"], "write module:name"),
        (["train", "--dataset", "gardens"], "garden"),
        (["train", "--dataset", "digits", "--model", "lineal"], "known: linear"),
        (
            ["train", "--dataset", "digits", "--model", "os:getcwd"],
            "does not make a model: it is called with the input shape",
        ),
        (["train", "--dataset", "digits", "--epochs", "none"], "epochs = 'none'"),
        (["train", "--dataset", "digits", "--epochs", "-1"], "epochs = -1 is outside [0, "),
        (["train", "--dataset", "digits", "--features", "0000"], "no run has a key that starts with '0000'"),
        (
            ["train", "--dataset", "digits", "--transforms", "LongTale()"],
            "known: LabelNoise, LongTail, ParetoTail, ZeroLabels",
        ),
        (["train", "--dataset", "digits", "--transforms", "LongTail(10"], "write it like LabelNoise(probability=0.2)"),
        (
            ["train", "--dataset", "digits", "--loss", "Quasibinary", "--micro_batches", "2"],
            "couples the rows of a batch",
        ),
        (["train", "--dataset", "digits", "--loss", "ROLE", "--devices", "2"], "ROLE learns estimates"),
        (["train", "--dataset", "garden", "--data.species", "1"], "species"),
        (["train", "--dataset", "digits", "--loss", "NoisedTopK", "--K", "0"], "K = 0"),
    ],
)
def test_wrong_input_is_said_in_one_line_and_nothing_is_written(arguments, message, capsys, home, logits):
    text = failed(capsys, *(logits if argument == "LOGITS" else argument for argument in arguments))
    assert message in text
    assert text.startswith("workbench: ")
    assert "Traceback" not in text
    assert not list(home.glob("[!.]*/run.json"))


def test_a_port_that_cannot_be_served_on_is_refused(capsys, monkeypatch):
    monkeypatch.setattr(app_server.os, "execv", lambda *_: pytest.fail("the server was started"))
    assert "port = 70000; give a number from 1 to 65535" in failed(capsys, "app", "--port", 70000)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"port {port} cannot be served on (Address already in use)" in failed(capsys, "app", "--port", port)


def test_an_option_that_does_not_exist_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_:
        main(["runs", "--jason"])
    assert exit_.value.code == 2
    assert "--jason" in capsys.readouterr().err


def test_a_loss_of_ones_own_is_found_in_the_folder_one_works_in(tmp_path, capsys, monkeypatch):
    code = "from workbench.losses import CrossEntropy\n\n\nclass Mine(CrossEntropy):\n    title = 'Mine'\n"
    (tmp_path / "a_module_of_mine.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [folder for folder in sys.path if folder])  # as the installed command finds it
    model = ["--dataset", "digits", "--model", "linear", "--epochs", 1]
    run(capsys, "train", *model, "--loss", "a_module_of_mine:Mine")
    assert "digits · Linear · Mine " in run(capsys, "runs")


def test_import_says_what_was_understood(capsys, tmp_path):
    np.savez(tmp_path / "mine.npz", logits=np.eye(4), y=np.arange(4), organ=np.array(["leaf"] * 4))
    text = run(capsys, "import", tmp_path / "mine.npz")
    assert "logits (float64) read as probabilities; labels from y; row attributes organ" in text
    assert json.loads(run(capsys, "import", tmp_path / "mine.npz", "--json"))["understood"] == [text.splitlines()[0]]


def test_a_rule_that_is_asked_for_twice_is_judged_once(capsys, tmp_path):
    np.savez(tmp_path / "mine.npz", scores=np.random.default_rng(0).normal(size=(8, 8)), labels=np.arange(8))
    twice = run(capsys, "evaluate", tmp_path / "mine.npz", "--K", 2, "2.0", "--rule", "TopK(K=2)")
    assert twice == run(capsys, "report", tmp_path / "mine.npz", "--K", 2)  # `report` is another name of `evaluate`


def test_a_rule_with_knobs_and_a_rule_of_ones_own_are_written_as_text(capsys, tmp_path, monkeypatch):
    (tmp_path / "my_rules.py").write_text(
        "from dataclasses import dataclass\n"
        "from workbench.sets import ConformalRule\n"
        "from workbench.knobs import knob\n"
        "@dataclass(frozen=True)\n"
        "class Behind(ConformalRule):\n"
        "    power: float = knob(1.0, low=0.5, high=2, meaning='power of the distance')\n"
        "    def class_scores(self, probabilities):\n"
        "        return (probabilities.max(1, keepdims=True) - probabilities) ** self.power\n"
        "number = 3\n"
    )
    monkeypatch.chdir(tmp_path)  # a module is found in the current folder
    generator = np.random.default_rng(0)
    np.savez("mine.npz", scores=generator.normal(size=(80, 5)), labels=generator.integers(0, 5, 80))
    rules = ("RAPS(confidence=0.8)", "my_rules:Behind", "my_rules:Behind(confidence=0.7, power=2)")
    found = json.loads(
        run(capsys, "evaluate", "mine.npz", "--json", *(part for rule in rules for part in ("--rule", rule)))
    )
    names = [line["rule"] for line in found if line["metric"] == "accuracy"]
    assert [name.split("(")[0] for name in names] == ["RAPS", "Behind", "Behind"]
    assert names[2] == "Behind(confidence=0.7, power=2.0)"
    for wrong, said in {
        "my_rules:number": "is not a workbench.sets.Rule",
        "my_rules:Behnd": "does not name a rule",
        "my_rules:Behind(alpha=0.1)": "did you mean confidence = 1 − alpha = 0.9?",
    }.items():
        assert said in failed(capsys, "evaluate", "mine.npz", "--rule", wrong)


def test_a_rule_of_another_module_is_imported_for_the_person_at_the_keyboard_only():
    from workbench.sets import rule_from_text

    with pytest.raises(ValueError, match="is not a rule"):
        rule_from_text("antigravity:Rule")
    assert "antigravity" not in sys.modules


def test_a_table_of_one_row_is_not_split_and_says_what_to_do(capsys, tmp_path):
    np.savez(tmp_path / "mine.npz", scores=np.zeros((1, 3)), labels=[0])
    assert "give more rows" in failed(capsys, "evaluate", tmp_path / "mine.npz")


def test_a_reader_that_has_had_enough_is_no_error():
    command = f"{sys.executable} -m workbench losses --json | head -c 10"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout == "[\n  {\n    "
    assert done.stderr == ""


def test_a_run_that_cannot_be_read_is_listed_with_what_is_wrong(capsys, home, logits):
    for title in ("whole", "damaged"):
        assert main(["import", str(logits), "--title", title]) == 0
    (key,) = [run.key for run in Store().runs() if run.title == "damaged"]
    (home / key / "test" / "table.json").write_text("{")
    capsys.readouterr()
    assert main(["runs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("whole  (test 200, val 200)" in line for line in lines)
    assert lines[-1].startswith(f"{key[:12]}  cannot be read: run {key[:12]}: test/table.json is damaged")
    assert {"key": key, "unreadable": lines[-1].partition("cannot be read: ")[2]} in json.loads(
        run(capsys, "runs", "--json")
    )


@pytest.fixture
def imported(capsys, logits):
    """The keys of three runs, by their titles."""
    for title in ("first", "second", "third"):
        run(capsys, "import", logits, "--title", title)
    return {stored.title: stored.key for stored in Store().runs() if stored.record.imported}


def test_runs_are_removed_by_the_beginning_of_their_keys(capsys, home, imported):
    (home / imported["second"] / "run.json").write_text("[]")  # one that cannot be read can be removed too
    said = run(capsys, "runs", "rm", imported["first"][:8], imported["second"][:8], "--yes")
    assert said.splitlines() == [
        f"removed {imported['first'][:12]}  first",
        f"removed {imported['second'][:12]}  a run that cannot be read",
    ]
    assert [path.name for path in home.glob("[!.]*")] == [imported["third"]]


def test_nothing_is_removed_if_one_of_the_keys_is_wrong_or_a_demo_run(capsys, home, imported):
    demo = next(DEMO.glob("[!.]*/run.json")).parent.name
    for wrong, words in (("nothing", "no run has a key that starts with 'nothing'"), (demo, "ships with the package")):
        assert words in failed(capsys, "runs", "rm", imported["first"], wrong, "--yes")
    assert words in failed(capsys, "runs", "rename", demo, "mine")
    assert len(list(home.glob("[!.]*"))) == 3


def test_a_beginning_that_several_runs_share_is_refused(capsys, home, imported):
    for title, key in (("first", "ab" * 32), ("second", "abac" * 16)):
        (home / imported[title]).rename(home / key)
    for command in (["rm", "aba", "--yes"], ["rename", "aba", "mine"]):
        words = f"2 runs have a key that starts with 'aba' in {home}; there are: abababababab, abacabacabac"
        assert words in failed(capsys, "runs", *command)
    assert len(list(home.glob("[!.]*"))) == 3


def test_a_run_is_not_removed_before_somebody_said_so(capsys, home, imported, monkeypatch):
    assert "was not removed: standard input is not a terminal to confirm on; give --yes" in failed(
        capsys, "runs", "rm", imported["first"]
    )
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    for answer in ("", "no"):
        monkeypatch.setattr("builtins.input", lambda _, answer=answer: answer)
        run(capsys, "runs", "rm", imported["first"])
    assert len(list(home.glob("[!.]*"))) == 3
    monkeypatch.setattr("builtins.input", lambda asked: "y" if "remove first" in asked else "n")
    run(capsys, "runs", "rm", imported["first"], imported["second"])
    assert len(list(home.glob("[!.]*"))) == 2


def test_a_run_is_renamed_and_stays_the_same_run(capsys, home, imported):
    before = Store().open(imported["first"])
    scores = before.tables["test"].scores.copy()
    said = run(capsys, "runs", "rename", imported["first"][:10], " die erste · α ")
    assert said == f"{imported['first'][:12]}  die erste · α\n"
    after = Store().open(imported["first"])
    assert after.record == dataclasses.replace(before.record, title="die erste · α")
    np.testing.assert_array_equal(after.tables["test"].scores, scores)
    assert "cannot be called nothing" in failed(capsys, "runs", "rename", imported["first"], " ")


def test_a_damaged_run_is_not_made_whole_by_another_title(capsys, home, imported):
    file = home / imported["first"] / "test" / "labels.npy"
    file.write_bytes(file.read_bytes()[:-1] + b"\7")
    assert "test/labels.npy is damaged" in failed(capsys, "runs", "rename", imported["first"], "whole")
    assert Store().open(imported["first"]).title == "first"


def test_the_same_file_under_another_title_or_with_names_is_another_run(capsys, logits):
    for title in ("first", "second", "second"):
        assert main(["import", str(logits), "--title", title]) == 0
    assert sorted(run.title for run in Store().runs() if run.record.imported) == ["first", "second"]


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("r.csv", "rule,metric"), ("r.md", "| metric"), ("r.tex", "\\begin{tabular}"), ("r.json", "["), ("r", " ")],
)
def test_a_report_is_written_as_the_name_of_its_file_says(capsys, logits, tmp_path, name, beginning):
    run(capsys, "evaluate", logits, "--K", 2, "--K", 3, "--output", tmp_path / name)
    written = (tmp_path / name).read_text()
    assert written.startswith(beginning)
    assert "K=2" in written
    assert "K=3" in written


def test_a_report_is_not_written_as_what_it_cannot_be(capsys, logits, tmp_path):
    said = failed(capsys, "evaluate", logits, "--output", tmp_path / "r.xlsx")
    assert "a table is written as .txt, .csv, .json, .md, .tex; or give --format" in said
    assert not (tmp_path / "r.xlsx").exists()
