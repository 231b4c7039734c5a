"""The queue of live training: fair to every visitor, bounded, and only requests with a waiting visitor are trained."""

from __future__ import annotations

import json

import pytest

from workbench.datasets import DatasetSpec
from workbench.losses import Focal
from workbench.store import Store
from workbench.store.lru_store import LRUStore
from workbench.tables import LogitTable
from workbench.training import Run
from workbench.workers.client import Worker
from workbench.workers.queue import LiveQueue


def head(gamma):
    return Run(DatasetSpec("digits"), model="linear", loss=Focal(gamma=float(gamma)), epochs=1, device="cpu")


class Process:
    """A worker without its process: what it is asked for is written down, and the test answers."""

    def __init__(self, lru_store):
        self.worker = Worker(lru_store)
        self.worker._write = self.write
        self.lines = []

    def write(self, line):
        self.lines.append(json.loads(line))

    @property
    def begun(self):
        """γ of every head that was begun."""
        return [line["runs"][0]["loss"]["knobs"]["gamma"] for line in self.lines if "runs" in line]

    def answer(self, event, **facts):
        self.worker._hear({"id": self.lines[-1]["id"], "event": event, **facts})


@pytest.fixture
def lru_store(tmp_path):
    return LRUStore(Store(tmp_path))


@pytest.fixture
def process(lru_store):
    return Process(lru_store)


@pytest.fixture
def queue(process):
    return LiveQueue([process.worker])


def keep(lru_store, run):
    with lru_store.writing(f"{run.loss.gamma:g}") as folder:
        about = {"format": 1, "run": run.description(), "facts": {"title": "kept"}}
        (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")
        LogitTable([[0.0, -1.0]]).save(folder / "test")


def asked(queue, *gammas):
    """Visitors who have asked for one head each, in this order."""
    visitors = [queue.visitor() for _ in gammas]
    for visitor, gamma in zip(visitors, gammas, strict=True):
        visitor.train(head(gamma))
    return visitors


def test_requests_are_trained_in_turn_and_each_visitor_sees_its_own_place(process, queue):
    visitors = asked(queue, 1, 2, 3)
    assert process.begun == [1]
    assert [visitor.progress.state for visitor in visitors] == ["preparing", "queued", "queued"]
    assert [visitor.progress.place for visitor in visitors] == [0, 1, 2]
    process.answer("trained", at=0, key="k1")
    process.answer("finished")
    assert process.begun == [1, 2]
    assert [visitor.progress.state for visitor in visitors] == ["finished", "preparing", "queued"]
    assert (visitors[0].progress.key, visitors[2].progress.place) == ("k1", 1)
    process.answer("failed", message="too large")
    assert process.begun == [1, 2, 3]
    assert visitors[1].progress.message == "too large"


def test_a_newer_request_keeps_the_place_and_the_older_one_is_never_trained(process, queue):
    _, second, third = asked(queue, 1, 2, 3)
    for gamma in (2.25, 2.5, 2.75):
        second.train(head(gamma))
    assert (second.progress.place, third.progress.place) == (1, 2)
    process.answer("finished")
    process.answer("finished")
    assert process.begun == [1, 2.75, 3]


def test_one_who_moves_on_while_being_served_goes_behind_those_who_wait(process, queue):
    first, second = asked(queue, 1, 2)
    first.train(head(1.5))
    assert "cancel" in process.lines[1]
    assert process.begun == [1, 2]
    assert (first.progress.place, second.progress.state) == (1, "preparing")


def test_one_who_is_alone_is_served_again_at_once(process, queue):
    (only,) = asked(queue, 1)
    only.train(head(2))
    assert process.begun == [1, 2]
    assert only.progress.runs == (head(2),)


def test_a_request_that_is_cancelled_while_it_waits_costs_nothing(process, queue):
    first, second, third = asked(queue, 1, 2, 3)
    second.cancel()
    assert (second.progress.state, third.progress.place) == ("cancelled", 1)
    process.answer("finished")
    assert process.begun == [1, 3]
    third.cancel()
    assert (first.progress.state, third.progress.state) == ("finished", "cancelled")
    assert process.lines[-1] == {"cancel": 2}


def test_a_visitor_who_leaves_without_a_request_is_no_obstacle(process, queue):
    queue.visitor().cancel()
    asked(queue, 1)
    assert process.begun == [1]


def test_no_more_requests_are_trained_at_a_time_than_there_are_workers(lru_store):
    processes = [Process(lru_store), Process(lru_store)]
    visitors = asked(LiveQueue([each.worker for each in processes]), 1, 2, 3, 4)
    assert [each.begun for each in processes] == [[1], [2]]
    processes[1].answer("finished")
    assert [each.begun for each in processes] == [[1], [2, 3]]
    assert [visitor.progress.place for visitor in visitors] == [0, 0, 0, 1]


def test_what_was_trained_before_is_answered_at_once_whoever_waits(process, queue, lru_store):
    keep(lru_store, head(5))
    first, second = asked(queue, 1, 2)
    late = queue.visitor()
    assert late.train(head(5)).state == "finished"
    assert second.train(head(5)).state == "finished"  # and no longer waits
    process.answer("finished")
    assert process.begun == [1]
    assert first.progress.state == "finished"


def test_other_values_of_a_slider_wait_for_every_visitor_and_then_go_on(process, queue):
    first, second = queue.visitor(), queue.visitor()
    first.train(head(1), ahead=[head(1), head(2)])
    process.answer("finished")
    process.answer("ahead", done=0.4)
    assert first.progress.ahead == 0.4
    second.train(head(4))
    assert process.begun == [1, 4]
    assert (first.progress.state, first.progress.working_ahead) == ("finished", True)  # the page goes on looking
    process.answer("finished")
    assert process.begun == [1, 4, 1]
    assert len(process.lines[-1]["ahead"]) == 2
    process.answer("finished")
    process.answer("ahead", done=1.0)
    assert not first.progress.working_ahead
    assert second.progress.state == "finished"


def test_a_known_value_does_not_end_the_training_of_the_other_values(process, queue, lru_store):
    slider = [head(1), head(2), head(3)]
    visitor = queue.visitor()
    visitor.train(slider[0], ahead=slider)
    process.answer("finished")
    process.answer("ahead", done=0.4)
    keep(lru_store, slider[0])
    back = visitor.train(slider[0], ahead=slider)
    assert (back.state, back.ahead) == ("finished", 0.4)
    assert process.begun == [1]


def test_a_process_that_cannot_be_started_is_an_error_of_its_request_alone(process, queue):
    def refuse(line):
        raise OSError("no processes left")

    write, process.worker._write = process.worker._write, refuse
    (first,) = asked(queue, 1)
    assert (first.progress.state, first.progress.message) == ("failed", "no processes left")
    process.worker._write = write
    (second,) = asked(queue, 2)
    assert second.progress.state == "preparing"
