"""The Lessons view in a real browser: a lecture can be given with it, and its numbers are those of the library."""

from __future__ import annotations

import re

import numpy as np
import pytest
from browsing import (
    asks,
    click,
    figure,
    in_address,
    pressed,
    reads,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)

import workbench as wb
from workbench.lessons import LESSONS
from workbench.store import DEMO, Store

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def garden():
    """The tables of the first lesson."""
    return {run.title: run for run in Store(DEMO).runs()}[LESSONS[0].runs[0]].tables


def heading(page, number: int) -> None:
    page.get_by_role("heading", name=f"{number} · {LESSONS[number - 1].title}").first.wait_for()
    settled(page)


def test_the_first_lesson_has_one_slider_and_its_sets_of_flowers_follow_it(opened, garden):
    page = opened(view="lessons", wait_for=".st-key-figure-organs .wb-figure", embed="true", answer="true")
    heading(page, 1)
    assert serious_violations(page) == []
    assert page.locator("input[type=range]").count() == 1
    assert not page.locator("[data-testid=stSidebar]").is_visible()
    for sentence in LESSONS[0].sentences:
        assert page.get_by_text(sentence.replace("*", "")).is_visible()
    assert page.locator(".st-key-answer-in-words").inner_text() == LESSONS[0].answer(garden)

    pressed(page, "K", "ArrowLeft", times=5)
    sets = wb.AverageK(2.5).fit(garden["val"]).sets(garden["test"])
    reads(page, {"Mean size": f"{wb.metrics.mean_size(sets):.2f}", "Accuracy": f"{wb.metrics.accuracy(sets):.1%}"})
    flowers = np.flatnonzero(garden["test"].attributes["organs"] == "flower")[:6]
    shown = [int(card.get_attribute("data-size")) for card in page.locator(".wb-card").all()]
    assert shown == sets.sizes[flowers].tolist()

    made = {}
    exec(shown_code(page.locator(".st-key-figure-organs")), made)
    expected = np.isin(garden["test"].attributes["organs"], ["flower", "leaf", "fruit", "bark"])
    assert made["figure"].frame["count"].sum() == expected.sum()
    for trace, (_, part) in zip(figure(page, "organs")["data"], made["figure"].frame.groupby("group"), strict=True):
        last = len(trace["y"]) - 1
        shares = np.bincount(np.minimum(part["size"], last), part["share"], minlength=last + 1)
        np.testing.assert_allclose(trace["y"], shares, atol=1e-6)


def test_a_lecture_is_given_with_the_keyboard_and_every_lesson_has_a_link(opened, garden):
    page = opened(view="lessons", lesson=2, answer="true", width=1024, scheme="dark", wait_for=".wb-figure")
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    assert page.locator(".st-key-answer-in-words").is_visible()
    sets, point = wb.AverageK(3.0).fit(garden["val"]).sets(garden["test"]), figure(page, "curve")["shapes"][0]
    assert (point["xanchor"], point["yanchor"]) == pytest.approx((sets.sizes.mean(), sets.hits.mean()))
    page.keyboard.press("PageDown")
    heading(page, 3)
    page.wait_for_url(lambda address: "lesson=3" in address and "answer" not in address)
    slider = page.get_by_test_id("stSlider").get_by_role("slider")
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_url("**epsilon=**")
    epsilon = float(in_address(page)["epsilon"][0])
    page.locator(".st-key-figure-levels .wb-subtitle", has_text=f"ε = {epsilon:g}").wait_for()

    click(page.get_by_role("heading").first)  # leave the slider, which has a use for the key itself
    page.keyboard.press("PageDown")
    heading(page, 4)
    demo = {run.title: run.tables for run in Store(DEMO).runs()}
    before, after = (wb.AverageK(3.0).fit(demo[t]["val"]).sets(demo[t]["test"]) for t in LESSONS[3].runs)
    gains = wb.figures.most_improved(before, after).ends()
    np.testing.assert_allclose(figure(page, "improved")["data"][0]["x"], 100 * gains["difference"], atol=1e-4)
    page.get_by_test_id("stSlider").get_by_role("slider").press("ArrowRight")
    page.wait_for_url("**alpha=**")
    alpha = float(in_address(page)["alpha"][0])
    page.locator(".st-key-figure-levels .wb-subtitle", has_text=f"α = {alpha:.3g}").wait_for()
    click(page.get_by_role("heading").first)
    page.keyboard.press("PageUp")
    heading(page, 3)


@pytest.mark.writes
def test_the_last_lesson_takes_its_alpha_to_the_live_panel_with_one_button(opened):
    alpha = wb.losses.AverageKTwoHead.knobs()["alpha"].snapped(0.3)
    page = opened(view="lessons", lesson=4, alpha=alpha, wait_for=".st-key-figure-improved")
    click(page.get_by_role("button", name=f"Train a head with α = {alpha:g}"))
    page.get_by_role("heading", name="Train", level=1).first.wait_for()
    page.get_by_role("combobox", name="Loss").wait_for()
    base = {run.title: run.key for run in Store(DEMO).runs()}[LESSONS[3].runs[0]]
    asks(page, run=base[:12], live_AverageKTwoHead_alpha=f"{alpha:g}")
    for symbol, value in (("α", alpha), ("K", 3.0)):
        shown = page.get_by_role("slider", name=re.compile(f"^{symbol}")).first
        assert shown.get_attribute("aria-valuetext") == f"{value:g}"
    says(page, f"AverageKTwoHead(K=3, alpha={alpha:g})")  # it is being trained, or was already
