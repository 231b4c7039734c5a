"""Loggers of Lightning are told of every epoch, and imported only when asked for."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys

import pandas as pd
import pytest
from small_runs import small

from workbench.cli.main import main
from workbench.store import Store
from workbench.training import learner as learning
from workbench.training import train
from workbench.training.loggers import LOGGERS

pytestmark = pytest.mark.usefixtures("one_thread")


def metrics(store: Store, key: str) -> pd.DataFrame:
    return pd.read_csv(store.root / "logs" / "csv" / key[:12] / "metrics.csv")


def assert_history(logged: pd.DataFrame, history: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(logged[history.columns], history, check_dtype=False)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_csv_of_every_epoch_is_written_with_the_settings_beside_it(devices, store):
    run = small(devices=devices)
    told: list[dict] = []
    done = train(run, store=store, progress=False, logger="csv", on_epoch=told.append)
    assert_history(metrics(store, run.key), done.history)
    assert len(told) == run.epochs
    settings = (store.root / "logs" / "csv" / run.key[:12] / "hparams.yaml").read_text()
    assert "learning_rate: 0.001" in settings
    assert run.key in settings
    assert [stored.key for stored in store.runs() if stored.path.parent == store.root] == [run.key]


def test_a_logger_is_no_part_of_what_a_run_is(store):
    first = train(small(), store=store, progress=False)
    again = train(small(), store=store, progress=False, logger="csv")
    assert again.path == first.path
    assert not (store.root / "logs").exists()  # nothing was trained, so that there was nothing to tell


def test_the_record_of_an_interrupted_run_is_whole(store, monkeypatch):
    monkeypatch.setattr(learning, "CHECKPOINT_SECONDS", 0)
    run = small(epochs=4)

    def interrupt(row):
        if row["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(run, store=store, progress=False, logger="csv", on_epoch=interrupt)
    assert metrics(store, run.key)["epoch"].tolist() == [0, 1, 2]
    done = train(run, store=store, progress=False, logger="csv")
    assert_history(metrics(store, run.key), done.history)


class Recorder:
    """What a logger of Lightning can do, as far as it is asked."""

    def __init__(self) -> None:
        self.rows, self.settings, self.end = [], {}, ""

    def log_hyperparams(self, settings):
        self.settings = settings

    def log_metrics(self, metrics, step):
        self.rows.append((step, metrics))

    def save(self):
        pass

    def finalize(self, status):
        self.end = status


def test_a_logger_of_ones_own_is_told_how_it_ended(store):
    recorder = Recorder()
    train(small(), store=store, progress=False, logger=recorder)
    assert [step for step, _ in recorder.rows] == [0, 1, 2]
    assert (recorder.end, recorder.settings["loss"]) == ("success", "CrossEntropy()")

    def fail(row):
        raise KeyError

    with pytest.raises(KeyError):
        train(small(epochs=2), store=store, progress=False, logger=recorder, on_epoch=fail)
    assert recorder.end == "failed"


@pytest.mark.parametrize("logger", ["neptune", 3, True, ["csv"]])
def test_an_unknown_logger_is_refused_before_anything_is_trained(logger, store):
    with pytest.raises(ValueError, match=r"logger = .*; give one of csv, tensorboard, wandb, mlflow, or a logger of"):
        train(small(), store=store, progress=False, logger=logger)
    assert not store.root.exists()


@pytest.mark.parametrize("name", LOGGERS)
def test_a_logger_whose_package_is_missing_says_what_to_install(name, store, monkeypatch):
    def missing(*_, **__):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setitem(LOGGERS, name, dataclasses.replace(LOGGERS[name], arguments=missing))
    with pytest.raises(ValueError, match=f"logger = '{name}' needs a package .*: pip install {LOGGERS[name].package}"):
        train(small(), store=store, progress=False, logger=name)


@pytest.mark.parametrize("name", LOGGERS)
def test_every_logger_takes_its_arguments(name, store):
    import inspect

    from lightning.pytorch import loggers

    tool = LOGGERS[name]
    inspect.signature(getattr(loggers, tool.logger)).bind(**tool.arguments(small(), store.root))


def test_the_command_line_names_a_logger(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    command = ["train", "--dataset", "digits", "--model", "linear", "--epochs", "1", "--device", "cpu", "--json"]
    assert main([*command, "--logger", "csv"]) == 0
    key = json.loads(capsys.readouterr().out)["key"]
    assert len(metrics(Store(tmp_path), key)) == 1
    assert main([*command, "--logger", "neptune"]) == 2
    assert "logger = 'neptune'; give one of csv" in capsys.readouterr().err


def test_no_logger_is_imported_before_it_is_asked_for():
    code = "import sys, workbench.training; print(*{'lightning', 'tensorboard', 'wandb', 'mlflow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
