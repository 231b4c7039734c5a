"""Names that load, knobs they take, and the real data that is always there."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

from workbench.datasets import DATASETS, load_dataset

# How many rows of each letter the original has, A to Z, as letter-recognition.names says.
IN_UCI = [789, 766, 736, 805, 768, 775, 773, 734, 755, 747, 739, 761, 792]
IN_UCI += [783, 753, 803, 783, 758, 748, 796, 813, 764, 752, 787, 786, 734]


def test_letters_are_the_uci_rows_split_inside_each_class(shared_data):
    original = shared_data("letter_recognition")
    data = load_dataset("letters")
    rows = np.concatenate([part.inputs for part in (data.train, data.val, data.test)])
    labels = np.concatenate([part.labels for part in (data.train, data.val, data.test)])
    ours = Counter(map(tuple, np.column_stack([rows, labels]).astype(int).tolist()))
    theirs = Counter(map(tuple, np.column_stack([original["X"], original["y"]]).tolist()))
    assert ours >= theirs
    assert data.class_names == tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    n = np.bincount(labels)
    assert n.tolist() == IN_UCI
    assert np.array_equal(data.class_counts, n - 2 * np.ceil(n / 10).astype(int))


def test_letters_come_with_their_credit():
    credit = (files("workbench.datasets") / "data" / "letters.txt").read_text(encoding="utf-8")
    assert "Slate" in credit
    assert "CC BY 4.0" in credit


def test_digits_are_grey_images_over_the_whole_range():
    data = load_dataset("digits")
    assert data.input_shape == (8, 8, 1)
    assert data.train.inputs.dtype == np.uint8
    assert (data.train.inputs.min(), data.train.inputs.max()) == (0, 255)
    assert data.train.n + data.val.n + data.test.n == 1797
    assert data.class_names == tuple("0123456789")


@pytest.mark.parametrize("name", ["letters", "digits"])
def test_a_seed_splits_otherwise_and_the_spec_splits_the_same(name):
    one, other = load_dataset(name), load_dataset(name, seed=1)
    assert one.key != other.key
    assert load_dataset(other.spec["name"], **other.spec["knobs"]).key == other.key


@pytest.mark.parametrize("name", ["", "gardn", "../photos", "/data/plants"])
def test_an_unknown_name_or_a_path_lists_the_names_there_are(name):
    with pytest.raises(ValueError, match="garden, meadow, letters, digits"):
        load_dataset(name)


def test_arrays_are_no_name_of_a_dataset():
    with pytest.raises(ValueError, match=r"the name or the path of a dataset, not \[\[1\]\]; Dataset.from_arrays"):
        load_dataset([[1]])


def test_an_unknown_knob_lists_the_knobs_there_are():
    with pytest.raises(ValueError, match="letters has no knob size; it has seed"):
        load_dataset("letters", size=3)


@pytest.mark.parametrize("name", DATASETS)
def test_every_knob_says_what_it_means(name):
    for knob in DATASETS[name].knobs().values():
        assert knob.meaning


def test_importing_datasets_loads_neither_torch_nor_sklearn_nor_pandas():
    code = "import sys, workbench.datasets; print(*{'torch', 'sklearn', 'pandas', 'scipy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""
