"""Loggers of Lightning, by name: what a run measures after each epoch, told to a tool that people watch runs with."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.store import Store
from workbench.training.run import Run

OnEpoch = Callable[[dict[str, float]], None]


@dataclass(frozen=True)
class Tool:
    """A logger: its class in `lightning.pytorch.loggers`, the package it needs, and its arguments for a run.

    `arguments` is a function of the run and of a folder of the store that belongs to the tool.
    """

    logger: str
    package: str
    arguments: Callable[[Run, Path], dict[str, Any]]


LOGGERS: dict[str, Tool] = {
    "csv": Tool("CSVLogger", "lightning", lambda run, at: {"save_dir": at, "name": "", "version": run.key[:12]}),
    "tensorboard": Tool(
        "TensorBoardLogger",
        "tensorboard",
        lambda run, at: {"save_dir": at, "name": "", "version": run.key[:12], "default_hp_metric": False},
    ),
    "wandb": Tool("WandbLogger", "wandb", lambda run, at: {"save_dir": at, "project": "workbench", "name": run.title}),
    "mlflow": Tool(
        "MLFlowLogger",
        "mlflow",
        lambda run, at: {"save_dir": str(at), "experiment_name": "workbench", "run_name": run.title},
    ),
}


def logger_named(given: Any, run: Run, store: Store) -> Any:
    """The logger of this name for a run, or the logger that was given; nothing is imported before it is asked for."""
    if given is None or (hasattr(given, "log_metrics") and hasattr(given, "log_hyperparams")):
        return given
    if not isinstance(given, str) or given not in LOGGERS:
        raise ValueError(f"logger = {given!r}; give one of {', '.join(LOGGERS)}, or a logger of Lightning")
    from lightning.pytorch import loggers

    tool = LOGGERS[given]
    try:
        return getattr(loggers, tool.logger)(**tool.arguments(run, store.root / "logs" / given))
    except ModuleNotFoundError as error:
        raise ValueError(
            f"logger = {given!r} needs a package that is not installed: pip install {tool.package} ({error})"
        ) from None


@contextlib.contextmanager
def recorded(logger: Any, run: Run, store: Store, on_epoch: OnEpoch | None) -> Iterator[OnEpoch | None]:
    """What to call with the row of the history of each epoch, so that the logger and `on_epoch` get it.

    The logger is told the settings first, and the epochs before the last checkpoint again: its record of a run that was
    interrupted is whole.
    """
    if logger is None:
        yield on_epoch
        return

    def tell(row: Mapping[str, float]) -> None:
        logger.log_metrics(dict(row), step=int(row["epoch"]))
        logger.save()

    def tell_both(row: dict[str, float]) -> None:
        tell(row)
        if on_epoch is not None:
            on_epoch(row)

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"lightning\.")  # such as that a record is replaced
        logger.log_hyperparams(_settings(run))
        for row in _past(store.unfinished(run.key)):
            tell(row)
        try:
            yield tell_both
        except BaseException:
            logger.finalize("failed")
            raise
        logger.finalize("success")


def _settings(run: Run) -> dict[str, Any]:
    """The run in words and numbers, as tools show it beside its curves."""
    facts = {"key": run.key, "dataset": run.data.name, "model": run.model_name, "loss": repr(run.loss)}
    knobs = {f"loss.{name}": value for name, value in run.loss.spec()["knobs"].items()}
    return {**facts, **knobs, "monitor": run.monitor, "patience": run.patience, **run.settings()}


def _past(checkpoint: Path) -> list[dict[str, float]]:
    """The epochs that a run has behind it. A checkpoint that cannot be read is told of where training goes on."""
    if not checkpoint.is_file():
        return []
    past: list[dict[str, float]] = []
    with contextlib.suppress(Exception):  # torch raises many kinds
        past = torch.load(checkpoint, map_location="cpu", weights_only=True, mmap=True)["history"]
    return past
