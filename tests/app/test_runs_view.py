"""The view of all runs: found, tagged, renamed, pinned, compared, removed, and brought back."""

from __future__ import annotations

import pytest
from browsing import KEYS, arrives, asks, at_rest, click, says, serious_violations
from waiting import eventually, next_frame

from workbench.store.marks import marks_of, pin

pytestmark = pytest.mark.writes
HEADER = LINE = 35  # pixels of the table


def test_runs_are_found_by_a_part_of_what_is_known_of_them(drawn):
    app = drawn("runs")
    assert {"garden", "sharper", "garden · Noised top-K"} <= {*app.dataframe[0].value["name"]}
    app.text_input(key="find").set_value("noised").run()
    assert app.dataframe[0].value["name"].tolist() == ["garden · Noised top-K"]
    app.text_input(key="find").set_value("no such thing").run()
    assert app.info[0].value == "No run is like that."


def test_the_pinned_run_comes_first_and_opens_first(drawn, store):
    pin(store, KEYS["many labels"])
    app = drawn("runs")
    assert app.dataframe[0].value["name"].iloc[0] == "many labels"
    assert "Or begin with many labels" in [button.label for button in drawn("start").button]


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
    says(page, "Nothing is chosen")
    mark(page, 0, "Pin")
    click(page.get_by_role("button", name="Tags"))
    page.get_by_label("With commas in between").fill("best")
    click(page.get_by_role("button", name="Save"))
    eventually(page, lambda: tagged(store))
    find(page, "best")
    click(page.get_by_role("button", name="Rename"))
    page.get_by_label("What to call it").fill("sharpest")
    click(page.get_by_role("button", name="Save"))
    eventually(page, lambda: called(store, "sharpest"))
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
    assert store.open(KEYS["sharper"]).title == "sharpest"
    assert marks_of(store, KEYS["sharper"]).tags == ("best",)


def tagged(store):
    assert marks_of(store, KEYS["sharper"]).tags == ("best",)


def called(store, name):
    assert store.open(KEYS["sharper"]).title == name
