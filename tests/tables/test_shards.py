"""A table in shards is the table that its shards make together, whatever they are and wherever they lie."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

import workbench as wb
from workbench.cli.main import main
from workbench.files.atomic import FullDisk
from workbench.store import Store
from workbench.tables.shards import ShardedScores, adopt
from workbench.tables.shards.file_arrays import ENDINGS
from workbench.tables.shards.manifest import MANIFEST

FORK = multiprocessing.get_context("fork")
N, L = 230, 6


def made(n: int = N, dtype: str = "float32", seed: int = 0) -> wb.LogitTable:
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(n, L)).astype(dtype)
    return wb.LogitTable(
        scores,
        labels=np.where(rng.random(n) < 0.9, rng.integers(0, L, n), -1),
        class_names=[f"class {letter}" for letter in "abcdef"],
        class_counts=np.arange(L) * 30,
        attributes={"split": np.where(np.arange(n) % 3 == 0, "val", "test")},
        ids=np.array([f"row {i}" for i in range(n)]),
        note="made",
    )


def fresh(kind: str, tmp_path: Path) -> str:
    return f"memory://{tmp_path.name}/table" if kind == "memory" else str(tmp_path / "table")


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name != MANIFEST)


@pytest.mark.parametrize("kind", ["local", "memory"])
@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_sharded_table_says_what_its_rows_say_together(kind, ending, dtype, tmp_path):
    table, url = made(dtype=dtype), fresh(kind, tmp_path)
    table.save_shards(url, rows=70, ending=ending)
    opened = wb.LogitTable.load(url)
    assert isinstance(opened.scores, ShardedScores)
    assert opened.scores.nbytes == table.scores.nbytes
    np.testing.assert_array_equal(np.asarray(opened.scores), table.scores)
    np.testing.assert_array_equal(opened.probabilities(), table.probabilities())
    for name in ("labels", "ids", "class_counts"):
        np.testing.assert_array_equal(getattr(opened, name), getattr(table, name))
    np.testing.assert_array_equal(opened.attributes["split"], table.attributes["split"])
    for name in ("class_names", "link", "link_constant", "note", "dtype", "n", "n_classes"):
        assert getattr(opened, name) == getattr(table, name), name
    assert (
        opened.with_link("sigmoid").probabilities([3]).tolist()
        == table.with_link("sigmoid").probabilities([3]).tolist()
    )
    assert wb.import_table(url).key == opened.key


@pytest.fixture(scope="module")
def both(tmp_path_factory) -> tuple[wb.LogitTable, wb.LogitTable]:
    table, url = made(), str(tmp_path_factory.mktemp("both") / "table")
    table.save_shards(url, rows=40, ending=".npy")
    return table, wb.LogitTable.load(url)


ROWS = st.one_of(
    st.slices(N),
    st.lists(st.integers(-N, N - 1), max_size=12),
    st.lists(st.booleans(), min_size=N, max_size=N).map(np.array),
)


@settings(max_examples=60, deadline=None)
@given(first=ROWS, then=st.slices(N))
def test_rows_of_shards_are_chosen_as_numpy_chooses_them_and_read_when_asked(both, first, then):
    table, sharded = both
    first = np.array(first, int) if isinstance(first, list) else first
    chosen = sharded.scores.of_rows(first)
    wanted = np.asarray(table.scores)[first]
    assert isinstance(chosen, ShardedScores)
    np.testing.assert_array_equal(np.asarray(chosen), wanted)
    np.testing.assert_array_equal(chosen[then], wanted[then])
    again = pickle.loads(pickle.dumps(chosen.of_rows(then)))
    np.testing.assert_array_equal(np.asarray(again), wanted[then])


def test_single_scores_of_shards_are_picked_as_numpy_picks_them(both):
    table, sharded = both
    rows, classes = np.random.default_rng(1).integers(0, L, (2, 1500)) * np.array([[37], [1]])
    np.testing.assert_array_equal(sharded.scores[rows, classes], table.scores[rows, classes])
    np.testing.assert_array_equal(sharded.scores[:50, [2, 1]], table.scores[:50, [2, 1]])
    np.testing.assert_array_equal(sharded.scores[7], table.scores[7])
    assert sharded.scores[-1, 2] == table.scores[-1, 2]


def test_rules_metrics_and_recalibrators_read_shards_like_one_file(both):
    table, sharded = both
    (val, test), (sharded_val, sharded_test) = table.split(), sharded.split()
    assert isinstance(sharded_val.scores, ShardedScores)
    rules = [wb.TopK(2), wb.AverageK(2.0), wb.LAC(0.8), wb.APS(0.8), wb.ClassConditionalLAC(0.6)]
    with pytest.warns(UserWarning, match="no label"):
        ours = wb.report(test, rules, val=val, interval=0.9, resamples=20)
    with pytest.warns(UserWarning, match="no label"):
        theirs = wb.report(sharded_test, rules, val=sharded_val, interval=0.9, resamples=20)
    assert ours.to_csv() == theirs.to_csv()
    assert wb.TemperatureScaling().fit(sharded_val).temperature == wb.TemperatureScaling().fit(val).temperature
    one, two = wb.SetIndex(test), wb.SetIndex(sharded_test)
    np.testing.assert_array_equal(one.thresholds, two.thresholds)
    np.testing.assert_array_equal(one.label_ranks, two.label_ranks)


def test_the_key_of_a_sharded_table_is_that_of_its_checksums_and_rows(tmp_path):
    made().save_shards(tmp_path / "a", 100)
    made().save_shards(tmp_path / "b", 100)
    made().save_shards(tmp_path / "c", 50)
    a, b, c = (wb.LogitTable.load(tmp_path / name) for name in "abc")
    assert a.key == b.key != c.key
    assert a.rows(slice(0, 50)).key == b.rows(slice(0, 50)).key != a.rows(slice(1, 51)).key
    assert a.rows(np.array([3, 5])).key == b.rows(np.array([3, 5])).key != a.rows(np.array([5, 3])).key


def test_a_table_grows_while_a_network_scores_and_many_labels_stay_marks(tmp_path):
    url, rng = tmp_path / "grows", np.random.default_rng(0)
    parts = [(rng.normal(size=(n, 11)), rng.random((n, 11)) < 0.3) for n in (20, 1, 33)]
    for place, (scores, labels) in enumerate(parts, start=1):
        wb.LogitTable(scores, labels, link="sigmoid").append_to(url)
        assert len(json.loads((url / MANIFEST).read_text())["shards"]) == place
    grown = wb.LogitTable.load(url)
    np.testing.assert_array_equal(grown.labels, np.concatenate([labels for _, labels in parts]))
    np.testing.assert_array_equal(np.asarray(grown.scores), np.concatenate([scores for scores, _ in parts]))


CALLS = ("mkdir", "open", "fsync", "rename", "replace", "unlink", "rmdir")


def killed_before(number: int, work, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Does the work in a process that is killed before that call of the system; False if there are not so many."""
    made_calls = 0

    def counted(call):
        def guarded(*arguments, **options):
            nonlocal made_calls
            if made_calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            made_calls += 1
            return call(*arguments, **options)

        return guarded

    with monkeypatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name)))
        process = FORK.Process(target=work)
        process.start()
        process.join()
    return process.exitcode == -signal.SIGKILL


def test_whenever_an_append_is_killed_the_table_is_there_with_or_without_the_new_rows(tmp_path, monkeypatch):
    url, number = tmp_path / "table", 0
    made(30).append_to(url)
    rows = 30
    while killed_before(number, lambda: made(7, seed=1).append_to(url), monkeypatch):
        found = wb.LogitTable.load(url)
        assert found.n in (rows, rows + 7)
        np.testing.assert_array_equal(found.scores[:30], made(30).scores)
        rows, number = found.n, number + 1
    assert number > 15
    made(1).append_to(url)  # the next one tidies up
    grown = wb.LogitTable.load(url)
    assert grown.n == rows + 7 + 1
    named = {stored.file for shard in grown.scores.shards for stored in shard.files}
    assert {path.name for path in url.iterdir()} == named | {MANIFEST}


def test_rows_that_several_processes_append_at_once_are_all_there(tmp_path):
    url = tmp_path / "table"
    writers = [FORK.Process(target=lambda seed=seed: made(5, seed=seed).append_to(url)) for seed in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert wb.LogitTable.load(url).n == 20


def test_rows_unlike_those_that_are_there_are_refused_and_nothing_changes(tmp_path):
    url = tmp_path / "table"
    made().append_to(url)
    before = {path.name: path.read_bytes() for path in url.iterdir()}
    plain = made()
    others = {
        "classes": wb.LogitTable(np.zeros((3, 4), np.float32), [0, 1, 2]),
        "dtype": made(dtype="float64"),
        "labels": wb.LogitTable(plain.scores, class_names=plain.class_names, class_counts=plain.class_counts),
        "link": plain.with_link("sigmoid"),
        "arrays": plain.trusted(**{**vars(plain), "ids": None}),
    }
    for name, other in others.items():
        with pytest.raises(ValueError, match=f"table with {name} = .* give the same"):
            other.append_to(url)
    with pytest.raises(ValueError, match=r"not features; leave them out"):
        wb.LogitTable(plain.scores, features=plain.scores).append_to(url)
    with pytest.raises(ValueError, match=r"ending = '.zarr'; shards are written as .npy"):
        made().append_to(url, ending=".zarr")
    with pytest.raises(FileExistsError, match=r"230 rows already; give another folder"):
        made().save_shards(url)
    assert {path.name: path.read_bytes() for path in url.iterdir()} == before


def test_a_full_disk_is_told_and_leaves_the_table_as_it_was(tmp_path, monkeypatch):
    url = tmp_path / "table"
    made().append_to(url)
    before = {path.name for path in url.iterdir()}

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(FullDisk, match=r"is full: 000001-.*\.scores\.npy needs .* bytes; free some space"):
            made(seed=1).append_to(url)
    assert {path.name for path in url.iterdir()} == before
    assert wb.LogitTable.load(url).n == N


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_wrong_with_a_shard_is_told_with_its_name(ending, tmp_path):
    made().save_shards(tmp_path / "table", 100, ending)
    shard = next(
        path for path in files_of(tmp_path / "table") if path.name.startswith("000001") and ".scores" in path.name
    )
    whole = shard.read_bytes()

    def refused(words: str, error: type[Exception] = ValueError) -> None:
        with pytest.raises(error, match=rf"shard {shard.name} {words}"):
            wb.LogitTable.load(tmp_path / "table")

    shard.write_bytes(whole[:-10])
    refused(f"has {len(whole) - 10} bytes, and {len(whole)} were written: it is truncated or was changed")
    shard.write_bytes(whole[:-100] + bytes(100))
    refused("does not match its checksum")
    shard.unlink()
    refused("is missing", FileNotFoundError)
    trusted = wb.LogitTable.load(tmp_path / "table", verify=False)  # then it is told when the rows are read
    assert trusted.probabilities(slice(0, 100)).shape == (100, L)
    with pytest.raises(FileNotFoundError, match=rf"shard {shard.name} is missing"):
        trusted.probabilities(slice(50, 150))


def test_shards_of_another_width_or_type_are_refused_by_name(tmp_path):
    for place, (classes, dtype) in enumerate([(6, "float32"), (6, "float32"), (7, "float32")]):
        np.save(tmp_path / f"part-{place}.npy", np.ones((10, classes), dtype))
    with pytest.raises(
        ValueError, match=r"shard part-2.npy is float32 with 7 classes, and part-0.npy is float32 with 6"
    ):
        adopt(tmp_path)
    np.save(tmp_path / "part-2.npy", np.ones((10, 6), "float16"))
    with pytest.raises(ValueError, match=r"shard part-2.npy is float16 with 6 classes"):
        adopt(tmp_path)
    np.save(tmp_path / "part-2.npy", np.full((10, 6), np.nan, "float32"))
    with pytest.raises(ValueError, match="is not finite"):
        adopt(tmp_path)
    assert not (tmp_path / MANIFEST).exists()
    np.save(tmp_path / "part-2.npy", np.ones((10, 6), "float32"))
    adopt(tmp_path)
    said = json.loads((tmp_path / MANIFEST).read_text())
    said["dtype"], said["classes"] = "float16", 5  # a manifest that was changed by hand
    (tmp_path / MANIFEST).write_text(json.dumps(said))
    with pytest.raises(
        ValueError, match=r"shard part-0.npy is float32 of shape \(10, 6\), and the table is float16 with 5"
    ):
        wb.LogitTable.load(tmp_path)


def test_shards_of_other_programs_are_taken_as_they_are(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=(60, 3)).astype(np.float32), rng.integers(0, 3, 60)
    halves = (slice(0, 20), slice(20, 60))
    for kind in ("npy", "safetensors", "parquet"):
        (tmp_path / kind).mkdir()
        for place, rows in enumerate(halves):
            if kind == "npy":
                np.save(tmp_path / kind / f"logits-{place}.npy", scores[rows])
                np.save(tmp_path / kind / f"y-{place}.npy", labels[rows])
            elif kind == "safetensors":
                save_file({"logits": scores[rows], "y": labels[rows]}, tmp_path / kind / f"{place}.safetensors")
            else:
                columns = {name: scores[rows, j] for j, name in enumerate("abc")} | {"y": labels[rows]}
                pq.write_table(pa.table(columns), tmp_path / kind / f"{place}.parquet", row_group_size=7)
    found = [
        adopt(tmp_path / "npy", "logits-*", "y-*", class_names=["a", "b", "c"]),
        adopt(tmp_path / "safetensors", name="logits", labels_name="y", link="sigmoid"),
        adopt(tmp_path / "parquet", name=["a", "b", "c"], labels_name="y"),
    ]
    for table in found:
        np.testing.assert_array_equal(np.asarray(table.scores), scores)
        np.testing.assert_array_equal(table.scores[5:31], scores[5:31])
        np.testing.assert_array_equal(table.labels, labels)
        assert wb.LogitTable.load(table.scores.url).key == table.key
    assert found[0].class_names == ("a", "b", "c")
    assert found[1].link == "sigmoid"
    with pytest.raises(ValueError, match=r"shard 0.safetensors .* it has no scores, but y, logits"):
        adopt(tmp_path / "safetensors")
    with pytest.raises(FileNotFoundError, match=r"holds no \*.xyz that ends in .npy"):
        adopt(tmp_path / "npy", "*.xyz")
    with pytest.raises(ValueError, match="2 files of scores and 0 of labels"):
        adopt(tmp_path / "npy", "logits-*", "z-*")


def test_bfloat16_shards_are_read_as_float32(tmp_path):
    import torch
    from safetensors.torch import save_file as save_tensors

    scores = torch.randn(20, 4, generator=torch.Generator().manual_seed(0)).bfloat16()
    save_tensors({"scores": scores}, tmp_path / "0.safetensors")
    assert torch.equal(torch.from_numpy(np.asarray(adopt(tmp_path).scores)), scores.float())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda said: said.update(format=9), "another version"),
        (lambda said: said.update(rows=5), "rows cannot be what it says"),
        (lambda said: said.update(link="softmix"), "link cannot be"),
        (lambda said: said.update(shards=[]), "shards"),
        (lambda said: said["shards"][0]["files"][0].update(file="../secret.npy"), "is not a file of a shard"),
        (lambda said: said["shards"][0]["arrays"].pop("scores"), "and scores"),
        (lambda said: said.pop("classes"), "classes"),
        (lambda said: said["shards"][1]["arrays"].pop("labels"), "has no labels, which others have"),
    ],
)
def test_a_damaged_manifest_is_refused(change, words, tmp_path):
    made().save_shards(tmp_path / "table", 100)
    manifest = tmp_path / "table" / MANIFEST
    said = json.loads(manifest.read_text())
    change(said)
    manifest.write_text(json.dumps(said))
    with pytest.raises(ValueError, match=words):
        wb.LogitTable.load(tmp_path / "table")


def test_a_place_without_shards_and_an_address_nobody_knows_say_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no shards.json, which says what its shards are"):
        wb.LogitTable.load("memory://nothing/here")
    with pytest.raises(ValueError, match="nowhere://x cannot be reached"):
        wb.LogitTable.load("nowhere://x")
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(ValueError, match="is damaged"):
        wb.LogitTable.load(tmp_path)


def test_a_stored_run_refers_to_shards_and_opens_without_reading_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    made().save_shards(tmp_path / "logits", 100)
    assert main(["import", str(tmp_path / "logits")]) == 0
    assert "fitted on the 77 rows of split val" in capsys.readouterr().out
    (run,) = [run for run in Store().runs() if run.record.imported]
    for name in ("val", "test"):
        stored = run.tables[name]
        assert isinstance(stored.scores, ShardedScores)
        assert not (run.path / name / "scores.npy").exists()
        wanted = made().rows(made().attributes["split"] == name)
        np.testing.assert_array_equal(np.asarray(stored.scores), wanted.scores)
    assert main(["evaluate", run.key[:12], "--K", "2"]) == 0
    of_run = capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "logits"), "--K", "2"]) == 0
    assert capsys.readouterr().out == of_run
