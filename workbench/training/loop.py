"""The training loop from the last checkpoint to the last epoch, with errors that name the remedy."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import NoReturn

import torch

from workbench.networks.by_name import foreign
from workbench.runs.run import Run
from workbench.training.hardware import check_precision, device_named
from workbench.training.learner import Learner, best_kept
from workbench.training.ranks import collectives as parallel

LOST = re.compile(r"gloo|nccl|connection (closed|reset|refused)|broken pipe|timed out|timeout", re.IGNORECASE)
ASKED_TO_END = 128 + signal.SIGTERM  # the exit code that shells give


def fit(learner: Learner, *, progress: bool) -> torch.device:
    """Trains until the run is finished and leaves the kept weights in the learner. Returns where it trained."""
    run = learner.run
    learner.resume()
    device = device_named(run.device)
    check_precision(run.precision, device)
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
            learner.progress_bar(hidden=not progress or parallel.rank() > 0) as learner.bar,
        ):
            learner.move_to(device)
            _train(learner)
    if run.monitor is not None:
        learner.load(learner.best)
    return device


def _train(learner: Learner) -> None:
    """Trains epoch after epoch. Built-in networks and heads use all their weights; a custom network may not."""
    learner.make_optimizer()
    some_idle = foreign(learner.run.model) and learner.run.features is None
    learner.forward_pass = parallel.averaging_gradients(learner.network, some_idle=some_idle)
    while not learner.train_epoch():
        pass


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Ranks whose gradients lie in memory in another order, or which looked for idle weights in vain, need no warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Grad strides do not match bucket view")
        warnings.filterwarnings("ignore", message="find_unused_parameters=True was specified")
        yield


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
            f"batch normalisation needs two rows or more at a time, and batch_size = {run.batch_size} with micro_batches = "
            f"{run.micro_batches} leaves a single one; use a larger batch_size or a smaller micro_batches"
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
        message = str(error).strip().partition("\n")[0]
        raise ValueError(
            f"compile = True, but torch cannot compile {run.model_name} here ({type(error).__name__}: {message}); on a "
            "CPU it needs a C++ compiler such as g++. Leave compile out to train without"
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
    """Ctrl-C and a request to end stop training at once, keep the last epoch and say how to go on."""
    try:
        with _end_on_request():
            yield
    except (KeyboardInterrupt, SystemExit) as error:
        if parallel.n_ranks() == 1:  # ranks are ended so when a run is cancelled too, which leaves nothing new
            learner.save()
        kept = learner.checkpoint.is_file()
        then = "goes on from the last checkpoint" if kept else "starts anew, for there is no checkpoint yet"
        stopped = f"stopped in epoch {learner.epoch + 1} of {learner.run.epochs}; the same call {then}"
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt(stopped) from None
        if error.code == ASKED_TO_END:
            print(f"{learner.run.title}: {stopped}", file=sys.stderr)
        raise


@contextlib.contextmanager
def _end_on_request() -> Iterator[None]:
    """SIGTERM raises `SystemExit`, unless the program has a handler of its own or this is a rank, whose starter handles it."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL or parallel.n_ranks() > 1:
        yield
        return
    signal.signal(signal.SIGTERM, _end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _end(*_: object) -> NoReturn:
    raise SystemExit(ASKED_TO_END)
