"""Back, forward and the keys at the end of a slider, in a real browser."""

from __future__ import annotations

import pytest
from browsing import KEYS, click, numbers, pressed, reads, settled

pytestmark = pytest.mark.browser


def go(page, view):
    click(page.get_by_role("link", name=view, exact=True))
    arrived(page, view)


def arrived(page, view):
    page.get_by_role("heading", name=view, exact=True, level=1).wait_for()
    page.wait_for_selector(".wb-figure, .wb-drawing")
    settled(page)


def choose(page, label, option):
    click(page.get_by_role("combobox", name=label, exact=True))
    click(page.get_by_role("option", name=option, exact=True))


def says(page, **asked):
    """Wait until the address says so; None: that it says nothing."""
    page.wait_for_function(
        """asked => Object.entries(asked).every(
            ([name, value]) => new URL(location).searchParams.get(name) === value
        )""",
        arg=asked,
    )
    settled(page)


def test_back_and_forward_restore_the_run_the_rule_and_the_other_run_that_were_chosen_there(opened):
    garden, sharper = KEYS["garden"][:12], KEYS["sharper"][:12]
    page = opened(K=2, other=sharper)
    go(page, "Classes")
    choose(page, "Run", "sharper")
    says(page, run=sharper)
    click(page.get_by_role("radio", name="Top-K", exact=True))
    says(page, rule="Top-K")
    page.go_back()
    says(page, run=sharper, rule=None)
    page.go_back()
    says(page, run=garden, rule=None)
    page.go_back()
    arrived(page, "Sets")
    says(page, run=garden, other=sharper, rule=None, K="2")
    assert page.get_by_role("combobox", name="Run", exact=True).input_value() == "garden"
    assert numbers(page)["K"] == "2.00"
    page.go_forward()
    arrived(page, "Classes")
    page.go_forward()
    says(page, run=sharper)
    page.go_forward()
    says(page, run=sharper, rule="Top-K")
    assert page.get_by_role("combobox", name="Run", exact=True).input_value() == "sharper"


def test_home_takes_over_a_linked_slider_that_stands_at_its_end(opened):
    page = opened(K=2)
    pressed(page, "K", "End")  # where the threshold stands at its lower end
    lowest = page.locator("input[name=threshold]")
    assert lowest.input_value() == "0"
    pressed(page, "threshold", "Home")
    says(page, K=None)
    assert page.locator(".wb-slider.wb-held input").get_attribute("name") == "threshold"


def test_back_undoes_the_last_move_and_reset_brings_the_defaults_back(opened):
    page = opened(K=3)
    pressed(page, "K", "ArrowRight")
    says(page, K="3.1")
    click(page.get_by_role("radio", name="shots", exact=True))
    says(page, by="shots")
    click(page.get_by_role("radio", name="Top-K", exact=True))
    says(page, rule="Top-K")
    page.go_back()
    says(page, rule=None, by="shots", K="3.1")
    page.go_back()
    says(page, by=None, K="3.1")
    page.go_back()
    says(page, K="3")
    reads(page, {"Target K": "3.00"})
    page.go_forward()
    says(page, K="3.1")
    reads(page, {"Target K": "3.10"})
    click(page.get_by_role("radio", name="shots", exact=True))
    says(page, by="shots")
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    click(page.get_by_role("button", name="Copy link"))
    page.get_by_role("button", name="Copied").wait_for()
    assert page.evaluate("window.copied") == page.url
    click(page.get_by_test_id("stSidebarUserContent").get_by_role("button", name="Reset"))
    says(page, by=None, K="5", run=KEYS["garden"][:12])
    page.get_by_role("radio", name="all rows", exact=True, checked=True).wait_for()
    assert page.title() == "Sets · garden"
