"""A rule fitted through one link is refused on a table that is read through another, where its threshold means something else."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import workbench as wb
from workbench.sets import RULES
from workbench.store.imported_tables import keep_tables

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
SCORES = np.random.default_rng(0).normal(size=(200, 5)) * 2
TABLE = wb.LogitTable(
    SCORES,
    SCORES.argmax(1),
    class_counts=[9, 8, 7, 6, 5],
    groups=[*"aabbc"],
    attributes={"weight": np.ones(200), "ratio": np.ones(200), "object": np.arange(200)},
    votes=np.eye(5, dtype=int)[SCORES.argmax(1)],
)
VAL, TEST = TABLE.split()
PROBABILITIES = wb.LogitTable.from_probabilities(TEST.probabilities(), TEST.labels, attributes=TEST.attributes)
OTHERS = {
    "sigmoid": TEST.with_link("sigmoid"),
    "sparsemax": TEST.with_link("sparsemax"),
    "quasibinary": TEST.with_link("quasibinary", 1.0),
    "identity": PROBABILITIES,
}


@pytest.mark.parametrize("kind", RULES)
def test_a_rule_that_learns_from_probabilities_is_refused_where_they_have_another_link(kind):
    fitted = kind().fit(VAL)
    assert len(fitted.sets(TEST)) == TEST.n
    for link, other in OTHERS.items():
        if not kind.needs_fit:
            assert len(fitted.sets(other)) == TEST.n
            continue
        with pytest.raises(ValueError, match=f"fitted .* softmax link .* {link} link"):
            fitted.sets(other)
        if hasattr(fitted, "p_values"):
            with pytest.raises(ValueError, match=f"fitted .* softmax link .* {link} link"):
                fitted.p_values(other)


def test_the_refusal_says_what_to_do():
    fitted = wb.LAC(0.8).fit(VAL)
    with pytest.raises(ValueError, match=r"table\.with_link\('softmax'\)"):
        fitted(OTHERS["sigmoid"])
    assert np.array_equal(fitted(OTHERS["sigmoid"].with_link("softmax")).matrix(), fitted(TEST).matrix())
    with pytest.raises(ValueError, match=r"from_probabilities\(table\.probabilities\(\)"):
        fitted(PROBABILITIES)
    of_probabilities = wb.LAC(0.8).fit(wb.LogitTable.from_probabilities(VAL.probabilities(), VAL.labels))
    with pytest.raises(ValueError, match=r"from_probabilities\(table\.probabilities\(\)"):
        of_probabilities(TEST)
    assert np.array_equal(of_probabilities(PROBABILITIES).matrix(), fitted(TEST).matrix())


def test_the_constant_of_the_quasibinary_link_must_be_that_of_the_fit():
    fitted = wb.AverageK(2).fit(VAL.with_link("quasibinary", 1.0))
    assert fitted(TEST.with_link("quasibinary", 1.0)).sizes.mean() > 0
    with pytest.raises(ValueError, match=r"log C = 1 .* log C = 2.*with_link\('quasibinary', 1.0\)"):
        fitted(TEST.with_link("quasibinary", 2.0))


@pytest.mark.parametrize("recalibrator", [wb.TemperatureScaling(), wb.calibration.IsotonicScaling()])
def test_a_recalibrated_table_keeps_its_link_and_rules_go_on(recalibrator):
    recalibrated = recalibrator.fit(VAL)
    assert len(wb.LAC(0.8).fit(recalibrated(VAL))(recalibrated(TEST))) == TEST.n
    assert len(wb.LAC(0.8).fit(VAL)(recalibrated(TEST))) == TEST.n  # another temperature, but the same link


@pytest.mark.parametrize("kind", wb.calibration.RECALIBRATORS)
def test_a_recalibrator_is_refused_where_scores_have_another_link(kind):
    fitted = kind().fit(VAL)
    assert fitted(TEST).n == TEST.n
    with pytest.raises(ValueError, match="softmax"):
        fitted(OTHERS["sigmoid"])


def test_a_bayes_rule_knows_the_link_of_its_posterior():
    for rule in (wb.LAC(0.8), wb.AverageK(2.0)):
        with pytest.raises(ValueError, match=r"identity link .* softmax link"):
            rule.bayes(PROBABILITIES)(TEST)


def test_figures_and_imports_of_two_tables_need_one_link(store):
    other = OTHERS["sigmoid"]
    for figure in (
        lambda: wb.figures.explore(VAL, other),
        lambda: wb.figures.head_or_tail(VAL, other),
        lambda: wb.figures.size_against_threshold(wb.SetIndex(VAL), wb.SetIndex(other)),
        lambda: keep_tables(VAL, test=other, title="two", store=store),
    ):
        with pytest.raises(ValueError, match=r"softmax link .* sigmoid link"):
            figure()


def test_the_nodes_of_a_hierarchical_set_are_of_the_groups_it_was_fitted_with():
    names = ("a1", "a2", "b1", "b2", "c")
    val = dataclasses.replace(VAL, class_names=names)
    fitted = wb.Hierarchical(0.8).fit(val)
    order = np.array([4, 2, 0, 3, 1])
    expected = fitted.sets(val)
    without = dataclasses.replace(val, groups=None)
    regrouped = dataclasses.replace(val, groups=("x", "y", "x", "y", "x"))
    reordered = wb.LogitTable(
        val.scores[:, order],
        np.argsort(order)[val.labels],
        class_names=tuple(names[j] for j in order),
        groups=[*"vwxyz"],
    )
    for table in (without, regrouped, reordered):
        sets = fitted.sets(table)
        assert np.array_equal(sets.node_counts, expected.node_counts)
        assert [sets.nodes(i) for i in range(20)] == [expected.nodes(i) for i in range(20)]
        assert sets.rows(slice(5, 9)).nodes(0) == expected.nodes(5)
        assert wb.metrics.mean_nodes(sets) == wb.metrics.mean_nodes(expected)
