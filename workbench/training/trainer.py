"""Training a run once: `train`."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import platform
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import safetensors.torch
import torch
from torch import Tensor, distributed

import workbench
from workbench.datasets import Dataset, ImageFiles, ImageTransform
from workbench.files.atomic import remove_leftovers, room_for
from workbench.networks.by_name import backbone_named
from workbench.networks.network import build_network
from workbench.runs.monitors import check_monitors
from workbench.runs.run import Run
from workbench.store import RunRecord, Store, chosen_store
from workbench.store.runs import WEIGHTS
from workbench.store.store import write_record
from workbench.tables import LogitTable
from workbench.tables.directories import fill_with_table
from workbench.training import learner as learning
from workbench.training import loop
from workbench.training.collapse import CollapseMonitor, constant_answer
from workbench.training.features import features_of, whole_network
from workbench.training.hardware import check_devices, device_named, one_thread_for_small_steps
from workbench.training.loggers import OnEpoch, logger_named, recorded
from workbench.training.ranks import collectives as parallel
from workbench.training.ranks import launch
from workbench.training.trained_run import TrainedRun
from workbench.training.weight_planes import weight_plane

if TYPE_CHECKING:
    from workbench.training.learner import Learner

__all__ = ["Cancelled", "Run", "TrainedRun", "check_run", "train", "weight_plane", "write_learnt", "write_run"]


class Cancelled(Exception):
    """Raised by `on_epoch` or by a listener of progress bars: training stops, and only the last checkpoint is kept."""


def train(
    run: Run,
    *,
    store: Store | None = None,
    progress: bool = True,
    force: bool = False,
    on_epoch: OnEpoch | None = None,
    logger: Any = None,
) -> TrainedRun:
    """Train a run, or read it from the store if it was trained before.

    A network that gives all validation rows the same answer, no better than naming the commonest classes, gets a warning that
    says what to do: after the second epoch (a later one if that is within 100 steps) or else at the end.

    Args:
        run: The run to train. An interrupted one goes on from its last checkpoint.
        store: Store of the runs, `Store("path")`; by default the user's own (`WORKBENCH_HOME`, else `./runs`, else the user's
            data folder). The demo runs of the package count as trained; their weights are rounded to half precision.
        progress: Whether to show a bar.
        force: Train again a run that is stored already. `Run` says where training gives the same bits.
        on_epoch: Called with the row of the history of each epoch as soon as it ends; it may raise `Cancelled`, which stops
            the run and is raised by `train`; so may a function that listens to progress bars (`progress.listening`).
        logger: "csv", "tensorboard", "wandb" or "mlflow", or an object with the methods of a Lightning logger. It gets the
            settings and the row of each epoch; the named ones write to `logs/` in the store. A run that is read from the
            store is not logged again.

    Returns:
        The run with its tables, history and model.

    Raises:
        TypeError: If `run` is no `Run`.
        FloatingPointError: If the loss diverges.
        Cancelled: If `on_epoch` raises it.

    A run on several ranks is trained in new processes, which this one waits for. Python starts them by importing the
    script again, so a script calls `train` inside `if __name__ == "__main__":`; in a notebook it works too, as long as
    custom losses and models are in a module. On several nodes, make the same call on each, with NODE_RANK,
    MASTER_ADDR and MASTER_PORT in the environment and a store that all nodes see. Where a launcher has started the ranks
    already (`torchrun --nproc-per-node 2 script.py`, `srun --ntasks-per-node 2 python script.py`, or a job of Kubernetes),
    `train` starts nothing: each process is the rank that its environment says, `devices` and `nodes` are the launcher's.
    Rank 0 writes, and no other, so that the store may be on a file system that all nodes share.

    >>> import tempfile
    >>> store = Store(tempfile.mkdtemp())
    >>> trained = train(Run("digits", model="linear", epochs=3, device="cpu"), store=store, progress=False)
    >>> sorted(trained.tables), len(trained.history)
    (['test', 'val'], 3)
    """
    if not isinstance(run, Run):
        raise TypeError(f"train takes a Run, such as Run('letters', model='mlp'), and not {run!r}")
    if on_epoch is not None and not callable(on_epoch):
        raise TypeError(f"on_epoch = {on_epoch!r}; give a function, or None")
    store = chosen_store(store)
    launched = launch.launched(device_named(run.device).type)
    if launched is not None:
        run = _shared_by(run, launched)
        launched.join()
    tool = logger_named(logger, run, store)
    stored = store.open(run.key) if store.has(run.key) else None
    if parallel.as_first(stored is not None and not force):
        if parallel.rank() == 0:
            _remove_leftovers(run, store)
        return TrainedRun(run, stored or store.open(run.key))
    check_run(run)
    # Of all ranks the first writes, and no other.
    writes = parallel.rank() == 0 and (launched is not None or launch.node_number(run.nodes) == 0)
    if writes:
        if force:
            store.unfinished(run.key).unlink(missing_ok=True)
        with store.explained():  # better to fail now than after the first epoch
            store.unfinished(run.key).parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=store.unfinished(run.key).parent).close()
            for folder in (store.root, store.unfinished(run.key).parent):
                remove_leftovers(folder)
    with recorded(tool if writes else None, run, store, on_epoch if writes else None) as report:
        watched = CollapseMonitor(run, report) if writes else None
        if launched is not None:
            _train_as_rank(run, store, progress, force, watched)
        elif run.n_ranks == 1:
            _train_here(run, store, progress, force, watched)
        else:
            _train_on_ranks(run, store, progress, force, watched)
    trained = TrainedRun(run, store.open(run.key))
    if watched is not None:
        watched.warn(trained.stored.record.warned)
    return trained


def _train_here(
    run: Run,
    store: Store,
    progress: bool,
    force: bool,
    on_epoch: OnEpoch | None,
) -> None:
    """Trains in this process, alone or as one of several ranks; rank 0 writes the run."""
    learner = learning.Learner(run, store, on_epoch, progress=progress)
    with one_thread_for_small_steps(learner.network, learner.data.input_shape, run.batch_size):
        device = loop.fit(learner, progress=progress)
        if parallel.rank() == 0:
            write_learnt(learner, device, replace=force)


def write_learnt(learner: Learner, device: torch.device, *, replace: bool = False, **facts: Any) -> None:
    """Writes a run that has learnt to the store, and removes what an interrupted one left there."""
    run, store = learner.run, learner.store
    with store.writing(run.key, replace=replace) as directory:
        write_run(directory, run, learner.weights(), learner.history, learner.tables(device), **facts)
    _remove_leftovers(run, store)


def _remove_leftovers(run: Run, store: Store) -> None:
    """Removes what the training of a run that is stored has left: its checkpoint, the weights of a loss that diverged."""
    for leftover in (store.unfinished(run.key), store.diverged(run.key)):
        with contextlib.suppress(OSError):  # a store that one may only read
            leftover.unlink(missing_ok=True)


def _shared_by(run: Run, launched: launch.Rank) -> Run:
    """The run on the ranks that a launcher has started; how many there are does not change what the run is."""
    n_ranks = launched.devices * launched.nodes
    if run.n_ranks not in (1, n_ranks):
        raise ValueError(
            f"devices = {run.devices} and nodes = {run.nodes}, but the launcher has started {n_ranks} ranks; leave devices "
            "and nodes to it"
        )
    return dataclasses.replace(run, devices=launched.devices, nodes=launched.nodes)


def _train_as_rank(run: Run, store: Store, progress: bool, force: bool, on_epoch: OnEpoch | None) -> None:
    """Trains in this process, one of the ranks that a launcher has started: nothing is started here."""
    device = device_named(run.device)
    if run.features is not None:
        if parallel.rank() == 0:
            network = whole_network(run, store)
            features_of(network, run.data, run.model_name, store, device, progress=progress)
        distributed.barrier()
    _train_here(run, store, progress, force, on_epoch)
    distributed.barrier()  # rank 0 has written


def _train_on_ranks(run: Run, store: Store, progress: bool, force: bool, on_epoch: OnEpoch | None) -> None:
    """Trains in `devices` new processes on this node."""
    device = device_named(run.device)
    check_devices(device, run.devices)
    if run.features is not None:  # once, before every rank asks for them
        network = whole_network(run, store)
        features_of(network, run.data, run.model_name, store, device, progress=progress)
    try:
        launch.run_on_ranks(
            _train_here,
            *(run, store, progress, force),
            device_type=device.type,
            devices=run.devices,
            nodes=run.nodes,
            on_report=on_epoch,
            preload="workbench.training.loop",
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same call goes on from the last checkpoint") from None


def write_run(
    directory: Path,
    run: Run,
    weights: Mapping[str, Tensor],
    history: Sequence[Mapping[Any, float]],
    tables: Mapping[str, LogitTable],
    **facts: Any,
) -> None:
    """Fills a run directory."""
    about = {
        "title": run.title,
        "repeatable": isinstance(run.model, str) and run.data.spec is not None,
        "data": run.data.name if run.data.spec is None else "",
        "input_shape": run.data.input_shape,
        **_of_inputs(run.data),
        "n_classes": run.data.n_classes,
        "kept_epoch": run.best_epoch(history),
        "warned": constant_answer(run, history[-1]),
        **({"best_epochs": run.best_epochs(history)} if len(run.monitors) > 1 else {}),
        "versions": {
            "workbench": workbench.__version__,
            "torch": torch.__version__,
            "python": platform.python_version(),
        },
        "finished": datetime.now(UTC).isoformat(),
        **facts,
    }
    write_record(directory, RunRecord(run=run.to_json(), **about))
    content = safetensors.torch.save(dict(weights))
    with room_for(len(content), directory / WEIGHTS):
        (directory / WEIGHTS).write_bytes(content)
    pd.DataFrame(history).to_csv(directory / "history.csv", index=False)
    for name, table in tables.items():
        fill_with_table(table, directory / name)


def _of_inputs(data: Dataset) -> dict[str, Any]:
    """Facts needed to read new rows, beside their shape."""
    named = {} if data.columns is None else {"columns": data.columns}
    return {**named, "resize": data.train.inputs.resize} if isinstance(data.train.inputs, ImageFiles) else named


def check_run(run: Run) -> None:
    """Refuses a run whose loss, data and batches do not go together, before anything is trained."""
    if isinstance(run.model, str):
        backbone_named(run.model)
    _check_labels(run)
    _check_classes(run)
    check_monitors(run)
    _check_pieces(run)
    _check_images(run)
    n_classes, loss = run.data.n_classes, run.loss.for_classes(run.data.class_counts)
    scores = torch.zeros(2, 2, n_classes) if loss.heads == 2 else torch.zeros(2, n_classes)
    labels = torch.zeros(2, n_classes).bool() if loss.labels == "many" else torch.zeros(2).long()
    for done in (0, 1):  # K may be too large for the classes, at the beginning or at the end
        loss.at(done)(scores, labels)


def _check_classes(run: Run) -> None:
    """Every class has a training row, or the network knows it already."""
    if run.epochs == 0:
        shape, n_classes = run.data.input_shape, run.data.n_classes
        build_network(run.model, run.loss, input_shape=shape, n_classes=n_classes, head="own")
    elif not run.data.class_counts.all():
        raise ValueError(
            f"{run.data.name} has classes without a training row, which cannot be learnt; give epochs=0 and a model that knows "
            "them, or data without these classes"
        )


def _check_pieces(run: Run) -> None:
    """Every rank has a row in every piece of a step."""
    n, pieces = run.data.train.n, run.n_ranks * run.micro_batches
    smallest = n // math.ceil(n / run.batch_size)
    if smallest < pieces:
        raise ValueError(
            f"batches have {smallest} rows and more, which devices × nodes × micro_batches = {pieces} cannot share; use a "
            "larger batch_size, or fewer of them"
        )


def _check_images(run: Run) -> None:
    """Transforms of images need images, and the package they are made with."""
    for transform in run.transforms:
        if isinstance(transform, ImageTransform):
            transform.check(run.data.input_shape)


def _check_labels(run: Run) -> None:
    if run.data.many_labels and run.loss.labels == "one" and not run.loss.also_many_labels:
        raise ValueError(
            f"{run.data.name} has rows with several labels or none, and {type(run.loss).__name__} reads one label per row; "
            "use a loss of many labels (`workbench losses` says which)"
        )
