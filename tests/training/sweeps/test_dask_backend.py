"""Sweeps side by side: the runs of a sweep on the workers of a Dask cluster, which share one store."""

from __future__ import annotations

import contextlib
import dataclasses
import threading

import pytest
from small_runs import clouds, small, weights
from waiting import PATIENCE

from workbench.losses import CrossEntropy
from workbench.store import Store
from workbench.training import train
from workbench.training.stacked import train_many
from workbench.training.sweeps import dask_backend, sweep

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
    real = dask_backend.train

    def breaks(run, **options):
        if run.seed == 1 and run.learning_rate == 0.02:
            raise OSError("no room")
        return real(run, **options)

    monkeypatch.setattr(dask_backend, "train", breaks)
    run = small(DATA, epochs=1, micro_batches=2)  # in pieces, so that each is trained alone
    store = Store(tmp_path / "side by side")
    found = sweep(run, OVER, store=store, progress=False, client=client)
    assert found.failed == (({"learning_rate": 0.02, "seed": 1}, "OSError: no room"),)
    assert len(found.runs) == 3
    for done in found.runs:
        alone = train(done.run, store=Store(tmp_path / "alone"), progress=False)
        for name, value in weights(alone).items():
            assert (weights(done)[name] == value).all()
    monkeypatch.setattr(dask_backend, "train", real)
    again = sweep(run, OVER, store=store, progress=False, client=client)  # goes on with what is missing
    assert (len(again.runs), again.failed) == (4, ())
    assert [done.stored for done in again.runs[:3]] == [done.stored for done in found.runs]


def test_heads_are_stacked_and_each_worker_gets_a_part_of_the_stack(client, tmp_path):
    store, runs = Store(tmp_path), [small(DATA, epochs=1, seed=seed) for seed in range(5)]
    apart = dataclasses.replace(runs[0], micro_batches=2)
    jobs = dask_backend.divided([*runs, apart, runs[0]], store, n_workers=2)
    assert [[run.seed for run in job] for job in jobs] == [[0, 2, 4], [1, 3], [0]]
    found = sweep(runs[0], {"seed": range(3)}, store=store, progress=False, client=client)
    assert [done.stored.record.together for done in found.runs] == [3, 3, 3]  # the cluster is one worker


def test_a_run_is_trained_once_however_many_ask_for_it_at_a_time(tmp_path, monkeypatch):
    run, trained, both_there = small(DATA, epochs=1), [], threading.Barrier(2)
    real = dask_backend.train
    monkeypatch.setattr(dask_backend, "train", lambda one, **options: trained.append(one.key) or real(one, **options))
    monkeypatch.setattr(dask_backend, "ONE_AT_A_TIME", threading.Semaphore(2))  # as if these were two processes

    def asks():
        both_there.wait()
        assert dask_backend.train_job([run], tmp_path) == {}

    asking = [threading.Thread(target=asks) for _ in range(2)]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert trained == [run.key]
    assert Store(tmp_path).has(run.key)
    assert not list(tmp_path.rglob("*.turn"))


class StopsAtFirst(contextlib.nullcontext):
    """A bar at which Ctrl-C is pressed when the first run is there."""

    def __init__(self, what, unit, **_):
        super().__init__(self)

    def update(self, n=1):
        raise KeyboardInterrupt


def test_a_sweep_that_is_interrupted_goes_on_while_its_next_run_is_still_being_trained(client, tmp_path, monkeypatch):
    run, store = small(DATA, epochs=1, micro_batches=2), Store(tmp_path)
    trained, stopped, real = [], threading.Event(), dask_backend.train

    def counted(one, **options):
        trained.append(one.key)
        if len(trained) > 1:
            stopped.wait(PATIENCE)
        return real(one, **options)

    monkeypatch.setattr(dask_backend, "train", counted)
    with monkeypatch.context() as patch:
        patch.setattr(dask_backend, "bar", StopsAtFirst)
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
    monkeypatch.setattr(train_many, "train_heads", lambda left, **_: [error, None])
    assert dask_backend.train_job(runs, tmp_path) == {runs[0].key: error}
