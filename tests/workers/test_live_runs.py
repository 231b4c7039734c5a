"""Live runs: the LRU store that keeps them, the warm worker that trains them, and the client that asks it."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from workbench.datasets import DatasetSpec, LabelNoise
from workbench.losses import CrossEntropy, Focal, NoisedTopK
from workbench.store import Store
from workbench.store.lru_store import LRUStore
from workbench.tables import LogitTable
from workbench.training import Run, train
from workbench.workers.client import Progress, Worker
from workbench.workers.queue import LiveQueue

SMALL = Run(DatasetSpec("digits"), model="linear", epochs=2, device="cpu")


def small(**fields):
    return dataclasses.replace(SMALL, **fields)


def endless(seed):
    return small(epochs=10_000, seed=seed)


def write(store, key, **facts):
    with store.writing(key) as directory:
        (directory / "run.json").write_text(
            json.dumps({"format": 1, "run": facts, "facts": {"title": key}}), encoding="utf-8"
        )
        LogitTable(-np.eye(3, dtype=np.float32)).save(directory / "test")


@pytest.fixture
def lru_store(tmp_path):
    return LRUStore(Store(tmp_path), size=2)


def test_the_lru_store_forgets_what_was_used_least_recently(lru_store):
    for place, key in enumerate(("first", "second", "third")):
        write(lru_store, key)
        os.utime(lru_store.root / key, (place, place))
    lru_store.touch("first")
    with lru_store.replacing(lru_store.diverged("fourth")) as aside:
        aside.write_text("weights")
    lru_store.forget()
    assert not lru_store.diverged("fourth").exists()
    assert [lru_store.has(key) for key in ("first", "second", "third")] == [True, False, True]


def test_what_another_process_forgot_first_is_no_obstacle(lru_store, monkeypatch):
    for key in ("first", "second", "third"):
        write(lru_store, key)
    gone = lru_store.root / "gone" / "checksums.json"
    found = Path.glob
    with monkeypatch.context() as patch:
        patch.setattr(Path, "glob", lambda path, pattern: [gone, *found(path, pattern)])
        lru_store.forget()
    assert len(lru_store.runs()) - len(lru_store.store.runs()) == 2


def test_the_worker_trains_for_the_lru_store_it_was_given_and_may_import_what_its_starter_may(lru_store, monkeypatch):
    started = []

    def start(command, **options):
        started.append((options["env"]["WORKBENCH_HOME"], options["env"]["WORKBENCH_ALLOW"]))
        raise OSError("enough")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setenv("WORKBENCH_ALLOW", "my_module")
    with pytest.raises(OSError, match="enough"):
        Worker(lru_store).train([SMALL])
    assert set(started) == {(str(lru_store.store.root), "my_module")}


def test_a_run_is_found_by_its_description_in_the_lru_store_and_in_the_store_and_no_data_are_loaded(
    lru_store, monkeypatch
):
    monkeypatch.setattr(DatasetSpec, "load", lambda self: pytest.fail("loaded"))
    noisy = small(dataset=DatasetSpec("digits", transforms=(LabelNoise(0.1),)), milestones=(0.2, 0.4))
    write(lru_store, "fresh", **noisy.description())
    write(lru_store.store, "stored", **small(seed=3).description(), dataset_key="of its content")
    assert lru_store.find(noisy).key == "fresh"
    assert lru_store.find(small(seed=3, devices=2)).key == "stored", "where it is trained does not matter"
    assert lru_store.find(small(dataset=DatasetSpec("digits", key="of other content"), seed=3)) is None
    assert lru_store.find(small(seed=4)) is None


def test_a_run_that_is_kept_stays_in_the_store_and_is_whole(lru_store):
    write(lru_store, "fresh")
    kept = lru_store.keep("fresh")
    assert kept.path == lru_store.store.root / "fresh"
    assert kept.checksums == lru_store.open("fresh").checksums
    assert kept.tables["test"].n == 3
    assert lru_store.keep("fresh").path == kept.path


def test_the_lru_store_has_what_the_store_has(lru_store):
    write(lru_store.store, "base")
    write(lru_store, "fresh")
    assert lru_store.open("base").path == lru_store.store.root / "base"
    assert [run.key for run in lru_store.runs() if run.title in ("fresh", "base")] == ["fresh", "base"]


def test_a_run_that_nobody_has_is_looked_for_where_people_keep_theirs(lru_store):
    place = re.escape(str(lru_store.store.root))
    with pytest.raises(
        ValueError, match=f"no run has a key that starts with 'abc', or that title, in {place}; there are"
    ):
        lru_store.open("abc")


def test_progress_counts_the_epochs_of_a_run_that_went_on_from_a_checkpoint():
    assert Progress().epochs_done == 0
    assert Progress((SMALL,), "training", history=({"epoch": 3.0}, {"epoch": 4.0})).epochs_done == 5


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """One warm worker for all tests: starting one takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("OMP_NUM_THREADS", "1")
        worker = Worker()
        worker.start()
        yield worker
        worker.stop()


def until(condition, seconds=600):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def ended(worker):
    until(lambda: not worker.progress.working)
    return worker.progress


def test_a_request_is_trained_as_train_does_and_is_kept_in_the_lru_store(worker, tmp_path):
    loss = Focal(gamma=1.5)
    worker.train([small(loss=loss)])
    progress = ended(worker)
    expected = train(Run("digits", model="linear", loss=loss, epochs=2, device="cpu"), store=Store(tmp_path))
    assert (progress.state, progress.key, progress.epochs_done) == ("finished", expected.run.key, 2)
    assert (progress.done, progress.seconds_left) == (1.0, 0.0)
    stored = worker.lru_store.open(progress.key)
    assert stored.path.parent == worker.lru_store.root
    np.testing.assert_array_equal(stored.tables["test"].scores, expected.tables["test"].scores)
    history = pd.DataFrame(progress.history).drop(columns="seconds")
    pd.testing.assert_frame_equal(history, expected.history.drop(columns="seconds"), check_dtype=False)


def test_what_was_trained_before_is_answered_at_once_and_can_be_kept(worker):
    run = small(loss=CrossEntropy())
    worker.train([run])
    key = ended(worker).key
    again = worker.train([run])
    assert (again.state, again.key, len(again.history)) == ("finished", key, 2)
    kept = worker.train([run], keep=True)
    assert (kept.state, worker.lru_store.store.open(key).path.parent) == ("finished", worker.lru_store.store.root)


def test_of_several_runs_one_that_fails_stops_no_other(worker):
    runs = [small(loss=NoisedTopK(K=K, epsilon=0.3), epochs=1) for K in (2, 15, 3)]
    worker.train(runs, keep=True, note="a sweep")
    progress = worker.wait()
    assert (progress.state, sorted(progress.keys), list(progress.errors)) == ("finished", [0, 2], [1])
    assert "K = 15 with 10 classes" in progress.errors[1]
    assert (progress.done, progress.history, progress.note) == (1.0, (), "a sweep")
    assert [worker.lru_store.store.open(key).record.loss_knobs["K"] for key in progress.keys.values()] == [2, 3]


def test_the_latest_request_wins(worker):
    worker.train([endless(0)])
    until(lambda: worker.progress.history)
    worker.train([small(seed=1)])
    worker.train([small(seed=2)])
    progress = ended(worker)
    assert (progress.state, worker.lru_store.open(progress.key).record.run["seed"]) == ("finished", 2)


def test_a_cancelled_run_leaves_nothing_and_the_next_is_trained(worker):
    worker.train([endless(3)])
    until(lambda: worker.progress.history)
    worker.cancel()
    assert worker.progress.state == "cancelled"
    worker.train([small(seed=4)])
    assert ended(worker).state == "finished"
    assert worker.lru_store.find(endless(3)) is None


def test_two_visitors_share_one_process_and_each_gets_its_latest_head(worker, monkeypatch):
    monkeypatch.setattr(worker, "on_answer", None)  # afterwards the worker is asked directly again
    queue = LiveQueue([worker])
    first, second = queue.visitor(), queue.visitor()
    first.train(endless(20))
    until(lambda: first.progress.history)
    assert second.train(small(seed=21)).place == 1
    first.train(small(seed=22))
    until(lambda: not first.progress.working and not second.progress.working)
    seeds = [worker.lru_store.open(visitor.progress.key).record.run["seed"] for visitor in (first, second)]
    assert seeds == [22, 21]


def request(runs, number=1, **more):
    return {"id": number, "task": "train", "runs": [run.description() for run in runs], **more}


def events(answers):
    return [json.loads(line) for line in answers.getvalue().splitlines()]


def test_a_cancel_is_heard_at_every_step_of_a_stage_and_stages_are_reported_in_steps(monkeypatch):
    from workbench.progress import slow
    from workbench.workers import server

    answers = io.StringIO()
    serving = server.Server(io.StringIO(), answers)

    def train_after_a_stage(*_, **__):
        for step in slow("photographs", "× 64", range(1000)):
            if step == 500:
                serving.arrived.put({"cancel": 7})
            assert step <= 500, "the cancel was not heard"

    monkeypatch.setattr(server, "train_all", train_after_a_stage)
    serving._answer(request([SMALL], 7))
    *stages, last = events(answers)
    assert last == {"id": 7, "event": "cancelled"}
    assert {(each["event"], each["stage"]) for each in stages} == {("stage", "photographs")}
    assert [round(each["done"], 2) for each in stages[-2:]] == [0.48, 0.5]
    assert len(stages) <= server.STEPS


def test_what_lies_ahead_is_trained_together_and_then_answered_at_once(worker):
    axis = [small(loss=Focal(gamma=gamma)) for gamma in (0.5, 2.5, 3.5)]
    worker.train([axis[1]], ahead=axis)
    assert ended(worker).state == "finished"
    until(lambda: worker.progress.ahead == 1)
    for run in axis:
        assert worker.train([run], ahead=axis).state == "finished"
    together = [worker.lru_store.find(run).record.together for run in axis]
    assert together == [2, None, 2]  # the one that was asked for came first


@pytest.mark.parametrize(("gamma", "words"), [(2.0, ["epoch", "trained", "finished"]), (3.0, [])])
def test_of_what_lies_ahead_comes_first_what_is_asked_for_and_anything_else_ends_it(
    gamma, words, lru_store, monkeypatch
):
    from workbench.progress import bar
    from workbench.workers import server

    answers, went_on = io.StringIO(), []
    serving = server.Server(io.StringIO(), answers)
    monkeypatch.setenv("WORKBENCH_HOME", str(lru_store.store.root))

    def train_together(runs, **_):
        serving.arrived.put(request([small(epochs=1, loss=Focal(gamma=gamma))], 2))
        bar("runs", "batch", total=1, hidden=True).update()
        went_on.append(runs)

    monkeypatch.setattr(server, "train_heads", train_together)
    ahead = [small(epochs=1, loss=Focal(gamma=each)).description() for each in (1.0, 2.0)]
    serving._train_ahead(1, ahead, lru_store)
    assert [each["event"] for each in events(answers) if each["event"] != "ahead" and each["id"] == 2] == words
    assert (len(went_on), serving.waiting is None) == (bool(words), bool(words))


def test_a_plane_is_computed_by_the_same_protocol(worker):
    from workbench.store.planes import Plane

    worker.train([small(seed=9)], keep=True)
    plane = Plane.through(worker.lru_store.open(ended(worker).key), rows=20)
    worker.compute_plane(plane, steps=3)
    progress = worker.wait()
    assert (progress.state, progress.stage, progress.done) == ("finished", "weight plane", 1.0)
    assert plane.so_far(3, worker.lru_store.store)[1] == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "cnnn"}, "there is no model named 'cnnn'"),
        ({"model": "antigravity:fly"}, "'antigravity:fly' is code from outside the workbench"),
        ({"loss": {"loss": "antigravity:Fly", "knobs": {}}}, "'antigravity:Fly' is code from outside the workbench"),
        ({"model": "mlp", "learning_rate": 1000.0, "optimizer": "sgd", "epochs": 30}, "try learning_rate=100"),
        ({"dataset": {"name": "nowhere", "knobs": {}}}, "there is no dataset 'nowhere'"),
        ({"dataset_key": "another"}, "has changed"),
        ({"epochs": {}}, "epochs"),
        ({"dataset": {}}, "dataset cannot be {}"),
        ({"dataset": "letters"}, "dataset cannot be 'letters'"),
        ({"loss": "CrossEntropy"}, "loss cannot be 'CrossEntropy'"),
    ],
)
def test_what_cannot_be_trained_is_told_in_words(change, words, tmp_path, monkeypatch):
    from workbench.workers.server import Server

    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    answers = io.StringIO()
    Server(io.StringIO(), answers)._answer({"id": 1, "task": "train", "runs": [SMALL.description() | change]})
    last = events(answers)[-1]
    assert last["event"] == "failed"
    assert words in last["message"]
    assert "Traceback" not in last["message"]


@pytest.mark.parametrize(
    ("line", "asked", "words"),
    [
        ("what is this", None, "Expecting value"),
        ("[" * 5000, None, "recursion"),
        ("[1]", None, "it is a list"),
        ('{"id": 3}', 3, "task = None; give train, features, plane, or cancel"),
        ('{"id": NaN, "task": "train"}', None, "id = nan; give a whole number or a word"),
    ],
)
def test_a_line_that_is_no_request_is_answered_in_words(line, asked, words):
    from workbench.workers.server import Server

    answers = io.StringIO()
    Server(io.StringIO(), answers)._receive(line)
    answer = json.loads(answers.getvalue())
    assert (answer["id"], answer["event"]) == (asked, "failed")
    assert words in answer["message"]


def test_a_line_that_is_no_request_disturbs_no_training(worker):
    worker.train([endless(8)])
    until(lambda: worker.progress.history)
    worker._write("what is this\n" + "[" * 5000 + "\n" + '{"id": 3}\n')
    worker._process.stdin.buffer.write(b"\xff\n")
    seen = worker.progress.epochs_done
    until(lambda: worker.progress.epochs_done > seen + 20 or not worker.progress.working)
    assert worker.progress.working
    worker.train([small(seed=8)])  # it still listens
    assert ended(worker).state == "finished"


def test_a_worker_that_was_killed_is_told_of_and_the_next_request_starts_another(worker):
    worker.train([endless(5)])
    until(lambda: worker.progress.history)
    first = worker._process.pid
    os.kill(first, signal.SIGKILL)
    progress = ended(worker)
    assert (progress.state, "memory" in progress.message) == ("failed", True)
    worker.train([small(seed=6)])
    assert ended(worker).state == "finished"
    assert worker._process.pid != first


def test_the_process_ends_when_its_input_closes_even_while_it_trains(worker):
    worker.train([endless(7)])
    until(lambda: worker.progress.history)
    process = worker._process
    worker.stop()
    assert process.returncode == 0
