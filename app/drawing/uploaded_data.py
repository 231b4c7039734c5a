"""Data of a file that are not the scores of all classes: listed classes as bounds, sets made elsewhere, votes."""

from __future__ import annotations

import pandas as pd
import streamlit as st

import live
import workbench as wb
from drawing.figures import browser_content
from drawing.handout import handout
from session import cached_data
from session.messages import friendly, plain
from workbench import display_names
from workbench.metrics.given_sets import figure_frame, given_against_ours
from workbench.sets.bounds import UnknownThreshold
from workbench.sets.imports import sets_of
from workbench.store.imported_tables import val_and_test
from workbench.tables.listed_classes import ListedClasses

RULES = (wb.AverageK(1), wb.AverageK(2), wb.AverageK(3), wb.AverageK(5), wb.LAC(0.9))  # in the table of bounds
B0, THRESHOLD = 1.0, 2.0  # of the weighted majority vote


@st.dialog("In this file", width="large")
def show(data: cached_data.Data, name: str, key: str | None, dark: bool) -> None:
    """All that a file of listed classes, sets or votes says; `key` is the run that sets are compared with."""
    if isinstance(data, wb.PartialTable):
        bounds(data, dark)
    elif isinstance(data, ListedClasses):
        judged(data, name, key, dark)
    else:
        votes(data, dark)


@friendly
def bounds(table: wb.PartialTable, dark: bool) -> None:
    """Coverage against size, and the numbers of some rules: exact, between bounds, or unknown."""
    val, test, note = val_and_test(table)
    st.caption(plain(f"{table.note}. {note}"))
    if test.labelled.any():
        picture("bounds", wb.figures.coverage_bounds(val, test), dark)
    lines = [summary(rule, val, test) for rule in RULES if test.labelled.any() or not isinstance(rule, wb.LAC)]
    st.dataframe(pd.DataFrame(lines, columns=["Rule", "Coverage", "Mean size", "Threshold"]), hide_index=True)


def summary(rule: wb.sets.Rule, val: wb.PartialTable, test: wb.PartialTable) -> tuple[str, str, str, str]:
    """Coverage, size and threshold of a rule in words."""
    name = display_names.of_thing(rule)
    try:
        sets = wb.bounded_sets(rule, val, test)
    except UnknownThreshold:
        return name, "unknown", "unknown", "too few classes are listed"
    return name, str(sets.coverage), str(sets.mean_size), str(sets.threshold)


@friendly
def judged(listed: ListedClasses, name: str, key: str | None, dark: bool) -> None:
    """Sizes and classes of sets made elsewhere, and ours of the same size where the run in sight has these rows."""
    sets = sets_of(listed, name)
    about = wb.describe(sets)
    st.markdown("  \n".join(plain(f"{what}: {fact}") for what, fact in about.facts.items()))
    picture("given-sizes", wb.figures.set_sizes(sets), dark)
    if sets.labelled.any():
        picture("given-classes", wb.figures.per_class(sets), dark)
    if key is not None:
        beside_ours(listed, name, key, dark)


def beside_ours(listed: ListedClasses, name: str, key: str, dark: bool) -> None:
    """The sets beside those of a run, or a word why they cannot be."""
    try:
        compared = given_against_ours(sets_of(listed, name, cached_data.run(key).tables["test"]))
    except ValueError as error:
        st.caption(plain(f"No comparison with the run in sight: {error}"))
        return
    frame = figure_frame(compared)
    picture("given-ours", wb.figures.with_intervals(frame, y="coverage", title="Theirs beside ours"), dark)
    st.dataframe(compared, hide_index=True)


@friendly
def votes(given: pd.DataFrame, dark: bool) -> None:
    """Votes of annotators, class frequencies, and labels by the weighted majority vote."""
    about = wb.describe(given)
    st.markdown("  \n".join(plain(f"{what}: {fact}") for what, fact in about.facts.items()))
    if about.lorenz is not None:
        picture("votes-lorenz", about.lorenz, dark)
    labels = wb.crowd_labels.validated_labels(given, b0=B0, threshold=THRESHOLD).labels
    st.caption("Labels by the weighted majority vote:")
    st.dataframe(labels, hide_index=True)
    st.download_button("Labels (CSV)", lambda: labels.to_csv(index=False), "labels.csv", "text/csv", on_click="ignore")


def picture(name: str, figure: wb.figures.Figure, dark: bool) -> None:
    """A figure with its code and its data."""
    with st.container(key=f"figure-{name}"):
        live.prepared_drawing(browser_content(figure, dark), key=f"drawing {name}", clickable=False)
        handout(name, None, lambda: figure, dark)
