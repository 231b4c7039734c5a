"""LogitTable: what it accepts, what it refuses, and that nothing depends on the block size or on the disk."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.tables import directories
from workbench.tables.links import LINKS, softmax, sparsemax

rng = np.random.default_rng(0)


def scores(n: int = 20, n_classes: int = 6, dtype: str = "float32") -> np.ndarray:
    return (rng.normal(size=(n, n_classes)) * 3).astype(dtype)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("link", list(LINKS))
def test_not_a_bit_of_a_probability_depends_on_the_block_size(dtype, link):
    values = scores(1111, 37, dtype)
    if link == "identity":
        values = softmax(values.astype("float64")).astype(dtype)
    table = wb.LogitTable(values, link=link, link_constant=0.3)
    whole = table.probabilities()
    assert whole.dtype == (np.float64 if dtype == "float64" else np.float32)
    for rows in (1, 2, 7, 512, 2000):
        assert np.array_equal(np.concatenate(list(table.blocks(rows))), whole)
    assert np.array_equal(table.probabilities([1000, 3]), whole[[1000, 3]])
    assert np.array_equal(table.probabilities(slice(5, 600)), whole[5:600])


def test_softmax_sums_to_one_and_survives_huge_scores():
    probabilities = wb.LogitTable(np.array([[1e4, -1e4, 0], [3e4, 3e4, -3e4]])).probabilities()
    assert np.allclose(probabilities, [[1, 0, 0], [0.5, 0.5, 0]])


def test_sigmoid_is_the_logistic_function_and_never_overflows():
    values = np.array([[-1e4, -1.0, 0.0, 2.0, 1e4]])
    expected = 1 / (1 + np.exp(-np.clip(values, -700, 700)))
    assert np.allclose(wb.LogitTable(values, link="sigmoid").probabilities(), expected, atol=1e-300)


def test_quasibinary_probabilities_are_not_clipped_at_one():
    table = wb.LogitTable(np.array([[0.0, 1.0, 2.0]]), link="quasibinary", link_constant=0.5)
    assert np.allclose(table.probabilities(), np.exp(np.array([[-0.5, 0.5, 1.5]])))


def test_sparsemax_is_the_projection_on_the_simplex():
    values = scores(50, 5, "float64")
    projected = sparsemax(values)
    assert np.allclose(projected.sum(1), 1)
    assert (projected >= 0).all()
    for row, image in zip(
        values, projected, strict=True
    ):  # optimality: s − p is constant on the support, not above it off
        gap = row - image
        assert np.allclose(gap[image > 0], gap[image > 0].mean())
        assert (gap[image == 0] <= gap[image > 0].mean() + 1e-12).all()


def test_torch_tensors_are_accepted_and_bfloat16_becomes_float32():
    values = torch.randn(4, 3, dtype=torch.bfloat16, requires_grad=True)
    table = wb.LogitTable(values, labels=torch.tensor([0, 1, 2, 0]))
    assert table.scores.dtype == np.float32
    assert np.array_equal(table.scores, values.detach().float().numpy())
    assert wb.LogitTable(torch.randn(4, 3).half()).scores.dtype == np.float16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scores": [1.0, 2.0]}, "shape"),
        ({"scores": np.zeros((0, 3))}, "shape"),
        ({"scores": [["a", "b"]]}, "floating"),
        ({"scores": [[0.0, np.nan]]}, r"scores\[0, 1\] is nan"),
        ({"scores": [[0.0, 1.0], [np.inf, 1.0]]}, r"scores\[1, 0\] is inf"),
        ({"scores": [[0.0, -np.inf]]}, "finite"),
        ({"scores": [[0.0, 1.0]], "labels": [2]}, "0 to 1"),
        ({"scores": [[0.0, 1.0]], "labels": [-2]}, "0 to 1, or -1 for a row without a label"),
        ({"scores": [[0.0, 1.0]], "labels": [0, 1]}, "one per row"),
        ({"scores": [[0.0, 1.0]], "labels": [0.5]}, "class indices"),
        ({"scores": [[0.0, 1.0]], "labels": [[0, 2]]}, "true or false"),
        ({"scores": [[0.0, 1.0]], "labels": [[True, False, True]]}, "one mark per class"),
        ({"scores": [[0.0, 1.0]], "link": "probit"}, "softmax, sigmoid"),
        ({"scores": [[0.0, 1.0]], "link": ["softmax"]}, "softmax, sigmoid"),
        ({"scores": [[0.0, 1.0]], "link": "quasibinary"}, "log C"),
        ({"scores": [[0.0, 1.0]], "link": "quasibinary", "link_constant": "1"}, "log C, a number"),
        ({"scores": [[0.0, 1.0], [1.0, 0.0]], "ids": 7}, "ids has 1 entries"),
        ({"scores": [[0.0, 1.0]], "attributes": ["leaf"]}, "one value per row"),
        ({"scores": [[0.0, 1.0]], "class_names": ["a"]}, "one per class"),
        ({"scores": [[0.0, 1.0]], "class_counts": [1, -1]}, "≥ 0"),
        ({"scores": [[0.0, 1.0]], "posterior": [[1.0]]}, "posterior"),
        ({"scores": [[0.0, 1.0]], "votes": [[1, -1]]}, "votes must be"),
        ({"scores": [[0.0, 1.0]], "attributes": {"organ": ["leaf", "bark"]}}, "organ has 2 entries"),
        ({"scores": [[0.0, 1.0]], "attributes": {"organ": [["leaf"]]}}, "one entry per row"),
        ({"scores": [[0.0, 2.0]], "link": "identity"}, r"\[0, 1\]"),
    ],
)
def test_bad_input_is_refused_with_a_reason(arguments, message):
    with pytest.raises(ValueError, match=message):
        wb.LogitTable(**arguments)


def test_probabilities_passed_as_scores_are_noticed():
    with pytest.warns(UserWarning, match="from_probabilities"):
        wb.LogitTable([[0.7, 0.3], [0.2, 0.8]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wb.LogitTable([[0.7, 0.3], [0.2, 0.9]])


def test_probabilities_are_checked_row_by_row():
    with pytest.raises(ValueError, match=r"row 1 of the probabilities sums to 0\.9"):
        wb.LogitTable.from_probabilities([[0.5, 0.5], [0.5, 0.4]])
    many = wb.LogitTable.from_probabilities([[0.9, 0.8]], labels=[[True, True]])
    assert many.link == "identity"


def test_a_table_cannot_be_changed_through_its_arrays():
    mine = scores()
    table = wb.LogitTable(mine)
    with pytest.raises(ValueError, match="read-only"):
        table.scores[0, 0] = 1
    mine[0, 0] = 1  # the caller's array stays writable


def full_table(dtype: str = "float16") -> wb.LogitTable:
    n, n_classes = 30, 4
    posterior = np.tile(softmax(scores(3, n_classes, "float64")), (10, 1))
    return wb.LogitTable(
        scores(n, n_classes, dtype),
        labels=np.arange(n) % n_classes,
        link="quasibinary",
        link_constant=0.25,
        class_names=["oak", "elm", "fir", "ébène"],
        groups=["leafy", "leafy", "needles", "leafy"],
        class_counts=[5, 50, 500, 1],
        posterior=posterior,
        votes=np.arange(n * n_classes).reshape(n, n_classes),
        attributes={"organ / part": ["leaf", "bark", "fruit"] * 10, "year": np.arange(n)},
        features=scores(n, 7),
        ids=[f"photo {i}" for i in range(n)],
        images=np.zeros((n, 2, 2, 3), np.uint8),
        chose_model=True,
        note="made here",
    )


def assert_same(one: wb.LogitTable, other: wb.LogitTable) -> None:
    for name in ("scores", *wb.LogitTable.PER_ROW, "class_counts"):
        a, b = getattr(one, name), getattr(other, name)
        assert (a is None) == (b is None), name
        assert a is None or (np.array_equal(a, b) and a.dtype == b.dtype), name
    for name in ("link", "link_constant", "class_names", "groups", "chose_model", "note", "key"):
        assert getattr(one, name) == getattr(other, name), name
    assert (one.attributes or {}).keys() == (other.attributes or {}).keys()
    for name, values in (one.attributes or {}).items():
        assert np.array_equal(values, other.attributes[name])


def test_a_table_comes_back_from_disk_whole(tmp_path):
    table = full_table()
    table.save(tmp_path / "table")
    assert_same(table, wb.LogitTable.load(tmp_path / "table"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]


def test_labels_are_small_on_disk_and_come_back_as_they_were(tmp_path):
    one = wb.LogitTable(scores(50, 300), np.arange(50) * 6)
    many = wb.LogitTable(scores(50, 11), scores(50, 11) > 0.5, link="sigmoid")
    for name, table, dtype, shape in (("one", one, "uint16", (50,)), ("many", many, "uint8", (50, 2))):
        table.save(tmp_path / name)
        written = np.load(tmp_path / name / "labels.npy")
        assert (written.dtype, written.shape) == (dtype, shape)
        assert_same(table, wb.LogitTable.load(tmp_path / name))
    np.save(tmp_path / "many" / "labels.npy", many.labels)  # as the first tables were written
    assert_same(many, wb.LogitTable.load(tmp_path / "many"))


def test_large_scores_stay_on_disk_and_equal_posterior_rows_are_stored_once(tmp_path, monkeypatch):
    monkeypatch.setattr(directories, "MAPPED", 2**20)
    posterior = np.tile(softmax(scores(2, 600, "float64")), (1000, 1))
    table = wb.LogitTable(scores(2000, 600, "float16"), posterior=posterior)
    table.save(tmp_path / "table")
    loaded = wb.LogitTable.load(tmp_path / "table")
    assert isinstance(loaded.scores, np.memmap)
    assert np.load(tmp_path / "table" / "posterior.npy").shape == (2, 600)
    assert np.array_equal(loaded.posterior, posterior)
    assert np.array_equal(loaded.probabilities(), table.probabilities())


def test_saving_again_replaces_the_table_and_never_another_folder(tmp_path):
    first, second = wb.LogitTable(scores()), wb.LogitTable(scores())
    first.save(tmp_path / "table")
    second.save(tmp_path / "table")
    assert wb.LogitTable.load(tmp_path / "table").key == second.key != first.key
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    with pytest.raises(FileExistsError, match="not part of a table"):
        first.save(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_a_failed_save_leaves_nothing_behind(tmp_path, monkeypatch):
    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "save", full_disk)
    with pytest.raises(OSError, match=r"the disk that holds .* is full: table needs \d+ bytes"):
        wb.LogitTable(scores()).save(tmp_path / "table")
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_or_foreign_directory_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="not a table"):
        wb.LogitTable.load(tmp_path)
    table = wb.LogitTable(scores(400, 30))
    table.save(tmp_path / "table")
    whole = (tmp_path / "table" / "scores.npy").read_bytes()
    (tmp_path / "table" / "scores.npy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="truncated"):
        wb.LogitTable.load(tmp_path / "table")
    (tmp_path / "table" / "table.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        wb.LogitTable.load(tmp_path / "table")
    (tmp_path / "table" / "table.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(ValueError, match="another version"):
        wb.LogitTable.load(tmp_path / "table")


def test_rows_keep_everything_about_a_row_together():
    table = full_table()
    some = table.rows([4, 1])
    assert some.n == 2
    assert np.array_equal(some.scores, table.scores[[4, 1]])
    assert some.attributes["organ / part"].tolist() == ["bark", "bark"]
    assert some.ids.tolist() == ["photo 4", "photo 1"]
    assert (some.link_constant, some.class_names, some.chose_model) == (0.25, table.class_names, True)
    assert np.array_equal(table.rows(table.labels == 2).labels, np.full(7, 2))
    with pytest.raises(ValueError, match="no row"):
        table.rows([])


@settings(max_examples=30, deadline=None)
@given(n=st.integers(2, 60), fraction=st.floats(0.1, 0.9), seed=st.integers(0, 5))
def test_a_split_deals_every_row_to_exactly_one_side(n, fraction, seed):
    table = wb.LogitTable(np.zeros((n, 2)), ids=np.arange(n))
    if not 0 < round(fraction * n) < n:
        with pytest.raises(ValueError, match="leaves one side empty"):
            table.split(fraction, seed)
        return
    first, second = table.split(fraction, seed)
    assert first.n == round(fraction * n)
    assert sorted([*first.ids, *second.ids]) == list(range(n))
    assert np.array_equal(first.ids, table.split(fraction, seed)[0].ids)


def test_the_key_is_that_of_scores_labels_and_link():
    values, labels = scores(), np.arange(20) % 6
    key = wb.LogitTable(values, labels).key
    assert key == wb.LogitTable(values.copy(), labels, class_names=list("abcdef")).key
    assert key != wb.LogitTable(values, labels, link="sigmoid").key
    assert key != wb.LogitTable(values, np.roll(labels, 1)).key
    assert key != wb.LogitTable(values.astype("float64"), labels).key
    assert key != wb.LogitTable(values + 1, labels).key


def test_another_link_is_another_reading_of_the_same_scores():
    table = full_table()
    read = table.with_link("sigmoid")
    assert read.link_constant is None
    assert np.array_equal(read.scores, table.scores)
    assert read.attributes is not None


def test_a_table_says_what_it_is():
    assert repr(wb.LogitTable(scores(), labels=np.zeros(20, int))) == (
        "LogitTable(20 rows × 6 classes, softmax, float32; labels)"
    )


def test_a_posterior_holds_probabilities():
    scores, labels = np.zeros((2, 4)), [0, 1]
    with pytest.raises(ValueError, match=r"row 0 of the posterior sums to 2; with one label a row give 1"):
        wb.LogitTable(scores, labels, posterior=np.full((2, 4), 0.5))
    with pytest.raises(ValueError, match="posterior goes up to 3; it holds probabilities"):
        wb.LogitTable(scores, posterior=np.full((2, 4), 3.0))
    many = wb.LogitTable(scores, np.ones((2, 4), bool), link="sigmoid", posterior=np.full((2, 4), 0.5))
    assert many.posterior.sum() == 4


@pytest.mark.parametrize("constant", [None, np.nan, np.inf, "1"])
def test_the_constant_of_quasibinary_scores_is_a_finite_number(constant):
    with pytest.raises(ValueError, match=r"link_constant = .*; the quasibinary link needs log C"):
        wb.LogitTable(np.zeros((2, 3)), link="quasibinary", link_constant=constant)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_quasibinary_scores_beyond_all_bounds_tie_and_stay_finite(dtype):
    largest = min(float(np.finfo(dtype).max), 1e5) / 2
    table = wb.LogitTable(np.array([[largest, largest / 2], [3, 2]], dtype), link="quasibinary", link_constant=0.0)
    assert np.isfinite(table.probabilities()).all()
    sets = wb.AverageK(1).fit(table).sets(table)
    assert sets.sizes.tolist() == [2, 0]


def test_masked_arrays_are_refused_and_matrices_are_arrays():
    with pytest.raises(ValueError, match="masked arrays are not supported"):
        wb.LogitTable(np.ma.masked_equal(np.eye(3), 1.0))
    with pytest.warns(PendingDeprecationWarning):  # of NumPy
        matrix = np.asmatrix(9 * np.eye(3))
    assert type(wb.LogitTable(matrix).scores) is np.ndarray


@pytest.mark.parametrize("fraction", [0, 1, np.nan, "a", None])
def test_a_table_is_split_at_a_number_between_0_and_1(fraction):
    with pytest.raises(ValueError, match="give a number between 0 and 1"):
        wb.LogitTable(np.zeros((4, 3))).split(fraction)


def test_what_somebody_put_beside_a_table_is_never_deleted(tmp_path):
    wb.LogitTable(-np.eye(3)).save(tmp_path / "table")
    (tmp_path / "table" / "notes.txt").write_text("mine")
    with pytest.raises(FileExistsError, match=r"holds notes.txt, which is not part of a table"):
        wb.LogitTable(np.eye(3) - 2).save(tmp_path / "table")
    assert (tmp_path / "table" / "notes.txt").read_text() == "mine"
    np.testing.assert_array_equal(wb.LogitTable.load(tmp_path / "table").scores, -np.eye(3))


def test_classes_of_one_name_are_told_apart_by_their_number():
    table = wb.LogitTable(-np.eye(3), [0, 1, 2], class_names=["crane", "maillot", "crane"])
    assert table.class_names == ("crane", "maillot", "crane")
    assert table.named_classes() == ("crane (0)", "maillot", "crane (2)")
    assert len(wb.metrics.accuracy_by(wb.TopK(1).fit(table)(table), "label")) == 3


@pytest.mark.parametrize("constant", [np.float32(1), np.float64(1), 1])
def test_the_constant_of_quasibinary_scores_is_kept_whatever_kind_of_number_it_is(constant, tmp_path):
    table = wb.LogitTable(-np.eye(3), link="quasibinary", link_constant=constant)
    assert table.key == wb.LogitTable(-np.eye(3), link="quasibinary", link_constant=1.0).key
    loaded = wb.LogitTable.load(table.save(tmp_path / "table"))
    assert (loaded.link_constant, loaded.rows(slice(None)).key) == (1.0, table.key)


@pytest.mark.parametrize("index", [slice(2), [0, 1], np.array([True, True, False])])
def test_some_rows_of_a_table_cannot_be_changed_either(index):
    table = wb.LogitTable(-np.eye(3), [0, 1, 2], attributes={"place": ["a", "b", "c"]}).rows(index)
    for array in (table.scores, table.labels, table.attributes["place"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]


@pytest.mark.parametrize(
    ("given", "names", "expected"),
    [
        (["oak", "elm", "fir"], ["fir", "oak", "elm"], [1, 2, 0]),
        (np.array(["oak", "elm", "fir"]), np.array(["fir", "oak", "elm"]), [1, 2, 0]),
        (np.array([b"oak", b"elm", b"fir"]), np.array([b"fir", b"oak", b"elm"]), [1, 2, 0]),
        (["oak", "elm", "fir"], None, [2, 0, 1]),  # in sorted order
        (["oak", None, ""], ["fir", "oak", "elm"], [1, -1, -1]),
        (["NA", float("nan"), "None"], ["NA", "None", "true"], [0, -1, 1]),
        ([1, -1, None], None, [1, -1, -1]),
        (np.array([1.0, np.nan, 2.0]), None, [1, -1, 2]),
        (pd.Series([1, None, 2], dtype="Int64"), None, [1, -1, 2]),
        (pd.Series(["oak", None, "elm"]), ["fir", "oak", "elm"], [1, -1, 2]),
        (pd.Series(["oak", "elm", "fir"], dtype="category"), ["fir", "oak", "elm"], [1, 2, 0]),
        (pd.DataFrame({"label": [2, 1, 0]}), None, [2, 1, 0]),
        (np.array([103, 101, 102]), [101, 102, 103], [2, 0, 1]),
        (np.array([1, 2, 2]), ["1", "2", "3"], [1, 2, 2]),  # whole numbers are indices
        (torch.tensor([2, 1, 0]), None, [2, 1, 0]),
    ],
)
def test_labels_are_read_as_people_have_them(given, names, expected):
    table = wb.LogitTable(-np.eye(3), given, class_names=names)
    assert table.labels.tolist() == expected


@pytest.mark.parametrize(
    "given",
    [
        [[1, 0, 1], [0, 0, 0], [0, 1, 0]],
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.uint8),
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.float32),
        [["oak", "fir"], [], ["elm"]],
        [{"oak", "fir"}, None, ("elm",)],
        [[0, 2], [], [1]],
        np.array([np.array([0, 2]), np.array([], int), np.array([1])], dtype=object),
        pd.Series([["oak", "fir"], [], ["elm"]]),
        pd.DataFrame({"fir": [1, 0, 0], "oak": [1, 0, 0], "elm": [False, False, True]}),
        pd.DataFrame([[1, 0, 1], [0, 0, 0], [0, 1, 0]]),
    ],
    ids=["lists of marks", "uint8", "float32", "names", "sets", "indices", "arrays", "series", "named", "unnamed"],
)
def test_many_labels_are_marks_or_lists(given):
    table = wb.LogitTable(-np.eye(3), given, link="sigmoid", class_names=["oak", "elm", "fir"])
    assert table.labels.tolist() == [[True, False, True], [False] * 3, [False, True, False]]


def test_labels_that_number_the_classes_themselves_say_so_in_the_note():
    table = wb.LogitTable(-np.eye(2), ["oak", "elm"])
    assert (table.class_names, table.labels.tolist()) == (("elm", "oak"), [1, 0])
    assert table.note == "classes named by the labels in sorted order"


@pytest.mark.parametrize(
    ("given", "names", "message"),
    [
        (["oak", "elm", "oak"], None, "labels name 2 of 3 classes .*add class_names"),
        (["0", "1", "2"], None, "names of classes, or their numbers"),
        (["oak", "ash", "elm"], ["oak", "elm", "fir"], "labels ash are not among the classes"),
        (["oak", "fir", "fir"], ["oak", "oak", "fir"], "labels name oak, and several classes are called so"),
        ([["oak"], "elm", ["fir"]], ["oak", "elm", "fir"], "some rows of the labels are lists"),
        (np.array([0.5, 1, 2]), None, "labels hold 0.5"),
        (np.array([True, False, True]), None, "labels are bool"),
        (pd.DataFrame({"oak": [1, 0, 0], "ash": [0, 1, 0], "fir": [0, 0, 1]}), ["oak", "elm", "fir"], "same names"),
        ([0, 1, 2], "abc", "class_names = 'abc'; give one name per class"),
    ],
)
def test_labels_that_cannot_be_told_apart_are_refused(given, names, message):
    with pytest.raises(ValueError, match=message):
        wb.LogitTable(-np.eye(3), given, class_names=names)


def test_scores_may_be_a_frame_whose_columns_are_the_classes():
    frame = pd.DataFrame(-np.eye(3), columns=["oak", "elm", "fir"], index=[7, 3, 5])
    table = wb.LogitTable(frame, pd.Series(["elm", "oak", "fir"]))
    assert (table.class_names, table.labels.tolist()) == (("oak", "elm", "fir"), [1, 0, 2])
    assert wb.LogitTable(pd.DataFrame(-np.eye(3))).class_names is None
    assert wb.LogitTable(frame.astype("Float64")).scores.dtype == np.float64
    assert wb.LogitTable(frame, class_names=["a", "b", "c"]).class_names == ("a", "b", "c")
    numbered = wb.LogitTable(pd.DataFrame(-np.eye(3), columns=[1, 2, 3]), [1, 2, 2])
    assert (numbered.labels.tolist(), numbered.note) == ([0, 1, 1], "labels are names of classes, not positions from 0")
    assert (numbered.with_link("sigmoid").labels.tolist(), numbered.with_link("sigmoid").note) == (
        [0, 1, 1],
        numbered.note,
    )
    with pytest.raises(ValueError, match="class_names are elm, oak, fir and the columns of the scores oak, elm, fir"):
        wb.LogitTable(frame, class_names=["elm", "oak", "fir"])
    with pytest.raises(ValueError, match="column label of the frame holds no numbers"):
        wb.LogitTable(frame.assign(label="oak"))
