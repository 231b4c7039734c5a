"""The Sets view in a real browser: every number on the page is the number the library gives."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import (
    KEYS,
    SHOTS,
    arrives,
    asks,
    choose,
    click,
    click_in,
    figure,
    in_address,
    numbers,
    pressed,
    reads,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)

import workbench as wb
from workbench import display_names
from workbench.sets.conformal import rows_needed
from workbench.store import DEMO, Store

pytestmark = pytest.mark.browser


def headline(store, name, rule):
    """What the page must say, computed by the library from the tables."""
    tables = store.open(KEYS[name]).tables
    fitted = rule.fit(tables["val"])
    sets, val_sets = fitted.sets(tables["test"]), fitted.sets(tables["val"])
    target = f"{rule.K if isinstance(rule, wb.AverageK) else wb.metrics.mean_size(val_sets):.2f}"
    n_found = np.count_nonzero(val_sets.hits)
    promised = rule.confidence if isinstance(rule, wb.LAC) else n_found / (len(val_sets) + 1)
    shots = wb.metrics.shot_accuracy(sets)
    return {
        "K": target,
        "threshold": f"{sets.rule.threshold:.3g}",
        "confidence": f"{promised:.3f}",
        "Mean size": f"{wb.metrics.mean_size(sets):.2f}",
        "Correct": f"{wb.metrics.accuracy(sets):.1%}",
        "Mean over classes": f"{wb.metrics.macro_accuracy(sets):.1%}",
        **{SHOTS[shot]: f"{accuracy:.1%}" for shot, accuracy in shots.items()},
    }, sets


def assert_same_bars(drawn, frame):
    """The bars on the page are the shares of the library's figure; sizes beyond the last bar are pooled in it."""
    groups = [part for _, part in frame.groupby("group", sort=False)]
    for trace, part in zip(drawn["data"], groups, strict=True):
        shares = np.bincount(np.minimum(part["size"], drawn["last"]), part["share"], minlength=len(trace["y"]))
        np.testing.assert_allclose(trace["y"], shares, atol=1e-6)


def test_K_moved_by_mouse_and_keyboard_shows_exactly_what_the_library_gives(opened, store):
    page = opened()
    assert page.get_by_role("dialog").count() == 0
    expected, _ = headline(store, "garden", wb.AverageK(5.0))
    reads(page, expected)

    sizes = page.locator(".st-key-figure-sizes .wb-picture")

    def end() -> float:
        return sizes.evaluate("picture => picture.layout.xaxis.range[1]")

    before, box = end(), page.locator("input[name=K]").bounding_box()
    across, y = box["width"] - 18, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 9 + across * 40 / 190, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 4, y, steps=5)
    reads(page, {"K": "1.00"})
    settled(page)
    assert end() == before, "while a slider is dragged the axis does not shrink"
    page.mouse.up()
    asks(page, K=1)
    settled(page)
    assert end() < before

    pressed(page, "K", "ArrowRight", times=23)
    expected, sets = headline(store, "garden", wb.AverageK(3.3))
    reads(page, expected)
    asks(page, K=3.3, run=KEYS["garden"][:12])

    assert_same_bars(figure(page, "sizes"), wb.figures.set_sizes(sets).frame)
    assert figure(page, "sizes")["shapes"][0]["x0"] == pytest.approx(sets.sizes.mean())
    shown = np.concatenate([trace["y"] for trace in figure(page, "classes")["data"]])
    of_classes = np.concatenate([trace.y for trace in wb.figures.per_class(sets).plot().data])
    np.testing.assert_allclose(shown, of_classes, atol=1e-6)
    point = figure(page, "curve")["shapes"][0]
    assert (point["xanchor"], point["yanchor"]) == pytest.approx((sets.sizes.mean(), sets.hits.mean()))
    G, threshold = figure(page, "thresholds"), pytest.approx(sets.rule.threshold)
    across, down = G["shapes"]
    assert (across["x1"], across["y0"], across["y1"]) == (threshold, 3.3, 3.3)
    assert (down["x0"], down["x1"], down["y1"]) == (threshold, threshold, 3.3)
    assert G["data"][-1]["x"] + G["data"][-1]["y"] == [threshold, pytest.approx(3.3)]


def test_each_slider_gives_the_sets_of_its_rule_and_takes_its_place_in_the_address(opened, store):
    page = opened(K=2)
    pressed(page, "threshold", "ArrowRight", times=4)
    threshold = float(numbers(page)["threshold"])
    expected, _ = headline(store, "garden", wb.Threshold(threshold))
    reads(page, expected)
    asks(page, threshold=f"{threshold:g}")
    assert "K" not in in_address(page)
    nearest = round((float(expected["K"]) - 1) / 0.1)
    assert abs(int(page.locator("input[name=K]").input_value()) - nearest) <= 1
    pressed(page, "K", "ArrowRight")
    assert "threshold" not in in_address(page)

    pressed(page, "confidence", "ArrowRight", times=3)
    confidence = float(numbers(page)["confidence"])
    expected, sets = headline(store, "garden", wb.LAC(confidence))
    reads(page, expected)
    asks(page, confidence=f"{confidence:g}")
    assert "K" not in in_address(page)
    assert_same_bars(figure(page, "sizes"), wb.figures.set_sizes(sets).frame)

    pressed(page, "confidence", "End")
    last = wb.LAC.knobs()["confidence"].high
    assert float(numbers(page)["confidence"]) == last
    said = page.locator("input[name=confidence]").get_attribute("aria-description")
    assert said.endswith(f"here it ends at {last:g}: more can be asked of the library")


def test_home_end_and_page_keys_move_a_slider_as_far_as_people_expect_also_one_that_stands_at_its_end(opened, store):
    page = opened(K=2)
    ends = wb.SetIndex(store.open(KEYS["garden"]).tables["val"]).K_values
    pressed(page, "K", "End")
    assert float(numbers(page)["K"]) == ends[-1]
    pressed(page, "K", "PageDown")
    tenth = ends[-1] - float(numbers(page)["K"])
    assert 1 < tenth / (ends[1] - ends[0]) < len(ends) / 5
    pressed(page, "K", "Home")
    assert float(numbers(page)["K"]) == ends[0]
    pressed(page, "K", "PageUp")
    assert float(numbers(page)["K"]) - ends[0] == pytest.approx(tenth)

    pressed(page, "K", "End")  # where the threshold stands at its lower end
    assert page.locator("input[name=threshold]").input_value() == "0"
    pressed(page, "threshold", "Home")
    assert "K" not in in_address(page)
    assert page.locator(".wb-slider.wb-held input").get_attribute("name") == "threshold"


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows, which the page captures
@pytest.mark.parametrize("run", ["many labels", "demo"])
def test_the_confidence_slider_says_why_it_ends_before_the_knob_does(drawn, store, run):
    demo = next(each for each in Store(DEMO).runs() if "AverageKTwoHead" in each.title)
    stored = demo if run == "demo" else store.open(KEYS[run])
    drawn("sets", run=stored.key[:12])
    from controls.positions import places  # as the page has it on its path

    at = places(stored.key[:12])
    slider, val = at.sliders()[-1], stored.tables["val"]
    last, said = slider.values[-1], slider.help
    if run == "demo":

        def size(confidence):
            return wb.LAC(confidence).fit(val).sets(val).sizes.mean()

        end = at.K_values[-1]
        assert said.endswith(f"ends at {last:g}: more would take sets of over {end:g} classes on average, where K ends")
        assert size(last) <= end < size(last + 0.01)
    else:
        assert said.endswith(f"here it ends at {last:g}: more cannot be promised by 60 validation rows")
        assert rows_needed(last) <= 60 < rows_needed(last + 0.01)


def test_any_other_rule_is_asked_of_the_library_with_its_own_knobs(opened, store):
    page = opened(rule="Regularised adaptive sets (RAPS)", rule_confidence=0.8, rule_penalty=0.1)
    tables = store.open(KEYS["garden"]).tables

    def shown(rule):
        sets = rule.fit(tables["val"]).sets(tables["test"])
        reads(page, {"Correct": f"{sets.hits.mean():.1%}", "Mean size": f"{sets.sizes.mean():.2f}"})
        page.wait_for_function(
            "wanted => [...document.querySelectorAll('.wb-card')].map(e => e.dataset.size).join() === wanted",
            arg=",".join(map(str, sets.sizes[:12])),
        )
        page.wait_for_function(
            "wanted => document.querySelector('.st-key-figure-curve .wb-picture')._fullData.at(-1).name === wanted",
            arg=display_names.of_thing(rule),
        )
        settled(page)
        assert_same_bars(figure(page, "sizes"), wb.figures.set_sizes(sets).frame)
        point = figure(page, "curve")["data"][-1]
        assert point["x"] + point["y"] == pytest.approx([sets.sizes.mean(), sets.hits.mean()])

    shown(wb.RAPS(confidence=0.8, penalty=0.1))
    for key, confidence in (("ArrowRight", 0.81), ("ArrowLeft", 0.8)):  # its first knob moves the page in the browser
        page.get_by_role("slider", name="1 − α").press(key)
        shown(wb.RAPS(confidence=confidence, penalty=0.1))
        asks(page, rule_confidence=confidence)
    click(page.get_by_role("button", name="Rule and its settings"))
    page.get_by_role("slider", name="free rank").press("ArrowLeft")
    shown(wb.RAPS(confidence=0.8, penalty=0.1, free_rank=4))
    asks(page, rule_free_rank=4)
    choose(page, "What is promised", "Size of every set")
    shown(wb.TopK(5))
    choose(page, "What is promised", "Coverage of each class")
    says(page, "they are in every set")


def test_two_runs_are_overlaid_and_each_is_fitted_on_its_own_rows(opened, store):
    page = opened(K=2, by="shots", other=KEYS["sharper"][:12], width=1024)
    fits_a_small_laptop(page)
    pressed(page, "K", "ArrowRight", times=4)
    sets, other = (headline(store, name, wb.AverageK(2.4))[1] for name in ("garden", "sharper"))
    frame = wb.figures.set_sizes(sets, by="shots", other=other).frame
    drawn = figure(page, "sizes")
    assert_same_bars({**drawn, "data": drawn["data"][::2]}, frame[frame["sets"] == "these"])
    assert_same_bars({**drawn, "data": drawn["data"][1::2]}, frame[frame["sets"] == "other"])
    assert page.get_by_text(f"outlined: {other.sizes.mean():.2f}").is_visible()
    page.set_viewport_size({"width": 1024, "height": 700})
    page.locator(".wb-card").last.scroll_into_view_if_needed()
    assert 0 <= page.locator(".wb-numbers").bounding_box()["y"] < 200, "the headline stays"


def fits_a_small_laptop(page):
    """Nothing is cut, and axe finds nothing serious."""
    assert serious_violations(page) == []
    assert too_wide(page) == 0


def test_a_link_restores_run_place_grouping_and_photographs_by_night_on_a_small_laptop(opened, store):
    page = opened("sharper", K=1.7, by="shots", show="missed", page=2, width=1024, scheme="dark")
    fits_a_small_laptop(page)
    expected, sets = headline(store, "sharper", wb.AverageK(1.7))
    reads(page, expected)
    assert_same_bars(figure(page, "sizes"), wb.figures.set_sizes(sets, by="shots").frame)
    assert page.locator(".wb-card").count() == min(12, np.count_nonzero(~sets.hits) - 12)
    assert page.locator(".wb-card[data-verdict=hit]").count() == 0

    click(page.get_by_text("empty sets"))  # of which there is one page at most: there is no second one to stay on
    says(page, "Page (of 1)")
    n_empty = np.count_nonzero(sets.sizes == 0)
    page.wait_for_function(f"document.querySelectorAll('.wb-card').length === {n_empty}")


def test_cards_show_the_predicted_sets_with_a_sign_for_hit_and_miss_and_a_bar_opens_its_rows(opened, store):
    page = opened(K=2)
    for K, presses in ((2.0, 0), (2.5, 5)):
        if presses:
            pressed(page, "K", "ArrowRight", presses)
        _, sets = headline(store, "garden", wb.AverageK(K))
        names = sets.table.class_names
        for row, card in enumerate(page.locator(".wb-card").all()):
            classes, _ = sets.members(row)
            assert card.get_attribute("data-size") == str(len(classes))
            assert card.locator(".wb-verdict").inner_text().startswith("✓ correct" if sets.hits[row] else "✗ missed")
            assert card.locator(".wb-truth").inner_text() == f"true class: {names[sets.table.labels[row]]}"
            truth, p = sets.table.labels[row], sets.table.probabilities([row])[0]
            falling = np.argsort(-p, kind="stable")
            first = falling[:5] if truth in falling[:5] else [*falling[:4], truth]
            named = [c for c in first if c in classes or c == truth]  # what is true is told, in the set or not
            assert card.locator(".wb-class:visible").all_inner_texts() == [names[c] for c in named]
            shown = card.locator(".wb-probability:visible").all_inner_texts()
            assert shown == [f"{p[c]:.0%}" if p[c] >= 0.005 else "< 1%" for c in named]
    assert page.locator(".wb-photo").count() == 12

    picture = page.locator(".st-key-figure-sizes .wb-picture")
    bar, box = picture.locator(".bars .point").nth(2).bounding_box(), picture.bounding_box()
    click_in(picture, bar["x"] + bar["width"] / 2 - box["x"], bar["y"] + bar["height"] / 2 - box["y"])
    arrives(page, "Samples")
    says(page, f"{np.count_nonzero(sets.sizes == 2)} of 400 rows")
    asks(page, K=2.5, size=[2, 2])
    assert set(in_address(page)) == {"run", "K", "size"}


def test_each_run_gives_its_own_numbers_at_the_same_place_whatever_its_labels_and_names(opened, store):
    page = opened(K=3)
    choose(page, "Run", "sharper")
    reads(page, headline(store, "sharper", wb.AverageK(3.0))[0])
    asks(page, run=KEYS["sharper"][:12], K=3)

    choose(page, "Run", "many labels")
    tables = store.open(KEYS["many labels"]).tables
    sets = wb.AverageK(3.0).fit(tables["val"]).sets(tables["test"])
    reads(page, {"Correct": f"{wb.metrics.accuracy(sets):.1%}"})
    settled(page)
    assert "Rare classes" not in numbers(page)
    shown = set(page.locator(".wb-class").all_text_contents())
    assert shown == set(sets.table.class_names), "rude names are shown as they are"
    assert page.locator(".wb-wall img, .wb-wall b").count() == 0

    choose(page, "Run", "no labels")
    says(page, "no labels: there are sizes to show")
    settled(page)
    assert set(numbers(page)) == {"K", "threshold", "Mean size"}
    assert page.locator(".wb-figure").count() == 2  # of sizes, and G


def test_show_the_code_gives_the_code_the_words_and_the_data_of_a_picture(opened, store):
    page = opened(K=2)
    _, sets = headline(store, "garden", wb.AverageK(2.0))
    drawn = wb.figures.set_sizes(sets)
    code = shown_code(page.locator(".st-key-figure-sizes"))
    assert "sets = wb.AverageK(K=2.0, min_size=0).fit(val)(test)" in code
    says(page.get_by_test_id("stPopoverBody"), drawn.text)
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Data (CSV)"))
    assert download.value.path().read_text() == drawn.frame.to_csv(index=False)
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Picture (HTML)"))
    assert f"<title>{drawn.title}</title>" in download.value.path().read_text()
