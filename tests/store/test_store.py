"""A run directory is there as a whole or not at all, and says so when it was damaged."""

from __future__ import annotations

import errno
import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from workbench.files import atomic, checksums
from workbench.store import Store, StoredRun, home
from workbench.store import store as store_module
from workbench.tables import LogitTable

KEY = "ab" * 32


@pytest.fixture(autouse=True)
def no_demo_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(store_module, "DEMO", tmp_path / "demo")


def table(n: int = 6, seed: int = 0) -> LogitTable:
    rng = np.random.default_rng(seed)
    return LogitTable(rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 3, n))


def write(store: Store, key: str = KEY, *, title: str = "a run", finished: str = "", replace: bool = False) -> None:
    with store.writing(key, replace=replace) as directory:
        (directory / "run.json").write_text(json.dumps({"format": 1, "facts": {"title": title, "finished": finished}}))
        (directory / "history.csv").write_text("epoch,val_loss\n0,0.1\n")
        table().save(directory / "val")
        table(4, seed=1).save(directory / "val" / "candidates")


def leftovers(store: Store) -> list[str]:
    return sorted(path.name for path in store.root.iterdir()) if store.root.exists() else []


def test_what_was_written_is_read_back(store):
    write(store)
    run = store.open(KEY)
    assert (run.key, run.title, run.dataset_spec) == (KEY, "a run", None)
    assert run.history.to_dict("list") == {"epoch": [0], "val_loss": [0.1]}
    assert list(run.tables) == ["val", "val/candidates"]
    np.testing.assert_array_equal(run.tables["val"].scores, table().scores)
    assert run.tables["val/candidates"].n == 4
    assert leftovers(store) == [KEY]


def test_a_table_is_verified_and_loaded_once(store, monkeypatch):
    write(store)
    tables = store.open(KEY).tables
    first = tables["val"]
    monkeypatch.setattr(checksums, "sha256_of", lambda path: pytest.fail("hashed again"))
    assert tables["val"] is first


def test_an_unknown_table_lists_the_known_ones(store):
    write(store)
    with pytest.raises(KeyError, match="no table 'train'; this run has val, val/candidates"):
        store.open(KEY).tables["train"]


def test_a_run_opens_by_a_prefix_of_its_key(store):
    write(store)
    assert store.open("abab").path == store.root / KEY


def test_an_unknown_or_ambiguous_key_lists_the_candidates(store):
    with pytest.raises(ValueError, match=r"no run has a key that starts with 'ab'.*none at all"):
        store.open("ab")
    write(store, "aa" * 32, title="one")
    write(store, "ab" * 32, title="two")
    with pytest.raises(ValueError, match=r"2 runs have a key that starts with 'a'.*one.*two"):
        store.open("a")
    with pytest.raises(ValueError, match="no run has"):
        store.open("")


def test_runs_are_the_newest_first_and_demo_runs_last(store, tmp_path):
    write(store, "11" * 32, title="older", finished="2024-01-01T00:00:00+00:00")
    write(store, "22" * 32, title="newer", finished="2025-01-01T00:00:00+00:00")
    demo = Store(tmp_path / "demo")
    write(demo, "33" * 32, title="demo", finished="2026-01-01T00:00:00+00:00")
    write(demo, "22" * 32, title="hidden by the user's own", finished="2026-01-02T00:00:00+00:00")
    assert [run.title for run in store.runs()] == ["newer", "older", "demo"]
    assert store.has("33" * 32)
    assert store.open("33").path.parent == demo.root


def test_a_foreign_folder_is_not_a_run(store):
    write(store)
    (store.root / "notes").mkdir()
    (store.root / "notes" / "run.json").write_text("{}")
    assert [run.key for run in store.runs()] == [KEY]
    assert not store.has("notes")


def test_a_failed_block_leaves_nothing_behind(store):
    def fails() -> None:
        with store.writing(KEY) as directory:
            (directory / "run.json").write_text("{}")
            raise RuntimeError("halfway")

    with pytest.raises(RuntimeError, match="halfway"):
        fails()
    assert leftovers(store) == []
    assert not store.has(KEY)


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "place", [(LogitTable, "save"), (os, "fsync"), (os, "rename")], ids=["save", "fsync", "rename"]
)
def test_a_full_disk_says_so_and_leaves_nothing_behind(store, monkeypatch, place):
    monkeypatch.setattr(*place, full)
    with pytest.raises(
        OSError, match=r"the disk that holds .*runs is full: .*; free some space, or set WORKBENCH_HOME"
    ):
        write(store)
    assert leftovers(store) == []


def test_a_folder_that_cannot_be_written_says_so(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    with (
        pytest.raises(PermissionError, match=r"runs cannot be written to .*file.*make it writable"),
        Store(tmp_path / "file").writing(KEY),
    ):
        pass

    def refused(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(PermissionError, match="Permission denied"), Store(tmp_path / "locked").writing(KEY):
        pass


def at_the_same_time(work, n):
    """Does the work n times in as many threads; what one of them raises is raised here."""
    with ThreadPoolExecutor(n) as pool:
        list(pool.map(work, range(n)))


def test_two_writers_of_the_same_run_both_succeed(store):
    meet = threading.Barrier(2)

    def writer(number):
        with store.writing(KEY) as directory:
            (directory / "run.json").write_text(json.dumps({"format": 1, "facts": {"title": "the same"}}))
            table().save(directory / "val")
            meet.wait()

    at_the_same_time(writer, 2)
    assert leftovers(store) == [KEY]
    assert store.open(KEY).tables["val"].n == 6


def test_the_first_writer_stays_unless_replace_is_set(store):
    write(store, title="first")
    write(store, title="second")
    assert store.open(KEY).title == "first"
    write(store, title="third", replace=True)
    assert store.open(KEY).title == "third"
    assert leftovers(store) == [KEY]


def test_many_writers_may_replace_the_same_run_and_leave_nothing_behind(store):
    def writer(number):
        for _ in range(40):
            with store.writing(KEY, replace=True) as directory:
                (directory / "run.json").write_text(json.dumps({"format": 1, "facts": {"title": f"by {number}"}}))

    at_the_same_time(writer, 4)
    assert leftovers(store) == [KEY]
    assert store.open(KEY).title.startswith("by ")


def test_a_folder_that_is_no_run_any_more_makes_room_for_one(store):
    write(store, title="first")
    (store.root / KEY / "checksums.json").unlink()
    assert not store.has(KEY)
    write(store, title="second")
    assert store.open(KEY).title == "second"
    assert leftovers(store) == [KEY]


def test_what_a_killed_writer_of_another_machine_left_is_removed_after_a_day(store):
    of_another_machine = f"{int(atomic.MACHINE, 16) ^ 1:08x}"
    old, fresh = (store.root / f".writing-{of_another_machine}-{digit * 32}" for digit in "ab")
    for path in (old, fresh):
        path.mkdir(parents=True)
    os.utime(old, (0, 0))
    write(store)
    assert leftovers(store) == [fresh.name, KEY]
    assert [run.key for run in store.runs()] == [KEY]


def test_a_single_file_is_replaced_as_a_whole_or_not_at_all(store):
    file = store.unfinished(KEY)
    for content in ("first", "second"):
        with store.replacing(file) as aside:
            aside.write_text(content)
            assert not file.exists() or file.read_text() == "first"

    def fails() -> None:
        with store.replacing(file) as aside:
            aside.write_text("half")
            full()

    with pytest.raises(OSError, match="is full"):
        fails()
    assert file.read_text() == "second"
    assert leftovers(store) == [".unfinished"]


@pytest.mark.parametrize("file", ["val/scores.npy", "val/table.json"])
def test_a_truncated_file_is_refused_and_the_error_says_what_to_do(store, file):
    write(store)
    damaged = store.root / KEY / file
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"run abababababab: {file} is damaged.*Remove the run .* and train it again"):
        store.open(KEY).tables["val"]
    assert store.open(KEY).tables["val/candidates"].n == 4


def test_a_missing_file_is_refused(store):
    write(store)
    (store.root / KEY / "history.csv").unlink()
    with pytest.raises(ValueError, match=r"history.csv is damaged"):
        store.open(KEY).history


@pytest.mark.parametrize(("file", "content"), [("run.json", "{"), ("checksums.json", "{"), ("checksums.json", "1")])
def test_a_damaged_run_is_left_out_of_the_list_with_a_warning(store, file, content):
    write(store)
    write(store, "cd" * 32, title="whole")
    (store.root / KEY / file).write_text(content)
    with pytest.warns(UserWarning, match=rf"a run is left out: .*{file} is damaged"):
        assert [run.title for run in store.runs()] == ["whole"]


def test_a_run_that_was_not_trained_here_has_an_empty_history(store):
    with store.writing(KEY) as directory:
        (directory / "run.json").write_text(json.dumps({"format": 1, "facts": {"title": "imported"}}))
    assert store.open(KEY).history.empty


def test_the_home_is_the_environment_then_a_runs_folder_then_the_users_data(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("WORKBENCH_HOME", raising=False)
    assert home().name == "workbench"
    (tmp_path / "runs").mkdir()
    assert home() == tmp_path / "runs"
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "elsewhere"))
    assert home() == tmp_path / "elsewhere"
    assert Store().root == tmp_path / "elsewhere"


def test_runs_are_equal_when_they_are_the_same_directory(store):
    write(store)
    assert store.open(KEY) == StoredRun(store.root / KEY)


def test_the_tables_of_a_run_say_their_names(store):
    write(store)
    assert repr(store.open(KEY).tables) == "the tables val, val/candidates"
