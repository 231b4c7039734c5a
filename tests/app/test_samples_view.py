"""The Samples view in a real browser: the rows one asked for, with what was predicted and what is true."""

from __future__ import annotations

import io
import json
import re
from threading import Event

import numpy as np
import pandas as pd
import pytest
from browsing import (
    KEYS,
    arrives,
    asks,
    choose,
    click,
    clicked,
    go,
    pressed,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)
from conftest import GARDEN

import workbench as wb
from workbench.figures.base import Click
from workbench.metrics.against_bayes import sizes_against_bayes
from workbench.metrics.islands import islands
from workbench.metrics.row_map import description, inside, pca
from workbench.metrics.rows import RowFilter, in_order, listed, suggestions
from workbench.workers.nearest_neighbours import most_similar, training_features

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore:sets hold")]  # posteriors tie


def sets_of(store, name, rule):
    tables = store.open(KEYS[name]).tables
    return rule.fit(tables["val"]).sets(tables["test"])


def shows(page, sets, rows):
    """The page says how many rows there are, and shows the first of them with their sets."""
    says(page, f"{len(rows)} of {len(sets)} rows")
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
    page = samples(opened, K=2, width=1024, other=KEYS["sharper"][:12])
    shows(page, sets, np.arange(len(sets)))
    fits_a_small_laptop(page)

    click(page.get_by_text("Filter", exact=True))
    click(page.get_by_role("radio", name="missed", exact=True))
    misses = RowFilter(hit=False).rows(sets)
    shows(page, sets, misses)

    choose(page, "Order", "least sure")
    shows(page, sets, in_order(sets, misses, "least sure"))

    pressed(page, "K", "ArrowRight")
    sets = sets_of(store, "garden", wb.AverageK(2.1))
    shows(page, sets, in_order(sets, RowFilter(hit=False).rows(sets), "least sure"))

    names = sets.table.class_names
    choose(page, "True class", names[0])
    shows(page, sets, in_order(sets, RowFilter(hit=False, label=0).rows(sets), "least sure"))


def fits_a_small_laptop(page):
    """Nothing is cut, and axe finds nothing serious."""
    assert serious_violations(page) == []
    assert too_wide(page) == 0


def lists(app, sets, rows):
    """A page that `AppTest` drew says how many rows there are, and has the first of them on its cards with their sets."""
    assert any(f"**{len(rows)}** of {len(sets)} rows" in text.value for text in app.markdown)
    bar, cards = parts_of(app, "sliders"), parts_of(app, "cards")["cards"]
    place = bar["place"] if bar["sliders"] else bar["follows"]["texts"].index(app.query_params["rule_K"])
    assert [card["number"] for card in cards] == rows[:12].tolist()
    assert [card["sizes"][place] for card in cards] == sets.sizes[rows[:12]].tolist()


def parts_of(app, kind):
    """What a page that `AppTest` drew sends to be drawn by the browser, of one kind."""
    sent = [json.loads(each.proto.json) for each in app.get("bidi_component") if each.proto.json]
    return next(parts for parts in sent if parts.get("kind") == kind)


def test_a_link_restores_every_filter_the_other_run_and_the_rule(drawn, store):
    sets, sharper = (sets_of(store, name, wb.AverageK(2.0)) for name in ("garden", "sharper"))
    names = sets.table.class_names
    holds = sets.members(int(np.flatnonzero(sets.sizes == 3)[0]))[0][:1].tolist()
    asked = {"size": ["2", "3"], "holds": names[holds[0]], "by": "shots", "group": "many"}
    wanted = RowFilter(sizes=(2, 3), holds=tuple(holds), groups=(("shots", "many"),))
    page = drawn("samples", K="2", order="surest", **asked)
    lists(page, sets, in_order(sets, wanted.rows(sets), "surest"))

    page = drawn("samples", K="2", sure=["0.3", "0.6"])
    lists(page, sets, RowFilter(sure=(0.3, 0.6)).rows(sets))

    page = drawn("samples", K="2", other=KEYS["sharper"][:12], disagreement="only the other hits")
    lists(page, sets, RowFilter(disagreement="only the other hits").rows(sets, sharper))

    page = drawn("samples", rule="Top-K", rule_K="3")
    lists(page, sets_of(store, "garden", wb.TopK(3)), np.arange(400))


def test_the_accuracy_of_a_shot_group_says_what_it_averages_and_agrees_with_the_headline(drawn, store):
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    page = drawn("samples", K="2", by="shots", group="few")
    rows = RowFilter(groups=(("shots", "few"),)).rows(sets)
    by_class = f"{wb.metrics.shot_accuracy(sets)['few']:.1%}"
    said = f"{sets.hits[rows].mean():.1%} correct, {by_class} mean over classes"
    assert any(said in text.value for text in page.markdown)
    bar = parts_of(page, "sliders")
    (few,) = [number["texts"] for number in bar["numbers"] if number["label"] == "Rare classes"]
    assert few[bar["place"]] == by_class


def test_a_row_is_opened_with_the_keyboard_beside_similar_training_pictures_and_closed_again(opened, store):
    page = samples(opened, "sharper", K=2)
    sets = sets_of(store, "sharper", wb.AverageK(2.0))
    page.get_by_role("button", name="open row 5", exact=True).press("Enter")
    page.get_by_role("dialog").locator(".wb-suggestions-table").first.wait_for()
    settled(page)
    asks(page, row=5)
    frame = suggestions(sets, 5)
    lines = page.locator(".wb-suggestions-table tbody tr")
    assert lines.locator("th").evaluate_all("all => all.map(e => e.title)") == frame["name"].tolist()
    bars = [line.locator(".wb-bar").all_inner_texts() for line in lines.all()]
    assert bars == [[percent(line["probability"]), percent(line["posterior"])] for line in frame.to_dict("records")]
    assert page.locator(".wb-suggestions-table .wb-right").count() == 1

    page.get_by_role("dialog").locator(".wb-similar .wb-photo").first.wait_for()
    settled(page)
    training = training_features(store.open(KEYS["sharper"]), store)
    labels = wb.load_dataset("garden", **GARDEN).train.labels
    near = most_similar(sets.table.features[5], training, labels, frame["class"].tolist())
    names = dict(zip(frame["class"], frame["name"], strict=True))
    expected = [f"{names[line['class']]}, at distance {line['distance']:.3g}" for line in near.to_dict("records")]
    assert page.locator(".wb-similar .wb-photo").evaluate_all("all => all.map(e => e.title)") == expected
    assert serious_violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    page.wait_for_function("!new URL(location).searchParams.has('row')")


def percent(probability):
    return "< 1%" if 0 < probability < 0.005 else f"{probability:.0%}"


def test_a_row_opens_while_its_similar_pictures_are_still_looked_for(drawn, monkeypatch):
    from session import cached_data

    looked, begun = Event(), []

    def look(run):
        begun.append(run.short)
        looked.wait()

    monkeypatch.setattr(cached_data.nearest_neighbours, "can_be_seen", lambda run: True)
    monkeypatch.setattr(cached_data.nearest_neighbours, "compute_training_features", look)
    found = cached_data.nearest_neighbours.training_features
    monkeypatch.setattr(
        cached_data.nearest_neighbours, "training_features", lambda run: found(run) if looked.is_set() else None
    )
    cached_data._seen.clear()
    cached_data._looking.clear()
    key = KEYS["sharper"][:12]
    drawn("samples", run=key, row="5")  # it is drawn, before it is opened
    drawn("samples", run=key, row="6")
    assert cached_data.awaits_features(key)
    assert begun == [key]  # one looks for all rows
    looked.set()
    cached_data._looking(key).result()
    assert not cached_data.awaits_features(key)
    assert len(cached_data.training_features(key)) == GARDEN["n_train"]


def test_all_rows_can_be_taken_away_and_the_code_finds_them_again(opened, store, monkeypatch):
    page = samples(opened, K=2, verdict="missed", by="shots", group="few", width=1024, scheme="dark")
    fits_a_small_laptop(page)
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    misses = RowFilter(hit=False, groups=(("shots", "few"),)).rows(sets)
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
    click(page.get_by_text("Filter", exact=True))
    for chosen, n_labels in (("none", (0, 0)), ("several", (2, 6))):
        choose(page, "Labels of the row", chosen)
        shows(page, sets, RowFilter(n_labels=n_labels).rows(sets))
        asks(page, labels=chosen)

    choose(page, "Run", "no labels")
    shows(page, sets_of(store, "no labels", wb.AverageK(2.0)), np.arange(60))
    assert page.get_by_text("Set is").count() == 0


def test_where_no_row_is_left_the_page_says_so(drawn):
    page = drawn("samples", run=KEYS["no labels"][:12], size=["0", "0"], K="6")
    assert any("No test row is like that" in text.value for text in (*page.info, *page.markdown))
    assert any("**0** of 60 rows" in text.value for text in page.markdown)


def test_a_selection_is_the_same_rows_in_every_picture_and_survives_reload_and_back(opened, store):
    page = samples(opened, "sharper", K=2, lasso="0.0.500.0.500.1000.0.1000")
    sets = sets_of(store, "sharper", wb.AverageK(2.0))
    rows = np.flatnonzero(inside(pca(sets.table), [(0, 0), (0.5, 0), (0.5, 1), (0, 1)]))
    for name, figure in {
        "Sizes": wb.figures.set_sizes(sets, rows=rows),
        "Same answer": wb.figures.same_answer(sets, rows),
        "Bayes": wb.figures.against_bayes(sets, rows),
        "Slices": wb.figures.worst_slices(sets, rows),
    }.items():
        click(page.get_by_role("radio", name=name, exact=True))
        # Sizes follow the slider, so that its words do not name the rule of one place.
        says(page, re.sub(r" by [^;]*?, (?=[\d.]+ classes on average)", ", ", figure.subtitle))
        asks(page, picture=name, lasso="0.0.500.0.500.1000.0.1000")
    page.reload()
    page.wait_for_selector(".wb-wall")
    shows(page, sets, rows)
    says(page, figure.subtitle)
    says(page, description(sets, rows))
    go(page, "Sets")
    page.go_back()
    arrives(page, "Samples")
    shows(page, sets, rows)
    click(page.get_by_role("button", name="lasso"))
    shows(page, sets, np.arange(len(sets)))
    click(page.get_by_role("radio", name="Map", exact=True))
    area = page.locator(".wb-map-area .wb-lasso")
    area.wait_for()
    settled(page)
    places = pca(sets.table)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2) + 9 * np.eye(len(places))
    row = int(distances.min(axis=1).argmax())  # the one that lies farthest from all others
    across, up = places[row].tolist()
    size = area.bounding_box()
    area.click(position={"x": 8 + across * (size["width"] - 16), "y": 8 + (1 - up) * (size["height"] - 16)})
    says(page.get_by_role("dialog"), f"Test row {row}")


def test_the_map_is_coloured_by_the_hits_of_two_runs_by_bayes_sets_and_by_groups(drawn, store, monkeypatch):
    from drawing import row_map

    seen = {}
    monkeypatch.setattr(row_map.live, "row_map", lambda *_, **given: seen.update(given))
    here, there = (sets_of(store, name, wb.AverageK(5.0)) for name in ("sharper", "garden"))
    asked = {"run": KEYS["sharper"][:12], "K": "5"}
    drawn("samples", colour="against garden", **asked)
    assert seen["names"] == ["both correct", "only this run correct", "only the other correct", "both missed"]
    both = [here.hits & there.hits, here.hits & ~there.hits, ~here.hits & there.hits, ~here.hits & ~there.hits]
    np.testing.assert_array_equal(seen["codes"], np.argmax(both, axis=0))
    drawn("samples", colour="Bayes set size", **asked)
    np.testing.assert_array_equal(seen["codes"], np.minimum(sizes_against_bayes(here).bayes, 12))
    drawn("samples", colour="class group", **asked)
    groups = np.array(here.table.groups)[here.table.checked_labels()]
    assert [seen["names"][code] for code in seen["codes"]] == groups.tolist()
    assert seen["islands"] == [(found.name, found.x, found.y) for found in islands(here.table, pca(here.table))]


def test_a_click_on_a_picture_selects_its_rows_and_its_chip_selects_all_again(opened, store):
    sets = sets_of(store, "sharper", wb.AverageK(2.0))
    page = samples(opened, "sharper", K=2)
    for picture, trace, point, chip in (
        ("Sizes", 0, 2, "size"),
        ("Same answer", 0, 1, "answer"),
        ("Bayes", 1, 0, "sizes"),
        ("Slices", 0, 0, ""),
    ):
        click(page.get_by_role("radio", name=picture, exact=True))
        asks(page, picture=picture)
        drawn = DRAWN[picture](sets).plot().data[trace]
        data = None if drawn.customdata is None else np.asarray(drawn.customdata, object)[point]
        asked = DRAWN[picture](sets).rows_behind(Click(drawn.name, point, data))
        says(page.locator(".st-key-figure-rows .wb-title"), DRAWN[picture](sets).title)
        clicked(page, "rows", trace=trace, point=point)
        shows(page, sets, asked.rows(sets))
        click(page.get_by_role("button", name=re.compile(f"^{chip}.*: ")))
        shows(page, sets, np.arange(len(sets)))


DRAWN = {
    "Sizes": wb.figures.set_sizes,
    "Same answer": wb.figures.same_answer,
    "Bayes": wb.figures.against_bayes,
    "Slices": wb.figures.worst_slices,
}


def test_a_selection_with_a_name_goes_through_the_views_in_the_address_and_is_compared(opened, store):
    page = samples(opened, K=2, verdict="missed", size=["2", "3"], picture="Slices")
    sets = sets_of(store, "garden", wb.AverageK(2.0))
    named = {"missed pairs": RowFilter(sizes=(2, 3), hit=False)}
    text = 'missed pairs~{"sizes":[2,3],"hit":false}'
    rows = named["missed pairs"].rows(sets)
    click(page.get_by_role("button", name="Slices", exact=True))
    page.get_by_label("Name of this slice").fill("missed pairs")
    click(page.get_by_role("button", name="Keep"))
    asks(page, slice=text)
    page.keyboard.press("Escape")
    says(page, wb.figures.worst_slices(sets, rows, named=named).subtitle)

    page = samples(opened, K=2, slice=text)  # a link
    shows(page, sets, np.arange(len(sets)))
    click(page.get_by_role("button", name="Slices (1)"))
    click(page.get_by_role("button", name="missed pairs"))
    shows(page, sets, rows)
    asks(page, verdict="missed", slice=text)
    go(page, "Compare")
    settled(page)
    asks(page, slice=text)
    choose(page, "Rows", "missed pairs")
    asks(page, rows="missed pairs")
    tables = {name: store.open(KEYS[name]).tables for name in ("garden", "sharper")}
    compared = wb.comparison.compare(
        {name: run["test"].rows(rows) for name, run in tables.items()},
        wb.AverageK(2.0), (wb.metrics.accuracy,), val={name: run["val"] for name, run in tables.items()}, resamples=2,
    )  # fmt: skip
    difference = 100 * compared[compared["table"] == "sharper"]["difference"].item()
    page.wait_for_function(
        """wanted => Array.from(document.querySelector('.st-key-figure-differences .wb-picture')?._fullData?.[0].x ?? [])
            .some((x) => Math.abs(x - wanted) < 1e-6)""",
        arg=difference,
    )
