"""Every view on a desk, a projector, a tablet and a telephone: pictures come first, nothing is cut or jumps, all is reached."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from browsing import arrives, go, pressed, says, serious_violations, settled, too_wide

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

DESK = 1440, 900
SHARES = {DESK: 0.60, (1024, 768): 0.45, (820, 1180): 0.45, (390, 844): 0.35}  # window → least share of pictures
# View → run and what is asked of it, of those whose pictures come first.
ON_STAGE = {
    "start": ("garden", {}),
    "sets": ("garden", {}),
    "samples": ("garden", {}),
    "classes": ("garden", {}),
    "calibration": ("garden", {}),
    "labels": ("many labels", {}),
    "compare": ("garden", {}),
    "runs": ("garden", {}),
    "train": ("garden", {"train": "A new run"}),
    "sweeps": ("garden", {"train": "Sweeps"}),
    "landscapes": ("garden", {"part": "Level sets"}),
    "lessons": ("garden", {"lesson": 3}),
}
# A lesson tells a story beside its picture.
SHARES_OF_LESSONS = {DESK: 0.4, (1024, 768): 0.3, (820, 1180): 0.3, (390, 844): 0.2}
# On a telephone a form comes before its pictures.
SHARES_OF_FORMS = {DESK: 0.6, (1024, 768): 0.45, (820, 1180): 0.4, (390, 844): 0}
ITS_OWN = {"lessons": SHARES_OF_LESSONS, "train": SHARES_OF_FORMS, "sweeps": SHARES_OF_FORMS}
REWARDS = ".st-key-figure-rewards [role=figure]"  # the picture beside a form that comes last: it loads torch
PICTURES = "[role=figure], .wb-wall, .wb-seen, .wb-map-area, .st-key-drawn, .st-key-listed [data-testid=stDataFrame]"
MEASURED = """(pictures) => {
    const [step, wide, high] = [4, innerWidth, innerHeight];
    const [columns, lines] = [Math.ceil(wide / step), Math.ceil(high / step)];
    const seen = new Uint8Array(columns * lines);
    let first = Infinity;
    for (const picture of document.querySelectorAll(pictures)) {
        const { left, right, top, bottom, width, height } = picture.getBoundingClientRect();
        if (width < 2 || height < 2) continue;
        first = Math.min(first, top);
        for (let y = Math.max(0, Math.floor(top / step)); y < Math.min(lines, bottom / step); y += 1)
            seen.fill(1, y * columns + Math.max(0, left / step), y * columns + Math.min(columns, right / step));
    }
    return { share: seen.reduce((sum, one) => sum + one, 0) / seen.length, first };
}"""
# All that has moved since the page was asked for, and what moved farthest. The browser remembers it; the page was not touched.
SHIFTED = """() => {
    const named = ({ node }) => node?.parentElement?.closest("[class*=st-key-]")?.className.match(/st-key-\\S+/)?.[0] ?? "?";
    const observer = new PerformanceObserver(() => {});
    observer.observe({ type: "layout-shift", buffered: true });
    const entries = observer.takeRecords().sort((one, other) => other.value - one.value);
    return [entries.reduce((sum, { value }) => sum + value, 0), (entries[0]?.sources ?? []).map(named).join()];
}"""
FAR = 0.02  # of the window may move: a share of it, times how far
PAGE_OF = {"sweeps": "train"}  # where it is not the name
# The first photograph of each view, where it is not of the page above.
OFF_STAGE = [
    name
    for name in {view: name for name, (view, _) in reversed(SEEN.items())}.values()
    if SEEN[name] not in [(PAGE_OF.get(view, view), asked) for view, (_, asked) in ON_STAGE.items()]
]

# Words that leave the window or their box, or the picture they belong to, where no scrolling reaches them.
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
IN_PLACE = """() => document.getAnimations().every(({ playState }) => playState !== "running")
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


def loaded(opened, view, size):
    """A view in a window of a size, and how far it has moved meanwhile."""
    run, asked = ON_STAGE[view]
    first = REWARDS if view in ("train", "sweeps") else PICTURES
    page = opened(run, view=PAGE_OF.get(view, view), wait_for=first, width=size[0], height=size[1], **asked)
    return page, page.evaluate(SHIFTED)


def too_little(page, view, size):
    """What is wrong with the share of the pictures in a window, and with the place of the first; nothing, if all is well."""
    measured, (_, high) = page.evaluate(MEASURED, PICTURES), size
    least = ITS_OWN.get(view, SHARES)[size]
    first = high if view in ITS_OWN else 160 if size == DESK else high / 2  # a lesson asks first
    return [] if (measured["share"] >= least and measured["first"] <= first) or not least else [(size, measured)]


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
        page.wait_for_function(IN_PLACE)
        wide = too_wide(page)
        found[size] = [f"{wide} px too wide"] * (wide > 0) + page.evaluate(CUT)
    return {size: words for size, words in found.items() if words}


@pytest.mark.parametrize("view", ON_STAGE)
def test_a_view_is_mostly_picture_and_nothing_is_cut_or_jumps_while_it_loads(opened, view):
    page, (moved, what) = loaded(opened, view, DESK)
    wrong = too_little(page, view, DESK)
    for size in list(SHARES)[1:]:
        page.set_viewport_size({"width": size[0], "height": size[1]})
        settled(page)
        wrong += too_little(page, view, size)
    assert wrong == []
    assert moved < FAR, what
    assert cut(page, ("phone", "projector")) == {}


@pytest.mark.parametrize("name", OFF_STAGE)
def test_nothing_of_any_other_view_is_cut_on_a_projector_or_a_telephone(opened, name):
    assert cut(seen(opened, name), ("projector", "phone")) == {}


@pytest.mark.long
@pytest.mark.parametrize("size", SHARES)
@pytest.mark.parametrize("view", ON_STAGE)
def test_nothing_jumps_on_any_screen_when_a_view_is_loaded_and_loaded_again(opened, view, size):
    page, first = loaded(opened, view, size)
    page.reload()
    page.wait_for_selector(PICTURES)
    settled(page)
    assert (first[0] < FAR, page.evaluate(SHIFTED)[0] < FAR) == (True, True), first


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


def test_a_click_on_the_curve_sets_K_and_a_picture_fills_the_screen_follows_its_sliders_and_comes_back(opened):
    page = opened(K=2)
    page.locator(".st-key-figure-curve .wb-picture").evaluate(
        """picture => {
            const trace = picture._fullData.findIndex(({ name }) => name === "average-K");
            const point = picture._fullData[trace].customdata.findIndex(([K]) => K === 4);
            const customdata = picture._fullData[trace].customdata[point];
            picture.emit("plotly_click", { points: [{ curveNumber: trace, pointNumber: point, customdata }] });
        }"""
    )
    page.wait_for_function("new URL(location).searchParams.get('K') === '4'")
    settled(page)
    picture = page.locator(".st-key-figure-sizes .wb-picture")
    type_of = "picture => picture._fullLayout.font.size"
    small, name = picture.evaluate(type_of), page.locator(".wb-slider .wb-name").first
    letters = "name => parseFloat(getComputedStyle(name).fontSize)"
    small_letters = name.evaluate(letters)
    picture.press("f")
    page.wait_for_function("document.fullscreenElement?.querySelector('.wb-filled .wb-picture')")
    settled(page)
    assert picture.evaluate(type_of) > small
    assert name.evaluate(letters) > small_letters
    assert picture.bounding_box()["height"] > 500
    slider = page.locator("input[name=K]")
    in_sight = """input => {
        const { left, top, width, height } = input.getBoundingClientRect();
        return document.elementFromPoint(left + width / 2, top + height / 2) === input;
    }"""
    assert slider.evaluate(in_sight), "the bar stays above the picture"
    said = page.locator(".wb-filled .wb-subtitle")
    before = said.inner_text()
    pressed(page, "K", "ArrowRight", times=5)
    assert said.inner_text() != before
    picture.press("f")
    page.wait_for_function("!document.fullscreenElement && !document.querySelector('.wb-filled')")
    settled(page)
    assert picture.evaluate(type_of) == small
    go(page, "Classes")
    settled(page)
    # arrow keys go through the cells of a map
    cells = page.locator(".st-key-figure-shared .wb-picture:has(.heatmaplayer .hm)")
    said = cells.locator("xpath=..").locator("[aria-live]")
    cells.focus()
    cells.press("ArrowRight")
    says(said, "nothing here")  # of a class and itself
    cells.press("ArrowRight")
    says(said, "also hold")
    page.locator(".wb-figure .wb-picture").first.press("f")
    page.wait_for_function("document.fullscreenElement?.querySelector('.wb-filled .wb-picture')")
    page.go_back()  # the picture goes, and the full screen with it
    arrives(page, "Sets")
    page.wait_for_function("!document.fullscreenElement && !document.documentElement.matches('.wb-full')")


def test_night_is_chosen_in_the_rail_holds_in_every_view_and_goes_as_it_came(opened):
    page = opened(K=2)
    paper = "getComputedStyle(document.querySelector('.stApp')).backgroundColor"
    by_day = page.evaluate(paper)
    page.get_by_role("button", name="Night colours").click()
    page.get_by_role("button", name="Daylight colours").wait_for()
    settled(page)
    assert page.evaluate(paper) != by_day
    assert "K=2" in page.url
    page = opened(view="classes")
    assert page.evaluate(paper) != by_day
    page.get_by_role("button", name="Daylight colours").click()
    page.get_by_role("button", name="Night colours").wait_for()
    settled(page)
    assert page.evaluate(paper) == by_day
    assert page.evaluate("localStorage.getItem('workbench theme')") is None  # as the machine has it


def test_a_row_opens_where_one_is_with_its_neighbours_and_beside_another_rule(opened):
    page = opened("sharper", K=2, show="missed")
    first, second = (page.locator(".wb-open").nth(place).inner_text().removeprefix("open row ") for place in (0, 1))
    assert page.locator(".wb-card").first.locator(".wb-right").first.is_visible()  # the truth, though the set misses it
    page.locator(".wb-open").first.press("Enter")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(f"Test row {first}").wait_for()
    assert dialog.get_by_role("button", name="Previous").is_disabled()
    dialog.get_by_role("button", name="Next").click()
    dialog.get_by_text(f"Test row {second}").wait_for()
    page.wait_for_function(f"new URL(location).searchParams.get('row') === '{second}'")
    dialog.get_by_role("combobox", name="Compare this set with").click()
    page.get_by_role("option", name="Top-K, K = 2").click()
    dialog.locator(".wb-beside .wb-card").nth(1).wait_for()
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    assert page.get_by_role("heading", name="Sets", exact=True).is_visible()
    page.wait_for_function("!new URL(location).searchParams.has('row')")
