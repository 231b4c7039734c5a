"""The Landscapes view: every number on the page is the number the library gives, and nothing jumps."""

from __future__ import annotations

import inspect
import itertools
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from browsing import asks, choose, click, click_in, says, serious_violations, settled, shown_code, tab, too_wide
from waiting import eventually

import workbench as wb
from workbench.app_server import start_server
from workbench.figures.losses.evaluation import on_three_classes
from workbench.losses import LOSSES

APP = Path(__file__).resolve().parents[2] / "app"


@pytest.fixture
def views(monkeypatch):
    """The modules of the view, without a server."""
    monkeypatch.syspath_prepend(str(APP))
    from views.landscapes import loss_controls, studio

    return SimpleNamespace(**vars(loss_controls), one_step_further=studio.one_step_further)


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_every_position_of_every_slider_is_a_loss_that_can_be_drawn(views, loss_class):
    knobs = views.knobs_on_triangle(views.Setting(loss_class.__name__, {}))
    assert list(knobs) == list(loss_class.knobs())
    first = {name: value for name, (_, value) in knobs.items()}
    for name, (knob, _) in knobs.items():
        ends = [(1.0, 0.0), (0.0, 1.0)] if knob.kind == "weights" else knob.ends()
        for end in ends:
            figure = wb.figures.level_sets(loss_class(**{**first, name: end}), steps=5)
            assert np.isfinite(figure.frame["value"]).all()


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_a_loss_opens_as_the_gallery_shows_it(views, loss_class):
    first = {
        name: value for name, (_, value) in views.knobs_on_triangle(views.Setting(loss_class.__name__, {})).items()
    }
    assert loss_class(**first) == on_three_classes(loss_class)


def test_losses_of_equal_knobs_and_different_classes_have_different_recipes(views):
    from drawing.loss_figures import Setting, recipe

    hinge, calibrated = (recipe("level_sets", Setting(name, {"K": 2})) for name in ("TopKHinge", "CalibratedTopKHinge"))
    assert hinge != calibrated


def test_the_picture_made_ahead_is_where_the_slider_goes_next(views):
    from drawing.loss_figures import Setting

    grid = wb.losses.ExactNoisedTopK.knobs()["epsilon"].values().tolist()
    settings = [Setting("ExactNoisedTopK", {"K": 2, "epsilon": epsilon}) for epsilon in grid]
    assert views.one_step_further(settings[4], settings[5]) == settings[6]
    assert views.one_step_further(settings[7], settings[6]) == settings[5]
    assert views.one_step_further(settings[5], settings[5]) == settings[5]
    assert views.one_step_further(settings[-2], settings[-1]) == settings[-1]


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_the_text_about_every_loss_has_its_formulas_between_lines_of_their_own_and_no_examples(views, loss_class):
    doc = inspect.getdoc(loss_class)
    lines = views.in_markdown(doc).splitlines()
    assert lines.count("$$") == doc.count("$$") >= 2
    assert not [line for line in lines if "$$" in line and line != "$$"]
    assert ">>>" not in views.in_markdown(doc)


def test_a_loss_whose_weights_are_fewer_on_the_triangle_says_so(drawn):
    page = drawn("landscapes", part="Level sets", loss=wb.losses.DifferentiableTopK.title)
    assert "two weights here, 5 at first in training" in " ".join(caption.value for caption in page.caption)


def test_the_ends_of_a_scale_only_grow(views):
    from drawing.loss_figures import Setting, recipe

    small, large = (recipe("line_profile", Setting("LDAM", {"scale": scale})) for scale in (1.0, 30.0))
    low = views.wide_enough([small], None)
    assert views.wide_enough([large], low) == views.wide_enough([small, large], None) == (0.0, 150.0)
    assert views.wide_enough([small], (0.0, 150.0)) == (0.0, 150.0)


def test_a_formula_is_a_loss_of_its_own_whose_knobs_are_those_that_it_reads(drawn, views):
    formula = "relu(a + max(s_others) - s_y)"
    page = drawn("landscapes", part="Level sets", loss="Own formula", loss_formula=formula, beside="Top-K hinge")
    assert page.query_params["loss_formula"] == formula
    keys = [slider.key for slider in page.select_slider]
    assert {key for key in keys if "_" in key} == {"Formula_a", "right_TopKHinge_K"}
    own = views.Setting("Formula", {"expression": formula})
    assert list(views.knobs_on_triangle(own)) == ["expression", "a"]


def test_a_formula_with_a_mistake_is_answered_and_the_last_one_stays_drawn(drawn):
    page = drawn("landscapes", part="Level sets", loss="Own formula", loss_formula="sum(s**2) - s_y")
    for typed, read, wrong in (("sum(s**2) - s_z", "sum(s**2) - s_y", 1), ("sum(s) - 2 * s_y", "sum(s) - 2 * s_y", 0)):
        page.text_input(key="loss_formula").set_value(typed).run()
        said = [error.value.replace("\\", "") for error in page.error]
        assert ["'s_z' is not known" in each for each in said] == [True] * wrong
        assert page.text_input(key="loss_formula").value == typed
        assert page.session_state["levels seen"][0].knobs == {"expression": read}


def test_losses_of_an_allowed_module_are_offered_and_those_of_others_are_never_imported(drawn, monkeypatch, tmp_path):
    text = "from workbench.losses import Focal\nclass Blurred(Focal):\n    '''Mine.'''\n    title = 'Blurred'\n"
    (tmp_path / "course_losses.py").write_text(text, encoding="utf-8")
    (tmp_path / "your_losses.py").write_text("raise SystemExit('imported')", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("WORKBENCH_ALLOW", "course_losses")
    page = drawn("landscapes", part="Level sets", loss="Blurred", **{"course_losses:Blurred_gamma": "1"})
    assert page.session_state["levels seen"][0] == ("course_losses:Blurred", {"gamma": 1.0})
    page = drawn("landscapes", part="Level sets", loss="your_losses:Loss")
    assert any("your_losses" in warning.value.replace("\\", "") for warning in page.warning)


def sent(app):
    """What a page that `AppTest` drew sends to the browser, in one text."""
    return " ".join(
        json.dumps(json.loads(each.proto.json), ensure_ascii=False)
        for each in app.get("bidi_component")
        if each.proto.json
    )


def test_a_law_that_would_sum_to_more_than_one_is_cut_and_the_page_says_so(drawn):
    page = drawn("landscapes", part="Conditional risk", pi0="0.9", pi1="0.9")
    assert "π = (0.9, 0.1, 0)" in sent(page)
    assert any("π₀ leaves 0.1 for π₁, which is what is drawn." in caption.value for caption in page.caption)


def test_the_page_says_where_too_much_noise_breaks_calibration(drawn):
    epsilon = wb.losses.NoisedTopK.knobs()["epsilon"].snapped(1.5)
    page = drawn("landscapes", part="Conditional risk", NoisedTopK_epsilon=f"{epsilon:g}")
    assert "leaving {0, 1} is free" in sent(page)
    assert "free for 100%" in sent(page)


def test_scores_without_weights_are_told_so_in_the_weight_space(drawn):
    page = drawn("landscapes", part="Weight space")
    assert any("so nothing can be moved" in text.value for text in (*page.info, *page.markdown, *page.caption))
    assert not [button.label for button in page.button if button.label.startswith("Compute")]


# In a browser

EVERY_TEXT = f"""
import inspect, sys
sys.path.insert(0, {str(APP)!r})
import streamlit as st
from views.landscapes.loss_controls import in_markdown
from workbench.losses import LOSSES
for loss_class in LOSSES:
    st.markdown(in_markdown(inspect.getdoc(loss_class)))
st.text("That was all.")
"""


@pytest.mark.browser
def test_the_formulas_of_every_loss_are_set_and_none_is_shown_raw(browser, own_port, tmp_path):
    """All 22 at once, on a page that shows nothing else: one by one they would be 22 pictures."""
    (tmp_path / "texts.py").write_text(EVERY_TEXT, encoding="utf-8")
    port = own_port()
    options = ["--server.headless=true", "--server.fileWatcherType=none", "--browser.gatherUsageStats=false"]
    command = [sys.executable, "-m", "streamlit", "run", str(tmp_path / "texts.py"), f"--server.port={port}", *options]
    with (tmp_path / "log").open("w") as log, start_server(command, port, {}, folder=tmp_path, log=log) as server:
        page = tab(browser)
        page.goto(server.url)
        says(page, "That was all.")
        displayed = sum(inspect.getdoc(loss_class).count("$$") // 2 for loss_class in LOSSES)
        page.wait_for_function(f"document.querySelectorAll('.katex-display').length === {displayed}")
        assert page.locator(".katex-error").all_inner_texts() == []
        assert "$$" not in page.locator("body").inner_text()
        page.goto("about:blank")


@pytest.fixture
def landscapes(opened):
    """`landscapes("Level sets", width=1024, label=0)`: the page, drawn; it may not complain."""

    def open_page(part=None, **asked):
        asked = {"part": part, **asked} if part else asked
        return opened(view="landscapes", **asked)

    return open_page


def said(page, name, text):
    """Wait until the subtitle of a picture says this."""
    says(page.locator(f".st-key-figure-{name} .wb-subtitle"), text)
    settled(page)


def shown(page, name):
    """What Plotly holds: the numbers under the pointer, the ends of the axes, the ends of the colours."""
    return page.locator(f".st-key-figure-{name} .wb-picture").evaluate(
        """picture => {
            const hover = picture._fullData.find((trace) => trace.customdata && trace.opacity === 0);
            const bar = picture._fullData.find((trace) => trace.marker?.showscale);
            const { xaxis, yaxis } = picture._fullLayout;
            return {
                numbers: Array.from(hover?.customdata ?? []),
                scores: Array.from(hover?.text ?? []),
                axes: [Array.from(xaxis.range), Array.from(yaxis.range), picture.clientHeight],
                colours: [bar.marker.cmin, bar.marker.cmax],
            };
        }"""
    )


def assert_shows(page, name, frame):
    """The numbers under the pointer are those of the frame, at every second of its grid points a side."""
    now = shown(page, name)
    known = {f"s = ({a:.2f}, {b:.2f}, {c:.2f})": value for a, b, c, value in frame.iloc[:, :4].to_numpy()}
    assert len(now["numbers"]) == len({*now["scores"]}) == 51 * 52 / 2
    np.testing.assert_allclose(now["numbers"], [known[scores] for scores in now["scores"]], atol=1e-6)


def moved(page, key, times=1, arrow="ArrowRight"):
    """Press an arrow on a slider."""
    page.locator(f".st-key-{key} input[type=range]").focus()
    for _ in range(times):
        page.keyboard.press(arrow)


def stand_on_one_line(page):
    """Two triangles fill their columns, and axe finds nothing serious."""
    left, right = (page.locator(f".st-key-figure-levels-{place} .wb-picture") for place in (0, 1))
    assert left.bounding_box()["y"] == pytest.approx(right.bounding_box()["y"])
    assert left.evaluate("picture => picture._fullLayout.xaxis._length / picture.clientWidth") > 0.9
    assert serious_violations(page) == []


@pytest.mark.browser
def test_the_story_begins_with_two_classes_and_no_part_of_it_is_wider_than_a_small_laptop(landscapes):
    page = landscapes("Surrogates", width=1024)
    assert page.get_by_role("figure", name="Surrogates of the error").is_visible()
    assert too_wide(page) == 0
    pictures = {"Level sets": "levels-0", "Conditional risk": "risk", "Gallery": "gallery"}
    for part, picture in pictures.items():
        choose(page, "View", part)
        page.locator(f".st-key-figure-{picture}").wait_for()
        settled(page)
        assert too_wide(page) == 0


# Before tests that move sliders of a hundred positions, whose pictures the server would make first.
@pytest.mark.browser
def test_once_all_pictures_of_a_knob_are_made_they_follow_it_in_the_browser(landscapes):
    page = landscapes("Level sets", loss="Top-K hinge", gradients="true")
    arrows = itertools.cycle(("ArrowLeft", "ArrowRight"))

    def follows():
        moved(page, "TopKHinge_K", arrow=next(arrows))
        settled(page)
        assert page.locator(".wb-drawing[data-follows]").count()

    eventually(page, follows)
    for K, arrow in ((2, "ArrowRight"), (1, "ArrowLeft")):
        moved(page, "TopKHinge_K", arrow=arrow)
        said(page, "levels-0", f"K = {K}")
        expected = wb.figures.level_sets(wb.losses.TopKHinge(K=K), gradients=True)
        assert_shows(page, "levels-0", expected.frame)
        assert page.locator(".st-key-figure-levels-0 .wb-spoken").first.text_content() == expected.text
    asks(page, TopKHinge_K=1)


@pytest.mark.browser
def test_a_slider_shows_exactly_what_the_library_gives_and_nothing_jumps(landscapes):
    page = landscapes("Level sets")
    before = shown(page, "levels-0")
    moved(page, "NoisedTopK_epsilon", 3)
    grid = wb.losses.NoisedTopK.knobs()["epsilon"].values()
    epsilon = float(grid[grid > 0.2][2])
    said(page, "levels-0", f"ε = {epsilon:g},")
    after = shown(page, "levels-0")
    expected = wb.figures.level_sets(wb.losses.NoisedTopK(K=2, epsilon=epsilon)).frame
    assert_shows(page, "levels-0", expected)
    assert (after["axes"], after["colours"]) == (before["axes"], before["colours"])
    asks(page, NoisedTopK_epsilon=epsilon)


@pytest.mark.browser
def test_a_click_in_the_gallery_opens_that_loss(landscapes):
    page = landscapes("Gallery")
    area = page.locator(".st-key-figure-gallery .wb-picture")
    x, y = area.evaluate(
        """picture => {
            const middles = picture._fullData.find((trace) => trace.customdata);
            const { xaxis, yaxis } = picture._fullLayout;
            return [xaxis._offset + xaxis.l2p(middles.x[6]), yaxis._offset + yaxis.l2p(middles.y[6])];
        }"""
    )
    click_in(area, x, y)
    opened = LOSSES[6]
    page.get_by_role("figure", name=opened.title).first.wait_for()
    settled(page)
    asks(page, part="Level sets", loss=opened.title)


@pytest.mark.browser
def test_two_losses_share_sliders_and_one_colour_scale_by_night_on_a_small_laptop(landscapes):
    page = landscapes("Level sets", width=1024, scheme="dark", loss="Top-K hinge", beside="Calibrated top-K hinge")
    stand_on_one_line(page)
    left, right = shown(page, "levels-0"), shown(page, "levels-1")
    assert left["colours"] == right["colours"] == [0, 2]
    assert page.locator(".st-key-side input[type=range]").count() == 1
    moved(page, "TopKHinge_K", arrow="ArrowLeft")
    said(page, "levels-1", "K = 1")
    said(page, "levels-0", "K = 1")
    expected = wb.figures.level_sets(wb.losses.CalibratedTopKHinge(K=1), rescale=False).frame
    assert_shows(page, "levels-1", expected)
    click(page.locator(".st-key-rescale_each label"))
    says(page.locator(".st-key-figure-levels-1 .wb-picture"), "loss, rescaled")
    settled(page)
    assert shown(page, "levels-0")["colours"] == shown(page, "levels-1")["colours"] == [0, 1]


@pytest.mark.browser
def test_the_axis_of_a_line_only_grows_while_a_slider_moves(landscapes):
    scale = wb.losses.LDAM.knobs()["scale"]
    scales = scale.values()
    page = landscapes("Along a line", loss="LDAM", LDAM_scale=scales[-2])
    axis = "picture => Array.from(picture._fullLayout.yaxis.range)"
    picture = page.locator(".st-key-figure-profile .wb-picture")
    assert picture.evaluate(axis) == list(wb.figures.line_profile(wb.losses.LDAM(scale=scales[-2])).value_range)
    before = picture.evaluate(axis)
    page.locator(".st-key-LDAM_scale input[type=range]").focus()
    page.keyboard.press("Home")
    says(page.locator(".st-key-figure-profile"), f"{scale.symbol} = {scales[0]:g}")
    settled(page)
    assert wb.figures.line_profile(wb.losses.LDAM(scale=scales[0])).value_range[1] < before[1]
    assert picture.evaluate(axis) == before


@pytest.mark.browser
def test_the_law_of_the_label_is_moved_on_its_own_triangle(landscapes):
    page = landscapes("Conditional risk", pi0=0.6, pi1=0.2)
    said(page, "risk", "π = (0.6, 0.2, 0.2)")
    area = page.locator(".st-key-figure-map .wb-picture")
    x, y = area.evaluate(
        """picture => {
            const { xaxis, yaxis } = picture._fullLayout;  // π = (0.2, 0.6, 0.2)
            return [xaxis._offset + xaxis.l2p(0.7), yaxis._offset + yaxis.l2p(0.2 * Math.sqrt(3) / 2)];
        }"""
    )
    click_in(area, x, y)
    said(page, "risk", "π = (0.2, 0.6, 0.2)")
    asks(page, pi0=0.2, pi1=0.6)


@pytest.mark.browser
def test_the_code_that_is_shown_makes_the_picture_and_four_files_can_be_taken_away(landscapes):
    page = landscapes("Level sets", loss="Cross-entropy", label=0, gradients="true")
    made = {}
    exec(shown_code(page.locator(".st-key-figure-levels-0")), made)
    expected = wb.figures.level_sets(wb.losses.CrossEntropy(), label=0, gradients=True)
    assert made["figure"].frame.equals(expected.frame)
    for name, start in (
        ("CSV", b"s0,s1,s2,value"),
        ("HTML", b"<!doctype html>"),
        ("PNG", b"\x89PNG"),
        ("SVG", b"<?xml"),
    ):
        with page.expect_download() as download:
            click(page.get_by_test_id("stPopoverBody").get_by_role("button", name=re.compile(name)))
        assert Path(download.value.path()).read_bytes().startswith(start), name


@pytest.mark.browser
@pytest.mark.writes
def test_the_plane_around_trained_weights_is_computed_on_request_and_shows_what_the_library_gives(opened, store):
    from workbench.training import Run, train, weight_plane

    trained = train(Run("digits", model="linear", epochs=2, device="cpu"), store=store, progress=False)
    page = opened(
        trained.run.key, view="landscapes", wait_for="text=Compute 25 points", part="Weight space", plane_steps=5
    )
    click(page.get_by_role("button", name="Compute 25 points"))
    says(page, "All 25 points are known")
    said(page, "plane", "25 points")
    heights = page.locator(".st-key-figure-plane .wb-picture").evaluate(
        "picture => picture._fullData.filter((t) => t.z).map((t) => Array.from(t.customdata, (row) => Array.from(row)))"
    )
    expected = weight_plane(trained, steps=5, rows=500, store=store, progress=False)
    for shown_heights, name in zip(heights, ("loss", "accuracy"), strict=True):
        np.testing.assert_allclose(shown_heights, expected.pivot_table(index="b", columns="a", values=name), rtol=1e-6)
    asks(page, plane_steps=5)
    assert serious_violations(page) == []


@pytest.mark.browser
def test_two_settings_of_one_loss_stand_on_one_line_of_a_small_laptop_and_move_apart(landscapes):
    page = landscapes("Level sets", width=1024, beside="Noised top-K")
    stand_on_one_line(page)
    moved(page, "right_NoisedTopK_epsilon", 5)
    page.wait_for_function(
        "() => document.querySelector('.st-key-figure-levels-1 .wb-subtitle')?.textContent.match(/ε = (?!0.2,)/)"
    )
    assert "ε = 0.2," in page.locator(".st-key-figure-levels-0 .wb-subtitle").inner_text()


@pytest.mark.browser
def test_in_the_studio_a_click_moves_the_probe_and_every_number_is_the_library_s(landscapes):
    page = landscapes("Level sets", loss="Calibrated top-K hinge", CalibratedTopKHinge_K=1)
    area = page.locator(".st-key-figure-levels-0 .wb-picture")
    x, y = area.evaluate(
        """picture => {
            const { xaxis, yaxis } = picture._fullLayout;  // s = (0.4, 1.2, 0.4)
            return [xaxis._offset + xaxis.l2p(0.7), yaxis._offset + yaxis.l2p(0.2 * Math.sqrt(3) / 2)];
        }"""
    )
    click_in(area, x, y)
    asks(page, s0=0.4, s1=1.2)
    expected = wb.figures.probe(wb.losses.CalibratedTopKHinge(K=1), (0.4, 1.2, 0.4), label=2)
    says(page.locator(".st-key-figure-probe .wb-title"), expected.title)
    settled(page)
    bars = page.locator(".st-key-figure-probe .wb-picture").evaluate(
        "picture => picture._fullData.map((trace) => Array.from(trace.y))"
    )
    np.testing.assert_allclose(bars, expected.frame[["score", "probability", "gradient"]].T, atol=1e-6)
    choose(page, "Compare with", "Cross-entropy")
    click(page.get_by_role("radio", name="A − B"))
    said(page, "levels-0", "line: equal")
    hinge, cross_entropy = wb.losses.CalibratedTopKHinge(K=1), wb.losses.CrossEntropy()
    assert_shows(page, "levels-0", wb.figures.loss_difference(hinge, cross_entropy).frame)
    says(
        page.locator(".st-key-figure-probe .wb-title"), wb.figures.probe([hinge, cross_entropy], (0.4, 1.2, 0.4)).title
    )
    asks(page, show="A − B", s0=0.4, s1=1.2)
    click(page.get_by_role("radio", name="Both"))
    click(page.get_by_role("radio", name="grid"))
    said(page, "levels-1", "10 paths of 30 steps")
    asks(page, paths="grid")
