"""Whatever happens to a writer, there is a whole thing in its place: the old one or the new one."""

from __future__ import annotations

import errno
import multiprocessing
import os
import resource
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import workbench as wb
from workbench.files import atomic
from workbench.files.atomic import FullDisk, whole_file, whole_folder
from workbench.store import Store
from workbench.tables import directories

FORK = multiprocessing.get_context("fork")
# What a writer asks of the system: it may be killed before any of these calls.
CALLS = (
    *((os, name) for name in ("mkdir", "open", "fsync", "rename", "replace", "unlink", "rmdir")),
    (atomic, "_exchange"),
    (np, "save"),
    (np, "savez"),
)


def table(number: int, n: int = 40) -> wb.LogitTable:
    scores = np.random.default_rng(number).normal(size=(n, 3)).astype(np.float32)
    return wb.LogitTable(scores, np.arange(n) % 3, note=f"table {number}")


def in_another_process(work: Callable[[], object]) -> int | None:
    """The exit code of a process that does the work."""
    process = FORK.Process(target=work)
    process.start()
    process.join()
    return process.exitcode


def killed_before(number: int, work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> bool:
    """Does the work in a process that is killed before that call of the system; False if there are not so many."""
    made = 0

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def guarded(*arguments, **options):
            nonlocal made
            if made == number:
                os.kill(os.getpid(), signal.SIGKILL)
            made += 1
            return call(*arguments, **options)

        return guarded

    with monkeypatch.context() as patch:
        for place, name in CALLS:
            patch.setattr(place, name, counted(getattr(place, name)))
        return in_another_process(work) == -signal.SIGKILL


@pytest.mark.parametrize("at_once", [True, False], ids=["names change places at once", "one after the other"])
def test_a_table_that_is_saved_over_another_is_there_whenever_the_writer_is_killed(tmp_path, monkeypatch, at_once):
    if not at_once:
        monkeypatch.setattr(atomic, "_exchange", lambda new, target: False)
    place, old, new = tmp_path / "table", table(1), table(2)
    number = 0
    while True:
        old.save(place)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]  # the next writer tidied up
        killed = killed_before(number, lambda: new.save(place), monkeypatch)
        if not at_once:
            atomic.remove_leftovers(tmp_path)  # where two names cannot change places, the next writer puts it back
        found = wb.LogitTable.load(place)
        assert found.note in ("table 1", "table 2")
        np.testing.assert_array_equal(found.scores, (old if found.note == "table 1" else new).scores)
        if not killed:
            break
        number += 1
    assert number > 10
    assert wb.LogitTable.load(place).key == new.key


def test_a_run_is_there_as_a_whole_or_not_at_all_whenever_its_writer_is_killed(tmp_path, monkeypatch):
    store, number = Store(tmp_path), 0

    def write() -> None:
        with store.writing("ab" * 32, replace=True) as directory:
            (directory / "run.json").write_text('{"format": 1, "facts": {"title": "a run"}}')

    while killed_before(number, write, monkeypatch):
        assert store.unreadable() == {}
        number += 1
    assert number > 10
    write()
    assert [path.name for path in tmp_path.iterdir()] == ["ab" * 32]
    assert store.open("ab").title == "a run"


def test_a_run_that_is_removed_is_there_as_a_whole_or_gone_whenever_the_process_is_killed(tmp_path, monkeypatch):
    store, number = Store(tmp_path), 0

    def write() -> None:
        with store.writing("ab" * 32) as directory:
            (directory / "run.json").write_text('{"format": 1, "facts": {"title": "a run"}}')

    write()
    while killed_before(number, lambda: store.remove("ab"), monkeypatch):
        assert store.unreadable() == {}
        write()
        number += 1
    assert number >= 3
    assert list(tmp_path.glob("*/*")) == []


def test_a_checkpoint_is_the_old_one_or_the_new_one_whenever_the_writer_is_killed(tmp_path, monkeypatch):
    file, number = tmp_path / "kept.ckpt", 0
    file.write_text("old")

    def write() -> None:
        with whole_file(file) as aside:
            aside.write_text("new")

    while killed_before(number, write, monkeypatch):
        assert file.read_text() in ("old", "new")
        number += 1
    assert number >= 4
    assert file.read_text() == "new"
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_killed_writer_of_the_index_left_is_no_obstacle_to_saving(tmp_path, monkeypatch):
    place = tmp_path / "table"
    table(1).save(place)
    number = 0
    while killed_before(number, lambda: wb.SetIndex.open(place), monkeypatch):
        number += 1
    assert number >= 4
    (place / f".writing-{atomic.MACHINE}-{'0' * 32}").mkdir()
    (place / ".set_index.k3l9x_").write_bytes(b"half")  # as earlier versions left it
    table(2).save(place)
    assert wb.LogitTable.load(place).note == "table 2"
    assert not [path for path in place.iterdir() if path.name.startswith(".")]


def test_an_index_that_cannot_be_kept_is_used_all_the_same(tmp_path, monkeypatch):
    table(1).save(tmp_path / "table")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(np, "savez", full)
    assert wb.SetIndex.open(tmp_path / "table").threshold(2) > 0
    assert not (tmp_path / "table" / "set_index.npz").exists()


def test_many_processes_save_the_same_table_and_every_reader_meets_a_whole_one(tmp_path):
    place, n_writers = tmp_path / "table", 4
    tables = [table(number) for number in range(n_writers)]
    tables[0].save(place)
    keys = {each.key for each in tables}

    def write(number: int) -> None:
        for _ in range(15):
            tables[number].save(place)

    def read() -> None:
        for _ in range(60):
            found = wb.LogitTable.load(place)
            fresh = wb.LogitTable(found.scores, found.labels)  # which computes its key from what was read
            assert found.key == fresh.key
            assert found.key in keys

    processes = [FORK.Process(target=write, args=(number,)) for number in range(n_writers)] + [
        FORK.Process(target=read)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * len(processes)
    assert wb.LogitTable.load(place).key in keys
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table"]


def test_a_table_whose_folder_gets_the_number_of_the_one_before_is_not_mixed_with_it(tmp_path, monkeypatch):
    place, read, replaced = tmp_path / "table", directories._read_array, []
    table(1).save(place)

    def read_after_others_wrote(path: Path) -> np.ndarray:
        if not replaced:
            number = place.stat().st_ino
            for _ in range(20):  # file systems like to give a number away again as soon as it is free
                shutil.rmtree(place)
                table(2).save(place)
                replaced.append(place.stat().st_ino)
                if replaced[-1] == number:
                    break
        return read(path)

    monkeypatch.setattr(directories, "_read_array", read_after_others_wrote)
    found = wb.LogitTable.load(place)
    assert replaced
    assert (found.key, found.note) == (table(2).key, "table 2")


def test_what_a_living_writer_has_aside_is_not_taken_for_a_leftover(tmp_path):
    with whole_folder(tmp_path / "first") as aside:
        (aside / "half").write_text("…")
        assert in_another_process(lambda: table(1).save(tmp_path / "second")) == 0
        assert (aside / "half").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first", "second"]


def test_a_link_to_a_table_stays_a_link(tmp_path):
    table(1).save(tmp_path / "table")
    (tmp_path / "link").symlink_to(tmp_path / "table")
    table(2).save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert wb.LogitTable.load(tmp_path / "table").note == "table 2"


def test_a_table_is_not_saved_over_a_file(tmp_path):
    (tmp_path / "table").write_text("mine")
    with pytest.raises(FileExistsError, match="is a file; give a new or empty directory"):
        table(1).save(tmp_path / "table")
    assert (tmp_path / "table").read_text() == "mine"


def test_a_disk_that_is_too_small_for_a_table_says_how_much_it_needs(tmp_path):
    table(1).save(tmp_path / "table")
    told, tell = FORK.Pipe(duplex=False)

    def save_on_a_small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            wb.LogitTable(np.zeros((100_000, 2), np.float32)).save(tmp_path / "table")
        except OSError as error:
            tell.send(str(error))

    assert in_another_process(save_on_a_small_disk) == 0
    assert told.poll()
    assert (
        told.recv() == f"the disk that holds {tmp_path.resolve()} is full: table needs 800 000 bytes; free some space"
    )
    assert wb.LogitTable.load(tmp_path / "table").note == "table 1"
    assert [path.name for path in tmp_path.iterdir()] == ["table"]


def test_a_folder_that_is_full_from_the_first_byte_is_told_too(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(FullDisk, match="table needs 520 bytes"):
        table(1).save(tmp_path / "table")


def test_other_errors_of_the_system_stay_what_they_are(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output error") as caught:
        table(1).save(tmp_path / "table")
    assert not isinstance(caught.value, FullDisk)
    assert list(tmp_path.iterdir()) == []


def test_the_holder_of_a_turn_has_the_file_that_the_next_one_will_find(tmp_path, monkeypatch):
    file, asked, there = tmp_path / "a.turn", threading.Event(), []
    real = atomic.fcntl.flock

    def waits():
        with atomic.turn(file):
            there.append(file.exists())

    second = threading.Thread(target=waits)
    with atomic.turn(file):
        monkeypatch.setattr(atomic.fcntl, "flock", lambda *given: asked.set() or real(*given))
        second.start()
        asked.wait()  # it has opened the file that is about to go
    second.join()
    assert there == [True]
    assert not file.exists()
