"""A − B on the triangle: the numbers of both losses, colours that mean a sign, and a line where they are equal."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import workbench as wb
from workbench.figures.losses.ternary import contour
from workbench.figures.style import DARK, LIGHT

HINGE, CROSS_ENTROPY = wb.losses.CalibratedTopKHinge(K=1), wb.losses.CrossEntropy()


@pytest.mark.parametrize("rescale", [False, True])
def test_the_difference_is_that_of_the_two_level_sets(rescale):
    frame = wb.figures.loss_difference(HINGE, CROSS_ENTROPY, label=0, steps=7, rescale=rescale).frame
    a, b = (wb.figures.level_sets(loss, 0, 7, rescale).frame["value"] for loss in (HINGE, CROSS_ENTROPY))
    np.testing.assert_array_equal(frame["value"], a - b)
    np.testing.assert_array_equal(frame[["first", "second"]], np.stack([a, b], axis=1))


def test_turned_round_it_is_its_own_negative_and_of_a_loss_with_itself_it_is_zero():
    there, back = (
        wb.figures.loss_difference(*pair, steps=7) for pair in ((HINGE, CROSS_ENTROPY), (CROSS_ENTROPY, HINGE))
    )
    np.testing.assert_array_equal(there.frame["value"], -back.frame["value"])
    assert there.value_range == back.value_range == (-there.value_range[1], there.value_range[1])
    same = wb.figures.loss_difference(HINGE, HINGE, steps=7)
    assert (same.frame["value"] == 0).all()
    assert same.plot().data
    assert same.static().axes


def test_the_line_runs_where_both_losses_are_equal():
    figure = wb.figures.loss_difference(HINGE, CROSS_ENTROPY, steps=41)
    line = contour(figure, "value", 0.0)
    line = line[np.isfinite(line).all(axis=1)]
    assert len(line) > 10
    x, y, values = figure.lattice()
    x, y, values = x[~values.mask], y[~values.mask], values.compressed()
    nearest = np.hypot(line[:, :1] - x, line[:, 1:] - y).argmin(axis=1)
    assert np.abs(values[nearest]).max() < 0.05 * np.ptp(values)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_both_signs_have_equal_lightness_and_are_told_apart_without_red_or_green(theme):
    colours = np.array([to_rgb(colour) for colour in theme.diverging])
    lightness = colours @ [0.2126, 0.7152, 0.0722]
    assert np.abs(lightness - lightness[::-1]).max() < 0.12
    assert (np.diff(lightness[:5]) > 0).all()
    blue_less_yellow = colours[:, 2] - colours[:, :2].mean(
        axis=1
    )  # what every kind of colour blindness but tritanopia keeps
    assert (blue_less_yellow[:5] < 0).all()
    assert (blue_less_yellow[5:] > 0).all()
