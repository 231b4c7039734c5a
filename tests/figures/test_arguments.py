"""What the figures of losses take: counts of points, ends of axes, numbers of any type; the rest is refused in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import workbench as wb


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: wb.figures.conditional_risk(wb.losses.CrossEntropy(), steps=1), "steps = 1; give a whole number ≥ 2"),
        (lambda: wb.figures.calibration_map(wb.losses.CrossEntropy(), steps=2), "steps = 2; give a whole number ≥ 3"),
        (lambda: wb.figures.calibration_map(wb.losses.CrossEntropy(), grid=1), "grid = 1; give a whole number ≥ 2"),
        (lambda: wb.figures.line_profile(wb.losses.CrossEntropy(), steps=1), "steps = 1; give a whole number ≥ 2"),
        (lambda: wb.figures.line_profile(wb.losses.CrossEntropy(), reach=0), "reach = 0; give a number above 0"),
        (lambda: wb.figures.line_profile(wb.losses.CrossEntropy(), value_range=(1, 0)), "give two numbers"),
        (lambda: wb.figures.binary_surrogates(steps=1), "steps = 1; give a whole number ≥ 2"),
        (lambda: wb.figures.binary_surrogates(reach=0), "reach = 0; give a number above 0"),
    ],
)
def test_a_grid_without_points_is_refused_in_words(draw, message):
    with pytest.raises(ValueError, match=message):
        draw()


def test_a_history_without_epochs_is_refused_in_words():
    with pytest.raises(
        ValueError, match=r"expected a DataFrame with the columns epoch, got one of \['train_loss'\]: a trained run"
    ):
        wb.figures.learning_curves(pd.DataFrame({"train_loss": [2.0, 1.0]}))


def test_whole_numbers_of_any_type_count_the_points():
    loss = wb.losses.CrossEntropy()
    assert wb.figures.level_sets(loss, steps=11.0).frame.equals(wb.figures.level_sets(loss, steps=11).frame)


def test_the_axis_of_a_line_profile_moves_in_few_steps_or_stays_where_it_is_told():
    ends = {wb.figures.line_profile(wb.losses.LDAM(scale=scale)).value_range for scale in range(20, 41)}
    assert len(ends) <= 2
    figure = wb.figures.line_profile(wb.losses.LDAM(), value_range=(0, 300))
    assert tuple(figure.plot().layout.yaxis.range) == (0, 300)
    assert figure.static().axes[0].get_ylim() == (0, 300)
    assert "value_range=(0.0, 300.0)" in figure.code


def test_code_holds_plain_numbers_whatever_was_given():
    loss, ends = wb.losses.CrossEntropy(), tuple(np.array([0.0, 4.0]))
    drawing = {"rescale": False, "total": np.float64(3), "value_range": ends, "regions": np.int64(2)}
    for figure in (
        wb.figures.level_sets(loss, np.int64(1), np.int64(5), **drawing, gradients=np.True_),
        wb.figures.line_profile(loss, np.array([0.0, 1.0]), np.float64(2), np.int64(5), value_range=ends),
        wb.figures.conditional_risk(loss, np.array([0.5, 0.3, 0.2]), np.int64(1), np.int64(5)),
        wb.figures.calibration_map(loss, np.int64(1), np.array([0.5, 0.3, 0.2]), np.int64(5), np.int64(5)),
        wb.figures.binary_surrogates(np.float64(2), np.int64(5)),
        wb.figures.smoothing_bounds(np.array([1.0, 2.0, 3.0]), np.int64(2), np.array([0.1, 1.0])),
        wb.figures.moat(np.array([0.1, 1.0]), np.int64(2), lead=np.float64(2), steps=np.int64(5)),
    ):
        assert "np." not in figure.code
        made: dict[str, Any] = {}
        exec(figure.code, made)
        assert made["figure"].frame.equals(figure.frame)
