"""Functions run in child processes: several at once, or one that is killed on its way."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

FORK = multiprocessing.get_context("fork")


def all_at_once(works: Sequence[Callable[[], Any]]) -> list[int]:
    """Run every function in a process of its own, all released by one barrier. Returns their exit codes."""
    barrier = FORK.Barrier(len(works))

    def released(work: Callable[[], Any]) -> None:
        barrier.wait()
        work()

    children = [FORK.Process(target=released, args=(work,)) for work in works]
    for child in children:
        child.start()
    for child in children:
        child.join()
    return [child.exitcode for child in children]


def die_after(steps: int) -> None:
    """End this process, as if the power went, at its `steps`-th change of the disk."""
    left = steps

    def before(event: str, _: Any) -> None:
        nonlocal left
        if event in CHANGES:
            left -= 1
            if left < 0:
                os._exit(DIED)

    sys.addaudithook(before)


def killed_after(steps: int, work: Callable[[], Any]) -> bool:
    """Run a function in a child that dies at its `steps`-th change of the disk.

    Returns whether it died; False says that it came to its end before.
    """

    def dies_on_the_way() -> None:
        die_after(steps)
        work()
        os._exit(0)

    child = FORK.Process(target=dies_on_the_way)
    child.start()
    child.join()
    assert child.exitcode in (0, DIED), child.exitcode
    return child.exitcode == DIED


def rank_killed_after(steps: int, rank: int, run: Any, store: Any) -> bool:
    """Train a run on two ranks, of which one dies at its `steps`-th change of the disk. Returns whether it died."""
    from workbench.training.ranks.launch import run_on_ranks

    try:
        run_on_ranks(
            _train_and_die, steps, rank, run, store, device_type="cpu", devices=2, preload="workbench.training.loop"
        )
    except ChildProcessError:
        return True
    return False


def _train_and_die(steps: int, rank: int, run: Any, store: Any, report: Callable[[Any], None]) -> None:
    from workbench.training import learner, trainer
    from workbench.training.ranks import collectives

    learner.CHECKPOINT_SECONDS = 0
    if collectives.rank() == rank:
        die_after(steps)
    trainer._train_here(run, store, False, False, report)


DIED = 99
# Python's audit events of what a program changes on a disk, and of what it opens.
CHANGES = ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.utime", "os.truncate")
