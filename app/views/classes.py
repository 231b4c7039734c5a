"""Classes: which are found, whether rare ones pay, and who shares a class's sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

import live
import workbench as wb
from controls import rules
from controls.places import along, compact, places
from controls.runs import from_to, one_run
from controls.words import WORDS_OF_SETS, explained
from drawing.figures import HEIGHT, drawn, following
from drawing.handout import handout
from session import messages, reading
from session.address import any_text, bound, one_of
from views.samples import open_rows, open_samples
from workbench.figures import Figure
from workbench.figures.of_sets.neighbours import co_members, co_members_at, companions

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
    "count": st.column_config.NumberColumn("Trained on", help="training images of the class"),
    "group": st.column_config.TextColumn("Group"),
}


def page() -> None:
    """The view."""
    st.title("Classes", anchor=False)
    if st.session_state["run"] is None:
        messages.no_runs()
        return
    st.markdown(
        "A mean hides who pays for it. A class is found when the set of its row contains it; move K and see which classes "
        "are found last, and with whom they share their sets."
    )
    explained(*WORDS_OF_SETS)
    body(st.session_state["run"], st.context.theme.type == "dark")


@st.fragment
@messages.friendly
def body(key: str, dark: bool) -> None:
    """All that follows the sliders; the table, and what is compared with another run, when one is released."""
    chosen_rule = rules.choose("classes", key)
    sets = chosen_rule.sets
    labelled = sets.table.labels is not None
    if not labelled:
        st.info(
            "These rows have no labels: there is no accuracy, but who shares a set with whom can be seen.",
            icon=":material/label_off:",
        )
    titles = reading.comparable(key)
    other = one_run("Compared with", titles, "other") if titles else None
    with st.container(key="figures"):
        if labelled:
            of_classes("classes", chosen_rule, dark)
            if sets.table.class_counts is not None:
                of_classes("rarity", chosen_rule, dark)
            table(chosen_rule, other)
        with st.container(key="company"):
            around = chosen_class(sets)
            company(chosen_rule, around, dark)
        if other is not None:
            improved(key, other, sets, chosen_rule.of(other), dark)
        if sets.table.class_counts is not None:
            drawn("lorenz", key, lambda: wb.figures.lorenz(sets.table.class_counts), dark)


def company(chosen_rule: rules.ChosenRule, around: int, dark: bool) -> None:
    """Who shares the sets of a class; a cell opens the rows whose sets hold both classes."""
    key, sets = chosen_rule.key, chosen_rule.sets

    def make() -> Figure:
        return wb.figures.shared_sets(sets, around, among=companions(sets.table, around))

    def moving() -> dict[str, Any]:
        return company_at_every_place(key, around, chosen_rule.along, dark)

    picture("shared", chosen_rule, make, moving, dark, of=f"class {around}", height=TALL)
    name = sets.table.named_classes()[around]
    with st.container(horizontal=True):
        if sets.table.labels is not None and st.button("Its rows", icon=":material/photo_library:", type="tertiary"):
            open_samples(key, label=name)
        if st.button("Rows whose sets hold it", icon=":material/photo_library:", type="tertiary"):
            open_samples(key, holds=[name])


@st.cache_resource(show_spinner="Drawing…", max_entries=32)
def company_at_every_place(key: str, around: int, rules: tuple[str, ...] | None, dark: bool) -> dict[str, Any]:
    """The company of a class as it is sent to the browser, with all its moves."""
    table = reading.run(key).tables["test"]
    classes = companions(table, around)
    if rules is not None:
        sets = reading.sets_along(key, rules)
        together, first = np.array([co_members(each)[np.ix_(classes, classes)] for each in sets]), sets[0]
    else:
        together, first = co_members_at(table, classes, places(key).thresholds), first_sets(key)
    figure = wb.figures.shared_sets(first, around, among=classes)
    return following(figure, {"co_members": together}, dark, height=TALL)


def improved(key: str, other: str, before: wb.PredictionSets, after: wb.PredictionSets, dark: bool) -> None:
    """Which classes gain and which lose from this run to the other; a bar opens the rows of its class that only one gets."""
    figure = wb.figures.most_improved(before, after)
    title = f"{from_to(key, other)}: which classes gain, which lose"
    clicked = drawn("improved", other, lambda: figure, dark, title=title, height=TALL, other=key)
    if clicked is not None and (rows := figure.rows_behind(clicked)) is not None:
        open_rows(key, rows, before.table, other=other)


def chosen_class(sets: wb.PredictionSets) -> int:
    """The class whose company is shown, in the address as `class`: at first the least found of those that are in sets."""
    names = sets.table.named_classes()
    found = wb.metrics.class_accuracy(sets) if sets.table.labels is not None else np.zeros(len(names))
    in_sets = np.bincount(sets.classes, minlength=len(names)) > 0
    first = int(np.where(in_sets, np.nan_to_num(found, nan=1.0), 2.0).argmin())
    label = "Class" if sets.table.labels is None else "Class (also by choosing a line of the table)"
    return names.index(st.selectbox(label, names, first, **bound("class", one_of(names))))


def of_classes(name: str, chosen_rule: rules.ChosenRule, dark: bool) -> None:
    """A picture of all classes; a class in it opens its rows."""

    def make() -> Figure:
        return OF_CLASSES[name](chosen_rule.sets)

    def moving() -> dict[str, Any]:
        return at_every_place(name, chosen_rule.key, chosen_rule.along, dark)

    picture(name, chosen_rule, make, moving, dark)


@st.cache_resource(show_spinner="Drawing…", max_entries=32)
def at_every_place(name: str, key: str, rules: tuple[str, ...] | None, dark: bool) -> dict[str, Any]:
    """A picture as it is sent to the browser, with all its moves: along the linked sliders, or along that of a rule."""
    if rules is not None:
        return following(OF_CLASSES[name](reading.sets_by(key, rules[0])), along(key, rules, None), dark)
    return following(OF_CLASSES[name](first_sets(key)), compact(key, None), dark)


def first_sets(key: str) -> wb.PredictionSets:
    """The sets at the first place of the linked sliders."""
    return reading.sets(key, "K", float(places(key).K_values[0]))


@messages.friendly
def picture(
    name: str,
    chosen_rule: rules.ChosenRule,
    make: Callable[[], Figure],
    moving: Callable[[], dict[str, Any]],
    dark: bool,
    *,
    of: str = "classes",
    height: int = HEIGHT,
) -> None:
    """A picture that follows the sliders while they move, if the rule does; what is clicked in it opens its rows."""
    key, channel = chosen_rule.key, chosen_rule.channel
    if not chosen_rule.moves:
        clicked = drawn(name, key, make, dark, height=height)
    else:
        with st.container(key=f"figure-{name}"):
            clicked = live.figure(channel, **moving(), key=f"{name} of {of} {channel}")
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
    sets = reading.sets_by(key, rule)
    frame = wb.figures.per_class(sets).frame
    if other is not None:
        changes = wb.figures.most_improved(sets, reading.sets_by(other, rule)).frame
        changes = changes.assign(points=100 * changes["difference"])
        frame = frame.merge(changes[["class", "points"]], on="class", how="left")
    return frame.sort_values("accuracy", kind="stable", ignore_index=True)
