"""The view of all runs: found, tagged, renamed, pinned, compared, removed, and brought back."""

from __future__ import annotations

import base64
import json
import re

import numpy as np
import pytest
from browsing import KEYS, RUDE, RUDE_FILE, arrives, asks, at_rest, click, says, serious_violations
from waiting import eventually, next_frame

import workbench as wb
from workbench.store import DEMO, Store
from workbench.store.imported_tables import keep_tables
from workbench.store.tags import pin, tags_of

pytestmark = pytest.mark.writes
HEADER, LINE = 35, 56  # pixels of the head of the table and of a line


def test_runs_are_found_by_a_part_of_what_is_known_of_them(drawn):
    app = drawn("runs")
    assert {"garden", "sharper", "garden · Noised top-K"} <= {*app.dataframe[0].value["name"]}
    app.text_input(key="find").set_value("noised").run()
    assert app.dataframe[0].value["name"].tolist() == ["garden · Noised top-K", "names · Noised top-K"]
    app.text_input(key="find").set_value("no such thing").run()
    assert app.info[0].value == "No run is like that."


def test_each_run_has_its_top_1_accuracy_with_an_interval_and_its_calibration_error(drawn, store):
    test = store.open(KEYS["garden"]).tables["test"]
    lines = drawn("runs").dataframe[0].value.set_index("name")
    assert lines.loc["garden", "top_1"] == pytest.approx(100 * wb.metrics.top_k_accuracy(test, K=1))
    assert lines.loc["garden", "calibration"] == pytest.approx(100 * wb.metrics.expected_calibration_error(test))
    low, high = (float(end) for end in lines.loc["garden", "interval"].split("–"))
    assert low < lines.loc["garden", "top_1"] < high
    assert np.isnan(lines.loc["no labels", "top_1"])
    picture = base64.b64decode(lines.loc["garden", "drawn"].partition(",")[2]).decode()
    left, right = (4 + 116 * end / 100 for end in (low, high))  # pixels of a line from 4 to 120
    drawn_left, drawn_right = re.search(r"M([\d.]+) 12H([\d.]+)\" stroke=\"[^\"]+\" stroke-width=\"8", picture).groups()
    assert (float(drawn_left), float(drawn_right)) == pytest.approx((left, right), abs=0.2)


def test_a_run_of_many_labels_has_its_F1_with_an_interval_and_its_exact_match(drawn):
    meadow = next(run for run in Store(DEMO).runs() if run.title.startswith("meadow · cnn · Quasibinary"))
    val, test = (meadow.tables[split] for split in ("val", "test"))
    lines = drawn("runs").dataframe[0].value.set_index("name")
    many = lines.loc["meadow · Quasibinary"]
    best, _ = wb.figures.f1_against_threshold({"val": val}).best["val"]
    sets = wb.Threshold(best).fit(val)(test)
    assert many["f1"] == pytest.approx(100 * wb.metrics.micro_f1(sets))
    assert many["exact"] == pytest.approx(100 * wb.metrics.exact_match(sets))
    low, high = (float(end) for end in many["interval"].split("–"))
    assert low < many["f1"] < high
    assert many["drawn"].startswith("data:image/svg+xml")
    assert np.isnan(many["top_1"])
    assert np.isnan(lines.loc["garden", "f1"])


def test_columns_that_say_nothing_are_not_shown(drawn):
    app = drawn("runs")
    shown = json.loads(app.dataframe[0].proto.columns)
    order = list(app.dataframe[0].proto.column_order)
    assert {"f1", "exact", "loss"} <= {*order}  # of the meadow, and of the published network of symbols
    assert "f1" in shown
    app.text_input(key="find").set_value("garden · ").run()
    assert not {"f1", "exact", "pinned", "tags", "data"} & {*app.dataframe[0].proto.column_order}


def test_each_run_says_how_it_learnt_and_in_what_state_it_is(drawn):
    lines = drawn("runs").dataframe[0].value.set_index("name")
    demo = next(run for run in Store(DEMO).runs() if run.title.startswith("garden · cnn · CrossEntropy"))
    assert list(lines.loc["garden · Cross-entropy", "learning"]) == demo.history["val_accuracy"].tolist()
    assert lines.loc["garden · Cross-entropy", "state"] == "10 epochs"
    assert lines.loc["symbols · Published MLP", "state"] == "0 epochs"
    assert lines.loc["garden", "state"] == "scores of a file"
    assert len(lines.loc["garden", "learning"]) == 0


def test_runs_on_the_same_test_rows_share_a_letter(drawn):
    rows = drawn("runs").dataframe[0].value.set_index("name")["rows"]
    assert rows["garden"] == rows["sharper"]
    assert rows["garden"].endswith(" · 400")
    assert rows["garden · Cross-entropy"] == rows["garden · Noised top-K"]
    letters = [rows[name][:4] for name in ("garden", "garden · Cross-entropy", "names · Noised top-K")]
    assert len({*letters}) == 3
    assert rows["many labels"] == "60"  # of a run that is alone, and of one without labels, there is only a number
    assert rows["no labels"] == "60"


def test_runs_that_cannot_be_compared_say_why(drawn, monkeypatch):
    from views import runs

    monkeypatch.setattr(runs, "marked", lambda found: [KEYS["garden"], KEYS["sharper"], KEYS["many labels"]])
    said = [text.value for text in drawn("runs").markdown if "Not comparable" in text.value]
    assert said == ["Not comparable with **garden**:\n\n- **many labels**: it has 6 classes, this run 20"]


def test_every_one_of_twelve_runs_is_removed_and_brought_back_at_once(drawn, store, monkeypatch):
    from views import runs

    table = wb.LogitTable(-np.eye(4), np.arange(4))
    keys = [keep_tables(table, title=f"run {number}", store=store).key for number in range(12)]
    monkeypatch.setattr(runs, "marked", lambda found: keys)
    app = drawn("runs")
    (remove,) = [button for button in app.button if button.label == "Remove"]
    app = remove.click().run()
    assert not any(map(store.has, keys))
    monkeypatch.setattr(runs, "marked", lambda found: [])
    (undo,) = [button for button in app.button if button.label == "Undo"]
    app = undo.click().run()
    assert not app.exception
    assert all(map(store.has, keys))
    assert store.trashed() == []


def test_the_pinned_run_comes_first_and_opens_first(drawn, store):
    pin(store, KEYS["many labels"])
    app = drawn("runs")
    assert app.dataframe[0].value["name"].iloc[0] == "many labels"
    assert "Open many labels" in [button.label for button in drawn("start").button]


def find(page, words):
    """Search, and wait until the table has the lines that were found."""
    page.get_by_label("Find").fill(words)
    page.keyboard.press("Enter")
    asks(page, find=words) if words else eventually(page, lambda: page.wait_for_url(lambda url: "find=" not in url))
    at_rest(page)


def mark(page, line, offered):
    """Mark a line of the table at its left edge, as a person does: the table is a drawing. Then that button is offered."""
    table = page.locator("[data-testid=stDataFrame] canvas").first

    def stays() -> dict[str, float]:
        box = table.bounding_box()
        next_frame(page)
        assert box is not None
        assert box == table.bounding_box()  # other lines are another table, which takes the place of this one
        return box

    box = eventually(page, stays)
    page.mouse.click(box["x"] + 18, box["y"] + HEADER + LINE * (line + 0.5))
    page.get_by_role("button", name=offered, exact=True, disabled=False).wait_for()
    at_rest(page)


@pytest.mark.browser
def test_a_run_is_found_tagged_renamed_pinned_compared_removed_and_brought_back(opened, store):
    page = opened(view="runs", wait_for="[data-testid=stDataFrame] canvas")
    button = {name: page.get_by_role("button", name=name, exact=True) for name in ("Pin", "Unpin", "Compare", "Undo")}
    find(page, KEYS["sharper"][:12])
    says(page, "Select runs with the boxes on the left")
    mark(page, 0, "Pin")
    click(page.get_by_role("button", name="Tags"))
    page.get_by_label("With commas in between").fill(f"best, {RUDE_FILE}")
    click(page.get_by_role("button", name="Save", exact=True))
    eventually(page, lambda: tagged(store))
    find(page, RUDE_FILE)
    click(page.get_by_role("button", name="Rename"))
    page.get_by_label("What to call it").fill(f"sharpest {RUDE}")
    click(page.get_by_role("button", name="Save", exact=True))
    eventually(page, lambda: called(store, f"sharpest {RUDE}"))
    click(button["Pin"])
    button["Unpin"].wait_for()
    assert serious_violations(page) == []

    find(page, "")  # the run is on another line now, and still the one that is marked
    button["Unpin"].wait_for()
    mark(page, 1, "Compare")
    click(button["Compare"])
    arrives(page, "Compare")
    asks(page, **{"run": KEYS["sharper"][:12], "with": KEYS["garden"][:12]})

    page = opened(view="runs", wait_for="[data-testid=stDataFrame] canvas", find="sharpest")
    mark(page, 0, "Remove")
    click(page.get_by_role("button", name="Remove"))
    says(page, "1 run removed.")
    says(page, "No run is like that.")
    assert not store.has(KEYS["sharper"])
    click(button["Undo"])
    page.locator("[data-testid=stDataFrame] canvas").first.wait_for()
    at_rest(page)
    assert store.open(KEYS["sharper"]).title == f"sharpest {RUDE}"
    tagged(store)


def tagged(store):
    assert set(tags_of(store, KEYS["sharper"]).tags) == {"best", RUDE_FILE}


def called(store, name):
    assert store.open(KEYS["sharper"]).title == name
