"""`train_all`: many runs, each result in its place, one failure alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from small_runs import assert_same_weights, small, weights

import workbench as wb
from workbench.losses import CrossEntropy, NoisedTopK
from workbench.metrics.seeds import best_on_val
from workbench.store import Store
from workbench.training import TrainedRun, many_runs, train

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Broken(CrossEntropy):
    """NaN for every row."""

    def values(self, scores, labels, **_):
        return super().values(scores, labels) * math.nan


def test_every_result_stands_in_the_place_of_its_run_and_a_failure_leaves_the_others_alone(store):
    broken = small(loss=Broken(), epochs=1)
    runs = [small(epochs=1, seed=1), broken, small(epochs=1, micro_batches=2), small(epochs=1, seed=1)]
    first, error, alone, again = wb.train_all(runs, store=store, progress=False)
    assert [one.run.key for one in (first, alone, again)] == [runs[0].key, runs[2].key, runs[3].key]
    assert isinstance(error, FloatingPointError)
    assert not store.has(broken.key)


def test_a_run_among_many_is_the_run_that_is_trained_alone(store, tmp_path):
    run = small(epochs=1, micro_batches=2)
    (among,) = wb.train_all([run], store=store, progress=False)
    assert_same_weights(weights(among), weights(train(run, store=Store(tmp_path / "alone"), progress=False)))


def test_what_is_stored_is_read_and_every_run_has_its_line(store, monkeypatch, capsys):
    run = small(epochs=1)
    train(run, store=store, progress=False)
    monkeypatch.setattr(many_runs, "train", lambda run, *, store, **_: TrainedRun(run, store.open(run.key)))
    list(wb.train_all([run], store=store))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"1/1  {run.title}  top-1 accuracy on val")
    assert line.endswith("stored")


def test_a_run_that_cannot_be_trained_is_refused_before_the_first_is(store, monkeypatch):
    monkeypatch.setattr(many_runs, "train", lambda *_, **__: pytest.fail("trained first"))
    with pytest.raises(ValueError, match="K = 6 with 6 classes"):
        wb.train_all([small(), small(loss=NoisedTopK(K=6))], store=store, progress=False)


def test_the_best_on_val_has_the_best_mean_over_seeds_and_is_the_first_of_equals():
    values = {"a": [0.5, 0.9], "b": [0.7, 0.7], "c": [0.8, 0.5], "d": [math.nan, 1.0]}
    assert best_on_val(values) == "a"
    assert best_on_val(values, "lower") == "c"
    with pytest.raises(ValueError, match="no setting has a number on validation rows"):
        best_on_val({"d": values["d"]})
