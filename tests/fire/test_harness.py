"""A short part of `make fire` in every run: some kills, some damaged files of every kind, disks that fail."""

from __future__ import annotations

import contextlib
import errno
import os

import harness
import pytest
from harness import fate_of, fates_of_damaged_files, kills
from seeds import SEEDS, table

from workbench.store.tags import tag


@pytest.mark.filterwarnings("ignore")
def test_damaged_files_are_read_or_refused_and_cost_neither_time_nor_memory_nor_code():
    fates, broken = fates_of_damaged_files(len(SEEDS), seed=1)
    assert broken == []
    assert fates["refused"] > 0


def test_a_reader_that_never_ends_is_a_hang(monkeypatch):
    def never_ends():
        while True:
            pass

    monkeypatch.setattr(harness, "SECONDS", 1)
    assert fate_of(never_ends, 0) == "hang"


def test_a_process_that_is_killed_early_takes_nothing_with_it():
    found = list(kills(most=3))
    assert len(found) > 20
    assert [each for each in found if each[1]] == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EIO], ids=errno.errorcode.get)
def test_a_disk_that_is_full_read_only_or_broken_leaves_what_was_there(store, imported, tmp_path, monkeypatch, number):
    run = imported(store, "mine")
    table().save(tmp_path / "table")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def fails(*_, **__):
        raise OSError(number, os.strerror(number))

    for call in ("mkdir", "rename", "replace", "fsync"):
        with monkeypatch.context() as broken:
            broken.setattr(os, call, fails)
            for change in (
                lambda: tag(store, run.key, "new"),
                lambda: store.rename(run.key, "new"),
                lambda: table().save(tmp_path / "table"),
                lambda: table().save(tmp_path / "another"),
            ):
                with contextlib.suppress(OSError):  # and nothing else
                    change()
    tag(store, run.key, "after")
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in before if path.suffix != ".json"} <= after.keys()
    assert all(after[path] == content for path, content in before.items() if path.suffix == ".npy")
