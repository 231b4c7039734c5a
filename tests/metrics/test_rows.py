"""Which rows one asks for, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.metrics.rows import DISAGREEMENTS, ORDERS, RowFilter, disagree, in_order, listed, suggestions


def tables(n=200, n_classes=6, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(0, n_classes, n)
    organs = random.choice(["flower", "leaf"], n)
    make = lambda noise: wb.LogitTable(  # noqa: E731
        noise * random.normal(size=(n, n_classes)) + 3 * np.eye(n_classes)[labels],
        labels,
        attributes={"organ": organs},
        groups=["a", "a", "b", "b", "c", "c"],
    )
    return make(1.0), make(2.0)


@pytest.fixture(scope="module")
def sets():
    table, _ = tables()
    return wb.Threshold(0.1).fit(table).sets(table)


@pytest.fixture(scope="module")
def other():
    _, table = tables()
    return wb.Threshold(0.1).fit(table).sets(table)


def test_rows_are_asked_for_by_how_many_labels_they_have(sets):
    labels = np.random.default_rng(1).random((200, 6)) < 0.2
    table = wb.LogitTable(sets.table.scores, labels, link="sigmoid")
    many = wb.Threshold(0.1).fit(table).sets(table)
    n_labels = labels.sum(axis=1)
    for fewest, most in ((0, 0), (1, 6), (2, 3)):
        expected = np.flatnonzero((fewest <= n_labels) & (n_labels <= most))
        assert 0 < len(expected) < 200
        assert RowFilter(n_labels=(fewest, most)).rows(many).tolist() == expected.tolist()
    assert len(RowFilter(n_labels=(0, 0)).rows(sets)) == 0


def test_nothing_asked_gives_every_row(sets):
    assert RowFilter().rows(sets).tolist() == list(range(200))


def test_each_question_gives_the_rows_of_which_it_is_true(sets, other):
    members, matrix, labels = sets.table.probabilities(), sets.matrix(), sets.table.labels
    truth = {
        RowFilter(sizes=(2, 3)): np.isin(matrix.sum(1), (2, 3)),
        RowFilter(hit=True): matrix[np.arange(200), labels],
        RowFilter(hit=False): ~matrix[np.arange(200), labels],
        RowFilter(label=2): labels == 2,
        RowFilter(holds=(0, 3)): matrix[:, 0] & matrix[:, 3],
        RowFilter(groups=(("organ", "leaf"),)): sets.table.attributes["organ"] == "leaf",
        RowFilter(groups=(("groups", "b"), ("organ", "leaf"))): np.isin(labels, (2, 3))
        & (sets.table.attributes["organ"] == "leaf"),
        RowFilter(sure=(0.5, 0.8)): (members.max(1) > 0.5) & (members.max(1) <= 0.8),
        RowFilter(disagreement=DISAGREEMENTS[0]): sets.hits & ~other.hits,
        RowFilter(disagreement=DISAGREEMENTS[1]): ~sets.hits & other.hits,
        RowFilter(disagreement=DISAGREEMENTS[2]): (matrix != other.matrix()).any(1),
    }
    for asked, true in truth.items():
        assert 0 < true.sum() < 200, asked
        assert asked.rows(sets, other).tolist() == np.flatnonzero(true).tolist(), asked


def test_sure_rows_are_those_in_the_bin_of_a_reliability_diagram():
    float32 = np.array([[0.2], [0.4], [0.6], [0.1]], np.float32)  # beside the edges of five bins, not on them
    above_one = wb.LogitTable(np.log([[1.5], [0.9]]), labels=[0, 0], link="quasibinary", link_constant=0.0)
    for table in (wb.LogitTable.from_probabilities(float32, labels=[[True]] * 4), above_one):
        sets = wb.Threshold(0.1).fit(table).sets(table)
        bins = wb.metrics.reliability_bins(table, bins=5)
        counts = [len(RowFilter(sure=ends).rows(sets)) for ends in bins[["low", "high"]].itertuples(index=False)]
        assert counts == bins["count"].tolist()


def test_of_many_labels_a_row_has_each_of_its_classes():
    labels = np.array([[True, True, False], [False, False, False], [False, True, False]])
    table = wb.LogitTable(np.zeros((3, 3)), labels, link="sigmoid")
    sets = wb.Threshold(0.4).fit(table).sets(table)
    assert RowFilter(label=1).rows(sets).tolist() == [0, 2]
    assert RowFilter(label=0, hit=True).rows(sets).tolist() == [0]


def test_what_is_not_known_is_refused_in_words(sets):
    with pytest.raises(ValueError, match="flower, leaf"):
        RowFilter(groups=(("organ", "bark"),)).rows(sets)
    with pytest.raises(ValueError, match="give other="):
        RowFilter(disagreement=DISAGREEMENTS[0]).rows(sets)
    with pytest.raises(ValueError, match="only this run hits"):
        disagree(sets, sets, "a little")
    with pytest.raises(ValueError, match="largest sets"):
        in_order(sets, np.arange(3), "prettiest")
    unlabelled = wb.LogitTable(sets.table.scores)
    with pytest.raises(ValueError, match="no labels"):
        RowFilter(hit=True).rows(wb.Threshold(0.1).fit(unlabelled).sets(unlabelled))


def test_every_order_holds_the_same_rows_and_keeps_equal_ones_as_in_the_table(sets):
    rows = np.arange(10, 90)
    for order in ORDERS:
        assert sorted(in_order(sets, rows, order).tolist()) == rows.tolist()
    assert in_order(sets, rows, "as in the table").tolist() == rows.tolist()
    sizes = sets.sizes[in_order(sets, rows, "largest sets")]
    assert (np.diff(sizes) <= 0).all()
    largest = in_order(sets, rows, "largest sets")[sizes == sizes[0]]
    assert (np.diff(largest) > 0).all()


def test_orders_are_by_what_they_say(sets):
    probabilities = sets.table.probabilities()
    top = probabilities.max(1)
    assert in_order(sets, np.arange(200), "least sure")[0] == top.argmin()
    assert in_order(sets, np.arange(200), "surest")[0] == top.argmax()
    assert in_order(sets, np.arange(200), "truth least likely")[0] == (
        probabilities[np.arange(200), sets.table.labels].argmin()
    )
    entropy = -(probabilities * np.log(probabilities)).sum(1)
    assert in_order(sets, np.arange(200), "most ambiguous")[0] == entropy.argmax()


def test_suggestions_are_the_set_and_the_labels_it_misses(sets):
    votes = np.arange(6)[None].repeat(200, axis=0)
    table = wb.LogitTable(sets.table.scores, sets.table.labels, votes=votes)
    found = wb.Threshold(0.1).fit(table).sets(table)
    for row in (*np.flatnonzero(found.hits)[:3], *np.flatnonzero(~found.hits)[:3]):
        frame = suggestions(found, row)
        classes, probabilities = found.members(row)
        told = frame[frame["in_set"]]
        assert told["class"].tolist() == classes.tolist()
        assert told["probability"].tolist() == probabilities.tolist()
        assert frame[frame["is_label"]]["class"].tolist() == [table.labels[row]]
        assert frame["votes"].tolist() == pytest.approx([label / 15 for label in frame["class"]])
        assert len(frame) == len(classes) + (not found.hits[row])
    everything = wb.Threshold(0.0).fit(table).sets(table)
    assert len(suggestions(everything, 0, most=2)) == 2 + (table.labels[0] not in everything.members(0)[0][:2])
    assert suggestions(everything, 0, most=2)["in_set"].all()


def test_rows_are_listed_with_what_is_true_of_each(sets):
    rows = np.array([7, 3, 150])
    frame = listed(sets, rows)
    names = sets.table.named_classes()
    assert frame["row"].tolist() == [7, 3, 150]
    assert frame["size"].tolist() == sets.sizes[rows].tolist()
    assert frame["hit"].tolist() == sets.hits[rows].tolist()
    assert frame["label"].tolist() == [names[label] for label in sets.table.labels[rows]]
    assert frame["most_probable"].tolist() == [names[best] for best in sets.table.probabilities(rows).argmax(axis=1)]
    many = wb.LogitTable(np.eye(3), [[True, True, False], [False] * 3, [False, False, True]], link="sigmoid")
    assert listed(wb.Threshold(0.5).fit(many).sets(many), np.arange(3))["label"].tolist() == [
        "class 0; class 1",
        "",
        "class 2",
    ]


@pytest.mark.parametrize(
    ("asked", "needs"),
    [
        (RowFilter(label=1, groups=(("organ", "leaf"),), sure=(0.2, 0.9), pair=(0, 1)), False),
        (RowFilter(sizes=(1, 1)), True),
        (RowFilter(hit=False), True),
        (RowFilter(label=1, exactly=(1,)), True),
    ],
)
def test_a_filter_knows_whether_it_follows_the_sets(sets, asked, needs):
    larger = wb.Threshold(0.01).fit(sets.table).sets(sets.table)
    assert asked.needs_sets == needs
    assert (asked.rows(sets).tolist() != asked.rows(larger).tolist()) == needs
