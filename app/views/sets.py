"""Sets: move K or the threshold and see sizes, accuracy, classes and photographs follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import streamlit as st

import live
import workbench as wb
from controls import rules
from controls.places import along, compact, places
from controls.runs import looks_by_key, one_run
from controls.words import WORDS_OF_SETS, explained
from drawing import photos, row_detail
from drawing.figures import HEIGHT, PANEL, at_each_place, drawn, following, sent
from drawing.handout import handout
from session import messages, reading
from session.address import bound, one_of
from views.samples import open_rows
from workbench.figures import Figure
from workbench.figures.base import Click, Places
from workbench.figures.looks import Look
from workbench.figures.of_probabilities.reliability import Reliability
from workbench.figures.of_sets.curves import AccuracyAgainstSize
from workbench.figures.of_sets.sizes import MOST_GROUPS, SetSizes
from workbench.figures.of_sets.thresholds import SizeAgainstThreshold
from workbench.metrics.rows import ORDERS, RowFilter, in_order
from workbench.tables.groups import rows_by

ALL_ROWS = "all rows"
KINDS = ("any rows", "misses", "hits", "largest sets", "empty sets")  # of rows on the wall


def page() -> None:
    """The view."""
    st.title("Sets", anchor=False)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    st.markdown(
        "A set holds few classes when a row is clear and more when it is ambiguous. Every class whose probability reaches one "
        "threshold is in: K, or a promised coverage, fixes it on the validation rows. All pictures are of the test rows."
    )
    explained(*WORDS_OF_SETS, "best possible")
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the controls. A fragment: releasing a slider runs this and nothing else.

    The key of the run also names the channel of the moving parts, so that no part ever follows another run's sliders.
    """
    chosen_rule = rules.choose("sets", key)
    figures(chosen_rule, dark)
    wall(chosen_rule, dark)


def figures(chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """The pictures, each with its code and its data."""
    index = reading.index(chosen_rule.key, "test")
    labelled = index.table.labels is not None
    if not labelled:
        st.info("These rows have no labels: there are sizes to show, but no accuracy.", icon=":material/label_off:")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        by = grouping(index.table)
        titles = reading.comparable(chosen_rule.key)
        other = one_run("Outlined: the sizes of", titles, "other") if titles else None
    beside = None if other is None else chosen_rule.of(other)
    makers: dict[str, Callable[[], Figure]] = {
        "sizes": lambda: wb.figures.set_sizes(
            chosen_rule.sets, by=by, other=beside, looks=both_looks(chosen_rule.key, other)
        )
    }
    if labelled:
        makers |= {
            "curve": lambda: curve(chosen_rule.key).marking(chosen_rule.sets),
            "classes": lambda: wb.figures.per_class(chosen_rule.sets),
            "reliability": lambda: reliability(chosen_rule.key),
        }
    if (place := chosen_rule.place) is not None:
        makers["thresholds"] = lambda: of_thresholds(chosen_rule.key, place)
    with st.container(key="figures"):
        for name, make in makers.items():
            of_sizes = (by, other) if name == "sizes" else (None, None)
            picture(name, chosen_rule, *of_sizes, make, dark)


@messages.friendly
def picture(
    name: str, chosen_rule: rules.ChosenRule, by: str | None, other: str | None, make: Callable[[], Figure], dark: bool
) -> None:
    """One picture with its code; if it fails, the others stay. A bar of it, a class or a bin opens its rows."""
    if chosen_rule.moves:
        clicked = moving(name, chosen_rule, by, other, make, dark)
    elif name == "reliability":
        with st.container(key=f"figure-{name}"):
            parts = prepared_reliability(chosen_rule.key, dark)
            clicked = live.prepared_drawing(parts, key=f"drawing {name}", clickable=True)
            handout(name, chosen_rule.key, make, dark)
    else:
        clicked = drawn(name, chosen_rule.key, make, dark, other=other)
    if clicked is not None:
        figure = make()
        if (rows := figure.rows_behind(clicked)) is not None:
            outlined = isinstance(figure, SetSizes) and figure.outlined(clicked)
            key = other if other is not None and outlined else chosen_rule.key
            open_rows(key, rows, chosen_rule.sets.table, of_sliders=chosen_rule.place is not None)


def moving(
    name: str, chosen_rule: rules.ChosenRule, by: str | None, other: str | None, make: Callable[[], Figure], dark: bool
) -> Click | None:
    """A picture that follows the sliders. Returns what was clicked just now, or None."""
    key = chosen_rule.key

    def figure() -> Figure:
        made = make()
        return replace(made, code=reading.code(key, made, other))

    with st.container(key=f"figure-{name}"):
        parts = at_every_place(name, key, chosen_rule.along, by, other, dark)
        clicked = live.figure(chosen_rule.channel, **parts, key=f"{name} {chosen_rule.channel}")
        handout(name, None, figure, dark)
    return clicked


def of_thresholds(key: str, place: int) -> SizeAgainstThreshold:
    """G of a run, with the threshold of a place of the sliders."""
    indices = reading.index(key, "val"), reading.index(key, "test")
    return wb.figures.size_against_threshold(*indices, threshold=float(places(key).thresholds[place]) or None)


@messages.friendly
def wall(chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """Photographs (or, where there are none, rows) with their sets; which ones is chosen here."""
    st.header("Test rows and their sets", anchor=False)
    labelled = chosen_rule.sets.table.labels is not None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = KINDS if labelled else (KINDS[0], *KINDS[3:])
        choice = st.segmented_control(
            "Show", options, default=KINDS[0], required=True, **bound("show", one_of(options))
        )
        rows = chosen_rows(chosen_rule.sets, choice)
        shown = photos.one_page(rows)
    if len(shown) == 0:
        st.info(
            "No test row is of this kind here. Move a control, or choose another kind.", icon=":material/search_off:"
        )
        return
    opened = photos.on_cards(chosen_rule, shown, dark, key=f"wall {chosen_rule.channel}")
    row_detail.open_where_asked(chosen_rule, opened, rows, dark)


def chosen_rows(sets: wb.PredictionSets, choice: str) -> np.ndarray:
    """The rows of a kind, in the order of the table (the largest sets first)."""
    asked = {"hits": RowFilter(hit=True), "misses": RowFilter(hit=False), "empty sets": RowFilter(sizes=(0, 0))}
    rows = asked.get(choice, RowFilter()).rows(sets)
    return in_order(sets, rows, choice) if choice in ORDERS else rows


def prepare() -> None:
    """Compute what the page of the first run needs, whatever its theme."""
    for key in reading.at_first()[:1]:
        compact(key, None)
        reading.comparable(key)
        if reading.index(key, "test").table.labels is not None:
            reliability(key)
            curve(key)


@st.cache_resource(show_spinner=False, max_entries=8)
def curve(key: str) -> AccuracyAgainstSize:
    """What larger sets buy: the same for every rule."""
    return wb.figures.accuracy_against_size(reading.index(key, "test"))


@st.cache_resource(show_spinner=False, max_entries=8)
def reliability(key: str) -> Reliability:
    """Whether the confidence is right: the same for every set."""
    return wb.figures.reliability(reading.index(key, "test").table)


@st.cache_resource(show_spinner=False, max_entries=16)
def prepared_reliability(key: str, dark: bool) -> dict[str, Any]:
    """The same as it is sent to the browser."""
    return sent(reliability(key), dark)


def grouping(table: wb.LogitTable) -> str | None:
    """By what the histogram of sizes is split: shot groups, groups of classes, or an attribute of the rows."""
    names = list(table.attributes or {})
    if table.labels is not None and not table.many_labels:
        names = ["shots"] * (table.class_counts is not None) + ["groups"] * (table.groups is not None) + names
    few = [name for name in names if 1 < len(rows_by(table, name)[1]) <= MOST_GROUPS]
    if not few:
        return None
    by = st.segmented_control(
        "Sizes of the sets of",
        [ALL_ROWS, *few],
        default=ALL_ROWS,
        required=True,
        **bound("by", one_of([ALL_ROWS, *few])),
    )
    return None if by == ALL_ROWS else by


@st.cache_resource(show_spinner="Drawing…", max_entries=64)
def at_every_place(
    name: str, key: str, rules: tuple[str, ...] | None, by: str | None, other: str | None, dark: bool
) -> dict[str, Any]:
    """A picture as it is sent to the browser, with all its moves. It does not depend on where the sliders stand.

    `rules` is another rule at every place of its slider; None: one threshold, by the linked sliders.
    """
    everywhere = compact(key, by) if rules is None else along(key, rules, by)
    if name == "curve" and rules is not None:
        return at_each_place([curve(key).marking(sets) for sets in reading.sets_along(key, rules)], dark)
    if name == "curve":
        start = everywhere["mean_size"][0], everywhere["accuracy"][0]
        return {**following(curve(key).standing_at(*start), everywhere, dark), "seeks": "K"}
    if name == "thresholds":
        figure = of_thresholds(key, 0)
        fitted = {"thresholds": places(key).thresholds, "mean_size": places(key).mean_size}
        return {**following(replace(figure, text=figure.unmarked), fitted, dark), "seeks": "threshold"}
    if name == "reliability":
        return following(reliability(key), everywhere, dark)
    first = repr(wb.AverageK(float(places(key).K_values[0]))) if rules is None else rules[0]
    sets = reading.sets_by(key, first)
    if name == "classes":
        return following(wb.figures.per_class(sets), everywhere, dark)
    beside = None if other is None else reading.sets_by(other, first)
    of_other = None
    if other is not None:
        of_other = compact(key, by, other) if rules is None else along(key, rules, by, other)
    sizes = wb.figures.set_sizes(sets, by=by, other=beside, looks=both_looks(key, other))
    return sizes_following(sizes, everywhere, dark, of_other)


def both_looks(key: str, other: str | None) -> tuple[Look, ...]:
    """The looks of two runs that are laid over each other; one alone needs none."""
    if other is None:
        return ()
    known = looks_by_key(key)
    return known[key], known[other]


def sizes_following(figure: SetSizes, everywhere: Places, dark: bool, other: Places | None = None) -> dict[str, Any]:
    """The histogram of sizes, or one below another, with all its moves; those of another run, if there is one, too."""
    height = HEIGHT + PANEL * (figure.frame["group"].nunique() - 1)
    return following(figure, everywhere, dark, height=height, other=other)
