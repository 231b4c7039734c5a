"""A fair queue of live training: each visitor has one request, the latest, and a few workers serve visitors in turn.

    queue = LiveQueue([Worker()])
    mine, yours = queue.visitor(), queue.visitor()
    mine.train(head, ahead=heads)   # the progress of a visitor is that of a worker
    yours.train(other)
    yours.progress.place            # 1: next in turn

A newer request of a visitor who waits keeps the place of the older one, which is never trained; one of a visitor who is being
served goes to the end of the queue. Runs that are stored already are answered at once. The other values of a slider
are trained while the queue is empty.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

from workbench.runs.run import Run
from workbench.store import StoredRun
from workbench.workers.client import CANCELLED, FAILED, QUEUED, Progress, Worker


class LiveQueue:
    """Serves visitors in turn.

    Args:
        workers: As many requests are trained at a time. A worker starts its process when it is first needed.
    """

    def __init__(self, workers: Sequence[Worker]) -> None:
        self.workers = tuple(workers)
        self.lock = threading.RLock()  # taken before the lock of a worker, never after it
        self.served: dict[Worker, Visitor] = {}
        self.waiting: list[Visitor] = []  # in turn
        self.unfinished: list[Visitor] = []  # the other values of their sliders are trained when the queue is empty
        for worker in self.workers:
            worker.on_answer = self.assign

    def start(self) -> None:
        """Start a process unless one runs, so that it is warm when the first request comes."""
        self.workers[0].start()

    def visitor(self) -> Visitor:
        """A new visitor, who has asked for nothing yet."""
        return Visitor(self)

    def assign(self) -> None:
        """Give the workers that are free to those who wait."""
        with self.lock:
            while self.waiting and (worker := self._free_for(self.waiting[0], interrupt=True)):
                self._serve(self.waiting.pop(0), worker)
            while self.unfinished and (worker := self._free_for(self.unfinished[0], interrupt=False)):
                self._serve(self.unfinished.pop(0), worker)

    def remove(self, visitor: Visitor) -> None:
        """Take a visitor out of the queue."""
        for line in (self.waiting, self.unfinished):
            if visitor in line:
                line.remove(visitor)

    def release(self, visitor: Visitor) -> None:
        """Part a visitor from the worker, whose last progress stays."""
        if visitor.worker is not None:
            visitor.last = visitor.worker.progress
            del self.served[visitor.worker]
            visitor.worker = None

    def _free_for(self, visitor: Visitor, *, interrupt: bool) -> Worker | None:
        """The worker that serves the visitor already, else an idle one, else, with `interrupt`, one that trains ahead."""
        if visitor.worker is not None:
            return visitor.worker
        free = [worker for worker in self.workers if not worker.progress.working]
        idle = [worker for worker in free if not worker.progress.working_ahead]
        return next(iter([*idle, *free] if interrupt else idle), None)

    def _serve(self, visitor: Visitor, worker: Worker) -> None:
        before = self.served.get(worker)
        if before is not None and before is not visitor:
            self.release(before)
            if before.last.working_ahead:
                self.unfinished.append(before)
        try:
            worker.train([visitor.run], ahead=visitor.ahead)
        except OSError as error:  # no process could be started, or this server only shows
            self.release(visitor)
            visitor.last = Progress((visitor.run,), FAILED, message=str(error))
        else:
            visitor.worker, self.served[worker] = worker, visitor


class Visitor:
    """One of those who ask a queue. It is asked as a `Worker` is, for one run at a time."""

    run: Run  # the latest request
    ahead: Sequence[Run] = ()

    def __init__(self, queue: LiveQueue) -> None:
        self.queue = queue
        self.worker: Worker | None = None  # that trains the request, or did and was not asked by others since
        self.last = Progress()  # where no worker serves

    @property
    def progress(self) -> Progress:
        """Progress of the latest request; while it waits, with its place in the queue."""
        with self.queue.lock:
            if self in self.queue.waiting:
                return Progress((self.run,), QUEUED, place=1 + self.queue.waiting.index(self))
            return self.last if self.worker is None else self.worker.progress

    def train(self, run: Run, ahead: Sequence[Run] = ()) -> Progress:
        """Train a run, then those that will be wanted next, such as the other values of a slider."""
        queue, lru_store = self.queue, self.queue.workers[0].lru_store
        stored, *others = lru_store.find_all([run, *ahead])
        with queue.lock:
            self.run, self.ahead = run, ahead
            if stored is not None:
                lru_store.touch(stored.key)
                self._answer(stored, missing=None in others)
            elif self not in queue.waiting:
                if queue.waiting:  # they come first
                    self._end()
                queue.remove(self)
                queue.waiting.append(self)
            queue.assign()
            return self.progress

    def cancel(self) -> None:
        """Withdraw the request: it is never begun, or stops at the end of a step."""
        with self.queue.lock:
            waited = self in self.queue.waiting
            self._end()
            self.last = Progress((self.run,), CANCELLED) if waited else replace(self.last, ahead=None)
            self.queue.assign()

    def _answer(self, stored: StoredRun, *, missing: bool) -> None:
        """Answer with a run that was trained before; where others of its slider are `missing`, they are trained later."""
        if self.progress.working:
            self._end()
        self.queue.remove(self)
        if missing:
            self.queue.unfinished.append(self)
        else:
            self.queue.release(self)
        self.last = Progress.of_stored([self.run], [stored], ahead=0.0 if missing else None)

    def _end(self) -> None:
        """Leave the queue and the worker, which stops what it does for this visitor."""
        self.queue.remove(self)
        if self.worker is not None:
            self.worker.cancel()
            self.queue.release(self)
