"""Training from the last checkpoint to the end, and what can go wrong on the way."""

from __future__ import annotations

import contextlib
import logging
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from typing import NoReturn

import lightning.pytorch as pl
import torch
from lightning.fabric.plugins.environments.lightning import LightningEnvironment

from workbench.networks.network import foreign
from workbench.training.batches import Batch, Batches, Epoch
from workbench.training.hardware import check_bf16, device_named
from workbench.training.learner import Learner, best_kept
from workbench.training.ranks import together as parallel
from workbench.training.run import Run

LOST = re.compile(r"gloo|nccl|connection (closed|reset|refused)|broken pipe|timed out|timeout", re.IGNORECASE)
ASKED_TO_END = 128 + signal.SIGTERM  # the exit code that shells give


def fit(learner: Learner, *, progress: bool) -> torch.device:
    """Trains until the run is finished and leaves the kept weights in the learner. Returns where it trained."""
    run = learner.run
    learner.resume()
    device = device_named(run.device)
    if run.precision == "bf16":
        check_bf16(device)
    if not run.finished(learner.history):
        with (
            _quiet(),
            _out_of_memory_explained(run),
            _single_row_explained(run),
            _compiling_explained(run),
            _lost_ranks_explained(learner),
            _interruptions_explained(learner),
            best_kept(learner),
            # A module with dropout draws from the global generators: the user gets them back as they were.
            torch.random.fork_rng(devices=range(torch.cuda.device_count()) if device.type == "cuda" else []),
            learner.progress_bar(disable=not progress or parallel.rank() > 0) as learner.bar,
        ):
            trainer = pl.Trainer(
                accelerator=device.type,
                devices=run.devices,
                num_nodes=run.nodes,
                strategy=_strategy(run),
                plugins=[LightningEnvironment()],  # ranks are started by us, whatever cluster this is
                sync_batchnorm=parallel.n_ranks() > 1 and device.type == "cuda",
                use_distributed_sampler=False,  # batches know their rank
                precision="bf16-mixed" if run.precision == "bf16" else "32-true",
                max_epochs=run.epochs - learner.first_epoch,
                reload_dataloaders_every_n_epochs=1,  # each epoch has its own order
                num_sanity_val_steps=0,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            )
            trainer.fit(Led(learner))
    if run.monitor is not None:
        learner.load(learner.best)
    return device


class Led(pl.LightningModule):
    """A learner that Lightning leads: it says when, on which device and with which ranks, and the learner does it."""

    def __init__(self, learner: Learner) -> None:
        super().__init__()
        # The learner writes its step out. The learning rate is a function of the step, so that no scheduler's state can
        # get lost, and Lightning's automatic step costs more than a small head does.
        self.automatic_optimization = False
        self.learner = learner
        if parallel.n_ranks() > 1:
            learner.backward = self.manual_backward

    def train_dataloader(self) -> Epoch:
        self.learner.passed = self.current_epoch
        return self.learner.train_dataloader()

    def val_dataloader(self) -> Batches:
        return self.learner.val_dataloader()

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.learner.configure_optimizers()

    def on_train_epoch_start(self) -> None:
        self.learner.on_train_epoch_start()

    def training_step(self, batches: Iterable[tuple[int, Batch]], _: int) -> None:
        for batch_idx, batch in batches:
            self.learner.learn(batch, batch_idx)

    def on_validation_epoch_start(self) -> None:
        self.learner.on_validation_epoch_start()

    def validation_step(self, batch: Batch, _: int) -> None:
        self.learner.validation_step(batch)

    def on_train_epoch_end(self) -> None:
        self.trainer.should_stop = self.learner.on_train_epoch_end()


def _strategy(run: Run) -> str:
    """How gradients are exchanged. Ranks wait for those of every weight, unless they look for idle ones in every step.

    A model of one's own may leave weights idle, always or on some batches, also on one rank only. Looking takes a walk
    through the graph of each step; built-in models, and heads on cached features, use all their weights.
    """
    if parallel.n_ranks() == 1:
        return "auto"
    all_at_work = not foreign(run.model) or run.features is not None
    return "ddp" if all_at_work else "ddp_find_unused_parameters_true"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Lightning neither prints nor warns: what a person must know, the progress bar and the errors say."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"lightning\.")
            warnings.filterwarnings("ignore", message="Grad strides do not match bucket view")  # of ranks: no error
            warnings.filterwarnings("ignore", message="find_unused_parameters=True was specified")  # and none was idle
            yield
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def _out_of_memory_explained(run: Run) -> Iterator[None]:
    """Says which settings decide how much memory a step takes."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        # On a GPU torch has a class for it, on a CPU only these words.
        lacking = isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "not enough memory" in str(error)
        if not lacking and "can't allocate memory" not in str(error):
            raise
        halved = f"try batch_size={max(1, run.batch_size // 2)}"
        raise MemoryError(
            f"out of memory with batch_size = {run.batch_size} and precision = {run.precision!r}: {halved}"
            + (" or precision='bf16'" if run.precision == "32" else "")
        ) from error


@contextlib.contextmanager
def _single_row_explained(run: Run) -> Iterator[None]:
    """Says which settings leave batch normalisation a row that has nothing to be compared with."""
    try:
        yield
    except ValueError as error:
        if "more than 1 value per channel" not in str(error):
            raise
        raise ValueError(
            f"batch normalisation needs two rows or more at a time, and batch_size = {run.batch_size} with accumulate = "
            f"{run.accumulate} leaves a single one; use a larger batch_size or a smaller accumulate"
        ) from error


@contextlib.contextmanager
def _compiling_explained(run: Run) -> Iterator[None]:
    """Says what torch.compile lacks where it cannot do its work."""
    if not run.compile:
        yield
        return
    from torch._dynamo.exc import TorchDynamoException  # which takes a second to import

    try:
        yield
    except TorchDynamoException as error:
        said = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"compile = True, but torch cannot compile {run.model_name} here ({type(error).__name__}: {said}); on a CPU it needs "
            "a C++ compiler such as g++. Leave compile out to train without"
        ) from error


@contextlib.contextmanager
def _lost_ranks_explained(learner: Learner) -> Iterator[None]:
    """A rank whose companion has gone hears of a closed connection, and says what that means."""
    try:
        yield
    except RuntimeError as error:  # of which torch has no class of its own
        if parallel.n_ranks() == 1 or not LOST.search(str(error)):
            raise
        where = f"epoch {learner.epoch + 1} of {learner.run.epochs} ({str(error).strip().splitlines()[0]})"
        raise ConnectionError(
            f"rank {parallel.rank()} of {parallel.n_ranks()} lost another rank in {where}: it has ended, or its machine cannot "
            "be reached. Look at what that one says; the same call goes on from the last checkpoint"
        ) from error


@contextlib.contextmanager
def _interruptions_explained(learner: Learner) -> Iterator[None]:
    """Ctrl-C and a request to end stop training at once and say what will become of it.

    Lightning turns Ctrl-C into an exit of the process and then ignores it; a notebook wants to live on. Asked to end, it
    would go on to the end of the epoch and then leave as if all were done.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    # Of several ranks the process that started them speaks, and it ends them so.
    if in_main_thread and handlers[signal.SIGTERM] == signal.SIG_DFL and parallel.n_ranks() == 1:
        signal.signal(signal.SIGTERM, _end)
    try:
        yield
    except SystemExit as error:
        if parallel.n_ranks() == 1:  # ranks are ended so when a run is cancelled too, which leaves nothing new
            learner.save()
        kept = learner.checkpoint.is_file()
        then = "goes on from the last checkpoint" if kept else "starts anew, for there is no checkpoint yet"
        stopped = f"stopped in epoch {learner.epoch + 1} of {learner.run.epochs}; the same call {then}"
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt(stopped) from None
        if error.code == ASKED_TO_END:
            print(f"{learner.run.title}: {stopped}", file=sys.stderr)
        raise
    finally:
        if in_main_thread:
            for number, handler in handlers.items():
                signal.signal(number, handler or signal.SIG_DFL)


def _end(*_: object) -> NoReturn:
    raise SystemExit(ASKED_TO_END)
