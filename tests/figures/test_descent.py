"""Paths of gradient descent: each step is the equation, and stays on the triangle."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import workbench as wb


def steps_of(figure: wb.figures.Figure) -> np.ndarray:
    return figure.frame.dropna(subset=["path"])[["s0", "s1", "s2"]].to_numpy()


def test_a_step_is_minus_the_gradient_projected_onto_the_triangle():
    start, rate = (0.8, 0.7, 0.5), 0.3
    first, second = steps_of(wb.figures.descent_paths(wb.losses.CrossEntropy(), start, 2, 1, rate, steps=5))
    gradient = torch.tensor(start).double().softmax(0).numpy() - [
        0,
        0,
        1,
    ]  # it sums to 0, and no score leaves the triangle
    np.testing.assert_allclose(first, start)
    np.testing.assert_allclose(second, start - rate * gradient, atol=1e-6)


@pytest.mark.parametrize("loss", [wb.losses.BinaryCrossEntropy(), wb.losses.TopKHinge(K=1)], ids=repr)
def test_paths_stay_on_the_triangle_and_end_lower_than_they_begin(loss):
    figure = wb.figures.descent_paths(loss, label=0, n_steps=20, learning_rate=0.1, steps=5)
    walked = figure.frame.dropna(subset=["path"])
    np.testing.assert_allclose(walked[["s0", "s1", "s2"]].sum(axis=1), 2)
    assert (walked[["s0", "s1", "s2"]] >= 0).all(axis=None)
    values = walked.groupby("path")["value"]
    assert (values.last() <= values.first()).all()


def test_where_the_loss_is_flat_a_path_goes_nowhere():
    walked = steps_of(wb.figures.descent_paths(wb.losses.TopKError(K=1), (1.0, 0.6, 0.4), steps=5))
    assert (walked == walked[0]).all()


def test_the_grid_of_the_level_sets_is_unchanged():
    figure = wb.figures.descent_paths(wb.losses.CrossEntropy(), steps=9, n_steps=2)
    levels = wb.figures.level_sets(wb.losses.CrossEntropy(), steps=9)
    assert figure.frame[["s0", "s1", "s2", "value"]].head(len(levels.frame)).equals(levels.frame)
    assert figure.frame["path"].nunique() == len(figure.paths()) == 10


def test_a_start_off_the_triangle_and_a_step_of_no_length_are_refused_in_words():
    with pytest.raises(ValueError, match="scores ≥ 0 that sum to 2"):
        wb.figures.descent_paths(wb.losses.CrossEntropy(), (1.0, 1.0, 1.0), steps=5)
    with pytest.raises(ValueError, match="learning_rate = 0; give a number above 0"):
        wb.figures.descent_paths(wb.losses.CrossEntropy(), learning_rate=0, steps=5)
