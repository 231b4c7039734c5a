"""The picture of twins: what a loss does to two classes that nobody can tell apart."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb
from workbench.losses import AverageKTwoHead, CrossEntropy, NoisedTopK, Quasibinary


@pytest.fixture(scope="module")
def few() -> wb.figures.Figure:
    return wb.figures.twins(steps=300)


def test_cross_entropy_learns_few_twins_by_heart_and_a_loss_for_two_places_does_not(few):
    end = few.at_the_end()
    assert end["label"]["Cross-entropy"] > 0.85
    assert end["twin"]["Cross-entropy"] < 0.15
    assert end["other twin"]["Cross-entropy"] < 0.2 < 0.4 < end["other twin"]["Noised top-K"]
    assert end["set holds the label"]["Cross-entropy"] < 0.95
    assert end["set holds the label"]["Noised top-K"] == 1


def test_two_heads_keep_the_twin_beside_the_label_at_first_and_for_longer_than_cross_entropy(few):
    def twin(loss: str, step: float) -> float:
        lines = few.frame.query("loss == @loss and line == 'other'").set_index("step")["value"]
        return lines.iloc[np.abs(lines.index - step).argmin()]

    assert twin("Average-K two-head", 20) > 0.45 > 0.4 > twin("Cross-entropy", 20)
    # By then the head that proposes has learnt the photographs by heart too.
    assert twin("Average-K two-head", 300) < 0.25


def test_with_many_photographs_nobody_is_hurt():
    end = wb.figures.twins([CrossEntropy(), NoisedTopK(K=2, epsilon=0.5)], photographs=150, steps=100).at_the_end()
    assert (end["set holds the label"] == 1).all()
    assert end["other twin"].min() > 0.3


def test_one_step_of_cross_entropy_is_the_one_on_paper():
    frame = wb.figures.twins([CrossEntropy()], photographs=5, details=0, steps=2, learning_rate=0.1).frame
    first = frame.query("step == 1 and photographs == 'training photographs'").set_index("line")["value"]
    flower = np.repeat([3.0, 3.0, -3.0], 5)
    pull = np.eye(3)[np.repeat([0, 1, 2], 5)] - 1 / 3  # label minus probability, from scores that are all 0
    weights, bias = 0.1 * flower @ pull / 15, 0.1 * pull.mean(0)
    scores = np.exp(3 * weights + bias)
    assert first.tolist() == pytest.approx((scores / scores.sum()).tolist())


def test_what_cannot_be_shown_is_refused_in_words():
    with pytest.raises(ValueError, match="1 to 4 losses"):
        wb.figures.twins([])
    with pytest.raises(ValueError, match="read by softmax"):
        wb.figures.twins([Quasibinary()])
    with pytest.raises(ValueError, match="same title"):
        wb.figures.twins([AverageKTwoHead(K=1.5), AverageKTwoHead(K=2)])
