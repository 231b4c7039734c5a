"""Tags and pins beside the runs, and runs that are removed in such a way that they can be brought back."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.store import DEMO, Store
from workbench.store.imported import keep_tables
from workbench.store.marks import Marks, all_marks, marks_of, pin, pinned_first, tag, unpin, untag
from workbench.store.store import CAN_BE_BROUGHT_BACK


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
    assert marks_of(store, run.key).tags == ("two words", "lecture")
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before
    untag(store, run.key, "lecture", "two words", "not there")
    assert unpin(store, run.key) == Marks()
    assert all_marks(store) == {}
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
    with pytest.raises(ValueError, match="is no tag; give 1 to 40 letters without a comma"):
        tag(store, run.key, "good", wrong)
    assert all_marks(store) == {}


@pytest.mark.parametrize("content", ["", "[]", '{"tags": 3}', '{"tags": [3], "pinned": ""}'])
def test_a_file_of_marks_that_says_something_else_counts_for_nothing(store, content):
    run = kept(store, "mine")
    tag(store, run.key, "good")
    (store.marks / f"{run.key}.json").write_text(content)
    assert marks_of(store, run.key) == Marks()
    assert tag(store, run.key, "better").tags == ("better",)


def test_a_run_that_was_put_away_is_brought_back_whole_and_only_the_last_few_can_be(store):
    runs = [kept(store, f"run {number}") for number in range(CAN_BE_BROUGHT_BACK + 1)]
    tag(store, runs[-1].key, "mine")
    for run in runs:
        store.put_away(run.key)
    assert not [run for run in store.runs() if run.record.imported]
    back = store.bring_back(runs[-1].key)
    assert (back.title, back.tables["test"].n, marks_of(store, back.key).tags) == (
        f"run {CAN_BE_BROUGHT_BACK}",
        2,
        ("mine",),
    )
    with pytest.raises(ValueError, match="gone for good"):
        store.bring_back(runs[0].key)
    with pytest.raises(ValueError, match="ships with the package"):
        store.put_away(Store(DEMO).runs()[0].key)
    again = kept(store, "run 1")  # the same content, while the other waits
    assert store.bring_back(again.key).path == again.path


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
