"""Clients of Dask: found, checked, and used for passes over tables."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from workbench import __version__
from workbench.optional_dependencies import check_installed
from workbench.tables.map_reduce import computed_by

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")
LOCAL = ("threads", "processes")  # clusters that live as long as the command
TIMEOUT = 10  # seconds in which a cluster must answer
AT_ONCE = 32  # results fetched together
# Dask has its workers give memory back at once. The arrays of a pass come and go with every span of rows; made of new pages
# each time, they would take as long again as the pass.
MEMORY = {"MALLOC_TRIM_THRESHOLD_": 2**28, "MALLOC_MMAP_THRESHOLD_": 2**27}


@contextlib.contextmanager
def on(client: Client, progress: bool | None = None) -> Iterator[Client]:
    """While the block lasts, every pass over a table is computed by the workers of a Dask client.

    Args:
        client: a `distributed.Client`; `connected("processes")` gives one where there is none yet.
        progress: Whether Dask's own bar is shown; by default on a terminal.
    """
    check_workers(client)
    shown = sys.stdout.isatty() if progress is None else progress
    with computed_by(Workers(client, shown)):
        yield client


@contextlib.contextmanager
def connected(where: str, workers: int | None = None, timeout: float = TIMEOUT) -> Iterator[Client]:
    """A client of a cluster: "threads" or "processes" of this machine, which end with the block, or a scheduler's address.

    Args:
        where: "threads", "processes", or an address such as "tcp://scheduler:8786".
        workers: How many, of this machine; by default one for each processor.
        timeout: Seconds after which a scheduler that has not answered will not.
    """
    check_installed("distributed")
    import dask
    from distributed import Client, LocalCluster

    if where not in LOCAL:
        if "://" not in where:
            raise ValueError(f"there is no cluster {where!r}; give {', '.join(LOCAL)} or an address, tcp://host:port")
        if workers is not None:
            raise ValueError(f"the cluster at {where} has the workers it has; a number is for {' and '.join(LOCAL)}")
        with _client_of(where, timeout) as client:
            yield client
        return
    if workers is not None and workers < 1:
        raise ValueError(f"workers = {workers}; give at least 1")
    workers = workers or os.cpu_count() or 1
    made_of: dict[str, Any] = {"processes": False, "n_workers": 1, "threads_per_worker": workers}
    if where == "processes":
        made_of = {"processes": True, "n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1"}
    here = "127.0.0.1:0"  # where Dask shows its pages: on this machine only
    with dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in MEMORY.items()}):
        cluster = LocalCluster(**made_of, dashboard_address=here, worker_dashboard_address=here)
    with cluster, Client(cluster) as client:
        yield client


@contextlib.contextmanager
def _client_of(address: str, timeout: float) -> Iterator[Client]:
    from distributed import Client

    try:
        _ask(address, timeout)
        client = Client(address, timeout=timeout)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no cluster answered at {address} within {timeout:g} seconds ({error}); is `dask scheduler` running there?"
        ) from None
    with client:
        yield client


def _ask(address: str, timeout: float) -> None:
    """Wait for an answer of the scheduler with a limit: a client would wait for ever at a port that only listens."""
    from distributed.core import rpc

    async def identify() -> None:
        async with rpc(address) as scheduler:
            await asyncio.wait_for(scheduler.identity(), timeout)

    with ThreadPoolExecutor(1) as thread:  # where this one may have a loop of its own, as in a notebook
        thread.submit(lambda: asyncio.run(identify())).result()


def check_workers(client: Client) -> None:
    """Refuses a cluster without workers, and workers without the workbench or with another version of it, by name."""
    # A function of Python's own: one of ours could not be read by a worker that has no workbench.
    found = client.run(eval, "__import__('workbench').__version__", on_error="return")
    if not found:
        raise ConnectionError("the cluster has no workers; start some with `dask worker`")
    for worker, version in found.items():
        if isinstance(version, ModuleNotFoundError):
            raise ValueError(f"worker {worker} has no workbench: install version {__version__} where it runs")
        if isinstance(version, Exception):
            raise ValueError(f"worker {worker} cannot load the workbench: {version}")
        if version != __version__:
            raise ValueError(f"worker {worker} has workbench {version}, and this is {__version__}; install the same")


class Workers:
    """The workers of a client, as passes use them (`tables.map_reduce.Executor`)."""

    def __init__(self, client: Client, progress: bool) -> None:
        self.client, self.progress = client, progress

    def compute(self, function: Callable[..., T], shared: Any, tasks: Iterable[tuple[Any, ...]]) -> Iterator[T]:
        """`function(shared, *arguments)` of each of the arguments, in their order, a few results at a time."""
        from distributed import KilledWorker
        from distributed import progress as show

        arguments = list(tasks)
        task = shared[0] if isinstance(shared, tuple) and callable(shared[0]) else function  # what Dask's pages show
        name = f"{getattr(task, '__name__', 'pass')}-{uuid.uuid4().hex}"
        keys = [f"{name}-{number}" for number in range(len(arguments))]
        sent = self.client.scatter([shared], broadcast=True, hash=False)[0]
        futures = self.client.map(_computed, arguments, function=function, shared=sent, key=keys, pure=False)
        if self.progress and futures:
            show(futures, notebook=False)
            print()
        try:
            while futures:
                some, futures = futures[:AT_ONCE], futures[AT_ONCE:]
                yield from self.client.gather(some)
        except KilledWorker as error:
            last = getattr(error.last_worker, "address", error.last_worker)
            raise RuntimeError(
                f"workers died again and again over the same rows, the last one at {last}; most often their memory is too "
                "small: give them more, or fewer threads"
            ) from None


def _computed(arguments: tuple[Any, ...], function: Callable[..., T], shared: Any) -> T:
    """Run the function on a worker; an error of its files names the worker."""
    from distributed import get_worker

    try:
        return function(shared, *arguments)
    except OSError as error:
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else OSError
        raise kind(f"worker {get_worker().address}: {error}") from None
