"""Rows of one object stay on one side wherever a table is split in halves; otherwise the promise is about seen objects."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.store.imported_tables import keep_tables, val_and_test

rng = np.random.default_rng(0)
N, PHOTOS = 40, 3
PLANTS = rng.permutation(np.repeat(np.arange(N), PHOTOS))
LABELS = PLANTS % 4
NAMES = np.array(["oak", "elm", "fir", "ash"])
SCORES = np.eye(4)[LABELS] * 2 + rng.normal(size=(N * PHOTOS, 4))


def table(**fields) -> wb.LogitTable:
    return wb.LogitTable(SCORES, LABELS, **fields)


def shared(first: np.ndarray, second: np.ndarray) -> set:
    return set(first.tolist()) & set(second.tolist())


@pytest.mark.parametrize("name", ["object", "Observation_ID", "patient_id"])
def test_a_split_is_of_objects_and_rows_keep_their_numbers(name):
    first, second = table(attributes={"organ": ["leaf"] * len(PLANTS), name: PLANTS}).split(fraction=0.25)
    assert not shared(first.attributes[name], second.attributes[name])
    assert len(set(first.attributes[name].tolist())) == N // 4
    assert sorted([*first.ids, *second.ids]) == list(range(len(PLANTS)))
    assert np.array_equal(second.scores, SCORES[second.ids])
    assert (np.diff(first.ids) > 0).all()


def test_ids_that_repeat_name_the_objects_too():
    first, second = table(ids=[f"plant {plant}" for plant in PLANTS]).split()
    assert not shared(first.ids, second.ids)
    assert len(set(first.ids.tolist())) == N // 2


def test_a_row_without_an_object_is_one_of_its_own():
    known = np.where(np.arange(len(PLANTS)) % 2, PLANTS.astype(float), np.nan)
    for missing in (known, np.array(["" if np.isnan(plant) else f"p{plant:g}" for plant in known])):
        first, second = table(attributes={"object": missing}).split()
        inside = [
            {value for value in half.attributes["object"].tolist() if value and value == value}
            for half in (first, second)
        ]
        assert not inside[0] & inside[1]
        assert abs(first.n - second.n) < 20  # the nameless half of the rows is spread over both


def test_where_every_row_is_an_object_nothing_changes():
    expected = table().split(seed=5)[0].ids
    assert np.array_equal(table(attributes={"object": np.arange(len(PLANTS))}).split(seed=5)[0].ids, expected)
    assert np.array_equal(table(ids=np.arange(len(PLANTS))).split(seed=5)[0].ids, expected)


def test_rows_of_one_object_alone_cannot_be_split():
    with pytest.raises(ValueError, match=r"1 objects \(object\) with 120 rows leaves one side empty"):
        table(attributes={"object": ["the oak"] * len(PLANTS)}).split()


def test_a_partial_table_is_split_by_objects(tmp_path):
    pd.DataFrame(
        {
            "observation_id": PLANTS,
            "label": NAMES[LABELS],
            "class_1": NAMES[LABELS],
            "score_1": 0.6,
            "class_2": NAMES[(LABELS + 1) % 4],
            "score_2": 0.2,
        }
    ).to_csv(tmp_path / "best.csv", index=False)
    partial = wb.import_partial(tmp_path / "best.csv", n_classes=4)
    val, test, note = val_and_test(partial)
    assert not shared(val.attributes["observation_id"], test.attributes["observation_id"])
    assert "40 objects (observation_id)" in note


def test_import_halves_objects_and_says_so(tmp_path, store, capsys, monkeypatch):
    monkeypatch.setenv("WORKBENCH_HOME", str(store.root))
    frame = pd.DataFrame(SCORES, columns=NAMES).assign(label=[*NAMES[LABELS]], plant_id=PLANTS)
    frame.to_csv(tmp_path / "plants.csv", index=False)
    assert main(["import", str(tmp_path / "plants.csv")]) == 0
    assert "random half of its 40 objects (plant_id)" in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "plants.csv"), "--rule", "LAC(0.8)"]) == 0
    assert "random half of its 40 objects (plant_id)" in capsys.readouterr().err


def test_objects_on_both_sides_of_a_split_of_ones_own_are_told(store):
    plants = table(attributes={"plant_id": PLANTS, "split": ["val", "test"] * (len(PLANTS) // 2)})
    val, test, note = val_and_test(plants)
    n_both = len(shared(val.attributes["plant_id"], test.attributes["plant_id"]))
    assert f"{n_both} objects have rows to fit on and rows to judge on" in note
    kept = keep_tables(val, test=test, title="two", store=store)
    assert f"{n_both} objects have rows to fit on" in kept.record.note


def test_reports_and_comparisons_split_objects_all_tables_alike():
    one = table(attributes={"object": PLANTS})
    with pytest.warns(UserWarning, match="rows of one object stay together, by object"):
        wb.report(one, rules=[wb.LAC(0.8)])
    other = wb.LogitTable(SCORES + 1e-3, LABELS)  # the same rows, which do not say what they show
    frame = wb.comparison.compare({"one": one, "other": other}, wb.LAC(0.8))
    assert frame["n"].max() == len(one.split()[1].ids)
