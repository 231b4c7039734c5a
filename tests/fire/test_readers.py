"""Files that people bring: what is odd, damaged or made to harm is refused in words, and costs neither memory nor time."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from PIL import Image

import workbench as wb
from workbench.html_repr import table_card
from workbench.store.set_answers import SetAnswers
from workbench.tables import directories
from workbench.tables.formats.numpy_files import MOST_ARRAYS
from workbench.tables.shards.manifest import MANIFEST


@pytest.fixture
def saved(tmp_path):
    """A folder with a small table in it."""
    wb.LogitTable(np.random.default_rng(0).normal(size=(6, 3)), [0, 1, 2, 0, 1, 2]).save(tmp_path / "table")
    return tmp_path / "table"


def loads(folder):
    return wb.LogitTable.load(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_scores_on_disk_that_are_not_finite_are_refused(saved, value):
    scores = np.load(saved / "scores.npy")
    scores[4, 1] = value
    np.save(saved / "scores.npy", scores)
    with pytest.raises(ValueError, match=r"scores\[4, 1\] is .*inf|nan; scores must be finite"):
        loads(saved)


@pytest.mark.parametrize("label", [-5, 3])
def test_a_label_on_disk_that_is_no_class_is_refused(saved, label):
    np.save(saved / "labels.npy", np.array([0, 1, 2, 0, 1, label], np.int8))
    with pytest.raises(ValueError, match="labels go from"):
        loads(saved)


@pytest.mark.parametrize("place", range(0, 128, 5))
def test_a_damaged_header_of_an_array_is_a_value_error(saved, place):
    content = bytearray((saved / "scores.npy").read_bytes())
    content[place] ^= 0x15
    (saved / "scores.npy").write_bytes(content)
    with pytest.raises(ValueError, match=r"scores"):
        loads(saved)


@pytest.mark.parametrize("name", ["table.json", "scores.npy"])
@pytest.mark.parametrize("kind", ["pipe", "/dev/zero", "folder"])
def test_what_is_no_regular_file_is_not_read(saved, name, kind):
    (saved / name).unlink()
    if kind == "pipe":
        os.mkfifo(saved / name)
    elif kind == "folder":
        (saved / name).mkdir()
    else:
        (saved / name).symlink_to(kind)
    with pytest.raises((ValueError, OSError), match=r"not a regular file|directory|missing"):
        loads(saved)


@pytest.mark.parametrize("damage", ["pipe", "another compression", "another version of zip", "a header"])
def test_an_index_that_is_damaged_is_built_again(saved, damage):
    expected, file = wb.SetIndex.open(saved).threshold(2), saved / "set_index.npz"
    content = bytearray(file.read_bytes())
    member = content.index(b"PK\x01\x02")  # what the archive says of its first member
    if damage == "pipe":
        file.unlink()
        os.mkfifo(file)
    else:
        content[{"another compression": member + 10, "another version of zip": member + 6}.get(damage, 70)] ^= 0x80
        file.write_bytes(content)
    assert wb.SetIndex.open(saved).threshold(2) == expected


def test_a_saved_table_that_names_an_address_asks_it_only_when_a_person_allows_it(saved, monkeypatch):
    facts = json.loads((saved / "table.json").read_text())
    shard = {"rows": 6, "files": [{"file": "a.npy", "bytes": 1, "sha256": "0"}], "arrays": {"scores": ["a.npy", None]}}
    facts["shards"] = {
        "url": "memory://nowhere/x",
        "classes": 3,
        "dtype": "float64",
        "shards": [shard],
        "range": [0, 6, 1],
    }
    facts["arrays"] = ["labels"]
    (saved / "table.json").write_text(json.dumps(facts))
    with pytest.raises(ValueError, match=r"no reason to ask it. If you trust it, say so: --allow memory://nowhere/"):
        loads(saved)
    assert wb.LogitTable.load(saved, allow=["memory://nowhere/"]).n == 6
    monkeypatch.setenv("WORKBENCH_ALLOW", "memory://nowhere/")
    assert loads(saved).n == 6


@pytest.mark.parametrize("field", ["class_names", "groups", "note"])
def test_names_in_a_manifest_that_are_no_words_are_refused_before_a_card_shows_them(tmp_path, field):
    table = wb.LogitTable(np.random.default_rng(0).normal(size=(6, 3)), [0, 1, 2, 0, 1, 2])
    table.save_shards(tmp_path / "shards")
    manifest = tmp_path / "shards" / MANIFEST
    said = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(said | {field: [["<b>"], 1, None] if field != "note" else {"a": 1}}))
    with pytest.raises(ValueError, match="cannot be what it says"):
        loads(tmp_path / "shards")
    manifest.write_text(json.dumps(said | {"class_names": ["<script>", "\u202e", "![x](http://x)"]}))
    assert "<script>" not in table_card(loads(tmp_path / "shards"))


def test_small_arrays_are_read_and_not_mapped_so_that_cutting_a_file_short_ends_no_process(saved):
    table = loads(saved)
    assert not isinstance(table.scores.base, np.memmap)
    os.truncate(saved / "scores.npy", 10)
    assert np.isfinite(table.probabilities()).all()
    assert directories.MAPPED >= 2**26


@pytest.mark.parametrize(
    "first", ["0.1,0.7,0.2,oak", "oak,0.5,0.5", "1.5,1.5,elm", "2,2,elm", "-1,3,elm", "1e-3,2,elm"]
)
def test_a_csv_without_names_of_columns_keeps_its_first_row_or_is_refused(tmp_path, first):
    cells = first.count(",") + 1
    body = "\n".join([first] + [",".join(["0.25"] * (cells - 1) + ["elm"])] * 5)
    (tmp_path / "mine.csv").write_text(body)
    with pytest.raises(ValueError, match="names of columns, or scores"):
        wb.import_table(tmp_path / "mine.csv")


def test_a_class_that_is_called_as_the_others_are_is_one_also_if_it_holds_whole_numbers(tmp_path):
    lines = ["p_oak,p_elm,p_fir,label", *["0.5,0.5,0,0", "0.25,0.75,0,1"] * 3]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    assert wb.import_table(tmp_path / "mine.csv").class_names == ("p_oak", "p_elm", "p_fir")


def test_only_zeros_beside_the_classes_may_be_a_class_and_are_refused_with_the_way_to_say_it(tmp_path):
    lines = ["oak,elm,fir,label", *["0.5,0.5,0,0", "0.25,0.75,0,1"] * 3]
    (tmp_path / "mine.csv").write_text("\n".join(lines))
    with pytest.raises(ValueError, match="column fir beside the classes holds only 0: is it one"):
        wb.import_table(tmp_path / "mine.csv")
    assert wb.import_table(tmp_path / "mine.csv", scores=["oak", "elm", "fir"]).n_classes == 3


@pytest.mark.parametrize("header", ["confidence,oak,elm,fir", "oak,elm,fir,confidence"])
def test_a_confidence_beside_probabilities_is_not_read_as_a_class(tmp_path, header):
    rows = [
        {"oak": 0.5, "elm": 0.4, "fir": 0.1, "confidence": 0.5},
        {"oak": 0.1, "elm": 0.2, "fir": 0.7, "confidence": 0.7},
    ]
    lines = [",".join(str(row[name]) for name in header.split(",")) for row in rows]
    (tmp_path / "mine.csv").write_text("\n".join([header, *lines]))
    with pytest.raises(ValueError, match="column confidence beside the classes: without it every row adds up to 1"):
        wb.import_table(tmp_path / "mine.csv")
    assert wb.import_table(tmp_path / "mine.csv", scores=["oak", "elm", "fir"]).n_classes == 3


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_an_npz_that_is_compressed_as_numpy_never_does_is_refused(tmp_path, method):
    content = io.BytesIO()
    np.save(content, np.zeros((4, 3)))
    with zipfile.ZipFile(tmp_path / "mine.npz", "w", method) as archive:
        archive.writestr("scores.npy", content.getvalue())
    with pytest.raises(ValueError, match="compressed as NumPy never does"):
        wb.import_table(tmp_path / "mine.npz")


def test_an_npz_of_thousands_of_arrays_is_refused_at_once(tmp_path):
    np.savez(tmp_path / "mine.npz", **{f"a{number}": np.zeros(1) for number in range(MOST_ARRAYS + 1)})
    with pytest.raises(ValueError, match=f"holds {MOST_ARRAYS + 1} arrays; at most {MOST_ARRAYS}"):
        wb.import_table(tmp_path / "mine.npz")


def test_two_columns_of_one_name_in_a_parquet_are_refused(tmp_path):
    table = pa.table([pa.array([0.1, 0.2]), pa.array([0.9, 0.8]), pa.array([0, 1])], names=["oak", "oak", "label"])
    pq.write_table(table, tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match="two columns called oak; rename one"):
        wb.import_table(tmp_path / "mine.parquet")


@pytest.mark.parametrize("compression", ["zstd", "lz4", "uncompressed"])
def test_a_feather_file_is_refused_before_it_is_unpacked_to_more_than_there_is_room_for(tmp_path, compression):
    n = 15_000_000 if compression != "uncompressed" else 1000
    table = pa.table({"oak": np.zeros(n), "elm": np.zeros(n)})
    feather.write_feather(table, tmp_path / "mine.feather", compression=compression, chunksize=n)
    most = pa.default_memory_pool().max_memory()
    if compression == "uncompressed":
        assert wb.import_table(tmp_path / "mine.feather").n == n
        return
    with pytest.raises(ValueError, match="part 1 would take 229 MB of memory"):
        wb.import_table(tmp_path / "mine.feather")
    assert pa.default_memory_pool().max_memory() < most + 2**24


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_a_small_file_of_a_million_columns_is_refused_before_they_are_made(tmp_path, ending):
    text = {"csv": f"{',' * 10**6}\n{',' * 10**6}", "json": json.dumps([dict.fromkeys(map(str, range(200_000)), 0)])}
    (tmp_path / f"mine.{ending}").write_text(text[ending])
    with pytest.raises(ValueError, match="columns would take"):
        wb.import_table(tmp_path / f"mine.{ending}")


def idx(shape, n_bytes):
    return bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(n_bytes)


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(("shape", "n_bytes"), [((2**20, 2**10, 4), 9), ((3, 2, 2), 200), ((3, 2, 2), 2)])
def test_an_idx_file_whose_head_lies_is_refused_before_memory_is_taken(tmp_path, shape, n_bytes, ending):
    content = idx(shape, n_bytes)
    packed = gzip.compress(content) if ending else content
    (tmp_path / f"train-images-idx3-ubyte{ending}").write_bytes(packed)
    with pytest.raises(ValueError, match=r"would take|its head says"):
        wb.load_dataset(tmp_path)


def png(width, height):
    """A file whose header tells of many pixels and which holds none."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.fixture
def folder(tmp_path):
    """A folder of images of two classes, six each."""
    for name, colour in (("oak", "green"), ("elm", "brown")):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(6):
            Image.new("RGB", (8, 8), colour).save(tmp_path / "images" / name / f"{number}.png")
    return tmp_path / "images"


def test_a_picture_of_a_hundred_million_pixels_is_refused_by_its_header(folder):
    (folder / "oak" / "0.png").write_bytes(png(12_000, 9_000))
    data = wb.load_dataset(folder, size=8, resize=8)
    with pytest.raises(ValueError, match="12000 × 9000 pixels; at most"):
        [split.inputs[:] for split in (data.train, data.val, data.test)]


def test_a_pipe_among_images_is_not_waited_for(folder):
    (folder / "oak" / "0.png").unlink()
    os.mkfifo(folder / "oak" / "0.png")
    with pytest.raises(ValueError, match="not a regular file"):
        wb.load_dataset(folder, size=8, resize=8).key


def test_a_list_of_images_with_more_classes_than_images_is_refused(folder):
    (folder / "mine_train.txt").write_text("oak/0.png 0\nelm/0.png 50000000\n")
    with pytest.raises(ValueError, match="class 50000000 and lists 2 images"):
        wb.load_dataset(folder / "mine_train.txt")


def coco(folder, **lists):
    whole = {
        "images": [{"id": number, "file_name": f"oak/{number}.png"} for number in range(6)],
        "annotations": [{"image_id": number, "category_id": number % 2} for number in range(6)],
        "categories": [{"id": number, "name": f"c{number}"} for number in range(2)],
    }
    file = folder / "instances_train.json"
    file.write_text(json.dumps(whole | lists))
    return file


@pytest.mark.parametrize("odd", ["1", None, 1.5, [1], {"a": 1}, True])
def test_categories_of_coco_with_ids_of_several_types_are_refused(folder, odd):
    file = coco(folder, categories=[{"id": 0, "name": "a"}, {"id": odd, "name": "b"}])
    with pytest.raises(ValueError, match="not as COCO writes it"):
        wb.load_dataset(file)


def test_categories_of_coco_that_would_fill_the_memory_are_refused(folder):
    many = [{"id": number, "name": "x"} for number in range(20_000)]
    pictures = [{"id": number, "file_name": "oak/0.png"} for number in range(40_000)]
    with pytest.raises(ValueError, match="labels would take"):
        wb.load_dataset(coco(folder, categories=many, images=pictures))


def test_a_folder_of_arrays_with_a_damaged_header_is_a_value_error(tmp_path):
    for name in ("softmax", "labels"):
        np.save(tmp_path / f"mine_test_{name}.npy", np.eye(2))
    file = tmp_path / "mine_test_labels.npy"
    file.write_bytes(file.read_bytes().replace(b"}", b"("))
    with pytest.raises(ValueError, match="the header of the array cannot be read"):
        wb.import_any(tmp_path)


@pytest.mark.parametrize("number", ["50000000", "9" * 40, "1e999"])
@pytest.mark.parametrize("place", ["label", "class"])
def test_sets_with_a_class_of_an_enormous_number_are_refused_before_memory_is_taken(tmp_path, number, place):
    label, listed = (number, "1") if place == "label" else ("1", number)
    (tmp_path / "sets.json").write_text(
        f'[{{"label": {label}, "classes": [0, {listed}]}}, {{"label": 0, "classes": [0]}}]'
    )
    with pytest.raises(ValueError, match=r"sets\.json: "):
        wb.import_any(tmp_path / "sets.json")


def test_deep_json_is_neither_votes_nor_an_answer_and_a_pipe_is_not_waited_for(tmp_path):
    (tmp_path / "deep.json").write_text("[" * 10_000)
    with pytest.raises(ValueError, match="could not be read"):
        wb.import_any(tmp_path / "deep.json")
    answers = SetAnswers(tmp_path / "answers.jsonl")
    answers.add("ann", 1, ["oak"])
    with answers.path.open("a") as file:
        file.write("[" * 10_000 + "\n")
    assert answers.frame()["row"].tolist() == [1]
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises((ValueError, OSError)):
        wb.import_any(tmp_path / "pipe.json")


def test_json_that_is_nested_too_deeply_is_refused_in_words(folder, saved):
    deep = "[" * 200_000
    file = coco(folder)
    file.write_text('{"images": ' + deep)
    with pytest.raises(ValueError, match=r"nested too deeply|not an object of JSON"):
        wb.load_dataset(file)
    (saved / "table.json").write_text(deep)
    with pytest.raises(ValueError, match=r"nested too deeply|is damaged"):
        loads(saved)


@pytest.mark.parametrize("value", [1, 0.5], ids=["no score", "a score"])
def test_rows_of_json_that_all_have_other_names_are_refused_at_once(tmp_path, value):
    lines = (json.dumps({f"name {number}": value, "scores": {"a": 0.5, "b": 0.5}}) for number in range(6000))
    (tmp_path / "mine.jsonl").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"would take|has no score of"):
        wb.import_table(tmp_path / "mine.jsonl")


def test_a_packed_csv_that_unpacks_to_more_than_there_is_room_for_is_refused(tmp_path):
    with gzip.open(tmp_path / "mine.csv.gz", "wb", compresslevel=1) as file:
        for _ in range(330):
            file.write(bytes(2**20))
    with pytest.raises(ValueError, match="the text in it would take"):
        wb.import_table(tmp_path / "mine.csv.gz")
