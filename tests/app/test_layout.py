"""Every view on a desk, a projector, a tablet and a telephone: nothing is cut, all is reached by keyboard and finger."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from browsing import KEYS, says, serious_violations, settled, too_wide

pytestmark = pytest.mark.browser

PHOTOGRAPHED = runpy.run_path(str(Path(__file__).resolve().parents[2] / "docs" / "views.py"))
SIZES = PHOTOGRAPHED["SIZES"]
# View and what is asked of it → the run; all others are of the garden.
OF_MANY_LABELS = ("labels",)
SEEN = {
    name: (view or "start", asked)
    for name, (view, _, asked) in PHOTOGRAPHED["VIEWS"].items()
    if name not in ("train live", "weight space", "lesson 2", "two losses")  # which train, compute, or look like others
}

# Words that leave the window or their box, or the picture they belong to, where nobody can scroll to them.
CUT = """() => {
    const cut = [];
    const shown = (e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && e.clientWidth !== 1;
    const slides = (e) => /auto|scroll/.test(getComputedStyle(e).overflowX) && !e.matches(".stMain");
    const scrolls = (e) => e && (slides(e) || scrolls(e.parentElement));
    const words = (e) => [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data.trim()).join(" ").trim();
    for (const e of document.querySelectorAll(".stMain *, [role=dialog] *")) {
        if (e.closest("svg") || !words(e) || !shown(e) || e.closest(".wb-spoken, .wb-meaning, style, script, .katex")) continue;
        const box = e.getBoundingClientRect(), look = getComputedStyle(e);
        const leaves = (box.right > innerWidth + 1 || box.left < -1) && !scrolls(e.parentElement);
        const hidden = look.overflowX !== "visible" && look.textOverflow !== "ellipsis" && e.scrollWidth > e.clientWidth + 2;
        if (leaves || (hidden && !scrolls(e))) cut.push(words(e).slice(0, 60));
    }
    for (const picture of document.querySelectorAll(".wb-picture")) {
        const around = picture.getBoundingClientRect();
        for (const text of picture.querySelectorAll("svg text")) {
            const box = text.getBoundingClientRect();
            if (!text.textContent.trim() || !box.width || text.closest(".hoverlayer")) continue;
            const beside = box.left < around.left - 2 || box.right > around.right + 2;
            const beyond = box.top < around.top - 2 || box.bottom > around.bottom + 2;
            if (beside || beyond) cut.push(`in a picture: ${text.textContent.slice(0, 60)}`);
        }
    }
    return cut;
}"""
# No sidebar is on its way, and every table has followed it.
STILL = """() => document.getAnimations().every(({ playState }) => playState !== "running")
    && [...document.querySelectorAll("[data-testid=stDataFrame]")]
        .every((table) => table.offsetWidth <= table.closest("[data-testid=stElementContainer]").clientWidth + 1)"""
# What a finger, or a hand that shakes, cannot hit; links within a sentence have its height.
SMALL = """() => [...document.querySelectorAll(".stMain :is(button, input, a[href], [role=button], [role=radio], [role=tab])")]
    .filter((e) => e.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !e.closest("p a, .js-plotly-plot"))
    .filter((e) => !(e.matches("input[type=checkbox], input[type=radio]") && e.closest("label")))
    .filter((e) => e.getBoundingClientRect().width > 1 && !e.closest("[data-testid=stSlider]"))
    .filter((e) => { const b = e.getBoundingClientRect(); return Math.min(b.width, b.height) < 23.5; })
    .map((e) => `${e.tagName} ${e.getAttribute("aria-label") ?? e.textContent.slice(0, 40)} ${e.dataset.testid ?? ""}`)"""
STOPS = """() => [...document.querySelectorAll(".wb-figure, .wb-drawing")]
    .map((figure) => [...figure.querySelectorAll("*")].filter((e) => e.tabIndex >= 0 && e.checkVisibility()).length)"""
WITHOUT_CODE = """() => [...document.querySelectorAll(".wb-figure, .wb-drawing")]
    .filter((e) => !e.closest("[class*=st-key-figure-]")?.textContent.includes("Code and download"))
    .map((e) => e.querySelector(".wb-title").textContent)"""


def seen(opened, name, scheme="light"):
    """A view as it is photographed; a lesson tells its answer."""
    view, asked = SEEN[name]
    run = "many labels" if view in OF_MANY_LABELS else "garden"
    page = opened(run, view=view, wait_for=".stMain :is(h1, h2):visible", scheme=scheme, **asked)
    page.keyboard.press("r")
    return page


def cut(page, sizes):
    """Size → what is cut there, if anything is."""
    found = {}
    for size in sizes:
        page.set_viewport_size(SIZES[size]._asdict())
        settled(page)
        page.wait_for_function(STILL)
        wide = too_wide(page)
        found[size] = [f"{wide} px too wide"] * (wide > 0) + page.evaluate(CUT)
    return {size: words for size, words in found.items() if words}


@pytest.mark.parametrize("name", {view: name for name, (view, _) in reversed(SEEN.items())}.values())
def test_nothing_of_a_view_is_cut_on_a_projector_or_a_telephone(opened, name):
    assert cut(seen(opened, name), ("projector", "phone")) == {}


@pytest.mark.long
@pytest.mark.parametrize("name", SEEN)
def test_nothing_is_cut_on_any_screen_and_everything_can_be_reached(opened, name):
    page = seen(opened, name)
    assert cut(page, SIZES) == {}
    assert page.evaluate(SMALL) == []
    assert set(page.evaluate(STOPS)) <= {1}
    assert page.evaluate(WITHOUT_CODE) == []
    assert serious_violations(page) == []


@pytest.mark.long
@pytest.mark.parametrize("name", SEEN)
def test_everything_can_be_read_by_night(opened, name):
    assert serious_violations(seen(opened, name, scheme="dark")) == []


def test_a_picture_is_read_with_the_arrow_keys_and_opens_what_enter_asks_for(opened):
    page = opened(K=2)
    picture = page.locator(".st-key-figure-sizes .wb-picture")
    picture.focus()
    said = page.locator(".st-key-figure-sizes [aria-live]")
    while not (before := said.text_content()).startswith("2 classes"):
        picture.press("ArrowRight")
        page.wait_for_function(
            "before => document.querySelector('.st-key-figure-sizes [aria-live]').textContent !== before", arg=before
        )
    picture.press("Enter")
    page.get_by_role("heading", name="Samples", exact=True).wait_for()
    page.wait_for_function("new URL(location).searchParams.getAll('size').join() === '2,2'")


def test_arrow_keys_go_through_the_cells_of_a_map(opened):
    page = opened(view="classes")
    cells = page.locator(".wb-picture:has(.heatmaplayer .hm)")
    said = cells.locator("xpath=..").locator("[aria-live]")
    cells.focus()
    cells.press("ArrowRight")
    says(said, "nothing here")  # of a class and itself
    cells.press("ArrowRight")
    says(said, "also hold")


def test_a_click_on_the_curve_of_K_sets_K(opened):
    page = opened(K=2)
    picture = page.locator(".st-key-figure-curve .wb-picture")
    picture.evaluate(
        """picture => {
            const trace = picture._fullData.findIndex(({ name }) => name === "average-K");
            const point = picture._fullData[trace].customdata.findIndex(([K]) => K === 4);
            const customdata = picture._fullData[trace].customdata[point];
            picture.emit("plotly_click", { points: [{ curveNumber: trace, pointNumber: point, customdata }] });
        }"""
    )
    page.wait_for_function("new URL(location).searchParams.get('K') === '4'")


def test_a_picture_fills_the_screen_and_comes_back(opened):
    page = opened(K=2)
    picture = page.locator(".st-key-figure-sizes .wb-picture")
    picture.press("f")
    page.wait_for_function("document.fullscreenElement?.querySelector('.wb-picture')")
    picture.press("f")
    page.wait_for_function("!document.fullscreenElement")


def test_a_row_opens_where_one_is_with_its_neighbours_and_beside_another_rule(opened):
    page = opened("sharper", K=2, show="misses")
    first, second = (page.locator(".wb-open").nth(place).inner_text().removeprefix("open row ") for place in (0, 1))
    assert page.locator(".wb-card").first.locator(".wb-right").first.is_visible()  # the truth, though the set misses it
    page.locator(".wb-open").first.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"Test row {first}").wait_for()
    assert dialog.get_by_role("button", name="Previous").is_disabled()
    dialog.get_by_role("button", name="Next").click()
    dialog.get_by_text(f"Test row {second}").wait_for()
    page.wait_for_function(f"new URL(location).searchParams.get('row') === '{second}'")
    dialog.get_by_role("combobox", name="Its set beside that of").click()
    page.get_by_role("option", name="Top-K, K = 2").click()
    dialog.locator(".wb-beside .wb-card").nth(1).wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.get_by_role("heading", name="Sets", exact=True).is_visible()
    page.wait_for_function("!new URL(location).searchParams.has('row')")


def test_the_best_temperature_is_one_click_away(opened):
    page = opened(view="calibration", T=2)
    button = page.get_by_role("button", name="Best T on the validation rows")
    best = button.inner_text().split()[-1]
    button.click()
    page.wait_for_function(f"document.querySelector('.st-key-T input').getAttribute('aria-valuetext') === '{best}'")
    assert KEYS["garden"][:12] in page.url
