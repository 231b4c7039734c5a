"""Rows keep their number: ids travel through split, filter, store and CSV, and pair the rows of two tables."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.cli.main import main
from workbench.metrics.comparison import compare, pairwise
from workbench.metrics.rows import RowFilter, in_order, listed
from workbench.store.imported_tables import keep_tables

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(60, 4)) * 2
LABELS = np.repeat(np.arange(4), 15)
TABLE = wb.LogitTable(SCORES, LABELS)
OTHER = wb.LogitTable(SCORES + rng.normal(size=SCORES.shape), LABELS)


def test_the_halves_of_a_split_know_which_rows_they_are():
    first, second = TABLE.split()
    assert sorted([*first.ids, *second.ids]) == list(range(60))
    assert np.array_equal(first.scores, SCORES[first.ids])


def test_rows_of_rows_still_know_the_first_table_and_ids_of_ones_own_stay():
    assert TABLE.split()[1].rows(slice(3, 5)).ids.tolist() == TABLE.split()[1].ids[3:5].tolist()
    names = wb.LogitTable(SCORES, LABELS, ids=[f"photo {i}" for i in range(60)])
    assert names.rows([7]).ids.tolist() == ["photo 7"]


def test_the_largest_sets_of_an_imported_file_are_named_by_the_rows_of_the_file(tmp_path):
    np.savez(tmp_path / "mine.npz", scores=SCORES, labels=LABELS)
    run = keep_tables(wb.import_table(tmp_path / "mine.npz"), title="mine", store=wb.store.Store(tmp_path / "store"))
    test = run.tables["test"]
    assert np.array_equal(test.scores, SCORES[test.ids].astype(test.scores.dtype))
    sets = wb.AverageK(2).fit(run.tables["val"]).sets(test)
    rows = in_order(sets, RowFilter().rows(sets), "largest sets")[:3]
    assert listed(sets, rows)["id"].tolist() == test.ids[rows].tolist()
    assert sets.to_frame()["id"].tolist() == test.ids.tolist()


def test_an_imported_file_numbers_its_rows(tmp_path):
    np.savez(tmp_path / "mine.npz", scores=SCORES, labels=LABELS)
    assert wb.import_table(tmp_path / "mine.npz").ids.tolist() == list(range(60))


def with_ids(table: wb.LogitTable) -> wb.LogitTable:
    return wb.LogitTable(table.scores, table.labels, ids=[f"photo {i:02}" for i in range(60)])


def within_classes() -> np.ndarray:
    """The rows in another order that leaves the labels as they are: no check of labels can see it."""
    return np.concatenate([np.random.default_rng(1).permutation(15) + 15 * j for j in range(4)])


def test_compare_pairs_rows_by_their_ids():
    expected = pairwise({"a": with_ids(TABLE), "b": with_ids(OTHER)}, wb.TopK(1))
    shuffled = with_ids(OTHER).rows(within_classes())
    assert np.array_equal(shuffled.labels, LABELS)
    found = pairwise({"a": with_ids(TABLE), "b": shuffled}, wb.TopK(1))
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    metrics = [wb.metrics.accuracy, wb.metrics.brier_score]
    frames = [compare({"a": with_ids(TABLE), "b": b}, wb.LAC(0.7), metrics) for b in (with_ids(OTHER), shuffled)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)


def test_tables_of_other_rows_are_not_compared():
    other = wb.LogitTable(OTHER.scores, LABELS, ids=[f"photo {i:02}" for i in (*range(59), 99)])
    twice = wb.LogitTable(OTHER.scores, LABELS, ids=["same"] * 60)
    with pytest.raises(ValueError, match="59 of them with the same ids"):
        compare({"a": with_ids(TABLE), "b": other}, wb.TopK(1))
    with pytest.raises(ValueError, match="give each row its own id"):
        compare({"a": with_ids(TABLE), "b": twice}, wb.TopK(1))


def test_files_on_the_command_line_are_paired_by_ids_before_they_are_split(tmp_path, capsys):
    order = within_classes()
    tables = {"a": with_ids(TABLE), "b": with_ids(OTHER), "shuffled": with_ids(OTHER).rows(order)}
    for name, table in tables.items():
        np.savez(tmp_path / f"{name}.npz", scores=table.scores, labels=table.labels, ids=table.ids)
    differences = []
    for other in ("b", "shuffled"):
        assert main(["compare", str(tmp_path / "a.npz"), str(tmp_path / f"{other}.npz"), "--K", "2", "--json"]) == 0
        (pair,) = json.loads(capsys.readouterr().out)["pairs"]
        differences.append((pair["difference"], pair["low"], pair["p"]))
    assert differences[0] == differences[1]


def test_a_file_that_is_given_twice_is_not_fitted_and_judged_on_the_same_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("WORKBENCH_HOME", str(tmp_path / "home"))
    np.savez(tmp_path / "a.npz", scores=SCORES, labels=LABELS)
    assert main(["import", str(tmp_path / "a.npz"), str(tmp_path / "a.npz")]) != 0
    assert "fitted and evaluated on the same rows" in capsys.readouterr().err
