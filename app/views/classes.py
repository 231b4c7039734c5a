"""Classes: which are found, whether rare ones pay, and who shares a class's sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls import rules, slices
from controls.bar import WORDS_OF_SETS, introduce, tools
from controls.positions import along, compact, places
from controls.runs import from_to, one_run
from drawing.figures import HEIGHT, draw, following, pictures
from drawing.handout import handout
from session import cached_data, messages
from session.address import any_text, bound, one_of
from session.sliced_runs import sliced
from views.samples import open_rows
from workbench.figures import Figure
from workbench.figures.film import Film
from workbench.figures.sets.class_matrix import similar_order
from workbench.figures.sets.neighbours import co_members, co_members_at, companions
from workbench.metrics.rows import RowFilter
from workbench.tables.row_kinds import training_row

ABOUT = (
    "An average hides the classes that are missed. Move K and see which classes are correct last, and with which others they "
    "share their sets."
)
OF_CLASSES: dict[str, Callable[[wb.PredictionSets], Figure]] = {
    "classes": wb.figures.per_class,
    "rarity": wb.figures.accuracy_against_count,
}
TALL = 600  # pixels of the table and of the heat map beside it
COLUMNS = {
    "name": st.column_config.TextColumn("Class", width="medium"),
    "accuracy": st.column_config.ProgressColumn("Accuracy", format="percent", min_value=0, max_value=1, width="small"),
    "points": st.column_config.NumberColumn(
        "Change", format="%+.1f", help="from this run to the other one, in percentage points of accuracy"
    ),
    "n": st.column_config.NumberColumn("Rows", help="test rows of the class"),
    "count": st.column_config.NumberColumn("Trained on", help="training rows of the class"),
    "group": st.column_config.TextColumn("Group"),
}


def page() -> None:
    """The view."""
    introduce("Classes", ABOUT, *WORDS_OF_SETS)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the sliders; the table, and what is compared with another run, when one is released."""
    line = tools()
    with line:
        key = slices.choose(key)
    chosen_rule = rules.choose("classes", key)
    sets = chosen_rule.sets
    labelled = sets.table.labels is not None
    if not labelled:
        st.info(
            "These rows have no labels: there is no accuracy, but who shares a set with whom can be seen.",
            icon=":material/label_off:",
        )
    titles = cached_data.comparable(key)
    with line:
        around = chosen_class(sets)
        other = one_run("Compare with", titles, "other") if titles else None
    other = None if other is None else sliced(other, key)
    with pictures():
        if labelled:
            of_classes("classes", chosen_rule, dark)
            if sets.table.class_counts is not None:
                of_classes("rarity", chosen_rule, dark)
                gains(chosen_rule, dark)
        if other is not None:
            improved(key, other, sets, chosen_rule.of(other), dark)
        matrix(chosen_rule, dark)
        with st.container(key="company"):
            company(chosen_rule, around, dark)
        if sets.table.class_counts is not None:
            draw("lorenz", key, lambda: wb.figures.lorenz(sets.table.class_counts, training_row(sets.table)), dark)
        if labelled:
            table(chosen_rule, other)


def matrix(chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """All pairs of classes; a cell opens the rows with both, one on the diagonal those of its block."""
    key = chosen_rule.key

    def make() -> Figure:
        return wb.figures.class_matrix(chosen_rule.sets, among=in_order_of_similarity(key))

    def moving() -> Film:
        return matrix_at_every_place(key, chosen_rule.along, dark)

    picture("matrix", chosen_rule, make, None if chosen_rule.adjusted else moving, dark, height=TALL)


@st.cache_data(show_spinner=False, max_entries=32)
def in_order_of_similarity(key: str) -> tuple[int, ...]:
    """The classes of the matrix of a run."""
    return similar_order(cached_data.run(key).tables["test"])


@st.cache_resource(show_spinner="Drawing…", max_entries=8)
def matrix_at_every_place(key: str, rules: tuple[str, ...] | None, dark: bool) -> Film:
    """The matrix with all its moves."""
    order = in_order_of_similarity(key)
    first, together = co_members_along(key, order, rules)
    return following(wb.figures.class_matrix(first, among=order), {"co_members": together}, dark, height=TALL)


def co_members_along(
    key: str, classes: tuple[int, ...], rules: tuple[str, ...] | None
) -> tuple[wb.PredictionSets, np.ndarray]:
    """The sets at the first place, and how often some classes share a set at every place, of the sliders or of a rule."""
    if rules is not None:
        sets = cached_data.sets_along(key, rules)
        return sets[0], np.array([co_members(each, classes) for each in sets])
    table = cached_data.run(key).tables["test"]
    return first_sets(key), co_members_at(table, classes, places(key).thresholds)


def company(chosen_rule: rules.ChosenRule, around: int, dark: bool) -> None:
    """Classes that share the sets of a class; a cell opens the rows whose sets hold both classes."""
    key, sets = chosen_rule.key, chosen_rule.sets

    def make() -> Figure:
        return wb.figures.shared_sets(sets, around, among=companions(sets.table, around))

    def moving() -> Film:
        return company_at_every_place(key, around, chosen_rule.along, dark)

    picture(
        "shared", chosen_rule, make, None if chosen_rule.adjusted else moving, dark, of=f"class {around}", height=TALL
    )
    with st.container(horizontal=True):
        if sets.table.labels is not None and st.button("Its rows", icon=":material/photo_library:", type="tertiary"):
            open_rows(key, RowFilter(label=around), sets.table)
        if st.button("Rows whose sets contain it", icon=":material/photo_library:", type="tertiary"):
            open_rows(key, RowFilter(holds=(around,)), sets.table)


@st.cache_resource(show_spinner="Drawing…", max_entries=32)
def company_at_every_place(key: str, around: int, rules: tuple[str, ...] | None, dark: bool) -> Film:
    """The company of a class with all its moves."""
    classes = companions(cached_data.run(key).tables["test"], around)
    first, together = co_members_along(key, classes, rules)
    figure = wb.figures.shared_sets(first, around, among=classes)
    return following(figure, {"co_members": together}, dark, height=TALL)


def improved(key: str, other: str, before: wb.PredictionSets, after: wb.PredictionSets, dark: bool) -> None:
    """Which classes gain and which lose from this run to the other; a bar opens the rows of its class that only one gets."""
    figure = wb.figures.most_improved(before, after)
    title = f"{from_to(key, other)}: which classes gain, which lose"
    clicked = draw("improved", other, lambda: figure, dark, title=title, height=TALL, other=key)
    if clicked is not None and (rows := figure.rows_behind(clicked)) is not None:
        open_rows(key, rows, before.table, other=other)


def chosen_class(sets: wb.PredictionSets) -> int:
    """The class whose company is shown, in the address as `class`: at first the least found of those that are in sets."""
    names = sets.table.named_classes()
    found = wb.metrics.class_accuracy(sets) if sets.table.labels is not None else np.zeros(len(names))
    in_sets = np.bincount(sets.classes, minlength=len(names)) > 0
    first = int(np.where(in_sets, np.nan_to_num(found, nan=1.0), 2.0).argmin())
    about = "Its company is shown; also by choosing a line of the table."
    return names.index(st.selectbox("Class", names, first, width=280, help=about, **bound("class", one_of(names))))


def of_classes(name: str, chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """A picture of all classes; a class in it opens its rows."""

    def make() -> Figure:
        return OF_CLASSES[name](chosen_rule.sets)

    def moving() -> Film:
        return at_every_place(name, chosen_rule.key, chosen_rule.along, dark, chosen_rule.adjusted)

    picture(name, chosen_rule, make, moving, dark)


def gains(chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """Which classes gain and which pay, against one threshold at the same mean size; nothing for one threshold itself."""
    if chosen_rule.place is not None and not chosen_rule.adjusted:
        return

    def make() -> Figure:
        return wb.figures.gains_by_count(one_threshold(chosen_rule), chosen_rule.sets)

    def moving() -> Film:
        return gains_at_every_place(chosen_rule.key, dark)

    picture("gains", chosen_rule, make, moving if chosen_rule.adjusted else None, dark)


def one_threshold(chosen_rule: rules.ChosenRule) -> wb.PredictionSets:
    """The sets that a rule is compared with: at τ = 0, or of one threshold at its mean size."""
    if chosen_rule.adjusted:
        return cached_data.sets_by(chosen_rule.key, repr(replace(cast(Any, chosen_rule.rule), tau=0.0)))
    size = max(wb.metrics.mean_size(chosen_rule.sets), 0.1)
    return cached_data.sets_by(chosen_rule.key, repr(wb.AverageK(round(size, 2))))


@st.cache_resource(show_spinner="Drawing…", max_entries=8)
def gains_at_every_place(key: str, dark: bool) -> Film:
    """Gains and payments with all their moves: each place against that of τ = 0."""
    everywhere, at = compact(key, None, adjusted=True), places(key, adjusted=True)
    before = np.tile(everywhere["class_hits"][: at.block], (len(at.taus), 1))
    figure = wb.figures.gains_by_count(first_sets(key), first_sets(key))
    return following(figure, {**everywhere, "hits_before": before}, dark)


@st.cache_resource(show_spinner="Drawing…", max_entries=32)
def at_every_place(name: str, key: str, rules: tuple[str, ...] | None, dark: bool, adjusted: bool = False) -> Film:
    """A picture with all its moves: along the linked sliders, or along that of a rule."""
    if rules is not None:
        return following(OF_CLASSES[name](cached_data.sets_by(key, rules[0])), along(key, rules, None), dark)
    return following(OF_CLASSES[name](first_sets(key)), compact(key, None, adjusted=adjusted), dark)


def first_sets(key: str) -> wb.PredictionSets:
    """The sets at the first place of the linked sliders."""
    return cached_data.sets(key, "K", float(places(key).K_values[0]))


@messages.friendly
def picture(
    name: str,
    chosen_rule: rules.ChosenRule,
    make: Callable[[], Figure],
    moving: Callable[[], Film] | None,
    dark: bool,
    *,
    of: str = "classes",
    height: int = HEIGHT,
) -> None:
    """A picture that follows the sliders while they move, if the rule and it can; what is clicked in it opens its rows."""
    key, channel = chosen_rule.key, chosen_rule.channel
    if not chosen_rule.moves or moving is None:
        clicked = draw(name, key, make, dark, height=height)
    else:
        with st.container(key=f"figure-{name}"):
            clicked = live.figure(channel, moving(), key=f"{name} of {of} {channel}")
            handout(name, key, make, dark)
    if clicked is not None and (rows := make().rows_behind(clicked)) is not None:
        open_rows(key, rows, chosen_rule.sets.table)


@messages.friendly
def table(chosen_rule: rules.ChosenRule, other: str | None) -> None:
    """Every class, the least accurate first; a part of a name finds classes, a chosen line chooses the class."""
    frame = every_class(chosen_rule.key, repr(chosen_rule.rule), other)
    with st.container(key="table"):
        st.html('<div class="wb-live"><h2 class="wb-title">Every class, worst first</h2></div>')
        sought = st.text_input("Find a class or group", placeholder="a part of its name", **bound("find", any_text))
        named = frame["name"].str.cat(frame["group"] if "group" in frame else frame["name"], sep=" ")
        found = frame[named.str.contains(sought, case=False, regex=False)].reset_index(drop=True)
        if found.empty:
            st.info("No class is called that.", icon=":material/search_off:")
            return
        st.dataframe(
            found.round(3),
            column_config=COLUMNS,
            column_order=[name for name in COLUMNS if name in found],
            hide_index=True,
            height=TALL - 80,
            key="lines",
            on_select=lambda: choose_line(found),
            selection_mode="single-row",
        )


def choose_line(found: pd.DataFrame) -> None:
    """The class of the chosen line of the table becomes the class whose company is shown."""
    for line in st.session_state["lines"].selection.rows:
        st.session_state["class"] = found["name"][line]


@st.cache_data(show_spinner=False, max_entries=32)
def every_class(key: str, rule: str, other: str | None) -> pd.DataFrame:
    """The frame of `per_class`, with the change to another run in points if there is one, the least accurate first."""
    sets = cached_data.sets_by(key, rule)
    frame = wb.figures.per_class(sets).frame
    if other is not None:
        changes = wb.figures.most_improved(sets, cached_data.sets_by(other, rule)).frame
        changes = changes.assign(points=100 * changes["difference"])
        frame = frame.merge(changes[["class", "points"]], on="class", how="left")
    return frame.sort_values("accuracy", kind="stable", ignore_index=True)
