"""Axes and texts call the rows what they are: images, drawings, sounds, texts, or rows."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.tables.row_kinds import KINDS, kind_of_rows
from workbench.teaching import demo_tables

SCORES = np.random.default_rng(0).normal(size=(30, 4)) * 2
SHOWN = {
    "image": {"images": np.zeros((30, 2, 2, 3), np.uint8)},
    "text": {"texts": ["Peru"] * 30},
    "drawing": {"strokes": ["[[[0, 0], [1, 1]]]"] * 30},
    "sound": {"sounds": ["a.wav"] * 30},
    "row": {},
}


def table(**fields) -> wb.LogitTable:
    return wb.LogitTable(SCORES, SCORES.argmax(1), class_counts=[500, 90, 30, 3], **fields)


def test_every_kind_is_tried():
    assert set(SHOWN) == set(KINDS)


@pytest.mark.parametrize("kind", SHOWN)
def test_what_class_counts_count_is_called_as_the_rows_are(kind):
    rows = table(**SHOWN[kind])
    sets, others = (wb.TopK(K).fit(rows)(rows) for K in (1, 2))
    rarity, gains = wb.figures.accuracy_against_count(sets), wb.figures.gains_by_count(sets, others)
    training = f"training {kind}s"
    assert rarity.plot().layout.xaxis.title.text == f"{training} of a class; a larger dot has more test rows"
    assert gains.plot().layout.xaxis.title.text == f"{training} of a class"
    assert wb.figures.per_class(sets).plot().layout.xaxis.title.text == f"classes, most {training} first"
    assert training in rarity.text
    hovers = [str((*trace.customdata, trace.hovertemplate)) for trace in (rarity.plot().data[0], gains.plot().data[0])]
    for hover in hovers:
        assert training in hover
        assert ("image" in hover) == (kind == "image")


def test_rows_may_be_said_to_be_of_a_kind_and_keep_it(tmp_path):
    rows = table(row_kind="image")
    rows.save(tmp_path / "table")
    for same in (
        rows,
        rows.rows([1, 2]),
        rows.split()[0],
        wb.LogitTable.load(tmp_path / "table"),
        rows.with_link("sigmoid"),
    ):
        assert kind_of_rows(same) == "image"
    assert rows.key == table().key
    with pytest.raises(ValueError, match="row_kind = 'photo' is unknown; give one of image"):
        table(row_kind="photo")


@pytest.mark.parametrize(("dataset", "kind"), [("garden", "image"), ("names", "text"), ("symbols", "drawing")])
def test_a_stored_run_knows_what_its_network_saw(dataset, kind):
    run = next(
        run for run in wb.store.Store(demo_tables.DEMO).runs() if (run.dataset_spec or {}).get("name") == dataset
    )
    assert {kind_of_rows(run.tables[split]) for split in ("val", "test")} == {kind}
