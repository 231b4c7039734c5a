"""From one view to another in a real browser: what was chosen stays chosen, and a click opens the very rows."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import KEYS, arrives, asks, choose, clicked, figure, go, in_address, pressed, reads, says, settled

import workbench as wb
from workbench.figures.style import LIGHT
from workbench.metrics.rows import RowFilter

pytestmark = pytest.mark.browser
RAPS = wb.RAPS(confidence=0.8, penalty=0.1)
AS_RAPS = {"rule": wb.RAPS.title, "rule_confidence": 0.8, "rule_penalty": 0.1}


def sets_of(store, name, rule):
    tables = store.open(KEYS[name]).tables
    return rule.fit(tables["val"]).sets(tables["test"])


def lists(page, rows, n=400):
    arrives(page, "Samples")
    says(page, f"{len(rows)} of {n} rows")


def says_the_rule(page, sets):
    """The page, its address included, says that its sets are those of RAPS."""
    reads(page, {"Correct": f"{sets.hits.mean():.1%}", "Mean size": f"{sets.sizes.mean():.2f}"})
    asks(page, **AS_RAPS)


def test_a_rule_stays_chosen_from_view_to_view_and_back(opened, store):
    page = opened(**AS_RAPS)
    sets = sets_of(store, "garden", RAPS)
    says_the_rule(page, sets)
    for view in ("Samples", "Classes", "Compare"):
        go(page, view)
        says_the_rule(page, sets)
    go(page, "Calibration")  # which has no rules
    page.wait_for_selector(".st-key-figure-before")
    go(page, "Sets")
    says_the_rule(page, sets)

    choose(page, "Run", "no labels")  # on which no such promise can be fitted
    says(page, "no labels: there are sizes to show")
    reads(page, {"K": "5.00"})


def test_a_bar_a_class_and_a_bin_open_their_rows_with_every_rule(opened, store):
    sets = sets_of(store, "garden", RAPS)
    page = opened(by="shots", **AS_RAPS)
    last = len(figure(page, "sizes")["data"]) - 1
    clicked(page, "sizes", trace=last, point=2)
    lists(page, RowFilter(sizes=(2, 2), groups=(("shots", "many"),)).rows(sets))
    says_the_rule(page, sets)
    asks(page, size=[2, 2])
    address = page.url

    go(page, "Sets")
    clicked(page, "classes", point=1)  # of what was asked for before nothing is left
    name = wb.figures.per_class(sets).parts(LIGHT)[0][2]["name"].iloc[1]
    lists(page, RowFilter(label=sets.table.class_names.index(name)).rows(sets))
    asks(page, label=name)
    says_the_rule(page, sets)

    go(page, "Sets")
    clicked(page, "reliability", trace=2, point=3)
    points = wb.figures.reliability(sets.table).points()
    low, high = points[["low", "high"]].iloc[3]
    lists(page, RowFilter(sure=(low, high)).rows(sets))

    go(page, "Classes")
    clicked(page, "rarity", point=0)
    name = wb.figures.accuracy_against_count(sets).parts()[0][1]["name"].iloc[0]
    lists(page, RowFilter(label=sets.table.class_names.index(name)).rows(sets))

    page.goto(address)
    lists(page, RowFilter(sizes=(2, 2), groups=(("shots", "many"),)).rows(sets))

    go(page, "Labels")  # which has no rules: its rows are shown with its own threshold
    clicked(page, f"confidence-{KEYS['garden'][:12]}", point=30)
    sets = sets_of(store, "garden", wb.AverageK(5.0))
    lists(page, RowFilter(sure=(0.75, 0.775)).rows(sets))
    reads(page, {"K": "5.00", "Mean size": f"{sets.sizes.mean():.2f}"})
    assert "rule" not in in_address(page)


def test_the_outlined_bars_open_the_rows_of_the_other_run(opened, store):
    page = opened(K=2, other=KEYS["sharper"][:12])
    clicked(page, "sizes", trace=1, point=1)
    sharper = sets_of(store, "sharper", wb.AverageK(2.0))
    lists(page, np.flatnonzero(sharper.sizes == 1))
    asks(page, run=KEYS["sharper"][:12])


def test_a_step_back_for_every_move_leads_to_the_view_before_as_it_was_left(opened):
    page = opened(K=2)
    pressed(page, "K", "ArrowRight", times=3)
    go(page, "Classes")
    settled(page)
    for _ in range(2):
        pressed(page, "K", "ArrowRight")
    asks(page, K=2.5)
    for K in ("2.40", "2.30"):
        page.go_back()
        reads(page, {"K": K})
    page.go_back()
    arrives(page, "Sets")
    reads(page, {"K": "2.30"})
    page.go_forward()
    arrives(page, "Classes")
    settled(page)
