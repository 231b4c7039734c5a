"""The Classes view in a real browser: its pictures and its table show what the library gives."""

from __future__ import annotations

import numpy as np
import pytest
from browsing import (
    KEYS,
    arrives,
    asks,
    choose,
    clicked,
    figure,
    go,
    pressed,
    says,
    serious_violations,
    settled,
    shown_code,
    too_wide,
)

import workbench as wb
from workbench.figures.sets.neighbours import companions
from workbench.figures.style import LIGHT

pytestmark = pytest.mark.browser


def sets_of(store, name, K):
    tables = store.open(KEYS[name]).tables
    return wb.AverageK(K).fit(tables["val"]).sets(tables["test"])


def assert_same_company(page, expected):
    """The heat map shows the shares of the figure, and says of how many sets."""
    picture = page.locator(".st-key-figure-shared .wb-picture")
    lines = picture.evaluate("picture => picture._fullData[0].z.map(line => Array.from(line))")
    np.testing.assert_allclose(np.array(lines, float), expected.heights(), atol=1e-6)
    says(page.locator(".st-key-figure-shared"), expected.subtitle.partition(";")[0])


def test_the_sliders_keep_their_place_from_view_to_view_and_move_every_class_to_what_the_library_gives(opened, store):
    page = opened(view="labels", K=2, wait_for=".wb-figure")
    pressed(page, "K", "ArrowRight")
    go(page, "Classes")
    settled(page)
    choose(page, "Class", store.open(KEYS["garden"]).tables["test"].class_names[7])
    pressed(page, "K", "ArrowLeft", times=3)
    sets = sets_of(store, "garden", 1.8)
    assert_same_company(page, wb.figures.shared_sets(sets, around=7, among=companions(sets.table, around=7)))
    per_class = wb.figures.per_class(sets)
    for name, drawn in (("classes", per_class), ("rarity", wb.figures.accuracy_against_count(sets))):
        shown = np.concatenate([trace["y"] for trace in figure(page, name)["data"]])
        np.testing.assert_allclose(shown, np.concatenate([trace.y for trace in drawn.plot().data]), atol=1e-6)
    worst = per_class.frame.sort_values("accuracy", kind="stable")["name"].iloc[0]
    page.locator("[role=gridcell]", has_text=worst).first.wait_for(state="attached")

    name = per_class.parts(LIGHT)[0][2]["name"].iloc[1]
    clicked(page, "classes", point=1)
    arrives(page, "Samples")
    asks(page, label=name, K="1.8")


def test_a_link_restores_the_class_the_other_run_and_what_is_sought_by_night_on_a_small_laptop(opened, store):
    sets, other = sets_of(store, "garden", 2.0), sets_of(store, "sharper", 2.0)
    name = sets.table.class_names[7]
    genus = sets.table.groups[7]
    page = opened(
        view="classes", K=2, other=KEYS["sharper"][:12], find=genus, width=1024, scheme="dark", **{"class": name}
    )
    assert serious_violations(page) == []
    assert too_wide(page) == 0
    assert_same_company(page, wb.figures.shared_sets(sets, around=7, among=companions(sets.table, around=7)))
    gains = wb.figures.most_improved(sets, other)  # from the run of the sidebar to the other, as everywhere
    says(page, "From garden to sharper: which classes gain, which lose")
    np.testing.assert_allclose(figure(page, "improved")["data"][0]["x"], 100 * gains.ends()["difference"], atol=1e-4)
    names = {each for each, group in zip(sets.table.class_names, sets.table.groups, strict=True) if group == genus}
    assert int(page.locator("[role=grid]").get_attribute("aria-rowcount")) == len(names) + 1

    code = shown_code(page.locator(".st-key-figure-improved"))
    made = {}
    exec(code.replace("Store()", f"Store({str(store.root)!r})"), made)
    assert made["figure"].frame.equals(gains.frame)


def test_rude_class_names_are_shown_as_they_are_and_neither_many_labels_nor_none_are_an_obstacle(opened, store):
    page = opened("many labels", view="classes", K=2)
    sets = sets_of(store, "many labels", 2.0)
    shown = np.concatenate([trace["y"] for trace in figure(page, "classes")["data"]])
    np.testing.assert_allclose(shown, wb.figures.per_class(sets).plot().data[0].y, atol=1e-6)
    assert page.locator(".wb-live img").count() == 0
    assert page.get_by_role("combobox", name="Compared with").count() == 0

    choose(page, "Run", "no labels")
    says(page, "These rows have no labels")
    settled(page)
    assert page.locator(".wb-figure").count() == 2  # the matrix, and the company of a class
    sets = sets_of(store, "no labels", 2.0)
    company = wb.figures.shared_sets(sets, around=0, among=companions(sets.table, around=0))
    assert_same_company(page, company)
    clicked(page, "shared", point=[0, 1])
    arrives(page, "Samples")
    asks(page, holds=sorted(company.labels()[:2]), K="2")


def test_the_matrix_follows_K_and_its_diagonal_selects_the_rows_of_a_block(opened, store):
    page = opened(view="classes", K=2)
    pressed(page, "K", "ArrowRight", times=3)
    expected = wb.figures.class_matrix(sets_of(store, "garden", 2.3))
    says(page.locator(".st-key-figure-matrix"), expected.subtitle.partition(";")[2].partition(";")[0])
    picture = page.locator(".st-key-figure-matrix .wb-picture")
    cells = picture.evaluate("picture => picture._fullData[0].z.map(line => Array.from(line))")
    np.testing.assert_allclose(cells, 100 * expected.shares, atol=0.5)
    block = expected.blocks().iloc[0]
    place = expected.order.index(block["members"][0])
    clicked(page, "matrix", point=[place, place])
    arrives(page, "Samples")
    asks(page, two_of=".".join(map(str, sorted(block["members"]))), K="2.3")
    says(page, f"{block['rows']} of {len(expected.sets)} rows")
