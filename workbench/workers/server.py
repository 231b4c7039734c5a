"""The worker process, `workbench worker`: it trains runs and computes features and planes on request.

Starting Python with torch takes longer than training a head on cached features, so one process is kept and asked again and
again. It reads one JSON object a line,

    {"id": 1, "task": "train", "runs": [{"dataset": {"name": "letters", "knobs": {}}, "model": "mlp"}], "keep": true}
    {"id": 2, "task": "features", "run": "4f1c…"}
    {"id": 3, "task": "plane", "plane": {"run": "4f1c…", "K": 5, "reach": 1, "rows": 500, "seed": 0}, "steps": 9}
    {"cancel": 1}

where a run is what `Run.to_json` writes and only its `dataset` is needed, and answers with

    {"id": 1, "event": "stage", "stage": "photographs", "done": 0.25}         while data, features or points are computed
    {"id": 1, "event": "epoch", "row": {"epoch": 0, …}, "done": 0.1, "seconds_left": 9.0}
    {"id": 1, "event": "trained", "at": 0, "key": "4f1c…"}                    for each run
    {"id": 1, "event": "error", "at": 1, "message": "…"}                      for each of several that failed
    {"id": 1, "event": "finished"}
    {"id": 1, "event": "ahead", "done": 0.5}

or, in place of `"finished"`, `"cancelled"` or `"failed"` with a `message`. `ahead` are runs that will be wanted next, such as
every other value of a slider: when the request is finished they are trained together and kept in the LRU store. A request for one
of them is trained first, alone, and then they go on; any other request ends them. The latest request wins: one that is under
way stops at the end of a step. A line that is not a request is answered with `"failed"` and disturbs nothing. With `keep` runs go
to the store, otherwise to the LRU store. A request is only data: code that it names is imported if its module was allowed when
the process was started (`trusted_imports`). When the input closes, the process ends at once; files are written as a whole or
not at all.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import queue
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, TextIO

import torch

from workbench.datasets import Dataset, DatasetSpec
from workbench.files.cache import FEATURES_OF_RUNS
from workbench.progress import listening
from workbench.runs.run import Run
from workbench.store import Store
from workbench.store.lru_store import LRUStore
from workbench.store.planes import Plane
from workbench.training import Cancelled, TrainedRun
from workbench.training.features import cache_features
from workbench.training.many_runs import train_all
from workbench.training.stacked.train_many import stackable, train_heads
from workbench.training.trainer import check_run
from workbench.training.weight_planes import weight_plane
from workbench.workers.nearest_neighbours import FILE

DATASETS_IN_MEMORY = 2
STEPS = 50  # reports of a stage at most
EXPLAINED = (ValueError, TypeError, OSError, FloatingPointError, MemoryError)  # our own errors: they say what to do


def main() -> None:
    """Serve requests until the input closes."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))  # the other half is for the pages
    answers = sys.stdout
    with (
        open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False) as lines,
        contextlib.redirect_stdout(sys.stderr),  # what a library prints must not come between the answers
    ):
        Server(lines, answers).serve()


class Server:
    """Answers the latest request. Lines arrive on a thread of their own, so that work can look up between steps."""

    def __init__(self, lines: TextIO, answers: TextIO) -> None:
        self.lines, self.answers = lines, answers
        self.arrived: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.waiting: dict[str, Any] | None = None  # the latest request that is not begun
        self.writing = threading.Lock()  # an answer is a whole line, whichever thread it comes from
        self.tasks = {"train": self._train, "features": self._features, "plane": self._plane}

    def serve(self) -> None:
        """Answer requests; never returns."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            self._sort(self.arrived.get())
            while self.waiting is not None:
                request, self.waiting = self.waiting, None
                self._answer(request)

    def _listen(self) -> None:
        try:
            for line in self.lines:
                self._receive(line)
        finally:
            os._exit(0)

    def _receive(self, line: str) -> None:
        """Pass on a request or a cancel. Anything else is answered here, whatever is under way."""
        number = None
        try:
            message = json.loads(line)
            number = _checked_id(message)
            if "cancel" not in message and message.get("task") not in self.tasks:
                raise ValueError(f"task = {message.get('task')!r}; give {', '.join(self.tasks)}, or cancel")
        except (ValueError, RecursionError) as error:
            about = f'a request is a line such as {{"id": 1, "task": "train", "runs": […]}}; this one cannot be read ({error})'
            self._send(number, "failed", message=about)
        else:
            self.arrived.put(message)

    def _sort(self, message: dict[str, Any]) -> Any:
        """A request takes the place of the one that waits; a cancel removes that, or else its id is returned."""
        if "cancel" in message and (self.waiting is None or self.waiting.get("id") != message["cancel"]):
            return message["cancel"]
        if self.waiting is not None:
            self._send(self.waiting.get("id"), "cancelled")
        self.waiting = None if "cancel" in message else message
        return None

    def _look_up(self, current: Any) -> None:
        """Raise `Cancelled` if the current request was cancelled, or if there is a newer one."""
        cancelled = []
        with contextlib.suppress(queue.Empty):
            while True:
                cancelled.append(self._sort(self.arrived.get_nowait()))
        if current in cancelled or self.waiting is not None:
            raise Cancelled

    def _answer(self, request: dict[str, Any]) -> None:
        """Do what one request asks for, and say how it ended."""
        number = request.get("id")
        try:
            with listening(self._stages(number)):
                self.tasks[request["task"]](number, request)
            self._send(number, "finished")
            if request.get("ahead"):
                self._train_ahead(number, request["ahead"], LRUStore())
        except Cancelled:
            self._send(number, "cancelled")
        except EXPLAINED as error:
            self._send(number, "failed", message=str(error))
        except Exception as error:
            traceback.print_exc()
            about = f"the work stopped with {type(error).__name__}; the terminal of the workbench says more"
            self._send(number, "failed", message=about)

    def _stages(self, number: Any) -> Any:
        """A listener of progress bars: it reports each stage in some steps, and cancels."""
        reported: dict[str, int] = {}

        def listen(what: str, unit: str, share: float) -> None:
            self._look_up(number)
            if unit != "batch" and (step := int(share * STEPS)) != reported.get(
                what
            ):  # of batches, epochs are reported
                reported[what] = step
                self._send(number, "stage", stage=what, done=share)

        return listen

    def _train(self, number: Any, request: Mapping[str, Any]) -> None:
        """Train runs; the error of one alone is that of the request."""
        lru_store = LRUStore()
        store = lru_store.store if request.get("keep") else lru_store
        runs: dict[int, Run] = {}
        for at, described in enumerate(request["runs"]):
            try:
                runs[at] = _checked_run(described)
            except EXPLAINED as error:
                self._error(number, at, error, request)
        clock = _Clock(sum(run.epochs for run in runs.values() if not store.has(run.key)))

        def on_epoch(run: Run, row: dict[str, float]) -> None:
            self._send(number, "epoch", row=row, **clock.after(row))
            self._look_up(number)

        results = train_all(runs.values(), store=store, progress=False, on_epoch=on_epoch) if runs else ()
        for at, result in zip(runs, results, strict=True):
            if isinstance(result, Exception):
                self._error(number, at, result, request)
            else:
                lru_store.touch(result.stored.key)
                self._send(number, "trained", at=at, key=result.stored.key)
        lru_store.forget()

    def _error(self, number: Any, at: int, error: Exception, request: Mapping[str, Any]) -> None:
        """Report a run that failed."""
        if len(request["runs"]) == 1:
            raise error
        self._send(number, "error", at=at, message=str(error))

    def _features(self, _: Any, request: Mapping[str, Any]) -> None:
        """Compute the features of a run's data with its own network, and note under which key they lie."""
        store = Store()
        trained = TrainedRun.open(request["run"], store)
        data = cache_features(trained.run.data, trained, store=store, progress=False)
        with FEATURES_OF_RUNS.writing(store, trained.stored.key) as folder:
            (folder / FILE).write_text(json.dumps({"key": data.key}), encoding="utf-8")

    def _plane(self, _: Any, request: Mapping[str, Any]) -> None:
        """Compute a plane through trained weights, with what the machine can spare."""
        os.nice(10)
        plane, store = Plane(**request["plane"]), Store()
        about = {name: value for name, value in dataclasses.asdict(plane).items() if name != "run"}
        trained = TrainedRun.open(plane.run, store)
        weight_plane(trained, **about, steps=request["steps"], store=store, progress=False)

    def _train_ahead(self, number: Any, described: Sequence[Mapping[str, Any]], lru_store: LRUStore) -> None:
        """Train runs together until another request comes; a request for one of them is trained first."""
        runs = [run for run in _trainable(described) if stackable(run) and not lru_store.has(run.key)]
        reported = -1

        def listen(what: str, unit: str, share: float) -> None:
            nonlocal number, reported
            if (step := int(share * STEPS)) != reported:
                reported = step
                self._send(number, "ahead", done=min(share, 0.99))
            try:
                self._look_up(number)
            except Cancelled:
                if not self._is_one_of(described):
                    raise
                request, self.waiting = self.waiting, None
                assert request is not None
                self._answer(request | {"ahead": []})
                number = request.get("id")

        self._send(number, "ahead", done=0.0)
        try:
            with contextlib.suppress(Cancelled), listening(listen):
                train_heads(runs, store=lru_store, progress=False)
                for run in runs:
                    lru_store.touch(run.key)
                lru_store.forget()
        finally:
            self._send(number, "ahead", done=1.0)

    def _is_one_of(self, described: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the request that waits is for one of these runs."""
        waiting_runs = [] if self.waiting is None else self.waiting.get("runs", [])
        return len(waiting_runs) == 1 and waiting_runs[0] in described

    def _send(self, number: Any, event: str, **facts: Any) -> None:
        with self.writing:
            print(json.dumps({"id": number, "event": event, **facts}), file=self.answers, flush=True)


class _Clock:
    """Share of the epochs that are trained, and an estimate of the seconds left."""

    def __init__(self, epochs: int) -> None:
        self.epochs, self.trained, self.start = epochs, 0, math.nan

    def after(self, row: Mapping[str, float]) -> dict[str, float]:
        """`done` and `seconds_left` after one more epoch; a run that goes on from a checkpoint has trained more."""
        self.trained = max(self.trained + 1, int(row["epoch"]) + 1)
        now = time.monotonic()
        self.start = now - row["seconds"] if math.isnan(self.start) else self.start
        left = max(0, self.epochs - self.trained)
        return {"done": self.trained / max(self.epochs, 1), "seconds_left": (now - self.start) / self.trained * left}


def _checked_run(described: Mapping[str, Any]) -> Run:
    check_run(run := _run(described))
    return run


def _trainable(described: Iterable[Mapping[str, Any]]) -> Iterator[Run]:
    """The runs that can be trained; the others say why when they are asked for."""
    for each in described:
        with contextlib.suppress(*EXPLAINED):
            yield _checked_run(each)


def _checked_id(message: Any) -> int | str | None:
    """The id of a message, which is sent back with its answers: a whole number or a word."""
    if not isinstance(message, dict):
        raise ValueError(f"it is a {type(message).__name__}")
    number = message.get("id")
    if not isinstance(number, int | str | None):
        raise ValueError(f"id = {number!r}; give a whole number or a word")
    return number


def _run(described: Mapping[str, Any]) -> Run:
    """The run of a request. Datasets that were read last stay in memory."""
    run = Run.from_json(described)
    assert isinstance(run.dataset, DatasetSpec)
    return dataclasses.replace(run, dataset=_loaded(run.dataset))


@lru_cache(maxsize=DATASETS_IN_MEMORY)
def _loaded(spec: DatasetSpec) -> Dataset:
    return spec.load()
