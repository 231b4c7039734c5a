"""The Samples view in a real browser: the rows one asked for, with what was predicted and what is true."""

from __future__ import annotations

import io
from threading import Event

import numpy as np
import pandas as pd
import pytest
from browsing import (
    KEYS,
    asks,
    choose,
    click,
    numbers,
    pressed,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)
from conftest import GARDEN

import workbench as wb
from workbench.metrics.rows import RowFilter, in_order, listed, suggestions
from workbench.workers.similar import most_similar, training_features

pytestmark = pytest.mark.browser


def sets_of(store, name, rule):
    tables = store.open(KEYS[name]).tables
    return rule.fit(tables["val"]).sets(tables["test"])


def shows(page, sets, rows):
    """The page says how many rows there are, and shows the first of them with their sets."""
    says(page, f"{len(rows)} of {len(sets)} test rows")
    page.wait_for_function(
        "wanted => [...document.querySelectorAll('.wb-open')].map(e => e.textContent).join() === wanted",
        arg=",".join(f"open row {row}" for row in rows[:12]),
    )
    settled(page)
    sizes = [int(card.get_attribute("data-size")) for card in page.locator(".wb-card").all()]
    assert sizes == sets.sizes[rows[:12]].tolist()


def samples(opened, run="garden", **asked):
    return opened(run, view="samples", wait_for=".wb-wall", **asked)


def test_each_filter_shows_exactly_the_rows_that_the_library_finds(opened, store):
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    page = samples(opened, K=2)
    shows(page, sets, np.arange(len(sets)))

    click(page.get_by_text("miss", exact=True).first)
    misses = RowFilter(hit=False).rows(sets)
    shows(page, sets, misses)

    choose(page, "Order", "least sure")
    shows(page, sets, in_order(sets, misses, "least sure"))

    pressed(page, "K", "ArrowRight")
    sets = sets_of(store, "garden", wb.AverageK(2.1))
    shows(page, sets, in_order(sets, RowFilter(hit=False).rows(sets), "least sure"))

    names = sets.table.class_names
    choose(page, "Truth", names[0])
    shows(page, sets, in_order(sets, RowFilter(hit=False, label=0).rows(sets), "least sure"))


def test_a_link_restores_every_filter(opened, store):
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    names = sets.table.class_names
    holds = sets.members(int(np.flatnonzero(sets.sizes == 3)[0]))[0][:1].tolist()
    asked = {"size": ["2", "3"], "holds": names[holds[0]], "by": "shots", "group": "many"}
    page = samples(opened, K=2, order="surest", **asked)
    wanted = RowFilter(sizes=(2, 3), holds=tuple(holds), groups=(("shots", "many"),))
    shows(page, sets, in_order(sets, wanted.rows(sets), "surest"))

    page = samples(opened, K=2, sure=["0.3", "0.6"])
    shows(page, sets, RowFilter(sure=(0.3, 0.6)).rows(sets))


def test_the_accuracy_of_a_shot_group_says_what_it_averages_and_agrees_with_the_headline(opened, store):
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    page = samples(opened, K=2, by="shots", group="few")
    rows = RowFilter(groups=(("shots", "few"),)).rows(sets)
    by_class = f"{wb.metrics.shot_accuracy(sets)['few']:.1%}"
    says(page, f"{sets.hits[rows].mean():.1%} of the sets hold the label (mean over rows), {by_class} by class")
    assert numbers(page)["Few, by class"] == by_class


def test_rows_on_which_two_runs_disagree(opened, store):
    other = {"other": KEYS["sharper"][:12], "disagreement": "only the other hits"}
    page = samples(opened, K=2, **other)
    sets, sharper = (sets_of(store, name, wb.AverageK(2.0)) for name in ("garden", "sharper"))
    shows(page, sets, RowFilter(disagreement="only the other hits").rows(sets, sharper))


def test_sets_of_another_rule_are_shown_too(opened, store):
    page = samples(opened, rule="TopK", rule_K=3)
    shows(page, sets_of(store, "garden", wb.TopK(3)), np.arange(400))


def test_a_row_is_opened_with_the_keyboard_and_closed_again(opened, store):
    page = samples(opened, "sharper", K=2)
    sets = sets_of(store, "sharper", wb.AverageK(2.0))
    page.get_by_role("button", name="open row 3").press("Enter")
    page.get_by_role("dialog").locator(".wb-suggestions-table").first.wait_for()
    settled(page)
    asks(page, row=3)
    frame = suggestions(sets, 3)
    lines = page.locator(".wb-suggestions-table tbody tr")
    assert lines.locator("th").evaluate_all("all => all.map(e => e.title)") == frame["name"].tolist()
    bars = [line.locator(".wb-bar").all_inner_texts() for line in lines.all()]
    assert bars == [[percent(line["probability"]), percent(line["posterior"])] for line in frame.to_dict("records")]
    assert page.locator(".wb-suggestions-table .wb-right").count() == 1
    assert serious_violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.wait_for_function("!new URL(location).searchParams.has('row')")


def percent(probability):
    return "< 1%" if 0 < probability < 0.005 else f"{probability:.0%}"


def test_similar_training_pictures_are_those_that_the_library_finds(opened, store):
    labels = wb.load_dataset("garden", **GARDEN).train.labels
    page = samples(opened, "sharper", K=2, row=5)
    page.get_by_role("dialog").locator(".wb-similar .wb-photo").first.wait_for()
    settled(page)
    sets = sets_of(store, "sharper", wb.AverageK(2.0))
    frame = suggestions(sets, 5)
    training = training_features(store.open(KEYS["sharper"]), store)
    near = most_similar(sets.table.features[5], training, labels, frame["class"].tolist())
    names = dict(zip(frame["class"], frame["name"], strict=True))
    expected = [f"{names[line['class']]}, at distance {line['distance']:.3g}" for line in near.to_dict("records")]
    assert page.locator(".wb-similar .wb-photo").evaluate_all("all => all.map(e => e.title)") == expected


def test_a_row_opens_while_its_similar_pictures_are_still_looked_for(drawn, monkeypatch):
    from session import reading

    looked, begun = Event(), []

    def look(run):
        begun.append(run.short)
        looked.wait()

    monkeypatch.setattr(reading.similar, "can_be_seen", lambda run: True)
    monkeypatch.setattr(reading.similar, "compute_training_features", look)
    found = reading.similar.training_features
    monkeypatch.setattr(reading.similar, "training_features", lambda run: found(run) if looked.is_set() else None)
    reading._seen.clear()
    reading._looking.clear()
    key = KEYS["sharper"][:12]
    drawn("samples", run=key, row="5")  # it is drawn, though nobody has looked yet
    drawn("samples", run=key, row="6")
    assert reading.awaits_features(key)
    assert begun == [key]  # one looks for all rows
    looked.set()
    reading._looking(key).result()
    assert not reading.awaits_features(key)
    assert len(reading.training_features(key)) == GARDEN["n_train"]


def test_all_rows_can_be_taken_away_and_the_code_finds_them_again(opened, store, monkeypatch):
    page = samples(opened, K=2, verdict="miss")
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    misses = RowFilter(hit=False).rows(sets)
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Rows (CSV)"))
    kept = pd.read_csv(io.StringIO(download.value.path().read_text()))
    assert kept["row"].tolist() == listed(sets, misses)["row"].tolist()
    code = shown_code(page)
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    made = {}
    exec(code, made)
    assert made["rows"].tolist() == misses.tolist()


def test_rows_with_many_labels_and_with_none_are_shown(opened, store):
    page = samples(opened, "many labels", K=2)
    sets = sets_of(store, "many labels", wb.AverageK(2.0))
    shows(page, sets, np.arange(60))
    assert page.locator(".wb-photo").count() == 0
    for chosen, n_labels in (("none", (0, 0)), ("several", (2, 6))):
        choose(page, "Labels of the row", chosen)
        shows(page, sets, RowFilter(n_labels=n_labels).rows(sets))
        asks(page, labels=chosen)

    page = samples(opened, "no labels", K=2)
    shows(page, sets_of(store, "no labels", wb.AverageK(2.0)), np.arange(60))
    assert page.get_by_text("Hit or miss").count() == 0


def test_where_no_row_is_left_the_page_says_so(opened):
    page = opened("no labels", view="samples", wait_for="text=No test row is like that", size=["0", "0"], K=6)
    assert page.get_by_text("0 of 60 test rows").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_small_laptop_nothing_is_cut_and_axe_finds_nothing_serious(opened, scheme):
    page = samples(opened, width=1024, scheme=scheme, by="shots", other=KEYS["sharper"][:12])
    assert serious_violations(page) == []
    assert too_wide(page) == 0
