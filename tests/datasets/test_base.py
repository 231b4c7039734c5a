"""Dataset, Split and the split of Pl@ntNet-300K."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.datasets import Dataset, Split


def rows_of(counts: list[int], d: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows (the first column numbers them) with this many rows of each class, in no order."""
    labels = np.repeat(np.arange(len(counts)), counts)
    labels = np.random.default_rng(1).permutation(labels)
    rows = np.zeros((len(labels), d))
    rows[:, 0] = np.arange(len(labels))
    return rows, labels


def split(n: int = 4, n_classes: int = 2, d: int = 3) -> Split:
    return Split(np.zeros((n, d), dtype=np.float32), np.arange(n, dtype=np.int64) % n_classes)


@settings(max_examples=40, deadline=None)
@given(counts=st.lists(st.integers(4, 47), min_size=1, max_size=6), seed=st.integers(0, 99))
def test_each_class_gives_a_tenth_rounded_up_to_val_and_to_test(counts, seed):
    X, y = rows_of(counts)
    data = Dataset.from_arrays(X, y, seed=seed)
    for j, n in enumerate(counts):
        tenth = math.ceil(n / 10)
        assert [np.sum(part.labels == j) for part in (data.train, data.val, data.test)] == [n - 2 * tenth, tenth, tenth]
    assert data.class_counts.tolist() == [n - 2 * math.ceil(n / 10) for n in counts]


def test_every_row_lands_in_exactly_one_split_with_its_own_label_and_attributes():
    X, y = rows_of([10, 35, 4])
    data = Dataset.from_arrays(X, y, attributes={"row": np.arange(len(X))})
    numbers = np.concatenate([part.inputs[:, 0] for part in (data.train, data.val, data.test)]).astype(int)
    assert sorted(numbers) == list(range(len(X)))
    for part in (data.train, data.val, data.test):
        assert np.array_equal(part.labels, y[part.attributes["row"]])
        assert np.array_equal(part.inputs[:, 0], part.attributes["row"])


def test_the_seed_decides_the_split_and_the_key():
    X, y = rows_of([30, 30])
    one, same, other = (Dataset.from_arrays(X, y, seed=seed) for seed in (5, 5, 6))
    assert np.array_equal(one.test.inputs, same.test.inputs)
    assert one.key == same.key
    assert one.key != other.key


def test_the_key_follows_attributes_and_posterior_which_tables_tell_of():
    X, y = rows_of([10, 10])
    bare, leaf, bark = (
        Dataset.from_arrays(X, y, attributes=organs)
        for organs in ({}, {"organ": ["leaf"] * 20}, {"organ": ["leaf"] * 19 + ["bark"]})
    )
    known = dataclasses.replace(bare, test=dataclasses.replace(bare.test, posterior=np.eye(2)), key="")
    keys = {bare.key, leaf.key, bark.key, known.key}
    assert len(keys) == 4
    # The runs of earlier days are found again.
    assert bare.key == "cfebb403f33453319f1f85edf28b624c988dd2a46473f19858b7892fa499eaa2"


@pytest.mark.parametrize("changed", ["inputs", "labels", "names", "groups"])
def test_the_key_follows_the_content(changed):
    X, y = rows_of([10, 10])
    names, groups = ["a", "b"], ["g", "g"]
    before = Dataset.from_arrays(X, y, names, groups).key
    if changed == "inputs":
        X[0, 1] += 1
    elif changed == "labels":
        y = 1 - y
    elif changed == "names":
        names = ["a", "c"]
    else:
        groups = ["g", "h"]
    assert Dataset.from_arrays(X, y, names, groups).key != before


def test_classes_with_fewer_than_four_rows_are_refused_by_name():
    X, y = rows_of([10, 3, 5])
    with pytest.raises(ValueError, match=r"fewer than 4 rows for moss \(3\).*drop_small=True"):
        Dataset.from_arrays(X, y, class_names=["fern", "moss", "lily"])


def test_small_classes_are_dropped_on_request_and_the_others_numbered_anew():
    X, y = rows_of([10, 3, 5])
    data = Dataset.from_arrays(X, y, ["fern", "moss", "lily"], ["a", "b", "c"], drop_small=True)
    assert data.class_names == ("fern", "lily")
    assert data.groups == ("a", "c")
    for part in (data.train, data.val, data.test):
        assert np.array_equal(part.labels, np.where(y[part.inputs[:, 0].astype(int)] == 2, 1, 0))


def test_dropping_everything_is_an_error():
    with pytest.raises(ValueError, match="nothing is left"):
        Dataset.from_arrays(*rows_of([2, 3]), drop_small=True)


def test_rows_with_many_labels_are_split_by_row():
    labels = np.random.default_rng(0).random((41, 5)) < 0.5
    data = Dataset.from_arrays(np.arange(41.0)[:, None], labels)
    assert (data.train.n, data.val.n, data.test.n) == (31, 5, 5)
    assert data.many_labels
    assert np.array_equal(data.val.labels, labels[data.val.inputs[:, 0].astype(int)])
    assert np.array_equal(data.class_counts, data.train.labels.sum(axis=0))


def test_images_stay_uint8_and_numbers_become_float32():
    _, y = rows_of([10, 10])
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 8, 3), dtype=np.uint8)
    assert Dataset.from_arrays(images, y).train.inputs.dtype == np.uint8
    assert Dataset.from_arrays(images, y).input_shape == (8, 8, 3)
    assert Dataset.from_arrays(np.arange(40).reshape(20, 2), y).train.inputs.dtype == np.float32


def test_a_split_gives_some_of_its_rows():
    part = Split(np.arange(6.0)[:, None], np.arange(6), np.eye(6), {"row": np.arange(6)}).rows([4, 1])
    assert part.labels.tolist() == [4, 1]
    assert part.posterior.argmax(axis=1).tolist() == [4, 1]
    assert part.attributes["row"].tolist() == [4, 1]


X20, Y20 = rows_of([10, 10])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.where(np.eye(20, 3) > 0, np.nan, 1.0), Y20, "NaN or infinite numbers, first in row 0"),
        (np.full((20, 3), np.inf), Y20, "NaN or infinite"),
        (1e300 * X20, Y20, r"X holds numbers beyond ±3.4e38, first in row 1; divide"),
        (X20[:19], Y20, "X has 19 rows and y has 20"),
        (X20[:, :, None], Y20, r"X has shape \(20, 3, 1\)"),
        (X20[:, 0], Y20, r"X has shape \(20,\)"),
        (np.zeros((20, 8, 8, 3)), Y20, "images as float64; give uint8"),
        (np.full((20, 3), "leaf"), Y20, "give real numbers"),
        (np.full((20, 3), None), Y20, "X is object; give real numbers"),
        (X20 + 1j, Y20, "give real numbers"),
        (X20, Y20 - 2, "labels go from -2 to"),
        (X20, Y20 * 0.5, "labels hold 0.5"),
        (X20[:0], Y20[:0], "X has no rows"),
    ],
)
def test_arrays_that_are_no_data_are_refused_with_a_reason(X, y, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(X, y)


@pytest.mark.parametrize("seed", ["a", -1, 0.5, None])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ValueError, match=f"seed = {seed!r}; give a whole number ≥ 0"):
        Dataset.from_arrays(X20, Y20, seed=seed)


def test_labels_beyond_the_class_names_are_refused():
    with pytest.raises(ValueError, match="labels go from 0 to 1; with 1 classes give 0 to 0"):
        Dataset.from_arrays(X20, Y20, class_names=["only"])


def test_groups_and_attributes_must_have_their_lengths():
    with pytest.raises(ValueError, match="3 groups for 2 classes"):
        Dataset.from_arrays(X20, Y20, groups=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"attribute 'author' has shape \(3,\)"):
        Dataset.from_arrays(X20, Y20, attributes={"author": ["x", "y", "z"]})
    with pytest.raises(ValueError, match=r"attributes = \['x'\]; give \{name: one value per row\}"):
        Dataset.from_arrays(X20, Y20, attributes=["x"])
    with pytest.raises(ValueError, match="3 groups for 2 classes"):
        Dataset.from_arrays(*rows_of([10, 2]), groups=["a", "b", "c"], drop_small=True)


def test_an_empty_split_is_an_error():
    with pytest.raises(ValueError, match="val: the split is empty"):
        Dataset("mine", split(), split(0), split(), ("a", "b"))


def test_a_class_that_training_lacks_is_named():
    with pytest.raises(ValueError, match="no training row for moss"):
        Dataset("mine", split(), split(), split(), ("fern", "lily", "moss"))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (split(d=4), r"inputs have shape \(4,\), those of train \(3,\)"),
        (Split(np.zeros((4, 3)), np.zeros(4, dtype=np.int64)), "inputs are float64"),
        (Split(np.full((4, 3), np.nan, np.float32), np.zeros(4, dtype=np.int64)), "NaN"),
        (Split(np.zeros((4, 3), np.float32), np.zeros(4, dtype=np.int32)), "labels are int32"),
        (Split(np.zeros((4, 3), np.float32), np.full(4, 2)), "labels go from 2 to 2"),
        (Split(np.zeros((4, 3), np.float32), np.zeros((4, 2), dtype=bool)), "labels have 2 axes"),
        (Split(np.zeros((4, 3), np.float32), np.arange(4) % 2, np.ones((4, 2))), "summing to 1"),
        (Split(np.zeros((4, 3), np.float32), np.arange(4) % 2, np.full((4, 2), np.nan)), "must be probabilities"),
        (Split(np.zeros((4, 3), np.float32), np.arange(4) % 2, np.ones((4, 3)) / 3), r"give \(4, 2\)"),
        (Split(np.zeros((4, 3), np.float32), np.arange(4) % 2, None, {"place": np.zeros(3)}), "one value per row"),
    ],
)
def test_splits_that_do_not_fit_are_refused_with_a_reason(wrong, message):
    with pytest.raises(ValueError, match=message):
        Dataset("mine", split(), split(), wrong, ("a", "b"))


def test_a_dataset_says_what_it_is():
    data = Dataset.from_arrays(*rows_of([10, 10]), name="mine")
    assert repr(data) == "Dataset('mine': 16 / 2 / 2 rows of 3, 2 classes)"
