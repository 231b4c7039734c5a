"""Client of a worker process: it asks for training, features or a plane of weights, and follows the progress.

    worker = Worker()
    worker.train([head_of(run, wb.losses.AverageKTwoHead(alpha=0.3))])  # a new head for a stored run
    worker.train([wb.Run("letters", model="mlp"), …], keep=True)        # or any runs
    worker.progress                                                     # at any time

The process is started once and stays warm, because importing torch takes longer than training a head. It answers one
request at a time, and the latest wins; a run that is stored is answered at once. If the process dies, the next request
starts another.
"""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from workbench.losses import Loss
from workbench.runs.run import Run
from workbench.store import StoredRun
from workbench.store.lru_store import LRUStore
from workbench.store.planes import Plane
from workbench.trusted_imports import check_writable

IDLE, QUEUED, PREPARING, TRAINING, FINISHED = "idle", "queued", "preparing", "training", "finished"
CANCELLED, FAILED = "cancelled", "failed"
# Settings of a live head: on the garden's features it settles, and takes about a second.
HEAD: dict[str, Any] = {"epochs": 12, "batch_size": 512, "learning_rate": 0.02}


def head_of(base: StoredRun, loss: Loss, **settings: Any) -> Run:
    """A run that trains a new head on the features of a stored run; `settings` replace some of `HEAD`.

    Raises:
        ValueError: The stored run has no network or was not trained, or its data or model have no name.
    """
    if not base.has_weights:
        raise ValueError(f"{base.title} has scores but no network, so there is no head to train; choose a run that has")
    check_repeatable(base)
    described = base.record.run
    if not base.record.learnt:
        raise ValueError(f"{base.title} was stored as it is and not trained here; choose a run that was trained")
    # A head that was trained on features shares its backbone with others.
    named = {name: described[name] for name in ("dataset", "dataset_key", "model", "head") if name in described}
    named["features"] = described.get("features") or base.key
    run = Run.from_json(named)
    return dataclasses.replace(run, loss=loss, **HEAD | settings)


def check_repeatable(run: StoredRun) -> None:
    """Refuse a run whose data or model no other process can make again."""
    if not run.record.repeatable:
        raise ValueError(
            f"{run.title} was trained on arrays or with a Module of one session, which no other process has; train it on data "
            "that have a name or a path, and with a model given as module:factory"
        )


@dataclass(frozen=True)
class Progress:
    """Progress of a request.

    Args:
        runs: Runs to train; empty for features and planes.
        state: One of idle, queued, preparing, training, finished, cancelled, failed.
        keys: Place in `runs` → key of a run that is trained.
        errors: Place in `runs` → message of a run that failed.
        history: One row per epoch, where one run is trained.
        stage: Work before training in words, such as "photographs".
        done: Share of the stage, or of all epochs, that is done.
        seconds_left: Estimate of the time left, once an epoch is trained.
        message: Reason of a failure, in words.
        ahead: Share of the runs ahead that is trained; None without any.
        note: What the caller notes about its runs.
        place: Of a request that is queued, from 1 on.
    """

    runs: tuple[Run, ...] = ()
    state: str = IDLE
    keys: Mapping[int, str] = field(default_factory=dict)
    errors: Mapping[int, str] = field(default_factory=dict)
    history: tuple[Mapping[Any, float], ...] = ()
    stage: str = ""
    done: float = 0.0
    seconds_left: float | None = None
    message: str = ""
    ahead: float | None = None
    note: Any = None
    place: int = 0

    @classmethod
    def of_stored(cls, runs: Sequence[Run], stored: Sequence[StoredRun], ahead: float | None, note: Any = None) -> Self:
        """The progress of runs that were trained before."""
        history: tuple[Mapping[Any, float], ...] = tuple(stored[0].history.to_dict("records")) if len(runs) == 1 else ()
        keys = {at: run.key for at, run in enumerate(stored)}
        return cls(tuple(runs), FINISHED, keys, history=history, done=1.0, ahead=ahead, note=note)

    @property
    def working(self) -> bool:
        """Whether there is more to come."""
        return self.state in (QUEUED, PREPARING, TRAINING)

    @property
    def working_ahead(self) -> bool:
        """Whether runs ahead of the next request are being trained."""
        return self.ahead is not None and self.ahead < 1

    @property
    def key(self) -> str | None:
        """Key of the first run, once it is trained."""
        return self.keys.get(0)

    @property
    def epochs_done(self) -> int:
        """Epochs that are trained; a run that goes on from a checkpoint reports only the later ones."""
        return int(self.history[-1]["epoch"]) + 1 if self.history else 0


class Worker:
    """A process that trains and computes on request, one request at a time.

    Args:
        lru_store: Where live runs are kept, beside the store; the LRU store of the default store if None.
        once: End the process after its first request.

    Attributes:
        on_answer: Called after each answer of the process, and when it ends.
    """

    on_answer: Callable[[], None] | None = None

    def __init__(self, lru_store: LRUStore | None = None, *, once: bool = False) -> None:
        self.lru_store = LRUStore() if lru_store is None else lru_store
        self.once = once
        self.progress = Progress()
        self._id = 0  # of the latest request
        self._ahead: Sequence[Run] = ()  # trained after it
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Condition()  # several pages may ask at the same time, or wait for the end

    def start(self) -> None:
        """Start the process unless it runs, so that it is warm when the first request comes."""
        with self._lock:
            self._running()

    def train(
        self, runs: Sequence[Run], *, keep: bool = False, ahead: Sequence[Run] = (), note: Any = None
    ) -> Progress:
        """Train runs; those that are stored are answered at once.

        Args:
            runs: The runs. One that fails stops no other.
            keep: Whether they go to the store instead of the LRU store.
            ahead: Runs that will be wanted next, such as the other values of a slider: trained together afterwards, for the
                LRU store. A request for one of them comes first; any other request ends them.
            note: Anything, for `progress.note`.
        """
        with self._lock:
            self._cancel()
            found = self.lru_store.find_all([*runs, *ahead])
            stored, others = found[: len(runs)], found[len(runs) :]
            waiting = [run for run, one in zip(ahead, others, strict=True) if one is None]
            under_way = self.progress.working_ahead and all(run in self._ahead for run in waiting)
            so_far = None if not waiting else self.progress.ahead if under_way else 0.0
            for one in filter(None, stored):
                self.lru_store.touch(one.key)
                if keep:
                    self.lru_store.keep(one.key)
            if all(stored):
                self.progress = Progress.of_stored(runs, [one for one in stored if one is not None], so_far, note)
            else:
                self.progress = Progress(tuple(runs), PREPARING, ahead=so_far, note=note)
            if not all(stored) or (waiting and not under_way):
                self._ahead = waiting
                self._ask(
                    task="train",
                    runs=[run.description() for run in runs],
                    keep=keep,
                    ahead=[run.description() for run in waiting],
                )
            return self.progress

    def compute_features(self, key: str) -> Progress:
        """Compute the features of the training rows of a stored run with its own network."""
        return self._begin(task="features", run=key)

    def compute_plane(self, plane: Plane, steps: int) -> Progress:
        """Compute the points of a plane that are missing, `steps` a side."""
        check_repeatable(self.lru_store.open(plane.run))
        return self._begin(task="plane", plane=asdict(plane), steps=steps)

    def wait(self) -> Progress:
        """Wait until nothing is computed any more, also nothing ahead; return the last progress."""
        with self._lock:
            self._lock.wait_for(lambda: not self.progress.working and not self.progress.working_ahead)
            return self.progress

    def cancel(self) -> None:
        """Stop the request, at the end of a step."""
        with self._lock:
            self._cancel()
            if self.progress.working_ahead:
                self._send({"cancel": self._id})
                self.progress = dataclasses.replace(self.progress, ahead=None)
            self._lock.notify_all()

    def stop(self) -> None:
        """End the process; a second time does nothing."""
        with self._lock:
            self._cancel()
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
                self._process.wait()

    def _begin(self, **request: Any) -> Progress:
        """Ask for something that is no training."""
        with self._lock:
            self._cancel()
            self.progress = Progress(state=PREPARING)
            self._ask(**request)
            return self.progress

    def _cancel(self) -> None:
        if self.progress.working:
            self._send({"cancel": self._id})
            self.progress = dataclasses.replace(self.progress, state=CANCELLED)

    def _ask(self, **request: Any) -> None:
        self._id += 1
        try:
            self._send({"id": self._id, **request})
        except OSError as error:
            self.progress = dataclasses.replace(self.progress, state=FAILED, message=str(error), ahead=None)
            raise

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
        check_writable("nothing is trained")
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-m", "workbench", "worker"]
            environment = os.environ | {"WORKBENCH_HOME": str(self.lru_store.store.root)}
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
                self._hear(json.loads(line))
                with self._lock:
                    if self.once and not self.progress.working and process.stdin is not None:
                        process.stdin.close()
        with self._lock:
            self.progress = dataclasses.replace(self.progress, ahead=None)
            if process is self._process and self.progress.working:
                message = (
                    f"The worker process ended (code {process.returncode}). Most often there was not enough memory: "
                    "try a smaller batch_size, then ask again, and a new one is started."
                )
                self.progress = dataclasses.replace(self.progress, state=FAILED, message=message)
            self._lock.notify_all()
        self._tell()

    def _hear(self, answer: Mapping[str, Any]) -> None:
        """Take in one answer of the process; those to earlier requests say nothing any more."""
        with self._lock:
            if answer["id"] == self._id and (self.progress.working or answer["event"] == "ahead"):
                self.progress = _after(self.progress, answer)
                self._lock.notify_all()
        self._tell()

    def _tell(self) -> None:
        """Call `on_answer`, outside the lock: it may ask this worker again."""
        if self.on_answer is not None:
            self.on_answer()


def _after(progress: Progress, answer: Mapping[str, Any]) -> Progress:
    """The progress after one more answer of the worker."""
    match answer["event"]:
        case "stage":
            return dataclasses.replace(progress, stage=answer["stage"], done=answer["done"])
        case "ahead":
            return dataclasses.replace(progress, ahead=answer["done"])
        case "epoch":
            history = (*progress.history, answer["row"]) if len(progress.runs) == 1 else ()
            facts = {"stage": "", "done": answer["done"], "seconds_left": answer["seconds_left"]}
            return dataclasses.replace(progress, state=TRAINING, history=history, **facts)
        case "trained":
            return dataclasses.replace(progress, keys={**progress.keys, answer["at"]: answer["key"]})
        case "error":
            return dataclasses.replace(progress, errors={**progress.errors, answer["at"]: answer["message"]})
        case state:
            ahead = progress.ahead if state == FINISHED else None  # nothing comes after a failure
            return dataclasses.replace(progress, state=state, message=answer.get("message", ""), ahead=ahead)
