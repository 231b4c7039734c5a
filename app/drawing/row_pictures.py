"""Pictures of the test rows that show a selection in front of all rows; a click on a part of one selects its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls.positions import along, compact, places
from controls.row_filters import knows_truth
from controls.rules import ChosenRule
from drawing.figures import browser_content, following
from drawing.handout import handout
from session import cached_data, messages
from session.address import bound, one_of
from workbench.figures import Code, Figure
from workbench.figures.film import Film
from workbench.metrics.along_slider import at_places
from workbench.metrics.rows import RowFilter
from workbench.warning_capture import captured_warnings

MAP, SIZES, ANSWERS, BAYES, SLICES = "Map", "Sizes", "Same answer", "Bayes", "Slices"
HEIGHT = 600  # pixels of a picture
MAKERS: dict[str, Callable[..., Figure]] = {
    SIZES: wb.figures.set_sizes,
    ANSWERS: wb.figures.same_answer,
    BAYES: wb.figures.against_bayes,
    SLICES: wb.figures.worst_slices,
}


def choose(table: wb.LogitTable) -> str:
    """The picture beside the wall, in the address as `picture`."""
    needs = {BAYES: knows_truth(table), SLICES: table.labels is not None}
    names = [name for name in (MAP, *MAKERS) if needs.get(name, True)]
    return st.segmented_control(
        "Picture", names, default=MAP, required=True, label_visibility="collapsed", **bound("picture", one_of(names))
    )


@messages.friendly
def draw(
    name: str,
    chosen_rule: ChosenRule,
    row_filter: RowFilter,
    rows: np.ndarray,
    slices: Mapping[str, RowFilter],
    code: Code,
    dark: bool,
) -> RowFilter | None:
    """Draw a picture of all sets with these rows selected. Returns the rows of the part that was clicked just now, or None.

    The histogram of sizes follows the sliders while they move, unless they also change which rows are selected. `slices` are
    those with a name, which stand beside the worst; `code` gives `sets` and `rows`.
    """
    sets = chosen_rule.sets
    selected = None if len(rows) == len(sets) else rows
    with captured_warnings():  # the rule said in the bar what it warns of
        made = MAKERS[name](sets, rows=selected, **({"named": slices} if name == SLICES else {}))
    with st.container(key="figure-rows"):
        if name == SIZES and chosen_rule.moves and not chosen_rule.adjusted and not row_filter.needs_sets:
            channel = chosen_rule.channel
            film = sizes_at_every_place(chosen_rule.key, chosen_rule.along, selected, dark)
            clicked = live.figure(channel, film, key=f"sizes of rows {channel}")
        else:
            clicked = live.prepared_drawing(
                browser_content(made, dark, height=HEIGHT), key=f"drawing of rows {name}", clickable=made.opens_rows
            )
        handout("rows", None, lambda: replace(made, code=Code(made.code.call).after(code)), dark)
    return None if clicked is None else made.rows_behind(clicked)


@st.cache_resource(show_spinner="Counting sizes at every place of the slider…", max_entries=8)
def sizes_at_every_place(key: str, rules: tuple[str, ...] | None, rows: np.ndarray | None, dark: bool) -> Film:
    """The histogram of the sizes of selected rows in front of that of all (None: of all), with all its moves.

    `rules` is another rule at every place of its slider; None: one threshold, by the linked sliders.
    """
    if rules is None:
        of_all = compact(key, None)
        first = cached_data.sets(key, "K", float(places(key).K_values[0]))
    else:
        of_all = along(key, rules, None)
        first = cached_data.sets_by(key, rules[0])
    figure = wb.figures.set_sizes(first, rows=rows)
    if rows is None:
        return following(figure, of_all, dark, height=HEIGHT)
    if rules is None:
        of_rows = wb.SetIndex(first.table.rows(rows)).compact(places(key).thresholds)
    else:
        of_rows = at_places([sets.rows(rows) for sets in cached_data.sets_along(key, rules)])
    return following(figure, of_rows, dark, height=HEIGHT, other=of_all)
