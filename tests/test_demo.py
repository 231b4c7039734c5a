"""The runs that ship with the package are small, whole, and what the code of today would make."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.counts import spread_rows
from workbench.metrics import accuracy
from workbench.sets import AverageK, TopK
from workbench.store import DEMO, Store
from workbench.store.cache import PLANES
from workbench.training import Run, TrainedRun, trainer
from workbench.training.demo_runs import BARE, PLANE_ROWS, PLANE_SEED, PLANE_STEPS, demo_runs
from workbench.workers.planes import Plane

ROWS = 300


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return demo_runs()


NAMES = ("cross-entropy", "noised top-K", "two heads", "quasibinary", "sigmoid", "softmax")


@pytest.fixture(params=range(6), ids=NAMES)
def trained(request, runs) -> TrainedRun:
    run = runs[request.param]
    return TrainedRun(run, Store(DEMO).open(run.key))


def test_the_demo_folder_holds_the_listed_runs_in_their_order_and_nothing_else(runs):
    assert [stored.key for stored in Store(DEMO).runs()] == [run.key for run in runs]
    kept = {path.name for path in DEMO.iterdir() if path.name != "__pycache__"}
    assert kept == {PLANES.folder, *(run.key for run in runs)}


def test_the_plane_that_the_app_shows_first_ships_with_every_demo_run(trained, tmp_path):
    plane = Plane.through(trained.stored, rows=PLANE_ROWS, seed=PLANE_SEED)
    frame, known = plane.so_far(PLANE_STEPS, Store(tmp_path))
    assert known == 1
    assert len(frame) == PLANE_STEPS**2
    middle = frame[(frame["a"] == 0) & (frame["b"] == 0)].iloc[0]
    val, test = (trained.tables[name].rows(spread_rows(trained.tables[name].n, PLANE_ROWS)) for name in ("val", "test"))
    assert middle["n"] == PLANE_ROWS
    assert middle["accuracy"] == pytest.approx(accuracy(AverageK(plane.K).fit(val)(test)), abs=0.01)


def test_the_demo_folder_is_small():
    sizes = [path.stat().st_size for path in DEMO.rglob("*") if path.is_file()]
    assert sum(sizes) <= 5e6


def test_the_weights_reproduce_the_scores_on_photographs_drawn_again(trained):
    photographs = torch.from_numpy(np.array(trained.run.data.test.inputs[:ROWS]))
    with torch.no_grad():
        features = trained.model.features(photographs)
        scores = trained.model.head(features)
    test = trained.tables["test"]
    # Half precision keeps 11 bits: an error of 2⁻¹¹ relative to the largest numbers of a row.
    expected = trained.run.loss.logits(scores).numpy()
    np.testing.assert_allclose(test.scores[:ROWS], expected, atol=2**-10 * np.abs(expected).max())
    if not isinstance(trained.run.loss, BARE):
        np.testing.assert_allclose(test.features[:ROWS], features.numpy(), atol=2**-10 * float(features.max()))
    if trained.run.loss.heads == 2:
        candidates = trained.tables["test/candidates"].scores[:ROWS]
        np.testing.assert_allclose(candidates, scores[:, 1].numpy(), atol=2**-10 * scores.abs().max().item())


def test_a_demo_run_knows_its_rows(trained):
    test, split = trained.tables["test"], trained.run.data.test
    np.testing.assert_array_equal(test.labels, split.labels)
    assert test.scores.dtype == np.float16
    assert trained.stored.record.rounded == "float16"
    if not isinstance(trained.run.loss, BARE):
        np.testing.assert_allclose(test.posterior, split.posterior, rtol=1e-6)
        np.testing.assert_array_equal(test.attributes["organs"], split.attributes["organs"])
        assert test.features.dtype == np.float16


def test_a_demo_run_is_opened_by_its_key_alone(trained):
    assert TrainedRun.open(trained.run.key[:12]).run.key == trained.run.key


@pytest.mark.parametrize("former", ["40568a7c7813", "df885b00d452", "4d7d5a652b91", "a4c39b35eb2d"])
def test_a_link_to_a_demo_run_of_an_earlier_version_still_opens_it(former):
    run = Store(DEMO).open(former)
    assert not run.key.startswith(former)
    assert [key[:12] for key in run.record.formerly] == [former]


def test_train_finds_a_demo_run_without_training_it(runs, store, monkeypatch):
    monkeypatch.setattr(trainer, "check_run", lambda run: pytest.fail("it would be trained"))
    assert trainer.train(runs[0], store=store).stored.path.parent == DEMO


def test_the_garden_runs_are_good_and_no_better_than_the_law_allows(runs):
    garden = runs[0].data
    for run in runs[:3]:
        tables = Store(DEMO).open(run.key).tables
        val, test = tables["val"], tables["test"]
        best = garden.test.posterior.max(axis=1).mean()  # Bayes top-1 accuracy on these rows
        assert 0.6 < TopK(1).fit(val)(test).hits.mean() < best + 0.02
        assert 0.85 < AverageK(3).fit(val)(test).hits.mean() < 0.97
