"""Runs that are trained while somebody watches: the other end of `workbench worker`.

    worker = WarmWorker()
    worker.ask(head_of(run, wb.losses.AverageKTwoHead(alpha=0.3).spec()))     # a new head for a stored run
    worker.ask({"dataset": {"name": "letters", "knobs": {}}, "model": "mlp"})  # or any run
    worker.progress       # at any time: its history so far, the time left, and the key when it is finished

The process is started once and stays warm. It is asked for one run at a time, and the latest request wins; one that was
trained before is answered at once. If the process dies, the next request starts another.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.store import StoredRun
from workbench.store.shelf import Shelf

IDLE, PREPARING, TRAINING, FINISHED = "idle", "preparing", "training", "finished"
CANCELLED, FAILED = "cancelled", "failed"
OF_FEATURES = 0.8  # of the time of a first head: computing the garden's features takes four times as long as training
# How a live head is trained: on the garden's features it settles, and takes about a second.
HEAD = {
    "epochs": 12,
    "batch_size": 512,
    "optimizer": "adamw",
    "learning_rate": 0.02,
    "schedule": "cosine",
    "weight_decay": 1e-4,
    "seed": 0,
}


def head_of(base: StoredRun, loss: Mapping[str, Any], **settings: Any) -> dict[str, Any]:
    """The description of a new head on the features of a stored run. `loss` is what `loss.spec()` gives.

    `settings` replace some of `HEAD`.
    """
    record = base.record
    if not base.has_weights:
        raise ValueError(f"{base.title} has scores but no network, so there is no head to train; choose a run that has")
    if not record.repeatable:
        raise ValueError(
            f"{base.title} was trained on arrays or with a Module of one session: nobody else has them; train it on data "
            "that have a name or a path, and with a model given as module:factory"
        )
    backbone = record.features or base.key  # a head that was trained on features shares its backbone with others
    told = record.to_json()
    described: dict[str, Any] = {
        name: told[name] for name in ("dataset", "dataset_key", "model", "head") if name in told
    }
    return {**described, "features": backbone, "loss": dict(loss), **HEAD, **settings}


@dataclass(frozen=True)
class Progress:
    """How far a request is, and what is trained ahead of the next ones.

    `history` has one row per epoch so far; `message` says in words what failed.
    """

    described: Mapping[str, Any] = field(default_factory=dict)
    state: str = IDLE
    epochs: int = 0
    history: tuple[Mapping[Any, float], ...] = ()
    key: str | None = None
    message: str = ""
    prepared: float = 0.0  # share of the features that are computed, where they must be
    ahead: float | None = None  # how far the runs are that will be wanted next; None without any

    @property
    def working(self) -> bool:
        """Whether there is more to come."""
        return self.state in (PREPARING, TRAINING)

    @property
    def working_ahead(self) -> bool:
        """Whether runs that will be wanted next are being trained."""
        return self.ahead is not None and self.ahead < 1

    @property
    def share(self) -> float:
        """How much of the work is done. Features that must be computed take `OF_FEATURES` of it."""
        epochs = self.epochs_done / max(self.epochs, 1)
        return OF_FEATURES * self.prepared + (1 - OF_FEATURES) * epochs if self.prepared else epochs

    @property
    def epochs_done(self) -> int:
        """Epochs that are trained; a run that goes on from a checkpoint tells only of the later ones."""
        return int(self.history[-1]["epoch"]) + 1 if self.history else 0

    @property
    def seconds_left(self) -> float | None:
        """About how long it will take, once there is an epoch to judge by."""
        if not self.history:
            return None
        mean = sum(row["seconds"] for row in self.history) / len(self.history)
        return mean * (self.epochs - self.epochs_done)


class WarmWorker:
    """A process that trains, one run at a time."""

    def __init__(self, shelf: Shelf | None = None) -> None:
        self.shelf = Shelf() if shelf is None else shelf
        self.progress = Progress()
        self._asked = 0  # number of the latest request
        self._ahead: Sequence[Mapping[str, Any]] = ()  # what is trained after it
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Condition()  # pages of several people may ask at the same time, or wait for the end

    def start(self) -> None:
        """Start the process unless it runs, so that it is warm when the first request comes."""
        with self._lock:
            self._running()

    def ask(
        self, described: Mapping[str, Any], *, keep: bool = False, ahead: Sequence[Mapping[str, Any]] = ()
    ) -> Progress:
        """Train the run that is described as in a `run.json`; `keep` puts it in the store instead of on the shelf.

        Then those that lie `ahead` and are not trained yet, together and for the shelf: whoever moves a slider will want its
        other values too. What is asked for meanwhile comes first; if it is none of them, they are given up.
        """
        with self._lock:
            self._cancel()
            found, *others = self.shelf.all_found([described, *ahead])
            waiting = [each for each, run in zip(ahead, others, strict=True) if run is None]
            under_way = self.progress.working_ahead and all(each in self._ahead for each in waiting)
            so_far = self.progress.ahead if under_way else 0.0 if waiting else None
            if found is not None:
                stored = self.shelf.keep(found.key) if keep else found
                self.shelf.touch(found.key)
                self.progress = _of_stored(described, stored, ahead=so_far)
            else:
                self.progress = Progress(described, PREPARING, ahead=so_far)
            if found is None or (waiting and not under_way):
                self._asked += 1
                self._ahead = waiting
                self._send({"id": self._asked, "run": described, "keep": keep, "next": waiting})
            return self.progress

    def ended(self) -> Progress:
        """Wait until nothing is being trained, also nothing that lies ahead, and tell how it ended."""
        with self._lock:
            self._lock.wait_for(lambda: not self.progress.working and not self.progress.working_ahead)
            return self.progress

    def cancel(self) -> None:
        """Stop what is being trained, at the end of its epoch, or of a batch while its features are computed.

        What is trained together, ahead of what will be wanted next, is stopped at the end of a step.
        """
        with self._lock:
            self._cancel()
            if self.progress.working_ahead:
                self._send({"cancel": self._asked})
                self.progress = dataclasses.replace(self.progress, ahead=None)
            self._lock.notify_all()

    def stop(self) -> None:
        """End the process; a second time does nothing."""
        with self._lock:
            self._cancel()
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()

    def _cancel(self) -> None:
        if self.progress.working:
            self._send({"cancel": self._asked})
            self.progress = dataclasses.replace(self.progress, state=CANCELLED)

    def _send(self, message: Mapping[str, Any]) -> None:
        line = json.dumps(message) + "\n"
        try:
            self._write(line)
        except OSError:  # it died a moment ago: the next one may live
            self._process = None
            self._write(line)

    def _write(self, line: str) -> None:
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(line)
        process.stdin.flush()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "workbench", "worker"]
            environment = os.environ | {"WORKBENCH_HOME": str(self.shelf.store.root)}
            # In a session of its own, so that Ctrl-C in the terminal reaches the server alone; then its input closes.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                encoding="utf-8",
                start_new_session=True,
                env=environment,
            )
            threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()
        return self._process

    def _listen(self, process: subprocess.Popen[str]) -> None:
        with process:  # which closes the pipes
            for line in process.stdout or ():
                answer = json.loads(line)
                with self._lock:
                    if answer["id"] == self._asked and (self.progress.working or answer["event"] == "ahead"):
                        self.progress = _after(self.progress, answer)
                        self._lock.notify_all()
        with self._lock:
            self.progress = dataclasses.replace(self.progress, ahead=None)
            if process is self._process and self.progress.working:
                message = (
                    f"The process that trains ended without a word (code {process.returncode}). Most often there was not "
                    "enough memory: try a smaller batch_size, then ask again, and a new one is started."
                )
                self.progress = dataclasses.replace(self.progress, state=FAILED, message=message)
            self._lock.notify_all()


def _after(progress: Progress, answer: Mapping[str, Any]) -> Progress:
    """The progress after one more answer of the worker."""
    event = answer["event"]
    if event == "started":
        return dataclasses.replace(progress, epochs=answer["epochs"])
    if event == "preparing":
        return dataclasses.replace(progress, prepared=answer["done"])
    if event == "ahead":
        return dataclasses.replace(progress, ahead=answer["done"])
    if event == "epoch":
        return dataclasses.replace(progress, state=TRAINING, history=(*progress.history, answer["row"]))
    ahead = progress.ahead if event == FINISHED else None  # nothing comes after what has failed
    message = answer.get("message", progress.message)
    return dataclasses.replace(progress, state=event, key=answer.get("key"), message=message, ahead=ahead)


def _of_stored(described: Mapping[str, Any], stored: StoredRun, ahead: float | None) -> Progress:
    """The progress of a run that was trained before."""
    history: tuple[Mapping[Any, float], ...] = tuple(stored.history.to_dict("records"))
    return Progress(described, FINISHED, len(history), history, stored.key, ahead=ahead)
