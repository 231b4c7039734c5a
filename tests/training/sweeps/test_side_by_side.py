"""Sweeps side by side: the runs of a sweep on the workers of a Dask cluster, which share one store."""

from __future__ import annotations

import dataclasses
import threading

import pytest
from small_runs import clouds, small, weights
from tqdm import tqdm
from waiting import PATIENCE

from workbench.losses import CrossEntropy
from workbench.store import Store
from workbench.training import train
from workbench.training.stacked import heads
from workbench.training.sweeps import side_by_side, sweep

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.usefixtures("one_thread")

DATA = clouds(n=120, n_classes=4)
OVER = {"learning_rate": [0.01, 0.02], "seed": [0, 1]}


@pytest.fixture(scope="module")
def client():
    """Two threads of this process: a cluster that takes no time to start."""
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, protocol="inproc://", dashboard_address=None
    )
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_the_runs_of_a_sweep_are_those_that_one_process_trains_and_a_setting_that_fails_leaves_the_others(
    client, tmp_path, monkeypatch
):
    real = side_by_side.train

    def breaks(run, **options):
        if run.seed == 1 and run.learning_rate == 0.02:
            raise OSError("no room")
        return real(run, **options)

    monkeypatch.setattr(side_by_side, "train", breaks)
    run = small(DATA, epochs=1, accumulate=2)  # in pieces, so that each is trained alone
    store = Store(tmp_path / "side by side")
    found = sweep(run, OVER, store=store, progress=False, client=client)
    assert found.failed == (({"learning_rate": 0.02, "seed": 1}, "OSError: no room"),)
    assert len(found.runs) == 3
    for done in found.runs:
        alone = train(done.run, store=Store(tmp_path / "alone"), progress=False)
        for name, value in weights(alone).items():
            assert (weights(done)[name] == value).all()
    monkeypatch.setattr(side_by_side, "train", real)
    again = sweep(run, OVER, store=store, progress=False, client=client)  # goes on with what is missing
    assert (len(again.runs), again.failed) == (4, ())
    assert [done.stored for done in again.runs[:3]] == [done.stored for done in found.runs]


def test_heads_are_stacked_and_each_worker_gets_a_part_of_the_stack(client, tmp_path):
    store, runs = Store(tmp_path), [small(DATA, epochs=1, seed=seed) for seed in range(5)]
    apart = dataclasses.replace(runs[0], accumulate=2)
    jobs = side_by_side.divided([*runs, apart, runs[0]], store, n_workers=2)
    assert [[run.seed for run in job] for job in jobs] == [[0, 2, 4], [1, 3], [0]]
    found = sweep(runs[0], {"seed": range(3)}, store=store, progress=False, client=client)
    assert [done.stored.record.together for done in found.runs] == [3, 3, 3]  # the cluster is one worker


def test_a_run_is_trained_once_however_many_ask_for_it_at_a_time(tmp_path, monkeypatch):
    run, trained, both_there = small(DATA, epochs=1), [], threading.Barrier(2)
    real = side_by_side.train
    monkeypatch.setattr(side_by_side, "train", lambda one, **options: trained.append(one.key) or real(one, **options))
    monkeypatch.setattr(side_by_side, "ONE_AT_A_TIME", threading.Semaphore(2))  # as if these were two processes

    def asks():
        both_there.wait()
        assert side_by_side.train_job([run], tmp_path) == {}

    asking = [threading.Thread(target=asks) for _ in range(2)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert trained == [run.key]
    assert Store(tmp_path).has(run.key)
    assert not list(tmp_path.rglob("*.turn"))


class StopsAtFirst(tqdm):
    """A bar at which somebody presses Ctrl-C when the first run is there."""

    def update(self, n=1):
        raise KeyboardInterrupt


def test_a_sweep_that_is_interrupted_goes_on_while_its_next_run_is_still_being_trained(client, tmp_path, monkeypatch):
    run, store = small(DATA, epochs=1, accumulate=2), Store(tmp_path)
    trained, stopped, real = [], threading.Event(), side_by_side.train

    def counted(one, **options):
        trained.append(one.key)
        if len(trained) > 1:
            stopped.wait(PATIENCE)
        return real(one, **options)

    monkeypatch.setattr(side_by_side, "train", counted)
    with monkeypatch.context() as patch:
        patch.setattr(side_by_side, "tqdm", StopsAtFirst)
        with pytest.raises(KeyboardInterrupt):
            sweep(run, OVER, store=store, progress=False, client=client)
    n_stored = sum(store.has(key) for key in trained)
    stopped.set()
    found = sweep(run, OVER, store=store, progress=False, client=client)
    assert n_stored == 1
    assert sorted(trained) == sorted(done.run.key for done in found.runs)  # each once


def test_a_member_that_diverges_is_told_of_by_its_key(tmp_path, monkeypatch):
    runs = [small(DATA, epochs=1, seed=seed, loss=CrossEntropy()) for seed in (0, 1)]
    error = FloatingPointError("the loss is nan")
    monkeypatch.setattr(heads, "train_heads", lambda left, **_: [error, None])
    assert side_by_side.train_job(runs, tmp_path) == {runs[0].key: error}
