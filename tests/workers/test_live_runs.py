"""Live runs: the shelf they lie on, the warm worker that trains them, and the client that asks it."""

from __future__ import annotations

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

from workbench.losses import CrossEntropy, Focal
from workbench.store import Store
from workbench.store.shelf import Shelf
from workbench.tables import LogitTable
from workbench.training import Run, train
from workbench.workers.heads import Progress, WarmWorker

DIGITS = {"name": "digits", "knobs": {"seed": 0}}
SMALL = {"dataset": DIGITS, "model": "linear", "epochs": 2, "device": "cpu"}
ENDLESS = {**SMALL, "epochs": 10_000}


def write(store, key, **facts):
    with store.writing(key) as directory:
        (directory / "run.json").write_text(json.dumps({"title": key, **facts}), encoding="utf-8")
        LogitTable(-np.eye(3, dtype=np.float32)).save(directory / "test")


@pytest.fixture
def shelf(tmp_path):
    return Shelf(Store(tmp_path), size=2)


def test_the_shelf_forgets_what_was_used_least_recently(shelf):
    for place, key in enumerate(("first", "second", "third")):
        write(shelf, key)
        os.utime(shelf.root / key, (place, place))
    shelf.touch("first")
    with shelf.replacing(shelf.diverged("fourth")) as aside:
        aside.write_text("weights")
    shelf.forget()
    assert not shelf.diverged("fourth").exists()
    assert [shelf.has(key) for key in ("first", "second", "third")] == [True, False, True]


def test_what_another_process_forgot_first_is_no_obstacle(shelf, monkeypatch):
    for key in ("first", "second", "third"):
        write(shelf, key)
    gone = shelf.root / "gone" / "checksums.json"
    found = Path.glob
    with monkeypatch.context() as patch:
        patch.setattr(Path, "glob", lambda path, pattern: [gone, *found(path, pattern)])
        shelf.forget()
    assert len(shelf.runs()) - len(shelf.store.runs()) == 2


def test_the_worker_trains_for_the_shelf_it_was_given_and_may_import_what_its_starter_may(shelf, monkeypatch):
    started = []

    def start(command, **options):
        started.append((options["env"]["WORKBENCH_HOME"], options["env"]["WORKBENCH_ALLOW"]))
        raise OSError("enough")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setenv("WORKBENCH_ALLOW", "my_module")
    with pytest.raises(OSError, match="enough"):
        WarmWorker(shelf).ask(SMALL)
    assert set(started) == {(str(shelf.store.root), "my_module")}


def test_a_run_is_found_by_what_its_file_says_on_the_shelf_and_in_the_store(shelf):
    def loss(**knobs):
        return {"loss": "Mine", "knobs": knobs}

    write(shelf, "fresh", loss=loss(alpha=0.2, p_k=[0.5, 0.5]), epochs=3)
    write(shelf.store, "kept", loss=loss(alpha=0.3), epochs=3)
    assert shelf.found({"loss": loss(alpha=0.2, p_k=(0.5, 0.5))}).key == "fresh"
    assert shelf.found({"loss": loss(alpha=0.3), "epochs": 3}).key == "kept"
    assert shelf.found({"loss": loss(alpha=0.3), "epochs": 4}) is None


def test_a_run_that_is_kept_stays_in_the_store_and_is_whole(shelf):
    write(shelf, "fresh")
    kept = shelf.keep("fresh")
    assert kept.path == shelf.store.root / "fresh"
    assert kept.checksums == shelf.open("fresh").checksums
    assert kept.tables["test"].n == 3
    assert shelf.keep("fresh").path == kept.path


def test_the_shelf_has_what_the_store_has(shelf):
    write(shelf.store, "base")
    write(shelf, "fresh")
    assert shelf.open("base").path == shelf.store.root / "base"
    assert [run.key for run in shelf.runs() if run.title in ("fresh", "base")] == ["fresh", "base"]


def test_a_run_that_nobody_has_is_looked_for_where_people_keep_theirs(shelf):
    place = re.escape(str(shelf.store.root))
    with pytest.raises(ValueError, match=f"no run has a key that starts with 'abc' in {place}; there are"):
        shelf.open("abc")


def test_progress_tells_how_far_it_is_and_how_long_it_takes():
    assert (Progress().epochs_done, Progress().seconds_left) == (0, None)
    rows = ({"epoch": 3.0, "seconds": 1.0}, {"epoch": 4.0, "seconds": 3.0})  # went on from a checkpoint
    progress = Progress(state="training", epochs=7, history=rows)
    assert (progress.epochs_done, progress.seconds_left) == (5, 4.0)


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    """One warm worker for all tests: starting one takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("OMP_NUM_THREADS", "1")
        worker = WarmWorker()
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


def test_a_request_is_trained_as_train_does_and_lies_on_the_shelf(worker, tmp_path):
    loss = Focal(gamma=1.5)
    worker.ask({**SMALL, "loss": loss.spec()})
    progress = ended(worker)
    expected = train(Run("digits", model="linear", loss=loss, epochs=2, device="cpu"), store=Store(tmp_path))
    assert (progress.state, progress.key, progress.epochs_done) == ("finished", expected.run.key, 2)
    stored = worker.shelf.open(progress.key)
    assert stored.path.parent == worker.shelf.root
    np.testing.assert_array_equal(stored.tables["test"].scores, expected.tables["test"].scores)
    told = pd.DataFrame(progress.history).drop(columns="seconds")
    pd.testing.assert_frame_equal(told, expected.history.drop(columns="seconds"), check_dtype=False)


def test_what_was_trained_before_is_answered_at_once_and_can_be_kept(worker):
    worker.ask({**SMALL, "loss": CrossEntropy().spec()})
    key = ended(worker).key
    again = worker.ask({**SMALL, "loss": CrossEntropy().spec()})
    assert (again.state, again.key, len(again.history)) == ("finished", key, 2)
    kept = worker.ask({**SMALL, "loss": CrossEntropy().spec()}, keep=True)
    assert (kept.state, worker.shelf.store.open(key).path.parent) == ("finished", worker.shelf.store.root)


def test_the_latest_request_wins(worker):
    worker.ask(ENDLESS)
    until(lambda: worker.progress.history)
    worker.ask({**SMALL, "seed": 1})
    worker.ask({**SMALL, "seed": 2})
    progress = ended(worker)
    assert (progress.state, worker.shelf.open(progress.key).record.seed) == ("finished", 2)


def test_a_cancelled_run_leaves_nothing_and_the_next_is_trained(worker):
    worker.ask({**ENDLESS, "seed": 3})
    until(lambda: worker.progress.history)
    worker.cancel()
    assert worker.progress.state == "cancelled"
    worker.ask({**SMALL, "seed": 4})
    assert ended(worker).state == "finished"
    assert worker.shelf.found({**ENDLESS, "seed": 3}) is None


def test_a_cancel_is_heard_while_features_are_computed(monkeypatch):
    from workbench.workers import heads_process as worker

    answers = io.StringIO()
    serving = worker.Worker(io.StringIO(), answers)

    def train_whose_features_take_long(run, *, on_batch, **_):
        on_batch()
        serving.arrived.put({"cancel": 7})
        on_batch()
        pytest.fail("the cancel was not heard")

    monkeypatch.setattr(worker, "train", train_whose_features_take_long)
    serving._answer({"id": 7, "run": SMALL})
    assert [json.loads(line)["event"] for line in answers.getvalue().splitlines()] == ["started", "cancelled"]


def test_a_head_on_features_is_trained_in_a_stack_of_one_and_what_stops_it_is_raised(shelf, monkeypatch):
    from workbench.workers import heads_process

    base = train(Run("digits", model="mlp", epochs=1, device="cpu"), store=shelf.store, progress=False)
    run, seen = Run("digits", model="mlp", features=base, epochs=2, device="cpu"), []
    heads_process._train(run, shelf, seen.append, on_batch=lambda: None)
    assert ([row["epoch"] for row in seen], shelf.open(run.key).record.together) == ([0, 1], 1)
    monkeypatch.setattr(heads_process, "train_heads", lambda *_, **__: [FloatingPointError("the loss is nan")])
    with pytest.raises(FloatingPointError, match="the loss is nan"):
        heads_process._train(run, shelf, seen.append, on_batch=lambda: None)


def test_what_lies_ahead_is_trained_together_and_then_answered_at_once(worker):
    axis = [{**SMALL, "loss": Focal(gamma=gamma).spec()} for gamma in (0.5, 2.5, 3.5)]
    worker.ask(axis[1], ahead=axis)
    assert ended(worker).state == "finished"
    until(lambda: worker.progress.ahead == 1)
    for described in axis:
        assert worker.ask(described, ahead=axis).state == "finished"
    together = [worker.shelf.found(described).record.together for described in axis]
    assert together == [2, None, 2]  # the one that was asked for came first


@pytest.mark.parametrize(("gamma", "words"), [(2.0, ["started", "epoch", "finished"]), (3.0, [])])
def test_of_what_lies_ahead_comes_first_what_is_asked_for_and_anything_else_ends_it(gamma, words, shelf, monkeypatch):
    from workbench.workers import heads_process

    described = {"epochs": 1, **{name: SMALL[name] for name in SMALL if name != "epochs"}}
    asked, answers, went_on = {**described, "loss": Focal(gamma=gamma).spec()}, io.StringIO(), []
    serving = heads_process.Worker(io.StringIO(), answers)
    monkeypatch.setenv("WORKBENCH_HOME", str(shelf.store.root))

    def trained_together(runs, *, on_batch, **_):
        serving.arrived.put({"id": 2, "run": asked})
        on_batch()
        went_on.append(runs)

    monkeypatch.setattr(heads_process, "train_heads", trained_together)
    serving._train_ahead(1, [{**described, "loss": Focal(gamma=each).spec()} for each in (1.0, 2.0)], shelf)
    told = [json.loads(line) for line in answers.getvalue().splitlines()]
    assert [answer["event"] for answer in told if answer["event"] != "ahead" and answer["id"] == 2] == words
    assert (len(went_on), serving.waiting is None) == (bool(words), bool(words))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model": "cnnn"}, "there is no model named 'cnnn'"),
        ({"model": "antigravity:fly"}, "'antigravity:fly' is code of somebody else"),
        ({"loss": {"loss": "antigravity:Fly", "knobs": {}}}, "'antigravity:Fly' is code of somebody else"),
        ({"model": "mlp", "learning_rate": 1000.0, "optimizer": "sgd", "epochs": 30}, "try learning_rate=100"),
        ({"dataset": {"name": "nowhere", "knobs": {}}}, "there is no dataset 'nowhere'"),
        ({"dataset_key": "another"}, "has changed"),
        ({"epochs": {}}, "epochs"),
        ({"dataset": {}}, "not how run.json describes a run (KeyError: 'name')"),
        ({"dataset": "letters"}, "not how run.json describes a run"),
        ({"loss": "CrossEntropy"}, "not how run.json describes a run"),
    ],
)
def test_what_cannot_be_trained_is_told_in_words_and_the_worker_lives_on(worker, change, words):
    worker.ask({**SMALL, **change})
    progress = ended(worker)
    assert progress.state == "failed"
    assert words in progress.message
    assert "Traceback" not in progress.message


@pytest.mark.parametrize(
    ("line", "asked", "words"),
    [
        ("what is this", None, "Expecting value"),
        ("[" * 5000, None, "recursion"),
        ("[1]", None, "it is a list"),
        ('{"id": 3}', 3, "neither run nor cancel, but id"),
        ('{"id": NaN, "run": {}}', None, "id = nan; give a whole number or a word"),
    ],
)
def test_a_line_that_is_no_request_is_answered_in_words(line, asked, words):
    from workbench.workers.heads_process import Worker

    answers = io.StringIO()
    Worker(io.StringIO(), answers)._hear(line)
    answer = json.loads(answers.getvalue())
    assert (answer["id"], answer["event"]) == (asked, "failed")
    assert words in answer["message"]


def test_a_line_that_is_no_request_disturbs_no_training(worker):
    worker.ask({**ENDLESS, "seed": 8})
    until(lambda: worker.progress.history)
    worker._write("what is this\n" + "[" * 5000 + "\n" + '{"id": 3}\n')
    worker._process.stdin.buffer.write(b"\xff\n")
    seen = worker.progress.epochs_done
    until(lambda: worker.progress.epochs_done > seen + 20 or not worker.progress.working)
    assert worker.progress.working
    worker.ask({**SMALL, "seed": 8})  # it still listens
    assert ended(worker).state == "finished"


def test_a_worker_that_was_killed_is_told_of_and_the_next_request_starts_another(worker):
    worker.ask({**ENDLESS, "seed": 5})
    until(lambda: worker.progress.history)
    first = worker._process.pid
    os.kill(first, signal.SIGKILL)
    progress = ended(worker)
    assert (progress.state, "memory" in progress.message) == ("failed", True)
    worker.ask({**SMALL, "seed": 6})
    assert ended(worker).state == "finished"
    assert worker._process.pid != first


def test_the_process_ends_when_its_input_closes_even_while_it_trains(worker):
    worker.ask({**ENDLESS, "seed": 7})
    until(lambda: worker.progress.history)
    process = worker._process
    worker.stop()
    assert process.returncode == 0
