"""Kills, writers and damaged files, counted: `python tests/fire/harness.py` (or `make fire`) is the long way, tests a short one.

Every damaged file is read in a process of its own with limits: no code may run, nothing may crash, take more than ten
seconds of the processor or more memory than ten times the file and 200 MB, and only `ValueError` and `OSError` may come out.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mutations import MUTATIONS
from processes import FORK, killed_after, rank_killed_after
from seeds import LABELS, SCORES, SEEDS, table

import workbench as wb
from workbench.store import Store, maintenance
from workbench.store.imported_tables import keep_tables
from workbench.store.lru_store import LRUStore
from workbench.store.set_answers import SetAnswers
from workbench.store.tags import pin, tag, tags_of

SECONDS, TIMES, SPARE = 10, 10, 200 * 2**20
READ, REFUSED, FOREIGN, CODE, MEMORY = 0, 10, 11, 12, 13
WORDS = {READ: "read", REFUSED: "refused", FOREIGN: "foreign exception", CODE: "code ran", MEMORY: "too much memory"}
WORDS |= {
    -signal.SIGPROF: "hang",
    -signal.SIGALRM: "hang",
    -signal.SIGSEGV: "crash",
    -signal.SIGBUS: "crash",
    -signal.SIGABRT: "crash",
}
RUNS_CODE = ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "pickle.find_class", "socket.connect")


def fates_of_damaged_files(n: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """What became of `n` damaged files, spread over every reader, and a line for each that broke a promise."""
    fates: Counter[str] = Counter()
    broken: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        seeds = {name: Path(folder) / "whole" / name for name in SEEDS}
        for name, whole in seeds.items():
            whole.mkdir(parents=True)
            SEEDS[name][0](whole)
            SEEDS[name][1](whole)  # what a reader imports it imports once, and not in the process of every file
        for number in range(n):
            name = list(SEEDS)[number % len(SEEDS)]
            chance = random.Random(f"{seed} {number}")
            copy = Path(folder) / "damaged"
            shutil.copytree(seeds[name], copy)
            files = sorted(path for path in copy.glob(SEEDS[name][2]) if path.is_file())
            file, mutation = chance.choice(files), chance.choice(MUTATIONS)
            file.write_bytes(mutation(file.read_bytes(), chance))
            fate = fate_of(lambda name=name, copy=copy: SEEDS[name][1](copy), file.stat().st_size)
            fates[fate] += 1
            if fate not in ("read", "refused"):
                broken.append(f"{fate}: {name}, {file.name}, {mutation.__name__}, case {seed} {number}")
            shutil.rmtree(copy)
    return fates, broken


def fate_of(read: Callable[[], object], n_bytes: int) -> str:
    """How reading ended, in a process with limits."""

    def limited() -> None:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 1), os.dup2(nothing.fileno(), 2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for end in (signal.SIGPROF, signal.SIGALRM):
            signal.signal(end, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # of the processor: on a busy machine nothing hangs for that
        signal.alarm(60 * SECONDS)  # what waits takes none
        sys.addaudithook(lambda event, _: os._exit(CODE) if event in RUNS_CODE else None)
        warnings.simplefilter("ignore")
        try:
            read()
            fate = READ
        except (ValueError, OSError):
            fate = REFUSED
        except BaseException:
            fate = FOREIGN
        taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        os._exit(fate if taken <= TIMES * n_bytes + SPARE else MEMORY)

    child = FORK.Process(target=limited)
    child.start()
    child.join()
    return WORDS.get(child.exitcode, f"ended with {child.exitcode}")


def works(store: Store, key: str, folder: Path) -> dict[str, Callable[[], object]]:
    """What may be killed on its way: every kind of change that the workbench makes on a disk without training."""
    new = wb.LogitTable(-np.eye(6), np.arange(6))
    uploads = LRUStore(store, size=1, folder="uploads")
    return {
        "import": lambda: keep_tables(new, title="new", store=store),
        "rename": lambda: store.rename(key, "another title"),
        "tag": lambda: tag(store, key, "one", "two"),
        "pin": lambda: pin(store, key),
        "trash": lambda: store.trash(key),
        "table": lambda: table().save(folder / "table"),
        "shards": lambda: table().append_to(folder / "shards"),
        "index": lambda: wb.SetIndex.open(folder / "table"),
        "prune": lambda: maintenance.prune(store),
        "upload": lambda: (keep_tables(new, title="new", store=uploads), uploads.forget()),
        "answer": lambda: SetAnswers.of_run(store, key).add("ann", 1, ["oak", "elm"]),
    }


def small_run(**fields: Any) -> wb.Run:
    data = wb.Dataset.from_arrays(SCORES.repeat(4, 0), LABELS.repeat(4), name="rows")
    return wb.Run(data, model="linear", epochs=2, batch_size=16, device="cpu", **fields)


def trainings(store: Store, key: str, folder: Path) -> dict[str, Callable[[], object]]:
    """What may be killed while it trains: a run with a checkpoint every epoch, and a sweep of two."""
    from workbench.training import learner

    learner.CHECKPOINT_SECONDS = 0
    return {
        "train": lambda: wb.train(small_run(), store=store, progress=False),
        "sweep": lambda: wb.sweep(small_run(), {"seed": [1, 2]}, store=store, progress=False),
    }


@contextlib.contextmanager
def prepared() -> Iterator[tuple[Store, str, Path]]:
    """A store with a run that has tags and answers, its key, and a folder with a table and with shards."""
    with tempfile.TemporaryDirectory() as root:
        store, folder = Store(Path(root) / "store"), Path(root)
        key = keep_tables(table(), title="mine", store=store).key
        table().save(folder / "table")
        table().append_to(folder / "shards")
        tag(store, key, "kept")
        SetAnswers.of_run(store, key).add("ben", 1, ["fir"])
        yield store, key, folder


def kills(most: int | None = None, kinds: Any = works) -> Iterator[tuple[str, str]]:
    """For every kind of work and every step of it: its name, and what was lost when it was killed there ("" if nothing)."""
    for name in kinds(Store("/nowhere"), "", Path("/nowhere")):
        whole = bits_of_whole(kinds, name) if kinds is trainings else {}
        for step in range(most) if most else itertools.count():
            with prepared() as (store, key, folder):
                work = kinds(store, key, folder)[name]
                if not killed_after(step, work):
                    break
                yield name, lost(store, key, folder) or (other_bits(work, store, whole) if whole else "")


def kills_of_ranks(stride: int = 1) -> Iterator[tuple[str, str]]:
    """The same for training on two ranks, of which one dies: at every `stride`-th step of either."""
    run = small_run(devices=2)
    with prepared() as (store, _, _):
        wb.train(run, store=store, progress=False)
        whole = trained_bits(store)
    for rank in range(2):
        for step in itertools.count(0, stride):
            with prepared() as (store, key, folder):
                if not rank_killed_after(step, rank, run, store):
                    break
                again = functools.partial(wb.train, run, store=store, progress=False)
                yield f"rank {rank}", lost(store, key, folder) or other_bits(again, store, whole)


def bits_of_whole(kinds: Any, name: str) -> dict[str, bytes]:
    """What is trained when nothing is killed."""
    with prepared() as (store, key, folder):
        kinds(store, key, folder)[name]()
        return trained_bits(store)


def other_bits(again: Callable[[], object], store: Store, whole: dict[str, bytes]) -> str:
    """Train once more what was killed; "" if it ends with the bits of what was not."""
    again()
    return "" if trained_bits(store) == whole else "bits of what was trained"


def trained_bits(store: Store) -> dict[str, bytes]:
    """Key → scores of what was trained."""
    return {run.key: np.asarray(run.tables["test"].scores).tobytes() for run in store.runs() if run.has_weights}


def lost(store: Store, key: str, folder: Path) -> str:
    """What a killed process has taken with it; "" if everything is there, as it was or as it was to be."""
    try:
        run = store.open(key) if store.has(key) else store.restore(key)
        if run.tables["test"].n != 6 or "kept" not in tags_of(store, key).tags:
            return "the run or its tags"
        if store.unreadable():
            return "a readable store"
        if wb.LogitTable.load(folder / "table").n != 12 or wb.LogitTable.load(folder / "shards").n not in (12, 24):
            return "rows of a table"
        if "ben" not in set(SetAnswers.of_run(store, key).frame()["person"]):
            return "an answer"
        tag(store, key, "after")  # the lock of a killed process is free
    except (ValueError, OSError) as error:
        return str(error)
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    began = time.monotonic()
    by_work, losses = Counter[str](), []
    for name, what in itertools.chain(kills(), kills(kinds=trainings), kills_of_ranks()):
        by_work[name] += 1
        losses += [f"{name}: {what}"] if what else []
    print(f"{by_work.total()} kills ({', '.join(f'{name} {n}' for name, n in by_work.items())}): {len(losses)} losses")
    fates, broken = fates_of_damaged_files(options.files, options.seed)
    print(f"{fates.total()} damaged files: {', '.join(f'{fate} {n}' for fate, n in fates.most_common())}")
    print("\n".join([*losses, *broken]) or "every promise held")
    print(f"{time.monotonic() - began:.0f} s")
    return 1 if losses or broken else 0


if __name__ == "__main__":
    sys.exit(main())
