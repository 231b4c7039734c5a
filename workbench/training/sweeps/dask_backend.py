"""Runs of a sweep side by side: on the workers of a Dask cluster, which share one store.

A job is a run, or a stack of runs that are trained together; a stack is divided among the workers. Each run is trained
once however many sweeps ask for it at the same time: the worker that trains a run locks it in the store, and the others
wait for what it gives. What is finished is stored at once, so that a sweep that was interrupted goes on where it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from workbench.cluster.clients import check_workers
from workbench.progress import bar, redraws
from workbench.runs.run import Run
from workbench.store import Store
from workbench.training.stacked import train_many
from workbench.training.trained_run import TrainedRun
from workbench.training.trainer import train

if TYPE_CHECKING:
    from distributed import Client

ONE_AT_A_TIME = threading.Lock()  # of a process: first weights and dropout are drawn from torch's one generator


def trained_side_by_side(
    runs: Sequence[Run], client: Client, store: Store, progress: bool
) -> Iterator[TrainedRun | Exception]:
    """Every run in its order, trained by the workers of a client or read from the store; the error in place of one that
    failed.
    """
    from distributed import as_completed

    check_workers(client)
    n_workers = len(client.scheduler_info(n_workers=-1)["workers"])
    jobs = {
        client.submit(train_job, job, store.root, pure=False): job
        for job in divided([run for run in runs if not store.has(run.key)], store, n_workers)
    }
    errors: dict[str, Exception] = {}
    shown = bar(f"{n_workers} workers", "run", total=sum(map(len, jobs.values())), hidden=not (progress and redraws()))
    try:
        with shown:
            for future in as_completed(jobs):
                job = jobs[future]
                error = future.exception()  # of the job as a whole: a worker that died, a disk that is full
                errors |= future.result() if error is None else {run.key: plain(error) for run in job}
                shown.update(len(job))
    finally:
        client.cancel(list(jobs))
    for run in runs:
        yield errors[run.key] if run.key in errors else TrainedRun(run, store.open(run.key))


def divided(runs: Sequence[Run], store: Store, n_workers: int) -> list[list[Run]]:
    """The runs as jobs: those that can be trained together in as many stacks as there are workers, the others alone."""
    jobs, taken = [], set[str]()
    for run in runs:
        if run.key in taken:
            continue
        members = {member.key: member for member in train_many.companions(run, runs, store) if member.key not in taken}
        members = members or {run.key: run}
        taken |= members.keys()
        n_parts = min(n_workers, len(members))
        jobs += [list(members.values())[part::n_parts] for part in range(n_parts)]
    return jobs


def train_job(runs: Sequence[Run], root: Path) -> dict[str, Exception]:
    """Trains runs where it is called, and returns why some failed, by their keys."""
    store = Store(root)
    with ONE_AT_A_TIME, store.lock(run.key for run in runs):
        left = [run for run in runs if not store.has(run.key)]
        if len(left) > 1:
            found = train_many.train_heads(left, store=store, progress=False)
            return {run.key: each for run, each in zip(left, found, strict=True) if isinstance(each, Exception)}
        try:
            for run in left:
                train(run, store=store, progress=False)
        except Exception as error:  # whatever it is: the other settings go on
            return {left[0].key: plain(error)}
    return {}


def plain(error: BaseException) -> Exception:
    """An error that travels between processes; ours say in words what failed, others are named."""
    known = (ValueError, FloatingPointError, MemoryError)
    return next((kind(str(error)) for kind in known if isinstance(error, kind)), None) or RuntimeError(
        f"{type(error).__name__}: {error}"
    )
