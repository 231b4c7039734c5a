"""The plane through trained weights: its middle is the run itself, its points are those of moved weights."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
import torch

import workbench as wb
from workbench.losses import AverageKTwoHead, CrossEntropy, Quasibinary
from workbench.store import Store
from workbench.store.imported_tables import keep_tables
from workbench.store.planes import Plane
from workbench.training import trainer as training
from workbench.training.weight_planes import filter_normalised

K = 2.0


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("home"))


@pytest.fixture(scope="module")
def trained(store):
    run = wb.Run("digits", model="mlp", loss=CrossEntropy(), epochs=2, device="cpu")
    return wb.train(run, store=store, progress=False)


def plane_of(trained, store, **options):
    return training.weight_plane(trained, K=K, store=store, progress=False, **options)


def test_the_middle_is_the_trained_run_itself(trained, store):
    plane = plane_of(trained, store, steps=3, rows=10**6)
    middle = plane.set_index(["a", "b"]).loc[(0.0, 0.0)]
    tables = trained.tables
    rule = wb.AverageK(K).fit(tables["val"])
    assert middle["accuracy"] == pytest.approx(wb.metrics.accuracy(rule.sets(tables["test"])))
    assert middle["threshold"] == pytest.approx(rule.threshold, rel=1e-5)
    assert middle["loss"] == pytest.approx(wb.metrics.negative_log_likelihood(tables["test"]), rel=1e-4)
    assert middle["n"] == tables["test"].n
    assert plane["loss"].idxmin() == 4


def test_a_point_is_the_network_with_moved_weights(trained, store):
    plane = plane_of(trained, store, steps=3, rows=50, seed=3).set_index(["a", "b"])
    generator = torch.Generator().manual_seed(3)
    network = training.TrainedRun(trained.run, trained.stored).model
    u, v = ([filter_normalised(w, generator) for w in network.parameters()] for _ in range(2))
    with torch.no_grad():
        for w, du, dv in zip(network.parameters(), u, v, strict=True):
            w.add_(-1.0 * du + 1.0 * dv)
        test = trained.run.data.test
        chosen = np.unique(np.linspace(0, test.n - 1, 50).astype(int))  # spread evenly over rows that may be sorted
        scores = network(torch.from_numpy(test.inputs[chosen]))
        expected = CrossEntropy()(scores, torch.from_numpy(test.labels[chosen])).mean().item()
    assert plane.loc[(-1.0, 1.0), "loss"] == pytest.approx(expected, rel=1e-5)


def test_the_run_is_left_as_it_was(trained, store):
    before = {name: value.clone() for name, value in trained.model.state_dict().items()}
    plane_of(trained, store, steps=3, rows=20, seed=5)
    assert all(torch.equal(value, before[name]) for name, value in trained.model.state_dict().items())


def test_a_finer_plane_starts_from_the_coarse_one_and_a_second_call_computes_nothing(trained, store, monkeypatch):
    coarse = plane_of(trained, store, steps=3, rows=20, seed=1)
    calls = []
    judged = training.weight_plane.__globals__["_MovableWeights"].judged
    monkeypatch.setattr(
        training.weight_plane.__globals__["_MovableWeights"],
        "judged",
        lambda self, a, b: calls.append((a, b)) or judged(self, a, b),
    )
    fine = plane_of(trained, store, steps=5, rows=20, seed=1)
    assert len(calls) == 25 - 9
    assert coarse.merge(fine).equals(coarse)
    pd.testing.assert_frame_equal(plane_of(trained, store, steps=5, rows=20, seed=1), fine)
    assert len(calls) == 16


def test_an_interrupted_plane_goes_on_where_it_was(trained, store, monkeypatch):
    moved = training.weight_plane.__globals__["_MovableWeights"]
    judged, calls = moved.judged, []

    def interrupted(self, a, b):
        if len(calls) == 12:  # the coarse level, of 9 points, is done
            raise KeyboardInterrupt
        calls.append((a, b))
        return judged(self, a, b)

    monkeypatch.setattr(moved, "judged", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plane_of(trained, store, steps=5, rows=20, seed=2)
    monkeypatch.setattr(moved, "judged", lambda self, a, b: calls.append((a, b)) or judged(self, a, b))
    plane_of(trained, store, steps=5, rows=20, seed=2)
    assert len(calls) == 12 + 16


def test_what_is_known_so_far_is_the_finest_whole_lattice(trained, store):
    plane = Plane.through(trained.stored, K=K, rows=20, seed=4)
    frame, share = plane.so_far(5, store)
    assert (len(frame), share) == (0, 0)
    coarse = plane_of(trained, store, steps=3, rows=20, seed=4)
    frame, share = plane.so_far(5, store)
    pd.testing.assert_frame_equal(frame, coarse)
    assert share == 9 / 25
    fine = plane_of(trained, store, steps=5, rows=20, seed=4)
    frame, share = plane.so_far(5, store)
    pd.testing.assert_frame_equal(frame, fine)
    assert share == 1


def test_points_kept_of_the_first_rows_are_not_taken_for_those_of_rows_spread_evenly(trained, store):
    plane = Plane.through(trained.stored, K=K, rows=20, seed=6)
    of_first_rows = hashlib.sha256(json.dumps(asdict(plane)).encode()).hexdigest()
    assert plane.key != of_first_rows


def test_scores_without_weights_have_no_plane(store):
    val, test = (wb.LogitTable(scale * np.eye(3), np.arange(3)) for scale in (2, 3))
    with pytest.raises(ValueError, match="no weights"):
        Plane.through(keep_tables(val, title="scores", test=test, store=store))


@pytest.mark.parametrize("K", [0, -3, 10, 100, float("nan"), "a", True])
def test_sets_that_cannot_be_are_refused_in_words(trained, K):
    with pytest.raises(ValueError, match="sets of 10 classes hold 1 to 9 on average"):
        Plane.through(trained.stored, K=K)


def test_a_K_that_is_not_given_is_one_that_can_be(trained):
    assert Plane.through(trained.stored).K == 5
    assert Plane.through(trained.stored, K=9).K == 9


def test_directions_are_as_long_as_the_filters_and_leave_vectors_alone():
    weights = torch.randn(4, 3, 5, 5, generator=torch.Generator().manual_seed(1))
    direction = filter_normalised(weights, torch.Generator().manual_seed(0))
    assert torch.allclose(direction.flatten(1).norm(dim=1), weights.flatten(1).norm(dim=1))
    assert filter_normalised(torch.ones(7), torch.Generator()).abs().sum() == 0


@pytest.mark.parametrize("loss", [AverageKTwoHead(K=2), Quasibinary()], ids=repr)
def test_two_heads_and_losses_with_a_state_have_a_plane(loss, store):
    run = wb.Run("digits", model="linear", loss=loss, epochs=1, device="cpu")
    plane = plane_of(wb.train(run, store=store, progress=False), store, steps=3, rows=100)
    assert np.isfinite(plane[["loss", "accuracy", "threshold"]]).all(axis=None)
    assert wb.figures.weight_plane(plane).plot().data


@pytest.mark.parametrize(
    ("options", "message"),
    [({"steps": 4}, "odd"), ({"steps": 1}, "odd"), ({"reach": 0}, "above 0"), ({"rows": 0}, "above 0")],
)
def test_bad_arguments_say_what_is_allowed(trained, store, options, message):
    with pytest.raises(ValueError, match=message):
        plane_of(trained, store, **options)


@pytest.mark.parametrize(("frame", "error"), [(pd.DataFrame({"a": [0]}), ValueError), (None, TypeError)])
def test_the_figure_wants_a_plane(frame, error):
    with pytest.raises(error, match="columns"):
        wb.figures.weight_plane(frame)


def test_the_figure_wants_the_whole_lattice(trained, store):
    with pytest.raises(ValueError, match="not a lattice"):
        wb.figures.weight_plane(plane_of(trained, store, steps=3, rows=20, seed=1).iloc[:-1])
