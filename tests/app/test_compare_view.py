"""The Compare view in a real browser: values, intervals and differences are those of the library."""

from __future__ import annotations

import io
import shutil

import numpy as np
import pandas as pd
import pytest
from browsing import KEYS, click, figure, pressed, serious_violations, too_wide

import workbench as wb

pytestmark = pytest.mark.browser


def test_a_link_restores_the_comparison_and_its_table_can_be_taken_away(opened, store):
    page = opened("garden", view="compare", K=2, x="Mean size", y="Accuracy", width=1024, scheme="dark")
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
    assert set(np.round(drawn, 9)) <= set(np.round(shown["x"], 9))

    with page.expect_download() as download:
        click(page.get_by_role("button", name="Table (CSV)"))
    taken = pd.read_csv(io.BytesIO(download.value.path().read_bytes()), keep_default_na=False, na_values=["nan"])
    taken = taken[taken["metric"].isin([metric.name for metric in metrics])].reset_index(drop=True)
    numbers = ["value", "difference", "difference_low", "difference_high"]
    np.testing.assert_allclose(taken[numbers].astype(float), expected[numbers])
    assert taken["table"].tolist() == expected["table"].tolist()

    click(page.locator(".st-key-figure-scatter").get_by_text("Show the code"))
    made = {}
    shown = page.locator("[data-testid=stCode]").inner_text()
    exec(shown.replace("Store()", f"Store({str(store.root)!r})"), made)
    pd.testing.assert_frame_equal(made["figure"].frame, on_two)
    page.keyboard.press("Escape")

    pressed(page, "K", "ArrowRight", times=10)
    top = wb.metrics.top_k_accuracy.at(K=3)
    moved = wb.comparison.compare(tables, wb.AverageK(3.0), (wb.metrics.accuracy, top), val=val, resamples=2)
    page.wait_for_function(
        "expected => document.querySelector('.st-key-figure-scatter .wb-picture')._fullData[1].y[0] === expected",
        arg=moved[(moved["metric"] == "accuracy") & (moved["table"] == "sharper")]["value"].item(),
    )


@pytest.mark.parametrize("run", ["many labels", "no labels"])
def test_a_run_that_is_alone_says_what_is_needed(opened, run):
    page = opened(run, view="compare", wait_for="[data-testid=stAlert]")
    assert page.get_by_text("No other run was measured on these test rows").is_visible()


def test_a_link_may_choose_no_other_run(opened):
    page = opened(view="compare", wait_for="[data-testid=stAlert]", **{"with": ""})
    page.get_by_text("Choose at least one run").wait_for()


def test_runs_of_one_title_are_told_apart(opened, store):
    twin = "e" * 64
    with store.writing(twin) as directory:
        shutil.copytree(store.open(KEYS["sharper"]).path, directory, dirs_exist_ok=True)
    try:
        page = opened(view="compare", wait_for="[data-baseweb=tag], [data-testid=stMultiSelectTagsContainer]")
        for key in (KEYS["sharper"], twin):
            page.get_by_text(f"sharper ({key[:12]})").first.wait_for()
    finally:
        shutil.rmtree(store.root / twin)
