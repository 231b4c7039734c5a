"""How runs look: each as its key says, told apart in one picture, and by everybody."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from test_style import SIGHT, THEMES, contrast, lab

from workbench.figures.looks import BY_DAY, BY_NIGHT, MARKS, Look, look_of, looks
from workbench.store import DEMO, Store

keys = some.lists(some.text("0123456789abcdef", min_size=64, max_size=64), unique=True, max_size=20)


@given(keys, some.text("0123456789abcdef", min_size=64, max_size=64))
def test_runs_of_a_picture_are_told_apart_and_a_later_one_changes_nothing(oldest_first, later):
    found = looks(oldest_first)
    assert len(set(found.values())) == len(oldest_first)
    assert len({look.colour for look in found.values()}) == min(len(oldest_first), len(BY_DAY))
    assert all(found[key] == look_of(key) for key in oldest_first[:1])
    assert found.items() <= looks([*oldest_first, later]).items()


def test_the_runs_of_the_package_have_colours_of_their_own_wherever_they_meet():
    found = [run.key for run in Store(DEMO).runs()]
    assert len({look_of(key).colour for key in found}) == len(found)
    assert looks(found) == {key: look_of(key) for key in found}


@pytest.mark.parametrize(("theme", "palette"), list(zip(THEMES, (BY_DAY, BY_NIGHT), strict=True)), ids=("day", "night"))
@pytest.mark.parametrize("sight", SIGHT)
def test_the_colours_of_runs_differ_for_every_kind_of_sight_and_stand_out(theme, palette, sight):
    for one, other in itertools.combinations(palette, 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) > 15, (one, other)
    assert min(contrast(colour, theme.paper) for colour in palette) >= 3
    assert [Look(place).in_colour(theme) for place in range(len(palette))] == list(palette)
    assert len(set(MARKS)) == len(MARKS)
