"""A logger gets every epoch, and its package is imported only when asked for."""

from __future__ import annotations

import json
import subprocess
import sys
import types

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
    settings = json.loads((store.root / "logs" / "csv" / run.key[:12] / "settings.json").read_text())
    assert (settings["learning_rate"], settings["key"]) == (0.001, run.key)
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
    """An object with the methods of a logger of Lightning."""

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


@pytest.mark.parametrize("name", [name for name in LOGGERS if name != "csv"])
def test_a_logger_whose_package_is_missing_says_what_to_install(name, store, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)  # importing it fails
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    with pytest.raises(ValueError, match=f"logger = '{name}' needs a package .*: pip install {name}"):
        train(small(), store=store, progress=False, logger=name)


def test_tensorboard_reads_every_epoch_and_the_settings(store):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = small()
    done = train(run, store=store, progress=False, logger="tensorboard")
    record = EventAccumulator(str(store.root / "logs" / "tensorboard" / run.key[:12])).Reload()
    logged = {event.step: event.value for event in record.Scalars("val_loss")}
    assert logged == pytest.approx(dict(done.history["val_loss"]))
    assert set(record.Tags()["scalars"]) == set(done.history.columns)
    assert "learning_rate: 0.001" in str(record.Tensors("settings/text_summary")[0])


class Wandb(types.ModuleType):
    """The part of wandb that is used, as its 0.22 declares it."""

    def __init__(self) -> None:
        super().__init__("wandb")
        self.settings: dict = {}
        self.rows: list = []
        self.config = self

    def init(self, *, project, name, dir):
        self.project = project
        return self

    def update(self, settings):
        self.settings |= settings

    def log(self, data, step=None):
        self.rows.append((step, data))

    def finish(self, exit_code=None):
        self.exit_code = exit_code


def test_wandb_gets_every_epoch_and_the_settings(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", wandb := Wandb())
    done = train(small(), store=store, progress=False, logger="wandb")
    assert [step for step, _ in wandb.rows] == [0, 1, 2]
    assert_history(pd.DataFrame([row for _, row in wandb.rows]), done.history)
    assert (wandb.project, wandb.settings["learning_rate"], wandb.exit_code) == ("workbench", 0.001, 0)


class Mlflow(types.ModuleType):
    """The part of MLflow's client that is used, as its 3.5 declares it."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.metrics: list = []
        self.params: dict = {}

    def MlflowClient(self, tracking_uri=None):
        return self

    def get_experiment_by_name(self, name):
        return None

    def create_experiment(self, name):
        return "1"

    def create_run(self, experiment_id, *, run_name=None):
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id="a"))

    def log_param(self, run_id, key, value):
        self.params[key] = value

    def log_metric(self, run_id, key, value, *, step=None):
        self.metrics.append((step, key, value))

    def set_terminated(self, run_id, status=None):
        self.status = status


def test_mlflow_gets_every_epoch_and_the_settings(store, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", mlflow := Mlflow())
    done = train(small(), store=store, progress=False, logger="mlflow")
    logged = {step: value for step, key, value in mlflow.metrics if key == "val_loss"}
    assert logged == dict(done.history["val_loss"])
    assert (mlflow.params["learning_rate"], mlflow.status) == (0.001, "FINISHED")


def test_the_command_line_names_a_logger(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    command = ["train", "--dataset", "digits", "--model", "linear", "--epochs", "1", "--device", "cpu", "--json"]
    assert main([*command, "--logger", "csv"]) == 0
    key = json.loads(capsys.readouterr().out)["key"]
    assert len(metrics(Store(tmp_path), key)) == 1
    assert main([*command, "--logger", "neptune"]) == 2
    assert "logger = 'neptune'; give one of csv" in capsys.readouterr().err


def test_no_logger_is_imported_before_it_is_asked_for():
    code = "import sys, workbench.training; print(*{'tensorboard', 'wandb', 'mlflow'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
