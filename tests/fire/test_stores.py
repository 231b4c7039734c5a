"""A store keeps its runs whatever happens to one of its bytes, and other processes that work in it."""

from __future__ import annotations

import contextlib
import os

import pytest
from processes import all_at_once

from workbench.cli.main import main
from workbench.store import Store, maintenance
from workbench.store.lru_store import LRUStore
from workbench.store.store import TRASH
from workbench.store.tags import pin, tag, tags_of


@pytest.mark.parametrize("place", range(6, 80, 3))
def test_a_flipped_bit_in_the_header_of_an_array_leaves_every_other_run_readable(store, imported, place, capsys):
    damaged, whole = imported(store, "damaged"), imported(store, "whole")
    file = damaged.path / "val" / "scores.npy"
    content = bytearray(file.read_bytes())
    content[place] ^= 1 << place % 8
    file.write_bytes(content)
    for command in (["runs"], ["runs", "tag", whole.short, "mine"], ["runs", "rm", damaged.short, "--yes"]):
        assert main(command) == 0, capsys.readouterr().err
    assert tags_of(store, whole.key).tags == ("mine",)


def test_two_people_who_remove_the_same_run_leave_it_in_the_trash(store, imported):
    run = imported(store, "mine")
    assert all_at_once([lambda: Store().trash(run.key)] * 2) == [0, 0]
    assert store.restore(run.key).tables["test"].n == 2


def test_one_who_removes_a_run_for_good_does_not_hinder_one_who_puts_it_into_the_trash(store, imported):
    for _ in range(3):
        run = imported(store, "mine")
        all_at_once([lambda run=run: Store().trash(run.key), lambda run=run: Store().remove(run.key)])
        assert not store.has(run.key)


def test_undo_brings_back_every_one_of_twelve_removed_runs_also_after_a_clock_went_back(store, imported):
    runs = [imported(store, f"run {number}") for number in range(12)]
    for number, run in enumerate(runs):
        trashed = store.trash(run.key)
        os.utime(trashed.path, (1e9 - number, 1e9 - number))
    assert len(store.trashed()) == 12
    for run in runs:
        assert store.restore(run.key).title == run.title
    assert store.trashed() == []


def test_a_run_in_the_trash_is_listed_and_restored_from_a_shell_until_the_store_is_pruned(store, imported, capsys):
    run = imported(store, "mine")
    store.trash(run.key)
    assert main(["runs", "restore"]) == 0
    assert capsys.readouterr().out == f"{run.short}  mine\n"
    assert main(["runs", "restore", run.short]) == 0
    assert store.has(run.key)
    store.trash(run.key)
    assert main(["runs", "--prune"]) == 0
    assert "bytes deleted for good" in capsys.readouterr().out
    assert main(["runs", "restore", run.short]) == 2
    assert "no runs in the trash have a key that starts with" in capsys.readouterr().err


@pytest.mark.parametrize("writers", [2, 4, 8])
def test_no_tag_and_no_pin_is_lost_when_several_write(store, imported, writers):
    run = imported(store, "mine")

    def write(number: int) -> None:
        for each in range(3):
            tag(Store(), run.key, f"tag {number} {each}")
        pin(Store(), run.key)

    assert set(all_at_once([lambda number=number: write(number) for number in range(writers)])) == {0}
    assert len(tags_of(store, run.key).tags) == 3 * writers
    assert tags_of(store, run.key).pinned


@pytest.mark.parametrize("name", [TRASH, ".marks", ".unfinished", ".locks", "live"])
def test_a_link_in_a_store_that_one_was_given_leads_nowhere(store, imported, tmp_path, name):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / ("a" * 64)).mkdir(parents=True)
    (elsewhere / ("a" * 64) / "checksums.json").write_text("{}")
    run = imported(store, "mine")
    (elsewhere / f"{run.key}.json").write_text("{}")
    (elsewhere / f"{run.key}.ckpt").write_text("mine")
    (store.root / name).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    for act in (
        lambda: store.trash(run.key),
        lambda: store.remove(run.key),
        lambda: tag(store, run.key, "x"),
        lambda: maintenance.prune(store),
        lambda: LRUStore(store, size=0).forget(),
    ):
        with contextlib.suppress(ValueError):
            act()
    assert sorted(elsewhere.rglob("*")) == before


def test_a_folder_of_a_writer_that_is_a_link_is_left_alone(store, imported, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine.retired").write_text("mine")
    store.root.mkdir()
    (store.root / f".writing-{'0' * 32}").symlink_to(tmp_path / "elsewhere")
    imported(store, "mine")
    assert (tmp_path / "elsewhere" / "mine.retired").read_text() == "mine"


def test_marks_that_are_a_link_are_not_written_through(store, imported, tmp_path):
    run = imported(store, "mine")
    (tmp_path / "precious").write_text("{}")
    store.marks.mkdir()
    (store.marks / f"{run.key}.json").symlink_to(tmp_path / "precious")
    with pytest.raises(ValueError, match="is a link"):
        tag(store, run.key, "mine")
    assert (tmp_path / "precious").read_text() == "{}"


@pytest.mark.parametrize("name", ["checksums.json", "run.json", "val/table.json", "val/scores.npy"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(store, imported, name):
    damaged, whole = imported(store, "damaged"), imported(store, "whole")
    (damaged.path / name).unlink()
    os.mkfifo(damaged.path / name)
    assert damaged.key in store.unreadable()
    with pytest.warns(UserWarning, match="a run is left out"):
        assert [run.key for run in store.runs() if run.path.parent == store.root] == [whole.key]


def test_verify_reads_every_byte_and_repair_moves_what_is_damaged_into_the_trash(store, imported, capsys):
    damaged, whole = imported(store, "damaged"), imported(store, "whole")
    assert main(["runs", "--verify"]) == 0
    file = damaged.path / "test" / "scores.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1  # the sizes stay, so that only reading it tells
    file.write_bytes(content)
    assert store.unreadable() == {}
    assert main(["runs", "--verify"]) == 1
    told = capsys.readouterr().out
    assert damaged.short in told
    assert "does not match its checksum" in told
    assert main(["runs", "--repair"]) == 0
    assert main(["runs", "--verify"]) == 0
    assert store.has(whole.key)
    assert not store.has(damaged.key)
    assert store.restore(damaged.key).key == damaged.key
