"""Files of any content: reading one takes a bounded amount of memory, and what is damaged is refused in words."""

from __future__ import annotations

import io
import json
import struct
import tracemalloc
import warnings
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

import workbench as wb
from workbench.tables.formats import FORMATS, base, csv_files, parquet_files

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(12, 3))
LABELS = np.arange(12) % 3
MB = 2**20


@pytest.fixture
def little_room(monkeypatch):
    """Ten times the file and one MB, so that no test takes much."""
    monkeypatch.setattr(base, "SPARE", MB)


def read(path) -> wb.LogitTable | str:
    """The table, or the words in which it was refused."""
    with warnings.catch_warnings(action="ignore"):
        try:
            return wb.import_table(path)
        except ValueError as error:
            return str(error)


def peak(path) -> tuple[wb.LogitTable | str, int]:
    """The table, or its refusal, and the most memory that Python and NumPy held at once while it was read."""
    read(path)  # what is imported on the way is not counted
    tracemalloc.start()
    try:
        return read(path), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_an_archive_that_unfolds_to_much_is_refused_before_it_is_unfolded(tmp_path, little_room):
    np.savez_compressed(tmp_path / "mine.npz", scores=np.zeros((2000, 400)), labels=np.zeros(2000, int))
    refusal, most = peak(tmp_path / "mine.npz")
    assert refusal.startswith("mine.npz: scores would take 6 MB of memory, out of a file of 0.0 MB; at most 10 times")
    assert most < MB


def test_whole_numbers_that_become_floating_point_are_counted(tmp_path, little_room):
    np.savez_compressed(tmp_path / "mine.npz", scores=np.zeros((2000, 400), np.int8))
    with pytest.raises(ValueError, match="scores as floating-point numbers would take 6 MB"):
        wb.import_table(tmp_path / "mine.npz")


def test_an_array_that_no_table_needs_is_not_read(tmp_path, little_room):
    np.savez_compressed(tmp_path / "mine.npz", scores=SCORES, labels=LABELS, junk=np.zeros((2000, 400)))
    table, most = peak(tmp_path / "mine.npz")
    assert table.note.endswith("ignored: junk")
    assert most < MB


@pytest.mark.parametrize("shape", ["columns", "lists"])
def test_parquet_that_unfolds_to_much_is_refused_by_its_metadata(tmp_path, little_room, shape):
    if shape == "columns":
        table = pa.table({f"c{j}": np.zeros(10_000) for j in range(20)})
    else:
        lists = pa.ListArray.from_arrays(np.arange(0, 200_001, 20, dtype=np.int32), pa.array(np.zeros(200_000)))
        table = pa.table({"logits": lists})
    pq.write_table(table, tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match=r"mine.parquet: column \w+ would take .* at most 10 times the file and 1 MB"):
        wb.import_table(tmp_path / "mine.parquet")


def test_a_word_that_stands_in_many_rows_is_held_once(tmp_path, little_room):
    frame = pd.DataFrame({"a": rng.normal(size=5000), "b": rng.normal(size=5000), "remark": "x" * 10_000})
    frame.to_parquet(tmp_path / "mine.parquet")
    table, most = peak(tmp_path / "mine.parquet")
    assert "ignored: remark (long texts)" in table.note
    assert most < 2 * MB


def test_a_long_text_in_one_cell_does_not_widen_all_others(tmp_path, little_room):
    remarks = ["short"] * 2000
    remarks[7] = "long " * 40_000
    frame = pd.DataFrame({"a": rng.normal(size=2000), "b": 0.5, "remark": remarks, "id": remarks})
    frame.to_csv(tmp_path / "mine.csv", index=False)
    table, most = peak(tmp_path / "mine.csv")  # 2 000 texts of that length are 1.6 GB
    assert (table.n, table.attributes, table.ids[-1]) == (2000, None, 1999)
    assert "ignored: id (long texts); ignored: remark (long texts)" in table.note
    assert most < 4 * MB


def test_a_class_name_of_many_letters_is_refused(tmp_path):
    for suffix in ("csv", "parquet"):
        frame = pd.DataFrame(SCORES, columns=["a", "b" * 300_000, "c"])
        frame.to_csv(tmp_path / "mine.csv", index=False)
        frame.to_parquet(tmp_path / "mine.parquet")
        with pytest.raises(
            ValueError, match=r"its first line does not name columns|a class is called by 300000 characters"
        ):
            wb.import_table(tmp_path / f"mine.{suffix}")


def test_a_table_of_very_many_columns_is_read_as_any_other(tmp_path, monkeypatch):
    frame = pd.DataFrame(SCORES, columns=["oak", "elm", "fir"]).round(3)
    frame = frame.assign(whole=7, place="wood", label=["oak", "elm", ""] * 4)
    frame.to_csv(tmp_path / "mine.csv", index=False, sep=";", decimal=",")
    expected = wb.import_table(tmp_path / "mine.csv")
    monkeypatch.setattr(csv_files, "WIDE", 3)
    table = wb.import_table(tmp_path / "mine.csv")
    assert np.array_equal(table.scores, expected.scores)
    assert np.array_equal(table.labels, expected.labels)
    assert (table.class_names, table.note) == (expected.class_names, expected.note)
    for spoilt, message in ((";n.d.;", r"column elm, row 3: 'n.d.' is not a number"), (";", "row 3 has 5 cells for 6")):
        lines = (tmp_path / "mine.csv").read_text().splitlines()
        cells = lines[3].split(";")
        lines[3] = cells[0] + spoilt + ";".join(cells[2:])
        (tmp_path / "spoilt.csv").write_text("\n".join(lines))
        with pytest.raises(ValueError, match=message):
            wb.import_table(tmp_path / "spoilt.csv")


def test_twenty_thousand_columns_are_looked_at_once_each(tmp_path):
    names = [f"c{j}" for j in range(20_001)]
    values = rng.normal(size=(2, 20_001)).round(2).astype(str)
    (tmp_path / "mine.csv").write_text(
        "\n".join(",".join(row) for row in ([*names, "label"], [*values[0], "c7"], [*values[1], "c1"]))
    )
    table = wb.import_table(tmp_path / "mine.csv")
    assert (table.n_classes, table.labels.tolist()) == (20_001, [7, 1])


def test_parquet_whose_parts_have_other_rows_than_it_says_is_refused():
    column = SimpleNamespace(path_in_schema="oak", num_values=5, physical_type="DOUBLE", total_uncompressed_size=40)
    group = SimpleNamespace(num_rows=5, num_columns=1, column=lambda _: column)
    metadata = SimpleNamespace(num_rows=5, num_row_groups=1, row_group=lambda _: group)
    assert parquet_files.decoded_bytes(metadata) == {"oak": 5 * 16}
    metadata.num_rows = 4
    with pytest.raises(ValueError, match="says it has 4 rows, and its parts have 5"):
        parquet_files.decoded_bytes(metadata)
    group.num_rows = 4
    with pytest.raises(ValueError, match="column oak has 5 values for 4 rows"):
        parquet_files.decoded_bytes(metadata)


def test_a_zip_that_holds_an_array_twice_is_refused(tmp_path):
    content = io.BytesIO()
    np.save(content, SCORES)
    with warnings.catch_warnings(action="ignore"), zipfile.ZipFile(tmp_path / "mine.npz", "w") as archive:
        archive.writestr("scores.npy", content.getvalue())
        archive.writestr("scores.npy", content.getvalue())
    with pytest.raises(ValueError, match="two arrays called scores"):
        wb.import_table(tmp_path / "mine.npz")


def whole_files(folder) -> dict[str, bytes]:
    """A good file of every format."""
    frame = pd.DataFrame(SCORES, columns=["oak", "elm", "fir"]).assign(label=["oak", "elm", "fir"] * 4, place="wood")
    frame.to_csv(folder / "a.csv", index=False)
    frame.to_csv(folder / "a.tsv", index=False, sep="\t")
    frame.to_csv(folder / "a.csv.gz", index=False)
    frame.to_csv(folder / "a.tsv.gz", index=False, sep="\t")
    frame.to_feather(folder / "a.feather")
    frame.to_feather(folder / "a.arrow")
    frame.to_json(folder / "a.jsonl", orient="records", lines=True)
    frame.to_json(folder / "a.ndjson", orient="records", lines=True)
    frame.to_json(folder / "a.json", orient="records")
    frame.to_parquet(folder / "a.parquet")
    np.savez_compressed(folder / "a.npz", scores=SCORES, labels=LABELS, class_names=["oak", "elm", "fir"])
    np.savez(folder / "a.npz.zip", softmax=SCORES, labels=LABELS)
    (folder / "a.npz.zip.npz").rename(folder / "a.zip")
    np.save(folder / "a.npy", SCORES)
    save_file({"scores": torch.tensor(SCORES), "labels": torch.tensor(LABELS)}, folder / "a.safetensors")
    return {path.name.removeprefix("a"): path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    files = whole_files(tmp_path_factory.mktemp("whole"))
    assert set(files) == {suffix for form in FORMATS for suffix in form.suffixes}
    return files


@pytest.mark.parametrize("suffix", [suffix for form in FORMATS for suffix in form.suffixes])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_damaged_file_is_a_table_or_refused_in_words(suffix, whole, tmp_path_factory, data):
    content = bytearray(whole[suffix])
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, max(0, len(content) - 1)))
        match data.draw(st.sampled_from(["cut", "change", "insert", "remove"])):
            case "cut":
                del content[start:]
            case "change":
                content[start : start + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "insert":
                content[start:start] = data.draw(st.binary(max_size=8))
            case "remove":
                del content[start : start + data.draw(st.integers(1, 40))]
    path = tmp_path_factory.getbasetemp() / f"damaged{suffix}"
    path.write_bytes(content)
    found = read(path)
    assert isinstance(found, wb.LogitTable) or found.startswith(path.name)


@settings(max_examples=150, deadline=None)
@given(text=st.text(alphabet='ab01.5-,;\t\n"e ', max_size=60))
@example(text="label\n")
@example(text="a,b\n")
@example(text="a,b\n,\n")
@example(text='"a\n')
@example(text=",\n1,2\n")
def test_any_text_is_a_table_or_refused_in_words(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_text(text, encoding="utf-8", newline="")
    found = read(path)
    assert isinstance(found, wb.LogitTable) or found.startswith("any.csv")


@pytest.mark.parametrize(
    "header",
    [
        [],
        {"scores": None},
        {"scores": {}},
        {"scores": {"dtype": "F64", "shape": [12, 3]}},
        {"scores": {"dtype": "F64", "shape": "ab", "data_offsets": [0, 288]}},
        {"scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": 7}},
        {"scores": {"dtype": "F64", "shape": [1.5, 24], "data_offsets": [0, 288]}},
        {"scores": {"dtype": "F64", "shape": [10**12, 3], "data_offsets": [0, 288]}},
        {"scores": {"dtype": "F64", "shape": [-12, -3], "data_offsets": [0, 288]}},
        {"scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [-8, 280]}},
        {"scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [288, 576]}},
        {"scores": {"dtype": "F8_E4M3", "shape": [288, 1], "data_offsets": [0, 288]}},
        {
            "scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [0, 288]},
            "__metadata__": {"class_names": "[1, 2]"},
        },
        {
            "scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [0, 288]},
            "__metadata__": {"class_names": "oak"},
        },
        {
            "scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [0, 288]},
            "__metadata__": {"link": "quasibinary"},
        },
        {"scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [0, 288]}, "__metadata__": {"link": ["softmax"]}},
        {"scores": {"dtype": "F64", "shape": [12, 3], "data_offsets": [0, 288]}, "__metadata__": 7},
    ],
)
def test_any_header_of_safetensors_is_refused_in_words(tmp_path, header):
    path = tmp_path / "any.safetensors"
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + SCORES.tobytes())
    with pytest.raises(ValueError, match=r"^any.safetensors"):
        wb.import_table(path)


@pytest.mark.parametrize("shape", ["(-12, 3)", "(12, 3, True)", "(10**9, 3)", "(12.0, 3)", "[12, 3]", "(((12, 3)"])
def test_any_header_of_npy_is_refused_in_words(tmp_path, shape):
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".encode().ljust(117) + b"\n"
    (tmp_path / "any.npy").write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + SCORES.tobytes())
    with pytest.raises(ValueError, match=r"^any.npy"):
        wb.import_table(tmp_path / "any.npy")
