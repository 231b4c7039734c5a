"""Experiment loggers by name: each epoch of a run, sent to a tool that people watch runs with."""

from __future__ import annotations

import contextlib
import json
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.runs.run import Run
from workbench.store import Store
from workbench.training.checkpoint import past_epochs

OnEpoch = Callable[[dict[str, float]], None]
PROJECT = "workbench"  # of wandb, and the experiment of mlflow


class Logger:
    """Records a run. Any object with these four methods will do; loggers of Lightning have them."""

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        """Records the settings, before the first epoch."""
        raise NotImplementedError

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Records the row of an epoch."""
        raise NotImplementedError

    def save(self) -> None:
        """Writes what is recorded so far."""

    def finalize(self, status: str) -> None:
        """Ends the record; the status is "success" or "failed"."""


class CSVLogger(Logger):
    """`metrics.csv`, a line for each epoch, with `settings.json` beside it."""

    def __init__(self, run: Run, folder: Path) -> None:
        self.folder = folder / run.key[:12]
        self.rows: list[dict[str, float]] = []

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "settings.json").write_text(json.dumps(params, indent=1, default=str), encoding="utf-8")

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.rows.append(metrics)

    def save(self) -> None:
        pd.DataFrame(self.rows).to_csv(self.folder / "metrics.csv", index=False)


class TensorBoardLogger(Logger):
    """Curves and settings for TensorBoard."""

    def __init__(self, run: Run, folder: Path) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(folder / run.key[:12])

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        self.writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in params.items()))

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.writer.add_scalar(name, value, step)

    def save(self) -> None:
        self.writer.flush()

    def finalize(self, status: str) -> None:
        self.writer.close()


class WandbLogger(Logger):
    """A run of Weights & Biases, with its files in the store."""

    def __init__(self, run: Run, folder: Path) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        self.run = wandb.init(project=PROJECT, name=run.title, dir=str(folder))

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        self.run.config.update(params)

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        self.run.log(metrics, step=step)

    def finalize(self, status: str) -> None:
        self.run.finish(exit_code=int(status != "success"))


class MLflowLogger(Logger):
    """A run of MLflow: on the server that MLFLOW_TRACKING_URI names, or in the store."""

    def __init__(self, run: Run, folder: Path) -> None:
        from mlflow import MlflowClient

        folder.mkdir(parents=True, exist_ok=True)
        self.client = MlflowClient(os.environ.get("MLFLOW_TRACKING_URI", f"sqlite:///{folder.absolute()}/mlflow.db"))
        experiment = self.client.get_experiment_by_name(PROJECT)
        number = self.client.create_experiment(PROJECT) if experiment is None else experiment.experiment_id
        self.id = self.client.create_run(number, run_name=run.title).info.run_id

    def log_hyperparams(self, params: dict[str, Any]) -> None:
        for name, value in params.items():
            self.client.log_param(self.id, name, value)

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        for name, value in metrics.items():
            self.client.log_metric(self.id, name.replace("@K=", " K="), value, step=step)  # it takes no @

    def finalize(self, status: str) -> None:
        self.client.set_terminated(self.id, "FINISHED" if status == "success" else "FAILED")


LOGGERS: dict[str, Callable[[Run, Path], Logger]] = {
    "csv": CSVLogger,
    "tensorboard": TensorBoardLogger,
    "wandb": WandbLogger,
    "mlflow": MLflowLogger,
}


def logger_named(given: Any, run: Run, store: Store) -> Any:
    """The logger of this name for a run, or the logger that was given; its package is imported here."""
    if given is None or all(hasattr(given, name) for name in vars(Logger) if not name.startswith("_")):
        return given
    if not isinstance(given, str) or given not in LOGGERS:
        raise ValueError(f"logger = {given!r}; give one of {', '.join(LOGGERS)}, or a logger of Lightning")
    try:
        return LOGGERS[given](run, store.root / "logs" / given)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"logger = {given!r} needs a package that is not installed: pip install {given} ({error})"
        ) from None


@contextlib.contextmanager
def recorded(logger: Any, run: Run, store: Store, on_epoch: OnEpoch | None) -> Iterator[OnEpoch | None]:
    """The function to call with the row of each epoch, so that the logger and `on_epoch` get it.

    The logger gets the settings first, and the epochs before the last checkpoint again: its record of a run that was
    interrupted is whole.
    """
    if logger is None:
        yield on_epoch
        return

    def log(row: Mapping[str, float]) -> None:
        logger.log_metrics(dict(row), step=int(row["epoch"]))
        logger.save()

    def log_and_report(row: dict[str, float]) -> None:
        log(row)
        if on_epoch is not None:
            on_epoch(row)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"lightning\.")  # such as that a record is replaced
        logger.log_hyperparams(_settings(run))
        for row in past_epochs(store.unfinished(run.key)):
            log(row)
        try:
            yield log_and_report
        except BaseException:
            logger.finalize("failed")
            raise
        logger.finalize("success")


def _settings(run: Run) -> dict[str, Any]:
    """The run in words and numbers, as tools show it beside its curves."""
    facts = {"key": run.key, "dataset": run.data.name, "model": run.model_name, "loss": repr(run.loss)}
    knobs = {f"loss.{name}": value for name, value in run.loss.spec()["knobs"].items()}
    return {**facts, **knobs, "monitor": run.monitor, "patience": run.patience, **run.settings()}
