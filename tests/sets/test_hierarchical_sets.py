"""Sets that answer with a genus: their nodes, their size in nodes, and their promise."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import workbench as wb

GENERA = ("a", "a", "a", "b", "b", "c")
NAMES = ("a1", "a2", "a3", "b1", "b2", "c1")
CODES = np.array([0, 0, 0, 1, 1, 2])


def plants(n: int, seed: int) -> wb.LogitTable:
    """Species of a genus are hard to tell apart; the probabilities are the posterior."""
    rng = np.random.default_rng(seed)
    centres = np.array([[0, 0], [1, 0], [0, 1], [4, 4], [5, 4], [-4, 4]], dtype=float)
    labels = rng.integers(0, 6, n)
    x = centres[labels] + rng.normal(size=(n, 2))
    return wb.LogitTable(-((x[:, None] - centres) ** 2).sum(-1) / 2, labels, class_names=NAMES, groups=GENERA)


VAL, TEST = plants(400, 1), plants(200, 2)


def cover(members: np.ndarray, n_nodes: int) -> np.ndarray:
    """The answer of at most `n_nodes` nodes that holds some classes, by its definition."""
    if len(members) <= n_nodes:
        return np.isin(np.arange(6), members)
    by_group = {code: members[CODES[members] == code] for code in set(CODES[members])}
    if len(by_group) > n_nodes:
        return np.ones(6, bool)
    answer = np.zeros(6, bool)
    for code, inside in by_group.items():
        answer[np.flatnonzero(CODES == code) if len(inside) > 1 else inside] = True
    return answer


@pytest.mark.parametrize("score", ["LAC", "APS(randomized=False)"])
@pytest.mark.parametrize("n_nodes", [1, 2, 3, 6])
def test_a_set_is_the_cover_of_the_classes_up_to_the_limit(n_nodes, score):
    fitted = wb.Hierarchical(0.9, n_nodes=n_nodes, score=score).fit(VAL)
    leaves = fitted.score.leaf.of_classes(wb.sets.base.Block(TEST))
    expected = np.array([cover(np.flatnonzero(row <= fitted.limit), n_nodes) for row in leaves])
    sets = fitted.sets(TEST)
    assert np.array_equal(sets.matrix(), expected)
    assert sets.node_counts.max() <= n_nodes


def test_as_many_nodes_as_classes_are_the_plain_rule():
    assert np.array_equal(
        wb.Hierarchical(0.9, n_nodes=6).fit(VAL).sets(TEST).matrix(), wb.LAC(0.9).fit(VAL).sets(TEST).matrix()
    )


def test_the_nodes_of_a_set_are_whole_groups_single_classes_or_everything():
    table = wb.LogitTable(np.zeros((5, 6)) - np.arange(6), groups=GENERA, class_names=NAMES)
    matrix = np.array([[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1], [1, 1, 1, 1, 1, 0], [1] * 6, [0] * 6], bool)
    sets = wb.PredictionSets.from_matrix(table, matrix)
    nodes = [["a"], ["a1", "a2", "c1"], ["a", "b"], ["every class"], []]
    assert [sets.nodes(i) for i in range(5)] == nodes
    assert sets.node_counts.tolist() == [len(names) for names in nodes]
    assert wb.metrics.mean_nodes(sets) == 7 / 5
    with pytest.raises(ValueError, match="no groups"):
        wb.PredictionSets.from_matrix(wb.LogitTable(np.zeros((5, 6))), matrix).node_counts


def test_over_500_splits_the_coverage_of_one_node_is_what_was_promised():
    both = plants(500 * 61, 9)
    hits = 0
    for split in range(500):
        rows = both.rows(slice(61 * split, 61 * split + 61))
        hits += int(wb.Hierarchical(0.8).fit(rows.rows(slice(60))).sets(rows.rows([60])).hits[0])
    assert hits >= stats.binom(500, 0.8).ppf(1e-3)


def test_fewer_names_cost_more_classes_and_the_report_has_both_sizes():
    rules = [wb.Hierarchical(0.9, n_nodes=n) for n in (1, 2, 6)]
    frame = wb.report(TEST, rules, val=VAL, metrics=[wb.metrics.mean_nodes, wb.metrics.mean_size])
    nodes, sizes = (frame[frame.metric == name]["value"].to_numpy() for name in ("mean_nodes", "mean_size"))
    assert (np.diff(nodes) >= 0).all()
    assert (np.diff(sizes) <= 0).all()


def test_the_columns_of_another_table_may_stand_in_another_order():
    order = np.array([5, 3, 1, 0, 2, 4])
    other = wb.LogitTable(
        TEST.scores[:, order], class_names=[NAMES[j] for j in order], groups=[GENERA[j] for j in order]
    )
    fitted = wb.Hierarchical(0.9).fit(VAL)
    assert np.array_equal(fitted.sets(other).matrix(), fitted.sets(TEST).matrix()[:, order])
