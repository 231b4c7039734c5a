"""Back and forward, in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest
from browsing import KEYS, click, numbers, pressed, reads, settled
from waiting import eventually

pytestmark = pytest.mark.browser
APP = Path(__file__).resolve().parents[2] / "app"


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


def shows_run(page, name):
    """Wait until a run is chosen: the address changes at once, and Python answers it a moment later."""

    def chosen():
        assert page.get_by_role("combobox", name="Run", exact=True).input_value() == name

    eventually(page, chosen)
    settled(page)


def test_back_and_forward_restore_the_run_the_rule_and_the_other_run_that_were_chosen_there(opened):
    garden, sharper = KEYS["garden"][:12], KEYS["sharper"][:12]
    page = opened(K=2, other=sharper)
    go(page, "Classes")
    choose(page, "Run", "sharper")
    says(page, run=sharper)
    choose(page, "What is promised", "Size of every set")
    says(page, rule="Top-K")
    page.go_back()
    says(page, run=sharper, rule=None)
    page.go_back()
    says(page, run=garden, rule=None)
    page.go_back()
    arrived(page, "Sets")
    says(page, run=garden, other=sharper, rule=None, K="2")
    shows_run(page, "garden")
    assert numbers(page)["K"] == "2.00"
    page.go_forward()
    arrived(page, "Classes")
    page.go_forward()
    says(page, run=sharper)
    page.go_forward()
    says(page, run=sharper, rule="Top-K")
    shows_run(page, "sharper")


def test_back_undoes_the_last_move_and_reset_brings_the_defaults_back(opened):
    page = opened(K=3)
    pressed(page, "K", "ArrowRight")
    says(page, K="3.1")
    click(page.get_by_role("radio", name="shots", exact=True))
    says(page, by="shots")
    choose(page, "What is promised", "Size of every set")
    says(page, rule="Top-K")
    page.go_back()
    says(page, rule=None, by="shots", K="3.1")
    page.go_back()
    says(page, by=None, K="3.1")
    page.go_back()
    says(page, K="3")
    reads(page, {"K": "3.00"})
    page.go_forward()
    says(page, K="3.1")
    reads(page, {"K": "3.10"})
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


@pytest.fixture
def alone(browser, monkeypatch):
    """A page with nothing but our history, which a test writes to as Streamlit would."""
    monkeypatch.syspath_prepend(str(APP))
    from streamlit_patches import HISTORY

    page = browser.new_page()
    page.route(
        "http://history.test/**",
        lambda route: route.fulfill(body=f"<script>{HISTORY}</script>", content_type="text/html"),
    )
    page.goto("http://history.test/sets?K=2")
    page.evaluate("move = url => { dispatchEvent(new Event('pointerdown')); history.pushState({}, '', url); }")
    yield page
    page.close()


@pytest.mark.parametrize("late", ["/sets?K=2&run=a", "/classes?run=a", "/classes"])
@pytest.mark.parametrize("touched", [False, True])
def test_what_arrives_late_after_back_takes_no_entry_away_that_lies_ahead(alone, late, touched):
    alone.evaluate("move('/classes?K=2')")
    if touched:  # a touch that changed no address
        alone.evaluate("dispatchEvent(new Event('pointerdown'))")
    alone.go_back()
    alone.evaluate("late => history.pushState({}, '', late)", late)
    alone.evaluate("history.pushState({}, '', '/sets?K=2&run=a')")  # what the view itself says at last
    assert alone.url.endswith("/sets?K=2&run=a")
    alone.go_forward()
    assert alone.url.endswith("/classes?K=2")


def test_a_move_after_back_is_an_entry_of_its_own(alone):
    alone.evaluate("move('/classes?K=2')")
    alone.go_back()
    alone.evaluate("move('/sets?K=3')")
    alone.go_back()
    assert alone.url.endswith("/sets?K=2")


@pytest.mark.parametrize("late", ["/samples?K=2", "/sets?K=9"])
def test_an_answer_that_arrives_in_another_entry_does_not_change_it_for_good(alone, late):
    """Back twice, and between the two the answer to an earlier step: Forward comes to the entry in the middle."""
    alone.evaluate("move('/sets?K=3')")
    alone.evaluate("move('/classes?K=3')")
    alone.go_back()
    alone.evaluate("late => history.pushState({}, '', late)", late)
    alone.go_back()
    alone.wait_for_url("**/sets?K=2")
    alone.go_forward()
    alone.wait_for_url("**/sets?K=3")
    alone.go_forward()
    alone.wait_for_url("**/classes?K=3")
