"""The Calibration view in a real browser: before and after are what the library gives."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from browsing import (
    KEYS,
    choose,
    click,
    clicked,
    eventually,
    figure,
    in_address,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)

import workbench as wb
from workbench.calibration import at_temperature, of_one_class

pytestmark = pytest.mark.browser


def assert_same_diagram(page, name, table, K=1):
    """The page shows, at the latest after a while, the diagram of the table."""
    points = wb.figures.reliability(table, K=K).points()

    def same():
        shown = figure(page, name)["data"][2]
        np.testing.assert_allclose(shown["x"], points["confidence"], atol=1e-6)
        np.testing.assert_allclose(shown["y"], points["accuracy"], atol=1e-6)

    eventually(page, same)


def test_the_slider_starts_at_the_best_temperature_and_moves_the_diagram_to_what_the_library_gives(opened, store):
    page = opened(view="calibration", top=2)
    tables = store.open(KEYS["garden"]).tables
    best = round(wb.TemperatureScaling().fit(tables["val"]).temperature, 3)
    assert_same_diagram(page, "before", tables["test"], K=2)
    assert_same_diagram(page, "after", at_temperature(tables["test"], best), K=2)
    star = figure(page, "temperatures")["data"][2]
    assert star["x"][0] == pytest.approx(wb.TemperatureScaling().fit(tables["val"]).temperature)

    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_url(lambda address: "T=" in address)
    temperature = float(in_address(page)["T"][0])
    assert temperature > best
    assert_same_diagram(page, "after", at_temperature(tables["test"], temperature), K=2)
    page.wait_for_function(
        "T => document.querySelector('.st-key-figure-temperatures .wb-picture').layout.shapes[0].x0 === T",
        arg=temperature,
    )


def test_once_every_temperature_is_known_the_page_follows_the_slider_and_the_best_is_one_click_away(opened, store):
    test = store.open(KEYS["garden"]).tables["test"]

    def followed():
        page = opened(view="calibration", T=2)  # a visit finds what an earlier one made the server compute
        assert page.locator(".st-key-figure-after .wb-figure").count() == 1
        return page

    opened(view="calibration", T=2)
    page = eventually(opened(view="calibration", T=2), followed)
    page.locator(".st-key-T input").focus()
    for key in ("ArrowRight", "ArrowRight", "Home"):
        page.keyboard.press(key)
        settled(page)
        T = float(page.locator(".st-key-T input").get_attribute("aria-valuetext"))
        table = at_temperature(test, T)
        assert_same_diagram(page, "after", table)
        says(page.locator(".st-key-figure-after"), f"error {wb.metrics.expected_calibration_error(table):.1%}")
        assert figure(page, "temperatures")["shapes"][0]["x0"] == T
        shown = page.locator(".wb-cells td:last-child").all_inner_texts()
        assert shown[0] == f"{100 * wb.metrics.expected_calibration_error(table):.1f}"
        assert shown[-1] == f"{wb.metrics.negative_log_likelihood(table):.3f}"
    assert serious_violations(page) == []

    button = page.get_by_role("button", name="Best:")
    best = button.inner_text().split()[-1]
    click(button)
    page.wait_for_function(f"document.querySelector('.st-key-T input').getAttribute('aria-valuetext') === '{best}'")
    assert KEYS["garden"][:12] in page.url


def errors_shown(page):
    """The table of errors as a person takes it away."""
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Table (CSV)"))
    return pd.read_csv(download.value.path()).set_index("metric")


def test_captions_and_table_follow_the_chosen_classes_and_k_and_both_diagrams_share_their_axes(opened, store):
    test = store.open(KEYS["garden"]).tables["test"]
    page = opened(view="calibration", top=3, T=2)
    warmer = at_temperature(test, 2.0)
    shown = errors_shown(page)
    for name, column, table in (("before", "before", test), ("after", "after", warmer)):
        error = wb.metrics.top_k_calibration_error(table, K=3, bins=15)
        says(
            page.locator(f".st-key-figure-{name}"),
            f"3 likeliest classes, 15 bins; top-3 calibration error {error:.1%}",
        )
        assert shown.loc["Top-3 calibration error, bins = 15 (%)", column] == pytest.approx(100 * error)
    axes = "picture => ['xaxis', 'yaxis', 'xaxis2', 'yaxis2'].map(name => picture._fullLayout[name].range.join())"
    ranges = [page.locator(f".st-key-figure-{name} .wb-picture").evaluate(axes) for name in ("before", "after")]
    assert ranges[0] == ranges[1]

    name = test.class_names[2]
    choose(page, "Class", name)
    alone = of_one_class(test, 2)
    error = wb.metrics.expected_calibration_error(alone)
    says(
        page.locator(".st-key-figure-before"),
        f"the probability of {name}, 15 bins; expected calibration error {error:.1%}",
    )
    says(page, f"Calibration errors of {name} on the test rows")
    shown = errors_shown(page)["before"].to_dict()
    assert shown == pytest.approx(
        {
            "Expected calibration error (%)": 100 * error,
            "Maximum calibration error (%)": 100 * wb.metrics.maximum_calibration_error(alone),
            "Brier score": wb.metrics.brier_score(alone),
            "Negative log-likelihood": wb.metrics.negative_log_likelihood(alone),
        }
    )


def test_a_link_restores_vector_scaling_of_one_class_by_night_on_a_small_laptop(opened, store):
    tables = store.open(KEYS["sharper"]).tables
    name = tables["test"].class_names[2]
    page = opened("sharper", view="calibration", mend="vector", of=name, width=1024, scheme="dark")
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    assert_same_diagram(page, "before", of_one_class(tables["test"], 2))
    after = of_one_class(wb.VectorScaling().fit(tables["val"])(tables["test"]), 2)
    assert_same_diagram(page, "after", after)

    code = shown_code(page.locator(".st-key-figure-after"))
    made = {}
    exec(code.replace("Store()", f"Store({str(store.root)!r})"), made)
    assert made["figure"].frame.equals(wb.figures.reliability(after).frame)


def test_many_labels_are_no_obstacle_and_without_labels_the_page_says_why_there_is_nothing_to_judge(opened, store):
    page = opened("many labels", view="calibration")
    assert_same_diagram(page, "before", store.open(KEYS["many labels"]).tables["test"])
    choose(page, "Run", "no labels")
    says(page, "cannot be known without the truth")


def test_a_bin_opens_the_rows_in_it(opened, store):
    page = opened("garden", view="calibration")
    points = wb.figures.reliability(store.open(KEYS["garden"]).tables["test"]).points()
    clicked(page, "before", trace=2, point=3)
    page.wait_for_url("**/samples?**sure=**")
    asked = in_address(page)["sure"]
    np.testing.assert_allclose([float(bound) for bound in asked], points[["low", "high"]].iloc[3], rtol=1e-5)


def test_a_link_restores_the_curve_without_bins_after_venn_abers_and_marks_the_temperature_for_small_sets(
    opened, store
):
    tables = store.open(KEYS["garden"]).tables
    page = opened("garden", view="calibration", drawn="curve", mend=wb.VennAbers.title)
    after = wb.VennAbers().fit(tables["val"])(tables["test"])

    def same():
        for name, table in (("before", tables["test"]), ("after", after)):
            curve, shown = wb.metrics.reliability_curve(table).dropna(), figure(page, name)["data"][3]
            np.testing.assert_allclose(shown["y"], curve["accuracy"], atol=1e-6)

    eventually(page, same)
    assert serious_violations(page) == []
    choose(page, "Method", wb.SmallSetScaling.title)
    smallest = wb.SmallSetScaling().fit(tables["val"]).temperature

    def marked():
        assert [shape["x0"] for shape in figure(page, "temperatures")["shapes"]] == pytest.approx([smallest])

    eventually(page, marked)
