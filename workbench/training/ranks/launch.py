"""Start ranks, wait for them, and end them all if one fails.

The process that asks for a run on several ranks starts one process for each and waits; rank 0 reports to it. A rank that
fails ends them all, and so does the end of the process that waits, however it comes. On several nodes the same call is
made on each, and each starts its own ranks. Ranks that torchrun or srun has started are taken as they are.

Why not torch.multiprocessing.spawn or torchelastic, for the ranks of one machine? In both every rank imports torch and the
workbench anew, 2.7 s of processor time each, whenever ranks are started; here a process that has done so is copied. On a busy
machine two ranks were up 17 s after the first call and 0.5 s after the next ones, where spawn took 29 to 55 s each time. And a
rank must be able to report its epochs, and what it raises must come out of `train` as it was raised: those launchers give text
back, at the end.
"""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from typing import Any

import torch
from torch import distributed

LAUNCHED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")  # what torchrun and its like tell each process
OF_SLURM = ("SLURM_PROCID", "SLURM_LOCALID")  # and srun, beside how many tasks and nodes there are
RENDEZVOUS = ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK")  # how the ranks of several nodes find each other
NEVER_STARTED, TERMINATED = 1, 143  # exit codes of a rank: Python's own for an error, and the shell's for SIGTERM
SILENCE = timedelta(
    minutes=30
)  # after which ranks no longer wait for one; they do while rank 0 scores and writes the tables
SECONDS_TO_END = 5.0  # that a rank has to leave its files in order before it is killed

Report = Callable[[Any], None]
Context = SpawnContext | ForkServerContext


@dataclass(frozen=True)
class Rank:
    """One rank: which of the `devices` of its node it is, on which of the `nodes`, and where the ranks meet."""

    device_type: str
    local: int
    devices: int
    nodes: int
    node: int
    meeting: str  # a URL as torch.distributed reads it

    @property
    def rank(self) -> int:
        return self.node * self.devices + self.local

    def join(self) -> None:
        """Make this process, which a launcher has started, the rank until it ends."""
        if not distributed.is_initialized():
            with _no_output():
                self.enter()
            atexit.register(distributed.destroy_process_group)

    def enter(self) -> None:
        """Make this process the rank."""
        if self.device_type == "cuda":
            torch.cuda.set_device(self.local)
        backend = "nccl" if self.device_type == "cuda" else "gloo"
        distributed.init_process_group(
            backend, init_method=self.meeting, rank=self.rank, world_size=self.devices * self.nodes, timeout=SILENCE
        )


def launched(device_type: str) -> Rank | None:
    """The rank that this process is by its environment: torchrun, or a job of SLURM or Kubernetes, has started it."""
    if all(name in os.environ for name in LAUNCHED):
        return _by_torchrun(device_type)
    return _by_srun(device_type) if all(name in os.environ for name in OF_SLURM) else None


def _by_torchrun(device_type: str) -> Rank:
    """The rank from the environment of torchrun; without LOCAL_RANK, one process on each node."""
    rank, n_ranks, local = (
        _from_environment("RANK"),
        _from_environment("WORLD_SIZE"),
        _from_environment("LOCAL_RANK", default=0),
    )
    devices = _from_environment("LOCAL_WORLD_SIZE", default=n_ranks if "LOCAL_RANK" in os.environ else 1)
    place = Rank(device_type, local, devices, n_ranks // devices, rank // devices, "env://")
    if place.rank != rank or place.devices * place.nodes != n_ranks:
        raise ValueError(
            f"RANK = {rank}, LOCAL_RANK = {local}, WORLD_SIZE = {n_ranks} and LOCAL_WORLD_SIZE = {devices} do not go "
            "together: every node must have as many ranks as the others, numbered node after node"
        )
    return place


def _by_srun(device_type: str) -> Rank | None:
    """The rank from the environment of srun, which numbers the tasks of a step; None for a single task.

    The script that sbatch starts knows how many tasks its job has, and is none of them: it starts them by srun.
    """
    rank, local = (_from_environment(name) for name in OF_SLURM)
    n_ranks = _from_environment("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", default=1)
    batch_script = os.environ.get("ENVIRONMENT") == "BATCH" and "SLURM_STEP_ID" not in os.environ
    if n_ranks == 1 or batch_script:
        return None
    nodes = _from_environment("SLURM_STEP_NUM_NODES", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", default=1)
    place = Rank(device_type, local, n_ranks // nodes, nodes, rank // max(1, n_ranks // nodes), _meeting_of_job(nodes))
    if place.rank != rank or place.devices * nodes != n_ranks:
        raise ValueError(
            f"SLURM_PROCID = {rank}, SLURM_LOCALID = {local}, {n_ranks} tasks and {nodes} nodes do not go together: every node "
            "must have as many tasks as the others, numbered node after node (srun --ntasks-per-node N --distribution block)"
        )
    return place


def _meeting_of_job(nodes: int) -> str:
    """Rendezvous of the tasks of a step: its first node, at a port that follows from its number."""
    job, step = _from_environment("SLURM_JOB_ID", default=0), _from_environment("SLURM_STEP_ID", default=0)
    address, port = (
        os.environ.get("MASTER_ADDR"),
        os.environ.get("MASTER_PORT", str(20_000 + (100 * job + step) % 20_000)),
    )
    if address is None and nodes == 1:
        address = "127.0.0.1"
    elif address is None:
        address = first_host(os.environ.get("SLURM_STEP_NODELIST", os.environ.get("SLURM_JOB_NODELIST", "127.0.0.1")))
    return f"tcp://{address}:{port}"


def first_host(nodes: str) -> str:
    """The first host of a list as SLURM writes it.

    >>> first_host("gpu[07-08,11],login"), first_host("login,gpu[07-08]"), first_host("rack[2-3]node[01,04]")
    ('gpu07', 'login', 'rack2node01')
    """
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", nodes).partition(",")[0]


def _from_environment(*names: str, default: int | None = None) -> int:
    """The number in the first of these environment variables that is set."""
    name = next((name for name in names if name in os.environ), names[0])
    text = os.environ.get(name, str(default))
    if not text.isdecimal():
        raise ValueError(f"{name} = {text!r} in the environment; a launcher gives a whole number there")
    return int(text)


@contextlib.contextmanager
def _no_output() -> Iterator[None]:
    """Send the output of the transport to standard error: standard output is for results."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def run_on_ranks(
    task: Callable[..., None],
    *arguments: Any,
    device_type: str,
    devices: int,
    nodes: int = 1,
    on_report: Report | None = None,
    preload: str | None = None,
) -> None:
    """Calls `task(*arguments, report)` in every rank of this node and returns when all have finished.

    What rank 0 gives to `report` arrives at `on_report` here, and rank 0 goes on when that has returned. What a rank
    raises, or `on_report` does, is raised here after all ranks of this node have ended. The task and its arguments are
    sent to new processes, so they must be importable there. `preload` is a module that takes long to import: on Linux
    the ranks are copies of a process that has done so.
    """
    node = node_number(nodes)
    with tempfile.TemporaryDirectory(prefix="ranks-") as folder:
        meeting = f"file://{folder}/meeting"
        if nodes > 1:
            meeting = f"tcp://{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        places = [Rank(device_type, local, devices, nodes, node, meeting) for local in range(devices)]
        threads = max(1, torch.get_num_threads() // devices)
        with _started(_context(preload), places, threads, task, arguments) as ranks:
            _wait(ranks, on_report)


def node_number(nodes: int) -> int:
    """The number of this node among the nodes."""
    if nodes == 1:
        return 0
    if missing := [name for name in RENDEZVOUS if name not in os.environ]:
        raise ValueError(
            f"nodes = {nodes}, but {', '.join(missing)} is not in the environment: start the same command on every node, "
            f"with NODE_RANK from 0 to {nodes - 1} and with MASTER_ADDR and MASTER_PORT, an address and a free port of "
            "node 0"
        )
    if not 0 <= (node := int(os.environ["NODE_RANK"])) < nodes:
        raise ValueError(f"NODE_RANK = {node} with nodes = {nodes}; give 0 to {nodes - 1}")
    return node


def _context(preload: str | None) -> Context:
    """Start method of ranks, never a fork of this process: that copies the locks of torch's threads, but no thread."""
    if sys.platform != "linux":
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([preload] if preload else [])
    return context


@contextlib.contextmanager
def _started(
    context: Context, places: list[Rank], threads: int, task: Callable[..., None], arguments: tuple[Any, ...]
) -> Iterator[dict[Connection, BaseProcess]]:
    """The process of each place by the connection to it; all have ended when the block does."""
    ranks: dict[Connection, BaseProcess] = {}
    try:
        for place in places:
            here, there = context.Pipe()
            process = context.Process(
                target=_be_rank, args=(place, there, threads, task, arguments), name=f"rank {place.rank}", daemon=True
            )
            _start(process)
            there.close()  # so that this side notices when the rank's side closes
            ranks[here] = process
        yield ranks
    finally:
        _end(list(ranks.values()))


def _start(process: BaseProcess) -> None:
    try:
        process.start()
    except BrokenPipeError:
        raise ChildProcessError(_never_started(process)) from None
    except (OSError, RuntimeError):
        raise
    except Exception as error:  # pickle's errors have no common class
        raise ValueError(
            f"this run cannot be sent to its ranks ({error}): keep losses, models and functions of your own in a module "
            "that can be imported, or use devices=1"
        ) from error


@dataclass(frozen=True)
class Failure:
    """The exception of a rank, and its time."""

    error: Exception
    at: float


def _wait(ranks: dict[Connection, BaseProcess], on_report: Report | None) -> None:
    """Passes reports on until every rank has ended well; raises what one of them raised."""
    running = dict(ranks)
    while running:
        failures = []
        for connection in wait(list(running)):
            assert isinstance(connection, Connection)
            try:
                message = connection.recv()
            except (EOFError, ConnectionError):
                _check_end(running.pop(connection))
                continue
            if isinstance(message, Failure):
                failures.append(message)
                continue
            if on_report is not None:
                on_report(message)
            with contextlib.suppress(ConnectionError):  # it died meanwhile, which is noticed next
                connection.send("go on")
        if failures:  # when one rank fails, the others fail too, for want of it
            raise min(failures, key=lambda failure: failure.at).error


def _check_end(process: BaseProcess) -> None:
    """Raises if a rank that said nothing more did not end well."""
    process.join()
    if process.exitcode == NEVER_STARTED:
        raise ChildProcessError(_never_started(process))
    if process.exitcode:
        raise ChildProcessError(
            f"{process.name} was ended from outside ({_signal_name(process.exitcode)}; SIGKILL is often a lack of memory: "
            "then try a smaller batch_size); the same call goes on from the last checkpoint"
        )


def _never_started(process: BaseProcess) -> str:
    return (
        f"{process.name} could not start (its error stands above): a script must call train inside "
        "`if __name__ == '__main__':`, and losses and models of your own must be in a module that can be imported"
    )


def _signal_name(exitcode: int) -> str:
    return signal.Signals(-exitcode).name if exitcode < 0 else f"exit code {exitcode}"


def _end(processes: list[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    deadline = time.monotonic() + SECONDS_TO_END
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        if process.is_alive():
            process.kill()
            process.join()


# In the rank


def _be_rank(
    place: Rank, connection: Connection, threads: int, task: Callable[..., None], arguments: tuple[Any, ...]
) -> None:
    # Ctrl-C reaches all processes of a terminal: the one that waits decides. Files that are being written are tidied up.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.dup2(2, 1)  # the transport prints; standard output is for results
    torch.set_num_threads(threads)

    def report(message: Any) -> None:
        if place.rank == 0:
            connection.send(message)
            connection.recv()

    try:
        place.enter()
        task(*arguments, report)
        distributed.barrier()
        distributed.destroy_process_group()
    except Exception as error:
        connection.send(Failure(_sendable(error), time.monotonic()))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(TERMINATED)


def _sendable(error: Exception) -> Exception:
    """The error with its traceback as a note; one that the other side may not know, as its words."""
    known: Exception
    if type(error).__module__ == "builtins":
        known = error
    elif isinstance(error, OSError):  # a full disk, which says in words what to do
        known = OSError(str(error))
    else:
        known = RuntimeError(f"{type(error).__name__}: {error}")
    known.add_note(traceback.format_exc())
    return known
