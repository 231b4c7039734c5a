"""The most similar training pictures of a class, and what the network sees in all of them."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.store import DEMO, Store
from workbench.workers.nearest_neighbours import can_be_seen, compute_training_features, most_similar, training_features


def test_the_nearest_rows_of_each_class_come_in_order():
    random = np.random.default_rng(0)
    training, labels, row = random.normal(size=(300, 4)).astype(np.float16), random.integers(0, 5, 300), np.zeros(4)
    frame = most_similar(row, training, labels, [3, 1], most=4)
    assert frame["class"].tolist() == [3] * 4 + [1] * 4
    assert frame["rank"].tolist() == [1, 2, 3, 4] * 2
    for member, part in frame.groupby("class"):
        distances = np.where(labels == member, np.linalg.norm(training.astype(float), axis=1), np.inf)
        assert part["row"].tolist() == np.argsort(distances)[:4].tolist()
        assert part["distance"].tolist() == np.sort(distances)[:4].tolist()


def test_a_row_of_many_labels_belongs_to_each_of_its_classes():
    labels = np.array([[True, True], [False, True], [False, False]])
    frame = most_similar(np.zeros(1), np.arange(3.0)[:, None], labels, [0, 1])
    assert frame[["class", "row"]].to_numpy().tolist() == [[0, 0], [1, 0], [1, 1]]


def test_a_class_without_training_rows_has_no_pictures_and_no_class_gives_an_empty_frame():
    training, labels = np.zeros((3, 2)), np.zeros(3, int)
    assert most_similar(np.zeros(2), training, labels, [1]).empty
    assert most_similar(np.zeros(2), training, labels, []).columns.tolist() == ["class", "rank", "row", "distance"]


def test_features_of_another_network_are_refused():
    with pytest.raises(ValueError, match="same network"):
        most_similar(np.zeros(3), np.zeros((5, 2)), np.zeros(5, int), [0])


def test_training_features_are_those_of_the_run_s_own_network_and_computed_once(tmp_path):
    store = Store(tmp_path)
    trained = wb.train(wb.Run("digits", model="mlp", epochs=1), store=store, progress=False)
    run = trained.stored
    assert can_be_seen(run)
    assert training_features(run, store) is None
    compute_training_features(run, store)
    features = training_features(run, store)
    assert features.shape == (1427, run.tables["test"].features.shape[1])
    # What the table says of a test row is what the same network says of a training row.
    from workbench.training.features import cache_features

    again = cache_features(trained.run.data, trained, store=store)
    np.testing.assert_allclose(again.test.inputs, run.tables["test"].features, rtol=1e-5, atol=1e-5)
    assert np.array_equal(again.train.inputs, features)
    before = sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*"))
    compute_training_features(run, store)
    assert sorted(path.stat().st_mtime_ns for path in tmp_path.rglob("*")) == before


def test_a_run_without_a_network_is_known_and_what_fails_is_said_in_words(tmp_path):
    store = Store(tmp_path)
    with store.writing("a" * 64) as directory:
        (directory / "run.json").write_text('{"format": 1, "facts": {"title": "scores only"}}')
    run = store.open("a" * 64)
    assert not can_be_seen(run)
    assert all(can_be_seen(demo) for demo in Store(DEMO).runs())
    with pytest.raises(OSError, match="scores only could not be computed"):
        compute_training_features(run, store)
