"""A warm process that trains on request: `workbench worker`.

Starting Python with torch takes longer than training a head on cached features, so one process is kept
and asked again and again. It reads one JSON object a line,

    {"id": 1, "run": {"dataset": {"name": "letters", "knobs": {}}, "model": "mlp", "epochs": 3}, "keep": false, "next": []}
    {"cancel": 1}

where `run` is what `run.json` holds and only its `dataset` is needed, and answers with

    {"id": 1, "event": "started", "epochs": 3}
    {"id": 1, "event": "preparing", "done": 0.25}                 while the features of a backbone are computed
    {"id": 1, "event": "epoch", "row": {"epoch": 0, "train_loss": 1.9, …}}
    {"id": 1, "event": "finished", "key": "4f1c…"}
    {"id": 1, "event": "ahead", "done": 0.5}

or, in place of `"finished"`, `"cancelled"` or `"failed"` with a `message` in words. `next` are runs that will be wanted
next, such as every other value of a slider: when the request is finished they are trained together and lie on the shelf.
Whoever asks for one of them meanwhile gets it first, trained alone, and then they go on; any other request ends them. The
latest request wins: one that is being trained gives way at the end of its epoch, or of a batch of the features it needs. A
line that is no request is answered with `"failed"` and disturbs nothing. With `keep` a run goes to the store, otherwise to
the shelf. A request is only data: code of other people that it names is imported if its module was allowed when the process
was started (`lookup`). When the input closes, the process ends at once: whoever asked is gone, and what is written is
written as a whole or not at all.
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
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, TextIO

import torch

from workbench.datasets import Dataset, ImageTransform, load_spec, transforms
from workbench.lookup import allowed_modules
from workbench.losses import from_spec
from workbench.networks.network import backbone_named
from workbench.store import Store
from workbench.store.shelf import Shelf
from workbench.training import Cancelled, Run, train
from workbench.training.features import features_of, whole_network
from workbench.training.hardware import device_named
from workbench.training.loggers import OnEpoch
from workbench.training.scoring import rows_at_once
from workbench.training.stacked.heads import stackable, train_heads
from workbench.training.trainer import OnBatch, check_run

DATASETS_IN_MEMORY = 2
TOLD = 50  # times that it is said how far the runs of `next` are


def main() -> None:
    """Serve requests until the input closes."""
    torch.set_num_threads(max(1, (os.cpu_count() or 2) // 2))  # the other half is for whoever asks
    answers = sys.stdout
    with (
        open(sys.stdin.fileno(), encoding="utf-8", errors="replace", closefd=False) as lines,
        contextlib.redirect_stdout(sys.stderr),  # what a library prints must not come between the answers
    ):
        Worker(lines, answers).serve()


class Worker:
    """Trains the latest request. Lines arrive on a thread of their own, so that training can look up between epochs."""

    def __init__(self, lines: TextIO, answers: TextIO) -> None:
        self.lines, self.answers = lines, answers
        self.arrived: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.waiting: dict[str, Any] | None = None  # the latest request that is not begun
        self.telling = threading.Lock()  # an answer is a whole line, whichever thread it comes from

    def serve(self) -> None:
        """Train what is asked for; never returns."""
        threading.Thread(target=self._listen, daemon=True).start()
        while True:
            self._sort(self.arrived.get())
            while self.waiting is not None:
                request, self.waiting = self.waiting, None
                self._answer(request)

    def _listen(self) -> None:
        try:
            for line in self.lines:
                self._hear(line)
        finally:
            os._exit(0)

    def _hear(self, line: str) -> None:
        """Passes on a request or a cancel. Anything else is answered here, whatever is being trained."""
        asked = None
        try:
            message = json.loads(line)
            asked = _checked_id(message)
            if not message.keys() & {"run", "cancel"}:
                raise ValueError(f"it has neither run nor cancel, but {', '.join(message) or 'nothing'}")
        except (ValueError, RecursionError) as error:
            about = f'a request is a line such as {{"id": 1, "run": {{…}}}}; this one cannot be read ({error})'
            self._tell(asked, "failed", message=about)
        else:
            self.arrived.put(message)

    def _sort(self, message: dict[str, Any]) -> Any:
        """A request takes the place of the one that waits; a cancel removes that, or else its id is returned."""
        if "cancel" in message and (self.waiting is None or self.waiting.get("id") != message["cancel"]):
            return message["cancel"]
        if self.waiting is not None:
            self._tell(self.waiting.get("id"), "cancelled")
        self.waiting = None if "cancel" in message else message
        return None

    def _look_up(self, current: Any) -> None:
        """Raises `Cancelled` if the request that is being trained was cancelled, or if there is a newer one."""
        cancelled = []
        with contextlib.suppress(queue.Empty):
            while True:
                cancelled.append(self._sort(self.arrived.get_nowait()))
        if current in cancelled or self.waiting is not None:
            raise Cancelled

    def _answer(self, request: dict[str, Any]) -> None:
        """Train one request, and say how it ended."""
        asked = request.get("id")

        def on_epoch(row: dict[str, float]) -> None:
            self._tell(asked, "epoch", row=row)
            self._look_up(asked)

        try:
            if "features" not in request["run"]:  # Lightning will be wanted: it is imported while the data are read
                threading.Thread(target=import_module, args=("workbench.training.fitting",), daemon=True).start()
            run = run_described(request["run"])
            self._tell(asked, "started", epochs=run.epochs)
            self._look_up(asked)
            shelf = Shelf()
            store = shelf.store if request.get("keep") else shelf
            self._prepare(asked, run, shelf)
            _train(run, store, on_epoch, on_batch=lambda: self._look_up(asked))
            shelf.touch(run.key)
            shelf.forget()
            self._tell(asked, "finished", key=run.key)
            if request.get("next"):
                self._train_ahead(asked, request["next"], shelf)
        except Cancelled:
            self._tell(asked, "cancelled")
        except (ValueError, OSError, FloatingPointError, MemoryError) as error:  # our own: they say what to do
            self._tell(asked, "failed", message=str(error))
        except Exception as error:
            traceback.print_exc()
            about = f"training stopped with {type(error).__name__}; the terminal of the workbench says more"
            self._tell(asked, "failed", message=about)

    def _prepare(self, asked: Any, run: Run, shelf: Shelf) -> None:
        """Computes the features that a run needs, unless they are kept, and tells how far it is."""
        if run.features is None or shelf.has(run.key):
            return
        splits = (run.data.train, run.data.val, run.data.test)
        n_batches = sum(math.ceil(split.n / rows_at_once(run.data.input_shape)) for split in splits)
        done = 0

        def on_batch() -> None:
            nonlocal done
            done += 1
            self._tell(asked, "preparing", done=done / n_batches)
            self._look_up(asked)

        network, device = whole_network(run, shelf), device_named(run.device)
        features_of(network, run.data, run.model_name, shelf, device, progress=False, on_batch=on_batch)

    def _train_ahead(self, asked: Any, described: Sequence[Mapping[str, Any]], shelf: Shelf) -> None:
        """Trains runs together as long as nobody wants anything else, and those that somebody wants first."""
        runs = [run for run in _trainable(described) if stackable(run) and not shelf.has(run.key)]
        n_steps = max((run.epochs * math.ceil(run.data.train.n / run.batch_size) for run in runs), default=0)
        step = 0

        def on_batch() -> None:
            nonlocal asked, step
            step += 1
            if step % math.ceil(n_steps / TOLD) == 0:
                self._tell(asked, "ahead", done=min(1.0, (step - 1) / n_steps))
            try:
                self._look_up(asked)
            except Cancelled:
                if self.waiting is None or self.waiting.get("run") not in described:
                    raise
                request, self.waiting = self.waiting, None
                self._answer(request | {"next": []})
                asked = request.get("id")

        self._tell(asked, "ahead", done=0.0)
        try:
            with contextlib.suppress(Cancelled):
                train_heads(runs, store=shelf, progress=False, on_batch=on_batch)
                for run in runs:
                    shelf.touch(run.key)
                shelf.forget()
        finally:
            self._tell(asked, "ahead", done=1.0)

    def _tell(self, asked: Any, event: str, **facts: Any) -> None:
        with self.telling:
            print(json.dumps({"id": asked, "event": event, **facts}), file=self.answers, flush=True)


def _train(run: Run, store: Store, on_epoch: OnEpoch, on_batch: OnBatch) -> None:
    """Trains a run: a head on cached features without Lightning, which would take longer to import than the head to learn."""
    if run.features is None or not stackable(run):
        train(run, store=store, progress=False, on_epoch=on_epoch, on_batch=on_batch)
        return
    (found,) = train_heads([run], store=store, progress=False, on_epoch=lambda _, row: on_epoch(row), on_batch=on_batch)
    if isinstance(found, Exception):
        raise found


def _trainable(described: Iterable[Mapping[str, Any]]) -> Iterator[Run]:
    """The runs that can be trained; the others say why when they are asked for."""
    for each in described:
        try:
            check_run(run := run_described(each))
        except (ValueError, OSError):
            continue
        yield run


def _checked_id(message: Any) -> int | str | None:
    """The id of a message, which is sent back with its answers: a whole number or a word."""
    if not isinstance(message, dict):
        raise ValueError(f"it is a {type(message).__name__}")
    asked = message.get("id")
    if not isinstance(asked, int | str | None):
        raise ValueError(f"id = {asked!r}; give a whole number or a word")
    return asked


def run_described(described: Mapping[str, Any]) -> Run:
    """The run of a request. The dataset's spec tells of its own transforms, so that those of images are left for the run.

    Datasets that were read last stay in memory.
    """
    try:
        data = _dataset(json.dumps(described["dataset"], sort_keys=True))
        known = {field.name for field in dataclasses.fields(Run)}
        fields = {name: value for name, value in described.items() if name in known}
        if "loss" in fields:
            fields["loss"] = from_spec(fields["loss"], allowed=allowed_modules())
        changes = [transforms.from_spec(each, allowed=allowed_modules()) for each in fields.get("transforms", ())]
        if isinstance(model := fields.get("model"), str):
            backbone_named(model, allowed=allowed_modules())
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"this is not how run.json describes a run ({type(error).__name__}: {error}); the least is "
            "{'dataset': {'name': 'letters', 'knobs': {}}}"
        ) from error
    if described.get("dataset_key", data.key) != data.key:
        raise ValueError(f"{data.name} has changed since it was described: its content is not the same")
    of_images = [each for each in changes if isinstance(each, ImageTransform)]
    return Run(**fields | {"dataset": data, "transforms": of_images})


@lru_cache(maxsize=DATASETS_IN_MEMORY)
def _dataset(spec: str) -> Dataset:
    return load_spec(json.loads(spec), allowed=allowed_modules())
