"""The probe: every number at one point of the triangle is the library's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import workbench as wb
from workbench.figures.losses.evaluation import on_three_classes
from workbench.losses import LOSSES

THREE_SCORES = st.tuples(*[st.floats(-3, 3)] * 3)


@pytest.mark.parametrize("loss_class", LOSSES, ids=lambda loss_class: loss_class.__name__)
def test_a_probe_has_the_value_and_the_gradient_that_the_level_sets_have_at_its_point(loss_class):
    loss = on_three_classes(loss_class)
    levels = wb.figures.level_sets(loss, label=1, steps=8, rescale=False, gradients=True).frame
    row = levels.iloc[10]  # s = (8, 4, 2) / 7
    frame = wb.figures.probe(loss, row[["s0", "s1", "s2"]], label=1).frame
    np.testing.assert_allclose(frame["value"], row["value"], atol=1e-9)
    np.testing.assert_allclose(frame["gradient"], row[["g0", "g1", "g2"]].to_numpy(float), atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(THREE_SCORES, st.integers(0, 2))
def test_of_cross_entropy_the_gradient_is_softmax_minus_the_label(scores, label):
    frame = wb.figures.probe(wb.losses.CrossEntropy(), scores, label).frame
    np.testing.assert_allclose(frame["probability"], torch.tensor(scores).double().softmax(0), atol=1e-6)
    np.testing.assert_allclose(frame["gradient"], frame["probability"] - np.eye(3)[label], atol=1e-6)
    np.testing.assert_allclose(frame["value"], -np.log(frame["probability"][label]), atol=1e-6)


def test_the_calibrated_hinge_pulls_the_label_up_and_the_class_behind_the_set_down():
    frame = wb.figures.probe(wb.losses.CalibratedTopKHinge(K=1), (1.0, 0.7, 0.3), label=0).frame
    assert frame["value"].tolist() == pytest.approx([0.7] * 3)  # 1 + s₍₂₎ − s_y
    assert frame["gradient"].tolist() == [-1.0, 1.0, 0.0]


@settings(max_examples=25, deadline=None)
@given(THREE_SCORES, st.integers(0, 2), st.integers(1, 2))
def test_the_set_is_the_one_that_top_k_predicts_and_holds_the_label_iff_its_rank_is_at_most_k(scores, label, K):
    figure = wb.figures.probe(wb.losses.CrossEntropy(), scores, label, K=K)
    table = wb.LogitTable(np.array([scores]), [label])
    sets = wb.TopK(K).fit(table)(table)
    assert sorted(sets.members(0)[0]) == figure.frame.loc[figure.frame["in_set"], "class"].tolist()
    assert (figure.rank <= K) == sets.hits[0] == figure.frame["in_set"][label]


def test_two_losses_stand_side_by_side_and_the_same_one_twice_is_one():
    hinge, cross_entropy = wb.losses.TopKHinge(K=2), wb.losses.CrossEntropy()
    figure = wb.figures.probe([hinge, cross_entropy])
    assert figure.frame["loss"].nunique() == 2
    assert figure.title == f"Losses {figure.frame['value'][0]:.4g} and {figure.frame['value'][3]:.4g}"
    assert len(wb.figures.probe([hinge, hinge]).frame) == 3


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ((1.0, 2.0), "give three finite numbers"),
        ((0.0, 1.0, np.nan), "give three finite"),
        ("abc", "give three finite"),
    ],
)
def test_a_point_that_is_none_is_refused_in_words(scores, message):
    with pytest.raises(ValueError, match=message):
        wb.figures.probe(wb.losses.CrossEntropy(), scores)
    with pytest.raises(ValueError, match=message):
        wb.figures.level_sets(wb.losses.CrossEntropy(), steps=3).with_point(scores)


def test_three_losses_and_a_set_of_three_classes_are_refused_in_words():
    with pytest.raises(ValueError, match="3 losses were given; a probe shows one or 2"):
        wb.figures.probe([wb.losses.CrossEntropy(), wb.losses.TopKHinge(K=1), wb.losses.TopKHinge(K=2)])
    with pytest.raises(ValueError, match="K = 3; of three classes a set holds 1 or 2"):
        wb.figures.probe(wb.losses.CrossEntropy(), K=3)


def test_a_mark_on_the_triangle_stands_at_the_scores_and_is_in_the_words_and_the_code():
    figure = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=5).with_point((0.5, 0.5, 1.0))
    assert figure.marks[-1].place == (0.25, 0.25, 0.5)
    assert figure.text.endswith("A mark stands at s = (0.50, 0.50, 1.00).")
    made = {}
    exec(figure.code, made)
    assert made["figure"].marks == figure.marks
    with pytest.raises(ValueError, match="scores ≥ 0 that sum to 2"):
        figure.with_point((1.0, 1.0, 1.0))
