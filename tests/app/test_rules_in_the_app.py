"""A rule is chosen by what it promises; those beyond one threshold are there as soon as they are declared."""

from __future__ import annotations

import pytest
from browsing import KEYS, asks, clicked, settled

from workbench.sets import LAC, RULES, ClassConditionalLAC, MacroCoverage, Mondrian, RiskControl
from workbench.sets.base import GUARANTEES
from workbench.sets.coverage_band import coverage_band


@pytest.mark.parametrize("rule", [Mondrian, MacroCoverage, RiskControl], ids=lambda kind: kind.__name__)
def test_the_sets_of_a_rule_are_drawn_with_its_knobs(drawn, rule):
    page = drawn("sets", rule=rule.title)
    labels = {widget.label for widget in (*page.selectbox, *page.select_slider)}
    assert len(labels) >= len([knob for knob in rule.knobs().values() if knob.kind != "switch"])


def test_a_promise_chooses_the_first_rule_that_keeps_it(drawn):
    page = drawn("sets")
    assert page.selectbox(key="promise").value == "Average size, or coverage"
    page.selectbox(key="promise").select("Coverage of each class").run()
    assert page.selectbox(key="rule").value == ClassConditionalLAC.title
    assert not page.exception


@pytest.mark.browser
def test_a_point_of_the_picture_of_all_rules_opens_its_rule(opened):
    page = opened(K=3, all_rules="true")

    def click_rule(name: str) -> None:
        settled(page)
        picture = page.locator(".st-key-figure-tradeoff .wb-picture")
        names = picture.evaluate("picture => picture._fullData[1].customdata.map(([name]) => name)")
        clicked(page, "tradeoff", trace=1, point=names.index(name))

    click_rule("ClassConditionalLAC")
    asks(page, rule=ClassConditionalLAC.title)
    click_rule("AverageK")
    page.locator("input[name=K]").wait_for()


def test_every_kind_of_promise_has_words(drawn):
    assert {rule.guarantee for rule in RULES} <= {*GUARANTEES}
    drawn("sets")
    from controls.rules import PROMISES  # as the page has it on its path

    assert set(GUARANTEES) <= set(PROMISES)


def test_the_band_of_a_promise_is_that_of_the_library(drawn):
    drawn("sets")
    from controls.headline import band_text

    low, high = coverage_band(200, 0.9, level=0.95)
    assert band_text(200, 0.9) == f"{100 * low:.0f}–{100 * high:.0f}%" == "86–94%"
    assert band_text(5, 0.0) == "–"


def test_a_switch_leaves_no_set_empty_and_names_its_price(drawn, store):
    page = drawn("sets", confidence=0.6)
    assert not page.toggle(key="no_empty").value
    rule = LAC(0.6, min_size=1)
    tables = store.open(KEYS["garden"]).tables
    price = rule.fit(tables["val"]).sets(tables["test"]).min_size_price()
    assert f"The switch {price.removeprefix('min_size=1 ')}." in [caption.value for caption in page.caption]
    page.toggle(key="no_empty").set_value(True).run()
    assert not page.exception
    assert page.selectbox(key="rule").value == LAC.title
    assert page.selectbox(key="promise").value == "Average size, or coverage"
    assert page.toggle(key="no_empty").value
    assert page.session_state["rule_confidence"] == 0.6
    page.toggle(key="no_empty").set_value(False).run()
    assert page.selectbox(key="rule").value == "One threshold"
    assert not page.exception
