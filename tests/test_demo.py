"""The runs that ship with the package are small, whole, and what the code of today would make."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch

from workbench.drawings import LATEX, drawing_from_text, inputs, scores
from workbench.files.cache import MAPS, PLANES
from workbench.metrics import accuracy, coverage, regret
from workbench.row_sampling import evenly_spaced_rows
from workbench.sets import AverageK, TopK
from workbench.store import DEMO, Store
from workbench.store.planes import Plane
from workbench.training import Run, TrainedRun, trainer
from workbench.training.demo_runs import BARE, PLANE_ROWS, PLANE_SEED, PLANE_STEPS, demo_runs

ROWS = 300


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    return demo_runs()


NAMES = (
    *("garden: cross-entropy", "garden: noised top-K", "garden: two heads"),
    *("meadow: quasibinary", "meadow: sigmoid", "meadow: softmax"),
    "symbols: published",
    *("names: cross-entropy", "names: noised top-K", "names: logit adjustment"),
)


@pytest.fixture(params=range(len(NAMES)), ids=NAMES)
def trained(request, runs) -> TrainedRun:
    run = runs[request.param]
    return TrainedRun(run, Store(DEMO).open(run.key))


def test_the_demo_folder_holds_the_listed_runs_in_their_order_and_nothing_else(runs):
    assert [stored.key for stored in Store(DEMO).runs()] == [run.key for run in runs]
    kept = {path.name for path in DEMO.iterdir() if path.name != "__pycache__"}
    assert kept == {PLANES.folder, MAPS.folder, *(run.key for run in runs)}


def test_the_plane_that_the_app_shows_first_ships_with_every_demo_run(trained, tmp_path):
    plane = Plane.through(trained.stored, rows=PLANE_ROWS, seed=PLANE_SEED)
    frame, known = plane.so_far(PLANE_STEPS, Store(tmp_path))
    assert known == 1
    assert len(frame) == PLANE_STEPS**2
    middle = frame[(frame["a"] == 0) & (frame["b"] == 0)].iloc[0]
    val, test = (
        trained.tables[name].rows(evenly_spaced_rows(trained.tables[name].n, PLANE_ROWS)) for name in ("val", "test")
    )
    assert middle["n"] == test.n == min(PLANE_ROWS, trained.tables["test"].n)
    assert middle["accuracy"] == pytest.approx(accuracy(AverageK(plane.K).fit(val)(test)), abs=0.01)


def test_the_demo_folder_is_small_where_a_wheel_packs_it():
    n_bytes = sum(len(zlib.compress(path.read_bytes())) for path in DEMO.rglob("*") if path.is_file())
    assert n_bytes <= 9e6


def test_the_weights_reproduce_the_scores_on_rows_made_again(trained):
    rows = torch.from_numpy(np.array(trained.run.data.test.inputs[:ROWS]))
    with torch.no_grad():
        features = trained.model.features(rows)
        scores = trained.model.head(features)
    test = trained.tables["test"]
    # Half precision keeps 11 bits: an error of 2⁻¹¹ relative to the largest numbers of a row.
    expected = trained.run.loss.logits(scores).numpy()
    np.testing.assert_allclose(test.scores[:ROWS], expected, atol=2**-10 * np.abs(expected).max())
    if test.features is not None:
        np.testing.assert_allclose(test.features[:ROWS], features.numpy(), atol=2**-10 * float(features.max()))
    if trained.run.loss.heads == 2:
        candidates = trained.tables["test/candidates"].scores[:ROWS]
        np.testing.assert_allclose(candidates, scores[:, 1].numpy(), atol=2**-10 * scores.abs().max().item())


def test_a_demo_run_knows_its_rows(trained):
    test, split = trained.tables["test"], trained.run.data.test
    np.testing.assert_array_equal(test.labels, split.labels)
    assert test.scores.dtype == np.float16
    assert trained.stored.record.rounded == "float16"
    if isinstance(trained.run.loss, BARE):
        return
    for name, values in split.attributes.items():
        np.testing.assert_array_equal(test.attributes[name], values)
    for name in ("texts", "strokes"):
        shown, made = getattr(test, name), getattr(split, name)
        assert (shown is None and made is None) or shown.tolist() == made.tolist()
    if split.posterior is not None:
        np.testing.assert_allclose(test.posterior, split.posterior, rtol=1e-6)
    if len(split.inputs.shape) == 4:
        assert test.features.dtype == np.float16


def test_a_demo_run_is_opened_by_its_key_alone(trained):
    assert TrainedRun.open(trained.run.key[:12]).run.key == trained.run.key


def test_train_finds_a_demo_run_without_training_it(runs, store, monkeypatch):
    monkeypatch.setattr(trainer, "check_run", lambda run: pytest.fail("it would be trained"))
    assert trainer.train(runs[0], store=store).stored.path.parent == DEMO


def test_the_run_of_names_has_regret_against_sets_that_are_best_possible(runs):
    for run in runs[7:]:
        tables = Store(DEMO).open(run.key).tables
        sets = AverageK(5).fit(tables["val"])(tables["test"])
        assert 0.4 < coverage(sets) < 0.9
        assert 0.05 < regret(sets) < 0.5


def test_the_published_network_has_the_weights_of_the_drawing_pad(runs):
    run = TrainedRun.open(runs[6].key)
    drawings = [drawing_from_text(text) for text in run.tables["test"].strokes.tolist()[:50]]
    found = run.predict(inputs(drawings).astype(np.float32), progress=False)
    assert np.abs(found.scores - scores(drawings)).max() < 1e-5
    assert found.class_names == LATEX


def test_the_garden_runs_are_good_and_no_better_than_the_law_allows(runs):
    garden = runs[0].data
    for run in runs[:3]:
        tables = Store(DEMO).open(run.key).tables
        val, test = tables["val"], tables["test"]
        best = garden.test.posterior.max(axis=1).mean()  # Bayes top-1 accuracy on these rows
        assert 0.6 < TopK(1).fit(val)(test).hits.mean() < best + 0.02
        assert 0.85 < AverageK(3).fit(val)(test).hits.mean() < 0.97
