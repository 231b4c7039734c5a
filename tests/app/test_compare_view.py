"""The Compare view in a real browser: values, intervals and differences are those of the library."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browsing import KEYS, choose, click, figure, pressed, says, serious_violations, shown_code, too_wide
from waiting import eventually

import workbench as wb

pytestmark = pytest.mark.browser


def test_a_link_restores_the_comparison_and_its_table_can_be_taken_away(opened, store):
    page = opened("garden", view="compare", K=2, x="Mean size", y="Coverage", width=1024, scheme="dark")
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    runs = {name: store.open(KEYS[name]).tables for name in ("garden", "sharper")}
    tables, val = ({name: run[split] for name, run in runs.items()} for split in ("test", "val"))
    metrics = (wb.metrics.accuracy, wb.metrics.mean_size, wb.metrics.top_k_accuracy.at(K=2))
    expected = wb.comparison.compare(tables, wb.AverageK(2.0), metrics, val=val, resamples=400)
    dots = figure(page, "scatter")["data"]
    on_two = wb.figures.on_two_metrics(expected, "mean_size", "accuracy").frame
    np.testing.assert_allclose([dot["x"][0] for dot in dots], on_two["x"])
    np.testing.assert_allclose([dot["y"][0] for dot in dots], on_two["y"])
    (shown,) = figure(page, "differences")["data"]
    drawn = expected[(expected["table"] == "sharper") & (expected["metric"] != "mean_size")]["difference"].tolist()
    assert set(np.round(100 * np.array(drawn), 7)) <= set(np.round(shown["x"], 7))  # in points
    says(page, "From garden to sharper")
    says(page, "Every metric, and its difference from garden")

    with page.expect_download() as download:
        click(page.get_by_role("button", name="Table (CSV)"))
    taken = pd.read_csv(io.BytesIO(download.value.path().read_bytes()), keep_default_na=False, na_values=["nan"])
    taken = taken[taken["metric"].isin([metric.name for metric in metrics])].reset_index(drop=True)
    numbers = ["value", "difference", "difference_low", "difference_high"]
    np.testing.assert_allclose(taken[numbers].astype(float), expected[numbers])
    assert taken["table"].tolist() == expected["table"].tolist()

    made = {}
    exec(shown_code(page.locator(".st-key-figure-scatter")).replace("Store()", f"Store({str(store.root)!r})"), made)
    pd.testing.assert_frame_equal(made["figure"].frame, on_two)
    page.keyboard.press("Escape")

    pressed(page, "K", "ArrowRight", times=10)
    top = wb.metrics.top_k_accuracy.at(K=3)
    moved = wb.comparison.compare(tables, wb.AverageK(3.0), (wb.metrics.accuracy, top), val=val, resamples=2)
    page.wait_for_function(
        """expected => Math.abs(document.querySelector('.st-key-figure-scatter .wb-picture')._fullData[1].y[0] - expected)
            < 1e-6""",
        arg=moved[(moved["metric"] == "accuracy") & (moved["table"] == "sharper")]["value"].item(),
    )


def test_once_every_K_is_compared_the_page_follows_the_slider_with_the_numbers_of_the_library(opened, store):
    runs = {name: store.open(KEYS[name]).tables for name in ("garden", "sharper")}
    tables, val = ({name: run[split] for name, run in runs.items()} for split in ("test", "val"))

    def followed():
        page = opened(
            view="compare", K=2, x="Top-K accuracy"
        )  # a visit finds what an earlier one made the server compute
        assert page.locator(".wb-figure").count() == 2
        return page

    page = eventually(opened(view="compare", K=2, x="Top-K accuracy"), followed)
    for key, times, K in (("ArrowRight", 5, 2.5), ("ArrowLeft", 11, 1.4)):
        pressed(page, "K", key, times=times)
        metrics = (wb.metrics.accuracy, wb.metrics.macro_accuracy, wb.metrics.top_k_accuracy.at(K=round(K)))
        expected = wb.comparison.compare(tables, wb.AverageK(K), metrics, val=val, resamples=400)
        on_two = wb.figures.on_two_metrics(expected, "top_k_accuracy", "macro_accuracy")
        dots = figure(page, "scatter")["data"]
        np.testing.assert_allclose([[dot["x"][0], dot["y"][0]] for dot in dots], on_two.frame[["x", "y"]], atol=1e-6)
        differences = wb.figures.paired_differences(expected).frame
        (shown,) = figure(page, "differences")["data"]
        first = shown["x"][:2]  # of accuracy and macro-accuracy
        np.testing.assert_allclose(first, 100 * differences["difference"][:2], atol=1e-4)
        reach = page.locator(".st-key-figure-differences .wb-picture").evaluate(
            "picture => Array.from(picture._fullData[0].error_x.array)"
        )
        np.testing.assert_allclose(reach[:2], 100 * (differences["high"] - differences["difference"])[:2], atol=1e-4)
        says(page.locator(".st-key-figure-differences"), f"Top-{round(K)} accuracy")
    assert serious_violations(page) == []


def test_a_run_that_is_alone_says_what_is_needed_and_a_link_may_choose_no_other_run(opened):
    page = opened(view="compare", wait_for="[data-testid=stAlert]", **{"with": ""})
    says(page, "Choose at least one run")
    for run in ("many labels", "no labels"):
        choose(page, "Run", run)
        says(page, "No other run has the same test rows")
        says(page, "cannot be compared with this one")
    says(page, "rows without labels cannot be compared")


@pytest.mark.writes
def test_runs_of_one_title_are_told_apart(opened, store):
    twin = "e" * 64
    with store.writing(twin) as directory:
        shutil.copytree(store.open(KEYS["sharper"]).path, directory, dirs_exist_ok=True)
    page = opened(view="compare")
    says(page, "sharper")
    says(page, f"sharper ({twin[:4]})")


def test_the_table_has_shares_in_per_cent_their_differences_in_points_and_a_verdict_for_every_metric(
    store, monkeypatch
):
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "app"))
    from views.compare.runs import in_units

    runs = {name: store.open(KEYS[name]).tables for name in ("garden", "sharper")}
    tables, val = ({name: run[split] for name, run in runs.items()} for split in ("test", "val"))
    metrics = (wb.metrics.accuracy, wb.metrics.mean_size, wb.metrics.negative_log_likelihood)
    compared = wb.comparison.compare(tables, wb.AverageK(2.0), metrics, val=val, resamples=100)
    shown = in_units(compared).set_index(["metric", "run"])
    plain = compared.set_index(["metric", "table"])
    for name, written, times in (("accuracy", "Coverage (%)", 100), ("mean_size", "Mean size", 1)):
        for column in ("value", "low", "high", "difference", "difference_low"):
            assert shown.loc[(written, "sharper"), column] == pytest.approx(
                times * plain.loc[(name, "sharper"), column]
            )
    assert shown.loc[("Coverage (%)", "sharper"), "verdict"] == "▲ better"
    likelihood = shown.loc[("Negative log-likelihood", "sharper")]
    assert likelihood["difference_high"] < 0
    assert likelihood["verdict"] == "▲ better"  # of an error less is better
    assert np.isnan(shown.loc[("Coverage (%)", "garden"), "difference"])  # from itself there is none
