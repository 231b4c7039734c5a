"""Slices of a table: some rows with a name, and a report of each beside that of all rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from workbench.figures.base import Click
from workbench.metrics.rows import RowFilter
from workbench.metrics.significance import holm, hypergeometric_cdf
from workbench.metrics.slices import candidate_slices, ranked_slices, worst_slices

rng = np.random.default_rng(0)
SCORES = rng.normal(size=(120, 5)) * 2
ORGAN = np.array(["leaf", "fruit", "bark"] * 40)
LABELS = (SCORES + rng.normal(size=SCORES.shape)).argmax(1)
TABLE = wb.LogitTable(SCORES, LABELS, attributes={"organ": ORGAN})
METRICS = [wb.metrics.coverage, wb.metrics.mean_size, wb.metrics.expected_calibration_error]


def values(frame: pd.DataFrame) -> list[float]:
    return frame["value"].tolist()


def test_coverage_and_accuracy_are_one_metric():
    sets = wb.TopK(2).fit(TABLE)(TABLE)
    assert wb.metrics.coverage is wb.metrics.accuracy
    assert wb.metrics.coverage(sets) == sets.hits.mean()


def test_a_slice_is_some_rows_with_a_name_and_their_ids():
    leaves = TABLE.slice(ORGAN == "leaf", name="leaves")
    assert leaves.note == "leaves (40 of 120 rows)"
    assert np.array_equal(leaves.scores, SCORES[ORGAN == "leaf"])
    assert leaves.ids.tolist() == np.flatnonzero(ORGAN == "leaf").tolist()


@pytest.mark.parametrize(
    "by", ["organ", ORGAN, {organ: ORGAN == organ for organ in ("bark", "fruit", "leaf")}], ids=type
)
def test_a_report_by_slices_is_that_of_all_rows_and_of_each_slice(by):
    rule = wb.LAC(0.8).fit(TABLE)
    frame = wb.report(TABLE, [rule], METRICS, by=by)
    assert frame["slice"].unique().tolist() == ["", "bark", "fruit", "leaf"]
    assert values(frame[frame.slice == ""]) == values(wb.report(TABLE, [rule], METRICS))
    alone = wb.report(TABLE.slice(ORGAN == "leaf", name="leaves"), [rule], METRICS)
    assert values(frame[frame.slice == "leaf"]) == pytest.approx(values(alone))
    assert (frame[frame.slice == "leaf"]["n"] == 40).all()


def test_slices_have_intervals_and_stand_in_every_format():
    frame = wb.report(TABLE, [wb.TopK(2)], METRICS, 0.9, by="organ", resamples=50)
    assert (frame["low"] <= frame["value"]).all()
    assert (frame["value"] <= frame["high"]).all()
    assert "| leaf · accuracy |" in frame.to_markdown()
    assert "n = 120 rows" in frame.to_markdown()


def test_a_report_is_a_frame_whose_methods_take_what_those_of_pandas_take(tmp_path):
    frame = wb.report(TABLE, [wb.TopK(2)], METRICS)
    assert frame.to_latex(index=False) == pd.DataFrame(frame).to_latex(index=False)
    assert frame.to_latex().startswith(r"\begin{tabular}")


def test_fisher_s_exact_test_is_that_of_scipy():
    from scipy.stats import hypergeom

    N, H = 120, 90
    n = np.array([10, 30, 119, 5, 60])
    h = np.array([3, 20, 90, 5, 45])
    assert hypergeometric_cdf(h, N, H, n) == pytest.approx(hypergeom.cdf(h, N, H, n))


def test_a_slice_that_was_made_worse_is_found_first_and_its_filter_finds_its_rows():
    blind = SCORES.copy()
    blind[ORGAN == "bark"] = np.random.default_rng(1).normal(size=(40, 5))
    table = wb.LogitTable(blind, LABELS, attributes={"organ": ORGAN})
    sets = wb.TopK(2).fit(table)(table)
    frame, asked = ranked_slices(sets, most=50, min_rows=10)
    assert frame.loc[0, ["by", "value", "n"]].tolist() == ["organ", "bark", 40]
    assert frame.loc[0, "p_corrected"] < 0.05
    assert frame.loc[0, "coverage"] == sets.hits[ORGAN == "bark"].mean()
    assert frame.loc[0, "rest"] == sets.hits[ORGAN != "bark"].mean()
    assert frame.attrs["looked_at"] == len(frame)
    assert {*frame["by"]} == {"organ", "true class", "two likeliest classes"}
    assert [len(each.rows(sets)) for each in asked] == frame["n"].tolist()
    assert all(eval(repr(each), {"RowFilter": RowFilter}) == each for each in asked)
    figure = wb.figures.worst_slices(sets, most=50, min_rows=10)
    assert [figure.rows_behind(Click("", 0, [line])) for line in range(len(frame))] == asked


def test_where_misses_are_luck_a_slice_is_called_worse_in_five_of_a_hundred_tables_at_most():
    alarms, rng = 0, np.random.default_rng(2)
    for _ in range(100):
        labels = np.where(rng.random(120) < 0.8, SCORES.argmax(1), -1)
        labels[labels == -1] = SCORES.argmin(1)[labels == -1]
        table = wb.LogitTable(SCORES, labels, attributes={"organ": rng.permutation(ORGAN)})
        slices = [each for each in candidate_slices(table) if each.by != "true class"]  # which hits are not luck within
        hits = wb.TopK(1).fit(table)(table).hits
        n = np.array([each.mask.sum() for each in slices])
        h = np.array([(each.mask & hits).sum() for each in slices])
        alarms += (holm(hypergeometric_cdf(h, 120, int(hits.sum()), n)) < 0.05).any()
    assert alarms <= 9  # 0.05 · 100, and luck


def test_a_selection_is_a_slice_beside_the_worst():
    sets = wb.TopK(2).fit(TABLE)(TABLE)
    rows = np.flatnonzero(ORGAN == "leaf")[:25]
    frame = wb.figures.worst_slices(sets, rows, min_rows=10).frame
    assert frame.loc[0, ["by", "n"]].tolist() == ["selection", 25]
    assert frame.loc[0, "coverage"] == sets.hits[rows].mean()
    assert (frame["low"] <= frame["coverage"]).all()
    assert (frame["coverage"] <= frame["high"]).all()


def test_slices_with_a_name_stand_before_the_worst_and_count_among_those_that_are_looked_at():
    sets = wb.TopK(2).fit(TABLE)(TABLE)
    named = {"large": RowFilter(sizes=(2, 2)), "leaf missed": RowFilter(groups=(("organ", "leaf"),), hit=False)}
    figure, without = (wb.figures.worst_slices(sets, min_rows=10, most=50, named=each) for each in (named, None))
    assert {*figure.frame["value"].head(2)} == {*named}
    assert figure.frame.attrs["looked_at"] == without.frame.attrs["looked_at"] + 2
    for place, value in enumerate(figure.frame["value"].head(2)):
        rows = figure.rows_behind(Click("", 0, [place])).rows(sets)
        assert figure.rows_behind(Click("", 0, [place])) == named[value]
        assert figure.frame["n"][place] == len(rows)
        assert figure.frame["coverage"][place] == sets.hits[rows].mean()
    wider = figure.frame.merge(without.frame, on=["by", "value"], suffixes=("", "_alone"))
    assert (wider["p_corrected"] >= wider["p_corrected_alone"]).all()
    space = {"test": TABLE, "val": TABLE}
    exec(figure.code, space)
    assert space["figure"].frame.equals(figure.frame)


def test_the_more_slices_are_looked_at_the_wider_is_each_interval():
    sets = wb.TopK(2).fit(TABLE)(TABLE)
    few, many = (worst_slices(sets, 50, min_rows=least).set_index(["by", "value"]) for least in (30, 5))
    assert few.attrs["looked_at"] < many.attrs["looked_at"]
    both = few.index.intersection(many.index)
    assert len(both)
    assert (many.loc[both, "high"] - many.loc[both, "low"] > few.loc[both, "high"] - few.loc[both, "low"]).all()
