"""The Labels view in a real browser: what it says of rows with no label and with many is what the library gives."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest
from browsing import (
    KEYS,
    asks,
    choose,
    click,
    clicked,
    figure,
    pressed,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)

import workbench as wb
from workbench.figures.base import counted
from workbench.figures.probabilities.rejection import share_answered
from workbench.metrics.comparison import zero_and_many
from workbench.metrics.rows import RowFilter
from workbench.store import DEMO, Store
from workbench.store.run_titles import names

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def meadow() -> dict[str, str]:
    """Link → key of the demo runs on the meadow."""
    runs = [run for run in Store(DEMO).runs() if run.title.startswith("meadow")]
    return {run.tables["test"].link: run.key for run in runs}


def test_softmax_sigmoid_and_quasibinary_stand_side_by_side_and_follow_the_threshold(opened, meadow):
    page = opened(meadow["quasibinary"], view="labels", threshold=0.5, width=1024, scheme="dark")
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    assert page.locator(".wb-figure").count() == 4
    assert page.locator(".wb-figure .wb-title").first.inner_text() == "How well sets agree with the labels"
    page.set_viewport_size({"width": 1024, "height": 4000})  # a picture out of sight does not move
    pressed(page, "threshold", "ArrowLeft", times=3)
    threshold = float(page.locator("input[name=threshold]").get_attribute("aria-valuetext"))
    called = names({run.key: run.record for run in Store(DEMO).runs()})
    tables = {called[key]: Store(DEMO).open(key).tables["test"] for key in meadow.values()}
    for key in meadow.values():
        expected = wb.figures.none_of_these(tables[called[key]], threshold)
        shown = figure(page, f"confidence-{key[:12]}")
        assert shown["shapes"][0]["x0"] == pytest.approx(threshold)
        np.testing.assert_allclose(shown["data"][0]["y"], expected.plot().data[0].y)
        answered = expected.answered(threshold)
        words = page.locator(f".st-key-figure-confidence-{key[:12]} .wb-subtitle").inner_text()
        assert (
            words
            == f"n = {counted(tables[called[key]].n, 'row')}: {answered['with a label']:.1%} with a label answered, "
            + (f"{1 - answered['without a label']:.1%} without a label refused")
        )
    curves = wb.figures.f1_against_threshold(tables).frame
    shown = figure(page, "f1")["data"][: len(tables)]
    np.testing.assert_allclose(np.concatenate([curve["y"] for curve in shown]), curves["micro_f1"], atol=1e-6)

    says(page, f"Sets at the threshold {threshold:.3g};")
    with page.expect_download() as download:
        click(page.get_by_role("button", name="Table (CSV)"))
    taken = pd.read_csv(io.BytesIO(download.value.path().read_bytes()))
    pd.testing.assert_frame_equal(taken, zero_and_many(tables, threshold))

    made = {}
    exec(shown_code(page.locator(".st-key-figure-f1")), made)
    pd.testing.assert_frame_equal(made["figure"].frame, curves)


def test_a_table_of_ones_own_with_many_labels_stands_alone(opened, store):
    page = opened("many labels", view="labels", threshold=0.7)
    table = store.open(KEYS["many labels"]).tables["test"]
    points = wb.figures.reliability(table, bins=10, K=4).points()
    shown = figure(page, f"reliability-{KEYS['many labels'][:12]}")["data"][2]
    np.testing.assert_allclose(shown["y"], points["accuracy"], atol=1e-6)
    assert page.get_by_text("Compare with", exact=True).count() == 0
    assert page.locator(".wb-live img").count() == 0
    clicked(page, f"confidence-{KEYS['many labels'][:12]}", trace=2, point=25)  # a bar of the rows without a label
    page.wait_for_url("**/samples?**")
    sets = wb.Threshold(0.7).fit(table).sets(table)
    rows = RowFilter(sure=(0.625, 0.65), n_labels=(0, 0)).rows(sets)
    says(page, f"{len(rows)} of {len(sets)} rows")
    asks(page, sure=[0.625, 0.65], labels="none")


def test_with_one_label_a_row_or_none_the_page_says_what_it_still_shows(opened, store):
    page = opened(view="labels", wait_for=".wb-figure", threshold=0.3)
    for run, words in (("garden", "exactly one label"), ("no labels", "no labels that are known")):
        if run != "garden":
            choose(page, "Run", run)
        says(page, words)
        settled(page)
        (values,) = wb.figures.none_of_these(store.open(KEYS[run]).tables["test"]).kinds.values()
        said = f"{share_answered(values, 0.3):.1%} of all rows answered"
        page.locator(".wb-figure .wb-subtitle", has_text=said).wait_for()


def test_a_run_of_one_label_leads_to_one_of_many(opened):
    page = opened(view="labels", wait_for=".wb-figure")
    click(page.get_by_role("button", name="Show many labels"))
    asks(page, run=KEYS["many labels"][:12])
    page.locator(".st-key-figure-f1 .wb-figure").wait_for()
