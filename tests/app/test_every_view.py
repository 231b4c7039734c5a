"""Every page of the table is drawn at its address, every part of it too, and old addresses lead where they led."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
APP = ROOT / "app"
sys.path.insert(0, str(APP))
from pages import PAGES  # noqa: E402

sys.path.remove(str(APP))
PARTS = [(page, part) for page in PAGES for part in (page.parts or (None,))]
OF_PARTS = {
    "train": "train",
    "landscapes": "part",
    "lessons": "lessons",
}  # page → what its parts are called in the address


@pytest.mark.parametrize(("page", "part"), PARTS, ids=lambda value: getattr(value, "url", value))
def test_a_page_is_drawn_at_its_address(drawn, page, part):
    app = drawn(page.url, **({} if part is None else {OF_PARTS[page.url]: part}))
    assert app.session_state["view"] == page.url
    if page.title == "Start":
        assert app.title[0].value == "The workbench"
    elif page.title != "Lessons":  # which shows one lesson, alone on the wall
        assert app.title[0].value == page.title
    assert bool([box for box in app.selectbox if box.label == "Run"]) == page.of_run


def test_the_start_says_what_its_strip_is_and_what_to_do(drawn):
    sent = [json.loads(each.proto.json) for each in drawn("start").get("bidi_component") if each.proto.json]
    (explorable,) = (each for each in sent if each.get("kind") == "explorable")
    assert explorable["invitation"].startswith("16 of 3\N{NO-BREAK SPACE}000 rows, clear ones first")
    assert len(explorable["cards"]) == 16


def test_the_bare_address_is_the_start_and_an_old_link_that_names_a_run_shows_its_sets(drawn):
    app = drawn("", run=[])
    assert app.title[0].value == "The workbench"
    doors = [button.label.replace("\\", "") for button in app.button]
    assert {"Open the lessons", "What each loss rewards"} < {*doors}
    assert any(door.startswith("Try the demo: 3") for door in doors)  # the demo, not what came last
    assert drawn("", K="2").title[0].value == "Sets"


def test_every_view_stands_in_the_table_once_and_in_the_readme():
    files = {
        path.stem for path in (APP / "views").iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert sorted(page.url for page in PAGES) == sorted(files)
    assert len({page.title for page in PAGES}) == len(PAGES)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    _head, *titles = re.findall(r"^\| ([^|]+) \|", readme.partition("## The dashboard")[2], flags=re.MULTILINE)
    assert titles[: len(PAGES)] == [page.title for page in PAGES]
