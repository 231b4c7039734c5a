"""Top-K, average-K and threshold sets: sizes, ties, and the arithmetic of the threshold."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.exact_arithmetic import classes_of_rows, exact
from workbench.sets import order_statistics
from workbench.sets.base import filled
from workbench.sets.thresholds import (
    checked_m,
    largest_probabilities,
    midpoint,
    rounded_up,
    threshold_among,
    threshold_at_mean_size,
)

rng = np.random.default_rng(0)


def table(n: int, n_classes: int, dtype: str = "float32", labels: bool = True) -> wb.LogitTable:
    scores = (rng.normal(size=(n, n_classes)) * 2).astype(dtype)
    return wb.LogitTable(scores, rng.integers(0, n_classes, n) if labels else None)


def tied_tables() -> st.SearchStrategy[wb.LogitTable]:
    """Small tables whose probabilities tie often."""
    shapes = st.tuples(st.integers(1, 12), st.integers(2, 6), st.integers(0, 2**31))
    return shapes.map(
        lambda shape: wb.LogitTable(
            np.random.default_rng(shape[2]).integers(-4, 1, shape[:2]).astype("float32"),
            np.random.default_rng(shape[2]).integers(0, shape[1], shape[0]),
        )
    )


def test_K_n_is_computed_with_the_decimal_that_K_prints_as():
    # In floating point 2.3 · 25 = 57.49999…, and half a class would be lost; the exact product is a half, rounded up.
    assert 2.3 * 25 < 57.5
    assert classes_of_rows(2.3, 25) == 58
    assert exact(np.float64(0.1)) == Fraction(1, 10)
    assert all(classes_of_rows(K / 10, 10) == K for K in range(10, 200))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_midpoint_is_rounded_up_so_that_it_never_lets_the_lower_one_in(dtype):
    kind = np.dtype(dtype)
    for below in rng.random(200).astype(kind):
        for above in (np.nextafter(below, kind.type(2)), below + kind.type(0.01)):
            threshold = midpoint(float(above), float(below), kind)
            assert float(above) >= threshold > float(below)
            assert kind.type(threshold) == threshold
    assert midpoint(0.25, 0.25, kind) == 0.25


def test_a_threshold_between_two_float32_is_rounded_up():
    given = 0.7  # the nearest float32 is smaller
    assert float(np.float32(given)) < given
    assert rounded_up(given, np.dtype("float32")) == float(np.nextafter(np.float32(given), np.float32(1)))
    probabilities = wb.LogitTable.from_probabilities(np.array([[np.float32(given), 1 - np.float32(given)]]))
    with pytest.warns(UserWarning, match="empty"):
        assert wb.Threshold(given).fit(probabilities)(probabilities).sizes.tolist() == [0]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 7), (61, 13), (2500, 900)])
def test_average_k_on_validation_returns_exactly_K_n_classes_without_ties(dtype, shape):
    val = table(*shape, dtype, labels=False)
    sorted_all = np.sort(val.probabilities().ravel())[::-1]
    for K in (1, 1.1, 2.3, 3.7, 5.9):
        m = classes_of_rows(K, val.n)
        above, below = sorted_all[m - 1 : m + 1]
        threshold = wb.AverageK(K).fit(val).threshold
        assert above >= threshold >= below
        if above > below:
            assert np.count_nonzero(val.probabilities() >= threshold) == m
            assert wb.AverageK(K).fit(val).sets(val).sizes.sum() == m


def test_the_bound_guessed_from_a_sample_never_changes_the_answer(monkeypatch):
    misleading = rng.normal(size=(3000, 800)).astype("float32")
    misleading[::2] *= 8  # the sampled rows are more confident than the others, or less
    val = wb.LogitTable(misleading)
    expected = np.sort(val.probabilities().ravel())[::-1]
    for sampled in (2**30, 2**12, 2**11):
        monkeypatch.setattr(order_statistics, "SAMPLED", sampled)
        for m in (1, 3000, 60_001):
            found, _ = largest_probabilities(val, m)
            assert threshold_at_mean_size(val, m / 3000) == midpoint(expected[m - 1], expected[m], val.dtype)
            assert np.array_equal(found.probabilities[:m], expected[:m])
            assert np.array_equal(val.probabilities().ravel()[found.positions], found.probabilities)
            assert found.count(found.floor) == np.count_nonzero(expected >= found.floor)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("K", [0.01, 1, 2.5, 3.999, 4])
def test_the_threshold_among_probabilities_in_memory_is_that_of_the_table(K, dtype):
    zeros, ties = rng.random((100, 4)) ** 3, rng.integers(0, 3, (100, 4)) / 8
    zeros[rng.random((100, 4)) < 0.6] = 0
    for values in (rng.random((100, 4)), zeros, ties, np.zeros((100, 4))):
        table = wb.LogitTable(values.astype(dtype), np.eye(4, dtype=bool)[np.arange(100) % 4], link="identity")
        found = threshold_among(table.probabilities(), checked_m(K, table))
        assert found == threshold_at_mean_size(table, K)


def test_a_table_of_nothing_but_ties_fits_in_memory_and_says_what_it_holds():
    val = wb.LogitTable(np.zeros((2000, 1000), np.float32))
    found, _ = largest_probabilities(val, 5001)
    np.testing.assert_array_equal(found.positions, np.arange(5001))
    assert len(found.probabilities) == 5001
    assert found.floor > 1 / 1000  # it does not claim to know all that are equal
    assert threshold_at_mean_size(val, 2.5) == val.probabilities([0])[0, 0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("exact", "bins"), [(2**17, 2**20), (10, 2**16), (0, 7)], ids=["values", "16 bits", "few bits"]
)
def test_counting_patterns_finds_the_same_order_statistics_as_sorting(dtype, exact, bins, monkeypatch):
    monkeypatch.setattr(order_statistics, "EXACT", exact)
    monkeypatch.setattr(order_statistics, "BINS", bins)
    val = table(50, 40, dtype)
    falling = np.sort(val.probabilities().ravel())[::-1]
    ranks = (1, 2, 999, 1999, 2000)
    found, n_positive = order_statistics.order_statistics(val, ranks)
    assert n_positive is None
    for m in ranks:
        assert found[m].value == falling[m - 1]
        assert found[m].at_least == np.count_nonzero(falling >= falling[m - 1])


def test_a_threshold_takes_one_pass_after_its_sample_and_no_more_than_two_for_any_number_of_bits(monkeypatch):
    val = table(3000, 800)
    monkeypatch.setattr(order_statistics, "SAMPLED", 2**17)
    passes = []
    counting = order_statistics.over_parts
    monkeypatch.setattr(
        order_statistics,
        "over_parts",
        lambda table, function, *given: passes.append(function) or counting(table, function, *given),
    )
    expected = threshold_at_mean_size(val, 5)
    assert passes == [order_statistics.sampled, order_statistics.counted]
    monkeypatch.setattr(order_statistics, "EXACT", 0)
    monkeypatch.setattr(order_statistics, "BINS", 2**16)
    assert threshold_at_mean_size(val, 5) == expected
    assert passes[2:] == [order_statistics.sampled, order_statistics.counted, order_statistics.counted]


@settings(max_examples=60, deadline=None)
@given(val=tied_tables(), K=st.floats(1, 6).map(lambda K: round(K, 1)))
def test_with_ties_all_tied_classes_enter(val, K):
    if K >= val.n_classes:
        return
    sets = wb.AverageK(K).fit(val).sets(val)
    falling = np.sort(val.probabilities().ravel())[::-1]
    m = classes_of_rows(K, val.n)
    assert sets.sizes.sum() >= m
    if m == falling.size:  # K·n rounds up to everything
        assert wb.AverageK(K).fit(val).threshold == 0
    elif falling[m - 1] == falling[m]:
        assert sets.sizes.sum() == np.count_nonzero(falling >= falling[m])
    else:
        assert sets.sizes.sum() == m


@settings(max_examples=60, deadline=None)
@given(val=tied_tables(), low=st.floats(1, 5), more=st.floats(0, 2))
def test_average_k_sets_are_nested_in_K(val, low, more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # K ≥ L is allowed here
        small = wb.AverageK(low).fit(val).sets(val).matrix()
        large = wb.AverageK(low + more).fit(val).sets(val).matrix()
    assert not (small & ~large).any()


@settings(max_examples=60, deadline=None)
@given(val=tied_tables(), K=st.integers(1, 6))
def test_top_k_sets_have_exactly_K_classes_whatever_the_ties(val, K):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sets = wb.TopK(K).fit(val).sets(val)
    assert (sets.sizes == min(K, val.n_classes)).all()
    order = np.argsort(-val.probabilities(), axis=1, kind="stable")[:, :K]
    assert np.array_equal(sets.classes.reshape(val.n, -1), order)


def test_K_of_all_classes_has_threshold_zero_and_warns():
    val = table(5, 4)
    with pytest.warns(UserWarning, match="every class"):
        fitted = wb.AverageK(4).fit(val)
    assert fitted.threshold == 0
    assert (fitted(val).sizes == 4).all()
    with pytest.warns(UserWarning, match="every class"):
        assert (wb.TopK(9).fit(val)(val).sizes == 4).all()


def test_sets_are_sparse_and_by_falling_probability():
    test = table(700, 20)
    sets = wb.Threshold(0.05).fit(test)(test)
    probabilities = test.probabilities()
    expected = probabilities >= rounded_up(0.05, test.dtype)
    assert np.array_equal(sets.matrix(), expected)
    assert np.array_equal(sets.sizes, expected.sum(1))
    assert np.array_equal(sets.hits, expected[np.arange(700), test.labels])
    assert sets.offsets[-1] == len(sets.classes) == len(sets.probabilities)
    for i, members in enumerate(sets):
        classes, values = sets.members(i)
        assert np.array_equal(members, classes)
        assert set(classes.tolist()) == set(np.flatnonzero(expected[i]).tolist())
        assert (np.diff(values) <= 0).all()
        assert np.array_equal(values, probabilities[i, classes])
    assert np.array_equal(sets.members(-1)[0], sets.members(699)[0])
    with pytest.raises(IndexError, match="row 700"):
        sets.members(700)


def test_many_labels_are_hit_when_all_are_in_the_set_and_a_row_without_is_no_hit():
    labels = np.array([[True, True, False], [True, False, True], [False, False, False]])
    test = wb.LogitTable(np.array([[2.0, 1, -3], [2, 1, -3], [0, 0, 0]]), labels, link="sigmoid")
    sets = wb.Threshold(0.6).fit(test).sets(test)
    assert sets.hits.tolist() == [True, False, False]
    assert sets.labelled.tolist() == [True, True, False]
    assert sets.recalled.tolist() == [2, 1, 0]


def test_without_labels_sizes_are_known_and_hits_are_not():
    test = table(5, 4, labels=False)
    sets = wb.TopK(2).fit(test)(test)
    assert (sets.sizes == 2).all()
    with pytest.raises(ValueError, match="no labels"):
        sets.hits
    with pytest.raises(ValueError, match="no labels"):
        sets.recalled


def test_empty_sets_are_reported_and_min_size_fills_them_with_the_most_probable():
    test = wb.LogitTable.from_probabilities([[0.5, 0.3, 0.2], [0.9, 0.05, 0.05]], labels=[0, 0])
    with pytest.warns(UserWarning, match=r"1 of 2 sets are empty.*min_size=1"):
        assert wb.Threshold(0.6).fit(test)(test).sizes.tolist() == [0, 1]
    filled_sets = wb.Threshold(0.6, min_size=2).fit(test)(test)
    assert [members.tolist() for members in filled_sets] == [[0, 1], [0, 1]]


def test_where_rows_may_have_no_label_an_empty_set_is_an_answer():
    table = wb.LogitTable([[2.0, 1.0], [-2.0, -1.0]], [[True, True], [False, False]], link="sigmoid")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert wb.Threshold(0.5).fit(table)(table).sizes.tolist() == [2, 0]


def test_a_rule_that_is_not_fitted_says_how_it_is():
    table = wb.LogitTable(9 * np.eye(3), labels=[0, 1, 2])
    with pytest.raises(ValueError, match=r"AverageK\(K=2.*is not fitted.*\.fit\(val\)\(test\)"):
        wb.AverageK(2)(table)


def test_filling_adds_only_what_is_missing():
    mask = np.array([[False, False, True]])
    probabilities = np.array([[0.5, 0.4, 0.1]])
    assert filled(mask, probabilities, probabilities, 2).tolist() == [[True, False, True]]


def test_sets_become_a_frame_with_ids_names_and_empty_sets():
    test = wb.LogitTable.from_probabilities(
        [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], labels=[1, 2], class_names=["oak", "elm", "fir"], ids=["a.jpg", "b.jpg"]
    )
    frame = wb.Threshold(0.6).fit(test).sets(test).to_frame()
    assert frame.columns.tolist() == ["id", "label", "hit", "size", "classes", "probabilities"]
    assert frame.to_numpy().tolist() == [["a.jpg", "elm", False, 0, [], []], ["b.jpg", "fir", True, 1, ["fir"], [0.7]]]
    exploded = wb.TopK(2).fit(test)(test).to_frame().explode(["classes", "probabilities"])
    assert exploded["classes"].tolist() == ["oak", "elm", "fir", "elm"]
    assert exploded["id"].tolist() == ["a.jpg", "a.jpg", "b.jpg", "b.jpg"]


def test_a_frame_of_sets_does_without_labels_and_with_many():
    bare = table(5, 4, labels=False)
    frame = wb.TopK(2).fit(bare)(bare).to_frame()
    assert frame.columns.tolist() == ["id", "size", "classes", "probabilities"]
    assert frame["id"].tolist() == [0, 1, 2, 3, 4]
    assert all(name.startswith("class ") for name in frame["classes"].explode())
    labels = np.array([[True, True, False], [True, False, True], [False, False, False]])
    many = wb.LogitTable(np.array([[2.0, 1, -3], [2, 1, -3], [0, 0, 0]]), labels, link="sigmoid")
    frame = wb.Threshold(0.6).fit(many).sets(many).to_frame()
    assert frame["labels"].tolist() == [["class 0", "class 1"], ["class 0", "class 2"], []]
    assert frame["hit"].tolist() == [True, False, pd.NA]


def test_a_rule_fitted_on_other_classes_is_refused():
    fitted = wb.AverageK(2).fit(table(5, 4))
    with pytest.raises(ValueError, match="4 classes and the table has 6"):
        fitted(table(5, 6))


def test_a_fitted_rule_says_what_it_is():
    val = wb.LogitTable.from_probabilities([[0.8, 0.2], [0.6, 0.4]])
    assert repr(wb.AverageK(1.5).fit(val)) == "AverageK(K=1.5, min_size=0) at 0.3"
    assert repr(wb.TopK(1).fit(val)(val)) == "PredictionSets(2 rows, mean size 1; TopK(K=1, min_size=0))"


def test_sets_may_come_from_people():
    test = table(3, 4)
    chosen = np.array([[1, 0, 0, 1]] * 3)
    assert np.array_equal(wb.PredictionSets.from_matrix(test, chosen).matrix(), chosen.astype(bool))
    with pytest.raises(ValueError, match=r"give \(n, L\) = \(3, 4\)"):
        wb.PredictionSets.from_matrix(test, chosen[:2])


def test_tables_and_sets_show_themselves_in_a_notebook_and_escape_what_the_user_wrote():
    names = ["<script>alert(1)</script>", "elm", "fir"]
    test = wb.LogitTable.from_probabilities([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]], labels=[0, 1], class_names=names)
    for card in (test._repr_html_(), wb.Threshold(0.25).fit(test)(test)._repr_html_()):
        assert "<script>" not in card
        assert "&lt;script&gt;" in card
    shown = wb.Threshold(0.25).fit(test)(test)._repr_html_()
    assert "fir 0.70" in shown
    assert shown.count("✓") == shown.count("✗") == 1
    many = wb.LogitTable(np.zeros((2, 9)), np.eye(9, dtype=bool)[:2], link="sigmoid")
    assert "… 3 more" in wb.Threshold(0.1).fit(many)(many)._repr_html_()
    assert "none or many a row" in many._repr_html_()
