"""Tags and pins beside the runs, and runs that are removed in such a way that they can be brought back."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.store import DEMO, Store
from workbench.store.imported_tables import keep_tables
from workbench.store.tags import Tags, all_tags, pin, pinned_first, tag, tags_of, unpin, untag


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path))
    return Store()


def kept(store, title):
    return keep_tables(wb.LogitTable(-np.eye(4), np.arange(4)), title=title, store=store)


def test_marks_are_kept_beside_a_run_which_stays_as_it_is(store):
    run = kept(store, "mine")
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    assert tag(store, run.short, " two   words ", "lecture", "lecture").tags == ("two words", "lecture")
    assert pin(store, run.short).pinned
    assert tags_of(store, run.key).tags == ("two words", "lecture")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    untag(store, run.key, "lecture", "two words", "not there")
    assert unpin(store, run.key) == Tags()
    assert all_tags(store) == {}
    store.remove(run.key)
    assert not list(store.marks.iterdir())


def test_a_run_of_the_package_can_be_pinned_and_the_last_pin_comes_first(store):
    demo, mine = Store(DEMO).runs()[1], kept(store, "mine")
    pin(store, mine.key)
    pin(store, demo.key)
    assert [run.key for run in pinned_first(store, store.runs())][:2] == [demo.key, mine.key]
    assert len(pinned_first(store, store.runs())) == len(store.runs())


@pytest.mark.parametrize("wrong", ["", "  ", "a,b", "x" * 41])
def test_what_is_no_tag_is_refused_and_nothing_is_written(store, wrong):
    run = kept(store, "mine")
    with pytest.raises(ValueError, match="is not a tag; give 1 to 40 letters without a comma"):
        tag(store, run.key, "good", wrong)
    assert all_tags(store) == {}


@pytest.mark.parametrize("content", ["", "[]", '{"tags": 3}', '{"tags": [3], "pinned": ""}'])
def test_a_file_of_marks_that_says_something_else_counts_for_nothing(store, content):
    run = kept(store, "mine")
    tag(store, run.key, "good")
    (store.marks / f"{run.key}.json").write_text(content)
    assert tags_of(store, run.key) == Tags()
    assert tag(store, run.key, "better").tags == ("better",)


def test_a_run_in_the_trash_comes_back_whole_with_its_tags(store):
    run = kept(store, "mine")
    tag(store, run.key, "lecture")
    store.trash(run.key)
    assert not [run for run in store.runs() if run.record.imported]
    back = store.restore(run.short)
    assert (back.title, back.tables["test"].n, tags_of(store, back.key).tags) == ("mine", 2, ("lecture",))
    with pytest.raises(ValueError, match="no runs in the trash"):
        store.restore("abc")
    with pytest.raises(ValueError, match="ships with the package"):
        store.trash(Store(DEMO).runs()[0].key)
    store.trash(run.key)
    again = kept(store, "mine")  # the same content, while the other waits
    assert store.restore(again.key).path == again.path


def test_tags_and_pins_from_a_shell_stand_in_the_list(store, capsys):
    run = kept(store, "mine")
    assert main(["runs", "tag", run.short, "lecture", "a talk"]) == 0
    assert main(["runs", "pin", run.short]) == 0
    assert capsys.readouterr().out == f"{run.short}  lecture, a talk\n{run.short}  pinned\n"
    main(["runs"])
    assert capsys.readouterr().out.splitlines()[0] == f"{run.short}  mine  (test 2, val 2), pinned, #lecture, #a talk"
    main(["runs", "tag", run.short, "lecture", "a talk", "--remove"])
    main(["runs", "pin", run.short, "--off"])
    assert capsys.readouterr().out == f"{run.short}  no tags\n{run.short}  not pinned\n"
