"""Arrays as people have them: what `Dataset.from_arrays` takes for inputs, labels and splits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from workbench.datasets import Dataset, LabelNoise, load_dataset, load_spec
from workbench.datasets import inputs as inputs_module
from workbench.losses import BinaryCrossEntropy, CrossEntropy, NoisedTopK
from workbench.training import Run, train

NAMES = ("fern", "lily", "moss")
LABELS = np.arange(30) % 3
WORDS = np.array(NAMES)[LABELS]
MARKS = LABELS[:, None] == np.arange(3)
ROWS = np.column_stack([np.arange(30.0), np.ones(30)])


def labels_of(data: Dataset) -> np.ndarray:
    """The labels of all rows, in the order of `ROWS`."""
    rows = np.concatenate([part.inputs[:, 0] for part in (data.train, data.val, data.test)])
    labels = np.concatenate([part.labels for part in (data.train, data.val, data.test)])
    return labels[np.argsort(rows)]


@pytest.mark.parametrize(
    "y",
    [
        WORDS,
        WORDS.astype(object),
        WORDS.tolist(),
        pd.Series(WORDS),
        pd.Series(WORDS, dtype="category"),
        pd.Categorical(WORDS),
        pd.DataFrame({"species": WORDS}),
    ],
    ids=["text", "objects", "list", "series", "category", "categorical", "one column"],
)
@pytest.mark.parametrize("class_names", [None, NAMES, np.array(NAMES), pd.Index(NAMES)])
def test_labels_may_be_names_with_or_without_a_list_of_them(y, class_names):
    data = Dataset.from_arrays(ROWS, y, class_names)
    assert data.class_names == NAMES
    assert np.array_equal(labels_of(data), LABELS)


def test_names_are_numbered_in_the_order_of_the_class_names():
    data = Dataset.from_arrays(ROWS, WORDS, ["moss", "fern", "lily"])
    assert data.class_names == ("moss", "fern", "lily")
    assert np.array_equal(labels_of(data), (LABELS + 1) % 3)


def test_the_same_data_has_the_same_key_however_its_labels_are_written():
    keys = {Dataset.from_arrays(ROWS, y, NAMES).key for y in (LABELS, WORDS, pd.Series(LABELS, dtype="Int64"))}
    assert len(keys) == 1


@pytest.mark.parametrize(
    "y",
    [
        MARKS,
        *(MARKS.astype(kind) for kind in (np.int8, np.uint8, np.int32, np.int64, np.float32)),
        MARKS.astype(int).tolist(),
        [[j] for j in LABELS],
        [{name} for name in WORDS],
        pd.Series([[name] for name in WORDS]),
        pd.DataFrame(MARKS.astype(int), columns=NAMES),
        scipy.sparse.csr_matrix(MARKS.astype(int)),
        scipy.sparse.coo_array(MARKS.astype(np.int8)),
        torch.tensor(MARKS),
    ],
    ids=["bool", "int8", "uint8", "int32", "int64", "float32", "lists of marks", "lists of indices", "sets of names",
         "series of lists", "frame", "csr", "coo", "tensor"],
)  # fmt: skip
def test_rows_with_many_labels_are_marks_of_any_type_or_lists(y):
    data = Dataset.from_arrays(ROWS, y, NAMES)
    assert data.many_labels
    assert np.array_equal(labels_of(data), MARKS)


def test_lists_hold_none_one_or_several_labels():
    y = [["fern", "moss"], [], ["lily"]] * 10
    data = Dataset.from_arrays(ROWS, y)
    assert data.class_names == NAMES
    assert labels_of(data)[:3].astype(int).tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_the_columns_of_a_frame_of_marks_name_the_classes_and_follow_their_order():
    frame = pd.DataFrame(MARKS, columns=NAMES)
    assert Dataset.from_arrays(ROWS, frame).class_names == NAMES
    turned = Dataset.from_arrays(ROWS, frame, ["moss", "lily", "fern"])
    assert np.array_equal(labels_of(turned), MARKS[:, ::-1])
    with pytest.raises(ValueError, match=r"columns.*fern, lily, moss.*oak"):
        Dataset.from_arrays(ROWS, frame, ["oak", "elm", "ash"])


@pytest.mark.parametrize(
    "y",
    [
        np.where(LABELS == 2, -1, LABELS),
        [None if j == 2 else j for j in LABELS.tolist()],
        ["" if word == "moss" else word for word in WORDS],
        pd.Series(np.where(LABELS == 2, np.nan, LABELS)),
        pd.Series(np.where(LABELS == 2, -1, LABELS), dtype="Int64").replace(-1, pd.NA),
        pd.Series(WORDS).where(WORDS != "moss", None),
    ],
    ids=["-1", "None", "empty", "NaN", "NA", "missing"],
)
def test_a_row_without_a_label_has_no_mark(y, store):
    data = Dataset.from_arrays(ROWS, y, NAMES[:2])
    assert data.many_labels
    assert np.array_equal(labels_of(data), MARKS[:, :2])
    tenths = [[part.labels.any(axis=1).sum(), (~part.labels.any(axis=1)).sum()] for part in (data.val, data.test)]
    assert tenths == [[2, 1], [2, 1]]  # rows without a label are split as those of a class
    run = Run(data, model="linear", epochs=1, device="cpu", loss=BinaryCrossEntropy())
    assert train(run, store=store, progress=False).tables["test"].many_labels
    with pytest.raises(
        ValueError, match="has rows with several labels or none, and NoisedTopK reads one label per row"
    ):
        train(Run(data, model="linear", loss=NoisedTopK(K=1)), store=store)


@pytest.mark.parametrize(
    ("y", "class_names", "message"),
    [
        (WORDS, ["fern", "lily"], "moss"),
        (WORDS, ["fern", "fern", "lily", "moss"], "fern"),
        (LABELS - 2, None, "labels go from -2 to 0"),
        (LABELS, ["fern", "lily"], "labels go from 0 to 2; with 2 classes give 0 to 1"),
        (LABELS + 0.5, None, "labels hold 0.5"),
        (np.stack([LABELS, LABELS], axis=1), None, r"labels of shape \(n, L\) must be true or false"),
        (MARKS, ["fern", "lily"], "2 classes"),
        (["", "", ""] * 10, None, "y has no label in any row"),
        (WORDS, "fern", "class_names = 'fern'; give one name per class"),
        (None, None, "y = None; give the labels of all rows"),
        (3, None, "y = 3; give the labels of all rows"),
        ({"a": 1}, None, r"y = \{'a': 1\}; give the labels of all rows"),
        (pd.date_range("2020", periods=30), None, "y cannot be read as labels"),
        (LABELS[:, None, None], None, r"\(30, 1, 1\)"),
        (LABELS + 10**12, None, "y holds 1000000000002 among 30 labels; class indices count from 0.*give them as text"),
        ([[10**12], [], [3]] * 10, None, "y holds 1000000000000 among 20 labels"),
    ],
)
def test_labels_that_cannot_be_read_are_refused_with_a_reason(y, class_names, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(ROWS, y, class_names)


def test_numbers_that_could_be_names_are_places_and_a_warning_says_so():
    with pytest.warns(UserWarning, match="labels are positions from 0, not names of classes; give text labels"):
        data = Dataset.from_arrays(ROWS, LABELS, ["1", "2", "0"])
    assert np.array_equal(labels_of(data), LABELS)
    assert np.array_equal(labels_of(Dataset.from_arrays(ROWS, LABELS.astype(str), ["1", "2", "0"])), (LABELS + 2) % 3)


def test_frames_and_sparse_matrices_are_rows_of_numbers(monkeypatch):
    expected = Dataset.from_arrays(ROWS, LABELS)
    frame = pd.DataFrame({"number": np.arange(30), "there": np.ones(30, bool)})
    for X in (frame, scipy.sparse.csr_matrix(ROWS), scipy.sparse.csc_array(ROWS), torch.tensor(ROWS), ROWS.tolist()):
        assert Dataset.from_arrays(X, LABELS).key == expected.key
    with pytest.raises(ValueError, match=r"columns that are not numbers: place; leave them out"):
        Dataset.from_arrays(frame.assign(place="wood"), LABELS)
    with pytest.raises(ValueError, match="X holds NaN or infinite numbers, first in row 3"):
        Dataset.from_arrays(
            frame.assign(number=frame["number"].astype("Int64").where(LABELS < 3).mask(frame.index == 3)), LABELS
        )
    monkeypatch.setattr(inputs_module, "DENSE", 100)
    with pytest.raises(ValueError, match="X is sparse and would take 0 GB as rows of numbers; give fewer columns"):
        Dataset.from_arrays(scipy.sparse.csr_matrix(ROWS), LABELS)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (ROWS[:, :0], r"X has shape \(30, 0\): its rows are empty"),
        (np.zeros((30, 0, 4, 3), np.uint8), r"X has shape \(30, 0, 4, 3\): its rows are empty"),
        ([[1.0], [2.0, 3.0]], "X is not an array .*all of one length"),
        (np.ma.masked_greater(ROWS, 20), "masked entries; fill them"),
    ],
)
def test_inputs_that_are_empty_ragged_or_masked_are_refused(X, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(X, LABELS)


def test_attributes_may_be_the_columns_of_a_frame():
    place = np.where(LABELS > 0, "wood", "meadow")
    given = (pd.DataFrame({"place": place, "day": np.arange(30)}), {"place": place, "day": np.arange(30)})
    keys = {Dataset.from_arrays(ROWS, LABELS, attributes=attributes).key for attributes in given}
    assert len(keys) == 1


PARTS = np.repeat(["train", "val", "test"], [15, 6, 9])


@pytest.mark.parametrize("split", [PARTS, PARTS.tolist(), pd.Series(PARTS), pd.Series(PARTS, dtype="category")])
def test_a_split_of_ones_own_is_kept(split):
    data = Dataset.from_arrays(ROWS, WORDS, split=split)
    for name in ("train", "val", "test"):
        assert np.array_equal(getattr(data, name).inputs, ROWS[name == PARTS])
        assert np.array_equal(getattr(data, name).labels, LABELS[name == PARTS])


def test_three_arrays_are_the_splits():
    def parts(rows):
        return tuple(rows[name == PARTS] for name in ("train", "val", "test"))

    expected = Dataset.from_arrays(ROWS, WORDS, split=PARTS)
    for X in (ROWS, pd.DataFrame(ROWS), scipy.sparse.csr_matrix(ROWS)):
        for y in (WORDS, pd.Series(WORDS)):
            assert Dataset.from_arrays(parts(X), parts(y)).key == expected.key
    many = Dataset.from_arrays(ROWS, MARKS, NAMES, split=PARTS)
    for y in (MARKS.astype(int), pd.DataFrame(MARKS, columns=NAMES), scipy.sparse.csr_matrix(MARKS)):
        assert Dataset.from_arrays(parts(ROWS), parts(y), NAMES).key == many.key
    assert Dataset.from_arrays(parts(ROWS), list(parts(WORDS))).key == expected.key
    listed = tuple([[name] for name in part] for part in parts(WORDS))
    assert Dataset.from_arrays(parts(ROWS), listed).key == many.key


def test_a_name_that_only_the_last_part_has_is_a_class_of_all():
    X, y = (ROWS[:6], ROWS[6:8], ROWS[8:10]), (["a", "b"] * 3, ["a", "b"], ["a", "c"])
    with pytest.raises(ValueError, match=r"no training row for c \(0\).*drop_small=True"):
        Dataset.from_arrays(X, y)
    data = Dataset.from_arrays(X, y, drop_small=True)
    assert (data.class_names, data.test.n) == (("a", "b"), 1)


@pytest.mark.parametrize(
    ("X", "y", "split", "message"),
    [
        (ROWS, LABELS, PARTS[:3], r"split has shape \(3,\) for 30 rows of X; give one of train, val, test"),
        (ROWS, LABELS, np.where(PARTS == "val", "dev", PARTS), "split holds 'dev'; give one of train, val, test"),
        (ROWS, LABELS, np.where(PARTS == "val", "test", PARTS), "val: the split is empty"),
        ((ROWS, ROWS, ROWS), (LABELS, LABELS), None, "X has three parts and y has 2"),
        ((ROWS, ROWS, ROWS), (LABELS, LABELS, LABELS[1:]), None, "a part of X and of y have 30 and 29 rows"),
        ((ROWS, ROWS, ROWS[:, :1]), (LABELS, LABELS, LABELS), None, r"parts of X have shapes .*\(30, 1\)"),
        ((ROWS, ROWS, ROWS), (LABELS, LABELS, LABELS), PARTS, "three parts already; leave split out"),
    ],
)
def test_a_split_that_does_not_fit_is_refused_with_a_reason(X, y, split, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(X, y, split=split)


# Groups


def test_letters_have_groups_of_shape_when_asked_so_that_label_noise_works():
    plain, grouped = load_dataset("letters"), load_dataset("letters", groups="shape")
    assert plain.groups is None
    assert set(grouped.groups) == {"round", "bowls", "bars", "crossed", "zigzag"}
    groups = np.array(grouped.groups)
    noisy = grouped.transformed(LabelNoise(0.5))
    changed = noisy.train.labels != grouped.train.labels
    assert abs(changed.mean() - 0.5) < 0.02
    assert np.array_equal(groups[noisy.train.labels], groups[grouped.train.labels])
    assert load_spec(noisy.spec).key == noisy.key
    with pytest.raises(
        ValueError, match=r"LabelNoise needs groups of classes, and letters has none; give it some, .*with_groups"
    ):
        plain.transformed(LabelNoise(0.5))


@pytest.mark.parametrize("groups", [["green", "showy", "green"], {"moss": "green", "lily": "showy", "fern": "green"}])
def test_any_dataset_takes_groups(groups):
    data = Dataset.from_arrays(ROWS, WORDS)
    grouped = data.with_groups(groups)
    assert grouped.groups == ("green", "showy", "green")
    assert grouped.key != data.key
    assert grouped.with_groups(groups) is grouped
    assert Dataset.from_arrays(ROWS, WORDS, groups=groups).groups == grouped.groups
    assert grouped.name == data.name


def test_a_run_on_a_dataset_with_groups_is_repeated_from_its_file():
    digits = load_dataset("digits").with_groups(["even", "odd"] * 5)
    run = Run(digits, model="linear", loss=CrossEntropy(), transforms=(LabelNoise(0.2),))
    again = Run.from_json(run.to_json())
    assert (again.key, again.data.groups) == (run.key, digits.groups)


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        (["a"], "1 groups for 3 classes; give one group per class"),
        ("abc", "groups = 'abc'; give one group per class"),
        ({"fern": "a"}, "no group for lily, moss; give one for each class"),
        (3, "groups = 3; give one group per class"),
    ],
)
def test_groups_that_do_not_fit_are_refused(groups, message):
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(ROWS, WORDS).with_groups(groups)
    with pytest.raises(ValueError, match=message):
        Dataset.from_arrays(ROWS, WORDS, groups=groups)
