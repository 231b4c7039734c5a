"""Rows with the same answer, and the set of the network beside the Bayes set: numbers, and the rows behind a picture."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import workbench as wb
from workbench.figures.base import Click
from workbench.metrics.against_bayes import QUADRANTS, sizes_against_bayes
from workbench.metrics.frequent_sets import frequent_sets
from workbench.metrics.rows import RowFilter

rng = np.random.default_rng(0)
TRUTH = rng.dirichlet(np.full(5, 0.4), 300)
LABELS = np.array([rng.choice(5, p=p) for p in TRUTH])
TABLE = wb.LogitTable.from_probabilities(0.7 * TRUTH + 0.3 * rng.dirichlet(np.ones(5), 300), LABELS, posterior=TRUTH)
SETS = wb.Threshold(0.2).fit(TABLE)(TABLE)
SELECTED = np.arange(0, 300, 3)
ANSWERS = [frozenset(SETS.members(row)[0].tolist()) for row in range(300)]

pytestmark = pytest.mark.filterwarnings("ignore:.* sets are empty")


def members(text: str) -> frozenset[int]:
    return frozenset(int(number) for number in text.split(".") if number)


def test_the_most_frequent_sets_are_those_that_one_counts_by_hand():
    frame = frequent_sets(SETS)
    counted = Counter(ANSWERS)
    assert dict(zip(map(members, frame["classes"]), frame["count"], strict=True)) == counted
    assert frame["count"].is_monotonic_decreasing
    assert frame["share"].sum() == pytest.approx(1)
    assert (frame["hits"] + frame["misses"]).equals(frame["count"])
    assert frame["hits"].sum() == SETS.hits.sum()


def test_sets_with_the_most_selected_rows_come_first():
    mask = np.isin(np.arange(300), SELECTED)
    frame = frequent_sets(SETS, SELECTED)
    counted = Counter(ANSWERS[row] for row in SELECTED)
    assert frame["selected"].tolist() == [counted[members(text)] for text in frame["classes"]]
    assert frame["selected"].is_monotonic_decreasing
    assert frame.equals(frequent_sets(SETS, mask))


def test_a_row_without_a_label_is_neither_hit_nor_missed():
    table = wb.LogitTable.from_probabilities([[0.9, 0.1], [0.8, 0.2], [0.7, 0.3]], labels=[0, -1, 1])
    frame = frequent_sets(wb.TopK(1).fit(table)(table))
    assert frame[["count", "hits", "misses"]].to_numpy().tolist() == [[3, 1, 1]]


@pytest.mark.parametrize("place", range(4))
def test_a_bar_opens_the_rows_with_that_set(place):
    figure = wb.figures.same_answer(SETS)
    data = figure.plot().data[0].customdata[place]
    asked = figure.rows_behind(Click("correct", place, data))
    answer = members(figure.frame["classes"][place])
    assert asked.rows(SETS).tolist() == [row for row in range(300) if ANSWERS[row] == answer]
    assert eval(repr(asked)) == asked


def test_the_empty_set_is_an_answer_too():
    table = wb.LogitTable.from_probabilities([[0.5, 0.5], [0.9, 0.1]])
    sets = wb.Threshold(0.6).fit(table)(table)
    frame = frequent_sets(sets)
    assert set(frame["names"]) == {"no class", "class 0"}
    assert RowFilter(exactly=()).rows(sets).tolist() == [0]
    assert repr(RowFilter(exactly=())) == "RowFilter(exactly=())"


def test_a_selection_stands_in_front_of_the_whole():
    figure = wb.figures.same_answer(SETS, SELECTED).plot()
    pale, full = (
        [bar for bar in figure.data if bar.type == "bar" and (bar.marker.opacity < 1) is ghost]
        for ghost in (True, False)
    )
    shown = wb.figures.same_answer(SETS, SELECTED).shown()
    assert sum(np.sum(bar.x) for bar in pale) == shown["count"].sum()
    assert sum(np.sum(bar.x) for bar in full) == shown["selected"].sum()


def test_every_row_is_in_the_quadrant_of_its_two_sizes():
    sets = wb.AverageK(2.0).fit(TABLE)(TABLE)
    truth = wb.bayes.sets(TABLE, wb.AverageK(2.0))
    cut = truth.sizes.mean()
    rows = {name: RowFilter(quadrant=name).rows(sets) for name in QUADRANTS}
    assert sorted(np.concatenate(list(rows.values()))) == list(range(300))
    for name, (network_large, truth_large) in QUADRANTS.items():
        assert len(rows[name])
        assert ((sets.sizes[rows[name]] > cut) == network_large).all()
        assert ((truth.sizes[rows[name]] > cut) == truth_large).all()
    figure = wb.figures.against_bayes(sets, SELECTED)
    for name in QUADRANTS:
        assert figure.rows_behind(Click(name, 0)) == RowFilter(quadrant=name)
        of_quadrant = figure.frame[figure.frame["quadrant"] == name]
        assert of_quadrant["count"].sum() == len(rows[name])
        assert of_quadrant["selected"].sum() == np.isin(rows[name], SELECTED).sum()
        assert figure.shares[name] == np.isin(rows[name], SELECTED).sum() / len(SELECTED)


def test_a_network_that_knows_the_posterior_agrees_with_bayes():
    table = wb.LogitTable.from_probabilities(TRUTH, LABELS, posterior=TRUTH)
    sizes = sizes_against_bayes(wb.PointwiseError(0.8).fit(table)(table))
    assert np.array_equal(sizes.network, sizes.bayes)


def test_votes_of_people_stand_in_for_the_posterior():
    votes = rng.multinomial(20, TRUTH[0], 300)
    table = wb.LogitTable.from_probabilities(TRUTH, LABELS, votes=votes)
    sizes = sizes_against_bayes(wb.PointwiseError(0.8).fit(table)(table))
    shares = wb.LogitTable.from_probabilities(votes / 20)
    assert np.array_equal(sizes.bayes, wb.PointwiseError(0.8).fit(shares)(shares).sizes)


def test_what_has_no_bayes_set_is_refused_in_words():
    people = wb.PredictionSets.from_matrix(TABLE, TRUTH > 0.2)
    with pytest.raises(ValueError, match="give sets that a rule made"):
        wb.figures.against_bayes(people)
    table = wb.LogitTable.from_probabilities(TABLE.scores)
    with pytest.raises(ValueError, match="neither the true posterior nor human votes"):
        wb.figures.against_bayes(wb.TopK(1).fit(table)(table))
    with pytest.raises(ValueError, match="give one of both small"):
        RowFilter(quadrant="junk").rows(SETS)
