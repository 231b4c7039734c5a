"""A film of a loss along one knob: each triangle is the level sets at that value."""

from __future__ import annotations

import numpy as np
import pytest

import workbench as wb

LOSS = wb.losses.NoisedTopK(K=1, epsilon=0.2)


def test_each_triangle_is_the_level_sets_at_its_value():
    film = wb.figures.filmstrip(LOSS, "epsilon", (0.1, 1.0), label=1, steps=11)
    for epsilon, panel in zip((0.1, 1.0), film.panels, strict=True):
        alone = wb.figures.level_sets(wb.losses.NoisedTopK(K=1, epsilon=epsilon), label=1, steps=11)
        assert np.array_equal(panel.frame["value"], alone.frame["value"])
        assert np.array_equal(film.frame.loc[film.frame["epsilon"] == epsilon, "value"], alone.frame["value"])
    assert [panel.title for panel in film.panels] == ["ε = 0.1", "ε = 1"]


def test_without_values_the_present_one_stands_in_the_middle():
    film = wb.figures.filmstrip(LOSS, "epsilon", steps=5)
    values = film.frame["epsilon"].unique()
    assert len(values) == 5
    assert values[2] == 0.2
    assert wb.figures.filmstrip(LOSS, "K", steps=5).frame["K"].unique().tolist() == [1, 2]


def test_triangles_that_are_not_rescaled_have_one_colour_scale():
    film = wb.figures.filmstrip(LOSS, "epsilon", (0.1, 3.0), steps=11, rescale=False)
    assert len({panel.value_range for panel in film.panels}) == 1
    low, high = film.panels[0].value_range
    assert low <= film.frame["value"].min()
    assert film.frame["value"].max() <= high


@pytest.mark.parametrize(("knob", "values"), [("junk", (1.0,)), ("epsilon", ())])
def test_a_knob_that_cannot_move_is_refused_in_words(knob, values):
    with pytest.raises(ValueError, match=r"has K, epsilon|values is empty"):
        wb.figures.filmstrip(LOSS, knob, values)
