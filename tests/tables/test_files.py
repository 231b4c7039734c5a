"""Tables that people bring: what is understood from each format, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

import workbench as wb
from workbench.tables.links import softmax

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(12, 3)).astype("float32")
LABELS = np.arange(12) % 3


def test_npz_is_read_by_the_names_of_its_arrays(tmp_path):
    np.savez(
        tmp_path / "mine.npz",
        logits=SCORES,
        y=LABELS.astype("uint8"),
        classes=["oak", "elm", "fir"],
        organ=["leaf", "bark"] * 6,
        remark=["unrelated"],
    )
    table = wb.import_table(tmp_path / "mine.npz")
    assert np.array_equal(table.scores, SCORES)
    assert np.array_equal(table.labels, LABELS)
    assert table.class_names == ("oak", "elm", "fir")
    assert table.attributes["organ"].tolist() == ["leaf", "bark"] * 6
    assert table.note == (
        "mine.npz: 12 rows × 3 classes; logits (float32) read as scores, softmax; labels from y; "
        "class_names from classes; row attributes organ; ignored: remark"
    )


def test_npy_is_the_scores_alone_and_stays_on_disk(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES.astype("float16"))
    table = wb.import_table(tmp_path / "scores.npy")
    assert table.labels is None
    assert "no labels" in table.note
    assert isinstance(table.scores.base, np.memmap) or isinstance(table.scores, np.memmap)


def test_probabilities_of_scikit_learn_are_recognised(tmp_path):
    np.savez(tmp_path / "mine.npz", probabilities=softmax(SCORES.astype("float64")), labels=LABELS)
    table = wb.import_table(tmp_path / "mine.npz")
    assert table.link == "identity"
    assert "read as probabilities" in table.note
    assert np.allclose(table.probabilities(), softmax(SCORES.astype("float64")))


def test_log_probabilities_are_scores_whose_softmax_gives_them_back(tmp_path, shared_data):
    news = shared_data("news20_cv_probs")
    np.savez(tmp_path / "news.npz", logp=news["logp"], y=news["y"])
    table = wb.import_table(tmp_path / "news.npz")
    assert table.link == "softmax"
    assert np.allclose(table.probabilities(), np.exp(news["logp"].astype("float32")), atol=2e-3)


def test_csv_has_a_column_per_class_and_labels_by_name(tmp_path):
    frame = pd.DataFrame(SCORES, columns=["oak", "elm", "fir"])
    frame["label"] = [["oak", "elm", "fir"][label] for label in LABELS]
    frame["organ"] = ["leaf", "bark"] * 6
    frame["author"] = np.arange(12)
    frame["id"] = [f"p{i}" for i in range(12)]
    frame.to_csv(tmp_path / "mine.csv", index=False)
    table = wb.import_table(tmp_path / "mine.csv")
    assert np.allclose(table.scores, SCORES)
    assert np.array_equal(table.labels, LABELS)
    assert table.class_names == ("oak", "elm", "fir")
    assert set(table.attributes) == {"organ", "author"}
    assert table.ids.tolist()[:2] == ["p0", "p1"]


def test_csv_without_a_header_is_all_scores(tmp_path):
    pd.DataFrame(SCORES).to_csv(tmp_path / "mine.csv", index=False, header=False)
    assert wb.import_table(tmp_path / "mine.csv").scores.shape == (12, 3)


def test_parquet_reads_like_csv(tmp_path):
    frame = pd.DataFrame(softmax(SCORES), columns=["a", "b", "c"]).assign(y=LABELS, organ="leaf")
    frame.to_parquet(tmp_path / "mine.parquet")
    table = wb.import_table(tmp_path / "mine.parquet")
    assert table.link == "identity"
    assert np.array_equal(table.labels, LABELS)
    assert table.attributes["organ"].tolist() == ["leaf"] * 12


def test_safetensors_may_be_bfloat16(tmp_path):
    values = torch.tensor(SCORES).bfloat16()
    save_file({"logits": values, "labels": torch.tensor(LABELS)}, tmp_path / "mine.safetensors")
    table = wb.import_table(tmp_path / "mine.safetensors")
    assert np.array_equal(table.scores, values.float().numpy())
    assert np.array_equal(table.labels, LABELS)


def test_many_labels_call_for_the_sigmoid(tmp_path):
    marks = SCORES > 0
    np.savez(tmp_path / "mine.npz", scores=SCORES, labels=marks)
    table = wb.import_table(tmp_path / "mine.npz")
    assert table.many_labels
    assert table.link == "sigmoid"
    np.savez(tmp_path / "p.npz", probabilities=1 / (1 + np.exp(-SCORES)), labels=marks)
    assert wb.import_table(tmp_path / "p.npz").link == "identity"


def test_a_saved_table_is_read_from_its_directory(tmp_path):
    table = wb.LogitTable(SCORES, LABELS)
    table.save(tmp_path / "table")
    assert wb.import_table(tmp_path / "table").key == table.key


def test_a_pickle_is_never_opened(tmp_path):
    (tmp_path / "mine.pkl").write_bytes(pickle.dumps({"scores": SCORES}))
    with pytest.raises(ValueError, match="never opened"):
        wb.import_table(tmp_path / "mine.pkl")
    np.savez(tmp_path / "mine.npz", scores=SCORES, extra=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="never loaded"):
        wb.import_table(tmp_path / "mine.npz")
    np.save(tmp_path / "mine.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="never loaded"):
        wb.import_table(tmp_path / "mine.npy")


@pytest.mark.parametrize("suffix", [".npz", ".npy", ".parquet", ".safetensors"])
def test_a_truncated_or_foreign_file_is_refused_by_name(tmp_path, suffix):
    path = tmp_path / f"mine{suffix}"
    path.write_text("this is a poem, not a table")
    with pytest.raises(ValueError, match=rf"mine\{suffix} could not be read"):
        wb.import_table(path)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="could not be read"):
        wb.import_table(path)


def test_a_file_cut_short_is_refused(tmp_path):
    np.savez(tmp_path / "mine.npz", scores=rng.normal(size=(500, 30)))
    whole = (tmp_path / "mine.npz").read_bytes()
    (tmp_path / "mine.npz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged, incomplete"):
        wb.import_table(tmp_path / "mine.npz")
    np.save(tmp_path / "mine.npy", rng.normal(size=(500, 30)))
    whole = (tmp_path / "mine.npy").read_bytes()
    (tmp_path / "mine.npy").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged, incomplete"):
        wb.import_table(tmp_path / "mine.npy")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": SCORES, "b": SCORES}, "which array holds the scores"),
        ({"logits": np.zeros((2, 12, 3))}, "one row per example"),
        ({"scores": SCORES, "labels": LABELS + 1}, "labels go from 1 to 3"),
        ({"scores": SCORES, "labels": ["oak"] * 12}, "add class_names"),
        ({"scores": SCORES, "labels": ["ash"] * 12, "class_names": ["oak", "elm", "fir"]}, "ash are not among"),
        ({"scores": np.full((2, 2), np.nan)}, "finite"),
        ({"scores": np.full((2, 2), "a")}, "scores are <U1; give floating-point numbers"),
        ({"scores": SCORES, "labels": np.full(12, 0.5)}, "labels hold 0.5"),
        ({"scores": SCORES, "labels": 1, "ids": 7}, "labels are int64 of shape"),
    ],
)
def test_contents_that_make_no_table_are_refused_with_a_reason(tmp_path, arrays, message):
    np.savez(tmp_path / "mine.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        wb.import_table(tmp_path / "mine.npz")


def test_a_csv_of_words_is_refused(tmp_path):
    (tmp_path / "mine.csv").write_text("a,b\nx,y\n")
    with pytest.raises(ValueError, match="one numeric column per class"):
        wb.import_table(tmp_path / "mine.csv")


def test_arrays_are_no_path():
    with pytest.raises(ValueError, match=r"path of a file, not ndarray; LogitTable\(scores, labels\)"):
        wb.import_table(SCORES)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz"):
        wb.import_table(tmp_path / "nowhere.npz")


def test_csv_whose_columns_are_only_numbered_has_a_header(tmp_path):
    pd.DataFrame(SCORES).to_csv(tmp_path / "mine.csv", index=False)
    table = wb.import_table(tmp_path / "mine.csv")
    assert table.scores.shape == (12, 3)
    assert table.class_names == ("0", "1", "2")


def test_csv_without_a_header_keeps_a_first_line_that_repeats_a_number(tmp_path):
    (tmp_path / "mine.csv").write_text("0.5,0.5\n0.1,0.9\n0.2,0.8\n")
    assert wb.import_table(tmp_path / "mine.csv").scores.tolist() == [[0.5, 0.5], [0.1, 0.9], [0.2, 0.8]]


@pytest.mark.parametrize(
    ("lines", "classes", "attributes"),
    [
        (["a,b,c,label", "2.5,1,-0.5,a", "0.5,3,1.5,a"], ("a", "b", "c"), None),  # among floating-point columns
        (["a,b,c,label", "2.5,0.5,-3,c", "0.5,1.5,2,a"], ("a", "b", "c"), None),  # named by a label
        (["a,b,age,label", "2.5,0.5,31,b", "0.5,1.5,42,a"], ("a", "b"), {"age"}),
    ],
    ids=["among", "named", "attribute"],
)
def test_whole_numbers_in_a_csv_are_a_class_among_classes_or_by_a_label(tmp_path, lines, classes, attributes):
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    table = wb.import_table(tmp_path / "mine.csv")
    assert table.class_names == classes
    assert (table.attributes and set(table.attributes)) == attributes


def test_labels_that_are_all_class_names_are_names_also_when_they_could_be_indices(tmp_path):
    for labels, expected in (([1, 2, 3], [0, 1, 2]), ([1, 2, 2], [0, 1, 1]), ([0, 1, 2], [0, 1, 2])):
        frame = pd.DataFrame(SCORES[:3], columns=["1", "2", "3"]).assign(label=labels)
        frame.to_csv(tmp_path / "mine.csv", index=False)
        assert wb.import_table(tmp_path / "mine.csv").labels.tolist() == expected


def test_names_may_be_bytes(tmp_path):
    np.savez(
        tmp_path / "mine.npz", scores=SCORES, labels=np.array([b"b"] * 12), class_names=np.array([b"a", b"b", b"c"])
    )
    table = wb.import_table(tmp_path / "mine.npz")
    assert table.class_names == ("a", "b", "c")
    assert table.labels.tolist() == [1] * 12


@pytest.mark.parametrize(("separator", "decimal"), [(";", "."), ("\t", "."), (";", ",")])
def test_columns_may_be_parted_by_semicolons_or_tabs(tmp_path, separator, decimal):
    frame = pd.DataFrame({"ant": [1.5, -2.5], "bee": [0.25, 3.5], "label": ["bee", "ant"]})
    frame.to_csv(tmp_path / "mine.csv", sep=separator, decimal=decimal, index=False)
    table = wb.import_table(tmp_path / "mine.csv")
    np.testing.assert_array_equal(table.scores, frame[["ant", "bee"]])
    assert (table.class_names, table.labels.tolist()) == (("ant", "bee"), [1, 0])


def test_a_parquet_column_of_lists_holds_the_scores(tmp_path):
    frame = pd.DataFrame({"logits": [[1.0, 2.0], [4.0, 3.0]], "label": [1, 0], "place": ["a", "b"]})
    frame.to_parquet(tmp_path / "mine.parquet")
    table = wb.import_table(tmp_path / "mine.parquet")
    assert (table.scores.tolist(), table.labels.tolist()) == ([[1, 2], [4, 3]], [1, 0])
    assert table.attributes["place"].tolist() == ["a", "b"]


@pytest.mark.parametrize("kind", [bool, np.int64, np.float32])
def test_one_mark_in_each_row_is_a_label_and_several_are_many(tmp_path, kind):
    scores = np.random.default_rng(0).normal(size=(4, 3))
    marks = np.eye(3)[[0, 2, 1, 2]]
    np.savez(tmp_path / "one.npz", scores=scores, labels=marks.astype(kind))
    table = wb.import_table(tmp_path / "one.npz")
    assert (table.labels.tolist(), table.link) == ([0, 2, 1, 2], "softmax")
    assert "labels from one mark a row of labels" in table.note
    marks[0] = 1
    np.savez(tmp_path / "many.npz", scores=scores, labels=marks.astype(bool))
    assert wb.import_table(tmp_path / "many.npz").many_labels
    np.savez(tmp_path / "column.npz", scores=scores, labels=np.array([[0], [2], [1], [2]]))
    assert wb.import_table(tmp_path / "column.npz").labels.tolist() == [0, 2, 1, 2]


def test_probabilities_that_were_rounded_are_divided_by_their_sum(tmp_path):
    p = np.random.default_rng(0).dirichlet(np.ones(7), 50).round(3)
    assert np.abs(p.sum(1) - 1).max() > 1e-3
    np.savez(tmp_path / "rounded.npz", probabilities=p)
    table = wb.import_table(tmp_path / "rounded.npz")
    np.testing.assert_allclose(table.probabilities(), p / p.sum(1, keepdims=True))
    assert "probabilities, divided by their sum" in table.note


def test_words_that_are_all_names_of_classes_are_labels_whatever_their_column_is_called(tmp_path):
    frame = pd.DataFrame({"ant": [1.5, -2.5], "bee": [0.25, 3.5], "Espèce": ["bee", "ant"], "place": ["a", "b"]})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    table = wb.import_table(tmp_path / "mine.csv")
    assert table.labels.tolist() == [1, 0]
    assert "labels from Espèce" in table.note
    frame.drop(columns="Espèce").to_csv(tmp_path / "none.csv", index=False)
    assert "no labels: if it holds some, call them label" in wb.import_table(tmp_path / "none.csv").note
