"""How runs look: each as its key says, told apart in one picture, and by everybody."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from test_style import SIGHT, THEMES, contrast, lab

import workbench as wb
from workbench.figures.run_styles import BY_DAY, BY_NIGHT, MARKS, Look, look_of, looks
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
    on_same_rows: dict[object, list[str]] = {}
    for run in Store(DEMO).runs():
        on_same_rows.setdefault(run.rows_of("test"), []).append(run.key)
    assert max(map(len, on_same_rows.values())) == 3
    for found in on_same_rows.values():
        assert len({look_of(key).colour for key in found}) == len(found)
        assert looks(found) == {key: look_of(key) for key in found}


@pytest.mark.parametrize(("theme", "palette"), list(zip(THEMES, (BY_DAY, BY_NIGHT), strict=True)), ids=("day", "night"))
@pytest.mark.parametrize("sight", SIGHT)
def test_the_colours_of_runs_differ_for_every_kind_of_sight_and_stand_out(theme, palette, sight):
    for one, other in itertools.combinations(palette, 2):
        assert np.linalg.norm(lab(one, sight) - lab(other, sight)) > 15, (one, other)
    assert min(contrast(colour, theme.paper) for colour in palette) >= 3
    apart = [np.linalg.norm(lab(colour, sight) - lab(theme.threshold, sight)) for colour in palette]
    assert min(apart) > (30 if sight == "normal" else 10), "crimson is where the slider stands, never a run"
    assert [Look(place).in_colour(theme) for place in range(len(palette))] == list(palette)
    assert len(set(MARKS)) == len(MARKS)


def test_a_run_keeps_its_look_in_every_picture_where_runs_lie_over_each_other():
    one, other = Look(4, 1), Look(2, 3)
    table = wb.LogitTable(np.eye(6) * 3, np.eye(6, dtype=bool), link="sigmoid")
    f1 = wb.figures.f1_against_threshold({"one": table, "other": table}, looks={"one": one, "other": other})
    drawn = f1.plot().data
    assert [trace.line.color for trace in drawn[:2]] == [BY_DAY[4], BY_DAY[2]]
    assert [trace.marker.symbol for trace in drawn[2:]] == [one.plotly, other.plotly]
    sets = wb.TopK(2).fit(table)(table)
    bars, outlines = wb.figures.set_sizes(sets, other=sets, looks=(one, other)).plot(dark=True).data
    alone = wb.figures.set_sizes(sets).plot(dark=True).data[0]
    assert bars.marker.color == alone.marker.color, "a second run does not recolour the first"
    assert outlines.marker.line.color == BY_NIGHT[2]
    columns = ["loss.epsilon", "loss.K", "split", "metric", "mean", "seeds", "low", "high"]
    rows = [(epsilon, K, "val", "accuracy", 0.5, 1, None, None) for K in (2, 3, 5) for epsilon in (0.1, 1.0)]
    summary = pd.DataFrame(rows, columns=columns)
    all_lines, few = (
        {trace.name: (trace.line.color, trace.marker.symbol) for trace in figure.plot().data}
        for figure in (
            wb.figures.against_knob(part, "loss.epsilon", split="val")
            for part in (summary, summary[summary["loss.K"] < 5])
        )
    )
    assert few.items() < all_lines.items()
    assert len({*all_lines.values()}) == 3
